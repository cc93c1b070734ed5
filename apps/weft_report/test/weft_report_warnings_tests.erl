%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_warnings_tests).

-include_lib("eunit/include/eunit.hrl").

-define(CONTROLS(InForce, OfMachine), #{<<"congestion_control">> => InForce,
                                        <<"congestion_control_of_the_machine">> => OfMachine}).

warnings(Short, Environment) ->
    [unicode:characters_to_list(Text)
     || Text <- weft_report_warnings:all(weft_report_sample:results(Short), Environment)].

another_congestion_control_than_the_machines_is_told_test() ->
    [Warning] = warnings([], ?CONTROLS(<<"reno">>, <<"bbr">>)),
    ?assertEqual([], weft_report_said:missing(["congestion control", {"run", "reno"},
                                               {"machine", "bbr"}], Warning)).

%% Old runs do not have it, and other systems do not tell it.
the_same_or_an_unknown_one_is_no_warning_test_() ->
    [?_assertEqual([], warnings([], Environment))
     || Environment <- [?CONTROLS(<<"cubic">>, <<"cubic">>), ?CONTROLS(<<"cubic">>, <<>>),
                        #{<<"congestion_control">> => <<"cubic">>}, #{}]].

what_took_less_than_its_warm_up_is_told_test() ->
    Times = fun(Cell, Variant, WarmUp, Measured) ->
                [{Cell, Variant, warm_up_s, WarmUp}, {Cell, Variant, measured_s, Measured}]
            end,
    [Warning] = warnings(Times(#{}, stock, [1, 2, 1], [4, 5, 1])
                         ++ Times(#{}, weft_1, [3], [1.2])
                         ++ Times(#{pairs => 16}, weft_1, [2], [2]), #{}),
    ?assertEqual([], weft_report_said:missing(["small 10 B", "1 pair", weft_1,
                                               {"measured", "1.20 s"}, {"warm-up", "3.00 s"}],
                                              Warning)).

%% Where cores had nothing left a quota is no more than a wish.
quotas_that_could_not_be_kept_are_told_test() ->
    Busy = fun(Percent) ->
               weft_report_warnings:all(weft_report_sample:results(
                                          [{#{}, stock, quota_percent, [4]},
                                           {#{}, stock, machine_busy_percent, [Percent]}]), #{})
           end,
    ?assertEqual([], Busy(90)),
    [Warning] = Busy(99),
    ?assertEqual([], weft_report_said:missing(["small 10 B", stock, "99.0 %", "quotas"], Warning)),
    ?assertMatch([_], weft_report_warnings:all(weft_report_sample:results([]),
                                               #{<<"quota">> => <<"none; 4 % were asked for">>})).

%% Then nodes were no small hosts. A little more than all is how processor time is counted.
quotas_that_did_not_bind_are_told_test() ->
    Used = fun(Percents) ->
               warnings([{#{}, stock, quota_percent, [4, 4, 4]},
                         {#{}, stock, quota_used_percent, Percents}], #{})
           end,
    ?assertEqual([], Used([104, 109, 140])),
    [Warning] = Used([104, 131, 140]),
    ?assertEqual([], weft_report_said:missing(["small 10 B", stock, "131 %", "quotas"], Warning)),
    %% What nodes use without quotas is no promise.
    ?assertEqual([], warnings([{#{}, stock, quota_used_percent, [140]}], #{})).

%% The numbers beside them are those of the repetitions that worked.
repetitions_that_failed_are_told_test() ->
    Failed = fun(Pairs) ->
                 [{#{pairs => Pairs}, weft_1, messages_per_s, [4, 5]},
                  {#{pairs => Pairs}, weft_1, failed, [<<"timeout">>, <<"timeout">>]}]
             end,
    ?assertEqual(["small 10 B, 16 pairs, weft, 1 lane: failed 2 times, and no number has these "
                  "repetitions: timeout"], warnings(Failed(16), #{})),
    Many = warnings(lists:append([Failed(Pairs) || Pairs <- lists:seq(1, 13)]), #{}),
    ?assertEqual("failed were also repetitions of 3 others", lists:last(Many)),
    ?assertEqual(11, length(Many)).
