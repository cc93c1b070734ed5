%% SPDX-License-Identifier: Apache-2.0
%% @doc Writers and readers of one public ETS table: writers insert all keys again and again,
%% readers look all of them up.
-module(bencherl_ets_test).

-export([bench_args/2, run/3]).

-define(ROUNDS, 20).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(Version, Conf) ->
    Cores = proplists:get_value(number_of_cores, Conf),
    {Keys, Writers, Readers} = case Version of
                                   short -> {157, 1, 8};
                                   intermediate -> {157, 32, 32};
                                   long -> {157, 79, 40}
                               end,
    [[Keys * Cores, Writers * Cores, Readers * Cores]].

%% @private
-spec run(list(), [node()], list()) -> ok | {error, term()}.
run([Keys, Writers, Readers], _Slaves, _Conf) ->
    Table = ets:new(?MODULE, [public, {write_concurrency, true}, {read_concurrency, true}]),
    true = ets:insert(Table, [{Key, 0} || Key <- lists:seq(1, Keys)]),
    Do = [fun(Key) -> true = ets:insert(Table, {Key, Key}) end || _ <- lists:seq(1, Writers)]
        ++ [fun(Key) -> [_] = ets:lookup(Table, Key) end || _ <- lists:seq(1, Readers)],
    Monitors = [element(2, spawn_monitor(fun() -> rounds(?ROUNDS, Keys, One) end)) || One <- Do],
    Ends = [receive {'DOWN', Monitor, process, _, Reason} -> Reason end || Monitor <- Monitors],
    Sum = ets:foldl(fun({_, Value}, Acc) -> Value + Acc end, 0, Table),
    true = ets:delete(Table),
    case lists:usort(Ends) of
        [normal] -> io:format("values sum up to ~b~n", [Sum]);
        Reasons -> {error, Reasons}
    end.

rounds(0, _Keys, _Do) -> ok;
rounds(Left, Keys, Do) ->
    lists:foreach(Do, lists:seq(1, Keys)),
    rounds(Left - 1, Keys, Do).
