%% SPDX-License-Identifier: Apache-2.0
%% @doc Each check of the doctor with facts in which it finds something, and with facts in which it
%% does not; and how findings become a report.
-module(weft_doctor_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, 'a@h').
-define(B, 'b@h').
-define(C, 'c@h').

%% --- a healthy system ---------------------------------------------------------------------------

facts(Node) ->
    facts(Node, [?A, ?B, ?C]).

facts(Node, All) ->
    Others = lists:delete(Node, All),
    #{weft => "1.2.3", otp => "27", wire => {1, 1}, carrier => weft, is_started => true,
      topology => full_mesh, is_partial => false, boot => ok, circuits => hidden,
      settings => #{lanes => 1, circuits => hidden}, members => All, routes => Others,
      links => [linked(Peer) || Peer <- Others],
      sessions => [#{node => Peer, state => up, suspended => 0} || Peer <- Others],
      cuts => [], lanes => 1, global => #{names => 0, locks => 0},
      cookie => #{length => 20, is_known => false}, cookie_file => none,
      hosts => #{"h" => #{address => "10.0.0.1", is_loopback => false}},
      listener => {ok, 4370}, limits => #{ports => 20, ports_max => 1000, descriptors_max => 900},
      schedulers => #{online => 2, late_ms => 1.0, run_queue => 0.5}, net_ticktime_s => 60,
      certificates => [#{file => "x", role => own, days => 30}], failed => [],
      clock => {100, 0}}.

linked(Peer) ->
    #{node => Peer, state => up, wanted => true, lanes => 1, last_error => "none"}.

healthy() ->
    maps:from_list([{Node, {ok, facts(Node)}} || Node <- [?A, ?B, ?C]]).

%% The findings when A has these facts in place of its healthy ones, and B and C are healthy.
with(Facts) ->
    found((healthy())#{?A => {ok, maps:merge(facts(?A), Facts)}}).

found(Answers) ->
    [{Check, Severity, Nodes} || #{check := Check, severity := Severity, nodes := Nodes}
                                     <- weft_doctor_checks:findings(Answers)].

nothing_is_found_in_a_healthy_system_test() ->
    ?assertEqual([], found(healthy())).

facts_that_are_missing_are_no_findings_test() ->
    ?assertEqual([], found(#{?A => {ok, #{failed => []}}, ?B => {ok, #{failed => []}}})),
    ?assertEqual([], found(#{})).

%% --- one fact, one finding ----------------------------------------------------------------------

%% With the nodes of the finding, or without a finding.
each_check_test_() ->
    [{lists:flatten(io_lib:format("~0tp", [Facts])), ?_assertEqual(Expected, with(Facts))}
     || {Facts, Expected} <- node_cases() ++ system_cases()].

node_cases() ->
    [{#{carrier => stock}, [{start, note, [?A]}]},
     {#{is_started => false}, [{start, error, [?A]}]},
     {#{boot => {error, "flags"}}, [{kernel_flags, error, [?A]}]},
     {#{sessions => [#{node => ?B, state => up, suspended => 2}]}, [{suspended, note, [?A]}]},
     {#{schedulers => #{online => 2, late_ms => 9, run_queue => 7.0}}, []},
     {#{schedulers => #{online => 2, late_ms => 10, run_queue => 0}}, [{schedulers, note, [?A]}]},
     {#{schedulers => #{online => 2, late_ms => 1, run_queue => 8}}, [{schedulers, note, [?A]}]},
     {#{schedulers => #{online => 2, late_ms => 50, run_queue => 9}},
      [{schedulers, warning, [?A]}]},
     {limits(80, 100, 200), []},
     {limits(81, 100, 200), [{limits, warning, [?A]}]},
     {limits(81, 200, 100), [{limits, warning, [?A]}]},
     {limits(101, 100, 200), [{limits, error, [?A]}]},
     {#{listener => not_needed}, []},
     {#{listener => {error, no_such_node}}, [{listener, error, [?A]}]},
     {#{listener => {error, no_epmd}}, [{listener, error, [?A]}]},
     {#{listener => {error, {nobody_listens, 4370}}}, [{listener, error, [?A]}]},
     {#{listener => {error, nxdomain}}, [{listener, error, [?A]}]},
     {#{cookie => #{length => 16, is_known => false}}, []},
     {#{cookie => #{length => 15, is_known => false}}, [{cookie, warning, [?A]}]},
     {#{cookie => #{length => 12, is_known => true}}, [{cookie, error, [?A]}]},
     {#{cookie_file => #{file => "f", mode => 8#600}}, []},
     {#{cookie_file => #{file => "f", mode => 8#640}}, [{cookie_file, error, [?A]}]},
     {certificate(29), [{certificates, warning, [?A]}]},
     {certificate(7), [{certificates, warning, [?A]}]},
     {certificate(6), [{certificates, error, [?A]}]},
     {certificate(-1), [{certificates, error, [?A]}]},
     {#{certificates => [#{file => "x", role => authority, error => "no"}]},
      [{certificates, error, [?A]}]},
     {#{failed => [{clock, badarg}]}, [{incomplete, note, [?A]}]}].

%% Lanes that are there count with what is open.
limits(Ports, PortsMax, DescriptorsMax) ->
    #{limits => #{ports => Ports, ports_max => PortsMax, descriptors_max => DescriptorsMax}}.

certificate(Days) ->
    #{certificates => [#{file => "x", role => own, days => Days}]}.

system_cases() ->
    [{#{routes => [?B], links => [linked(?B)]}, [{paths, error, [?A]}]},
     {#{routes => [?B], links => [linked(?B), linked(?C)]}, []},
     {#{routes => [], links => [], has_left => false}, [{paths, error, [?A]}]},
     {#{topology => undefined, routes => [], links => []},
      [{configuration, warning, [?A]}]},
     {down(true), [{links, warning, [?A, ?B]}]},
     {down(false), []},
     {(down(true))#{cuts => [?B]}, [{cuts, warning, [?A, ?B]}]},
     {#{cuts => ['elsewhere@h']}, []},
     {#{sessions => [#{node => ?C, state => resuming, suspended => 0}]},
      [{resuming, warning, [?A, ?C]}]},
     {#{sessions => [#{node => 'elsewhere@h', state => resuming, suspended => 0}]}, []},
     {#{lanes => 4, links => [(linked(?B))#{lanes => 1}, linked(?C)]}, []},
     {#{links => [(linked(?B))#{lanes => 0}, linked(?C)]}, [{lanes, warning, [?A, ?B]}]},
     {#{settings => #{lanes => 2, circuits => hidden}}, [{configuration, note, [?A]}]},
     {#{settings => #{lanes => 1, circuits => visible}}, [{configuration, warning, [?A]}]},
     {#{topology => {static, #{links => []}}}, [{configuration, warning, [?A]}]},
     {#{net_ticktime_s => 10}, [{ticktime, warning, [?A]}]},
     {#{weft => "1.1.9"}, [{versions, note, [?A]}]},
     {#{weft => "1.0.0"}, [{versions, error, [?A]}]},
     {#{weft => "2.2.3"}, [{versions, error, [?A]}]},
     {#{weft => "1.3.0", wire => {2, 3}}, [{versions, error, [?A]}]},
     {#{otp => "29"}, [{otp, note, [?A]}]},
     {#{otp => "24"}, [{otp, warning, [?A]}]},
     {#{clock => {100, 100100}}, []},
     {#{clock => {100, 100201}}, [{clocks, warning, [?A]}]},
     {#{clock => {100, -1000201}}, [{clocks, error, [?A]}]},
     {#{clock => {2000000, 1000201}}, []},
     {#{hosts => #{"h" => #{error => nxdomain}}}, [{names, error, [?A]}]},
     {#{hosts => #{"h" => loopback()}}, []},
     {#{global => #{names => 100, locks => 0}}, []},
     {#{global => #{names => 101, locks => 0}}, [{global, warning, [?A]}]},
     {#{global => #{names => 1, locks => 0}, is_partial => true}, [{global, warning, [?A]}]},
     {#{global => #{names => 1, locks => 0}, is_partial => true, circuits => visible}, []},
     {#{global => #{names => 0, locks => 3}}, [{global, note, [?A]}]}].

down(IsWanted) ->
    #{links => [(linked(?B))#{state => down, wanted => IsWanted, lanes => 0}, linked(?C)]}.

loopback() -> #{address => "127.0.0.1", is_loopback => true}.

%% --- several nodes ------------------------------------------------------------------------------

a_node_that_does_not_answer_explains_its_links_test() ->
    Down = facts(?A),
    Facts = Down#{links => [(linked(?B))#{state => down, lanes => 0}, linked(?C)], routes => [?C],
                  sessions => [#{node => ?B, state => resuming, suspended => 0}]},
    ?assertEqual([{answers, error, [?B]}],
                 found((healthy())#{?A => {ok, Facts}, ?B => {error, noconnection}})).

a_node_that_has_left_needs_no_paths_test() ->
    Left = (facts(?A))#{has_left => true, routes => [], links => [], sessions => [],
                        members => [?A]},
    Stays = fun(Node) -> facts(Node, [?B, ?C]) end,
    ?assertEqual([], found(#{?A => {ok, Left}, ?B => {ok, Stays(?B)}, ?C => {ok, Stays(?C)}})).

a_node_without_weft_is_a_note_test() ->
    ?assertEqual([{no_weft, note, [?B]}], found((healthy())#{?B => {error, not_known}})).

the_same_on_several_nodes_is_one_finding_test() ->
    Weak = #{cookie => #{length => 3, is_known => false}},
    ?assertEqual([{cookie, warning, [?A, ?B]}],
                 found((healthy())#{?A => {ok, maps:merge(facts(?A), Weak)},
                                    ?B => {ok, maps:merge(facts(?B), Weak)}})).

without_a_majority_all_nodes_differ_test() ->
    ?assertEqual([{ticktime, warning, [?A, ?B]}],
                 found(#{?A => {ok, facts(?A, [?A, ?B])},
                         ?B => {ok, (facts(?B, [?A, ?B]))#{net_ticktime_s => 7}}})).

the_worst_comes_first_test() ->
    ?assertEqual([error, warning, note],
                 [Severity || {_, Severity, _}
                                  <- with(#{otp => "28", net_ticktime_s => 9,
                                            cookie => #{length => 0, is_known => true}})]).

a_large_full_mesh_is_a_note_test() ->
    ?assertEqual([], found(mesh(49))),
    ?assertMatch([{full_mesh, note, [_ | _]}], found(mesh(50))),
    Partial = maps:map(fun(_, {ok, Facts}) -> {ok, Facts#{is_partial => true}} end, mesh(50)),
    ?assertEqual([], found(Partial)),
    Unplanned = maps:map(fun(_, {ok, Facts}) -> {ok, Facts#{topology => undefined}} end, mesh(50)),
    ?assertMatch([{full_mesh, note, [_ | _]}], found(Unplanned)).

mesh(Count) ->
    Nodes = [list_to_atom("n" ++ integer_to_list(Number) ++ "@h") || Number <- lists:seq(1, Count)],
    maps:from_list([{Node, {ok, facts(Node, Nodes)}} || Node <- Nodes]).

loopback_is_wrong_when_others_are_elsewhere_test() ->
    Far = 'd@far',
    Answers = fun(Hosts) ->
                      (healthy())#{?A => {ok, (facts(?A))#{hosts => Hosts}},
                                   Far => {error, not_known}}
              end,
    ?assertEqual([{no_weft, note, [Far]}], found(Answers(#{"h" => loopback()}))),
    ?assertEqual([{names, warning, [?A]}, {no_weft, note, [Far]}],
                 found(Answers(#{"far" => loopback()}))).

%% --- facts and report ---------------------------------------------------------------------------

%% This node runs no weft, so much can not be told, but nothing fails that need not.
a_node_tells_of_itself_test() ->
    Facts = weft_doctor_facts:gather([node()]),
    ?assertMatch(#{carrier := stock, is_started := false, links := [], sessions := [],
                   listener := not_needed, boot := ok, certificates := [],
                   limits := #{ports := _}, schedulers := #{late_ms := _},
                   hosts := #{}, cookie := #{length := _}}, Facts),
    ?assertEqual([], maps:get(failed, Facts)).

the_same_topology_may_be_written_in_several_ways_test_() ->
    [?_assertEqual({full_mesh, Told}, told_of(Topology))
     || {Topology, Told} <- [{full_mesh, #{}}, {{full_mesh, #{seeds => [?A]}}, #{}},
                             {{full_mesh, #{seeds => [?B], detector => ticks}}, #{}},
                             {{full_mesh, #{detector => swim}}, #{detector => swim}}]].

told_of(Topology) ->
    ok = application:set_env(weft, topology, Topology),
    try
        maps:get(topology, weft_doctor_facts:gather([]))
    after
        application:unset_env(weft, topology)
    end.

the_report_is_for_people_test() ->
    Report = weft_doctor:report([node()]),
    ?assertMatch(#{answered := [_], findings := [_ | _]}, Report),
    %% Of the carrier. On a busy machine there is another one, that processes wake up late.
    ?assertMatch({match, _}, re:run(text(Report), "^1 node examined in .* [12] notes?\n")).

nodes_that_are_not_there_are_reported_test() ->
    ?assertMatch(#{errors := 1, answered := [], nodes := ['nobody@nowhere']},
                 weft_doctor:report(['nobody@nowhere'])).

why_and_advice_are_said_once_test() ->
    Findings = weft_doctor_checks:findings(
                 (healthy())#{?A => {ok, (facts(?A))#{cuts => [?B, ?C]}}}),
    ?assertMatch([#{check := cuts}, #{check := cuts}], Findings),
    Text = text(#{nodes => [?A, ?B, ?C], answered => [?A, ?B, ?C], ms => 700, errors => 0,
                  warnings => 2, notes => 0, findings => Findings}),
    ?assertMatch([_, _], string:split(Text, "  why: ", all)),
    ?assertMatch({match, _}, re:run(Text, "3 nodes examined in 0.7 s: 2 warnings\n")),
    ?assertMatch({match, _}, re:run(Text, "\nwarning on a b: the link between a@h and b@h is cut")),
    ?assert(lists:all(fun(Line) -> length(Line) =< 90 end, string:split(Text, "\n", all))).

text(Report) -> unicode:characters_to_list(weft_doctor:text(Report)).
