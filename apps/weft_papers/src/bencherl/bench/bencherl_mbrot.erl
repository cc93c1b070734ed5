%% SPDX-License-Identifier: Apache-2.0
%% @doc Pixels of the Mandelbrot set, rows shared out among processes. Computing without messages.
%% Rows differ in what they cost, so each process gets every n-th.
-module(bencherl_mbrot).

-export([bench_args/2, run/3]).

-define(ITERATIONS, 255).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(Version, Conf) ->
    Cores = proplists:get_value(number_of_cores, Conf),
    Size = 64 * case Version of short -> 2; intermediate -> 4; long -> 7 end,
    [[Size, 4 * Cores]].

%% @private
-spec run(list(), [node()], list()) -> ok | {error, term()}.
run([Size, Processes], _Slaves, _Conf) ->
    Starter = self(),
    Pids = [spawn_link(fun() -> Starter ! {self(), rows(First, Processes, Size)} end)
            || First <- lists:seq(0, Processes - 1)],
    Inside = lists:sum([receive {Pid, Count} -> Count end || Pid <- Pids]),
    io:format("~b of ~b inside~n", [Inside, Size * Size]).

%% Every Processes-th row, since rows differ in what they cost.
rows(Row, _Step, Size) when Row >= Size -> 0;
rows(Row, Step, Size) ->
    Y = -1.0 + 2.0 * Row / Size,
    length([X || X <- lists:seq(0, Size - 1), is_inside(-2.0 + 3.0 * X / Size, Y)])
        + rows(Row + Step, Step, Size).

is_inside(X, Y) -> escape(?ITERATIONS, X, Y, 0.0, 0.0).

escape(0, _X, _Y, _A, _B) -> true;
escape(_Left, _X, _Y, A, B) when A * A + B * B > 4.0 -> false;
escape(Left, X, Y, A, B) -> escape(Left - 1, X, Y, A * A - B * B + X, 2.0 * A * B + Y).
