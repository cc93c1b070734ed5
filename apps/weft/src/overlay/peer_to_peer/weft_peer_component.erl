%% SPDX-License-Identifier: Apache-2.0
%% @doc Finds out which part of the cluster this node is in. Two nodes with different answers are in
%% parts that are not connected, and should make a link.
%%
%% Pure part of a core. One node of each connected part is its <em>root</em>. It increments a
%% <em>beat</em> that is flooded over all links; every node follows the root with the least name.
%% When no new beat was heard for `timeout_ms' the root is gone. Then each node waits a random time
%% and claims to be the root, unless it has heard of another by then. The last beats of roots that
%% are gone are remembered, so that a stale beat is not followed. This holds for one incarnation of
%% a root only: if the clock was set back, its next start counts from a lower incarnation, and if
%% its beats were ignored it would take its neighbours for another part for ever. Not here: sending.
%% The owner floods what is `news'.
-module(weft_peer_component).

-export([new/2, heard/3, tick/2, claim/2, current/1, differs/2]).
-export_type([component/0, beat/0]).

-record(component, {
    self :: weft_core:node_id(),
    incarnation :: non_neg_integer(),
    count = 0 :: non_neg_integer(),
    beat = none :: none | beat(),
    heard_ms = 0 :: integer(),
    gone = [] :: [beat()],
    timeout_ms :: pos_integer()}).

-opaque component() :: #component{}.
-type beat() :: {Root :: weft_core:node_id(),
                 {Incarnation :: non_neg_integer(), Count :: non_neg_integer()}}.

-define(GONE_MAX, 8).

%% @doc In no part yet. Options: `incarnation' (0), `timeout_ms'.
-spec new(weft_core:node_id(), #{timeout_ms := pos_integer(), atom() => term()}) -> component().
new(Self, #{timeout_ms := TimeoutMs} = Options) ->
    #component{self = Self, incarnation = maps:get(incarnation, Options, 0),
               timeout_ms = TimeoutMs}.

%% @doc A beat was heard from a neighbour. If it is `news' it is to be passed on.
-spec heard(beat(), NowMs :: integer(), component()) -> {news | old, component()}.
heard({Self, _}, _NowMs, #component{self = Self} = Component) ->
    {old, Component};
heard(Beat, NowMs, #component{beat = Own} = Component) ->
    case is_gone(Beat, Component) orelse is_behind(Beat, Own) of
        true -> {old, Component};
        false -> {news, Component#component{beat = Beat, heard_ms = NowMs}}
    end.

is_behind(_Beat, none) -> false;
is_behind({Root, Number}, {Root, Last}) -> Number =< Last;
is_behind({Root, _}, {Other, _}) -> Other < Root.

is_gone({Root, {Incarnation, Count}}, #component{gone = Gone}) ->
    lists:any(fun({R, {I, Last}}) -> {R, I} =:= {Root, Incarnation} andalso Count =< Last end,
              Gone).

%% @doc To be called at regular intervals, several in `timeout_ms'. `{beat, Beat}': this node is the
%% root, flood the beat. `rootless': there is no root (any more); call claim/2 after a random time.
-spec tick(NowMs :: integer(), component()) -> {{beat, beat()} | rootless | quiet, component()}.
tick(NowMs, #component{self = Self, beat = {Self, _}} = Component) ->
    next(NowMs, Component);
tick(_NowMs, #component{beat = none} = Component) ->
    {rootless, Component};
tick(NowMs, #component{beat = Beat, heard_ms = HeardMs, gone = Gone} = Component) ->
    case NowMs - HeardMs > Component#component.timeout_ms of
        true -> {rootless, Component#component{beat = none, gone = remember(Beat, Gone)}};
        false -> {quiet, Component}
    end.

remember({Root, {Incarnation, _}} = Beat, Gone) ->
    Others = [Other || {R, {I, _}} = Other <- Gone, {R, I} =/= {Root, Incarnation}],
    lists:sublist([Beat | Others], ?GONE_MAX).

%% @doc This node becomes the root, if there still is none.
-spec claim(NowMs :: integer(), component()) -> {{beat, beat()} | quiet, component()}.
claim(NowMs, #component{beat = none} = Component) -> next(NowMs, Component);
claim(_NowMs, Component) -> {quiet, Component}.

next(NowMs, #component{self = Self, incarnation = Incarnation, count = Count} = Component) ->
    Beat = {Self, {Incarnation, Count + 1}},
    {{beat, Beat}, Component#component{count = Count + 1, beat = Beat, heard_ms = NowMs}}.

%% @doc The last beat of our part.
-spec current(component()) -> none | beat().
current(#component{beat = Beat}) ->
    Beat.

%% @doc Whether a node that follows this beat is in another part. Not known (false) while one of the
%% two has no root.
-spec differs(none | beat(), component()) -> boolean().
differs({Root, _}, #component{beat = {Own, _}}) -> Root =/= Own;
differs(_, _) -> false.
