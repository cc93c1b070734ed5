%% SPDX-License-Identifier: Apache-2.0
%% @doc Broadcast: each message reaches every node once, over whatever links there are.
%%
%% Plumtree (Leitao, Pereira, Rodrigues, SRDS 2007). Protocol:
%% <ol>
%% <li>A message is pushed over the <em>eager</em> links (`gossip'). Over the others, the
%%     <em>lazy</em> ones, it is only named (`ihave', in batches). At first all links are eager. A
%%     node that gets a message twice makes the second link lazy and says so (`prune'). What remains
%%     is a tree.</li>
%% <li>A node that was told of a message but does not get it within `graft_ms' asks for it
%%     (`graft'), and the link becomes eager: the tree is repaired where it broke. If no answer
%%     comes, the next node that named the message is asked after `regraft_ms'.</li>
%% <li>If a message came over more hops than another neighbour brought or named it with
%%     (`optimise_hops' more), the eager link moves to that neighbour.</li>
%% <li>One sender at a time shapes the shared tree (`weft_plumtree_trees'). A message of another
%%     sender first goes over all links (`spread'), up to `spread_links' lazy ones at each node, and
%%     then over the tree from many places at once. So it need not go up one branch and then down
%%     all others.</li>
%% <li>Every `exchange_ms', and when a link comes up, a neighbour is told what is in the cache
%%     (`have'); it asks for what it lacks (`want') and names what is lacking here. So messages also
%%     cross links that did not exist when they were sent, for `cache_ms'.</li>
%% </ol>
%% `trees' is `shared' (one tree for all senders: the least memory) or `per_root' (one for each of
%% the last `trees_max' senders: fewer hops when many send).
%%
%% Commands: `{broadcast, Payload}', a binary, answered `{ok, Id}'; `info', answered with `info()'.
%% Notices: `{deliver, Id, Hops, Payload}', on the sender too; `{missed, Root, Count}' when
%% messages were lost.
%% Not here: order among messages; who the members are.
-module(weft_plumtree_core).
-behaviour(weft_core).

-export([init/2, handle/3, eager/2]).

-record(state, {
    self :: weft_core:node_id(),
    incarnation :: non_neg_integer(),
    count = 0 :: non_neg_integer(),
    neighbours = #{} :: #{weft_core:node_id() => []},
    trees = weft_plumtree_trees:new() :: weft_plumtree_trees:trees(),
    delivered :: weft_delivered:delivered(),
    cache :: weft_message_cache:cache(),
    missing = weft_plumtree_missing:new() :: weft_plumtree_missing:missing(),
    %% When the timer for the next of them fires.
    graft_at_ms = none :: none | integer(),
    %% To be named to these lazy neighbours in the next batch, newest first.
    batch = [] :: [{weft_delivered:id(), Hops :: pos_integer(), [weft_core:node_id()]}],
    shaper = none :: weft_plumtree_trees:shaper(),
    %% The last message that shapes the tree: its hops, and the neighbour that brought it.
    latest = none :: none | {weft_delivered:id(), Hops :: pos_integer(), weft_core:node_id()},
    counts = #{duplicates => 0, grafts_out => 0, grafts_in => 0, prunes_out => 0,
               prunes_in => 0} :: #{count() => non_neg_integer()},
    rand :: rand:state(),
    options :: #{atom() => term()},
    %% Effects of the present event, newest first.
    out = [] :: weft_core:effects()}).

-type tree() :: weft_plumtree_trees:tree().
-type message() ::
    {1, {gossip, weft_delivered:id(), Hops :: pos_integer(), binary()}
      | {spread, weft_delivered:id(), Hops :: pos_integer(), reach(), binary()}
      | {ihave, [{weft_delivered:id(), Hops :: pos_integer()}]}
      | {graft, tree(), [weft_delivered:id()]}
      | {want, [weft_delivered:id()]}
      | {prune, tree()}
      | {have, weft_message_cache:summary()}}.
%% `Hops': the number of links that the message has crossed, or would have, when it arrives.
-type reach() :: tree | non_neg_integer().
%% Over how many further links it goes without regard to the tree; `tree': it came over an eager
%% link and goes over eager links.
-export_type([message/0, info/0]).

-type count() :: duplicates | grafts_out | grafts_in | prunes_out | prunes_in.
-type info() :: #{count() | trees | eager | lazy | missing | cached => non_neg_integer()}.
%% `duplicates': messages that came once more; `grafts', `prunes': requests to make a link eager or
%% lazy, sent and received; `eager', `lazy': links of all trees now; `missing': messages that were
%% named but have not come yet; `cached': messages kept for nodes that lack them.

-define(VERSION, 1).
%% Some 400 nodes with five neighbours each.
-define(REACH_MAX, 4).
-define(FORGET_MS, 600000).
-define(DEFAULTS,
        #{trees => shared, trees_max => 64, graft_ms => 250, regraft_ms => 125, batch_ms => 20,
          optimise_hops => 2, shape_ms => 30000, spread_links => 5, exchange_ms => 10000,
          cache_ms => 60000, missing_max => 10000, want_max => 1000}).

%% @doc See `weft_core'. Options: `trees' (shared), `trees_max' (64), `graft_ms' (250), `regraft_ms'
%% (125), `batch_ms' (20), `optimise_hops' (2), `shape_ms' (30000), `spread_links' (5),
%% `exchange_ms' (10000), `missing_max' (10000), `want_max' (1000), and those of
%% `weft_message_cache:new/1' and `weft_delivered:new/1'.
-spec init(weft_core:node_id(), weft_core:options()) -> {#state{}, weft_core:effects()}.
init(Self, Options0) ->
    #{cache_ms := CacheMs} = Options = maps:merge(?DEFAULTS, Options0),
    {Incarnation, Rand} = rand:uniform_s(1 bsl 48, weft_core:seed(Self, ?MODULE, Options)),
    State = #state{self = Self, incarnation = Incarnation, rand = Rand, options = Options,
                   cache = weft_message_cache:new(Options),
                   delivered = weft_delivered:new(maps:merge(times(CacheMs), Options))},
    finish(exchange_later(State)).

%% After twice the time a message is in no cache any more. Until then each node has to know that it
%% had it, however long the sender is silent.
times(CacheMs) ->
    #{give_up_ms => 2 * CacheMs, forget_ms => max(?FORGET_MS, 3 * CacheMs)}.

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), #state{}) -> {#state{}, weft_core:effects()}.
handle(Event, NowMs, State) ->
    finish(on(Event, NowMs, State)).

%% @doc The eager neighbours in the tree of Root, in term order.
-spec eager(Root :: weft_core:node_id(), #state{}) -> [weft_core:node_id()].
eager(Root, State) ->
    {Eager, _Lazy} = split(none, tree(Root, State), State),
    Eager.

on({message, From, {?VERSION, Message}}, NowMs, State) ->
    message(Message, From, NowMs, State);
on({message, _From, _NewerVersion}, _NowMs, State) ->
    State;
on({neighbour_up, Node}, NowMs, #state{neighbours = Neighbours} = State) ->
    tell_cache(Node, expired(NowMs, State#state{neighbours = Neighbours#{Node => []}}));
on({neighbour_down, Node, _Reason}, _NowMs,
   #state{neighbours = Neighbours, trees = Trees} = State) ->
    State#state{neighbours = maps:remove(Node, Neighbours),
                trees = weft_plumtree_trees:lost(Node, Trees)};
on({command, Ref, {broadcast, Payload}}, NowMs, State0) when is_binary(Payload) ->
    #state{self = Self, incarnation = Incarnation, count = Count} = State0,
    State = shape(Self, NowMs, State0),
    Id = {{Self, Incarnation}, Count + 1},
    How = case is_shaper(Self, State) of
              true -> gossip;
              false -> {spread, reach(State)}
          end,
    emit({reply, Ref, {ok, Id}},
         accept(How, Id, 0, Payload, none, NowMs, State#state{count = Count + 1}));
on({command, Ref, info}, _NowMs, State) ->
    emit({reply, Ref, info(State)}, State);
on({timer, batch}, _NowMs, State) ->
    send_batch(State);
on({timer, {graft, AtMs}}, NowMs, #state{graft_at_ms = AtMs} = State) ->
    graft_due(NowMs, State#state{graft_at_ms = none});
on({timer, {graft, _Earlier}}, _NowMs, State) ->
    State;
on({timer, exchange}, NowMs, State) ->
    exchange_later(exchange(tidy(NowMs, State))).

message({gossip, {{Root, _}, _} = Id, Hops, Payload}, From, NowMs, State0) ->
    State = shape(Root, NowMs, State0),
    case weft_delivered:is_new(Id, State#state.delivered) of
        true ->
            Eager = set(eager, From, tree(Root, State), State),
            optimise(Id, Hops, From, accept(gossip, Id, Hops, Payload, From, NowMs, Eager));
        false ->
            again(Id, Hops, From, State)
    end;
message({spread, {{Root, _}, _} = Id, Hops, Reach, Payload}, From, NowMs, State) ->
    case weft_delivered:is_new(Id, State#state.delivered) of
        true ->
            Eager = case Reach of
                        tree -> set(eager, From, tree(Root, State), State);
                        _ -> State
                    end,
            arrived(Id, accept({spread, Reach}, Id, Hops, Payload, From, NowMs, Eager));
        false ->
            count(duplicates, State)
    end;
message({ihave, Announced}, From, NowMs, State) ->
    lists:foldl(fun({Id, Hops}, S) -> note(Id, {From, Hops}, NowMs, S) end, State, Announced);
message({graft, Tree, Ids}, From, NowMs, State) ->
    give(Ids, From, set(eager, From, Tree, count(grafts_in, expired(NowMs, State))));
message({want, Ids}, From, NowMs, State) ->
    give(Ids, From, expired(NowMs, State));
message({prune, Tree}, From, _NowMs, State) ->
    set(lazy, From, Tree, count(prunes_in, State));
message({have, Summary}, From, NowMs, State0) ->
    #state{cache = Cache} = State = expired(NowMs, State0),
    Lacking = [{Id, Hops + 1} || {Id, Hops} <- weft_message_cache:lacking(Summary, Cache)],
    ask_for(unknown(Summary, State), From,
            send_unless_empty(From, ihave, lists:sublist(Lacking, option(want_max, State)), State)).

%% --- the tree ---------------------------------------------------------------------------------

%% A new message: delivered, kept, pushed over eager links, and named over the others.
accept(How, {{Root, _}, _} = Id, Hops, Payload, From, NowMs, State0) ->
    #state{cache = Cache, delivered = Delivered} = State0,
    State1 = State0#state{cache = weft_message_cache:add(Id, Hops, Payload, NowMs, Cache),
                          delivered = weft_delivered:add(Id, NowMs, Delivered)},
    {Eager, Lazy} = split(From, tree(Root, State1), State1),
    {More, State} = more(How, Lazy, State1),
    Message = next(How, Id, Hops + 1, Payload),
    Pushed = lists:foldl(fun(Node, S) -> send(Node, Message, S) end,
                         emit({notice, {deliver, Id, Hops, Payload}}, State), Eager ++ More),
    name_later(Id, Hops + 1, Lazy -- More, Pushed).

next(gossip, Id, Hops, Payload) -> {gossip, Id, Hops, Payload};
next({spread, Reach}, Id, Hops, Payload) when is_integer(Reach), Reach > 0 ->
    {spread, Id, Hops, Reach - 1, Payload};
next({spread, _}, Id, Hops, Payload) -> {spread, Id, Hops, tree, Payload}.

%% Lazy neighbours that get the message all the same, because it is still near its sender.
more({spread, Reach}, Lazy, #state{rand = Rand0} = State) when is_integer(Reach), Reach > 0 ->
    {More, Rand} = weft_choice:some(option(spread_links, State), Lazy, Rand0),
    {More, State#state{rand = Rand}};
more(_How, _Lazy, State) ->
    {[], State}.

%% Half as far as the last message came that shaped the tree, but bounded: a node deep in a branch
%% is far from the others, and a cluster in which no node is deep is small.
reach(#state{latest = {_Id, Hops, _From}}) -> min(?REACH_MAX, Hops div 2);
reach(_State) -> 0.

split(From, Tree, #state{neighbours = Neighbours, trees = Trees}) ->
    weft_plumtree_trees:split(From, Tree, Neighbours, Trees).

tree(_Root, #state{options = #{trees := shared}}) -> all;
tree(Root, _State) -> Root.

set(How, Node, Tree, #state{neighbours = Neighbours, trees = Trees} = State)
  when is_map_key(Node, Neighbours) ->
    Max = option(trees_max, State),
    State#state{trees = weft_plumtree_trees:set(How, Node, Tree, Max, Trees)};
set(_How, _GoneNode, _Tree, State) ->
    State.

shape(Root, NowMs, #state{shaper = Shaper} = State) ->
    State#state{shaper = weft_plumtree_trees:shaper(Root, NowMs, option(shape_ms, State), Shaper)}.

is_shaper(Root, #state{shaper = {Root, _}}) -> true;
is_shaper(_Root, #state{options = #{trees := Trees}}) -> Trees =:= per_root.

prune(Root, From, State) ->
    Tree = tree(Root, State),
    case is_shaper(Root, State) of
        true -> send_prune(From, Tree, State);
        false -> State
    end.

send_prune(Node, Tree, State) ->
    send(Node, {prune, Tree}, set(lazy, Node, Tree, count(prunes_out, State))).

arrived(Id, #state{missing = Missing} = State) ->
    State#state{missing = weft_plumtree_missing:arrived(Id, Missing)}.

%% If another neighbour would have brought the message over far fewer hops, it is to bring the next
%% ones.
optimise({{Root, _}, _} = Id, Hops, From, #state{missing = Missing} = State0) ->
    State = arrived(Id, State0),
    Announcers = weft_plumtree_missing:announcers(Id, Missing),
    Latest = case is_shaper(Root, State) of
                 true -> State#state{latest = {Id, Hops, From}};
                 false -> State
             end,
    case lists:sort([{H, Node} || {Node, H} <- Announcers, Node =/= From]) of
        [{Fewest, Node} | _] -> shorter(Id, Fewest, Node, Latest);
        [] -> Latest
    end.

%% A second copy: its link is not needed, unless its way is much shorter.
again({{Root, _}, _} = Id, Hops, From, State0) ->
    State = count(duplicates, State0),
    case is_shorter(Id, Hops, From, State) of
        true -> shorter(Id, Hops, From, State);
        false -> prune(Root, From, State)
    end.

is_shorter(Id, Hops, Node, #state{latest = {Id, Came, From}, neighbours = Neighbours} = State) ->
    Came - Hops >= option(optimise_hops, State) andalso Node =/= From
        andalso is_map_key(Node, Neighbours);
is_shorter(_Id, _Hops, _Node, _State) ->
    false.

%% Node has the message over fewer hops than this node, so it has not got it through this node, and
%% no cycle is closed.
shorter({{Root, _}, _} = Id, Hops, Node, #state{latest = Latest} = State) ->
    case is_shorter(Id, Hops, Node, State) of
        true ->
            {Id, _, From} = Latest,
            Tree = tree(Root, State),
            Asked = graft(Node, Tree, [], State),
            send_prune(From, Tree, Asked#state{latest = {Id, Hops, Node}});
        false ->
            State
    end.

%% --- naming messages, and asking for them -----------------------------------------------------

name_later(_Id, _Hops, [], State) ->
    State;
name_later(Id, Hops, Nodes, #state{batch = []} = State) ->
    emit({after_ms, option(batch_ms, State), batch}, State#state{batch = [{Id, Hops, Nodes}]});
name_later(Id, Hops, Nodes, #state{batch = Batch} = State) ->
    State#state{batch = [{Id, Hops, Nodes} | Batch]}.

send_batch(#state{batch = Batch} = State) ->
    Named = lists:foldl(fun({Id, Hops, Nodes}, Acc) -> add_named({Id, Hops}, Nodes, Acc) end, #{},
                        Batch),
    lists:foldl(fun({Node, Announced}, S) -> send(Node, {ihave, Announced}, S) end,
                State#state{batch = []}, lists:sort(maps:to_list(Named))).

%% The batch is newest first, so each list comes out oldest first.
add_named(Named, Nodes, Acc) ->
    lists:foldl(fun(Node, A) -> A#{Node => [Named | maps:get(Node, A, [])]} end, Acc, Nodes).

note(Id, {Node, Hops} = Announcer, NowMs, #state{delivered = Delivered} = State) ->
    case weft_delivered:is_new(Id, Delivered) of
        true -> named(Id, Announcer, NowMs, State);
        false -> shorter(Id, Hops, Node, State)
    end.

named(Id, Announcer, NowMs, #state{missing = Missing0} = State0) ->
    DueMs = NowMs + option(graft_ms, State0),
    {Which, Missing} = weft_plumtree_missing:named(Id, Announcer, DueMs,
                                                   option(missing_max, State0), Missing0),
    State = State0#state{missing = Missing},
    case Which of
        first -> set_timer(DueMs, NowMs, State);
        _AgainOrFull -> State
    end.

set_timer(DueMs, _NowMs, #state{graft_at_ms = AtMs} = State) when AtMs =< DueMs ->
    State;
set_timer(DueMs, NowMs, State) ->
    emit({after_ms, max(0, DueMs - NowMs), {graft, DueMs}}, State#state{graft_at_ms = DueMs}).

%% Asks for each message that is due, in one message to each node for each tree.
graft_due(NowMs, #state{missing = Missing0, neighbours = Neighbours} = State0) ->
    NextMs = NowMs + option(regraft_ms, State0),
    {Asked, Missing} = weft_plumtree_missing:due(NowMs, NextMs, Neighbours, Missing0),
    State = State0#state{missing = Missing},
    ByTree = lists:foldr(fun({{{Root, _}, _} = Id, Node}, Acc) ->
                             Key = {Node, tree(Root, State)},
                             Acc#{Key => [Id | maps:get(Key, Acc, [])]}
                         end, #{}, Asked),
    next_timer(NowMs, lists:foldl(fun({{Node, Tree}, Ids}, S) -> graft(Node, Tree, Ids, S) end,
                                  State, lists:sort(maps:to_list(ByTree)))).

graft(Node, Tree, Ids, State) ->
    send(Node, {graft, Tree, Ids}, set(eager, Node, Tree, count(grafts_out, State))).

next_timer(NowMs, #state{missing = Missing} = State) ->
    case weft_plumtree_missing:next_due_ms(Missing) of
        none -> State;
        DueMs -> set_timer(DueMs, NowMs, State)
    end.

%% For messages no longer kept here the other side will ask another node.
give(Ids, To, #state{cache = Cache} = State) ->
    lists:foldl(fun(Id, S) ->
                    case weft_message_cache:get(Id, Cache) of
                        {ok, Hops, Payload} -> send(To, {gossip, Id, Hops + 1, Payload}, S);
                        error -> S
                    end
                end, State, Ids).

%% --- exchange ---------------------------------------------------------------------------------

exchange(#state{neighbours = Neighbours, rand = Rand0} = State0) ->
    {Result, Rand} = weft_choice:one(lists:sort(maps:keys(Neighbours)), Rand0),
    State = State0#state{rand = Rand},
    case Result of
        {ok, Node} -> tell_cache(Node, State);
        none -> State
    end.

tell_cache(Node, #state{cache = Cache} = State) ->
    send_unless_empty(Node, have, weft_message_cache:summary(Cache), State).

%% Messages that are already being asked for are not asked for again.
unknown(Summary, #state{delivered = Delivered, missing = Missing} = State) ->
    Max = option(want_max, State),
    Ids = [{Origin, Number} || {Origin, Ranges} <- Summary, {First, Last} <- Ranges,
                               Number <- lists:seq(max(First, Last - Max), Last)],
    lists:sublist([Id || Id <- Ids, weft_delivered:is_new(Id, Delivered),
                         not weft_plumtree_missing:is_missing(Id, Missing)], Max).

ask_for(Ids, Node, State) ->
    send_unless_empty(Node, want, Ids, State).

send_unless_empty(_Node, _What, [], State) -> State;
send_unless_empty(Node, What, List, State) -> send(Node, {What, List}, State).

tidy(NowMs, #state{delivered = Delivered0} = State) ->
    {Missed, Delivered} = weft_delivered:give_up(NowMs, Delivered0),
    lists:foldl(fun({{Root, _}, Lost}, S) -> emit({notice, {missed, Root, Lost}}, S) end,
                expired(NowMs, State#state{delivered = Delivered}), Missed).

%% What is too old is told to nobody and given to nobody, whenever the last exchange was: the others
%% may have forgotten that they had it.
expired(NowMs, #state{cache = Cache} = State) ->
    State#state{cache = weft_message_cache:expire(NowMs, Cache)}.

exchange_later(#state{rand = Rand0} = State) ->
    {DelayMs, Rand} = weft_choice:around(option(exchange_ms, State), Rand0),
    emit({after_ms, DelayMs, exchange}, State#state{rand = Rand}).

%% --- figures ----------------------------------------------------------------------------------

info(#state{neighbours = Neighbours, trees = Trees, missing = Missing, cache = Cache,
            counts = Counts}) ->
    maps:merge(Counts#{missing => weft_plumtree_missing:count(Missing),
                       cached => weft_message_cache:size(Cache)},
               weft_plumtree_trees:figures(Neighbours, Trees)).

count(What, #state{counts = Counts} = State) ->
    State#state{counts = maps:update_with(What, fun(N) -> N + 1 end, Counts)}.

option(Key, #state{options = Options}) ->
    map_get(Key, Options).

send(Node, Message, State) ->
    emit({send, Node, {?VERSION, Message}}, State).

emit(Effect, #state{out = Out} = State) ->
    State#state{out = [Effect | Out]}.

finish(#state{out = Out} = State) ->
    {State#state{out = []}, lists:reverse(Out)}.
