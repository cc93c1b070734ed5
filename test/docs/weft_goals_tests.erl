%% SPDX-License-Identifier: Apache-2.0
%% @doc There is one table of goals, `weft_report_targets': each row of the page of goals has the
%% goal and the verdict that a report of the same data has for that cell, or none if that has none.
%% One goal stands outside of it: that of the time to deploy nodes.
-module(weft_goals_tests).

-include_lib("eunit/include/eunit.hrl").

-define(CONFIG, "test/docs/numbers/goals.config").
-define(DATA, "docs/benchmarks").
%% Of a row in tables about several numbers, whose goals are told below them.
-define(BARS_WITHOUT_GOALS, 5).

rows_have_the_goals_of_the_reports_test_() ->
    {ok, [{part, File, all, Fragments, _}]} = file:consult(?CONFIG),
    {ok, Page} = file:read_file(File),
    Rows = [Row || Fragment <- Fragments, {_, _} = Row <- [row(Fragment)]],
    Judged = maps:from_list([{Run, judged(Run)}
                             || Run <- lists:usort([Run || {_, {Run, _, _, _}} <- Rows])]),
    [?_assert(length(Rows) > 30)
     | [{Template, ?_assertEqual(by_report(Of, map_get(Run, Judged)), said(Template, Page))}
        || {Template, {Run, _, _, _} = Of} <- Rows]].

%% However many there are. How much the line explains of these data is in the guide.
the_time_to_deploy_nodes_is_on_a_line_test() ->
    {ok, Text} = file:read_file(filename:join(?DATA, "deploy/times.csv")),
    [Head | Rows] = [binary:split(Line, <<",">>, [global])
                     || Line <- binary:split(Text, <<"\n">>, [global, trim_all])],
    ?assertMatch([_, <<"nodes">>, <<"up_s">> | _], Head),
    Points = [{binary_to_integer(Nodes), binary_to_float(UpS)} || [_, Nodes, UpS | _] <- Rows],
    {{Fewest, _}, {Most, _}} = {lists:min(Points), lists:max(Points)},
    ?assertEqual({5, 200}, {Fewest, Most}),
    {_Slope, _Height, Explained} = weft_report_line:fit(Points),
    ?assert(Explained >= 0.98).

%% A row of a table about one number: of which run, cell and metric it is, and against what.
row({"| " ++ _ = Template, [{ratio, {Run, Cell, Metric}}, {low, _}, {high, _}]}) ->
    {Template, {Run, Cell, Metric, stock}};
row({"| " ++ _ = Template, [{one_lane, ratio, {Run, Cell, Metric}} | _]}) ->
    {Template, {Run, Cell, Metric, one_lane}};
row({"| " ++ _ = Template, "hour", Cell, [Metric | _]}) ->
    {Template, {"hour", Cell, Metric, nothing}};
row(_Other) ->
    none.

judged(Run) ->
    {ok, Rows} = weft_report_record:read(filename:join(?DATA, Run)),
    [{Target, Check} || #{target := Target, checks := Checks}
                            <- weft_report_verdict:all(weft_report_results:new(Rows)),
                        Check <- Checks].

by_report({_Run, {Workload, Variant, SizeBytes, Pairs, Streams, Link}, Metric, Against}, Judged) ->
    Of = [atom_to_binary(Workload), SizeBytes, Pairs, Streams, atom_to_binary(Link)],
    case [{in_words(Comparison, Threshold, Metric),
           string:replace(atom_to_list(Verdict), "_", " ")}
          || {#{variant := Its, metric := Same, with := With, comparison := Comparison},
              #{cell := Cell, threshold := Threshold, verdict := Verdict}} <- Judged,
             Its =:= Variant, Same =:= Metric, is_against(Against, With),
             tl(tuple_to_list(Cell)) =:= Of] of
        [] -> {"", ""};
        [{Goal, Verdict}] -> {lists:flatten(Goal), lists:flatten(Verdict)}
    end.

is_against(stock, {variant, Other}) -> lists:prefix("stock", atom_to_list(Other));
is_against(one_lane, With) -> With =:= {variant, weft_1};
is_against(nothing, With) -> With =:= none;
is_against(_Against, _With) -> false.

in_words(Comparison, Threshold, Metric) ->
    [string:replace(atom_to_list(Comparison), "_", " "), " ",
     case Metric of
         idle_percent -> [io_lib:format("~p", [Threshold]), " %"];
         _ -> weft_report_words:ratio(Threshold)
     end].

%% The last two fields of the row.
said(Template, Page) ->
    [Start | _] = string:split(Template, "~"),
    [Line] = [Line || Line <- binary:split(Page, <<"\n">>, [global]),
                      string:prefix(Line, Start) =/= nomatch,
                      length(binary:matches(Line, <<"|">>)) > ?BARS_WITHOUT_GOALS],
    [_, Verdict, Goal | _] = lists:reverse(binary:split(Line, <<"|">>, [global])),
    {string:trim(binary_to_list(Goal)), string:trim(binary_to_list(Verdict))}.
