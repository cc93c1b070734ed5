%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs something in a process of its own that traps exits. Whoever is linked to a process that
%% refuses to start may hear of its end after the result (before OTP 26), when a test does not trap
%% exits any more.
-module(weft_test_trapping).

-export([run/1]).

%% @doc The result. What is linked to the process ends with it.
-spec run(fun(() -> Result)) -> Result.
run(Fun) ->
    {_, Monitor} = spawn_monitor(fun() ->
                                     process_flag(trap_exit, true),
                                     exit({result, Fun()})
                                 end),
    receive
        {'DOWN', Monitor, process, _, {result, Result}} -> Result;
        {'DOWN', Monitor, process, _, Reason} -> error(Reason)
    end.
