%% SPDX-License-Identifier: Apache-2.0
%% @doc What the recorder asks agents for, and that other code goes on with its state.
-module(weft_ops_recorder_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PERIOD_MS, 1000).
%% What was asked for before is asked for again, of so much time.
-define(AGAIN_MS, 30000).

%% However long a period is: of two looks the one that is late takes nothing from the other.
events_since_the_last_look_are_asked_for_test_() ->
    {timeout, 60, fun events_since_the_last_look_are_asked_for/0}.

events_since_the_last_look_are_asked_for() ->
    recorded(prompt, fun() ->
                         ?assertMatch(LastMs when LastMs >= 2 * (?PERIOD_MS + ?AGAIN_MS),
                                      asked() + asked())
                     end).

%% As of one that is cut off for a while.
what_an_agent_did_not_tell_is_asked_for_again_test_() ->
    {timeout, 60, fun what_an_agent_did_not_tell_is_asked_for_again/0}.

what_an_agent_did_not_tell_is_asked_for_again() ->
    recorded(silent, fun() ->
                         First = asked(),
                         ?assertMatch(LastMs when LastMs >= First + ?PERIOD_MS, asked())
                     end).

%% It is down for as long as it may, and the other one tells all that it knows each time.
of_others_only_what_is_new_is_asked_for_while_a_member_is_down_test_() ->
    {timeout, 60, fun of_others_only_what_is_new_is_asked_for_while_a_member_is_down/0}.

of_others_only_what_is_new_is_asked_for_while_a_member_is_down() ->
    ok = weft_view:new(),
    [ok = weft_view:put(?MODULE, Key, Value)
     || {Key, Value} <- [{lists_members, true}, {{member, node()}, 1}, {{member, 'down@h'}, 1}]],
    try
        recorded(prompt, fun() ->
                             [FirstMs, _, ThirdMs] = [since_ms() || _ <- [1, 2, 3]],
                             ?assertMatch(LaterMs when LaterMs > ?PERIOD_MS, ThirdMs - FirstMs)
                         end)
    after
        ok = weft_view:clear(?MODULE)
    end.

%% As the one of earlier code is, of which not all is known. What follows begins with a picture.
a_chunk_that_takes_no_more_is_written_and_another_one_begun_test_() ->
    {timeout, 60, fun a_chunk_that_takes_no_more_is_written_and_another_one_begun/0}.

a_chunk_that_takes_no_more_is_written_and_another_one_begun() ->
    {ok, Chunk} = weft_ops_chunk:add([{1000, {silent, a}}], weft_ops_chunk:new()),
    NowMs = erlang:monotonic_time(millisecond),
    beside_agent(prompt, fun(Dir) ->
        Files = weft_ops_recording_files:new(#{dir => Dir, bytes_max => 1048576}),
        {ok, Full} = weft_ops_recorder:code_change(before, {recorder, ?PERIOD_MS, NowMs,
                                                            without_last(Chunk),
                                                            weft_ops_reel:new(), Files, false,
                                                            NowMs}, []),
        {noreply, Begun} = weft_ops_recorder:handle_info({timeout, timer, look}, Full),
        ?assertEqual({ok, {1000, 1000}}, weft_ops_recording:span(Dir)),
        {reply, ok, _} = weft_ops_recorder:handle_call(flush, from, Begun),
        {ok, [Last | Before], []} = weft_ops_recording:fold(Dir, {0, infinity},
                                                            fun(Entry, All) -> [Entry | All] end,
                                                            []),
        ?assertMatch({{AtMs, {alarms, []}}, [{AtMs, {agents, _}}, {1000, {silent, a}}]},
                     {Last, Before})
    end).

who_can_not_write_now_records_all_the_same_test_() ->
    {timeout, 60, fun who_can_not_write_now_records_all_the_same/0}.

who_can_not_write_now_records_all_the_same() ->
    recorded(prompt, fun() ->
                         _ = asked(),
                         ok = sys:suspend(weft_ops_recorder),
                         ?assertEqual({error, timeout}, weft_ops_recorder:flush(1)),
                         ok = sys:resume(weft_ops_recorder),
                         ?assertEqual(ok, weft_ops_recorder:flush())
                     end),
    ?assertEqual({error, not_recording}, weft_ops_recorder:flush()).

%% It is killed after that time. A look takes up to 5 s for events and 5 s for the picture.
its_end_waits_for_a_look_and_for_the_disk_test() ->
    {ok, {_, Children}} = weft_ops_parts_sup:init(#{}),
    [EndsMs] = [Ms || #{id := weft_ops_recorder, shutdown := Ms} <- Children],
    ?assert(EndsMs >= 12000).

%% Of a record: as it was before that was added.
without_last(Record) -> list_to_tuple(lists:droplast(tuple_to_list(Record))).

%% Beside an agent that answers in this way.
recorded(How, Asserted) ->
    beside_agent(How, fun(Dir) ->
        {ok, Recorder} = weft_ops_recorder:start_link(#{sample_ms => ?PERIOD_MS,
                                                        recording => #{dir => Dir,
                                                                       bytes_max => 1048576}}),
        try Asserted()
        after ok = gen_server:stop(Recorder)
        end
    end).

beside_agent(How, Fun) ->
    ok = weft_view:new(),
    ok = forgotten(),
    Test = self(),
    {Agent, Ref} = spawn_monitor(fun() -> agent(Test, How) end),
    true = register(weft_ops_agent, Agent),
    Dir = filename:join([filename:basedir(user_cache, "weft"), "test",
                         integer_to_list(erlang:system_time(nanosecond))]),
    try Fun(Dir)
    after
        true = exit(Agent, kill),
        receive {'DOWN', Ref, process, Agent, _} -> ok = file:del_dir_r(Dir) end
    end.

%% The state that the version before has.
code_that_is_loaded_goes_on_test() ->
    Before = {recorder, ?PERIOD_MS, 0, weft_ops_chunk:new(), weft_ops_reel:new(),
              weft_ops_recording_files:new(#{dir => "nowhere", bytes_max => 1048576}), false},
    {ok, Recorder} = weft_ops_recorder:code_change(before, Before, []),
    ?assertEqual({reply, ok, Recorder}, weft_ops_recorder:handle_call(flush, from, Recorder)),
    ?assertEqual({ok, Recorder}, weft_ops_recorder:code_change(now, Recorder, [])),
    WithoutAgents = list_to_tuple(lists:sublist(tuple_to_list(Recorder), 8)),
    ?assertEqual({ok, Recorder}, weft_ops_recorder:code_change(before, WithoutAgents, [])).

asked() -> receive {events_of, LastMs} -> LastMs end.

%% What an agent of the test before was asked.
forgotten() -> receive {events_of, _} -> forgotten() after 0 -> ok end.

since_ms() ->
    LastMs = asked(),
    erlang:system_time(millisecond) - LastMs.

agent(Test, How) ->
    receive
        {'$gen_call', From, {events_of, _} = Question} ->
            Test ! Question,
            [gen_server:reply(From, {ok, []}) || How =:= prompt];
        {'$gen_call', From, {ask, _Duty}} ->
            gen_server:reply(From, {ok, #{nodes => #{}, alarms => []}})
    end,
    agent(Test, How).
