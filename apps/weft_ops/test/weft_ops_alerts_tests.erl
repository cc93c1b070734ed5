%% SPDX-License-Identifier: Apache-2.0
%% @doc The alerts and the board that are shipped: each of their expressions is one, and asks only
%% for what a node exports.
-module(weft_ops_alerts_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ALERTS, ["prometheus/weft-alerts", "prometheus/weft-store-alerts"]).
-define(BOARD, "grafana/weft.json").

alerts_ask_for_what_is_exported_test_() ->
    [fun() ->
         Exprs = weft_ops_promql:exprs(priv(Name ++ ".yml")),
         ?assert(length(Exprs) >= 5),
         ?assertEqual([], metrics(Exprs) -- [<<"up">> | exported()])
     end || Name <- ?ALERTS].

each_alert_says_what_to_do_and_is_tested_test_() ->
    [fun() -> says_what_to_do_and_is_tested(Name) end || Name <- ?ALERTS].

says_what_to_do_and_is_tested(Name) ->
    {ok, Text} = file:read_file(priv(Name ++ ".yml")),
    {ok, Tests} = file:read_file(priv(Name ++ ".test.yml")),
    Alerts = captured(Text, "alert: (\\w+)"),
    [?assertEqual(length(Alerts), length(captured(Text, Part)))
     || Part <- ["summary: (.)", "description: (.)", "severity: (critical|warning|info)"]],
    ?assertEqual([], Alerts -- captured(Tests, "alertname=\\\\?\"(\\w+)")).

promtool_accepts_alerts_and_their_tests_test_() ->
    with_promtool([{timeout, 60, {lists:append(lists:join(" ", Words)),
                                  ?_assertMatch({0, _}, promtool(Words))}}
                   || Name <- ?ALERTS,
                      Words <- [["check", "rules", Name ++ ".yml"],
                                ["test", "rules", Name ++ ".test.yml"]]]).

board_asks_for_what_is_exported_test() ->
    Exprs = board(),
    ?assert(length(Exprs) >= 20),
    ?assertEqual([], metrics(Exprs) -- exported()).

%% An expression of the board is one if a rule may have it; Grafana fills in what begins with $.
promtool_accepts_the_board_test_() ->
    with_promtool({timeout, 60, fun board_is_accepted/0}).

board_is_accepted() ->
    File = lists:concat(["/tmp/weft_ops_board_", os:getpid(), ".yml"]),
    Rules = [["  - record: board:expr\n    labels: {number: \"", integer_to_list(Number),
              "\"}\n    expr: >-\n      ", filled_in(Expr), $\n]
             || {Number, Expr} <- lists:zip(lists:seq(1, length(board())), board())],
    ok = file:write_file(File, ["groups:\n- name: board\n  rules:\n" | Rules]),
    try ?assertMatch({0, _}, promtool(["check", "rules", File])) after file:delete(File) end.

filled_in(Expr) ->
    lists:foldl(fun({From, To}, Text) -> binary:replace(Text, From, To, [global]) end, Expr,
                [{<<"$__rate_interval">>, <<"5m">>}, {<<"$instance">>, <<".*">>}]).

%% What would not be noticed otherwise.
an_unknown_metric_is_found_test() ->
    ?assertEqual([<<"weft_no_such_total">>],
                 metrics([<<"sum by (instance) (rate(weft_no_such_total{a=\"b\"}[5m])) > 1">>])
                     -- exported()),
    %% Of another exporter, with a join or alone.
    ?assertEqual([<<"node_load1">>, <<"rabbitmq_identity_info">>],
                 metrics([<<"weft_links * on (job) group_left(cluster) rabbitmq_identity_info">>,
                          <<"node_load1">>]) -- exported()).

%% ---- metrics of expressions ----

board() -> weft_ops_promql:exprs(priv(?BOARD)).

metrics(Exprs) -> lists:usort(lists:append([weft_ops_promql:metrics(Expr) || Expr <- Exprs])).

exported() -> [atom_to_binary(Name) || #{name := Name} <- weft_ops_families:all()].

captured(Text, Pattern) ->
    case re:run(Text, Pattern, [global, {capture, all_but_first, binary}]) of
        {match, Found} -> [One || [One] <- Found];
        nomatch -> []
    end.

%% ---- promtool ----

with_promtool(Tests) ->
    case os:find_executable("promtool") of
        false -> {"skipped: promtool is not installed (package prometheus)", []};
        _Path -> Tests
    end.

promtool(Words) ->
    Port = open_port({spawn_executable, os:find_executable("promtool")},
                     [{args, Words}, {cd, filename:dirname(priv("prometheus"))},
                      exit_status, stderr_to_stdout, binary]),
    ended(Port, []).

ended(Port, Said) ->
    receive
        {Port, {data, Text}} -> ended(Port, [Said, Text]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Said)}
    end.

priv(File) -> filename:join([code:lib_dir(weft_ops), "priv", File]).
