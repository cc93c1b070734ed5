%% SPDX-License-Identifier: Apache-2.0
%% @doc The ring of a cluster: who is in it, who owns what, and who shall own it next. A pure state
%% machine (`weft_core'); the data are in `weft_ring_table', which says why any two rings merge.
%%
%% The first node creates the ring; others ask any node of it to join. Changes are staged on one
%% node, looked at as a plan, and committed, on any node. Then each owner hands over what shall
%% belong to another: `{notice, {handoff, start, Transfer}}' begins that, `handoffs_max' at a time
%% (`weft_ring_slots'). The command `{handoff, stalled, Transfer}' says that the next owner
%% acknowledges nothing any more, and `{handoff, done, Transfer}' that it has all data. With that
%% the old owner gives up the partition and the new one has it as soon as it hears of it: there may
%% be a moment without an owner, but none with two. A node that leaves is `gone' when it owns
%% nothing and, with `settle', when the command `{leave, ready}' has answered the notice `leave':
%% nothing waits there for other owners either, and nothing that it has whole may still be given to
%% it. It takes nothing more by then.
%%
%% Who has a partition whole that it shall not own any more asks its owner (command `{promised,
%% Transfer}'). If that will give it to nobody, it writes the next epoch for itself, so that what it
%% may have been about to write is worth nothing.
%%
%% What is new is pushed to `fanout' neighbours, by each node that did not know it. Every `sync_ms',
%% and when a link comes up, two neighbours compare hashes and exchange what differs. Neighbours
%% that never asked to join hear nothing.
%%
%% Two commits at the same time both hold as to the members; of the plans the one with the higher
%% version is followed. If no plan is for all members then, or if a partition belongs to a node
%% that is gone, that is mended: by the first member, and if that does not do it within a
%% `sync_ms', by the second one, and so on. If all members left at the same time, one that still
%% owns something stays in the same way.
%%
%% Nodes that are gone are remembered, so that an old ring does not bring them back. If there are
%% more than `gone_max', only the half that went last stays: when the ring is at rest the first
%% member asks all that are in it whether they have the same one (`{same, Id, Hash}', answered by
%% `{is_same, Id, Hash}'), and when all have, the others are forgotten (`weft_ring_table:forget/2').
%% While a node is away that was not removed, nobody is forgotten. What a node that is gone had
%% committed while it was cut off does not count if the ring has forgotten it when it comes back.
%%
%% The ring has to survive a restart of the node: the views `ring', `asked' and `forgotten' are to
%% be kept before other effects are carried out, and are options of the next start. A node that has
%% forgotten it and learns that it was a member would not know what it had handed over, so it takes
%% itself for the owner of nothing (notice `{warning, forgotten}') until it is removed and joins
%% again. It knows the ring by then, so it has to keep that it had forgotten it (view `forgotten').
%% So it is with a node that asks to join and gets a ring in which it owns something: who is let in
%% owns nothing before it has the ring. And with one that has an old ring, and hears of a baton that
%% nobody else can have handed on. Who has asked a node to let it in takes no ring from others.
%%
%% Options: `partitions' (64), `n_val' (3), `location' (the node), `ring' (none), `asked' (none),
%% `forgotten' (false), `fanout' (3), `sync_ms' (5000), `handoffs_max' (2), `gone_max' (32),
%% `settle' (false).
%% Commands: `create', `{join, Via}', `{stage, Node, Change}', `{unstage, Node}', `plan', `{commit,
%% Token}', `{handoff, done | failed | stalled, Transfer}', `{promised, Transfer}', `{leave,
%% ready}', `ring'.
%% Views: `ring', `asked' (the node that was asked to let this one join, `none' once it is in the
%% ring), `forgotten', `mine' (the partitions this node takes itself for the owner of).
%% A join that nobody answers is asked again each `sync_ms'. The notice `{unanswered, Via}' says so,
%% once when it has been in vain for that long, and seldom after that.
-module(weft_ring_core).
-behaviour(weft_core).

-export([init/2, handle/3, ring/1, mine/1, has_failed/2]).

-define(GONE_MAX, 32).
%% That a join is not answered is said with the second sync, and then with each of so many.
-define(SAID_EACH, 120).

-record(state, {
    self :: node(),
    incarnation :: non_neg_integer(),
    options :: map(),
    ring = none :: none | weft_ring_table:ring(),
    via = none :: none | node(),
    forgotten = false :: boolean(),
    neighbours = [] :: [node()],
    staged = #{} :: #{node() => weft_ring_plan:change()},
    running = [] :: [weft_ring_table:transfer()],
    %% Tried in vain since the last sync.
    failed = [] :: [weft_ring_table:transfer()],
    %% Is there something that waits here for other owners?
    leave = no :: no | asked | ready,
    %% For how many syncs something was to be mended.
    torn = 0 :: non_neg_integer(),
    rand :: rand:state()}).

-opaque state() :: #state{}.
-export_type([state/0]).

%% @doc See `weft_core'.
-spec init(node(), weft_core:options()) -> {state(), weft_core:effects()}.
init(Self, Options) ->
    Defaults = #{partitions => 64, n_val => 3, location => Self, fanout => 3, sync_ms => 5000,
                 handoffs_max => 2, settle => false},
    Ring = maps:get(ring, Options, none),
    State = #state{self = Self, incarnation = maps:get(incarnation, Options, 0),
                   options = maps:merge(Defaults, Options), ring = Ring,
                   %% What earlier code has written may be of a join long ago.
                   via = still_asking(maps:get(asked, Options, none), Self, Ring),
                   forgotten = maps:get(forgotten, Options, false),
                   rand = weft_core:seed(Self, ?MODULE, Options)},
    {Working, Effects} = work(State),
    {Working, [{view, forgotten, true} || State#state.forgotten] ++ views(State) ++ Effects
         ++ [{after_ms, option(sync_ms, State), sync}]}.

%% @doc The ring as this node knows it.
-spec ring(state()) -> none | weft_ring_table:ring().
ring(#state{ring = Ring}) -> Ring.

%% @doc The partitions that this node takes itself for the owner of.
-spec mine(state()) -> [non_neg_integer()].
mine(#state{ring = none}) -> [];
mine(#state{forgotten = true}) -> [];
mine(#state{self = Self, ring = Ring}) -> weft_ring_table:owned(Self, Ring).

%% @doc Was a handoff to this node in vain since the last sync?
-spec has_failed(node(), state()) -> boolean().
has_failed(Node, #state{failed = Failed}) -> lists:keymember(Node, 3, Failed).

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), state()) -> {state(), weft_core:effects()}.
handle({command, Ref, Command}, _NowMs, State) ->
    command(Ref, Command, State);
handle({message, From, {ring, 1, Msg}}, _NowMs, State) ->
    message(From, Msg, State);
handle({message, _From, _OfAnotherVersion}, _NowMs, State) ->
    {State, []};
handle({neighbour_up, Node}, _NowMs, #state{neighbours = Neighbours} = State0) ->
    State1 = State0#state{neighbours = lists:usort([Node | Neighbours])},
    {State, Work} = work(State1),
    {State, ask(State) ++ greetings([N || N <- peers(State), N =:= Node], State) ++ Work};
handle({neighbour_down, Node, _Reason}, _NowMs, #state{neighbours = Neighbours} = State) ->
    work(State#state{neighbours = lists:delete(Node, Neighbours)});
handle({timer, sync}, _NowMs, State0) ->
    {State1, Mended} = mend(State0#state{failed = []}),
    {State2, Effects} = work(State1),
    {State3, Unanswered} = unanswered(State2),
    {State4, Forgotten} = forget(State3),
    {Nodes, State} = some(1, peers(State4), State4),
    {State, Mended ++ Effects ++ ask(State) ++ Unanswered ++ Forgotten ++ greetings(Nodes, State)
         ++ [{after_ms, option(sync_ms, State), sync}]};
handle({notice, _}, _NowMs, State) ->
    {State, []}.

%% --- commands ---------------------------------------------------------------------------------

command(Ref, ring, #state{ring = Ring} = State) ->
    {State, [{reply, Ref, Ring}]};
command(Ref, create, #state{ring = none, via = none} = State) ->
    #{location := Location, partitions := Size, n_val := NVal} = State#state.options,
    answered(Ref, ok, learn(weft_ring_table:create({State#state.self, State#state.incarnation},
                                                   Location, Size, NVal), [], State));
command(Ref, {join, Via}, State0) ->
    case is_out(State0) of
        true ->
            State = asking(Via, State0),
            {State, [{view, asked, Via} | ask(State)] ++ [{reply, Ref, ok}]};
        false ->
            {State0, [{reply, Ref, {error, has_ring}}]}
    end;
command(Ref, create, State) ->
    {State, [{reply, Ref, {error, has_ring}}]};
command(Ref, _, #state{ring = none} = State) ->
    {State, [{reply, Ref, {error, no_ring}}]};
command(Ref, {stage, Node, Change}, #state{ring = Ring, staged = Staged} = State) ->
    case weft_ring_plan:check(Node, Change, Ring) of
        ok -> {State#state{staged = Staged#{Node => Change}}, [{reply, Ref, ok}]};
        {error, Reason} -> {State, [{reply, Ref, {error, Reason}}]}
    end;
command(Ref, {unstage, Node}, #state{staged = Staged} = State) ->
    {State#state{staged = maps:remove(Node, Staged)}, [{reply, Ref, ok}]};
command(Ref, plan, #state{self = Self, ring = Ring, staged = Staged0} = State) ->
    Staged = weft_ring_plan:possible(Staged0, Ring),
    {State#state{staged = Staged}, [{reply, Ref, weft_ring_plan:plan(Self, Staged, Ring)}]};
command(Ref, {commit, Token}, #state{self = Self, ring = Ring, staged = Staged0} = State) ->
    Staged = weft_ring_plan:possible(Staged0, Ring),
    case weft_ring_plan:commit(Self, Token, Staged, Ring) of
        {ok, New} -> answered(Ref, ok, learn(New, [], State#state{staged = #{}}));
        {error, Reason} -> {State#state{staged = Staged}, [{reply, Ref, {error, Reason}}]}
    end;
command(Ref, {handoff, done, Transfer}, State) ->
    answered(Ref, ok, given(Transfer, State));
command(Ref, {handoff, failed, Transfer}, #state{running = Running, failed = Failed} = State) ->
    answered(Ref, ok, work(State#state{running = lists:delete(Transfer, Running),
                                       failed = [Transfer | Failed]}));
command(Ref, {handoff, stalled, Transfer}, State) ->
    answered(Ref, ok, work(State, [Transfer | stalled(State)]));
command(Ref, {promised, {P, _, _} = Transfer}, #state{self = Self, ring = Ring} = State) ->
    {_, Owner} = weft_ring_table:holder(P, Ring),
    {State, [{send, Owner, {ring, 1, {promised, Transfer}}}
             || Owner =/= Self, weft_ring_table:is_promised(Transfer, Ring)] ++ [{reply, Ref, ok}]};
command(Ref, {leave, ready}, #state{leave = Leave} = State) ->
    answered(Ref, ok, work(State#state{leave = case Leave of asked -> ready; _ -> Leave end}));
command(Ref, _OfAnotherVersion, State) ->
    {State, [{reply, Ref, {error, unknown_command}}]}.

answered(Ref, Reply, {State, Effects}) ->
    {State, Effects ++ [{reply, Ref, Reply}]}.

%% The next owner has the data. It counts only if the plan and the baton are still the same.
given({P, Baton, To} = Transfer, #state{ring = Ring, running = Running} = State0) ->
    State = State0#state{running = lists:delete(Transfer, Running)},
    case lists:member(Transfer, due(State)) of
        true -> learn(weft_ring_table:give(P, Baton, To, Ring), [], State);
        false -> work(State)
    end.

%% --- what others say --------------------------------------------------------------------------

message(From, {join, Location}, #state{ring = Ring} = State0) when Ring =/= none ->
    {State, Effects} =
        case weft_ring_table:is_out(From, Ring) of
            true ->
                Version = weft_ring_table:version({State0#state.self, Ring}),
                learn(weft_ring_table:set_member(From, joining, {{location, Location}, Version},
                                                 Ring), [From], State0);
            false -> {State0, []}
        end,
    {State, Effects ++ [weft_ring_messages:all(From, State#state.ring)]};
message(From, {hash, Id, Hash}, #state{ring = Ring} = State) when Ring =/= none ->
    case {weft_ring_table:id(Ring), weft_ring_table:hash(Ring)} of
        {Id, Hash} -> {State, []};
        {Id, _} -> {State, [weft_ring_messages:all(From, Ring)]};
        _ -> {State, [{notice, {warning, {other_ring, From, Id}}}]}
    end;
%% Of a part of a ring nobody can begin.
message(From, {news, Id, Registers}, #state{ring = Ring} = State) when Ring =/= none ->
    news(From, Id, Registers, State);
%% The sender gets in return what it lacks.
message(From, {all, Id, Registers}, State0) ->
    {State, Effects} = news(From, Id, Registers, State0),
    {State, Effects ++ weft_ring_messages:lacking(From, {Id, Registers}, State#state.ring)};
message(From, {same, Id, Hash}, #state{ring = Ring} = State) when Ring =/= none ->
    case message(From, {hash, Id, Hash}, State) of
        {State, []} -> {State, [{send, From, {ring, 1, {is_same, Id, Hash}}}]};
        OfAnother -> OfAnother
    end;
message(From, {is_same, _Id, Hash}, #state{options = #{witnesses := {Hash, Left}}} = State) ->
    witnessed(Hash, lists:delete(From, Left), State);
message(From, ask, #state{ring = Ring} = State) when Ring =/= none ->
    {State, [weft_ring_messages:all(From, Ring)]};
message(From, {promised, {P, Baton, From}}, #state{self = Self, ring = Ring} = State)
  when Ring =/= none, not State#state.forgotten ->
    case {weft_ring_table:holder(P, Ring), lists:keymember(P, 1, due(State))} of
        {{Baton, Self}, true} -> {State, []};
        {{Baton, Self}, false} -> learn(weft_ring_table:give(P, Baton, Self, Ring), [], State);
        _ -> {State, [weft_ring_messages:all(From, Ring)]}
    end;
%% The sender says that this node is in its ring.
message(From, {hash, _, _}, State) ->
    {State, [{send, From, {ring, 1, ask}}]};
message(_From, _NoRingYet, State) ->
    {State, []}.

%% Who has asked a node to let it in hears of no other ring.
news(From, _Id, _Registers, #state{ring = none, via = Via} = State)
  when Via =/= none, Via =/= From ->
    {State, []};
news(From, Id, Registers, #state{ring = none, self = Self, via = Via} = State) ->
    Ring = weft_ring_table:with(Registers, weft_ring_table:empty(Id)),
    case {Via, weft_ring_table:is_out(Self, Ring), weft_ring_table:owned(Self, Ring)} of
        {none, true, _} -> {State, []};
        {From, IsOut, Owned} when IsOut; Owned =:= [] -> learn(Ring, [From], State);
        _ -> forgot(Ring, From, State)
    end;
news(From, Id, Registers, #state{ring = Ring, self = Self, forgotten = Forgotten} = State) ->
    case weft_ring_table:id(Ring) of
        Id ->
            New = weft_ring_table:with(Registers, Ring),
            case Forgotten orelse weft_ring_table:has_written(Self, Ring, New) of
                true -> learn(New, [From], State);
                false -> forgot(New, From, State)
            end;
        _ -> {State, [{notice, {warning, {other_ring, From, Id}}}]}
    end.

forgot(Ring, From, State0) ->
    {State, Effects} = learn(Ring, [From], State0#state{forgotten = true}),
    {State, [{view, forgotten, true}, {notice, {warning, forgotten}} | Effects]}.

ask(#state{via = Via} = State) ->
    case is_out(State) of
        true when Via =/= none ->
            [{send, Via, {ring, 1, {join, option(location, State)}}}];
        _ -> []
    end.

is_out(#state{ring = none}) -> true;
is_out(#state{self = Self, ring = Ring}) -> weft_ring_table:is_out(Self, Ring).

%% How many syncs were in vain is among the options: the state of earlier code has no place for it.
asking(Via, #state{via = Via} = State) -> State;
asking(Via, #state{options = Options} = State) ->
    State#state{via = Via, options = Options#{unanswered => 0}}.

unanswered(#state{via = Via, options = Options} = State) ->
    Syncs = case ask(State) of
                [] -> 0;
                _ -> maps:get(unanswered, Options, 0) + 1
            end,
    IsSaid = Syncs =:= 2 orelse (Syncs > 0 andalso Syncs rem ?SAID_EACH =:= 0),
    {State#state{options = Options#{unanswered => Syncs}},
     [{notice, {unanswered, Via}} || IsSaid]}.

%% Neighbours that the ring knows, also as gone.
peers(#state{ring = none}) ->
    [];
peers(#state{ring = Ring, neighbours = Neighbours}) ->
    [Node || Node <- Neighbours, weft_ring_table:member(Node, Ring) =/= none].

greetings(Nodes, #state{ring = Ring}) ->
    [weft_ring_messages:greeting(Node, Ring) || Node <- Nodes].

%% --- what a new ring means for this node ------------------------------------------------------

%% It goes on to other nodes, except those that Know it already. Who owns something now is told
%% first.
learn(Ring, _Know, #state{ring = Ring} = State) ->
    work(State);
learn(Ring, Know, #state{ring = Before} = State0) ->
    Old = case Before of none -> weft_ring_table:empty(weft_ring_table:id(Ring)); _ -> Before end,
    News = weft_ring_table:difference(Ring, Old),
    State1 = State0#state{ring = Ring, forgotten = is_forgotten(Ring, State0),
                          via = still_asking(State0#state.via, State0#state.self, Ring)},
    {Working, Work} = work(State1),
    Owners = lists:usort([Node || {{owner, _}, {_, _, Node}} <- maps:to_list(News)]),
    First = [Node || Node <- Owners, length(Owners) =< 2,
                     lists:member(Node, peers(Working) -- Know)],
    {Random, State} = some(option(fanout, Working), (peers(Working) -- Know) -- First, Working),
    Remembers = State0#state.forgotten andalso not State1#state.forgotten,
    {State, views(State1) ++ [{view, forgotten, false} || Remembers]
         ++ [weft_ring_messages:news(Node, News, Ring) || Node <- First ++ Random] ++ Work}.

%% Who forgot, and was removed since, owns nothing and may join again.
is_forgotten(Ring, #state{self = Self, forgotten = Forgotten}) ->
    Forgotten andalso not weft_ring_table:is_out(Self, Ring).

%% Who was in the ring, and is not any more, does not ask for that by itself.
still_asking(Via, _Self, none) -> Via;
still_asking(Via, Self, Ring) ->
    case weft_ring_table:is_out(Self, Ring) of
        true -> Via;
        false -> none
    end.

views(#state{ring = none}) ->
    [];
views(#state{ring = Ring, via = Via} = State) ->
    [{view, asked, Via}, {view, ring, Ring}, {view, mine, mine(State)}].

%% Handoffs that are due begin, those that are not end, and who has left is gone.
work(State) -> work(State, stalled(State)).

work(#state{ring = none} = State, _Stalled) ->
    {State, []};
work(#state{forgotten = true, running = Running} = State, _Stalled) ->
    {State#state{running = []}, [{notice, {handoff, cancel, T}} || T <- Running]};
work(#state{running = Running, failed = Failed, neighbours = Up, options = Options} = State,
     Stalled) ->
    {GoOn, Begin} = weft_ring_slots:chosen(due(State), #{running => Running, failed => Failed,
                                                         stalled => Stalled, up => Up,
                                                         max => option(handoffs_max, State)}),
    Effects = [{notice, {handoff, cancel, T}} || T <- Running -- GoOn]
        ++ [{notice, {handoff, start, T}} || T <- Begin],
    Left = [T || T <- lists:usort(Stalled), lists:member(T, GoOn)],
    left(Effects, State#state{running = GoOn ++ Begin, options = Options#{stalled => Left}}).

%% Among the options, as is what else the state of earlier code has no place for.
stalled(#state{options = Options}) -> maps:get(stalled, Options, []).

due(#state{self = Self, ring = Ring}) ->
    weft_ring_table:transfers(Self, Ring).

left(Effects, #state{self = Self, ring = Ring} = State0) ->
    case weft_ring_table:member(Self, Ring) =:= leaving
        andalso weft_ring_table:owned(Self, Ring) =:= [] of
        true ->
            {State, More} = settled(State0),
            {State, Effects ++ More};
        false ->
            {State0#state{leave = no}, Effects}
    end.

settled(#state{leave = Leave, self = Self, ring = Ring, options = #{settle := Settle}} = State) ->
    case {Leave, Settle} of
        {no, true} -> {State#state{leave = asked}, [{notice, leave}]};
        {asked, true} -> {State, []};
        _ ->
            Version = weft_ring_table:version({Self, Ring}),
            learn(weft_ring_table:set_member(Self, gone, {keep, Version}, Ring), [],
                  State#state{leave = no})
    end.

%% --- mending ----------------------------------------------------------------------------------

mend(#state{ring = none} = State) ->
    {State, []};
mend(#state{ring = Ring, torn = Torn, self = Self} = State) ->
    case weft_ring_table:menders(Ring) of
        [] -> {State#state{torn = 0}, []};
        Menders ->
            case lists:member(Self, lists:sublist(Menders, Torn)) of
                true -> learn(weft_ring_plan:mend(Self, Ring), [], State#state{torn = 0});
                false -> {State#state{torn = Torn + 1}, []}
            end
    end.

%% --- forgetting -------------------------------------------------------------------------------

%% Asked at each look, until all have answered for the same ring; not while one of them is away. Who
%% has not answered is among the options, as above.
forget(#state{ring = none} = State) ->
    {State, []};
forget(#state{self = Self, ring = Ring, neighbours = Neighbours} = State) ->
    case weft_ring_table:witnesses(gone_max(State), Ring) of
        [Self | Others] -> asked(Others, Others -- Neighbours, State);
        _ -> {State, []}
    end.

asked(Others, [], #state{ring = Ring} = State) ->
    {Id, Hash} = {weft_ring_table:id(Ring), weft_ring_table:hash(Ring)},
    Left = left_of(Others, Hash, State),
    {Asked, Effects} = witnessed(Hash, Left, State),
    {Asked, [{send, Node, {ring, 1, {same, Id, Hash}}} || Node <- Left] ++ Effects};
asked(_Others, _Away, State) ->
    {State, []}.

left_of(_Others, Hash, #state{options = #{witnesses := {Hash, Left}}}) -> Left;
left_of(Others, _Hash, _State) -> Others.

%% What they change from now on is later than all in it.
witnessed(Hash, Left, #state{ring = Ring, options = Options} = State) ->
    case {weft_ring_table:hash(Ring), Left} of
        {Hash, []} -> learn(weft_ring_table:forget(gone_max(State) div 2, Ring), [], State);
        {Hash, _} -> {State#state{options = Options#{witnesses => {Hash, Left}}}, []};
        _ -> {State, []}
    end.

gone_max(#state{options = Options}) -> maps:get(gone_max, Options, ?GONE_MAX).

%% --- drawing ----------------------------------------------------------------------------------

option(Key, #state{options = Options}) ->
    maps:get(Key, Options).

some(Count, Nodes, #state{rand = Rand0} = State) ->
    {Drawn, Rand} = weft_choice:some(Count, Nodes, Rand0),
    {Drawn, State#state{rand = Rand}}.
