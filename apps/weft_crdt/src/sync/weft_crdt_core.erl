%% SPDX-License-Identifier: Apache-2.0
%% @doc A store of data that merges, on one node: a pure core (`weft_core').
%%
%% Changes: an operation makes a delta. It is merged here, and waits for each neighbour that this
%% node serves, joined with what waits already. A neighbour gets one message at a time (`{deltas,
%% Seq, Served, Shared, Own}') and acknowledges it (`{ack, Seq}'); one without content asks whether
%% the one before has arrived (`weft_crdt_sending'). Of what arrives, only what is new is merged and
%% passed on (Enes et al. 2019): not to the sender, and of the part `Shared' not to those whom the
%% sender serves as well (`Served').
%%
%% Comparison: at the beginning of a link, every `sync_ms' with one neighbour, and with one for whom
%% something was dropped, see `weft_crdt_compare'. Whatever is lost otherwise (a node that ends, a
%% link that breaks) comes by that. So messages may be lost, doubled and reordered.
%%
%% `{serve, IsWanted}': the sender wants to be served. What is malformed is counted and told once
%% for each neighbour and link. Too many messages of a comparison are not answered, see
%% `weft_crdt_peers'.
%%
%% Retired actors: see `weft_crdt_retirement' for how stores agree, and `weft_crdt_retired' for what
%% then is dropped. `{retired, Table, Hash}' brings a table to a store that has an earlier one.
%%
%% Messages are `{weft_crdt, 1, Msg}' as long as nobody is retired, and `{weft_crdt, 2, Stamp, Msg}'
%% afterwards, as are those about retiring. Other versions are ignored. So a store of a version
%% that knows of no retired actors gets nothing wrong from this one; and it makes retiring fail,
%% because it does not say `hello'.
%%
%% With `durable' each delta that is new is a view (`kept') before it is answered or acknowledged;
%% `kept' gives those of the run before back, in any order.
%%
%% Derived keys are values that this node has computed; they do not leave it. What is not done: keys
%% are never deleted.
%%
%% Options: `keys_max' (100000), `waiting_max' (keys that wait for one neighbour, 50000),
%% `operation_bytes' (1 MiB), `message_bytes' (65536), `sync_ms' (3000), `flush_ms' (5), `resend_ms'
%% (2000), `declared' ([], keys with their types), `durable' (false), `kept' ([]).
%% Commands: `{declare, Key, Type}', `{update, Key, Operation, NowUs}', `{derive, Key, Value}',
%% `{forget, Key}' (a derived one), `{retire, Gone}', `keys', `info', and those of
%% `weft_crdt_readers'.
-module(weft_crdt_core).
-behaviour(weft_core).

-export([init/2, handle/3]).
-export([value/2]).

-define(DEFAULTS, #{keys_max => 100000, waiting_max => 50000, operation_bytes => 1048576,
                    message_bytes => 65536, sync_ms => 3000, flush_ms => 5, resend_ms => 2000}).
%% After so many comparisons members are compared, too.
-define(GREETED_EVERY, 10).

-record(state, {
    self :: node(),
    actor :: weft_crdt_type:actor(),
    options :: map(),
    entries :: weft_crdt_entries:entries(),
    derived = #{} :: #{Key :: term() => Value :: term()},
    peers :: weft_crdt_peers:peers(),
    readers = weft_crdt_readers:new() :: weft_crdt_readers:readers(),
    retirement :: weft_crdt_retirement:retirement(),
    %% Why nothing is sent and taken any more.
    barred = none :: none | {atom(), node()},
    is_flushing = false :: boolean(),
    %% Neighbours that have sent something malformed, and how much was refused in all.
    warned = #{} :: #{node() => []},
    refused = 0 :: non_neg_integer(),
    syncs = 0 :: non_neg_integer(),
    rand :: rand:state()}).

-opaque state() :: #state{}.
-export_type([state/0]).

%% @doc See `weft_core'.
-spec init(node(), weft_core:options()) -> {state(), weft_core:effects()}.
init(Self, Given) ->
    Options = maps:merge(?DEFAULTS, Given),
    Run = maps:get(incarnation, Options, 0),
    Entries = weft_crdt_entries:begun(Options),
    State0 = #state{self = Self, actor = {Self, Run},
                    retirement = weft_crdt_retirement:new(Self, Run),
                    options = maps:without([kept, declared], Options),
                    entries = Entries,
                    peers = weft_crdt_peers:new(Self),
                    rand = weft_core:seed(Self, ?MODULE, Options)},
    %% Its clock was set back: whatever this run does is taken for done and retired.
    {State, Told} = case weft_crdt_retired:is_retired({Self, Run},
                                                      weft_crdt_entries:table(Entries)) of
                        true -> bar(retired, Self, State0);
                        false -> {State0, []}
                    end,
    {State, Told ++ [{after_ms, option(sync_ms, State), sync}]}.

%% @doc The value of a key on this node.
-spec value(Key :: term(), state()) -> {ok, Value :: term()} | error.
value(Key, #state{entries = Entries, derived = Derived}) ->
    case weft_crdt_entries:value(Key, Entries) of
        {ok, Value} -> {ok, Value};
        error -> maps:find(Key, Derived)
    end.

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), state()) -> {state(), weft_core:effects()}.
handle(Event, NowMs, #state{readers = Readers} = State0) ->
    {State, Effects} = handled(Event, NowMs,
                               State0#state{readers = weft_crdt_readers:current(Readers)}),
    {State, lists:filtermap(fun(Effect) -> outgoing(Effect, State) end, Effects)}.

outgoing({send, _, _}, #state{barred = {_, _}}) -> false;
outgoing({send, Node, Msg}, #state{entries = Entries}) ->
    {true, {send, Node, weft_crdt_retirement:stamped(Msg, Entries)}};
outgoing(_, _) -> true.

handled({message, From, {weft_crdt, 1, Msg}}, NowMs, State) ->
    received(From, {0, 0}, Msg, NowMs, State);
handled({message, From, {weft_crdt, 2, {Epoch, Mark}, Msg}}, NowMs, State)
  when is_integer(Epoch), is_integer(Mark) ->
    received(From, {Epoch, Mark}, Msg, NowMs, State);
handled({message, _From, _OfAnotherVersion}, _NowMs, State) ->
    {State, []};
handled({command, Ref, Command}, _NowMs, State) ->
    command(Command, Ref, State);
handled({neighbour_up, Node}, NowMs, #state{self = Self, peers = Peers0} = State0) ->
    {Peers, Changed} = weft_crdt_peers:up(Node, NowMs, Peers0),
    State1 = State0#state{peers = Peers},
    {State, Root} = case Self < Node of
                        true -> compare(Node, State1);
                        false -> {State1, []}
                    end,
    Hello = weft_crdt_retirement:hello(State#state.retirement),
    {State, [send(Node, Hello) | wants(Changed) ++ Root]};
handled({neighbour_down, Node, _Reason}, _NowMs, #state{peers = Peers0, warned = Warned} = State) ->
    {Peers, Changed} = weft_crdt_peers:down(Node, Peers0),
    {Left, Effects} = retirement(weft_crdt_retirement:down(Node, State#state.retirement),
                                 State#state{peers = Peers, warned = maps:remove(Node, Warned)}),
    {Left, wants(Changed) ++ Effects};
handled({timer, Timer}, _NowMs, State) ->
    timer(Timer, State);
handled({notice, {gone, Pid, _Reason}}, _NowMs, #state{readers = Readers} = State) ->
    {State#state{readers = weft_crdt_readers:gone(Pid, Readers)}, []};
handled({notice, {next, Key, Pid}}, _NowMs, State) ->
    reading(fun(ValueOf, R) -> weft_crdt_readers:next(Key, Pid, ValueOf, R) end, State);
handled({notice, _}, _NowMs, State) ->
    {State, []}.

wants(Changed) -> [send(Node, {serve, IsWanted}) || {Node, IsWanted} <- Changed].

send(Node, Msg) -> {send, Node, Msg}.

option(Key, #state{options = Options}) -> maps:get(Key, Options).

%% --- commands ---------------------------------------------------------------------------------

%% What only a barred store has would be lost with its file.
command(Command, Ref, #state{barred = {_, _} = Barred} = State)
  when element(1, Command) =:= update; element(1, Command) =:= retire ->
    {State, [{reply, Ref, {error, Barred}}]};
command({declare, Key, Type}, Ref, #state{entries = Entries0, derived = Derived} = State) ->
    case is_map_key(Key, Derived) orelse weft_crdt_entries:declare(Key, Type, Entries0) of
        true -> {State, [{reply, Ref, {error, derived}}]};
        {ok, Entries} -> {State#state{entries = Entries}, [{reply, Ref, ok}]};
        {error, Reason} -> {State, [{reply, Ref, {error, Reason}}]}
    end;
command({update, Key, Operation, NowUs}, Ref, State) ->
    Max = option(operation_bytes, State),
    case erlang:external_size(Operation) of
        Bytes when Bytes > Max -> {State, [{reply, Ref, {error, {too_large, Bytes, Max}}}]};
        _ -> operate(Key, Operation, NowUs, Ref, State)
    end;
command({derive, Key, Value}, Ref, State) ->
    derive(Key, Value, Ref, State);
command({forget, Key}, Ref, #state{derived = Derived} = State) ->
    {State#state{derived = maps:remove(Key, Derived)}, [{reply, Ref, ok}]};
command({retire, Gone}, Ref, #state{entries = Entries, retirement = Retirement} = State) ->
    Nodes = weft_crdt_peers:nodes(State#state.peers),
    retirement(weft_crdt_retirement:start(Gone, Ref, Nodes, Entries, Retirement), State);
command(keys, Ref, #state{entries = Entries} = State) ->
    {State, [{reply, Ref, lists:sort(weft_crdt_entries:keys(Entries))}]};
command(info, Ref, #state{entries = Entries, peers = Peers, readers = Readers} = State) ->
    {State, [{reply, Ref, (weft_crdt_readers:info(Readers))#{
                            keys => length(weft_crdt_entries:keys(Entries)),
                            served => lists:sort(weft_crdt_peers:served(Peers)),
                            unacknowledged => weft_crdt_peers:info(Peers),
                            retired => weft_crdt_retired:nodes(weft_crdt_entries:table(Entries)),
                            barred => State#state.barred,
                            refused => State#state.refused}}]};
command(Command, Ref, State) ->
    reading(fun(ValueOf, R) -> weft_crdt_readers:command(Command, Ref, ValueOf, R) end, State).

reading(Fun, #state{readers = Before} = State) ->
    {Readers, Effects} = Fun(fun(Key) -> value(Key, State) end, Before),
    {State#state{readers = Readers}, Effects}.

operate(Key, Operation, NowUs, Ref, #state{entries = Entries0, actor = Actor} = State) ->
    case weft_crdt_entries:mutate(Key, Operation, {Actor, NowUs}, Entries0) of
        {ok, none, _} -> {State, [{reply, Ref, ok}]};
        {ok, Change, Entries} ->
            {Changed, Effects} = spread(Key, Change, [], State#state{entries = Entries}),
            {Changed, kept(Key, Change, State) ++ [{reply, Ref, ok} | Effects]};
        {error, bad_operation} ->
            {State, [{reply, Ref, {error, {bad_operation, Operation}}}]};
        {error, Reason} -> {State, [{reply, Ref, {error, Reason}}]}
    end.

%% A value that is the same is no change.
derive(Key, Value, Ref, #state{entries = Entries, derived = Derived} = State0) ->
    case {weft_crdt_entries:is_key(Key, Entries), Derived} of
        {true, _} -> {State0, [{reply, Ref, {error, declared}}]};
        {false, #{Key := Value}} -> {State0, [{reply, Ref, ok}]};
        {false, _} ->
            {State, Effects} = changed(Key, State0#state{derived = Derived#{Key => Value}}),
            {State, [{reply, Ref, ok} | Effects]}
    end.

%% --- changes ----------------------------------------------------------------------------------

kept(Key, {Type, Delta}, State) ->
    {ok, M} = weft_crdt_type:module(Type),
    view({Key, Type, M:pack(Delta)}, State).

spread(Key, Change, Except, #state{peers = Peers0} = State0) ->
    Peers = weft_crdt_peers:spread(Key, Change, Except, option(waiting_max, State0), Peers0),
    {State1, Effects} = changed(Key, State0#state{peers = Peers}),
    {State, Flush} = flush_soon(State1),
    {State, Effects ++ Flush}.

changed(Key, State) ->
    reading(fun(ValueOf, R) -> weft_crdt_readers:changed(Key, ValueOf, R) end, State).

flush_soon(#state{is_flushing = true} = State) -> {State, []};
flush_soon(State) ->
    {State#state{is_flushing = true}, [{after_ms, option(flush_ms, State), flush}]}.

%% The next message for each of these, if there is something and nothing is on its way.
flush(Nodes, State) ->
    lists:foldl(fun(Node, {S0, Effects}) ->
                    {S, More} = flush_one(Node, S0),
                    {S, Effects ++ More}
                end, {State, []}, Nodes).

flush_one(Node, #state{peers = Peers0, options = Options} = State) ->
    case weft_crdt_sending:next(Node, Options, Peers0) of
        {send, Effects, Peers} -> {State#state{peers = Peers}, Effects};
        behind -> compare(Node, State);
        nothing -> {State, []}
    end.

compare(Node, #state{entries = Entries0, peers = Peers} = State) ->
    {Ranges, Entries} = weft_crdt_entries:ranges(Entries0),
    {State#state{entries = Entries, peers = weft_crdt_sending:compared(Node, Peers)},
     [send(Node, weft_crdt_compare:root(Ranges))]}.

%% --- timers -----------------------------------------------------------------------------------

timer(flush, #state{peers = Peers} = State) ->
    flush(weft_crdt_peers:nodes(Peers), State#state{is_flushing = false});
timer({resend, Node, Seq}, #state{peers = Peers0, options = Options} = State) ->
    case weft_crdt_sending:late(Node, Seq, Options, Peers0) of
        {ask, Effects, Peers} -> {State#state{peers = Peers}, Effects};
        {given_up, Peers} -> flush_one(Node, State#state{peers = Peers});
        nothing -> {State, []}
    end;
timer(sync, #state{peers = Peers, rand = Rand0, syncs = Syncs} = Before) ->
    State0 = Before#state{syncs = Syncs + 1},
    Again = {after_ms, option(sync_ms, State0), sync},
    case weft_crdt_peers:nodes(Peers) of
        [] -> {State0, [Again]};
        Nodes ->
            {Nth, Rand} = rand:uniform_s(length(Nodes), Rand0),
            Node = lists:nth(Nth, Nodes),
            IsPicked = lists:member(Node, weft_crdt_peers:picks(State0#state.self, Nodes)),
            {State, Effects} = compare(Node, State0#state{rand = Rand}),
            {State, greeted(Node, State) ++ wants([{Node, IsPicked}]) ++ Effects ++ [Again]}
    end;
timer({retirement, Timer}, State) ->
    retirement(weft_crdt_retirement:timer(Timer, State#state.retirement), State);
timer(Timer, State) ->
    reading(fun(ValueOf, R) -> weft_crdt_readers:timer(Timer, ValueOf, R) end, State).

%% --- messages ---------------------------------------------------------------------------------

message(From, {deltas, Seq, Served, Shared, Own}, _NowMs, State0)
  when is_integer(Seq), is_binary(Served) ->
    Except = [From | weft_crdt_peers:marked(Served, State0#state.peers)],
    {State1, OfShared} = learn(From, Shared, Except, {State0, []}),
    {State, OfOwn} = learn(From, Own, [From], {State1, []}),
    {State, OfShared ++ OfOwn ++ [send(From, {ack, Seq})]};
message(From, {ack, Seq}, _NowMs, #state{peers = Peers} = State) ->
    flush_one(From, State#state{peers = weft_crdt_sending:acked(From, Seq, Peers)});
message(From, {serve, IsWanted}, _NowMs, #state{peers = Peers} = State)
  when is_boolean(IsWanted) ->
    {State#state{peers = weft_crdt_peers:wants(From, IsWanted, Peers)}, []};
message(From, Msg, NowMs, #state{peers = Peers0} = State0) ->
    case weft_crdt_peers:allow(From, NowMs, Peers0) of
        {true, Peers} -> comparison(From, Msg, State0#state{peers = Peers});
        {false, _} -> {State0#state{refused = State0#state.refused + 1}, []}
    end.

learn(From, [{Key, Type, Packed} | Rest], Except, {#state{entries = Entries0} = State0, Before}) ->
    case weft_crdt_entries:learn(Key, Type, Packed, Entries0) of
        {new, Delta, Entries} ->
            State1 = heard(From, Key, Type, Packed, State0#state{entries = Entries}),
            {State, Effects} = spread(Key, {Type, Delta}, Except, State1),
            Kept = kept(Key, {Type, Delta}, State),
            learn(From, Rest, Except, {State, lists:reverse(Kept ++ Effects, Before)});
        known ->
            learn(From, Rest, Except, {heard(From, Key, Type, Packed, State0), Before});
        {error, Reason} ->
            {State, Effects} = refused(From, {Key, Reason}, State0),
            learn(From, Rest, Except, {State, lists:reverse(Effects, Before)})
    end;
learn(_, [], _, {State, Effects}) ->
    {State, lists:reverse(Effects)};
learn(From, Malformed, _, {State0, Before}) ->
    {State, Effects} = refused(From, Malformed, State0),
    {State, lists:reverse(Before) ++ Effects}.

heard(From, Key, Type, Packed, #state{peers = Peers, entries = Entries} = State) ->
    Table = weft_crdt_entries:table(Entries),
    State#state{peers = weft_crdt_sending:heard(From, Key, {Type, Packed}, Table, Peers)}.

%% It is told once for each neighbour, and counted.
refused(From, What, #state{warned = Warned, refused = Refused} = State) ->
    {State#state{warned = Warned#{From => []}, refused = Refused + 1},
     [{notice, {warning, {refused, From, What}}} || not is_map_key(From, Warned)]}.

%% --- retired actors ---------------------------------------------------------------------------

received(From, Stamp, Msg, NowMs, #state{peers = Peers, barred = Barred} = State) ->
    case {Barred, weft_crdt_peers:find(From, Peers)} of
        {none, {ok, _}} ->
            Verdict = weft_crdt_retirement:judge(From, Stamp, Msg, State#state.entries,
                                                 State#state.retirement),
            judged(Verdict, From, Msg, NowMs, State);
        _ -> {State, []}
    end.

judged(take, From, Msg, NowMs, State) ->
    case weft_crdt_retirement:is_message(Msg) of
        true -> about_retiring(From, Msg, State);
        false -> message(From, Msg, NowMs, State)
    end;
judged({refuse, Reason}, From, _, _, State) ->
    refused(From, Reason, State);
judged({Kind, IsTaken}, From, Msg, NowMs, State0) ->
    {State, Effects} = case IsTaken of
                           true -> judged(take, From, Msg, NowMs, State0);
                           false -> {State0, []}
                       end,
    case weft_crdt_peers:allow(From, NowMs, State#state.peers) of
        {true, Peers} -> {State#state{peers = Peers}, Effects ++ [told(Kind, From, State)]};
        {false, _} -> {State, Effects}
    end.

told(ask, To, State) -> greeting(To, State);
told(tell, To, #state{entries = Entries}) ->
    send(To, {retired, weft_crdt_entries:table(Entries), weft_crdt_entries:hash(Entries)}).

greeted(To, #state{syncs = Syncs, retirement = Retirement} = State) ->
    [greeting(To, State) || Syncs rem ?GREETED_EVERY =:= 0
                                orelse not weft_crdt_retirement:is_heard(To, Retirement)].

greeting(To, #state{entries = Entries, retirement = Retirement}) ->
    send(To, weft_crdt_retirement:greeting(To, Entries, Retirement)).

about_retiring(From, {retired, Table, Hash} = Msg, #state{options = Options} = State) ->
    case weft_crdt_retirement:verdict(Table, Hash, maps:get(durable, Options, false),
                                      State#state.entries, State#state.retirement) of
        retire -> retire(Table, Hash, From, State);
        known -> {State, []};
        malformed -> refused(From, Msg, State);
        {bar, Reason} -> bar(Reason, From, State)
    end;
about_retiring(From, Msg, #state{entries = Before, retirement = Retirement0} = State) ->
    case weft_crdt_retirement:message(From, Msg, weft_crdt_peers:nodes(State#state.peers), Before,
                                      Retirement0) of
        malformed -> refused(From, Msg, State);
        {Entries, Retirement, Actions} ->
            retirement({Retirement, Actions}, State#state{entries = Entries})
    end.

bar(Reason, By, State) ->
    {State#state{barred = {Reason, By}}, [{notice, {warning, {barred, Reason, By}}}]}.

retirement({Retirement, Actions}, State0) ->
    lists:foldl(fun(Action, {S0, Effects}) ->
                    {S, More} = act(Action, S0),
                    {S, Effects ++ More}
                end, {State0#state{retirement = Retirement}, []}, Actions).

act({to, Node, Msg}, State) -> {State, [send(Node, Msg)]};
act({met, Members}, State) -> {State, view({members, weft_crdt_members, Members}, State)};
act({retire, Table, Hash}, State) -> retire(Table, Hash, none, State);
act(Effect, State) -> {State, [Effect]}.

view(Item, #state{options = #{durable := true}}) -> [{view, kept, Item}];
view(_, _) -> [].

%% A store that lacks something gets it by comparison.
retire(Table, Hash, From, #state{entries = Before, peers = Peers} = State0) ->
    {IsFolded, Entries} = weft_crdt_entries:retire(Table, Hash, Before),
    {State1, Replies} = retirement(weft_crdt_retirement:retired(Table, State0#state.retirement),
                                   State0#state{entries = Entries}),
    {State, Root} = case not IsFolded andalso From =/= none of
                        true -> compare(From, State1);
                        false -> {State1, []}
                    end,
    {State, view({weft_crdt, retired, Table, Hash}, State) ++ Replies
         ++ [greeting(Node, State) || Node <- weft_crdt_peers:nodes(Peers)] ++ Root}.

%% --- comparison -------------------------------------------------------------------------------

comparison(From, Msg, #state{entries = Before, syncs = Syncs} = State0) ->
    {Offers, Msgs, Refused, Entries} = weft_crdt_exchange:answer(Msg, Syncs, Before),
    {State1, Told} = lists:foldl(fun(What, {S0, Acc}) ->
                                     {S, More} = refused(From, What, S0),
                                     {S, Acc ++ More}
                                 end, {State0#state{entries = Entries}, []}, Refused),
    {State, More} = flush_one(From, lists:foldl(fun(Offer, S) -> offer(From, Offer, S) end, State1,
                                                Offers)),
    {State, Told ++ [send(From, M) || M <- Msgs] ++ More}.

offer(To, Offer, #state{peers = Peers} = State) ->
    State#state{peers = weft_crdt_sending:offer(To, Offer, option(waiting_max, State), Peers)}.
