%% SPDX-License-Identifier: Apache-2.0
%% @doc The random numbers of an ant, as a value. `cyclic' ones are the same ten in turn, from the
%% first on in each generation: not random at all, for timing and for tests.
-module(weft_aco_random).

-export([new/1, generation/1, next/1]).
-export_type([random/0, seed/0]).

-type seed() :: cyclic | {integer(), integer(), integer()}.
-opaque random() :: {cyclic, 0..9} | {rand, rand:state()}.

-spec new(seed()) -> random().
new(cyclic) -> {cyclic, 0};
new(Seed) -> {rand, rand:seed_s(exsss, Seed)}.

%% @doc Before each generation.
-spec generation(random()) -> random().
generation({cyclic, _}) -> {cyclic, 0};
generation(Random) -> Random.

%% @doc A number from 0 to 1.
-spec next(random()) -> {float(), random()}.
next({cyclic, Position}) ->
    {0.09 + 0.1 * Position, {cyclic, (Position + 1) rem 10}};
next({rand, State}) ->
    {Number, Next} = rand:uniform_s(State),
    {Number, {rand, Next}}.
