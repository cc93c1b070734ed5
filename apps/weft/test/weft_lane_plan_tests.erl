%% SPDX-License-Identifier: Apache-2.0
-module(weft_lane_plan_tests).

-include_lib("eunit/include/eunit.hrl").

own_lanes_by_the_dialer_test() ->
    ?assertEqual({lane, <<>>, 1}, weft_lane_plan:missing(dialer, [{<<>>, 0}], 3, [])),
    ?assertEqual({lane, <<>>, 2}, weft_lane_plan:missing(dialer, [{<<>>, 0}, {<<>>, 1}], 3, [])),
    ?assertEqual(none, weft_lane_plan:missing(dialer, [{<<>>, 0}], 1, [])),
    ?assertEqual(none, weft_lane_plan:missing(listener, [{<<>>, 0}], 3, [])).

another_takes_the_place_of_the_first_test() ->
    ?assertEqual({lane, <<>>, 2}, weft_lane_plan:missing(dialer, [{<<>>, 1}], 2, [])),
    ?assertEqual(none, weft_lane_plan:missing(dialer, [{<<>>, 1}, {<<>>, 2}], 2, [])).

%% With 64 lanes, the most, no other one can take its place.
a_lane_has_an_index_that_the_peer_understands_test() ->
    Others = [{<<>>, Index} || Index <- lists:seq(1, 63)],
    ?assertEqual(none, weft_lane_plan:missing(dialer, Others, 64, [])).

lanes_of_channels_by_who_uses_them_test() ->
    Wanted = [{<<"bulk">>, 1}, {<<"bulk">>, 2}],
    Present = [{<<>>, 0}, {<<"bulk">>, 1}],
    [?assertEqual({lane, <<"bulk">>, 2}, weft_lane_plan:missing(Role, Present, 1, Wanted))
     || Role <- [dialer, listener]],
    ?assertEqual(none, weft_lane_plan:missing(dialer, Wanted ++ Present, 1, Wanted)).

%% However often it is asked, it comes to an end with just the lanes that were wanted.
all_lanes_come_up_test() ->
    Wanted = [{<<"a">>, N} || N <- lists:seq(1, 4)],
    Present = dial_all([{<<>>, 0}], Wanted),
    ?assertEqual(lists:sort([{<<>>, N} || N <- lists:seq(0, 7)] ++ Wanted), lists:sort(Present)).

dial_all(Present, Wanted) ->
    case weft_lane_plan:missing(dialer, Present, 8, Wanted) of
        none -> Present;
        {lane, Class, Index} -> dial_all([{Class, Index} | Present], Wanted)
    end.
