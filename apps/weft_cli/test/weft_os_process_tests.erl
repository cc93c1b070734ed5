%% SPDX-License-Identifier: Apache-2.0
-module(weft_os_process_tests).

-include_lib("eunit/include/eunit.hrl").

%% The mark makes this sleep different from all others on the machine.
start() ->
    Mark = integer_to_list(3000 + erlang:unique_integer([positive])),
    Log = filename:join(filename:basedir(user_cache, "weft_test"), Mark ++ ".log"),
    ok = filelib:ensure_dir(Log),
    {ok, OsPid} = weft_os_process:start([os:find_executable("sleep"), Mark], [], Log),
    {#{os_pid => OsPid, marks => [Mark]}, Log}.

a_process_lives_until_it_is_stopped_test() ->
    {Process, Log} = start(),
    ?assert(weft_os_process:is_alive(Process)),
    ?assertEqual(ok, weft_os_process:stop(Process, 5000)),
    ?assertNot(weft_os_process:is_alive(Process)),
    ?assertEqual({error, not_running}, weft_os_process:signal("TERM", Process)),
    ok = file:delete(Log).

a_process_without_the_marks_is_left_alone_test() ->
    {Process, Log} = start(),
    Other = Process#{marks := ["no such word"]},
    ?assertNot(weft_os_process:is_alive(Other)),
    ?assertEqual({error, not_running}, weft_os_process:signal("KILL", Other)),
    ?assertEqual(ok, weft_os_process:stop(Other, 0)),
    ?assert(weft_os_process:is_alive(Process)),
    ?assertEqual(ok, weft_os_process:stop(Process, 5000)),
    ok = file:delete(Log).

output_goes_to_the_log_test_() ->
    {timeout, 60, fun output_goes_to_the_log/0}.

output_goes_to_the_log() ->
    Mark = integer_to_list(erlang:unique_integer([positive])),
    Log = filename:join(filename:basedir(user_cache, "weft_test"), "echo" ++ Mark),
    ok = filelib:ensure_dir(Log),
    Command = ["/bin/sh", "-c", "echo \"$WEFT_WORD and $1\"", "sh", "two words"],
    {ok, OsPid} = weft_os_process:start(Command, [{"WEFT_WORD", "one"}], Log),
    weft_test_nodes:until(fun() -> {ok, <<"one and two words\n">>} =:= file:read_file(Log) end),
    ok = weft_os_process:stop(#{os_pid => OsPid, marks => ["two words"]}, 5000),
    ok = file:delete(Log).
