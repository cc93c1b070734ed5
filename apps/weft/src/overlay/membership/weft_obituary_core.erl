%% SPDX-License-Identifier: Apache-2.0
%% @doc Tells all nodes that a node has ended. A neighbour of that node sees its end at once; nodes
%% whose sessions with it pass through gateways could only find out by waiting.
%%
%% There are two kinds of news, both about one incarnation of a node:
%% <ul>
%% <li>`{died, Node, Incarnation}': it has ended, for certain (docs/decisions/0004).</li>
%% <li>`{departed, Node, Incarnation, Witness}': the host of a node that can not be dialled has
%%     closed its link to the node Witness, and the node did not come back there. It may be alive
%%     elsewhere. The witness makes each such event a different piece of news.</li>
%% </ul>
%% News is flooded: what is new is passed on to all neighbours except the one that it came from, and
%% what is still kept is told to a neighbour whose link comes up. The first piece is passed on at
%% once, those of the next `batch_ms' together: each node that had a link to one that departs is a
%% witness. News carries its age and is forgotten everywhere `keep_ms' after the event, so that none
%% circulates for ever. Of more than `kept_max' pieces the oldest are forgotten first. A node does
%% not believe news of its own end.
%%
%% Views: `{died, Node, Incarnation} => Ms', while the news is kept. Notices: each piece of news,
%% once. Not here: what becomes of sessions (`weft_stream').
-module(weft_obituary_core).
-behaviour(weft_core).

-export([init/2, handle/3]).
-export_type([news/0]).

-type news() :: {died, weft_core:node_id(), Incarnation :: non_neg_integer()}
              | {departed, weft_core:node_id(), Incarnation :: non_neg_integer(),
                 Witness :: term()}.
-record(state, {self :: weft_core:node_id(),
                neighbours = [] :: [weft_core:node_id()],
                %% When it happened, by our clock.
                kept = #{} :: #{news() => AtMs :: integer()},
                %% Kept, and not passed on yet, with where it came from.
                waiting = #{} :: #{news() => From :: weft_core:node_id() | none},
                is_holding = false :: boolean(),
                batch_ms :: pos_integer(),
                keep_ms :: pos_integer(),
                kept_max :: pos_integer(),
                is_ticking = false :: boolean()}).

-define(VERSION, 1).

%% @doc See `weft_core'. Options: `keep_ms' (30000), `kept_max' (1000), `batch_ms' (10).
-spec init(weft_core:node_id(), weft_core:options()) -> {#state{}, weft_core:effects()}.
init(Self, Options) ->
    {#state{self = Self, keep_ms = maps:get(keep_ms, Options, 30000),
            kept_max = maps:get(kept_max, Options, 1000),
            batch_ms = maps:get(batch_ms, Options, 10)}, []}.

%% @doc See `weft_core'. News from this node's own link layer comes as notices.
-spec handle(weft_core:event(), integer(), #state{}) -> {#state{}, weft_core:effects()}.
handle({notice, News}, NowMs, State) ->
    learn([{News, 0}], none, NowMs, State);
handle({message, From, {?VERSION, {news, Aged}}}, NowMs, State) ->
    learn(Aged, From, NowMs, State);
handle({message, _From, _NewerVersion}, _NowMs, State) ->
    {State, []};
handle({neighbour_up, Node}, NowMs, #state{neighbours = Neighbours} = State) ->
    {State#state{neighbours = lists:usort([Node | Neighbours])},
     told([Node], kept(NowMs, State))};
handle({neighbour_down, Node, _Reason}, _NowMs, #state{neighbours = Neighbours} = State) ->
    {State#state{neighbours = lists:delete(Node, Neighbours)}, []};
handle({timer, flush}, NowMs, State) ->
    flush(NowMs, State#state{is_holding = false});
handle({timer, expire}, NowMs, State) ->
    ticking(expire(NowMs, State#state{is_ticking = false})).

kept(NowMs, #state{kept = Kept}) ->
    [{News, NowMs - AtMs} || {News, AtMs} <- lists:sort(maps:to_list(Kept))].

learn(Aged, From, NowMs, #state{kept = Kept0, waiting = Waiting0} = State) ->
    New = [One || One <- Aged, is_new(One, State)],
    Kept = lists:foldl(fun({News, AgeMs}, K) -> K#{News => NowMs - AgeMs} end, Kept0, New),
    Waiting = lists:foldl(fun({News, _}, W) -> W#{News => From} end, Waiting0, New),
    {Learned, Forgotten} = bound(State#state{kept = Kept, waiting = Waiting}),
    {Flushed, Told} = flush(NowMs, Learned),
    {Ticking, Timer} = ticking({Flushed, []}),
    {Ticking, lists:append([shown(News, NowMs - AgeMs) || {News, AgeMs} <- New])
         ++ Forgotten ++ Told ++ Timer}.

%% Unless something was passed on a moment ago.
flush(_NowMs, #state{is_holding = true} = State) ->
    {State, []};
flush(NowMs, #state{neighbours = Neighbours, waiting = Waiting, kept = Kept} = State) ->
    Aged = [{From, {News, NowMs - map_get(News, Kept)}}
            || {News, From} <- lists:sort(maps:to_list(Waiting))],
    case lists:append([told([Node], [One || {From, One} <- Aged, From =/= Node])
                       || Node <- Neighbours]) of
        [] -> {State#state{waiting = #{}}, []};
        Told -> {State#state{waiting = #{}, is_holding = true},
                 Told ++ [{after_ms, State#state.batch_ms, flush}]}
    end.

is_new({News, AgeMs}, #state{self = Self, kept = Kept, keep_ms = KeepMs}) ->
    AgeMs < KeepMs andalso element(2, News) =/= Self andalso not is_map_key(News, Kept).

shown({died, _, _} = News, AtMs) -> [{view, News, AtMs}, {notice, News}];
shown(News, _AtMs) -> [{notice, News}].

told(_Nodes, []) -> [];
told(Nodes, Aged) -> [{send, Node, {?VERSION, {news, Aged}}} || Node <- Nodes].

bound(#state{kept = Kept, kept_max = Max} = State) when map_size(Kept) =< Max ->
    {State, []};
bound(#state{kept = Kept, kept_max = Max} = State) ->
    OldestFirst = lists:sort([{AtMs, News} || {News, AtMs} <- maps:to_list(Kept)]),
    forget([News || {_, News} <- lists:sublist(OldestFirst, map_size(Kept) - Max)], State).

expire(NowMs, #state{kept = Kept, keep_ms = KeepMs} = State) ->
    forget([News || {News, AtMs} <- lists:sort(maps:to_list(Kept)), NowMs - AtMs >= KeepMs], State).

forget(Old, #state{kept = Kept, waiting = Waiting} = State) ->
    {State#state{kept = maps:without(Old, Kept), waiting = maps:without(Old, Waiting)},
     [{view, News, delete} || {died, _, _} = News <- Old]}.

%% While anything is kept a timer looks for what is to be forgotten.
ticking({#state{kept = Kept, is_ticking = false, keep_ms = KeepMs} = State, Effects})
  when map_size(Kept) > 0 ->
    {State#state{is_ticking = true}, Effects ++ [{after_ms, max(1, KeepMs div 4), expire}]};
ticking(Unchanged) ->
    Unchanged.
