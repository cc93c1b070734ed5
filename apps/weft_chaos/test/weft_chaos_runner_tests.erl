%% SPDX-License-Identifier: Apache-2.0
-module(weft_chaos_runner_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PEER, 'peer@host').

runner_test_() ->
    [{Name, {timeout, 60, fun() -> with_faults(Test) end}}
     || {Name, Test} <- [{"a start", fun what_a_start_may_answer/0},
                         {"a start that crashes", fun a_start_that_crashes/0},
                         {"a start that hangs", fun a_start_that_hangs/0},
                         {"progress", fun progress_that_crashes/0},
                         {"progress that hangs", fun a_run_has_a_bound/0},
                         {"strays", fun a_stray_message_ends_no_run/0},
                         {"a caller that is late", fun a_caller_that_is_late_has_its_report/0},
                         {"one after the other", fun the_next_may_run_at_once/0},
                         {"one side", fun a_link_that_is_slow_on_one_side/0},
                         {"one healed", fun a_link_that_is_healed_on_one_side/0},
                         {"too late", fun what_nobody_waits_for_is_not_done/0},
                         {"a crash", fun a_runner_that_crashes_heals/0}]].

with_faults(Test) ->
    ok = application:set_env(weft, faults, true),
    ok = application:set_env(weft_chaos, enabled, true),
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    try Test()
    after
        ok = logger:set_primary_config(level, Level),
        ok = weft_chaos_agent:heal_all(),
        ok = application:unset_env(weft_chaos, enabled),
        ok = application:unset_env(weft, faults)
    end.

%% A step before and one after it, and a fault that is open.
schedule() ->
    [{0, {cut, node(), ?PEER, 400}}, {10, {start, ?PEER}}, {100, {break, node(), ?PEER}}].

run(Options) ->
    {ok, #{done := Done, failed := Failed}} = weft_chaos:run(schedule(), Options),
    ?assertEqual({[], none}, {weft_fault:cuts(), maps:get(schedule, weft_chaos:status())}),
    %% A later step may be answered before an earlier one, and two begin at the same time if the
    %% runner was late.
    {[{element(1, Verb), Answer} || {_, Step} <- schedule(), {_, Verb, Answer} <- Done,
                                    element(1, Verb) =:= element(1, Step)],
     [{element(1, Verb), Text} || {_, Verb, Text} <- Failed]}.

a_stray_message_ends_no_run() ->
    {ok, Runner} = weft_chaos:start([{0, {cut, node(), ?PEER, 60000}}], #{}),
    Runner ! stray,
    ok = gen_server:cast(Runner, stray),
    ?assertEqual({error, {unknown_request, stray}}, gen_server:call(Runner, stray)),
    weft_test_nodes:until(fun() -> weft_fault:cuts() =:= [?PEER] end),
    ?assertMatch(#{schedule := #{to_come := 0}}, weft_chaos:status()),
    ok = weft_chaos:stop().

what_a_start_may_answer() ->
    [?assertEqual({[{cut, done}, {start, Told}, {break, done}], []},
                  run(#{start => fun(_) -> Answer end}))
     || {Answer, Told} <- [{ok, done}, {{ok, started}, started}]],
    [begin
         {[{cut, _}, {break, _}], [{start, Text}]} = run(#{start => fun(_) -> Answer end}),
         ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"rusty">>))
     end || Answer <- [{error, rusty}, rusty, {ok, 1, rusty}]].

a_start_that_crashes() ->
    {[{cut, _}, {break, _}], [{start, Text}]} = run(#{start => fun(_) -> error(rusty) end}),
    ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"rusty">>)).

a_start_that_hangs() ->
    {[{cut, _}, {break, _}], [{start, Text}]} =
        run(#{start => fun(_) -> receive never -> ok end end, start_ms => 150}),
    ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"in time">>)).

progress_that_crashes() ->
    {[{cut, _}, {start, _}, {break, _}], []} = run(#{start => fun(_) -> ok end,
                                                     progress => fun(_) -> error(rusty) end}).

a_run_has_a_bound() ->
    Hangs = fun(_) -> receive never -> ok end end,
    {error, Text} = weft_chaos:run(schedule(), #{start_ms => 1, progress => Hangs}),
    ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"not over">>)),
    %% The next one may run.
    {ok, _} = weft_chaos:run([{0, heal_all}]).

%% It stands still from the first step to the end of the schedule. On one scheduler the step comes
%% before it has its answer that the schedule has begun.
a_caller_that_is_late_has_its_report() ->
    Caller = self(),
    %% The runner, which tells this, resumes it by its end.
    Late = fun(_) -> erlang:suspend_process(Caller) end,
    ?assertMatch({ok, #{failed := []}},
                 weft_test_steps:on_one_scheduler(
                   fun() -> weft_chaos:run([{0, heal_all}], #{progress => Late}) end)).

the_next_may_run_at_once() ->
    [begin
         {ok, #{failed := []}} = weft_chaos:run([{0, heal_all}]),
         {ok, _} = weft_chaos:start([{0, heal_all}, {60000, heal_all}], #{}),
         ok = weft_chaos:stop()
     end || _ <- lists:seq(1, 200)].

%% The other side can not be reached.
a_link_that_is_slow_on_one_side() ->
    {ok, #{done := [], failed := [_, _] = Failed}} =
        weft_chaos:run([{0, {delay, node(), ?PEER, 1, 2, 200}},
                        {0, {loss, ?PEER, node(), 5, 200}}]),
    [says("only ~ts is slow, and ~ts is not: ", Text) || {_, _, Text} <- Failed].

a_link_that_is_healed_on_one_side() ->
    {ok, #{done := [{_, {cut, _, _, _}, _}], failed := [{_, {heal, _, _}, Text}]}} =
        weft_chaos:run([{0, {cut, ?PEER, node(), 60000}}, {100, {heal, ?PEER, node()}}]),
    says("only ~ts is healed, and ~ts is not: ", Text).

says(Format, Text) ->
    Says = iolist_to_binary(io_lib:format(Format, [node(), ?PEER])),
    ?assertMatch({0, _}, binary:match(list_to_binary(Text), Says)).

what_nobody_waits_for_is_not_done() ->
    {Gone, Monitor} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Monitor, process, Gone, _} -> ok end,
    Verb = {cut, node(), ?PEER, 60000},
    ?assertMatch({error, _}, weft_chaos_agent:do(Verb, Gone)),
    ?assertEqual([], weft_fault:cuts()),
    ?assertEqual({ok, done}, weft_chaos_agent:do(Verb, self())).

a_runner_that_crashes_heals() ->
    {ok, Runner} = weft_chaos:start([{0, {cut, node(), ?PEER, 60000}}], #{}),
    weft_test_nodes:until(fun() -> weft_fault:cuts() =:= [?PEER] end),
    Monitor = monitor(process, Runner),
    _ = catch sys:terminate(Runner, crash),
    receive {'DOWN', Monitor, process, Runner, _} -> ?assertEqual([], weft_fault:cuts()) end.
