%% SPDX-License-Identifier: Apache-2.0
%% @doc One directory and two nodes that want it: alive, killed, on other hosts, out of sight.
-module(weft_directory_lock_tests).

-include_lib("eunit/include/eunit.hrl").

one_at_a_time_test() ->
    in_directory(fun(Dir) ->
                     {ok, One} = weft_directory_lock:start_link(Dir, mine),
                     File = filename:join(Dir, "mine.lock"),
                     {ok, Host} = inet:gethostname(),
                     Node = atom_to_list(node()),
                     ?assertMatch({error, {directory_in_use,
                                           #{file := File, node := Node, host := Host, do := _}}},
                                  weft_directory_lock:start_link(Dir, mine)),
                     %% For another purpose it is free.
                     {ok, Other} = weft_directory_lock:start_link(Dir, other),
                     ok = gen_server:stop(One),
                     {ok, Two} = weft_directory_lock:start_link(Dir, mine),
                     [ok = gen_server:stop(Pid) || Pid <- [Two, Other]],
                     ?assertEqual({ok, []}, file:list_dir(Dir))
                 end).

%% Of the same node, and of one of which nothing is left but the file.
a_killed_holder_is_no_holder_test() ->
    in_directory(fun(Dir) ->
                     {ok, One} = weft_directory_lock:start_link(Dir, mine),
                     exit(One, kill),
                     receive {'EXIT', One, killed} -> ok end,
                     {ok, Two} = weft_directory_lock:start_link(Dir, mine),
                     ok = gen_server:stop(Two)
                 end).

another_node_of_this_host_test_() ->
    {timeout, 60, fun() -> in_directory(fun another_node/1) end}.

another_node(Dir) ->
    [Erl | Arguments] = holding(Dir),
    Port = open_port({spawn_executable, Erl}, [{args, Arguments}, exit_status, stderr_to_stdout]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    Named = integer_to_list(OsPid),
    receive {Port, {data, "has it"}} -> ok end,
    ?assertMatch({error, {directory_in_use, #{os_pid := Named}}},
                 weft_directory_lock:start_link(Dir, mine)),
    _ = os:cmd("kill -STOP " ++ Named),
    ?assertMatch({error, {directory_in_use, _}}, weft_directory_lock:start_link(Dir, mine)),
    _ = os:cmd("kill -KILL " ++ Named),
    receive {Port, {exit_status, _}} -> ok end,
    {ok, Lock} = weft_directory_lock:start_link(Dir, mine),
    ok = gen_server:stop(Lock).

%% A node that has the directory, for a minute at most.
holding(Dir) ->
    [os:find_executable("erl"), "-noinput", "-pa",
     filename:dirname(code:which(weft_directory_lock)), "-eval",
     lists:concat(["{ok, _} = weft_directory_lock:start_link(\"", Dir, "\", mine), "
                   "_ = timer:apply_after(60000, erlang, halt, []), io:put_chars(\"has it\"), "
                   "receive never -> ok end."])].

%% Its parent is a program that knows of no child.
a_killed_holder_that_nobody_waits_for_test_() ->
    {timeout, 60, fun() -> in_directory(fun nobody_waits_for_it/1) end}.

nobody_waits_for_it(Dir) ->
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", "\"$@\" & exec sleep 60", "sh" | holding(Dir)]}]),
    {os_pid, Parent} = erlang:port_info(Port, os_pid),
    receive {Port, {data, "has it"}} -> ok end,
    {error, {directory_in_use, #{os_pid := OsPid}}} = weft_directory_lock:start_link(Dir, mine),
    _ = os:cmd("kill -KILL " ++ OsPid),
    weft_test_nodes:until(fun() ->
        {ok, Stat} = file:read_file(["/proc/", OsPid, "/stat"]),
        string:find(Stat, ") Z ") =/= nomatch
    end),
    {ok, Lock} = weft_directory_lock:start_link(Dir, mine),
    ok = gen_server:stop(Lock),
    _ = os:cmd("kill " ++ integer_to_list(Parent)).

%% Its number is that of another process by now.
a_process_with_the_same_number_is_another_one_test() ->
    in_directory(fun(Dir) ->
                     ok = left_behind(Dir, fun(5, _) -> <<"1">>; (_, Line) -> Line end),
                     {ok, Lock} = weft_directory_lock:start_link(Dir, mine),
                     ok = gen_server:stop(Lock)
                 end).

who_is_out_of_sight_is_alive_while_it_writes_test() ->
    in_directory(
      fun(Dir) ->
          Elsewhere = fun(2, _) -> <<"far">>; (6, _) -> <<"elsewhere">>; (_, Line) -> Line end,
          [begin
               ok = left_behind(Dir, Change),
               ?assertMatch({error, {directory_in_use, _}},
                            weft_directory_lock:start_link(Dir, mine)),
               File = filename:join(Dir, "mine.lock"),
               ok = file:change_time(File, calendar:system_time_to_local_time(
                                             erlang:system_time(second) - 20, second)),
               {ok, Lock} = weft_directory_lock:start_link(Dir, mine),
               ok = gen_server:stop(Lock)
           end || Change <- [Elsewhere, fun(0, _) -> <<"damaged">>; (_, Line) -> Line end]]
      end).

%% Another one has it, because this one stood still.
a_holder_that_has_lost_the_directory_ends_test() ->
    in_directory(fun(Dir) ->
                     {ok, One} = weft_directory_lock:start_link(Dir, mine),
                     {ok, Text} = file:read_file(filename:join(Dir, "mine.lock")),
                     One ! beat,
                     ok = looked(One),
                     ?assertEqual({ok, Text}, file:read_file(filename:join(Dir, "mine.lock"))),
                     ok = file:write_file(filename:join(Dir, "mine.lock"), "another one's"),
                     One ! beat,
                     receive {'EXIT', One, {directory_in_use, _}} -> ok after 5000 -> error(on) end,
                     ?assertEqual({ok, <<"another one's">>},
                                  file:read_file(filename:join(Dir, "mine.lock")))
                 end).

%% Another one may have had it, and have written there, and has left.
a_holder_whose_file_is_gone_ends_test() ->
    in_directory(fun(Dir) ->
                     {ok, One} = weft_directory_lock:start_link(Dir, mine),
                     File = filename:join(Dir, "mine.lock"),
                     ok = file:delete(File),
                     One ! beat,
                     receive {'EXIT', One, {directory_lost, File}} -> ok
                     after 5000 -> error(on)
                     end,
                     ?assertNot(weft_directory_lock:is_held(Dir, mine)),
                     ?assertEqual({ok, []}, file:list_dir(Dir))
                 end).

%% There is something in place of its file that can not be read.
a_holder_that_can_not_look_holds_no_more_test() ->
    in_directory(fun(Dir) ->
                     {ok, One} = weft_directory_lock:start_link(Dir, mine),
                     ok = atomics:sub(persistent_term:get({weft_directory_lock, Dir, mine}), 1,
                                      10000),
                     File = filename:join(Dir, "mine.lock"),
                     ok = file:rename(File, File ++ ".aside"),
                     ok = file:make_dir(File),
                     One ! beat,
                     ok = looked(One),
                     ?assertNot(weft_directory_lock:is_held(Dir, mine)),
                     ok = file:del_dir(File),
                     ok = file:rename(File ++ ".aside", File),
                     One ! beat,
                     ok = looked(One),
                     ?assert(weft_directory_lock:is_held(Dir, mine)),
                     ok = gen_server:stop(One)
                 end).

%% The monotonic clock stood still with it.
a_suspended_host_has_to_look_test() ->
    in_directory(fun(Dir) ->
                     {ok, One} = weft_directory_lock:start_link(Dir, mine),
                     ?assert(weft_directory_lock:is_held(Dir, mine)),
                     %% Other processes that look at the clock may have it overlooked once.
                     weft_test_nodes:until(fun() ->
                                               ok = weft_suspension:stood_still(10000),
                                               not weft_directory_lock:is_held(Dir, mine)
                                           end),
                     One ! beat,
                     ok = looked(One),
                     ?assert(weft_directory_lock:is_held(Dir, mine)),
                     ok = gen_server:stop(One)
                 end).

%% Who writes there is told that it has to be looked at again, and that it is another one's.
a_holder_that_has_not_looked_for_long_does_not_hold_test() ->
    in_directory(fun(Dir) ->
                     IsHeld = fun() -> weft_directory_lock:is_held(Dir, mine) end,
                     ?assert(IsHeld()),
                     {ok, One} = weft_directory_lock:start_link(Dir, mine),
                     ?assert(IsHeld()),
                     %% It stood still for ten seconds.
                     Seen = persistent_term:get({weft_directory_lock, Dir, mine}),
                     ok = atomics:sub(Seen, 1, 10000),
                     ?assertNot(IsHeld()),
                     One ! beat,
                     ok = looked(One),
                     ?assert(IsHeld()),
                     ok = atomics:sub(Seen, 1, 10000),
                     ok = file:write_file(filename:join(Dir, "mine.lock"), "another one's"),
                     One ! beat,
                     receive {'EXIT', One, {directory_in_use, _}} -> ok after 5000 -> error(on) end,
                     ?assertNot(IsHeld())
                 end).

%% It has looked at all that was sent before.
looked(Pid) ->
    _ = sys:get_state(Pid),
    ok.

of_many_one_gets_what_was_left_behind_test() ->
    in_directory(
      fun(Dir) ->
          ok = left_behind(Dir, fun(5, _) -> <<"1">>; (_, Line) -> Line end),
          Self = self(),
          Pids = [spawn_link(fun() ->
                                 process_flag(trap_exit, true),
                                 Self ! {self(), weft_directory_lock:start_link(Dir, mine)},
                                 receive stop -> ok end
                             end) || _ <- lists:seq(1, 20)],
          Started = [Lock || Pid <- Pids, {ok, Lock} <- [receive {Pid, R} -> R end]],
          ?assertMatch([_], Started),
          ok = gen_server:stop(hd(Started)),
          [Pid ! stop || Pid <- Pids]
      end).

a_directory_that_can_not_be_written_is_named_test() ->
    in_directory(fun(Dir) ->
                     File = filename:join(Dir, "file"),
                     ok = file:write_file(File, "x"),
                     ?assertMatch({error, {_, File}}, weft_directory_lock:start_link(File, mine))
                 end).

%% The lock of a holder that was killed, with other lines.
left_behind(Dir, Change) ->
    {ok, One} = weft_directory_lock:start_link(Dir, mine),
    File = filename:join(Dir, "mine.lock"),
    {ok, Text} = file:read_file(File),
    ok = gen_server:stop(One),
    Lines = binary:split(Text, <<"\n">>, [global]),
    Changed = [Change(N, Line) || {N, Line} <- lists:enumerate(0, Lines)],
    file:write_file(File, lists:join($\n, Changed)).

in_directory(Fun) ->
    Dir = filename:join(filename:basedir(user_cache, "weft_directory_lock_tests"),
                        integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Level = maps:get(level, logger:get_primary_config()),
    ok = logger:set_primary_config(level, none),
    try weft_test_trapping:run(fun() -> Fun(Dir) end)
    after
        ok = logger:set_primary_config(level, Level),
        file:del_dir_r(Dir)
    end.
