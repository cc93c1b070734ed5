%% SPDX-License-Identifier: Apache-2.0
%% @doc The line through points: one that all are on, and one between them.
-module(weft_report_line_tests).

-include_lib("eunit/include/eunit.hrl").

all_points_are_on_it_test() ->
    ?assertEqual({2.0, 1.0, 1.0}, weft_report_line:fit([{0, 1}, {1, 3}, {5, 11}])).

%% By hand: means 2 and 7/3, sums 2, 3 and 14/3.
it_is_between_them_test() ->
    {Slope, Height, R2} = weft_report_line:fit([{1, 1}, {2, 2}, {3, 4}]),
    [?assert(abs(Is - Expected) < 1.0e-9)
     || {Is, Expected} <- [{Slope, 3 / 2}, {Height, -2 / 3}, {R2, 27 / 28}]].
