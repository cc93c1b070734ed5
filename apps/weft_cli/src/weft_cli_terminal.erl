%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether a person sits at the other end. A VM that was started with -noinput can not tell by
%% `io:columns()', so a shell that inherits our files is asked.
-module(weft_cli_terminal).

-export([is_terminal/1]).

-define(TIMEOUT_MS, 2000).

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
