%% SPDX-License-Identifier: Apache-2.0
%% @doc Ratios against claims: with an interval on one side of the claim, on both, and without one.
-module(weft_papers_verdict_tests).

-include_lib("eunit/include/eunit.hrl").

ratio(Median, Interval) -> #{median => Median, interval => Interval, superiority => 0.5}.

%% The ratio is 1.5; its interval is above the claim, contains it, or is below.
one_limit_test_() ->
    [?_assertEqual({Claimed, Least, Most, Less},
                   {Claimed, weft_papers_verdict:at_least(Claimed, Ratio),
                    weft_papers_verdict:at_most(Claimed, Ratio),
                    weft_papers_verdict:less_than(Claimed, Ratio)})
     || Ratio <- [ratio(1.5, {1.2, 1.8})],
        {Claimed, Least, Most, Less} <- [{1.1, agrees, differs, differs}, {1.4, open, open, open},
                                         {1.6, open, open, open}, {2, differs, agrees, agrees}]].

two_limits_test_() ->
    [?_assertEqual({Interval, Verdict},
                   {Interval, weft_papers_verdict:within({0.95, 1.05}, ratio(1.0, Interval))})
     || {Interval, Verdict} <- [{{0.96, 1.04}, agrees}, {{0.95, 1.05}, agrees},
                                {{0.94, 1.0}, open}, {{1.0, 1.1}, open}, {{0.9, 1.1}, open},
                                {{0.8, 0.9}, differs}, {{1.1, 1.2}, differs}]].

one_repetition_decides_by_itself_test_() ->
    [?_assertEqual(agrees, weft_papers_verdict:at_least(1, ratio(1.0, none))),
     ?_assertEqual(differs, weft_papers_verdict:less_than(1, ratio(1.0, none))),
     ?_assertEqual(agrees, weft_papers_verdict:within({0.95, 1.05}, ratio(0.95, none))),
     ?_assertEqual(differs, weft_papers_verdict:within({0.95, 1.05}, ratio(1.06, none)))].

a_claim_of_parts_is_as_good_as_its_worst_test_() ->
    [?_assertEqual(Verdict, weft_papers_verdict:all(Parts))
     || {Parts, Verdict} <- [{[], agrees}, {[agrees, agrees], agrees}, {[agrees, open], open},
                             {[open, differs, agrees], differs}]].

the_interval_is_told_if_there_is_one_test() ->
    ?assertEqual("", unicode:characters_to_list(weft_papers_verdict:interval(ratio(1, none)))),
    ?assertMatch(" (" ++ _,
                 unicode:characters_to_list(weft_papers_verdict:interval(ratio(1, {0.5, 2})))).
