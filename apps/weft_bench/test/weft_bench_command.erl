%% SPDX-License-Identifier: Apache-2.0
%% @doc `bin/bench' for suites: an emulator of its own, and what it says.
-module(weft_bench_command).

-export([line/1, line/2, open/1, run/1, collect/1]).

%% @doc The line of a shell that runs it, as the script has it: libraries of RabbitMQ's package it
%% finds itself. Its strings are in single quotes.
-spec line([string()]) -> iolist().
line(Arguments) -> line("", Arguments).

%% @doc The same, after an expression that ends with a comma.
-spec line(Expression :: string(), [iodata()]) -> iolist().
line(Expression, Arguments) ->
    Paths = [["-pa '", filename:absname(Path), "' "]
             || Path <- code:get_path(), lists:suffix("ebin", Path),
                not lists:prefix("/usr/lib/rabbitmq/", Path)],
    ["erl -noinput ", Paths, "-eval '", Expression,
     "weft_papers_cli:run(init:get_plain_arguments()).' -extra ", lists:join(" ", Arguments)].

%% @doc Begins a line.
-spec open(iodata()) -> port().
open(Line) ->
    open_port({spawn_executable, os:find_executable("sh")},
              [{args, ["-c", lists:flatten(Line)]}, exit_status, stderr_to_stdout, binary]).

%% @doc Runs a line.
-spec run(iodata()) -> {Status :: non_neg_integer(), Output :: binary()}.
run(Line) ->
    {Status, Output} = collect(open(Line)),
    ct:log("~b~n~ts", [Status, Output]),
    {Status, Output}.

%% @doc What comes of a line that was begun.
-spec collect(port()) -> {Status :: non_neg_integer(), Output :: binary()}.
collect(Port) -> collect(Port, <<>>).

collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, <<Output/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Output}
    end.
