%% SPDX-License-Identifier: Apache-2.0
%% @doc Whole tables: how nodes find out that they know different things, and how one learns all
%% that another one knows. Pure; a part of `weft_swim_core' with its state.
%%
%% Most news spreads by gossip, which loses some of it: a node that was away, or a cluster that was
%% cut in two, lacks more than gossip still has. So tables are compared by a digest: when a link
%% comes up, and from time to time with a random member and with a dead one, which may be alive
%% again. That is soon after the start, when most news is lost, and then less and less often. Who
%% finds a difference sends its table (`pull'), which the other one answers with what it lacks
%% (`push'). A node that knows no other one asks seeds and neighbours in the same way until it does:
%% this is how it joins.
%%
%% Not here: what a node makes of the entries that it gets (`weft_swim_core').
-module(weft_swim_sync).

-export([join/1, introduce/2, compare/1, later/1, heard_digest/4, answer/4]).

-import(weft_swim_state, [send/3, tell/3, emit/2, choose/3, draw/2, reachable/1, is_alone/1]).

-include("weft_swim_state.hrl").

-define(SEEDS_AT_ONCE, 3).

-type state() :: weft_swim_state:state().

%% @doc Asks some seeds and neighbours, and again later, unless another member is known.
-spec join(state()) -> state().
join(#state{seeds = Seeds, linked = Linked, options = #{join_interval_ms := Ms}} = State0) ->
    case is_alone(State0) of
        false ->
            State0;
        true ->
            Candidates = lists:foldl(fun weft_random_set:add/2, Linked, Seeds),
            {Chosen, State} = choose(?SEEDS_AT_ONCE, Candidates, State0),
            emit({after_ms, Ms, join}, lists:foldl(fun pull/2, State, Chosen))
    end.

%% @doc A link came up. What the other knows of this node may be old.
-spec introduce(weft_core:node_id(), state()) -> state().
introduce(Node, State) ->
    case is_alone(State) of
        true -> pull(Node, State);
        false -> digest(Node, State)
    end.

%% @doc Compares tables with some member, and with one that is dead.
-spec compare(state()) -> state().
compare(#state{table = Table} = State0) ->
    {Living, State1} = choose(1, reachable(State0), State0),
    {Dead, State} = choose(1, weft_swim_table:dead(Table), State1),
    lists:foldl(fun digest/2, State, Living ++ Dead).

%% @doc Tables are compared again over 3/4 to 5/4 of the interval, so that nodes do not act in step.
-spec later(state()) -> state().
later(#state{sync_ms = Ms, options = #{sync_interval_ms := MaxMs}} = State0) ->
    {JitterMs, State} = draw(max(1, Ms div 2), State0),
    emit({after_ms, Ms - Ms div 4 + JitterMs, sync}, State#state{sync_ms = min(MaxMs, 2 * Ms)}).

digest(Node, #state{incarnation = Incarnation, table = Table} = State) ->
    send(Node, {digest, Incarnation, weft_swim_table:digest(Table)}, State).

%% @doc The table of that node has this digest. If it is another one, so are the tables, and this
%% node sends its own, if it did not so a moment ago.
-spec heard_digest({Count :: pos_integer(), Hash :: non_neg_integer()}, weft_core:node_id(),
                   NowMs :: integer(), state()) -> state().
heard_digest(Digest, From, NowMs, #state{table = Table} = State) ->
    case weft_swim_table:digest(Table) of
        Digest -> State;
        _Differs -> pull_in_time(From, NowMs, tell_dead(From, State))
    end.

tell_dead(From, State) ->
    case tell(From, gossip, State) of
        [] -> State;
        _ -> send(From, gossip, State)
    end.

%% Differences are usual while many join; gossip removes most of them.
pull_in_time(From, NowMs, #state{pull_at_ms = AtMs, options = #{sync_gap_ms := GapMs}} = State) ->
    case AtMs =:= undefined orelse NowMs >= AtMs of
        true -> pull(From, State#state{pull_at_ms = NowMs + GapMs});
        false -> State
    end.

pull(Node, #state{table = Table, options = #{sync_entries := Count}} = State) ->
    lists:foldl(fun({Range, Part}, S) -> send(Node, {pull, Range, Part}, S) end, State,
                weft_swim_table:parts(Count, Table)).

%% @doc That node knows these entries of a range: it gets what it lacks.
-spec answer(weft_swim_table:range(), [weft_swim_table:entry()], weft_core:node_id(), state()) ->
          state().
answer(Range, Entries, From, #state{table = Table} = State) ->
    push(From, weft_swim_table:newer_than(Entries, Range, Table), State).

push(_Node, [], State) ->
    State;
push(Node, Entries, #state{options = #{sync_entries := Count}} = State) ->
    lists:foldl(fun(Part, S) -> send(Node, {push, Part}, S) end, State,
                weft_swim_table:split(Count, Entries)).
