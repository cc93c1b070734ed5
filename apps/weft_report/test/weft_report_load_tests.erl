%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_load_tests).

-include_lib("eunit/include/eunit.hrl").

%% Of many operations those are seen first that were done most, whatever their names are; none is
%% left out.
every_operation_is_in_a_chart_test() ->
    Counts = [{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}, {"f", 6}, {"g", 7}, {"z", 800}],
    Page = page(Counts),
    [Open, Closed] = string:split(Page, "<details>"),
    ?assertEqual(["z", "g", "f", "e", "d", "c"], legend(Open)),
    ?assertEqual(["b", "a"], legend(Closed)),
    ?assertMatch({match, _}, re:run(Closed, "<summary>b, a \\(2 of 8 operations")),
    {ok, _, _} = xmerl_sax_parser:stream(unicode:characters_to_binary(Page), []).

few_operations_are_in_one_chart_test() ->
    Page = page([{"a", 1}, {"b", 2}]),
    ?assertEqual(["b", "a"], legend(Page)),
    ?assertEqual(nomatch, string:find(Page, "<details>")).

%% Each as its time: operations that failed only have a chart of these.
what_fails_is_shown_over_time_test() ->
    ?assertEqual(nomatch, string:find(page([{"a", 1}]), "failed per second")),
    ?assertNotEqual(nomatch, string:find(page([{"a", 1}], 3, []), "failed per second")).

%% Nine of ten are below 20 us, all but one of ten thousand below 3 ms.
times_have_a_distribution_test() ->
    ?assertEqual(nomatch, string:find(page([{"a", 1}]), "Distribution")),
    Page = page([{"a", 1}, {"b", 2}], 0,
                [[a, Time, Percent, Us] || Time <- [service, response],
                                           {Percent, Us} <- [{0.0, 5}, {90.0, 20}, {99.99, 3000},
                                                             {100.0, 4000}]]),
    [?assertNotEqual(nomatch, string:find(Page, Text))
     || Text <- ["service time", "response time", ">99.9 %<", "90.0 %: 20 us", "99.99 %: 3.00 ms"]],
    {ok, _, _} = xmerl_sax_parser:stream(unicode:characters_to_binary(Page), []).

%% Whether the quotas were what held the nodes up, and whether there was enough of the machine.
what_quotas_did_is_told_test() ->
    Sharing = [{vms_per_core, 10.0}, {quota_percent, 4}, {throttled_percent, 87.5},
               {quota_used_percent, 93.0}],
    Told = fun(Busy) -> page([{"a", 1}], 0, none, Sharing ++ [{machine_busy_percent, Busy}]) end,
    [?assertMatch({match, _}, re:run(Told(99), Row, [dotall]))
     || Row <- ["throttled<.{1,40}>87.5 %<", "used of all quotas<.{1,40}>93.0 %<",
                "machine busy<.{1,40}>99.0 %<", "Warning: the cores were busy for 99.0 %"]],
    ?assertEqual(nomatch, string:find(Told(60), "Warning")),
    Unbound = page([{"a", 1}], 0, none, [{quota_percent, 4}, {quota_used_percent, 131}]),
    ?assertNotEqual(nomatch, string:find(Unbound, "Warning: nodes used 131 % of their quotas")),
    %% Without quotas nobody was promised anything.
    ?assertEqual(nomatch, string:find(page([{"a", 1}], 0, none, [{machine_busy_percent, 99}]),
                                      "Warning")),
    ?assertEqual(nomatch, string:find(page([{"a", 1}]), "The nodes and the machine")).

page(Counts) -> page(Counts, 0, none).

page(Counts, Failed, Distribution) -> page(Counts, Failed, Distribution, none).

page(Counts, Failed, Distribution, Sharing) ->
    Dir = filename:join(filename:basedir(user_cache, "weft_report_load_tests"),
                        integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Row = fun(Operation, Count) ->
                  weft_report_csv:line([1.0, Operation, Count, Count, Failed
                                        | lists:duplicate(10, 5)])
          end,
    Rows = [Row(Operation, Count) || {Operation, Count} <- Counts],
    [ok = file:write_file(filename:join(Dir, File), ["head\n" | Content])
     || {File, Content} <- [{"series.csv", Rows}, {"total.csv", Rows}, {"errors.csv", []},
                            {"environment.csv", ["config_driver,none\n"]}]
         ++ [{"distribution.csv", [weft_report_csv:line(Line) || Line <- Distribution]}
             || Distribution =/= none]],
    _ = Sharing =:= none orelse weft_report_sharing:write(Dir, Sharing),
    try
        ok = weft_report_load:write(Dir),
        {ok, Page} = file:read_file(weft_report_load:file(Dir)),
        unicode:characters_to_list(Page)
    after
        file:del_dir_r(Dir)
    end.

%% The names in the legends of a part of a page.
legend(Html) ->
    {match, [[Legend]]} = re:run(Html, "<p class=\"legend\">(.*?)</p>",
                                 [global, dotall, {capture, all_but_first, list}]),
    {match, Names} = re:run(Legend, "> ([a-z])  <", [global, {capture, all_but_first, list}]),
    [Name || [Name] <- Names].
