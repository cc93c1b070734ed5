%% SPDX-License-Identifier: Apache-2.0
%% @doc This machine as a host (see `weft_deploy_host').
%%
%% Scripts are files for the moment that they run, which others can not read.
-module(weft_deploy_local).
-behaviour(weft_deploy_host).

-export([open/2, close/1, run/3, put/3]).

-define(OUTPUT_MAX, 16000000).

%% @doc Makes the directory.
-spec open(string(), #{dir := string(), _ => _}) -> {ok, string()} | {error, iodata()}.
open(_Host, #{dir := Dir}) ->
    case filelib:ensure_path(Dir) of
        ok -> {ok, Dir};
        {error, Reason} -> {error, ["can not make the directory ", Dir, ": ",
                                    file:format_error(Reason)]}
    end.

-spec close(string()) -> ok.
close(_Dir) -> ok.

-spec run(string(), iodata(), timeout()) ->
          {ok, non_neg_integer(), binary()} | {error, iodata()}.
run(Dir, Script, TimeoutMs) ->
    Unique = integer_to_list(erlang:unique_integer([positive])),
    File = filename:join(Dir, ".script-" ++ os:getpid() ++ "-" ++ Unique),
    case put(Dir, File, iolist_to_binary(Script)) of
        ok ->
            Port = open_port({spawn_executable, "/bin/sh"},
                             [{args, [File]}, binary, exit_status, stderr_to_stdout]),
            Timer = erlang:send_after(TimeoutMs, self(), {Port, timeout}),
            Result = collect(Port, <<>>),
            _ = erlang:cancel_timer(Timer),
            _ = file:delete(File),
            Result;
        Error ->
            Error
    end.

collect(Port, Output) ->
    receive
        {Port, {data, Data}} when byte_size(Output) < ?OUTPUT_MAX ->
            collect(Port, <<Output/binary, Data/binary>>);
        {Port, {data, _TooMuch}} -> collect(Port, Output);
        {Port, {exit_status, Status}} -> {ok, Status, Output};
        {Port, timeout} ->
            ok = ended(erlang:port_info(Port, os_pid), Port),
            {error, "a command took too long"}
    end.

%% The emulator starts each program in a process group of its own. What the script has started in
%% another group, as a node of the deployment is, goes on. The port is closed first: it closes
%% itself when the script ends.
ended({os_pid, OsPid}, Port) ->
    true = port_close(Port),
    _ = os:cmd("kill -TERM -" ++ integer_to_list(OsPid)),
    ok;
ended(undefined, _Port) ->
    ok.

-spec put(string(), string(), binary()) -> ok | {error, iodata()}.
put(_Dir, File, Content) ->
    case weft_deploy_private:write(File, Content, 8#600) of
        ok -> ok;
        {error, Reason} -> {error, ["can not write ", File, ": ", file:format_error(Reason)]}
    end.
