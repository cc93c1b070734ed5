%% SPDX-License-Identifier: Apache-2.0
%% @doc Whom an agent misses: the nodes of its duty, and nobody of one that another node has.
-module(weft_ops_agent_tests).

-include_lib("eunit/include/eunit.hrl").

-export([log/2]).

-define(DUTY, {group, g}).
-define(OTHER, 'c@h').
-define(NEXT, 'a@h').

agent_test_() ->
    [{Name, {timeout, 60, fun() -> with_agent(Test) end}}
     || {Name, Test} <- [{"its own", fun who_is_silent_is_missed_by_the_agent/0},
                         {"slower", fun who_samples_less_often_is_not_missed_sooner/0},
                         {"stood still", fun one_that_stood_still_has_its_period_as_before/0},
                         {"said", fun an_acknowledgement_has_a_system_time/0},
                         {"dead", fun who_is_silent_is_so_also_when_others_miss_it/0},
                         {"too many", fun what_has_no_room_is_logged_once/0},
                         {"of another", fun nobody_is_missed_where_another_is_the_agent/0},
                         {"slower there", fun who_samples_less_often_is_kept_as_long/0},
                         {"one", fun one_that_has_another_agent_is_not_missed/0},
                         {"last", fun the_last_events_are_those_of_so_much_time/0},
                         {"give", fun the_next_agent_gets_who_is_silent_and_its_alarm/0},
                         {"alone", fun who_leaves_a_group_misses_its_nodes_if_nobody_else_does/0},
                         {"given", fun alarms_of_a_former_agent_go_on/0},
                         {"too early", fun what_is_given_waits_for_the_first_sample/0},
                         {"nonsense", fun what_is_no_handover_ends_nothing/0},
                         {"a pause", fun an_agent_that_stood_still_misses_nobody_for_that/0},
                         {"free", fun a_free_node_is_missed_by_its_witness/0},
                         {"left", fun a_free_node_that_has_left_is_not_missed/0}]].

with_agent(Test) -> with_agent([], Test).

with_agent(Env, Test) ->
    ok = weft_view:new(),
    ok = weft_view:put(?MODULE, ?DUTY, [node(), ?OTHER]),
    {ok, Config} = weft_ops_config:parse([{sample_ms, 100}, {clear_ms, 0}, {alarms_max, 1} | Env]),
    {ok, Agent} = weft_ops_agent:start_link(Config),
    try Test()
    after
        ok = gen_server:stop(Agent),
        ok = weft_view:clear(?MODULE)
    end.

who_is_silent_is_missed_by_the_agent() ->
    report(sample(?OTHER)),
    until(fun() ->
              report(sample(node())),
              alarms() =:= [{silent, ?OTHER, ?OTHER}]
          end).

an_acknowledgement_has_a_system_time() ->
    who_is_silent_is_missed_by_the_agent(),
    SinceMs = erlang:system_time(millisecond),
    ok = weft_ops_agent:acknowledge(node(), {silent, ?OTHER, ?OTHER}, <<"mine">>, 5000),
    {ok, #{alarms := [#{acknowledged := Said}]}} = weft_ops_agent:ask(node(), ?DUTY, 5000),
    ?assertMatch(#{comment := <<"mine">>, at_ms := AtMs} when abs(AtMs - SinceMs) < 60000, Said).

%% Its samples come each minute.
who_samples_less_often_is_not_missed_sooner() ->
    report((sample(?OTHER))#{period_ms := 60000}),
    [periods_pass() || _ <- [1, 2]],
    ?assertEqual({[], [?OTHER, node()]}, {of_other(), listed()}).

%% It stood still for a minute, went on, and ended.
one_that_stood_still_has_its_period_as_before() ->
    [report((sample(?OTHER))#{period_ms := Ms}) || Ms <- [100, 60000]],
    until(fun() ->
              report(sample(node())),
              alarms() =:= [{silent, ?OTHER, ?OTHER}]
          end),
    %% One that was started again says how long it is now.
    [report((sample(?OTHER))#{period_ms := 60000, uptime_ms := Ms}) || Ms <- [1, 60001]],
    until(fun() ->
              report(sample(node())),
              alarms() =:= []
          end),
    periods_pass(),
    ?assertEqual([], of_other()).

%% No event says that this is over.
who_is_silent_is_so_also_when_others_miss_it() ->
    report(sample(?OTHER)),
    until(fun() ->
              report(sample(node())),
              alarms() =:= [{silent, ?OTHER, ?OTHER}]
          end),
    periods_pass((sample(node()))#{unreachable := [?OTHER]}),
    ?assertEqual([{silent, ?OTHER, ?OTHER}], of_other()),
    {ok, Events} = weft_ops_agent:events(node(), 0, 5000),
    ?assertEqual([silent, alarm_raised], kinds_of_other(Events)).

%% Three that are critical, where there is room for two.
what_has_no_room_is_logged_once() ->
    Peers = [#{node => Peer, via => undefined, state => resuming, bytes_out => 0, bytes_in => 0,
               queued_bytes => 0, suspended => 0, resumes => 0, reroutes => 0}
             || Peer <- ['x@h', 'y@h', 'z@h']],
    ok = logger:add_handler(?MODULE, ?MODULE, #{level => warning, config => self()}),
    try
        periods_pass((sample(node()))#{peers := Peers}),
        receive {logged, [1]} -> ok end,
        periods_pass((sample(node()))#{peers := Peers}),
        receive {logged, Again} -> ?assertEqual(nothing, Again) after 0 -> ok end
    after
        ok = logger:remove_handler(?MODULE)
    end.

%% @private
log(#{msg := {"~b conditions " ++ _, Arguments}}, #{config := Test}) -> Test ! {logged, Arguments};
log(_Other, _Config) -> ok.

nobody_is_missed_where_another_is_the_agent() ->
    [report(sample(Node)) || Node <- [node(), ?OTHER]],
    report((sample(node()))#{agent => ?NEXT}),
    ?assertEqual([?OTHER], listed()),
    until(fun() -> listed() =:= [] end),
    ?assertEqual([], alarms()).

%% Between two of its samples it would be as if it had left.
who_samples_less_often_is_kept_as_long() ->
    [report(Sample) || Sample <- [sample(node()), (sample(?OTHER))#{period_ms := 60000}]],
    report((sample(node()))#{agent => ?NEXT}),
    SinceMs = erlang:monotonic_time(millisecond),
    until(fun() -> erlang:monotonic_time(millisecond) - SinceMs > 600 end),
    ?assertEqual([?OTHER], listed()).

one_that_has_another_agent_is_not_missed() ->
    [report(sample(Node)) || Node <- [node(), ?OTHER]],
    ?assertEqual([?OTHER, node()], listed()),
    report((sample(?OTHER))#{agent => ?NEXT}),
    ?assertEqual([node()], listed()).

%% As when its node was stopped. When it goes on, its timer comes before what was sent to it.
an_agent_that_stood_still_misses_nobody_for_that() ->
    [report(sample(Node)) || Node <- [node(), ?OTHER]],
    ok = sys:suspend(weft_ops_agent),
    SinceMs = erlang:monotonic_time(millisecond),
    until(fun() -> erlang:monotonic_time(millisecond) - SinceMs > 600 end),
    [report(sample(Node)) || Node <- [node(), ?OTHER]],
    ok = sys:resume(weft_ops_agent),
    ?assertEqual([], alarms()).

%% Whoever asks this node is told that it is silent, and nothing else of it.
a_free_node_is_missed_by_its_witness() ->
    ok = weft_view:put(?MODULE, ?DUTY, []),
    Reports = fun() -> ok = weft_ops_agent:report(node(), {node, ?OTHER}, sample(?OTHER)) end,
    until(fun() ->
              Reports(),
              {alarms(), listed()} =:= {[], []}
          end),
    until(fun() -> alarms() =:= [{silent, ?OTHER, ?OTHER}] end),
    ?assertEqual([?OTHER], listed()),
    until(fun() ->
              Reports(),
              {alarms(), listed()} =:= {[], []}
          end),
    {ok, Events} = weft_ops_agent:events(node(), 0, 5000),
    ?assertEqual([silent, alarm_raised, back, alarm_cleared],
                 lists:sublist(kinds_of_other(Events), 4)).

a_free_node_that_has_left_is_not_missed() ->
    ok = weft_view:put(?MODULE, ?DUTY, []),
    [ok = weft_view:put(?MODULE, Key, Value)
     || {Key, Value} <- [{lists_members, true}, {{member, node()}, 1}]],
    ok = weft_ops_agent:report(node(), {node, ?OTHER}, sample(?OTHER)),
    until(fun() ->
              {ok, Events} = weft_ops_agent:events(node(), 0, 5000),
              [left] =:= [Kind || #{kind := Kind} <- Events]
          end),
    ?assertEqual([], alarms()).

%% Of thirty samples the one that was delayed least says what the clock of its node is.
a_delay_is_no_skew_test_() ->
    {timeout, 60, fun() -> with_agent([{grace_ms, #{default => 0}}], fun a_delay_is_no_skew/0) end}.

a_delay_is_no_skew() ->
    [came_late(Ms, #{}) || Ms <- [0, 5000]],
    ?assertEqual([], looked()),
    [came_late(5000, #{}) || _ <- lists:seq(1, 30)],
    ?assertEqual([{clock_skew, ?OTHER, ?OTHER}], looked()),
    came_late(0, #{}),
    ?assertEqual([], looked()),
    %% A clock that is ahead is seen at once.
    came_late(-5000, #{}),
    ?assertEqual([{clock_skew, ?OTHER, ?OTHER}], looked()).

%% What the round trip explains may be a delay.
a_long_way_is_no_skew_test_() ->
    {timeout, 60, fun() -> with_agent([{grace_ms, #{default => 0}}], fun a_long_way_is_no_skew/0)
     end}.

a_long_way_is_no_skew() ->
    Peer = #{node => node(), via => ?NEXT, state => up, bytes_out => 0, bytes_in => 0,
             queued_bytes => 0, suspended => 0, resumes => 0, reroutes => 0},
    Link = #{node => ?NEXT, state => up, ups => 0, rtt_us => 4500000, queued_bytes => 0,
             lanes => [], last_error => ""},
    came_late(5000, #{peers => [Peer], links => [Link]}),
    ?assertEqual([], looked()).

came_late(Ms, Changes) ->
    #{at_ms := AtMs} = Sample = sample(?OTHER),
    report((maps:merge(Sample, Changes))#{at_ms := AtMs - Ms}).

looked() ->
    weft_ops_agent ! {look, erlang:monotonic_time(millisecond)},
    alarms().

%% Whatever the clock of who asks says.
the_last_events_are_those_of_so_much_time() ->
    report((sample(?OTHER))#{uptime_ms := 1}),
    Last = fun(Ms) ->
               {ok, Events} = gen_server:call(weft_ops_agent, {events_of, Ms}),
               [Kind || #{kind := Kind} <- Events]
           end,
    ?assertEqual([joined], Last(60000)),
    ?assertEqual([], Last(-60000)).

%% The state that the version before has.
code_that_is_loaded_goes_on_test() ->
    {ok, #{thresholds := Thresholds} = Config} = weft_ops_config:parse([]),
    Sample = sample(?OTHER),
    Heard = {heard, Sample, erlang:monotonic_time(millisecond), 0},
    Before = {agent, 60000, Thresholds, #{?DUTY => #{?OTHER => Heard}}, [], [],
              weft_ops_alarms_core:new(Config)},
    {ok, Agent} = weft_ops_agent:code_change(before, Before, []),
    ?assertMatch({reply, {ok, #{nodes := #{?OTHER := Sample}, alarms := []}}, Agent},
                 weft_ops_agent:handle_call({ask, ?DUTY}, {self(), tag}, Agent)),
    ?assertEqual({ok, Agent}, weft_ops_agent:code_change(now, Agent, [])),
    WithoutSenders = list_to_tuple(lists:droplast(tuple_to_list(Agent))),
    ?assertEqual({ok, Agent}, weft_ops_agent:code_change(before, WithoutSenders, [])).

%% The connection with who asks may take nothing now.
an_answer_to_another_node_is_sent_by_another_process_test() ->
    {ok, Config} = weft_ops_config:parse([]),
    {ok, Agent} = weft_ops_agent:init(Config),
    [?assertMatch({noreply, _}, weft_ops_agent:handle_call(Request, elsewhere(), Agent))
     || Request <- [{ask, ?DUTY}, {events, 0}]].

elsewhere() -> {binary_to_term(<<131, 88, 119, 3, "c@h", 1:32, 0:32, 1:32>>), tag}.

%% Each of them holds an answer.
only_so_many_answers_wait_test() ->
    {ok, Config} = weft_ops_config:parse([]),
    {ok, Agent} = weft_ops_agent:init(Config),
    Waiting = [{'c@h', self()} || _ <- lists:seq(1, 8)],
    Full = setelement(tuple_size(Agent), Agent, Waiting),
    ?assertEqual({noreply, Full}, weft_ops_agent:handle_call({events, 0}, elsewhere(), Full)),
    ?assertMatch({reply, {ok, []}, Full},
                 weft_ops_agent:handle_call({events, 0}, {self(), tag}, Full)).

an_agent_is_told_how_long_ago_test() ->
    SinceMs = erlang:system_time(millisecond) - 5000,
    ?assertMatch({[{events_of, LastMs}], {ok, []}} when LastMs >= 5000 andalso LastMs < 60000,
                 asked(SinceMs, [{ok, []}])),
    %% One of the version before does not know the question.
    ?assertMatch({[{events_of, _}, {events, SinceMs}], {ok, []}},
                 asked(SinceMs, [{error, {unknown_request, question}}, {ok, []}])).

%% What somebody in the agent's place is asked, and what comes of these answers.
asked(SinceMs, Answers) ->
    {Other, Ref} = spawn_monitor(fun() -> exit([answered(Answer) || Answer <- Answers]) end),
    true = register(weft_ops_agent, Other),
    Events = weft_ops_agent:events(node(), SinceMs, 5000),
    receive {'DOWN', Ref, process, Other, Questions} -> {Questions, Events} end.

answered(Answer) ->
    receive
        {'$gen_call', From, Question} ->
            ok = gen_server:reply(From, Answer),
            Question
    end.

%% There is no node to which this could be sent.
the_next_agent_gets_who_is_silent_and_its_alarm() ->
    report(sample(?OTHER)),
    until(fun() ->
              report(sample(node())),
              alarms() =:= [{silent, ?OTHER, ?OTHER}]
          end),
    the_alarm_is_given(fun() -> report((sample(node()))#{agent => ?NEXT}) end).

the_alarm_is_given(By) ->
    Agent = whereis(weft_ops_agent),
    _ = erlang:trace_pattern({weft_ops_handover, new, 3}, true, []),
    1 = erlang:trace(Agent, true, [call]),
    _ = By(),
    receive
        {trace, Agent, call, {weft_ops_handover, new, [Duty, Silent, {Alarms, _OffsetMs}]}} ->
            ?assertEqual(?DUTY, Duty),
            ?assertMatch([{#{node := ?OTHER}, AgeMs}] when AgeMs >= 300, Silent),
            ?assertMatch([#{id := {silent, ?OTHER, ?OTHER}}], Alarms)
    end,
    1 = erlang:trace(Agent, false, [call]),
    _ = erlang:trace_pattern({weft_ops_handover, new, 3}, false, []),
    ok.

%% All who are left are silent. Nobody could tell when the alarm is over but the node that has left.
who_leaves_a_group_misses_its_nodes_if_nobody_else_does() ->
    report(sample(?OTHER)),
    until(fun() ->
              report(sample(node())),
              alarms() =:= [{silent, ?OTHER, ?OTHER}]
          end),
    ok = weft_view:put(?MODULE, ?DUTY, [?OTHER]),
    until(fun() -> listed() =:= [?OTHER] end),
    SinceMs = erlang:monotonic_time(millisecond),
    until(fun() -> erlang:monotonic_time(millisecond) - SinceMs > 600 end),
    ?assertEqual([{silent, ?OTHER, ?OTHER}], alarms()),
    %% Until one of them answers. To this one nothing can be sent.
    the_alarm_is_given(fun() -> weft_ops_agent ! {weft_ops_next, ?DUTY, ?NEXT} end),
    ?assertEqual({[?OTHER], [{silent, ?OTHER, ?OTHER}]}, {listed(), alarms()}),
    ok = weft_view:put(?MODULE, ?DUTY, []),
    until(fun() -> alarms() =:= [] end).

%% It has joined the group again before the answer came.
who_is_back_in_its_group_gives_nothing_test_() ->
    {timeout, 60, fun() -> with_agent(fun who_is_back_in_its_group_gives_nothing/0) end}.

who_is_back_in_its_group_gives_nothing() ->
    who_is_silent_is_missed_by_the_agent(),
    Agent = whereis(weft_ops_agent),
    _ = erlang:trace_pattern({weft_ops_handover, new, 3}, true, []),
    1 = erlang:trace(Agent, true, [call]),
    Agent ! {weft_ops_next, ?DUTY, ?NEXT},
    ?assertEqual([?OTHER, node()], listed()),
    Delivered = erlang:trace_delivered(Agent),
    receive {trace_delivered, Agent, Delivered} -> ok end,
    receive {trace, Agent, call, Given} -> ?assertEqual(nothing, Given) after 0 -> ok end,
    _ = erlang:trace_pattern({weft_ops_handover, new, 3}, false, []),
    ok.

%% It would lose what it is given. There are no nodes but this one.
who_runs_no_weft_ops_is_not_the_next_agent_test() ->
    ?assertEqual([node()], nexts([?NEXT, node(), ?OTHER], [{ok, []}], 5000)),
    ?assertEqual([], nexts([?NEXT, ?OTHER], [{ok, []}], 5000)),
    ?assertEqual([], nexts([], [{ok, []}], 5000)).

%% For the others it is the agent, and it may go on.
one_that_is_paused_is_not_passed_over_test() ->
    ?assertEqual([], nexts([?NEXT, node()], [], 200)).

%% Who is said to be the next agent, where an agent on this node gives these answers.
nexts(Candidates, Answers, TimeoutMs) ->
    {Agent, Ref} = spawn_monitor(fun() -> exit(told_of(Answers)) end),
    true = register(weft_ops_agent, Agent),
    ok = weft_ops_agent:next_asked(?DUTY, Candidates, TimeoutMs),
    Agent ! all,
    receive {'DOWN', Ref, process, Agent, Nexts} -> Nexts end.

told_of(Answers) ->
    receive
        {'$gen_call', From, {events_of, _}} ->
            [ok = gen_server:reply(From, Answer) || Answer <- Answers],
            told_of(Answers);
        {weft_ops_next, ?DUTY, Next} ->
            [Next | told_of(Answers)];
        all ->
            []
    end.

%% It has never heard the node that is silent.
alarms_of_a_former_agent_go_on() ->
    report(sample(node())),
    give([{sample(?OTHER), 5000}], [alarm()]),
    ?assertEqual([{silent, ?OTHER, ?OTHER}], of_other()),
    periods_pass(),
    ?assertEqual([{silent, ?OTHER, ?OTHER}], of_other()),
    until(fun() ->
              [report(sample(Node)) || Node <- [node(), ?OTHER]],
              alarms() =:= []
          end),
    {ok, Events} = weft_ops_agent:events(node(), 0, 5000),
    ?assertEqual([back, alarm_cleared], lists:sublist(kinds_of_other(Events), 2)).

what_is_given_waits_for_the_first_sample() ->
    give([{sample(?OTHER), 5000}], [alarm()]),
    ?assertEqual([], alarms()),
    until(fun() ->
              report(sample(node())),
              alarms() =:= [{silent, ?OTHER, ?OTHER}]
          end),
    ?assertEqual([?OTHER, node()], listed()).

what_is_no_handover_ends_nothing() ->
    Agent = whereis(weft_ops_agent),
    Given = weft_ops_handover:new(?DUTY, [], {[alarm()], 0}),
    ?assert(weft_ops_handover:is_handover(Given)),
    Wrong = [Given#{alarms := [(alarm())#{text := none}]},
             Given#{alarms := [(alarm())#{acknowledged := #{comment => 1}}]},
             Given#{alarms := [maps:remove(raised_ms, alarm())]},
             Given#{silent := [{sample(?OTHER), -1}]}, Given#{silent := [{#{}, 1}]}, #{}, none],
    ?assertEqual([], [One || One <- Wrong, weft_ops_handover:is_handover(One)]),
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    try
        [weft_ops_agent ! {weft_ops_handover, 3, One} || One <- Wrong],
        ?assertEqual([], alarms())
    after
        ok = logger:set_primary_config(level, Level)
    end,
    ?assertEqual(Agent, whereis(weft_ops_agent)).

%% It waits for long, as the test may be late.
give(Silent, Alarms) ->
    Given = weft_ops_handover:new(?DUTY, Silent, {Alarms, erlang:time_offset(millisecond)}),
    weft_ops_agent ! {weft_ops_handover, 100, Given},
    ok.

alarm() ->
    #{id => {silent, ?OTHER, ?OTHER}, severity => critical, text => <<"it is gone">>,
      raised_ms => erlang:monotonic_time(millisecond), acknowledged => no}.

%% In which an alarm that does not hold is cleared.
periods_pass() -> periods_pass(sample(node())).

periods_pass(Sample) ->
    SinceMs = erlang:monotonic_time(millisecond),
    until(fun() ->
              report(Sample),
              erlang:monotonic_time(millisecond) - SinceMs > 300
          end).

report(Sample) -> ok = weft_ops_agent:report(node(), ?DUTY, Sample).

listed() ->
    {ok, #{nodes := Nodes}} = weft_ops_agent:ask(node(), ?DUTY, 5000),
    lists:sort(maps:keys(Nodes)).

alarms() ->
    {ok, #{alarms := Alarms}} = weft_ops_agent:ask(node(), ?DUTY, 5000),
    [Id || #{id := Id} <- Alarms].

%% If the test is late its own node is silent, too.
of_other() -> [Id || {_, ?OTHER, _} = Id <- alarms()].

kinds_of_other(Events) -> [Kind || #{kind := Kind, node := ?OTHER} <- Events].

until(Condition) -> weft_test_nodes:until(Condition).

sample(Node) ->
    #{node => Node, at_ms => erlang:system_time(millisecond), period_ms => 100,
      uptime_ms => 100000, groups => [g], peers => [], links => [], relayed_bytes => 0,
      relayed_circuits => 0, unreachable => [],
      machine => #{wake_up_us => 0, run_queue => 0, memory_bytes => 1, processes => 1}}.
