%% SPDX-License-Identifier: Apache-2.0
%% @doc Kills processes of the program `weft_aco', from the master to colonies, on one node after
%% the other while it runs.
-module(weft_aco_killer).

-export([during/3]).
-export([kill_one/1]).

-define(CALL_MS, 20000).

%% @doc Does something, and kills a process every so many milliseconds meanwhile. How many it were.
-spec during(weft_bench_nodes:nodes(), PeriodMs :: pos_integer(), fun(() -> Result)) ->
          {Result, Kills :: non_neg_integer()}.
during(Nodes, PeriodMs, Do) ->
    Roles = list_to_tuple(lists:sort(weft_bench_nodes:roles(Nodes))),
    weft_papers_killer:during(fun() -> killing(Nodes, Roles, PeriodMs, 0) end, Do).

killing(Nodes, Roles, PeriodMs, Kills) ->
    receive
        stop -> Kills
    after PeriodMs ->
        killing(Nodes, Roles, PeriodMs, Kills + some_kill(Nodes, Roles, Kills, tuple_size(Roles)))
    end.

%% The next node on which there is something to kill.
some_kill(_Nodes, _Roles, _Number, 0) ->
    0;
some_kill(Nodes, Roles, Number, Left) ->
    Role = element(1 + (Number + Left) rem tuple_size(Roles), Roles),
    case weft_bench_nodes:call(Nodes, Role, ?MODULE, kill_one, {[Number], ?CALL_MS}) of
        1 -> 1;
        0 -> some_kill(Nodes, Roles, Number, Left - 1)
    end.

%% @doc On a node: kills a process of the program, if there is one. How many it were.
-spec kill_one(Number :: non_neg_integer()) -> 0 | 1.
kill_one(Number) ->
    Victims = [Pid || Pid <- processes(),
                      {initial_call, {Module, init, _}} <- [process_info(Pid, initial_call)],
                      Module =:= weft_aco_colony orelse Module =:= weft_aco_submaster],
    case Victims of
        [] -> 0;
        _ ->
            exit(lists:nth(1 + Number rem length(Victims), Victims), kill),
            1
    end.
