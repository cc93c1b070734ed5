%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether a person sits at the other end. A VM that was started with -noinput can not tell by
%% `io:columns()', so a shell that inherits our files is asked.
-module(weft_cli_terminal).

-export([is_terminal/1, height/0]).

-define(TIMEOUT_MS, 2000).
-define(USUAL_HEIGHT, 24).

%% @doc Is standard input (output) a terminal?
-spec is_terminal(input | output) -> boolean().
is_terminal(input) -> test("test -t 0");
is_terminal(output) -> test("test -t 1").

test(Script) ->
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", Script]}, nouse_stdio, exit_status]),
    receive
        {Port, {exit_status, Status}} -> Status =:= 0
    after ?TIMEOUT_MS -> false
    end.

%% @doc The lines of the terminal that standard output is.
-spec height() -> pos_integer().
height() ->
    %% Without its standard files the port speaks over 3 and 4; stty looks at its standard input.
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", "stty size <&1 >&4 2>/dev/null"]}, nouse_stdio, exit_status]),
    lines(Port, "").

lines(Port, Output) ->
    receive
        {Port, {data, Data}} -> lines(Port, Output ++ Data);
        {Port, {exit_status, _}} -> height_of(string:to_integer(Output))
    after ?TIMEOUT_MS -> ?USUAL_HEIGHT
    end.

%% Terminals that do not know their size say 0.
height_of({Lines, _Columns}) when is_integer(Lines), Lines > 0 -> Lines;
height_of(_Unknown) -> ?USUAL_HEIGHT.
