%% SPDX-License-Identifier: Apache-2.0
%% @doc Membership and failure detection: SWIM (Das, Gupta, Motivala 2002) with Lifeguard (Dadgar,
%% Phillips, Currey 2018), in the form of memberlist.
%%
%% Each node probes one member after the other (`weft_swim_probe'); its load does not depend on the
%% number of members. A member that does not answer is suspected. It is told so, by gossip or with
%% the next ping (the buddy system), and refutes the suspicion by a higher incarnation of its own.
%% If it does not do so in time (`weft_swim_suspicions') it is dead. News is added to every message
%% and sent by `gossip' of its own, each piece a bounded number of times (`weft_swim_news'). It is
%% merged by order of incarnation and status (`weft_swim_table'); changes are told on the node
%% (`weft_swim_changes'). Nodes also compare whole tables (`weft_swim_sync').
%%
%% Every message is `{1, What, News}'. `What', besides those of the probe:
%% <ul>
%% <li>`gossip': nothing but news.</li>
%% <li>`{digest, Incarnation, Digest}': the incarnation of the sender, and a hash of its table. Sent
%%     when a link comes up; and every `sync_interval_ms' (more often at first) to a random member
%%     and to one that is dead. A node that finds a difference answers with a `pull', at most one
%%     every `sync_gap_ms'.</li>
%% <li>`{pull, Range, Entries}': all that the sender knows of the nodes of the range; answered by
%%     `{push, Entries}' with what it lacks. Large tables are sent in parts. This is also how a node
%%     joins: it pulls from seeds and neighbours until it knows another node.</li>
%% </ul>
%% Races, and what absorbs them: old news about a member is stale by its incarnation. A dead member
%% that is alive, say after a pause, is told that it is dead with the answer to its next message,
%% and refutes. Timers carry the suspicion or round that they belong to. A node whose timers fire
%% late was stopped itself, and gives the members that it suspects their time again.
%%
%% Options: `seeds' ([]), `links' (true: messages reach neighbours only, as in `weft_core'; false:
%% messages reach every node, for example as datagrams) and those of `weft_swim_options'.
%% Commands: `leave' (answered `ok' when the news is out; the node then is silent) and
%% `{forget, Node}' (answered `ok' or `{error, unknown_member | self}').
%% Views: `{member, Node}' and `{failed, Node}', both with the incarnation.
%% Notices: `{member, Node, joined | suspected | cleared | failed | left | forgotten}', and once
%% `{warning, {members_full, Node}}'.
%% Not here: which node connects to which.
-module(weft_swim_core).
-behaviour(weft_core).

-export([init/2, handle/3, status/2, living/1, failed/1, health/1, has_left/1]).
-export_type([state/0, message/0]).

-import(weft_swim_state, [send/3, emit/2, choose/3, draw/2, reachable/1, is_alone/1]).

-include("weft_swim_state.hrl").

-type message() :: {1, What :: weft_swim_probe:message() | gossip
                             | {digest, non_neg_integer(), {pos_integer(), non_neg_integer()}}
                             | {pull, weft_swim_table:range(), [weft_swim_table:entry()]}
                             | {push, [weft_swim_table:entry()]},
                    News :: [weft_swim_news:update()]}.

-opaque state() :: #state{}.

%% @doc See `weft_core'.
-spec init(weft_core:node_id(), weft_core:options()) -> {state(), weft_core:effects()}.
init(Self, Given) ->
    Options = weft_swim_options:complete(Given),
    Incarnation = maps:get(incarnation, Given, 0),
    {Probe, Effects} = weft_swim_probe:start(
                         weft_swim_probe:new(Options, weft_core:seed(Self, probe, Given))),
    State = #state{self = Self, incarnation = Incarnation,
                   table = weft_swim_table:new(Self, Incarnation, Options), probe = Probe,
                   needs_links = maps:get(links, Given, true),
                   seeds = lists:usort(maps:get(seeds, Given, [])) -- [Self],
                   sync_ms = map_get(join_interval_ms, Options),
                   rand = weft_core:seed(Self, ?MODULE, Given), options = Options,
                   out = lists:reverse(Effects)},
    Shown = emit({view, {member, Self}, Incarnation}, State),
    finish(weft_swim_sync:join(weft_swim_sync:later(Shown))).

%% @doc What this node believes of Node.
-spec status(weft_core:node_id(), state()) ->
          {Incarnation :: non_neg_integer(), weft_swim_table:status()} | unknown.
status(Node, #state{table = Table}) ->
    weft_swim_table:get(Node, Table).

%% @doc The other members that are alive or suspected, in term order.
-spec living(state()) -> [weft_core:node_id()].
living(#state{table = Table}) ->
    weft_random_set:to_list(weft_swim_table:living(Table)).

%% @doc The members that failed and are not forgotten yet, in term order.
-spec failed(state()) -> [weft_core:node_id()].
failed(#state{table = Table}) ->
    weft_random_set:to_list(weft_swim_table:dead(Table)).

%% @doc Has this node left?
-spec has_left(state()) -> boolean().
has_left(#state{mode = Mode}) ->
    Mode =:= left.

%% @doc The score of this node's own health, 0 is the best.
-spec health(state()) -> non_neg_integer().
health(#state{probe = Probe}) ->
    weft_swim_probe:health(Probe).

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), state()) -> {state(), weft_core:effects()}.
handle(Event, NowMs, State) ->
    finish(on(Event, NowMs, State)).

on({command, Ref, leave}, _NowMs, State) ->
    leave(Ref, State);
on(_Event, _NowMs, #state{mode = left} = State) ->
    State;
on({message, From, {?VERSION, What, News}}, NowMs, State) ->
    message(What, From, NowMs, learn_all(News, NowMs, State));
on({message, _From, _NewerVersion}, _NowMs, State) ->
    State;
on({neighbour_up, Node}, _NowMs, #state{linked = Linked} = State) ->
    weft_swim_sync:introduce(Node, State#state{linked = weft_random_set:add(Node, Linked)});
on({neighbour_down, Node, _Reason}, _NowMs, #state{linked = Linked} = State) ->
    link_lost(Node, State#state{linked = weft_random_set:delete(Node, Linked)});
on({timer, gossip}, _NowMs, State) ->
    gossip(State);
on({timer, sync}, NowMs, State) ->
    weft_swim_sync:later(weft_swim_sync:compare(expire(NowMs, State)));
on({timer, join}, _NowMs, State) ->
    weft_swim_sync:join(State);
on({timer, {suspicion, Node, Token}}, NowMs, State) ->
    suspicion_due(Node, Token, NowMs, State);
on({timer, leave}, _NowMs, #state{mode = {leaving, _}} = State) ->
    gone(State);
on({timer, Timer}, NowMs, #state{mode = member, probe = Probe} = State) ->
    probe(weft_swim_probe:timer(Timer, NowMs, peers(State), Probe), NowMs, State);
on({timer, _Timer}, _NowMs, State) ->
    State;
on({command, Ref, {forget, Node}}, NowMs, State) ->
    forget(Ref, Node, NowMs, State).

%% --- messages ---------------------------------------------------------------------------------

message({ping, Sequence}, From, _NowMs, State) ->
    send(From, {ack, Sequence}, State);
message({ack, Sequence}, From, NowMs, #state{probe = Probe} = State) ->
    probe(weft_swim_probe:ack(Sequence, From, Probe), NowMs, State);
message({nack, Sequence}, _From, _NowMs, #state{probe = Probe} = State) ->
    State#state{probe = weft_swim_probe:nack(Sequence, Probe)};
message({no_link, Sequence}, _From, NowMs, #state{probe = Probe} = State) ->
    probe(weft_swim_probe:no_link(Sequence, peers(State), Probe), NowMs, State);
message({ping_req, Sequence, Target}, From, NowMs, #state{probe = Probe} = State) ->
    IsReachable = not State#state.needs_links orelse weft_random_set:is_member(Target,
                                                                               State#state.linked),
    probe(weft_swim_probe:ping_req(Sequence, {Target, IsReachable}, From, Probe), NowMs, State);
message(gossip, _From, _NowMs, State) ->
    State;
message({digest, Incarnation, Digest}, From, NowMs, State0) ->
    State = learn({alive, From, Incarnation}, NowMs, State0),
    weft_swim_sync:heard_digest(Digest, From, NowMs, State);
message({pull, Range, Entries}, From, NowMs, State0) ->
    State = learn_entries(Entries, From, NowMs, State0),
    weft_swim_sync:answer(Range, Entries, From, State);
message({push, Entries}, From, NowMs, State) ->
    learn_entries(Entries, From, NowMs, State).

probe({Probe, Actions}, NowMs, State) ->
    lists:foldl(fun(Action, S) -> act(Action, NowMs, S) end, State#state{probe = Probe}, Actions).

link_lost(Node, #state{table = Table, probe = Probe} = State) ->
    case weft_random_set:is_member(Node, weft_swim_table:living(Table)) of
        true -> State#state{probe = weft_swim_probe:urgent(Node, Probe)};
        false -> State
    end.

act({send, To, Message}, _NowMs, State) ->
    send(To, Message, State);
act({after_ms, Ms, Timer}, _NowMs, State) ->
    emit({after_ms, Ms, Timer}, State);
act({suspect, Node}, NowMs, #state{self = Self, table = Table} = State) ->
    case weft_swim_table:get(Node, Table) of
        {Incarnation, _} -> learn({suspect, Node, Incarnation, Self}, NowMs, State);
        unknown -> State
    end.

%% --- what is heard of members -----------------------------------------------------------------

%% A node that leaves ignores news, which might make it a member again.
learn_all(_News, _NowMs, #state{mode = {leaving, _}} = State) ->
    State;
learn_all(News, NowMs, State) ->
    lists:foldl(fun(Update, S) -> learn(Update, NowMs, S) end, State, News).

%% A node that joins does not pass on what all others know.
learn_entries(Entries, From, NowMs, #state{news = News} = State0) ->
    State = learn_all([weft_swim_news:of_entry(Entry, From) || Entry <- Entries], NowMs, State0),
    case is_alone(State0) of
        true -> State#state{news = News};
        false -> State
    end.

learn(Update, NowMs, #state{self = Self} = State) ->
    case {element(1, Update), element(2, Update), element(3, Update)} of
        {Status, Self, Incarnation} -> hear_of_self(Status, Incarnation, State);
        {Status, Node, Incarnation} -> believe(Status, Node, Incarnation, Update, NowMs, State)
    end.

%% Old news of an earlier incarnation may have a higher number than this one, if a clock went back.
hear_of_self(alive, Incarnation, #state{incarnation = Own} = State) when Incarnation =< Own ->
    State;
hear_of_self(_Status, Incarnation, #state{incarnation = Own} = State) when Incarnation < Own ->
    State;
hear_of_self(Status, Incarnation, #state{self = Self, probe = Probe} = State) ->
    Higher = Incarnation + 1,
    {changed, _, Table} = weft_swim_table:merge(alive, Self, Higher, 0, State#state.table),
    Health = case Status of
                 alive -> Probe;
                 _ -> weft_swim_probe:refuted(Probe)
             end,
    spread({alive, Self, Higher},
           emit({view, {member, Self}, Higher},
                State#state{incarnation = Higher, table = Table, probe = Health})).

believe(Status, Node, Incarnation, Update, NowMs, #state{table = Table0} = State) ->
    case weft_swim_table:merge(Status, Node, Incarnation, NowMs, Table0) of
        {changed, Before, Table} ->
            spread(Update, changed(Update, Before, NowMs, State#state{table = Table}));
        stale when Status =:= suspect ->
            confirm(Update, NowMs, State);
        stale ->
            State;
        full ->
            full(Node, State)
    end.

full(_Node, #state{is_full_told = true} = State) -> State;
full(Node, State) ->
    emit({notice, {warning, {members_full, Node}}}, State#state{is_full_told = true}).

changed({suspect, Node, Incarnation, Accuser}, {_, Status}, NowMs, State)
  when Status =:= alive; Status =:= suspect ->
    emit({notice, {member, Node, suspected}}, suspect(Node, Incarnation, Accuser, NowMs, State));
changed({suspect, Node, Incarnation, _Accuser} = Update, Before, NowMs, State) ->
    changed(Update, {Incarnation, alive}, NowMs,
            changed({alive, Node, Incarnation}, Before, NowMs, State));
changed({_, Node, _} = Update, Before, _NowMs, State0) ->
    State = lists:foldl(fun weft_swim_state:emit/2, cleared(Node, State0),
                        weft_swim_changes:effects(Update, Before)),
    case weft_swim_changes:is_joined(Update, Before) of
        true -> State#state{probe = weft_swim_probe:joined(Node, State#state.probe)};
        false -> State
    end.

cleared(Node, #state{suspicions = Suspicions} = State) ->
    State#state{suspicions = maps:remove(Node, Suspicions)}.

%% Passes news on to others.
spread(Update, #state{news = News, options = Options} = State0) ->
    State = State0#state{news = weft_swim_news:add(element(2, Update), Update, News)},
    case State of
        #state{is_gossiping = true} -> State;
        _ -> {DelayMs, State1} = draw(map_get(gossip_interval_ms, Options), State),
             emit({after_ms, DelayMs, gossip}, State1#state{is_gossiping = true})
    end.

%% --- suspicion --------------------------------------------------------------------------------

suspect(Node, Incarnation, Accuser, NowMs, #state{next_token = Token} = State) ->
    #state{table = Table, options = Options, suspicions = Suspicions} = State,
    Suspicion = weft_swim_suspicion_time:new({Incarnation, Token}, Accuser,
                                        weft_swim_table:count(Table), NowMs, Options),
    awaited(weft_swim_suspicions:await(Node, Suspicion, NowMs, Suspicions),
            State#state{next_token = Token + 1}).

awaited({Timer, Suspicions}, State) ->
    emit(Timer, State#state{suspicions = Suspicions}).

confirm(Update, NowMs, #state{suspicions = Suspicions} = State) ->
    case weft_swim_suspicions:confirm(Update, NowMs, Suspicions) of
        {confirmed, Awaited} -> spread(Update, awaited(Awaited, State));
        known -> State
    end.

suspicion_due(Node, Token, NowMs, #state{suspicions = Suspicions, options = Options} = State) ->
    case weft_swim_suspicions:due(Node, Token, NowMs, Options, Suspicions) of
        {over, Incarnation} -> learn({dead, Node, Incarnation}, NowMs, State);
        {later, Awaited} -> awaited(Awaited, State);
        stale -> State
    end.

%% --- gossip -----------------------------------------------------------------------------------

gossip(#state{options = #{gossip_nodes := Count, gossip_interval_ms := Ms}} = State0) ->
    {Receivers, State1} = choose(Count, reachable(State0), State0),
    State = lists:foldl(fun(Node, S) -> gossip_to(Node, S) end, State1, Receivers),
    case {weft_swim_news:is_empty(State#state.news), State#state.mode} of
        {_, {leaving, _}} -> emit({after_ms, Ms, gossip}, leave_if_told(State));
        {true, _} -> State#state{is_gossiping = false};
        {false, _} -> emit({after_ms, Ms, gossip}, State)
    end.

gossip_to(Node, #state{news = News} = State) ->
    case weft_swim_news:is_empty(News) of
        true -> State;
        false -> send(Node, gossip, State)
    end.

%% --- leaving ----------------------------------------------------------------------------------

leave(Ref, #state{mode = member, self = Self, incarnation = Incarnation} = State0) ->
    #state{table = Table0, options = #{leave_timeout_ms := Ms}} = State0,
    {changed, _, Table} = weft_swim_table:merge(left, Self, Incarnation, 0, Table0),
    State = spread({left, Self, Incarnation},
                   State0#state{table = Table, mode = {leaving, Ref}, suspicions = #{}}),
    case weft_random_set:size(reachable(State)) of
        0 -> gone(State);
        _ -> emit({after_ms, Ms, leave}, State)
    end;
leave(Ref, State) ->
    emit({reply, Ref, ok}, State).

leave_if_told(#state{self = Self, news = News} = State) ->
    case weft_swim_news:about(Self, News) of
        true -> State;
        false -> gone(State)
    end.

gone(#state{mode = {leaving, Ref}, self = Self} = State) ->
    emit({reply, Ref, ok}, emit({view, {member, Self}, delete}, State#state{mode = left})).

%% --- forgetting -------------------------------------------------------------------------------

forget(Ref, Self, _NowMs, #state{self = Self} = State) ->
    emit({reply, Ref, {error, self}}, State);
forget(Ref, Node, NowMs, #state{table = Table} = State) ->
    case weft_swim_table:get(Node, Table) of
        {Incarnation, Status} when Status =/= left ->
            emit({reply, Ref, ok}, learn({left, Node, Incarnation}, NowMs, State));
        _ ->
            emit({reply, Ref, {error, unknown_member}}, State)
    end.

expire(NowMs, #state{table = Table0} = State) ->
    {Forgotten, Table} = weft_swim_table:expire(NowMs, Table0),
    lists:foldl(fun weft_swim_state:emit/2, State#state{table = Table},
                lists:append([weft_swim_changes:forgotten(Node) || Node <- Forgotten])).

%% --- parts ------------------------------------------------------------------------------------

peers(#state{table = Table} = State) ->
    #{living => weft_swim_table:living(Table), reachable => reachable(State)}.

finish(#state{out = Out} = State) ->
    {State#state{out = []}, lists:reverse(Out)}.
