%% SPDX-License-Identifier: Apache-2.0
%% @doc What of simulations is measured, and what of it is told. On real nodes: weft_city_SUITE.
-module(weft_city_tests).

-include_lib("eunit/include/eunit.hrl").

phold_is_measured_like_the_city_test() ->
    Cells = weft_city_workload:cells(full),
    Phold = of_workload(phold, Cells),
    ?assertEqual([1, 2, 4, 8], [Nodes || #{pairs := Nodes} <- Phold]),
    ?assertEqual([{Nodes, Variants, Layout}
                  || #{pairs := Nodes, variants := Variants, layout := Layout}
                         <- of_workload(city, Cells)],
                 [{Nodes, Variants, Layout}
                  || #{pairs := Nodes, variants := Variants, layout := Layout} <- Phold]),
    ?assertEqual([#{workload => phold, ticks => Ticks, options => #{away_percent => 50}}
                  || #{streams := Ticks} <- Phold],
                 [With || #{with := With} <- Phold]),
    Quick = of_workload(phold, weft_city_workload:cells(quick)),
    ?assertEqual([1, 2], [Nodes || #{pairs := Nodes} <- Quick]).

of_workload(Wanted, Cells) ->
    [Cell || #{workload := Workload} = Cell <- Cells, Workload =:= Wanted].

cells_of_phold_are_told_in_words_test() ->
    ?assertEqual("phold, 1 node, 200 ticks", words(1)),
    ?assertEqual("phold, 8 nodes, 200 ticks", words(8)).

words(Nodes) ->
    lists:flatten(io_lib:format("~ts", [weft_report_words:cell({<<"city">>, <<"phold">>, 0, Nodes,
                                                                200, <<"loopback">>})])).

events_per_second_are_those_that_were_handled_test() ->
    Options = #{workload => phold, ticks => 30, options => #{away_percent => 50}},
    {ok, Hash} = weft_city:hash(Options),
    {ok, #{outcome := {ok, #{wall_ms := WallMs}}} = Ran} = ran(Options#{hash => Hash}),
    {ok, #{events_per_s := Rate, duration_s := Seconds}} = weft_city:check(Ran),
    ?assertEqual(WallMs / 1000, Seconds),
    {ok, #{probes := #{handled := Handled}}} =
        weft_diasca:run(phold, #{ticks => 30, options => #{away_percent => 50}}),
    Events = lists:sum([Count || {_Time, _Actor, Count} <- Handled]),
    ?assertEqual(Events, round(Rate * max(1, WallMs) / 1000)).

another_hash_is_no_result_test() ->
    {ok, Ran} = ran(#{workload => phold, ticks => 5, hash => <<"abc">>}),
    ?assertMatch({error, _}, weft_city:check(Ran)).

a_city_has_no_events_test() ->
    {ok, Ran} = ran(#{workload => city, ticks => 5, options => #{scale => tiny}}),
    {ok, Result} = weft_city:check(Ran),
    ?assertNot(is_map_key(events_per_s, Result)).

ran(Options) ->
    {ok, Plan} = weft_city:plan(Options, [node()]),
    {ok, weft_city:run(weft_city:start(Plan))}.
