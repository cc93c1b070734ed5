%% SPDX-License-Identifier: Apache-2.0
%% @doc Many processes, each of which pings each other and waits for all pongs. Many small messages
%% between all pairs.
-module(bencherl_big).

-export([bench_args/2, run/3]).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(Version, Conf) ->
    Cores = proplists:get_value(number_of_cores, Conf),
    [[Cores * case Version of short -> 8; intermediate -> 16; long -> 24 end * 8]].

%% @private
-spec run(list(), [node()], list()) -> ok | {error, term()}.
run([Count], _Slaves, _Conf) ->
    Starter = self(),
    Pids = [spawn_link(fun() -> wait(Starter) end) || _ <- lists:seq(1, Count)],
    _ = [Pid ! {others, lists:delete(Pid, Pids)} || Pid <- Pids],
    [receive {done, Pid} -> ok end || Pid <- Pids],
    [Pid ! stop || Pid <- Pids],
    ok.

wait(Starter) ->
    receive {others, Others} -> ping(Others, length(Others), Starter) end.

ping(Others, Count, Starter) ->
    _ = [Other ! {ping, self()} || Other <- Others],
    answer(Count, Starter).

answer(0, Starter) ->
    Starter ! {done, self()},
    answer(none, Starter);
answer(Left, Starter) ->
    receive
        {ping, From} -> From ! pong, answer(Left, Starter);
        pong -> answer(Left - 1, Starter);
        stop -> ok
    end.
