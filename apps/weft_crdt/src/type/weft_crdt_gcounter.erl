%% SPDX-License-Identifier: Apache-2.0
%% @doc A counter that only grows. State: what each actor has counted; the greater number is the
%% later one. Operations: `increment', `{increment, By}'. Value: the sum.
-module(weft_crdt_gcounter).
-behaviour(weft_crdt_type).

-export([new/0, mutate/3, merge/2, difference/2, value/1, pack/1, unpack/1, digest/1,
         difference_to_digest/2]).

%% @private
new() -> #{}.

%% @private
mutate(increment, Who, State) -> mutate({increment, 1}, Who, State);
mutate({increment, 0}, _, _) -> {ok, #{}};
mutate({increment, By}, {Actor, _}, State) when is_integer(By), By > 0 ->
    {ok, #{Actor => maps:get(Actor, State, 0) + By}};
mutate(_, _, _) -> {error, bad_operation}.

%% @private
merge(A, B) when map_size(A) < map_size(B) -> merge(B, A);
merge(A, B) -> maps:fold(fun(Actor, N, M) -> M#{Actor => max(N, maps:get(Actor, M, 0))} end, A, B).

%% @private
difference(A, B) -> maps:filter(fun(Actor, N) -> N > maps:get(Actor, B, 0) end, A).

%% @private
value(State) -> lists:sum(maps:values(State)).

%% @private
pack(State) -> State.

%% @private
unpack(Term) ->
    case is_map(Term) andalso lists:all(fun(N) -> is_integer(N) andalso N > 0 end,
                                        maps:values(Term)) of
        true -> {ok, Term};
        false -> error
    end.

%% @private
digest(State) -> State.

%% @private
difference_to_digest(State, Digest) ->
    case unpack(Digest) of
        {ok, Other} -> {ok, difference(State, Other)};
        error -> error
    end.
