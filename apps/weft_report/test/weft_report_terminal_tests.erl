%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_terminal_tests).

-include_lib("eunit/include/eunit.hrl").

lines(Text) -> string:split(string:trim(unicode:characters_to_list(Text), trailing), "\n", all).

columns_are_aligned_and_the_first_one_is_broken_test() ->
    Long = lists:flatten(lists:duplicate(30, "words ")),
    ?assertEqual(["what      number", "a          12.00", "a longer    1.00"],
                 lines(weft_report_terminal:table(["what", "number"], [left, right],
                                                  [["a", "12.00"], ["a longer", "1.00"]]))),
    [_, First | More] = lines(weft_report_terminal:table(["what", "number"], [left, right],
                                                         [[Long, "1"]])),
    ?assertMatch({match, _}, re:run(First, "^words words .* +1$")),
    ?assertEqual("  words", lists:sublist(hd(More), 7)),
    ?assert(lists:all(fun(Line) -> length(Line) =< 100 end, [First | More])),
    All = lists:flatten(lists:join(" ", [First | More])),
    ?assertEqual(30, length([x || "words" <- string:lexemes(All, " ")])).

signs_are_written_in_ascii_test() ->
    Rows = [["≥ 4 ×", "1 – 2 µs"]],
    [_, Line] = lines(weft_report_terminal:table(["a", "b"], [left, left], Rows)),
    ?assertEqual(">= 4 x  1 - 2 us", Line).

a_summary_fits_and_tells_wins_and_losses_test() ->
    Results = weft_report_sample:results(
                [{#{}, stock, messages_per_s, [200000, 210000, 190000]},
                 {#{}, weft_1, messages_per_s, [900000, 950000, 880000]},
                 {#{}, weft_gateway, messages_per_s, [100000, 110000, 120000]}]),
    Text = unicode:characters_to_list(weft_report_terminal:summary(Results, #{})),
    ?assert(lists:all(fun(Line) -> length(Line) =< 100 end, lines(Text))),
    [?assertMatch({match, _}, re:run(Text, Pattern, [multiline]))
     || Pattern <- ["^unchanged !, 10 B to 1 KB +>= 4.00 x +4.50 x +4.19 - 5.00 +1/1 +met$",
                    "^the same over one gateway.* 0.55 x .*MISSED$",
                    "1 [^\n]*met, 1 missed, 0 within noise", "behind [^\n]* 1 [^\n]* 0 [^\n]*noise",
                    "once [^\n]*no interval",
                    "^small 10 B, 1 pair +weft, 1 gateway +messages +0.55 ",
                    "^small 10 B, 1 pair\n  stock TCP +messages +200 k/s +190 - 210 k/s +1.00\n"
                    "  weft, 1 lane +messages +900 k/s +880 - 950 k/s +4.50 +4.19 - 5.00$"]].

what_is_no_difference_is_told_test() ->
    Results = weft_report_sample:results(
                [{#{}, stock, messages_per_s, [200, 210, 190]},
                 {#{}, weft_1, messages_per_s, [196, 198, 204]},
                 {#{size_bytes => 20}, stock, messages_per_s, [200]},
                 {#{size_bytes => 20}, weft_1, messages_per_s, [150]},
                 {#{pairs => 16}, stock, messages_per_s, [200, 200]},
                 {#{pairs => 16}, weft_1, messages_per_s, [780, 810]}]),
    Text = unicode:characters_to_list(weft_report_terminal:summary(Results, #{})),
    [?assertMatch({match, _}, re:run(Text, Pattern, [multiline]))
     || Pattern <- ["^  weft, 1 lane .* 0.99 +0.93 - 1.07 +noise$", "^  weft, 1 lane .* 0.75$",
                    "^small 10 B, 1 pair +weft, 1 lane +messages +0.99 +0.93 - 1.07 +noise$",
                    "behind [^\n]* 2 [^\n]* 1 [^\n]*noise", "0/3 +MISSED"]].

a_target_within_noise_is_told_test() ->
    Results = weft_report_sample:results([{#{}, stock, messages_per_s, [200, 200]},
                                          {#{}, weft_1, messages_per_s, [780, 810]}]),
    Text = unicode:characters_to_list(weft_report_terminal:summary(Results, #{})),
    [?assertMatch({match, _}, re:run(Text, Pattern, [multiline]))
     || Pattern <- ["^unchanged !.* 3.98 x +3.90 - 4.05 +0/1 +within noise$",
                    "0 missed, 1 within noise"]].

what_was_measured_once_is_told_test() ->
    Results = weft_report_sample:results([{#{}, stock, messages_per_s, [200]},
                                          {#{}, weft_1, messages_per_s, [150]}]),
    Text = unicode:characters_to_list(weft_report_terminal:summary(Results, #{})),
    ?assertMatch({match, _}, re:run(Text, "0.75 x +0/1 +MISSED, measured once\n")).

warnings_come_first_test() ->
    Environment = #{<<"congestion_control">> => <<"reno">>,
                    <<"congestion_control_of_the_machine">> => <<"bbr">>},
    Text = weft_report_terminal:summary(weft_report_sample:results([]), Environment),
    {match, [First]} = re:run(Text, "^\nwarning: ([^\n]*)\n", [{capture, [1], list}]),
    ?assertEqual([], weft_report_said:missing(["reno", "bbr"], First)).

a_cluster_is_told_with_its_vms_per_core_test() ->
    Mesh = #{workload => <<"orbit">>, pairs => 20, size_bytes => 0, streams => 1000},
    Results = weft_report_sample:results([{Mesh, stock_mesh, duration_s, [1, 2]},
                                          {Mesh, stock_mesh, vms_per_core, [10.0, 10.0]},
                                          {#{}, stock, messages_per_s, [1]}]),
    Text = unicode:characters_to_list(weft_report_terminal:summary(Results, #{})),
    ?assertMatch({match, _}, re:run(Text, "\norbit, 20 nodes, space of 1000, 10.0 VMs per core\n")),
    ?assertMatch({match, _}, re:run(Text, "\nsmall 10 B, 1 pair\n")).
