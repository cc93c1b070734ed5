%% SPDX-License-Identifier: Apache-2.0
%% @doc Opens the ways between parents and children of a tree before anything is timed, and loads
%% the code that runs there: connections are made by whoever uses them, so that no node has others
%% than those of the tree. A node that can not be reached is left for the program to find.
-module(weft_aco_ways).

-export([open/1]).

-define(MODULES, [weft_aco_submaster, weft_aco_colony, weft_aco_children, weft_aco_parent,
                  weft_aco_report, weft_aco_names, weft_aco_ant, weft_aco_random,
                  weft_aco_problem, weft_bench_program, rand]).

%% @doc On the node of a process: from here down.
-spec open(weft_aco_tree:process()) -> ok.
open(#{children := Children}) ->
    ok = code:ensure_modules_loaded(?MODULES),
    Monitors = [spawn_monitor(Node, ?MODULE, open, [Child])
                || #{node := Node} = Child <- Children],
    lists:foreach(fun({_, Monitor}) ->
                      receive {'DOWN', Monitor, process, _, _} -> ok end
                  end, Monitors).
