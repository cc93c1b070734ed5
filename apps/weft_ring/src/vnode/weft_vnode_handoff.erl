%% SPDX-License-Identifier: Apache-2.0
%% @doc Hands a partition over: what the ring calls when the partition shall belong to another node.
%% The work is done by the partitions themselves, on both nodes; this waits for it.
-module(weft_vnode_handoff).

-export([hand_over/1, sender/4, receiver/1, looked/2, reach/3, carried_by/3, carry/2, courier/3]).

-type step() :: hand_over | catch_up.
%% As a whole; or until all is at the next owner but for what changes meanwhile, and the partition
%% still serves.

%% So long the last step of one may take, while those before it refuse requests.
-define(LAST_MS, 10000).
%% So many messages may wait for a channel that is full. The window of a handoff is 100 messages,
%% and each time it is sent again they would be more.
-define(WAITING_MAX, 300).

%% @doc All data of the partition are at the next owner, or why they are not. Nobody may write to
%% them here any more after that. The data of several modules are all brought there before the
%% first of them is given: what is given serves nobody until the ring has another owner for it.
-spec hand_over(weft_ring_table:transfer()) -> ok | {error, term()}.
hand_over(Transfer) ->
    hand_over(weft_vnode_names:modules(), Transfer).

hand_over([Module], Transfer) ->
    begun(hand_over, Module, Transfer);
%% A partition that is opened lets its handoff begin anew (`weft_ring_server:opened/1'), so all are
%% opened before anything is sent.
hand_over(Modules, Transfer) ->
    Steps = [fun(Module) -> opened(Module, Transfer) end,
             fun(Module) -> begun(catch_up, Module, Transfer) end],
    case each(fun(Step) -> each(Step, Modules) end, Steps) of
        ok -> finished(Modules, [], Transfer);
        {error, Reason} -> {error, Reason}
    end.

%% Until the first error.
each(_Do, []) ->
    ok;
each(Do, [One | Others]) ->
    case Do(One) of
        ok -> each(Do, Others);
        {error, Reason} -> {error, Reason}
    end.

opened(Module, {Partition, _, _}) ->
    case weft_vnodes:start({Module, Partition}, node()) of
        {ok, started} -> ok;
        {error, Reason} -> {error, {Module, Reason}}
    end.

begun(Step, Module, {Partition, _, To} = Transfer) ->
    case {weft_vnodes:start({Module, Partition}, To),
          weft_vnodes:start({Module, Partition}, node())}
    of
        {{ok, started}, {ok, started}} ->
            case gen_server:call(process(Module, Transfer), {Step, Transfer}, infinity) of
                ok -> ok;
                {error, Reason} -> {error, {Module, Reason}}
            end;
        {{error, Reason}, _} -> {error, {Module, To, Reason}};
        {_, {error, Reason}} -> {error, {Module, Reason}}
    end.

%% If one of them does not get there soon, all serve again.
finished([], _Given, _Transfer) ->
    ok;
finished([Module | Modules], Given, Transfer) ->
    case finish(process(Module, Transfer), Transfer) of
        ok -> finished(Modules, [Module | Given], Transfer);
        {error, Reason} ->
            lists:foreach(fun(Any) -> process(Any, Transfer) ! {not_given, Transfer} end,
                          [Module | Given]),
            {error, {Module, Reason}}
    end.

finish(Process, Transfer) ->
    try gen_server:call(Process, {finish, Transfer}, ?LAST_MS)
    catch exit:{Reason, _} -> {error, Reason}
    end.

process(Module, {Partition, _, _}) ->
    {ok, Name} = weft_vnode_names:name(Module, Partition),
    {Name, node()}.

%% @doc The core of a handoff that begins, of a partition with this log.
-spec sender(step(), weft_ring_table:transfer(), weft_ring_handoff_sender_core:log(),
             Config :: map()) ->
          {weft_ring_handoff_sender_core:state(), [term()]}.
sender(Step, Transfer, Log, #{handoff_pace_ms := PaceMs, handoff_items := Items}) ->
    Finish = case Step of hand_over -> at_once; catch_up -> when_asked end,
    weft_ring_handoff_sender_core:init(Transfer, weft_vnode_notes:in_order(Log),
                                       #{incarnation => incarnation(), batch_items => Items,
                                         pace_ms => PaceMs, finish => Finish}).

%% @doc That of its other end.
-spec receiver(weft_ring_handoff_receiver_core:mark()) -> weft_ring_handoff_receiver_core:state().
receiver(Mark) ->
    weft_ring_handoff_receiver_core:init(Mark, #{incarnation => incarnation()}).

incarnation() -> {node(), erlang:system_time(), erlang:unique_integer()}.

%% @doc Has more been acknowledged since the look before (`weft_ring_handoff_sender_core')? That it
%% has not is said once. With what the next look is to compare.
-spec looked(Before :: term(), Acknowledged :: term()) -> {moves | stalled, Next :: term()}.
looked(Acknowledged, Acknowledged) -> {stalled, {said, Acknowledged}};
looked({said, Acknowledged}, Acknowledged) -> {moves, {said, Acknowledged}};
looked(_, Acknowledged) -> {moves, Acknowledged}.

%% @doc A process of its own waits for the other node. The calling partition is told
%% `{handoff, Timers, {started, Result}}'.
-spec reach({module(), Partition :: non_neg_integer()}, node(), Timers :: reference()) -> ok.
reach(Which, To, Timers) ->
    Self = self(),
    _ = spawn(fun() -> Self ! {handoff, Timers, {started, weft_vnodes:start(Which, To)}} end),
    ok.

%% @doc This courier of the calling partition, or another one if it has ended: its code may have
%% been loaded twice, or a channel that it waited for has ended. What it had to send is sent again
%% later.
-spec carried_by(none | pid(), {atom(), node()}, Channel :: atom()) -> pid().
carried_by(none, To, Channel) ->
    spawn(?MODULE, courier, [self(), To, Channel]);
carried_by(Courier, To, Channel) ->
    case is_process_alive(Courier) of
        true -> Courier;
        false -> carried_by(none, To, Channel)
    end.

%% @doc It sends this, unless it waits with many others already: then it is sent again later.
-spec carry(Courier :: pid(), tuple()) -> ok.
carry(Courier, Msg) ->
    case process_info(Courier, message_queue_len) of
        {message_queue_len, Waiting} when Waiting >= ?WAITING_MAX -> ok;
        _ -> Courier ! {carry, Msg}, ok
    end.

%% @doc A process that sends for a partition, so that a full channel does not hold the partition up.
%% It ends with the partition.
-spec courier(pid(), {atom(), node()}, Channel :: atom()) -> no_return().
courier(Partition, To, Channel) ->
    Ref = monitor(process, Partition),
    courier_loop(Ref, Partition, To, Channel).

courier_loop(Ref, Partition, To, Channel) ->
    receive
        {carry, Msg} ->
            Envelope = {weft_vnode, receiver, Partition, Msg},
            ok = deliver(To, Envelope, Channel),
            courier_loop(Ref, Partition, To, Channel);
        {'DOWN', Ref, process, _, _} -> exit(normal);
        stop -> exit(normal)
    end.

%% What is not delivered is sent again later. Without the channel it goes as other messages do.
deliver(To, Envelope, Channel) ->
    try weft:send(To, Envelope, Channel) of
        _ -> ok
    catch
        error:_ ->
            _ = erlang:send(To, Envelope),
            ok
    end.
