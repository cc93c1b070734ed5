%% SPDX-License-Identifier: Apache-2.0
%% @doc Sizes of orbits that other programs have found, for the tests of `weft_orbit'.
-module(weft_orbit_sizes).

-export([of_each_set/0, generators/1]).

%% @doc The digits of the generators, with the size of the orbit for each of four spaces.
-spec of_each_set() -> [{string(), [{Space :: pos_integer(), Size :: pos_integer()}]}].
of_each_set() ->
    [{Digits, lists:zip([11, 157, 1000, 10000], Sizes)} || {Digits, Sizes} <- sizes()].

%% @doc The set that digits stand for.
-spec generators(string()) -> weft_orbit_generators:set().
generators(Digits) -> [Digit - $0 || Digit <- Digits].

sizes() ->
    [{"1", [5, 34, 213, 3125]}, {"2", [5, 6, 11, 8]}, {"3", [7, 11, 10, 11]},
     {"4", [1, 2, 2, 2]}, {"5", [2, 2, 2, 2]}, {"12", [10, 131, 853, 6886]},
     {"13", [10, 139, 895, 9122]}, {"14", [5, 51, 219, 4380]}, {"15", [5, 35, 214, 4376]},
     {"23", [11, 116, 447, 2751]}, {"24", [5, 33, 38, 224]}, {"25", [5, 12, 33, 67]},
     {"34", [7, 32, 32, 41]}, {"35", [8, 16, 61, 40]}, {"45", [2, 4, 4, 4]},
     {"123", [11, 151, 968, 9123]}, {"124", [10, 133, 854, 6889]}, {"125", [10, 132, 853, 6889]},
     {"134", [10, 139, 895, 9122]}, {"135", [10, 139, 895, 9122]},
     {"145", [5, 52, 220, 4381]}, {"234", [11, 119, 447, 2752]}, {"235", [11, 116, 448, 2760]},
     {"245", [5, 34, 48, 275]}, {"345", [8, 33, 74, 62]}, {"1234", [11, 151, 968, 9123]},
     {"1235", [11, 151, 968, 9123]}, {"1245", [10, 134, 854, 6892]},
     {"1345", [10, 139, 895, 9122]}, {"2345", [11, 119, 448, 2761]},
     {"12345", [11, 151, 968, 9123]}].
