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
    _ = [Pid ! {stop, Starter} || Pid <- Pids],
    Answered = lists:sum([receive {answered, Pid, Pings} -> Pings end || Pid <- Pids]),
    io:format("~b pings were answered~n", [Answered]).

wait(Starter) ->
    receive {others, Others} -> ping(Others, length(Others), Starter) end.

ping(Others, Count, Starter) ->
    _ = [Other ! {ping, self()} || Other <- Others],
    answer(Count, 0, Starter).

answer(0, Pings, Starter) ->
    Starter ! {done, self()},
    answer(none, Pings, Starter);
answer(Left, Pings, Starter) ->
    receive
        {ping, From} -> From ! pong, answer(Left, Pings + 1, Starter);
        pong -> answer(Left - 1, Pings, Starter);
        {stop, Starter} -> Starter ! {answered, self(), Pings}
    end.
