%% SPDX-License-Identifier: Apache-2.0
%% @doc What processes with a mark compute is counted, of those that ended as well.
-module(suite_processor_tests).

-include_lib("eunit/include/eunit.hrl").

-define(VARIABLE, "WEFT_TEST_PROCESSOR").
%% Computes for some tenths of a second, in the shell itself or in a child that it waits for.
-define(LOOP, "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done").

counted_test_() ->
    {timeout, 120, fun() ->
        case filelib:is_regular("/proc/self/stat") of
            true ->
                ok = suite_processor:start(?VARIABLE),
                counted(?LOOP "; read line"),
                counted("(" ?LOOP "); read line"),
                ?assertEqual(0.0, suite_processor:used_s("nobody"));
            false ->
                ok
        end
    end}.

counted(Script) ->
    Value = integer_to_list(erlang:unique_integer([positive])),
    Port = open_port({spawn_executable, os:find_executable("sh")},
                     [{args, ["-c", Script]}, {env, [{?VARIABLE, Value}]}, exit_status]),
    Least = grown(Value, 0.0),
    true = port_command(Port, "\n"),
    receive {Port, {exit_status, 0}} -> ok end,
    ?assert(suite_processor:used_s(Value) >= Least).

%% Until it does nothing any more.
grown(Value, Before) ->
    receive after 300 -> ok end, % pacing: time to compute in
    case suite_processor:used_s(Value) of
        Before when Before > 0.05 -> Before;
        Used -> grown(Value, Used)
    end.
