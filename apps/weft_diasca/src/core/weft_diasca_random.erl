%% SPDX-License-Identifier: Apache-2.0
%% @doc Chance for actors: a sequence for each, which follows from the seed of the run and the
%% identifier of the actor, and so is the same on any number of nodes. The state is an integer, so
%% it can be kept in a checkpoint. The generator is `mwc59' of OTP.
-module(weft_diasca_random).

-export([new/2, uniform/2, float/1, shuffle/2]).
-export_type([random/0]).

-type random() :: pos_integer().

-define(HALF, (1 bsl 29)).

%% @doc The sequence of an actor.
-spec new(Seed :: term(), weft_diasca_actor:id()) -> random().
new(Seed, Id) ->
    High = erlang:phash2({high, Seed, Id}, ?HALF),
    Low = erlang:phash2({low, Id, Seed}, ?HALF),
    warm(rand:mwc59_seed(High * ?HALF + Low), 4).

%% Neighbouring seeds give similar first numbers.
warm(Random, 0) -> Random;
warm(Random, Times) -> warm(rand:mwc59(Random), Times - 1).

%% @doc An integer from 1 to N, which is at most 2^32.
-spec uniform(N :: pos_integer(), random()) -> {pos_integer(), random()}.
uniform(N, Random0) when N > 0, N =< 1 bsl 32 ->
    Random = rand:mwc59(Random0),
    {((rand:mwc59_value32(Random) * N) bsr 32) + 1, Random}.

%% @doc A float from 0 up to 1.
-spec float(random()) -> {float(), random()}.
float(Random0) ->
    Random = rand:mwc59(Random0),
    {rand:mwc59_value32(Random) / (1 bsl 32), Random}.

%% @doc A list in an order of chance.
-spec shuffle([Element], random()) -> {[Element], random()}.
shuffle(List, Random) ->
    {Keyed, Last} = lists:mapfoldl(fun(Element, R0) ->
                                           {Key, R} = uniform(1 bsl 32, R0),
                                           {{Key, Element}, R}
                                   end, Random, List),
    {[Element || {_, Element} <- lists:keysort(1, Keyed)], Last}.
