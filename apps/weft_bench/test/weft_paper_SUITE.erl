%% SPDX-License-Identifier: Apache-2.0
%% @doc Each figure of `bin/bench paper' at its smallest size, on real nodes: it ends with numbers,
%% with a finding, with charts, and with its report. What is found depends on the machine, but for
%% what is counted.
-module(weft_paper_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([each_has_numbers/1, each_has_a_finding/1, each_has_a_report/1, counts_agree/1]).

suite() -> [{timetrap, {minutes, 8}}].

all() -> [each_has_numbers, each_has_a_finding, each_has_a_report, counts_agree].

init_per_suite(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "paper"),
    Ids = lists:append(lists:join(",", [Id || #{id := Id} <- weft_bench_paper:figures()])),
    0 = weft_bench_cli:main(["paper", Ids, "--tiny", "--out", Dir]),
    {ok, Page} = file:read_file(filename:join(Dir, "paper.html")),
    [{dir, Dir}, {page, Page} | Config].

end_per_suite(_Config) -> ok.

%% Nothing failed. Without the rights to emulate links some cells are skipped.
each_has_numbers(Config) ->
    Emulates = weft_bench_place:can_emulate() =:= ok,
    [begin
         {ok, Rows} = weft_bench_record:read(filename:join(?config(dir, Config), Run)),
         ?assertEqual([], [Row || #{metric := Metric} = Row <- Rows, Metric =:= <<"failed">>
                                      orelse (Metric =:= <<"skipped">> andalso Emulates)]),
         ?assertMatch([_ | _], [Value || #{value := Value} <- Rows, Value > 0], Run)
     end || {_, Run} <- runs(Config)].

each_has_a_finding(Config) ->
    [?assertMatch({match, _}, re:run(Section, "(agrees|differs|open)</th><td[^>]*>[^<]*[0-9]"), Id)
     || {Id, Section} <- sections(Config)].

each_has_a_report(Config) ->
    {ok, _, _} = xmerl_sax_parser:stream(?config(page, Config), []),
    ?assertEqual(nomatch, re:run(?config(page, Config), "https?:|<script|src=")),
    [begin
         ?assertMatch({match, _}, re:run(Section, "<svg[^>]*class=\"chart\""), Id),
         ?assert(filelib:is_regular(filename:join([?config(dir, Config), Run, "report.html"])))
     end || {Id, Section} <- sections(Config), {Of, Run} <- runs(Config), Of =:= Id].

counts_agree(Config) ->
    [?assertMatch({match, _}, re:run(?config(page, Config), Pattern), Pattern)
     || Pattern <- ["agrees</th><td[^>]*>orbit, 7 nodes, stock TCP: at most 6 connections",
                    "agrees</th><td[^>]*>orbit grouped, 7 nodes, stock TCP: at most 4 connections",
                    "agrees</th><td[^>]*>11 nodes, packets: SR "]].

%% The part of the page that is about a figure.
sections(Config) ->
    Sections = tl(binary:split(?config(page, Config), <<"<section id=\"">>, [global])),
    All = [{binary_to_list(hd(binary:split(Section, <<"\"">>))), Section} || Section <- Sections],
    ?assertEqual([Id || #{id := Id} <- weft_bench_paper:figures()], [Id || {Id, _} <- All]),
    All.

%% Figures with the run that each is read from.
runs(Config) ->
    [begin
         {match, [Run]} = re:run(Section, "href=\"([^\"]+)/report.html\"",
                                 [{capture, all_but_first, list}]),
         {Id, Run}
     end || {Id, Section} <- sections(Config)].
