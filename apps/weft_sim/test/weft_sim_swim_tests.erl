%% SPDX-License-Identifier: Apache-2.0
%% @doc Clusters that run `weft_swim_core' in virtual time: they form, notice crashes, survive
%% pauses and splits, and Lifeguard is worth it.
-module(weft_sim_swim_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODES, ['a@sim', 'b@sim', 'c@sim', 'd@sim', 'e@sim', 'f@sim', 'g@sim', 'h@sim']).

lifeguard_has_less_than_a_twentieth_of_the_false_positives_test_() ->
    {timeout, 600, fun() ->
        Anomaly = #{blocked => 16, blocked_ms => 16384, free_ms => 64},
        {Plain, _} = weft_sim_swim:false_positives([], Anomaly, 48, 3),
        {Full, _} = weft_sim_swim:false_positives([health, suspicion, buddy], Anomaly, 48, 3),
        ?assert(Plain > 1000),
        ?assert(Full * 20 < Plain)
    end}.

a_cluster_forms_notices_every_crash_and_is_cheap_when_quiet_test_() ->
    {timeout, 600, fun() ->
        #{formed_ms := FormedMs, first_ms := First, last_ms := Last, missed := Missed,
          wrong := Wrong, quiet := {#{p99 := SentBytes}, _}} =
            weft_sim_swim:cluster([health, suspicion, buddy], 100, 2),
        ?assert(FormedMs < 15000),
        ?assertEqual({0, 0}, {Missed, Wrong}),
        %% At the earliest the shortest suspicion, for 100 members 8 s.
        ?assert(lists:min(First) > 7000),
        ?assert(lists:max(Last) < 30000),
        ?assert(SentBytes < 1000)
    end}.

%% Pauses of whole nodes, unlike blocked messages, make their timers late.
nobody_suspects_the_others_when_one_wakes_up_test_() ->
    {timeout, 600, fun() ->
        World = run(#{}, [{10000, {pause, 'c@sim'}}, {22000, {resume, 'c@sim'}}], 40000),
        Suspected = [{At, Node} || {_, At, {member, Node, suspected}}
                                       <- weft_sim_datagrams:notices(World)],
        ?assertEqual(['c@sim'], lists:usort([Node || {_, Node} <- Suspected])),
        agree(?NODES, World)
    end}.

halves_that_took_each_other_for_dead_meet_again_test_() ->
    {timeout, 600, fun() ->
        {One, Other} = lists:split(4, ?NODES),
        Split = run(#{}, [{10000, {partition, [One, Other]}}], 120000),
        agree(One, Split),
        agree(Other, Split),
        Healed = weft_sim_datagrams:run_until(
                   240000, weft_sim_datagrams:schedule(120001, heal, Split)),
        agree(?NODES, Healed)
    end}.

a_node_that_leaves_is_known_to_have_left_and_never_suspected_test() ->
    World = run(#{}, [{10000, {command, 'c@sim', leave}}, {13000, {crash, 'c@sim'}}], 60000),
    Notices = weft_sim_datagrams:notices(World),
    ?assertEqual(?NODES -- ['c@sim'],
                 lists:sort([At || {AtMs, At, {member, 'c@sim', left}} <- Notices, AtMs < 13000])),
    ?assertEqual([], [At || {_, At, {member, _, Change}} <- Notices,
                            Change =:= suspected orelse Change =:= failed]).

%% Whatever happens to them: once all is quiet, those that run know each other and nobody else,
%% also when a tenth of all messages gets lost.
the_running_agree_in_the_end_test_() ->
    {timeout, 600, ?_assert(proper:quickcheck(prop_agree(), [{numtests, 75}, {to_file, user}]))}.

prop_agree() ->
    ?FORALL({Seed, Loss, Parts, Steps},
            {integer(), oneof([0.0, 0.1]), oneof([[], [health], [health, suspicion, buddy]]),
             list(step())},
            begin
                World0 = started(Seed, #{lifeguard => Parts, sync_interval_ms => 10000}, Loss),
                World1 = weft_sim_datagrams:run_until(40000, schedule(Steps, World0)),
                Quiet = [{40001, heal} | [{40001, {resume, Node}} || Node <- ?NODES]],
                World = weft_sim_datagrams:run_until(240000, schedule(Quiet, World1)),
                Running = weft_sim_datagrams:nodes_in([running], World),
                lists:all(fun(Node) -> others(Node, World) =:= Running -- [Node] end, Running)
            end).

step() ->
    Node = oneof(tl(?NODES)),
    ?LET({AtMs, Verb}, {integer(5000, 39000),
                        oneof([{crash, Node}, {start, Node}, {pause, Node}, {block, Node},
                               {resume, Node}, {partition, [lists:sublist(?NODES, 3)]}, heal])},
         {AtMs, Verb}).

agree(Nodes, World) ->
    [?assertEqual({Node, Nodes -- [Node]}, {Node, others(Node, World)}) || Node <- Nodes].

others(Node, World) ->
    weft_swim_core:living(weft_sim_datagrams:core(Node, World)).

run(Options, Steps, UntilMs) ->
    weft_sim_datagrams:run_until(UntilMs, schedule(Steps, started(1, Options, 0.0))).

started(Seed, Options, Loss) ->
    World = weft_sim_datagrams:new(#{seed => Seed, core => weft_swim_core, loss => Loss,
                                     options => fun(_) -> Options#{seeds => [hd(?NODES)],
                                                                   links => false} end}),
    schedule([{N * 100, {start, Node}} || {N, Node} <- lists:zip(lists:seq(1, 8), ?NODES)], World).

schedule(Steps, World) ->
    lists:foldl(fun({AtMs, Verb}, W) -> weft_sim_datagrams:schedule(AtMs, Verb, W) end, World,
                Steps).
