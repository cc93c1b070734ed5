%% SPDX-License-Identifier: Apache-2.0
%% @doc The functions whose orbit is computed: five of them on the numbers below the size of the
%% space, as in the program Orbit of the RELEASE project (N. Chechina et al., "Evaluating Scalable
%% Distributed Erlang for Scalability and Reliability", IEEE TPDS 28(8), 2017, section 4.1). A set
%% of generators is a list of their numbers: [1, 2, 4] is what is called g124 there. A generator may
%% also be a function of a user (`weft_orbit_own').
-module(weft_orbit_generators).

-export([all/0, is_generator/1, images/3, name/1]).
-export_type([set/0]).

-type set() :: [1..5 | {module(), Function :: atom()}].

%% @doc The largest set of the paper.
-spec all() -> set().
all() -> [1, 2, 3, 4, 5].

%% @doc One of these, or a function that is there.
-spec is_generator(term()) -> boolean().
is_generator({Module, Function}) ->
    erlang:function_exported(Module, Function, 1);
is_generator(Generator) ->
    lists:member(Generator, all()).

%% @doc The images of X by each generator, in a space of Size numbers.
-spec images(set(), non_neg_integer(), Size :: pos_integer()) -> [non_neg_integer()].
images(Set, X, Size) ->
    [abs(image(Generator, X)) rem Size || Generator <- Set].

image(1, X) -> fib(X rem 16) + X;
image(2, X) -> fib(5 + X rem 16) + 2 * X * X + 5 * X - 1;
image(3, X) -> fib(10 + X rem 16) - X * X * X + 8 * X;
image(4, X) -> fib(fourth(X rem 100)) - 1;
image(5, X) -> fib(fifth(X rem 1000)) + 1;
image({Module, Function}, X) ->
    case Module:Function(X) of
        Number when is_integer(Number) -> Number;
        Other -> exit({not_a_whole_number, {Module, Function, X}, Other})
    end.

%% Few vertices are expensive, so that work is uneven.
fourth(C) when C < 49 -> 11;
fourth(C) when C < 98 -> 19;
fourth(_) -> 27.

fifth(C) when C < 900 -> 10;
fifth(C) when C < 999 -> 20;
fifth(_) -> 30.

%% Slow on purpose: this is the work that a vertex costs.
fib(N) when N < 2 -> 1;
fib(N) -> fib(N - 1) + fib(N - 2).

%% @doc The name of a set of the paper.
-spec name([1..5]) -> string().
name(Set) -> "g" ++ [$0 + Generator || Generator <- Set].
