%% SPDX-License-Identifier: Apache-2.0
%% @doc A counter that only grows. State: what each actor has counted; the greater number is the
%% later one. Operations: `increment', `{increment, By}'. Value: the sum.
-module(weft_crdt_gcounter).
-behaviour(weft_crdt_type).

-export([new/0, mutate/3, merge/2, difference/2, value/1, pack/1, unpack/2, digest/1,
         difference_to_digest/3, retire/2, ended/2, actors/1, tag/1]).

%% @private
new() -> #{}.

%% @private
mutate(increment, Who, State) -> mutate({increment, 1}, Who, State);
mutate({increment, 0}, _, _) -> {ok, #{}};
mutate({increment, By}, {Actor, _}, State) when is_integer(By), By > 0 ->
    {ok, #{Actor => maps:get(Actor, State, 0) + By}};
mutate(_, _, _) -> {error, bad_operation}.

%% @private
merge(A, B) -> weft_crdt_counts:merge(A, B, fun max/2).

%% @private
difference(A, B) -> weft_crdt_counts:difference(A, B, fun max/2).

%% @private
value(State) -> lists:sum(weft_crdt_counts:all(State)).

%% @private
pack(State) -> weft_crdt_counts:pack(State).

%% @private
unpack(Term, Table) -> weft_crdt_counts:unpack(Term, Table, fun is_count/1).

is_count(N) -> is_integer(N) andalso N > 0.

%% @private
digest(State) -> pack(State).

%% @private
difference_to_digest(State, Digest, Table) ->
    case unpack(Digest, Table) of
        {ok, Other} -> {ok, difference(State, Other)};
        error -> error
    end.

%% @private
retire(Table, State) -> weft_crdt_counts:retire(Table, State, fun erlang:'+'/2).

%% @private
ended(Table, State) -> weft_crdt_counts:ended(Table, State).

%% @private
actors(State) -> weft_crdt_counts:actors(State).

%% @private
tag(State) -> weft_crdt_counts:tag(State).
