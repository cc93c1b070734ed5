%% SPDX-License-Identifier: Apache-2.0
%% @doc Processes that sort a list of random numbers each. Computing, and much memory.
%% The numbers are the same in each run.
-module(bencherl_ran).

-export([bench_args/2, run/3]).

-define(NUMBERS, 100000).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(Version, Conf) ->
    Cores = proplists:get_value(number_of_cores, Conf),
    [[Cores * case Version of short -> 1; intermediate -> 2; long -> 4 end]].

%% @private
-spec run(list(), [node()], list()) -> ok | {error, term()}.
run([Processes], _Slaves, _Conf) ->
    Starter = self(),
    Pids = [spawn_link(fun() -> Starter ! {self(), sorted(Number)} end)
            || Number <- lists:seq(1, Processes)],
    [io:format("~b~n", [receive {Pid, Middle} -> Middle end]) || Pid <- Pids],
    ok.

%% The numbers depend on the process alone, so each run prints the same.
sorted(Seed) ->
    _ = rand:seed(exsss, Seed),
    lists:nth(?NUMBERS div 2, lists:sort([rand:uniform(1 bsl 30) || _ <- lists:seq(1, ?NUMBERS)])).
