%% SPDX-License-Identifier: Apache-2.0
-module(weft_ops_keeper_tests).

-include_lib("eunit/include/eunit.hrl").

-export([kept/1]).

-define(PAUSE_MS, 20).
-define(WAIT_MS, 10000).

%% A supervisor would have given up long before.
what_ends_again_and_again_is_started_again_test() ->
    {ok, Keeper} = start([]),
    Pids = [begin
                Kept = started(),
                true = exit(Kept, kill),
                Kept
            end || _ <- lists:seq(1, 20)],
    ?assertEqual(20, length(lists:usort(Pids))),
    ?assert(is_process_alive(started())),
    ?assert(is_process_alive(Keeper)),
    stop(Keeper).

it_is_not_started_again_at_once_test() ->
    {ok, Keeper} = start([]),
    BeforeMs = erlang:monotonic_time(millisecond),
    true = exit(started(), kill),
    _Again = started(),
    ?assert(erlang:monotonic_time(millisecond) - BeforeMs >= ?PAUSE_MS),
    stop(Keeper).

what_can_not_start_now_is_tried_again_test() ->
    {ok, Keeper} = start([ok, {error, later}, {error, later}, ok]),
    true = exit(started(), kill),
    ?assert(is_process_alive(started())),
    ?assert(is_process_alive(Keeper)),
    stop(Keeper).

%% Before OTP 26 who starts it gets its exit, too.
what_can_not_start_the_first_time_is_an_error_test() ->
    {Starter, Ref} = spawn_monitor(fun() ->
                                       _ = process_flag(trap_exit, true),
                                       exit({began, start([{error, never}])})
                                   end),
    receive
        {'DOWN', Ref, process, Starter, Reason} -> ?assertEqual({began, {error, never}}, Reason)
    after ?WAIT_MS -> error(not_ended)
    end.

%% Its names are free only when it has ended.
a_former_one_is_waited_for_test() ->
    Former = spawn(fun() -> receive stop -> ok end end),
    Ref = monitor(process, Former),
    _ = erlang:send_after(50, Former, stop),
    {ok, Keeper} = start([{error, {already_started, Former}}, ok]),
    receive {'DOWN', Ref, process, Former, normal} -> ok after 0 -> error(still_there) end,
    ?assert(is_process_alive(started())),
    stop(Keeper).

what_is_kept_ends_first_test() ->
    {ok, Keeper} = start([]),
    Kept = started(),
    stop(Keeper),
    ?assertNot(is_process_alive(Kept)).

a_stray_message_ends_nothing_test() ->
    {ok, Keeper} = start([]),
    Kept = started(),
    Keeper ! {'EXIT', spawn(fun() -> ok end), other},
    ok = gen_server:cast(Keeper, stray),
    ?assertMatch({error, _}, gen_server:call(Keeper, stray)),
    ?assert(is_process_alive(Kept)),
    stop(Keeper).

%% --- steps ------------------------------------------------------------------------------------

%% With these answers, one after another, and then always `ok'.
start(Answers) ->
    Test = self(),
    Scripts = spawn_link(fun() -> script(Answers) end),
    weft_ops_keeper:start_link(test, {?MODULE, kept, [{Test, Scripts}]}, ?PAUSE_MS).

script(Answers) ->
    receive {next, From} ->
        {Answer, Left} = case Answers of [First | Others] -> {First, Others}; [] -> {ok, []} end,
        From ! {next, Answer},
        script(Left)
    end.

%% @doc What a keeper starts: it ends as slowly as a supervisor may.
kept({Test, Scripts}) ->
    Scripts ! {next, self()},
    receive
        {next, ok} ->
            Pid = spawn_link(fun() ->
                                     _ = process_flag(trap_exit, true),
                                     Test ! {started, self()},
                                     receive {'EXIT', _, shutdown} -> ok end,
                                     receive after 20 -> ok end % pacing: a slow end
                             end),
            {ok, Pid};
        {next, Error} ->
            Error
    end.

started() -> receive {started, Pid} -> Pid after ?WAIT_MS -> error(not_started) end.

stop(Keeper) ->
    true = unlink(Keeper),
    Ref = monitor(process, Keeper),
    true = exit(Keeper, shutdown),
    receive {'DOWN', Ref, process, Keeper, shutdown} -> ok after ?WAIT_MS -> error(no_end) end.
