%% SPDX-License-Identifier: Apache-2.0
%% @doc What counters are made of: for each actor a count that only grows. What retired actors have
%% counted is kept as one sum, at the place `retired', with its table.
%%
%% So a state is a number for each actor, or *folded* for retired ones, which is more than any
%% number; to merge is to take the greater one for each. A sum is the same in all states of one
%% table, and has all of those of earlier tables.
-module(weft_crdt_counts).

-export([merge/3, difference/3, all/1, pack/1, unpack/3, retire/3, ended/2, actors/1, tag/1]).
-export_type([counts/0]).

-type count() :: term().
-type counts() :: #{weft_crdt_type:actor() => count(),
                    retired => {weft_crdt_retired:table(), count()}}.
-type join() :: fun((count(), count()) -> count()).

%% @doc For each actor what both know, joined.
-spec merge(counts(), counts(), join()) -> counts().
merge(A, B, Join) ->
    case {fold_of(A), fold_of(B)} of
        {none, none} -> joined(A, B, Join);
        {{Table, N}, {Table, M}} -> (folded(A, Table, B, Join))#{retired := {Table, Join(N, M)}};
        {InA, InB} ->
            case weft_crdt_retired:epoch(table(InA)) > weft_crdt_retired:epoch(table(InB)) of
                true -> folded(A, table(InA), B, Join);
                false -> folded(B, table(InB), A, Join)
            end
    end.

folded(Later, Table, Other, Join) -> joined(Later, without(Table, Other), Join).

without(none, Counts) ->
    maps:remove(retired, Counts);
without(Table, Counts) ->
    maps:filter(fun(Actor, _) -> not weft_crdt_retired:is_retired(Actor, Table) end,
                maps:remove(retired, Counts)).

joined(A, B, Join) when map_size(A) < map_size(B) -> joined(B, A, Join);
joined(A, B, Join) ->
    maps:fold(fun(Actor, N, M) when is_map_key(Actor, M) -> M#{Actor := Join(N, map_get(Actor, M))};
                 (Actor, N, M) -> M#{Actor => N}
              end, A, B).

fold_of(#{retired := Fold}) -> Fold;
fold_of(#{}) -> none.

table(none) -> none;
table({Table, _}) -> Table.

%% @doc The table of the retired actors that are folded.
-spec tag(counts()) -> weft_crdt_retired:tag().
tag(Counts) -> table(fold_of(Counts)).

%% @doc What the first one adds to the second one.
-spec difference(counts(), counts(), join()) -> counts().
difference(A, B, Join) ->
    {InA, InB} = {fold_of(A), fold_of(B)},
    Adds = fun(Actor, N) ->
               case B of
                   #{Actor := M} -> Join(N, M) =/= M;
                   #{} -> true
               end
           end,
    More = maps:filter(Adds, without(table(InB), A)),
    case weft_crdt_retired:epoch(table(InA)) > weft_crdt_retired:epoch(table(InB)) of
        true -> More#{retired => InA};
        false -> More
    end.

%% @doc All counts.
-spec all(counts()) -> [count()].
all(#{retired := {_, N}} = Counts) -> [N | maps:values(maps:remove(retired, Counts))];
all(Counts) -> maps:values(Counts).

-spec actors(counts()) -> [weft_crdt_type:actor()].
actors(Counts) -> maps:keys(maps:remove(retired, Counts)).

%% @doc What is sent.
-spec pack(counts()) -> term().
pack(#{retired := {Table, N}} = Counts) ->
    Counts#{retired := {weft_crdt_retired:epoch(Table), N}};
pack(Counts) -> Counts.

%% @doc The counts that were sent. A sum of another table than this one is left out: it comes again
%% from a store that is as far.
-spec unpack(term(), weft_crdt_retired:table(), fun((term()) -> boolean())) ->
          {ok, counts()} | error.
unpack(Term, Table, IsCount) when is_map(Term) ->
    {Fold, Counts} = case maps:take(retired, Term) of
                         error -> {none, Term};
                         Taken -> Taken
                     end,
    case lists:all(IsCount, maps:values(Counts)) of
        true -> with_fold(Fold, Counts, Table, IsCount);
        false -> error
    end;
unpack(_, _, _) -> error.

with_fold(none, Counts, _, _) -> {ok, Counts};
with_fold({Epoch, N}, Counts, Table, IsCount) when is_integer(Epoch), Epoch > 0 ->
    case {IsCount(N), weft_crdt_retired:epoch(Table)} of
        {false, _} -> error;
        {true, Epoch} -> {ok, (without(Table, Counts))#{retired => {Table, N}}};
        {true, _} -> {ok, Counts}
    end;
with_fold(_, _, _, _) -> error.

%% @doc Folds the counts of retired actors, and the sum of those before. Only of a state that has
%% all that they counted.
-spec retire(weft_crdt_retired:table(), counts(), join()) -> counts().
retire(Table, Counts, Plus) ->
    case {without(Table, Counts), fold_of(Counts)} of
        {Counts, none} -> Counts;
        {Left, Fold} ->
            Ended = maps:values(maps:without(maps:keys(Left), maps:remove(retired, Counts))),
            [First | More] = [N || {_, N} <- [Fold]] ++ Ended,
            Left#{retired => {Table, lists:foldl(Plus, First, More)}}
    end.

%% @doc What the state holds of actors that are retired in this table; `none' if nothing.
-spec ended(weft_crdt_retired:table(), counts()) -> none | term().
ended(Table, Counts) ->
    case {without(Table, Counts), fold_of(Counts)} of
        {Counts, none} -> none;
        {Left, _} -> maps:without(maps:keys(Left), pack(Counts))
    end.
