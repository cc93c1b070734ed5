%% SPDX-License-Identifier: Apache-2.0
%% @doc Which actors are retired: they have ended, and all stores hold all that they did. For each
%% node this is one number, the last run that is retired; all runs before it are retired, too. So
%% it is remembered once for a store, and not in each key. A second number is the last run that was
%% retired while the node was said to be gone, so that nobody could ask its store.
%%
%% Tables follow each other, numbered by an *epoch*: each has all of the one before. A state that
%% was folded carries its table as a *tag*. The tag stands for all retired actors at once: the state
%% has seen all that they did. What an actor did is then either in what the state keeps of all of
%% them together (the sum of a counter, dots that live), or was undone.
-module(weft_crdt_retired).

-export([new/0, next/3, epoch/1, stamp/1, is_retired/2, is_gone/2, later/2, extends/2, is_valid/1,
         nodes/1]).
-export_type([table/0, tag/0, stamp/0, incarnation/0]).

-define(NODES_MAX, 10000).

-type incarnation() :: integer().
-opaque table() :: {Epoch :: non_neg_integer(),
                    #{node() => {Last :: incarnation(), LastGone :: incarnation() | none}}}.
-type tag() :: none | table().
-type stamp() :: {Epoch :: non_neg_integer(), Mark :: non_neg_integer()}.

%% @doc Nobody is retired.
-spec new() -> table().
new() -> {0, #{}}.

%% @doc The table that follows: of these nodes all runs up to these are retired, too. Some of them
%% are gone.
-spec next(#{node() => incarnation()}, Gone :: [node()], table()) ->
          {ok, table()} | {error, {too_many_retired, Max :: pos_integer()}}.
next(More, Gone, {Epoch, Nodes}) ->
    case maps:fold(fun(Node, Run, All) -> All#{Node => later_runs(Node, Run, Gone, All)} end,
                   Nodes, More) of
        All when map_size(All) > ?NODES_MAX -> {error, {too_many_retired, ?NODES_MAX}};
        All -> {ok, {Epoch + 1, All}}
    end.

later_runs(Node, Run, Gone, Nodes) ->
    {Before, LastGone} = maps:get(Node, Nodes, {Run, none}),
    Last = max(Run, Before),
    case lists:member(Node, Gone) of
        true -> {Last, Last};
        false -> {Last, LastGone}
    end.

-spec epoch(tag()) -> non_neg_integer().
epoch(none) -> 0;
epoch({Epoch, _}) -> Epoch.

%% @doc What messages carry of a table. Two tables of one epoch that differ have different marks.
-spec stamp(table()) -> stamp().
stamp({0, _}) -> {0, 0};
stamp({Epoch, Nodes}) -> {Epoch, erlang:phash2(Nodes, 1 bsl 32)}.

-spec is_retired(weft_crdt_type:actor(), tag()) -> boolean().
is_retired({Node, Incarnation}, {_, Nodes}) when is_integer(Incarnation) ->
    case Nodes of
        #{Node := {Last, _}} -> Incarnation =< Last;
        #{} -> false
    end;
is_retired(_, _) -> false.

%% @doc Whether the node of that run was gone when it was retired.
-spec is_gone(weft_crdt_type:actor(), table()) -> boolean().
is_gone({Node, Incarnation}, {_, Nodes}) ->
    case Nodes of
        #{Node := {_, Last}} when is_integer(Last) -> Incarnation =< Last;
        #{} -> false
    end.

%% @doc The one of the higher epoch.
-spec later(tag(), tag()) -> tag().
later(A, B) ->
    case epoch(A) >= epoch(B) of true -> A; false -> B end.

%% @doc Whether the first table comes after the second one and has all of it.
-spec extends(table(), table()) -> boolean().
extends({Epoch, Nodes}, {Before, Known}) ->
    Epoch > Before andalso lists:all(fun({Node, {Last, _}}) ->
                                         case Nodes of
                                             #{Node := {Now, _}} -> Now >= Last;
                                             #{} -> false
                                         end
                                     end, maps:to_list(Known)).

-spec is_valid(term()) -> boolean().
is_valid({Epoch, Nodes}) when is_integer(Epoch), Epoch > 0, map_size(Nodes) =< ?NODES_MAX ->
    lists:all(fun({Node, {Last, Gone}}) ->
                      is_atom(Node) andalso is_integer(Last)
                          andalso (Gone =:= none orelse is_integer(Gone));
                 (_) -> false
              end, maps:to_list(Nodes));
is_valid(_) -> false.

%% @doc How many nodes are in the table.
-spec nodes(table()) -> non_neg_integer().
nodes({_, Nodes}) -> map_size(Nodes).
