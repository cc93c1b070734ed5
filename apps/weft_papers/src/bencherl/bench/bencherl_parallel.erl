%% SPDX-License-Identifier: Apache-2.0
%% @doc Processes that take many time stamps and check that they never go back. No messages, but a
%% resource that all share.
-module(bencherl_parallel).

-export([bench_args/2, run/3]).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(Version, Conf) ->
    Cores = proplists:get_value(number_of_cores, Conf),
    {Stamps, Processes} = case Version of
                              short -> {31300, 4};
                              intermediate -> {46900, 8};
                              long -> {109400, 10}
                          end,
    [[Stamps * Cores, Processes * Cores]].

%% @private
-spec run(list(), [node()], list()) -> ok | {error, term()}.
run([Stamps, Processes], _Slaves, _Conf) ->
    Starter = self(),
    Pids = [spawn_link(fun() -> Starter ! {self(), is_rising(Stamps)} end)
            || _ <- lists:seq(1, Processes)],
    case lists:usort([receive {Pid, Rising} -> Rising end || Pid <- Pids]) of
        [true] -> ok;
        _ -> {error, time_went_back}
    end.

is_rising(Count) ->
    Stamps = [erlang:monotonic_time() || _ <- lists:seq(1, Count)],
    Stamps =:= lists:sort(Stamps).
