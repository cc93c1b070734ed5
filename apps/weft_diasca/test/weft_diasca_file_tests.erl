%% SPDX-License-Identifier: Apache-2.0
%% @doc What is on disk when a checkpoint was written, could not be, or is written by two at once.
-module(weft_diasca_file_tests).
-include_lib("eunit/include/eunit.hrl").

-define(WAIT_MS, 20000).

%% A directory has the name of the file, so the last step fails.
nothing_is_left_of_what_failed_test() ->
    in_directory(fun(File) ->
                         ok = filelib:ensure_dir(filename:join(File, "x")),
                         ?assertMatch({error, _}, weft_diasca_file:write(File, term)),
                         ?assertEqual(["checkpoint"], beside(File))
                 end).

what_was_written_is_read_test() ->
    in_directory(fun(File) ->
                         ?assertEqual(ok, weft_diasca_file:write(File, #{a => 1})),
                         ?assertEqual({ok, #{a => 1}}, weft_diasca_file:read(File)),
                         ?assertEqual(["checkpoint"], beside(File))
                 end).

%% Each is told that its own was written, and one of them is there.
two_who_write_one_file_do_not_mix_test_() ->
    {timeout, 60, fun() -> in_directory(fun many_write/1) end}.

many_write(File) ->
    Big = lists:duplicate(50000, big),
    Writers = [spawn_monitor(fun() -> exit([weft_diasca_file:write(File, {Writer, Time, Big})
                                            || Time <- lists:seq(1, 10)])
                             end) || Writer <- lists:seq(1, 4)],
    [receive {'DOWN', Monitor, process, _, Written} -> ?assertEqual([ok], lists:usort(Written))
     after ?WAIT_MS -> ?assert(false)
     end || {_, Monitor} <- Writers],
    ?assertMatch({ok, {_, 10, Big}}, weft_diasca_file:read(File)),
    ?assertEqual(["checkpoint"], beside(File)).

%% If the power fails, only what the disk has been told counts.
its_bytes_its_name_and_its_directory_are_brought_to_disk_in_this_order_test() ->
    in_directory(fun(File) ->
                         ?assertEqual([datasync, rename, sync],
                                      calls([datasync, rename, sync],
                                            fun() -> ok = weft_diasca_file:write(File, term) end))
                 end).

%% Which of these functions of `file' it calls.
calls(Functions, Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> receive go -> Fun() end end),
    1 = erlang:trace(Pid, true, [call]),
    [1 = erlang:trace_pattern({file, Function, '_'}, true, [])
     || Function <- Functions],
    Pid ! go,
    receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why)
    after ?WAIT_MS -> ?assert(false)
    end,
    Delivered = erlang:trace_delivered(all),
    receive {trace_delivered, all, Delivered} -> ok after ?WAIT_MS -> ?assert(false) end,
    [erlang:trace_pattern({file, Function, '_'}, false, []) || Function <- Functions],
    traced(Pid).

traced(Pid) ->
    receive {trace, Pid, call, {file, Function, _}} -> [Function | traced(Pid)]
    after 0 -> []
    end.

what_can_not_be_written_is_known_before_test() ->
    in_directory(fun(File) ->
                         ?assertEqual(ok, weft_diasca_file:check(File)),
                         ?assertEqual([], beside(File)),
                         ok = weft_diasca_file:write(File, before),
                         ?assertEqual(ok, weft_diasca_file:check(File)),
                         ?assertEqual({ok, before}, weft_diasca_file:read(File)),
                         ?assertEqual({error, eisdir},
                                      weft_diasca_file:check(filename:dirname(File))),
                         ?assertMatch({error, _}, weft_diasca_file:check(filename:join(File, "x"))),
                         ?assertEqual(["checkpoint"], beside(File))
                 end).

beside(File) ->
    {ok, Names} = file:list_dir(filename:dirname(File)),
    Names.

in_directory(Fun) ->
    Directory = string:trim(os:cmd("mktemp -d")),
    try Fun(filename:join(Directory, "checkpoint"))
    after
        ok = file:del_dir_r(Directory)
    end.
