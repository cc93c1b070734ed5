%% SPDX-License-Identifier: Apache-2.0
%% @doc Sending over channels: what `weft:send/3', `cast/3' and `call/4' do in the calling process.
%%
%% Finds the channel and its sending process for the receiver's node, adds the cost of the message
%% to the counter of what waits there, and, if the policy of the channel allows, sends it to that
%% process: two look-ups, whatever the number of peers. Local receivers get their message directly.
%% Errors of the caller (an unknown channel or option) are exceptions that name what is wrong; what
%% became of a message is a result.
-module(weft_channel).

-export([send/3, call/4, info/0]).
-export_type([dest/0, options/0, result/0]).

-type dest() :: pid() | port() | atom() | {Name :: atom(), node()} | {Name :: atom(), [node()]}
              | [dest()].
-type options() :: atom() | #{channel => atom(), key => term(), label => term(),
                              ack => false | weft_delivery_core:options()}.
%% overloaded: the queue was full, with the policy `error' or for longer than block_ms. not_started:
%% the application is not. not_delivered: no acknowledgement. With several receivers, a list of
%% these.
-type result() :: ok | {error, overloaded | not_started
                        | {not_delivered, weft_delivery_core:reason(), Attempts :: pos_integer()}
                        | [{node() | {pid() | atom(), node()}, term()}] | term()}.

%% What is the same for all receivers of a message.
-record(how, {channel :: weft_channels:channel(),
              key = none :: none | {key, term()},
              ack = false :: false | weft_delivery_core:options(),
              label = none :: none | {label, term()}}).

-type place() :: none | weft_causal:place().

%% What waits to be acknowledged, and is put again by Put. Sender is the process that has it. Place
%% is the one in the order of a label, from when it was first put.
-record(attempt, {put :: fun((place()) -> {put, Sender :: pid() | none, place()} | {error, term()}
                                          | {answered, ok | noproc}),
                  place = none :: place(),
                  sender = none :: none | pid(),
                  delivery :: weft_delivery_core:delivery(),
                  deadline_ms :: integer() | undefined}).

%% @doc See `weft:send/3'.
-spec send(dest(), term(), options()) -> result().
send(Dest, Message, Options) ->
    to(Dest, Message, how(Options)).

how(Name) when is_atom(Name) ->
    #how{channel = channel(Name)};
how(#{} = Options) ->
    How = maps:fold(fun option/3, #how{channel = channel(maps:get(channel, Options, default))},
                    maps:remove(channel, Options)),
    check_how(How);
how(Other) ->
    error({bad_options, Other, "the name of a channel, or a map"}).

option(key, Key, How) -> How#how{key = {key, Key}};
option(label, Label, How) -> How#how{label = {label, Label}};
option(ack, Ack, How) -> How#how{ack = Ack};
option(Unknown, _Value, _How) -> error({unknown_option, Unknown, [channel, key, ack, label]}).

%% A message that may be dropped on its way can have no place in an order.
check_how(#how{label = {label, _}, channel = #{name := Name, policy := Policy,
                                               monotonic := Window}})
  when Policy =:= drop_oldest; Policy =:= drop_newest; Window =/= undefined ->
    error({bad_options, label, io_lib:format("the channel ~0p drops messages", [Name])});
check_how(How) ->
    How.

channel(Name) ->
    case weft_channels:find(Name) of
        undefined -> no_channel(Name, weft_channels:names());
        Channel -> Channel
    end.

-spec no_channel(atom(), [atom()]) -> no_return().
no_channel(_Name, []) -> error({not_started, weft});
no_channel(Name, Known) -> error({unknown_channel, Name, Known}).

to(Pid, Message, How) when is_pid(Pid), node(Pid) =/= node() ->
    remote(node(Pid), Pid, Message, How);
to(Pid, Message, How) when is_pid(Pid) ->
    local(Pid, Message, How);
to({Name, Node}, Message, How) when is_atom(Name), is_atom(Node), Node =/= node() ->
    remote(Node, Name, Message, How);
to({Name, Node}, Message, How) when is_atom(Name), is_atom(Node) ->
    local({Name, Node}, Message, How);
to(Name, Message, How) when is_atom(Name) ->
    local(Name, Message, How);
to(Port, Message, How) when is_port(Port), node(Port) =:= node() ->
    local(Port, Message, How);
to(Dests, Message, How) when is_list(Dests) ->
    many(Dests, Message, How);
to({Name, Nodes}, Message, How) when is_atom(Name), is_list(Nodes) ->
    many([{Name, Node} || Node <- Nodes], Message, How);
to(Dest, _Message, _How) ->
    error({bad_destination, Dest}).

%% As with `!', a pid or name may have no process; a local name that is not registered is an error.
%% With an acknowledgement they are treated as receivers on other nodes: the caller is told, and a
%% name is tried again.
local(To, Message, #how{ack = false}) ->
    To ! Message,
    ok;
local(To, Message, How) ->
    acknowledged(node(), To, {message, Message}, How).

remote(Node, To, Message, #how{ack = false, label = none} = How) ->
    put(Node, To, weft_channel_entry:cost(Message), [To | Message], How);
remote(Node, To, Message, #how{ack = false} = How) ->
    labelled(Node, To, {message, Message}, How);
remote(Node, To, Message, How) ->
    acknowledged(Node, To, {message, Message}, How).

labelled(Node, To, Content, How) ->
    case put_labelled(Node, To, extra(To, Content, none, How), none, How) of
        {put, _Sender, _Place} -> ok;
        {error, _} = Error -> Error
    end.

put_labelled(Node, To, Item, Place, #how{channel = Channel} = How) ->
    weft_channel_labelled:put(Node, partition(To, How), Channel, Item, Place).

put(Node, To, Cost, Item, #how{channel = Channel} = How) ->
    weft_channel_entry:put(Node, partition(To, How), Channel, slot(To, How), Cost, Item).

partition(_To, #how{channel = #{parallelism := 1}}) -> 0;
partition(To, #how{channel = #{parallelism := Count}, key = none}) ->
    erlang:phash2({self(), To}, Count);
partition(_To, #how{channel = #{parallelism := Count}, key = {key, Key}}) ->
    erlang:phash2(Key, Count).

slot(_To, #how{channel = #{monotonic := undefined}}) -> none;
slot(To, #how{key = Key}) -> {Key, To}.

%% --- acknowledged delivery --------------------------------------------------------------------

%% The reference is passed on as an argument all the way. So the compiler can make the VM search for
%% its answer only among messages that came after it, however long the mailbox is.
acknowledged(Node, To, Content, How) ->
    {TimeoutMs, Delivery} = delivery(To, How),
    Ref = erlang:alias([explicit_unalias]),
    ended(Ref, first(TimeoutMs, Ref, {Node, To, Content}, Delivery, How)).

delivery(To, #how{ack = Ack}) ->
    Target = case is_pid(To) of true -> pid; false -> name end,
    case weft_delivery_core:new(Target, Ack) of
        {ok, TimeoutMs, Delivery} -> {TimeoutMs, Delivery};
        {error, Text} -> error({bad_options, ack, lists:flatten(Text)})
    end.

%% Local receivers get their messages at once, so these have no place in an order.
first(TimeoutMs, Ref, {Node, To, {message, Message}}, Delivery, _How) when Node =:= node() ->
    Put = fun(none) -> {answered, put_here(To, Message)} end,
    attempt(TimeoutMs, Ref, #attempt{put = Put, delivery = Delivery});
first(TimeoutMs, Ref, {Node, To, Content}, Delivery, How0) ->
    How = kept(within(TimeoutMs, How0)),
    Item = extra(To, Content, {Ref, weft_delivery_core:lifetime_ms(Delivery)}, How),
    Put = fun(Place) -> put_acknowledged(Node, To, Item, Place, How) end,
    attempt(TimeoutMs, Ref, #attempt{put = Put, delivery = Delivery}).

put_acknowledged(Node, To, Item, none, #how{label = none} = How) ->
    case put(Node, To, weft_channel_entry:cost(Item), Item, How) of
        ok -> {put, sender(Node, To, How), none};
        {error, _} = Error -> Error
    end;
put_acknowledged(Node, To, Item, Place, How) ->
    put_labelled(Node, To, Item, Place, How).

sender(Node, To, #how{channel = #{name := Name}} = How) ->
    case weft_channels:sender(Node, Name, partition(To, How)) of
        {Pid, _} -> Pid;
        none -> none
    end.

%% Who has so much time does not wait for longer to get into the queue, whatever the channel allows.
%% The receiver remembers an acknowledged message for twice the time of all attempts.
within(infinity, How) ->
    How;
within(TimeoutMs, #how{channel = #{block_ms := BlockMs} = Channel} = How) ->
    How#how{channel = Channel#{block_ms := min(BlockMs, TimeoutMs)}}.

%% What is to arrive is not dropped where there is no room for it, but tried again.
kept(#how{channel = #{policy := drop_newest} = Channel} = How) ->
    How#how{channel = Channel#{policy := error}};
kept(How) ->
    How.

put_here({Name, _Node}, Message) ->
    put_here(Name, Message);
put_here(Name, Message) when is_atom(Name) ->
    case whereis(Name) of
        undefined -> noproc;
        Receiver -> put_here(Receiver, Message)
    end;
put_here(Receiver, Message) when is_port(Receiver) ->
    Receiver ! Message,
    ok;
put_here(Pid, Message) ->
    Pid ! Message,
    case is_process_alive(Pid) of
        true -> ok;
        false -> noproc
    end.

extra(To, {message, Message}, Ack, How) -> {extra, To, Message, Ack, unstamped(How)};
extra(To, {encoded, Encoded}, Ack, How) -> {extra_encoded, To, Encoded, Ack, unstamped(How)}.

unstamped(#how{label = none}) -> none;
unstamped(#how{label = {label, Label}}) -> {Label, none}.

attempt(TimeoutMs, Ref, #attempt{put = Put, place = Place0, delivery = Delivery} = Attempt) ->
    case Put(Place0) of
        {put, Sender, Place} ->
            {waits, Attempt#attempt{sender = Sender, place = Place,
                                    deadline_ms = now_ms() + TimeoutMs}};
        {answered, Answer} -> answered(Answer, Ref, Attempt);
        {error, overloaded} ->
            verdict(weft_delivery_core:answer(overloaded, Delivery), Ref, Attempt);
        {error, _} = Error -> verdict(Error, Ref, Attempt)
    end.

answered(Answer, Ref, #attempt{delivery = Delivery} = Attempt) ->
    verdict(weft_delivery_core:answer(Answer, Delivery), Ref, Attempt).

timed_out(Ref, #attempt{delivery = Delivery} = Attempt) ->
    verdict(weft_delivery_core:timeout(Delivery), Ref, Attempt).

verdict({wait, TimeoutMs, Delivery}, _Ref, Attempt) ->
    {waits, Attempt#attempt{delivery = Delivery, deadline_ms = now_ms() + TimeoutMs}};
verdict({unless_it_waits, TimeoutMs, Delivery}, Ref, #attempt{sender = Sender} = Attempt) ->
    case is_pid(Sender) andalso is_process_alive(Sender) of
        true -> verdict({wait, TimeoutMs, Delivery}, Ref, Attempt);
        false -> verdict({again, TimeoutMs, Delivery}, Ref, Attempt)
    end;
verdict({again, TimeoutMs, Delivery}, Ref, Attempt) ->
    attempt(TimeoutMs, Ref, Attempt#attempt{delivery = Delivery});
verdict(Result, Ref, #attempt{place = Place}) ->
    true = erlang:unalias(Ref),
    flush(Ref),
    _ = Place =:= none orelse weft_causal:settled(Place, became(Result)),
    {ended, Result}.

%% After a timeout it may still be on its way.
became({error, {not_delivered, Reason, _}}) when Reason =/= timeout -> refused;
became(_OkOrError) -> sent.

flush(Ref) ->
    receive {Ref, _} -> flush(Ref) after 0 -> ok end.

ended(_Ref, {ended, Result}) ->
    Result;
ended(Ref, {waits, #attempt{deadline_ms = DeadlineMs} = Attempt}) ->
    receive
        {Ref, Answer} -> ended(Ref, answered(Answer, Ref, Attempt))
    after left_ms(DeadlineMs) ->
            ended(Ref, timed_out(Ref, Attempt))
    end.

%% All at once: the time of each attempt runs while others are waited for, or a repeated message
%% might come when its receiver has forgotten the first.
all_ended(Begun) ->
    await_all(maps:from_list([{Ref, {Dest, Attempt}} || {Dest, Ref, {waits, Attempt}} <- Begun]),
              [{Dest, Result} || {Dest, _Ref, {ended, Result}} <- Begun]).

await_all(Waiting, Done) when map_size(Waiting) =:= 0 ->
    Done;
await_all(Waiting, Done) ->
    {DeadlineMs, Next} = lists:min([{Ms, Ref} || {Ref, {_, #attempt{deadline_ms = Ms}}}
                                                     <- maps:to_list(Waiting)]),
    receive
        {Ref, Answer} when is_map_key(Ref, Waiting) ->
            #{Ref := {Dest, Attempt}} = Waiting,
            went_on(Ref, Dest, answered(Answer, Ref, Attempt), Waiting, Done)
    after left_ms(DeadlineMs) ->
            #{Next := {Dest, Attempt}} = Waiting,
            went_on(Next, Dest, timed_out(Next, Attempt), Waiting, Done)
    end.

went_on(Ref, Dest, {waits, Attempt}, Waiting, Done) ->
    await_all(Waiting#{Ref := {Dest, Attempt}}, Done);
went_on(Ref, Dest, {ended, Result}, Waiting, Done) ->
    await_all(maps:remove(Ref, Waiting), [{Dest, Result} | Done]).

deadline_ms(infinity) -> infinity;
deadline_ms(TimeoutMs) -> now_ms() + TimeoutMs.

left_ms(infinity) -> infinity;
left_ms(DeadlineMs) -> max(0, DeadlineMs - now_ms()).

now_ms() -> erlang:monotonic_time(millisecond).

%% --- many receivers ---------------------------------------------------------------------------

%% Encoded once for all other nodes; one item for each of them and partition.
many(Dests, Message, #how{ack = false, label = none, channel = #{monotonic := Window}} = How) ->
    {Locals, Remotes} = lists:partition(fun({Node, _}) -> Node =:= node() end, flatten(Dests, [])),
    lists:foreach(fun({_, To}) -> local(here(To), Message, How) end, Locals),
    Groups = lists:foldl(
               fun({Node, To}, Acc) ->
                       One = case Window of undefined -> all; _ -> To end,
                       maps:update_with({Node, partition(To, How), One},
                                        fun(Tos) -> [To | Tos] end, [To], Acc)
               end, #{}, Remotes),
    Encoded = encoded_once(Remotes, Message),
    results([{Node, put_group(Node, lists:reverse(Tos), Partition, Message, Encoded, How)}
             || {{Node, Partition, _}, Tos} <- maps:to_list(Groups)]);
%% Each has an acknowledgement of its own, or a place in an order.
many(Dests, Message, How) ->
    {Locals, Remotes} = lists:partition(fun({Node, _}) -> Node =:= node() end, flatten(Dests, [])),
    Here = [begun(Node, To, {message, Message}, How) || {Node, To} <- Locals],
    Content = case encoded_once(Remotes, Message) of
                  none -> {message, Message};
                  Encoded -> {encoded, Encoded}
              end,
    results(all_ended(Here ++ [begun(Node, To, Content, How) || {Node, To} <- Remotes])).

%% A name in a list may have no process on this node, as on any other one.
here(Pid) when is_pid(Pid) -> Pid;
here(Name) -> {Name, node()}.

begun(Node, To, {message, Message}, #how{ack = false} = How) when Node =:= node() ->
    {{To, Node}, none, {ended, local(here(To), Message, How)}};
begun(Node, To, Content, #how{ack = false} = How) ->
    {{To, Node}, none, {ended, labelled(Node, To, Content, How)}};
begun(Node, To, Content, How) ->
    {TimeoutMs, Delivery} = delivery(To, How),
    Ref = erlang:alias([explicit_unalias]),
    {{To, Node}, Ref, first(TimeoutMs, Ref, {Node, To, Content}, Delivery, How)}.

encoded_once([_, _ | _], Message) -> term_to_binary(Message, [{minor_version, 2}]);
encoded_once(_OneOrNone, _Message) -> none.

put_group(Node, [To], _Partition, Message, none, How) ->
    remote(Node, To, Message, How);
put_group(Node, Tos, Partition, _Message, Encoded, #how{channel = Channel} = How) ->
    Cost = byte_size(Encoded) + weft_channel_entry:cost(Tos),
    weft_channel_entry:put(Node, Partition, Channel, slot(hd(Tos), How), Cost,
                           {many, Tos, Encoded}).

results(Results) ->
    case [{Dest, Reason} || {Dest, {error, Reason}} <- Results] of
        [] -> ok;
        Errors -> {error, Errors}
    end.

flatten([], Acc) -> lists:reverse(Acc);
flatten([Dests | Rest], Acc) when is_list(Dests) -> flatten(Dests ++ Rest, Acc);
flatten([{Name, Nodes} | Rest], Acc) when is_list(Nodes) ->
    flatten([{Name, Node} || Node <- Nodes] ++ Rest, Acc);
flatten([{Name, Node} | Rest], Acc) when is_atom(Name), is_atom(Node) ->
    flatten(Rest, [{Node, Name} | Acc]);
flatten([Pid | Rest], Acc) when is_pid(Pid) -> flatten(Rest, [{node(Pid), Pid} | Acc]);
flatten([Name | Rest], Acc) when is_atom(Name) -> flatten(Rest, [{node(), Name} | Acc]);
flatten([Dest | _], _Acc) -> error({bad_destination, Dest}).

%% --- calls ------------------------------------------------------------------------------------

-dialyzer({no_improper_lists, call/4}).
%% @doc See `weft:call/4'.
-spec call(pid() | atom() | {atom(), node()}, term(), timeout(), options()) -> term().
call(Dest, Request, TimeoutMs, Options) ->
    How = within(TimeoutMs, how(Options)),
    DeadlineMs = deadline_ms(TimeoutMs),
    Ref = monitor_of(Dest),
    case to(Dest, {'$gen_call', {self(), [alias | Ref]}, Request}, How) of
        ok ->
            receive
                {[alias | Ref], Reply} ->
                    true = erlang:demonitor(Ref, [flush]),
                    Reply;
                {'DOWN', Ref, _, _, noconnection} ->
                    failed({nodedown, node_of(Dest)}, Dest, Request, TimeoutMs);
                {'DOWN', Ref, _, _, Reason} ->
                    failed(Reason, Dest, Request, TimeoutMs)
            after left_ms(DeadlineMs) ->
                    true = erlang:demonitor(Ref, [flush]),
                    receive {[alias | Ref], Reply} -> Reply
                    after 0 -> failed(timeout, Dest, Request, TimeoutMs)
                    end
            end;
        {error, Reason} ->
            true = erlang:demonitor(Ref, [flush]),
            failed(Reason, Dest, Request, TimeoutMs)
    end.

monitor_of({Name, Node}) when Node =:= node() -> monitor_of(Name);
monitor_of(Name) when is_atom(Name) ->
    case whereis(Name) of
        undefined -> exit({noproc, {weft, call, [Name]}});
        Pid -> monitor_of(Pid)
    end;
monitor_of({Name, Node} = Dest) when is_atom(Name), is_atom(Node) ->
    erlang:monitor(process, Dest, [{alias, demonitor}]);
monitor_of(Pid) when is_pid(Pid) ->
    erlang:monitor(process, Pid, [{alias, demonitor}]);
monitor_of(Dest) ->
    error({bad_destination, Dest}).

node_of(Pid) when is_pid(Pid) -> node(Pid);
node_of({_, Node}) -> Node.

-spec failed(term(), term(), term(), timeout()) -> no_return().
failed(Reason, Dest, Request, TimeoutMs) ->
    exit({Reason, {weft, call, [Dest, Request, TimeoutMs]}}).

%% --- information ------------------------------------------------------------------------------

%% @doc All channels: their options, counters, and the streams that there are now.
-spec info() -> #{atom() => map()}.
info() ->
    Rows = [{Name, #{node => Node, partition => Partition,
                     queued_bytes => max(0, atomics:get(Bytes, 1))}}
            || weft_channels:names() =/= [],
               {{Node, Name, Partition}, _Pid, Bytes} <- weft_channels:senders()],
    maps:from_list([{Name, info_of(weft_channels:find(Name), [S || {N, S} <- Rows, N =:= Name])}
                    || Name <- weft_channels:names()]).

info_of(#{counters := Counters} = Channel, Streams) ->
    #{options => maps:without([name, counters], Channel),
      counters => weft_channel_counters:read(Counters), streams => lists:sort(Streams)}.
