%% SPDX-License-Identifier: Apache-2.0
-module(weft_orbit_credit_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(RUNS, 500).

properties_test_() ->
    [{atom_to_list(Name),
      {timeout, 60, ?_assertEqual(true, proper:quickcheck(Property, [quiet, {numtests, ?RUNS}]))}}
     || {Name, Property} <- [{the_sum_is_exact, prop_sum()}, {nothing_is_lost, prop_sharing()},
                             {a_part_is_left, prop_take()}]].

%% Parts as numbers over a common denominator.
-define(DEEPEST, 40).

value(Credit) -> lists:sum([1 bsl (?DEEPEST - Part) || Part <- Credit]).

credit() ->
    ?LET(Parts, list(range(1, ?DEEPEST - 1)), weft_orbit_credit:merge(Parts, [])).

prop_sum() ->
    ?FORALL({Credit, Parts}, {credit(), list(range(1, ?DEEPEST - 1))},
            begin
                Sum = weft_orbit_credit:merge(Parts, Credit),
                value(Sum) =:= value(Credit) + value(Parts)
                    andalso Sum =:= lists:reverse(lists:usort(Sum))
            end).

prop_take() ->
    ?FORALL(Credit, ?SUCHTHAT(C, credit(), C =/= []),
            begin
                {Part, Rest} = weft_orbit_credit:take(Credit),
                Rest =/= [] andalso value([Part]) + value(Rest) =:= value(Credit)
            end).

%% Holders give each other parts, in any order, and all give theirs back at last.
prop_sharing() ->
    ?FORALL(Moves, list({range(0, 4), range(0, 4)}),
            begin
                First = #{0 => weft_orbit_credit:add(weft_orbit_credit:one(),
                                                     weft_orbit_credit:zero())},
                Holders = lists:foldl(fun move/2, First, Moves),
                Sum = lists:foldl(fun weft_orbit_credit:merge/2, weft_orbit_credit:zero(),
                                  maps:values(Holders)),
                weft_orbit_credit:is_one(Sum)
                    andalso (maps:size(Holders) =:= 1
                             orelse not lists:any(fun weft_orbit_credit:is_one/1,
                                                  maps:values(Holders)))
            end).

move({From, To}, Holders) ->
    case maps:get(From, Holders, []) of
        [] -> Holders;
        Credit ->
            {Part, Rest} = weft_orbit_credit:take(Credit),
            Left = Holders#{From => Rest},
            Left#{To => weft_orbit_credit:add(Part, maps:get(To, Left, []))}
    end.

one_is_only_one_test() ->
    ?assert(weft_orbit_credit:is_one(weft_orbit_credit:merge([1, 2, 3, 3], []))),
    ?assertNot(weft_orbit_credit:is_one([1, 2, 3])),
    ?assertNot(weft_orbit_credit:is_one(weft_orbit_credit:zero())).
