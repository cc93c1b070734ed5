%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_said_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TEXT, "orbit on weft, groups: 7 of 12 nodes, 1.50 ms with 2, 20 µs with 12").

what_a_text_says_is_found_in_any_order_test_() ->
    [?_assertEqual({[], Parts}, {weft_report_said:missing(Parts, ?TEXT), Parts})
     || Parts <- [[], [7, "orbit", weft_groups], ["1.50 ms", "12 nodes"], [12, 12],
                  [{"20 µs", 12}, {"1.50 ms", 2}], ["20 µs", 12, 2]]].

what_a_text_does_not_say_is_missing_test_() ->
    [?_assertEqual({Missing, Parts}, {weft_report_said:missing(Parts, ?TEXT), Parts})
     || {Parts, Missing} <- [{[13, 7, stock], [13, stock]}, {[1, "0 ms", 50], [1, "0 ms", 50]},
                             {[7, 7], [7]}, {["orb"], ["orb"]}, {["1.5"], ["1.5"]},
                             {["1.50 s"], ["1.50 s"]}, {[{"nodes", 12}], [{"nodes", 12}]},
                             {[{12, "nodes"}, {2, "20 µs"}], [{2, "20 µs"}]},
                             {[{"orbit", 12}], [{"orbit", 12}]}]].
