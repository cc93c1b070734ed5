%% SPDX-License-Identifier: Apache-2.0
%% @doc Processes of the operating system that outlive the one that starts them.
%%
%% A process is known by its id together with marks: words that its command line must contain. An
%% id alone may long belong to somebody else, and nothing is ever signalled that lacks its marks.
%% Works where there is a POSIX shell and either /proc or ps.
-module(weft_os_process).

-export([start/3, is_alive/1, signal/2, stop/2]).
-export_type([process/0]).

-type process() :: #{os_pid := pos_integer(), marks := [string()]}.

-define(POLL_MS, 20).
-define(EXEC_TRIES, 1000).
-define(EXEC_MS, 2).

%% @doc Starts Command (program and arguments) in the background, its output appended to LogFile.
%% The process keeps the id of the shell that started it, so the id is known at once.
-spec start([string()], [{string(), string()}], file:filename()) ->
          {ok, OsPid :: pos_integer()} | {error, iodata()}.
start(Command, Environment, LogFile) ->
    Script = "exec \"$@\" < /dev/null >> \"$0\" 2>&1 & echo $!",
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", Script, LogFile | Command]}, {env, Environment},
                      binary, exit_status, stderr_to_stdout]),
    started(Port, []).

started(Port, Output) ->
    receive
        {Port, {data, Data}} -> started(Port, [Output, Data]);
        {Port, {exit_status, 0}} -> {ok, binary_to_integer(string:trim(iolist_to_binary(Output)))};
        {Port, {exit_status, _}} -> {error, Output}
    end.

%% @doc Does the process run, and is it the one that is meant?
-spec is_alive(process()) -> boolean().
is_alive(#{os_pid := OsPid, marks := Marks}) ->
    Words = command_line(integer_to_list(OsPid)),
    Words =/= [] andalso Marks -- Words =:= [].

%% No words for a process that is gone, or has ended and was not waited for.
command_line(OsPid) ->
    case filelib:is_dir("/proc/self") of
        true -> words(OsPid, ?EXEC_TRIES);
        false -> string:lexemes(os:cmd("ps -ww -o args= -p " ++ OsPid), " \n")
    end.

%% In the middle of an exec there is a moment without words, which may last on a busy machine. So
%% there is at the end of a process, until it is a zombie.
words(OsPid, TriesLeft) ->
    case file:read_file(["/proc/", OsPid, "/cmdline"]) of
        {ok, <<>>} when TriesLeft > 0 ->
            case is_zombie(OsPid) of
                true -> [];
                false -> receive after ?EXEC_MS -> words(OsPid, TriesLeft - 1) end
            end;
        {ok, Text} ->
            [unicode:characters_to_list(Word) || Word <- binary:split(Text, <<0>>, [global, trim])];
        {error, _Gone} ->
            []
    end.

%% The state comes after the name in parentheses, see proc(5).
is_zombie(OsPid) ->
    case file:read_file(["/proc/", OsPid, "/stat"]) of
        {ok, Text} -> re:run(Text, "\\) [ZX] [^)]*$", [{capture, none}]) =:= match;
        {error, _Gone} -> true
    end.

%% @doc Sends a signal, if it is still the process that is meant.
-spec signal(string(), process()) -> ok | {error, not_running}.
signal(Name, #{os_pid := OsPid} = Process) ->
    case is_alive(Process) of
        true ->
            _ = os:cmd("kill -" ++ Name ++ " " ++ integer_to_list(OsPid)),
            ok;
        false ->
            {error, not_running}
    end.

%% @doc Asks the process to end, and makes it end if it does not within the time. Returns when it
%% is gone.
-spec stop(process(), GraceMs :: non_neg_integer()) -> ok | {error, still_running}.
stop(Process, GraceMs) ->
    _ = signal("TERM", Process),
    case await_end(Process, GraceMs) of
        ok ->
            ok;
        {error, still_running} ->
            _ = signal("KILL", Process),
            await_end(Process, 5000)
    end.

await_end(Process, LeftMs) ->
    case is_alive(Process) of
        false -> ok;
        true when LeftMs =< 0 -> {error, still_running};
        true -> receive after ?POLL_MS -> await_end(Process, LeftMs - ?POLL_MS) end
    end.
