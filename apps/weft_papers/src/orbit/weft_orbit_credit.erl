%% SPDX-License-Identifier: Apache-2.0
%% @doc Credit, by which a computation that is spread over processes knows that it is over
%% (F. Mattern, "Global quiescence detection based on credit distribution and recovery", 1989).
%%
%% All credit together is one. It begins with the first message; each message carries some, who
%% works holds what came with messages, and gives it back when idle. When all of it is back nobody
%% works and no message is under way. Credit is a sum of different powers of two, so it is exact,
%% and can be divided for ever: an atom K is 2^-K, a credit is the list of its atoms, the smallest
%% part (largest K) first; [] is zero and [0] is one.
-module(weft_orbit_credit).

-export([zero/0, one/0, is_one/1, add/2, merge/2, take/1]).
-export_type([part/0, credit/0]).

-type part() :: non_neg_integer().
-type credit() :: [part()].

-spec zero() -> credit().
zero() -> [].

-spec one() -> part().
one() -> 0.

-spec is_one(credit()) -> boolean().
is_one(Credit) -> Credit =:= [0].

%% @doc Adds a part. Two equal ones are one of twice the size.
-spec add(part(), credit()) -> credit().
add(Part, [Smaller | Rest]) when Smaller > Part -> [Smaller | add(Part, Rest)];
add(Part, [Part | Rest]) -> add(Part - 1, Rest);
add(Part, Credit) -> [Part | Credit].

%% @doc The sum of two credits.
-spec merge(credit(), credit()) -> credit().
merge(Credit, Other) ->
    lists:foldl(fun add/2, Other, Credit).

%% @doc Takes a part for a message and leaves some: the last part is divided.
-spec take(credit()) -> {part(), credit()}.
take([Part]) -> {Part + 1, [Part + 1]};
take([Part | [_ | _] = Rest]) -> {Part, Rest}.
