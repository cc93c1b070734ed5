%% SPDX-License-Identifier: Apache-2.0
%% @doc What is done to the operating system and never outlives this emulator: a process with all
%% its children, or a command and the command that undoes it.
%%
%% The program runs in the background of a shell that reads its standard input. A line, or the end
%% of the input (which comes when this emulator dies, however it dies), makes the shell kill its
%% whole process group, or undo the command. When the program ends by itself, so does the group.
-module(weft_rabbitmq_process).

-export([start/1, hold/2, stop/1, is_running/1, run/2]).

%% output: a file for standard output and error.
-type program() :: #{command := file:filename(), args => [string()],
                     env => [{string(), string() | false}], output := file:filename()}.
-export_type([program/0]).

-define(SHELL, "{ \"$@\" </dev/null >\"$0\" 2>&1; kill -KILL -$$; } & read line; kill -KILL -$$").
%% Says whether the first command worked; undoes it only then.
-define(HOLD, "if sh -c \"$0\" >&2; then echo done; read line; sh -c \"$1\" >&2; else exit 1; fi").
-define(STOP_MS, 10000).

%% @doc Starts the program; it lives until stop/1 or the end of this emulator.
-spec start(program()) -> pid().
start(#{command := Command, output := Output} = Program) ->
    Args = ["-c", ?SHELL, Output, Command | maps:get(args, Program, [])],
    spawn(fun() -> keep(open("/bin/sh", Args, Program)) end).

%% @doc Runs the shell command Do; Undo runs at stop/1 or the end of this emulator.
-spec hold(string(), string()) -> {ok, pid()} | {error, Output :: binary()}.
hold(Do, Undo) ->
    Self = self(),
    {Keeper, Monitor} = spawn_monitor(fun() ->
        Port = open("/bin/sh", ["-c", ?HOLD, Do, Undo], #{}),
        wait_until_done(Port, <<>>),
        Self ! {self(), done},
        keep(Port)
    end),
    receive
        {Keeper, done} -> demonitor(Monitor, [flush]), {ok, Keeper};
        {'DOWN', Monitor, process, Keeper, {not_done, Output}} -> {error, Output}
    end.

%% @doc Ends the process, or undoes what is held; returns when that is done.
-spec stop(pid()) -> ok.
stop(Keeper) ->
    Monitor = monitor(process, Keeper),
    Keeper ! stop,
    receive
        {'DOWN', Monitor, process, Keeper, _Reason} -> ok
    after ?STOP_MS ->
        error({still_running, Keeper})
    end.

-spec is_running(pid()) -> boolean().
is_running(Keeper) ->
    is_process_alive(Keeper).

%% @doc Runs a command to its end and returns its exit code and output; fails after TimeoutMs.
-spec run(#{command := file:filename(), args => [string()], env => [{string(), string() | false}]},
          timeout()) -> {ExitCode :: non_neg_integer(), Output :: binary()}.
run(#{command := Command} = Program, TimeoutMs) ->
    Port = open(Command, maps:get(args, Program, []), Program),
    collect(Port, <<>>, erlang:monotonic_time(millisecond) + TimeoutMs).

open(Executable, Args, Program) ->
    open_port({spawn_executable, Executable},
              [{args, Args}, {env, maps:get(env, Program, [])}, binary, exit_status,
               stderr_to_stdout]).

wait_until_done(Port, Output) ->
    receive
        {Port, {data, <<"done\n">>}} -> ok;
        {Port, {data, Data}} -> wait_until_done(Port, <<Output/binary, Data/binary>>);
        {Port, {exit_status, _Status}} -> exit({not_done, Output})
    end.

keep(Port) ->
    receive
        stop ->
            true = port_command(Port, "end\n"),
            keep(Port);
        {Port, {exit_status, _Status}} ->
            ok
    end.

collect(Port, Output, DeadlineMs) ->
    receive
        {Port, {data, Data}} ->
            collect(Port, <<Output/binary, Data/binary>>, DeadlineMs);
        {Port, {exit_status, Status}} ->
            {Status, Output}
    after max(0, DeadlineMs - erlang:monotonic_time(millisecond)) ->
        {os_pid, Pid} = erlang:port_info(Port, os_pid),
        true = port_close(Port),
        "" = os:cmd("kill -KILL -" ++ integer_to_list(Pid)),
        error({no_answer_in_time, Output})
    end.
