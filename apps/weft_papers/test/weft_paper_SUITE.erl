%% SPDX-License-Identifier: Apache-2.0
%% @doc Figures of `bin/bench paper --quick' on real nodes: each ends with numbers, with a finding,
%% with charts, and with its report, which looks well in a browser. What is found depends on the
%% machine, but for what is counted. With FULL=1 all figures are measured, otherwise one.
-module(weft_paper_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([all_are_measured/1, each_has_numbers/1, each_has_a_finding/1, each_has_a_report/1,
         counts_agree/1, page_looks_well/1]).

%% The others are measured in the same way, by workloads that have suites of their own.
-define(USUAL, ["city"]).
%% The figures that are measured on emulated links only.
-define(EMULATED, ["partisan_3", "partisan_4"]).

suite() -> [{timetrap, {minutes, 14}}].

all() ->
    [all_are_measured, each_has_numbers, each_has_a_finding, each_has_a_report]
        ++ [Case || os:getenv("FULL") =/= false, Case <- [counts_agree, page_looks_well]].

init_per_suite(Given) ->
    Config = weft_bench_test_cluster:begin_suite(Given),
    Dir = filename:join(?config(priv_dir, Config), "quick"),
    {Ids, Left} = left_out(all_ids(), weft_bench_place:can_emulate(?config(priv_dir, Config))),
    0 = weft_papers_cli:main(["paper", lists:append(lists:join(",", Ids)), "--out", Dir,
                              "--quick", "--repetitions", "1"]),
    [{dir, Dir}, {ids, Ids}, {left_out, Left} | Config].

left_out(Ids, Can) ->
    case {Ids -- ?EMULATED, Can} of
        {Ids, _} -> {Ids, none};
        {_, ok} -> {Ids, none};
        {Others, {error, Why}} -> {Others, Why}
    end.

all_ids() ->
    IsLong = os:getenv("FULL") =/= false,
    [Id || #{id := Id} <- weft_papers_figures:figures(),
           IsLong orelse lists:member(Id, ?USUAL)].

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

%% Without emulated links the figures that are about them are left out.
all_are_measured(Config) ->
    case ?config(left_out, Config) of
        none -> ?assertEqual(all_ids(), ?config(ids, Config));
        Why -> {skip, lists:append(lists:join(", ", ?EMULATED)) ++ ": " ++ Why}
    end.

%% Nothing failed; of the other figures only cells on emulated links may be left out.
each_has_numbers(Config) ->
    Emulates = ?config(left_out, Config) =:= none,
    [begin
         {ok, Rows} = weft_report_record:read(Run),
         ?assertEqual([], [Row || #{metric := Metric, link := Link} = Row <- Rows,
                                  Metric =:= <<"failed">>
                                      orelse (Metric =:= <<"skipped">>
                                              andalso (Emulates orelse Link =:= <<"loopback">>))]),
         ?assertMatch([_ | _], [Value || #{value := Value} <- Rows, Value > 0], Run)
     end || {_, Run, _} <- sections(Config)].

each_has_a_finding(Config) ->
    [?assertMatch({match, _}, re:run(Section, "(agrees|differs|open)</th><td[^>]*>[^<]*[0-9]"), Id)
     || {Id, _, Section} <- sections(Config)].

each_has_a_report(Config) ->
    Page = page(Config),
    {ok, _, _} = xmerl_sax_parser:stream(Page, []),
    ?assertEqual(nomatch, re:run(Page, "https?:|<script|src=")),
    [begin
         ?assertMatch({match, _}, re:run(Section, "<svg[^>]*class=\"chart\""), Id),
         ?assert(filelib:is_regular(filename:join(Run, "report.html")))
     end || {Id, Run, Section} <- sections(Config)].

counts_agree(Config) ->
    Page = page(Config),
    [?assertMatch({match, _}, re:run(Page, "agrees</th><td[^>]*>" ++ Text), Text)
     || {Id, Texts} <- [{"orbit", ["orbit, 7 nodes, stock TCP: at most 6 connections",
                                   "orbit grouped, 7 nodes, stock TCP: at most 4 connections"]},
                        {"aco_10", ["11 nodes, packets: SR "]}],
        lists:member(Id, ?config(ids, Config)), Text <- Texts].

%% Made of what was measured.
page_looks_well(Config) ->
    case weft_report_browser:find() of
        {ok, Browser} ->
            Seen = weft_report_browser:looks_well(file(Config), [{browser, Browser} | Config]),
            Figures = length(?config(ids, Config)),
            ?assertEqual(Figures, maps:get("tables", Seen)),
            ?assert(maps:get("charts", Seen) >= Figures);
        none ->
            weft_test_missing:skip("chromium")
    end.

file(Config) -> filename:join(?config(dir, Config), "paper.html").

page(Config) ->
    {ok, Page} = file:read_file(file(Config)),
    Page.

%% For each figure the directory of its run, and the part of the page that is about it.
sections(Config) ->
    All = [{binary_to_list(hd(binary:split(Section, <<"\"">>))),
            run(?config(dir, Config), Section), Section}
           || Section <- tl(binary:split(page(Config), <<"<section id=\"">>, [global]))],
    ?assertEqual(lists:sort(?config(ids, Config)), lists:sort([Id || {Id, _, _} <- All])),
    All.

run(Dir, Section) ->
    {match, [Run]} = re:run(Section, "href=\"([^\"]+)/report.html\"",
                            [{capture, all_but_first, list}]),
    filename:join(Dir, Run).
