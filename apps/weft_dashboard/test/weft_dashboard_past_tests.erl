%% SPDX-License-Identifier: Apache-2.0
%% @doc What browsers get of a time at which nothing was recorded, and how many read at once.
-module(weft_dashboard_past_tests).

-include_lib("eunit/include/eunit.hrl").

-import(weft_dashboard_browser, [request/2, json/1]).

-define(READERS, [weft_dashboard_reader_1, weft_dashboard_reader_2, weft_dashboard_reader_3,
                  weft_dashboard_reader_4]).
%% Below the time after which who waits to read is told that it took too long.
-define(QUICK_MS, 8000).

%% As the dashboard was started again after an hour.
in_a_gap_all_are_silent_and_it_is_said_test() ->
    with_recording([[0, 2000], [3602000]], fun(Config) ->
        ?assertMatch({200, #{<<"nodes">> := #{<<"a@h">> := #{<<"state">> := <<"up">>}},
                             <<"alarms">> := None}} when map_size(None) =:= 0,
                     weft_dashboard_past:model(2000, Config)),
        {200, Gap} = weft_dashboard_past:model(60000, Config),
        ?assertMatch(#{<<"at_ms">> := 60000, <<"source">> := <<"recording">>,
                       <<"nodes">> := #{<<"a@h">> := #{<<"state">> := <<"silent">>,
                                                       <<"groups">> := [<<"g">>]}}}, Gap),
        ?assertEqual(<<"nothing was recorded from 1970-01-01T00:00:02.000Z to "
                       "1970-01-01T01:00:02.000Z">>, said(Gap)),
        {200, End} = weft_dashboard_past:model(999999999999999, Config),
        ?assertEqual(<<"nothing was recorded from 1970-01-01T01:00:02.000Z on">>, said(End)),
        ?assertEqual(nomatch, binary:match(iolist_to_binary(weft_json:encode(Gap)), <<"null">>))
    end).

%% Times that no clock has.
a_gap_of_a_made_up_file_is_one_test() ->
    with_recording([[-1 bsl 62], [1 bsl 62]], fun(Config) ->
        {200, Gap} = weft_dashboard_past:model(3000, Config),
        ?assertEqual(<<"nothing was recorded from 1970-01-01T00:00:00.000Z to "
                       "9999-12-31T23:59:59.999Z">>, said(Gap))
    end).

said(#{<<"alarms">> := #{<<"not recorded">> := #{<<"text">> := Text}}}) -> Text.

%% A key without a value, one that comes twice, and what is no query at all.
a_query_that_can_not_be_read_is_refused_test() ->
    with_recording([[0, 2000]], fun(#{recording := Dir}) ->
        with_dashboard(Dir, fun(Port) ->
            [?assertMatch({Path, {400, _}}, {Path, json(request(Port, Path))})
             || Path <- ["/api/events?since", "/api/recording?at", "/api/recording?at=1&at=2",
                         "/api/recording?at=%zz"]]
        end)
    end).

%% To read all of it takes longer than the test.
who_reads_ends_with_who_has_asked_test_() ->
    {timeout, 60, fun() ->
        with_recording([lists:seq(1, 5000)], fun(#{recording := Dir}) ->
            {ok, [{Path, _}]} = weft_ops_recording_files:list(Dir),
            {ok, Chunk} = file:read_file(Path),
            ok = file:write_file(Path, binary:copy(Chunk, 2000)),
            with_dashboard(Dir, fun read_by_some/1)
        end)
    end}.

read_by_some(Port) ->
    Sockets = [asked("/api/recording?at=1000", Port) || _ <- ?READERS],
    until(fun() -> readers() =:= ?READERS end),
    Waiting = asked("/api/recording?at=1000", Port),
    until(fun() -> waiting() =:= 1 end),
    gen_tcp:close(Waiting),
    until(fun() -> waiting() =:= 0 end),
    lists:foreach(fun gen_tcp:close/1, Sockets),
    until(fun() -> readers() =:= [] end),
    ?assertMatch({200, #{<<"from_ms">> := 1}}, json(request(Port, "/api/recording"))).

%% As who holds an arrow key on the slider asks for one time after the other.
more_than_may_read_at_once_wait_and_get_their_answers_test_() ->
    {timeout, 60, fun more_than_may_read_at_once_wait_and_get_their_answers/0}.

more_than_may_read_at_once_wait_and_get_their_answers() ->
    with_recording([[1000, 2000, 3000]], fun(Config) ->
        Busy = [busy(Name) || Name <- ?READERS],
        Asked = [spawn_monitor(fun() -> exit(weft_dashboard_past:model(2000, Config)) end)
                 || _ <- lists:seq(1, 12)],
        until(fun() -> waiting() =:= 12 end),
        lists:foreach(fun(Pid) -> exit(Pid, kill) end, Busy),
        ?assertEqual(lists:duplicate(12, 200), [status(One) || One <- Asked])
    end).

%% Of an hour, in which agents that are asked now were not there.
events_of_a_recording_are_told_test() ->
    with_recording([[Minute * 60000 + Ms || Ms <- [0, 2000]] || Minute <- lists:seq(0, 59)],
                   fun(#{recording := Dir}) ->
        Config = #{source => agents, recording => Dir},
        {ok, Files} = weft_ops_recording_files:list(Dir),
        {LastPath, _} = lists:last(Files),
        Events = [#{at_ms => AtMs, kind => told, node => a@h, about => none, text => <<"x">>}
                  || AtMs <- [3600000, 3601000]],
        {ok, Chunk} = weft_ops_chunk:add([{AtMs, {event, Event}}
                                          || #{at_ms := AtMs} = Event <- Events],
                                         weft_ops_chunk:new()),
        ok = file:write_file(LastPath, weft_ops_chunk:encode(Chunk), [append]),
        Told = fun(SinceMs) ->
                   {200, #{events := All, more := 0, missing := []}} =
                       weft_dashboard_past:events(SinceMs, Config),
                   [AtMs || #{at_ms := AtMs} <- All]
               end,
        ?assertEqual({[3600000, 3601000], [3601000]}, {Told(0), Told(3600001)})
    end).

%% All who may read are busy.
a_recording_that_is_late_hides_nothing_else_test_() ->
    {timeout, 60, fun() ->
        with_recording([[1000]], fun(#{recording := Dir}) ->
            Busy = [busy(Name) || Name <- ?READERS],
            ?assertMatch({200, #{events := [], missing := [recording]}},
                         weft_dashboard_past:events(0, #{source => agents, recording => Dir})),
            lists:foreach(fun(Pid) -> exit(Pid, kill) end, Busy),
            until(fun() -> readers() =:= [] end)
        end)
    end}.

busy(Name) ->
    Pid = spawn(fun() -> receive after infinity -> ok end end),
    true = register(Name, Pid),
    Pid.

status({Pid, Monitor}) ->
    receive {'DOWN', Monitor, process, Pid, {Status, _}} -> Status end.

%% How many wait for the end of the first one that reads, or has such a name.
waiting() ->
    case process_info(whereis(hd(?READERS)), monitored_by) of
        {monitored_by, All} ->
            length([Pid || Pid <- All, is_pid(Pid),
                           process_info(Pid, current_function)
                               =:= {current_function, {weft_dashboard_turns, in_turn, 2}}]);
        undefined ->
            0
    end.

readers() -> [Name || Name <- ?READERS, whereis(Name) =/= undefined].

until(Condition) -> weft_test_nodes:until(Condition, ?QUICK_MS).

%% A browser that does not wait for the answer.
asked(Path, Port) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    ok = gen_tcp:send(Socket, ["GET ", Path, " HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"]),
    Socket.

with_dashboard(Dir, Fun) ->
    {ok, _} = application:ensure_all_started(cowboy),
    {ok, Config} = weft_dashboard_config:parse([{port, 0}, {recording, Dir}]),
    {ok, Supervisor} = weft_dashboard:start(Config),
    try Fun(weft_dashboard:port())
    after weft_dashboard_made_up:stop(Supervisor)
    end.

%% With chunks of samples of these times.
with_recording(Chunks, Fun) ->
    Dir = filename:join([filename:basedir(user_cache, "weft"), "test",
                         integer_to_list(erlang:system_time(nanosecond))]),
    _ = lists:foldl(fun([FirstMs | _] = Times, Files) ->
                        {ok, Chunk} = weft_ops_chunk:add([{Ms, {sample, sample(Ms)}}
                                                          || Ms <- Times], weft_ops_chunk:new()),
                        Bytes = weft_ops_chunk:encode(Chunk),
                        {ok, Next} = weft_ops_recording_files:append(max(0, FirstMs), Bytes, Files),
                        Next
                    end, weft_ops_recording_files:new(#{dir => Dir, bytes_max => 1048576}), Chunks),
    try Fun(#{recording => Dir})
    after ok = file:del_dir_r(Dir)
    end.

sample(AtMs) ->
    #{node => a@h, at_ms => AtMs, period_ms => 2000, uptime_ms => 1, groups => [g], peers => [],
      links => [], relayed_bytes => 0, relayed_circuits => 0, unreachable => [], cuts => [],
      conflicts => 0, told => [],
      machine => #{wake_up_us => 1, run_queue => 0, memory_bytes => 1, processes => 1}}.
