%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_record_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ROW, #{run => "20260131T093000", suite => a, workload => small, variant => weft_1,
               size_bytes => 100, pairs => 16, streams => 0, link => '1ms-800mbit',
               rtt_ms => 1, rate_mbit => 800, loss_percent => 0.1, repetition => 2,
               metric => messages_per_s, unit => "1/s", value => 812345.5, at_ms => 0,
               note => "with, a comma"}).

a_row_is_read_as_it_was_written_test() ->
    Read = read([weft_report_record:header(), weft_report_record:line(?ROW)]),
    {ok, [#{workload := <<"small">>, variant := <<"weft_1">>, size_bytes := 100, value := 812345.5,
            loss_percent := 0.1, note := <<"with, a comma">>} = Row]} = Read,
    ?assertEqual({<<"a">>, <<"small">>, 100, 16, 0, <<"1ms-800mbit">>},
                 weft_report_record:cell(Row)).

a_cut_run_keeps_its_whole_rows_test() ->
    Line = weft_report_record:line(?ROW),
    Cut = binary:part(Line, 0, byte_size(Line) - 3),
    ?assertMatch({ok, [#{}]}, read([weft_report_record:header(), Line, Cut])).

a_bad_line_is_named_test() ->
    {error, TooShort} = read([weft_report_record:header(), <<"1,2\n">>]),
    ?assertNotEqual(nomatch, string:find(TooShort, "record 2: 2 fields")),
    Line = weft_report_record:line(?ROW),
    {error, NoNumber} = read([weft_report_record:header(),
                              binary:replace(Line, <<",16,">>, <<",x,">>)]),
    ?assertNotEqual(nomatch, string:find(NoNumber, "pairs is \"x\"")).

another_file_is_refused_test() ->
    ?assertMatch({error, "" ++ _}, read([<<"a,b\n">>])),
    {error, Text} = weft_report_record:read("/no/such/run"),
    ?assertNotEqual(nomatch, string:find(Text, "no such file")).

targets_name_metrics_that_exist_test() ->
    Metrics = [Metric || {Metric, _, _, _} <- weft_report_record:metrics()],
    [?assert(lists:member(Metric, Metrics))
     || #{metric := Metric} <- weft_report_targets:all()].

targets_have_names_of_their_own_test() ->
    Ids = [Id || #{id := Id} <- weft_report_targets:all()],
    ?assertEqual(length(Ids), length(lists:usort(Ids))).

read(Lines) ->
    Dir = filename:join("/tmp", "weft_report_record_" ++ os:getpid()),
    File = weft_report_record:results_file(Dir),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, Lines),
    try weft_report_record:read(Dir) after ok = file:del_dir_r(Dir) end.
