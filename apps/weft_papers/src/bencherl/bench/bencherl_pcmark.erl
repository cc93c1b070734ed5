%% SPDX-License-Identifier: Apache-2.0
%% @doc Processes that fill, read and empty ordered ETS tables at the same time.
%% The keys of a process are its own, so that what is found can be counted.
-module(bencherl_pcmark).

-export([bench_args/2, run/3]).

-define(TABLES, 5).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(Version, Conf) ->
    Cores = proplists:get_value(number_of_cores, Conf),
    {Processes, Rows} = case Version of
                            short -> {8, 200};
                            intermediate -> {19, 500};
                            long -> {29, 2000}
                        end,
    [[Processes * Cores, Rows]].

%% @private
-spec run(list(), [node()], list()) -> ok | {error, term()}.
run([Processes, Rows], _Slaves, _Conf) ->
    Tables = [ets:new(?MODULE, [ordered_set, public]) || _ <- lists:seq(1, ?TABLES)],
    Starter = self(),
    Pids = [spawn_link(fun() -> Starter ! {self(), use(Tables, Number, Rows)} end)
            || Number <- lists:seq(1, Processes)],
    Sum = lists:sum([receive {Pid, Found} -> Found end || Pid <- Pids]),
    Left = lists:sum([ets:info(Table, size) || Table <- Tables]),
    [ets:delete(Table) || Table <- Tables],
    case {Sum, Left} of
        {_, 0} when Sum =:= ?TABLES * Processes * Rows -> ok;
        Other -> {error, {rows_found_and_left, Other}}
    end.

%% Rows of this process: inserted, found, deleted, in each table.
use(Tables, Number, Rows) ->
    lists:sum([use_one(Table, [{Number, Row} || Row <- lists:seq(1, Rows)]) || Table <- Tables]).

use_one(Table, Keys) ->
    [true = ets:insert(Table, {Key, row}) || Key <- Keys],
    Found = length([Key || Key <- Keys, ets:member(Table, Key)]),
    [true = ets:delete(Table, Key) || Key <- Keys],
    Found.
