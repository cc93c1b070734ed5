%% SPDX-License-Identifier: Apache-2.0
%% @doc Messages that neighbours have named but that have not come: when a node is asked for one,
%% and which node.
%%
%% Pure part of `weft_plumtree_core'. The nodes are asked in the order in which they named the
%% message, one at a time. If none is left the message is forgotten, until it is named again.
-module(weft_plumtree_missing).

-export([new/0, named/5, arrived/2, is_missing/2, announcers/2, due/4, next_due_ms/1, count/1]).
-export_type([missing/0, announcer/0]).

-type node_id() :: weft_core:node_id().
%% The node that named it, and over how many links it would come from there.
-type announcer() :: {node_id(), Hops :: pos_integer()}.
%% When to ask next, and whom.
-type missing() :: #{weft_delivered:id() => {DueMs :: integer(), [announcer()]}}.

%% @doc Nothing is missing.
-spec new() -> missing().
new() -> #{}.

%% @doc A node names a message that has not come. If it is the first one to do so, and not too many
%% are missing, it is asked at that time; otherwise it is one of those that are asked later.
-spec named(weft_delivered:id(), announcer(), DueMs :: integer(), Max :: pos_integer(),
            missing()) -> {first | again | full, missing()}.
named(Id, Announcer, DueMs, Max, Missing) ->
    case Missing of
        #{Id := {FirstMs, Announcers}} ->
            {again, Missing#{Id := {FirstMs, Announcers ++ [Announcer]}}};
        #{} when map_size(Missing) < Max ->
            {first, Missing#{Id => {DueMs, [Announcer]}}};
        #{} ->
            {full, Missing}
    end.

%% @doc The message has come.
-spec arrived(weft_delivered:id(), missing()) -> missing().
arrived(Id, Missing) -> maps:remove(Id, Missing).

%% @doc Has it been named, and not come?
-spec is_missing(weft_delivered:id(), missing()) -> boolean().
is_missing(Id, Missing) -> is_map_key(Id, Missing).

%% @doc Who has named it and was not asked so far.
-spec announcers(weft_delivered:id(), missing()) -> [announcer()].
announcers(Id, Missing) ->
    {_DueMs, Announcers} = maps:get(Id, Missing, {none, []}),
    Announcers.

%% @doc Which node is asked for which message now, and by that is not asked again. Only neighbours
%% can be asked. The next one has its turn at NextMs.
-spec due(NowMs :: integer(), NextMs :: integer(), Neighbours :: #{node_id() => []}, missing()) ->
          {[{weft_delivered:id(), node_id()}], missing()}.
due(NowMs, NextMs, Neighbours, Missing) ->
    Due = lists:sort([Id || {Id, {DueMs, _}} <- maps:to_list(Missing), DueMs =< NowMs]),
    {Asked, Left} = lists:mapfoldl(fun(Id, Rest) -> next(Id, NextMs, Neighbours, Rest) end,
                                   Missing, Due),
    {lists:append(Asked), Left}.

next(Id, NextMs, Neighbours, Missing) ->
    case lists:dropwhile(fun({Node, _Hops}) -> not is_map_key(Node, Neighbours) end,
                         announcers(Id, Missing)) of
        [{Node, _Hops} | Later] -> {[{Id, Node}], Missing#{Id := {NextMs, Later}}};
        [] -> {[], maps:remove(Id, Missing)}
    end.

%% @doc When the next one is asked for.
-spec next_due_ms(missing()) -> integer() | none.
next_due_ms(Missing) when map_size(Missing) =:= 0 -> none;
next_due_ms(Missing) -> lists:min([DueMs || {DueMs, _} <- maps:values(Missing)]).

%% @doc How many there are.
-spec count(missing()) -> non_neg_integer().
count(Missing) -> map_size(Missing).
