%% SPDX-License-Identifier: Apache-2.0
%% @doc One end of a lane: stands for a socket, one process for each.
%%
%% What is sent goes through `weft_amqp_lane_core' to the outbox; what comes from the inbox is kept
%% until the owner wants it, as with a passive or active socket. Who may not wait asks for `room/1'
%% first; both count what is under way in the same counter, which credit from the peer lowers.
%%
%% The lane ends with its owner, with the connection to the broker, when the queue of the peer is no
%% more, when a message is missing, or by `close/1'. Packets that came before are still delivered.
-module(weft_amqp_lane).
-behaviour(gen_server).

-export([start/2, send/2, try_send/2, room/1, recv/3, secure/3, activate/3, more/2, close/1,
         controlling_process/2, sent_packets/1, connection/1, came/2, lost/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([ref/0, peer/0]).

%% Of the handshake, and not read yet. Its ends take turns, so much less waits. But until it is
%% over, anybody who may use the broker may send.
-define(UNREAD_BYTES_MAX, 65536).
%% Counted for all senders.
-define(UNDER_WAY, 1).
-define(PACKETS, 2).

-opaque ref() :: {pid(), counters:counters_ref(), PartBytes :: pos_integer()}.
%% queue: that the peer reads; own_queue: that this node reads.
-type peer() :: #{id := weft_amqp_message:id(), queue := binary(), own_queue := binary(),
                  outbox := pid(), part_bytes := pos_integer()}.

-record(lane, {
    id :: weft_amqp_message:id(),
    queue :: binary(),
    outbox :: pid(),
    core :: weft_amqp_lane_core:core(),
    counters :: counters:counters_ref(),
    part_bytes :: pos_integer(),
    owner :: pid(),
    monitor :: reference(),
    %% Packets that the owner may be given; before it was activated none.
    active = passive :: passive | non_neg_integer(),
    packets = queue:new() :: queue:queue({binary(), Cost :: pos_integer()}),
    bytes = <<>> :: binary(),
    reader :: {gen_server:from(), Size :: non_neg_integer(), Timer :: reference()} | undefined,
    senders = queue:new() :: queue:queue({gen_server:from(), iodata()}),
    ended :: undefined | atom()}).

%% --- the socket -------------------------------------------------------------------------------

%% @doc A lane to (or from) a peer, owned by the caller.
-spec start(dialer | listener, peer()) -> {ok, ref()} | {error, term()}.
start(Role, #{part_bytes := PartBytes} = Peer) ->
    Counters = counters:new(2, []),
    case gen_server:start(?MODULE, {Role, Peer, Counters, self()},
                          [{spawn_opt, [{message_queue_data, off_heap}, {fullsweep_after, 10}]}]) of
        {ok, Pid} -> {ok, {Pid, Counters, PartBytes}};
        {error, Reason} -> {error, Reason}
    end.

%% @doc Waits for room.
-spec send(ref(), iodata()) -> ok | {error, closed}.
send({Pid, _, _}, Data) ->
    call(Pid, {send, Data}, infinity).

%% @doc Does not wait.
-spec try_send(ref(), iodata()) -> ok.
try_send({Pid, Counters, PartBytes}, Data) ->
    counters:add(Counters, ?UNDER_WAY,
                 weft_amqp_lane_core:cost(iolist_size(Data), PartBytes)),
    Pid ! {weft_amqp_send, Data},
    ok.

-spec room(ref()) -> {ok, non_neg_integer()}.
room({_Pid, Counters, _}) ->
    {ok, max(0, weft_amqp_lane_core:window() - counters:get(Counters, ?UNDER_WAY))}.

%% @doc Bytes of the handshake.
-spec recv(ref(), non_neg_integer(), timeout()) -> {ok, binary()} | {error, closed | timeout}.
recv({Pid, _, _}, Size, TimeoutMs) ->
    call(Pid, {recv, Size, TimeoutMs}, infinity).

-spec secure(ref(), dialer | listener, binary()) -> ok.
secure({Pid, _, _}, Role, Secret) ->
    _ = call(Pid, {secure, Role, Secret}, infinity),
    ok.

-spec activate(ref(), pos_integer(), pos_integer()) -> ok | {error, closed}.
activate({Pid, _, _}, Packets, BytesMax) ->
    call(Pid, {activate, Packets, BytesMax}, infinity).

-spec more(ref(), pos_integer()) -> ok.
more({Pid, _, _}, Packets) ->
    gen_server:cast(Pid, {more, Packets}).

-spec close(ref()) -> ok.
close({Pid, _, _}) ->
    gen_server:cast(Pid, close).

-spec controlling_process(ref(), pid()) -> ok | {error, closed}.
controlling_process({Pid, _, _}, Owner) ->
    call(Pid, {owner, Owner}, infinity).

-spec sent_packets(ref()) -> non_neg_integer().
sent_packets({_Pid, Counters, _}) ->
    counters:get(Counters, ?PACKETS).

%% @doc What links know the lane by.
-spec connection(ref()) -> weft_tunnel:connection().
connection(Ref) ->
    weft_tunnel:connection(weft_amqp, Ref).

call(Pid, Request, TimeoutMs) ->
    try gen_server:call(Pid, Request, TimeoutMs)
    catch exit:_ -> {error, closed}
    end.

%% --- from the broker --------------------------------------------------------------------------

%% @doc A message for the lane has come.
-spec came(pid(), weft_amqp_message:frame()) -> ok.
came(Pid, Frame) ->
    Pid ! {weft_amqp_came, Frame},
    ok.

%% @doc A message of the lane is lost.
-spec lost(pid(), Reason :: atom()) -> ok.
lost(Pid, Reason) ->
    Pid ! {weft_amqp_lost, Reason},
    ok.

%% --- the process ------------------------------------------------------------------------------

%% @private
init({Role, #{id := Id, queue := Queue, own_queue := OwnQueue, outbox := Outbox,
              part_bytes := PartBytes}, Counters, Owner}) ->
    _ = monitor(process, Outbox),
    case weft_amqp_lanes:add(Id, self()) of
        true ->
            Lane = #lane{id = Id, queue = Queue, outbox = Outbox, counters = Counters,
                         part_bytes = PartBytes, owner = Owner, monitor = monitor(process, Owner),
                         core = weft_amqp_lane_core:new(Id, PartBytes)},
            Role =:= dialer andalso
                publish([weft_amqp_message:open(Id, OwnQueue)], Lane),
            {ok, Lane};
        false ->
            {stop, {shutdown, no_room}}
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #lane{}) ->
          {reply, term(), #lane{}} | {noreply, #lane{}} | {stop, normal, #lane{}}.
handle_call({send, _}, _From, #lane{ended = Ended} = Lane) when Ended =/= undefined ->
    {reply, {error, closed}, Lane};
handle_call({send, Data}, From, #lane{senders = Senders} = Lane) ->
    {noreply, let_send(Lane#lane{senders = queue:in({From, Data}, Senders)})};
handle_call({recv, Size, TimeoutMs}, From, #lane{reader = undefined} = Lane) ->
    Timer = erlang:start_timer(TimeoutMs, self(), recv),
    {noreply, read(Lane#lane{reader = {From, Size, Timer}})};
handle_call({secure, Role, Secret}, _From, #lane{core = Core0} = Lane) ->
    {Events, Core} = weft_amqp_lane_core:secure(Role, Secret, Core0),
    {reply, ok, events(Events, Lane#lane{core = Core})};
handle_call({activate, Packets, BytesMax}, From, #lane{core = Core} = Lane) ->
    gen_server:reply(From, ok),
    deliver(Lane#lane{active = Packets, core = weft_amqp_lane_core:limit_packets(BytesMax, Core)});
handle_call({owner, Owner}, _From, #lane{monitor = Monitor} = Lane) ->
    true = demonitor(Monitor, [flush]),
    {reply, ok, Lane#lane{owner = Owner, monitor = monitor(process, Owner)}};
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
-spec handle_cast(term(), #lane{}) -> {noreply, #lane{}} | {stop, normal, #lane{}}.
handle_cast({more, Packets}, #lane{active = Active} = Lane) ->
    deliver(Lane#lane{active = Active + Packets});
handle_cast(close, Lane) ->
    {stop, normal, hung_up(Lane)};
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #lane{}) -> {noreply, #lane{}} | {stop, normal, #lane{}}.
handle_info({weft_amqp_send, Data}, Lane) ->
    {noreply, sent(Data, Lane)};
handle_info({weft_amqp_came, _Frame}, #lane{ended = Ended} = Lane) when Ended =/= undefined ->
    {noreply, Lane};
handle_info({weft_amqp_came, Frame}, #lane{core = Core0} = Lane) ->
    {Events, Core} = weft_amqp_lane_core:received(Frame, Core0),
    deliver(events(Events, Lane#lane{core = Core}));
handle_info({weft_amqp_lost, Reason}, Lane) ->
    deliver(events([{broken, Reason}], Lane));
handle_info({timeout, Timer, recv}, #lane{reader = {From, _, Timer}} = Lane) ->
    gen_server:reply(From, {error, timeout}),
    {noreply, Lane#lane{reader = undefined}};
handle_info({timeout, _Stale, recv}, Lane) ->
    {noreply, Lane};
handle_info({'DOWN', Monitor, process, _, _}, #lane{monitor = Monitor} = Lane) ->
    {stop, normal, hung_up(Lane)};
handle_info({'DOWN', _, process, Outbox, _}, #lane{outbox = Outbox} = Lane) ->
    deliver(events([{broken, broker_down}], Lane));
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

%% @private Whatever ends this process, the owner hears of it.
terminate(Reason, #lane{id = Id} = Lane) ->
    ok = weft_amqp_lanes:remove(Id, self()),
    Reason =:= normal orelse tell_owner(Lane).

%% --- sending ----------------------------------------------------------------------------------

%% One that waits may send as soon as the window is not full; its packet need not fit.
let_send(#lane{senders = Senders, counters = Counters, part_bytes = PartBytes} = Lane) ->
    case queue:out(Senders) of
        {{value, {From, Data}}, Rest} ->
            case counters:get(Counters, ?UNDER_WAY) < weft_amqp_lane_core:window() of
                true ->
                    counters:add(Counters, ?UNDER_WAY,
                                 weft_amqp_lane_core:cost(iolist_size(Data), PartBytes)),
                    gen_server:reply(From, ok),
                    let_send(sent(Data, Lane#lane{senders = Rest}));
                false ->
                    Lane
            end;
        {empty, _} ->
            Lane
    end.

%% The peer reads nothing more.
sent(_Data, #lane{ended = Ended} = Lane) when Ended =/= undefined ->
    Lane;
sent(Data, #lane{core = Core0, counters = Counters} = Lane) ->
    %% The peer gives no credit for the handshake, and needs none.
    weft_amqp_lane_core:is_secure(Core0)
        orelse counters:sub(Counters, ?UNDER_WAY,
                            weft_amqp_lane_core:cost(iolist_size(Data), Lane#lane.part_bytes)),
    counters:add(Counters, ?PACKETS, 1),
    {Messages, Core} = weft_amqp_lane_core:send(Data, Core0),
    publish(Messages, Lane),
    Lane#lane{core = Core}.

publish(Messages, #lane{outbox = Outbox, queue = Queue, id = Id}) ->
    lists:foreach(fun(Message) -> weft_amqp_outbox:publish(Outbox, {queue, Queue}, Id, Message) end,
                  Messages).

hung_up(#lane{ended = undefined, core = Core0} = Lane) ->
    {Messages, Core} = weft_amqp_lane_core:hang_up(Core0),
    publish(Messages, Lane),
    Lane#lane{core = Core};
hung_up(Lane) ->
    Lane.

%% --- receiving --------------------------------------------------------------------------------

events(Events, Lane) ->
    lists:foldl(fun event/2, Lane, Events).

event({packet, Packet, Cost}, #lane{packets = Packets} = Lane) ->
    Lane#lane{packets = queue:in({Packet, Cost}, Packets)};
event({bytes, Bytes}, #lane{bytes = Before} = Lane)
  when byte_size(Before) + byte_size(Bytes) > ?UNREAD_BYTES_MAX ->
    ended(emsgsize, hung_up(Lane));
event({bytes, Bytes}, #lane{bytes = Before} = Lane) ->
    read(Lane#lane{bytes = <<Before/binary, Bytes/binary>>});
event({credit, Cost}, #lane{counters = Counters} = Lane) ->
    counters:sub(Counters, ?UNDER_WAY, Cost),
    let_send(Lane);
event(forged, Lane) ->
    weft_refusals:report(undefined, forged),
    Lane;
event(closed, Lane) ->
    ended(closed, Lane);
event({broken, Reason}, Lane) ->
    ended(Reason, hung_up(Lane)).

ended(Reason, #lane{ended = undefined, senders = Senders} = Lane) ->
    lists:foreach(fun({From, _}) -> gen_server:reply(From, {error, closed}) end,
                  queue:to_list(Senders)),
    read(Lane#lane{ended = Reason, senders = queue:new()});
ended(_Reason, Lane) ->
    Lane.

read(#lane{reader = {From, Size, Timer}, bytes = Bytes, ended = Ended} = Lane) ->
    case Bytes of
        <<Wanted:Size/binary, Rest/binary>> ->
            _ = erlang:cancel_timer(Timer),
            gen_server:reply(From, {ok, Wanted}),
            Lane#lane{reader = undefined, bytes = Rest};
        _ when Ended =/= undefined ->
            _ = erlang:cancel_timer(Timer),
            gen_server:reply(From, {error, closed}),
            Lane#lane{reader = undefined};
        _ ->
            Lane
    end;
read(Lane) ->
    Lane.

%% Gives the owner what it asked for. The end comes after all packets; a passive owner will ask.
deliver(#lane{active = Active, packets = Packets} = Lane) when is_integer(Active), Active > 0 ->
    case queue:out(Packets) of
        {{value, {Packet, Cost}}, Rest} ->
            Lane#lane.owner ! {tcp, connection_of(Lane), Packet},
            deliver(taken(Cost, Lane#lane{active = Active - 1, packets = Rest}));
        {empty, _} ->
            finish(Lane)
    end;
deliver(#lane{active = 0, packets = Packets} = Lane) ->
    case queue:is_empty(Packets) of
        true -> finish(Lane);
        false -> {noreply, Lane}
    end;
deliver(Lane) ->
    {noreply, Lane}.

taken(Cost, #lane{ended = undefined, core = Core0} = Lane) ->
    {Messages, Core} = weft_amqp_lane_core:taken(Cost, Core0),
    publish(Messages, Lane),
    Lane#lane{core = Core};
taken(_Cost, Lane) ->
    Lane.

finish(#lane{ended = undefined} = Lane) ->
    {noreply, Lane};
finish(Lane) ->
    tell_owner(Lane),
    {stop, normal, Lane}.

tell_owner(#lane{owner = Owner} = Lane) ->
    Owner ! {tcp_closed, connection_of(Lane)},
    ok.

connection_of(#lane{counters = Counters, part_bytes = PartBytes}) ->
    connection({self(), Counters, PartBytes}).
