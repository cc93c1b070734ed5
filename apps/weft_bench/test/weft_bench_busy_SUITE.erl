%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes that are busy with their own work, measured beside stock distribution in the same run.
%%
%% The bounds are wide, since a machine that does other things too disturbs one variant more than
%% the other. What they tell apart are powers of ten: where the processes of a connection wait for
%% their turn among 3,000, a call takes a hundred times as long.
-module(weft_bench_busy_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([busy_node_answers/1, node_of_high_priority_answers/1, flood_leaves_the_node_its_time/1]).

-define(TIMES, 8).
-define(NOISE_US, 20000).

suite() -> [{timetrap, {seconds, 90}}].

all() ->
    [busy_node_answers]
        ++ [Case || os:getenv("FULL") =/= false,
                    Case <- [node_of_high_priority_answers, flood_leaves_the_node_its_time]].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

%% 3,000 processes compute on the node that answers, or on the gateway to it.
busy_node_answers(Config) ->
    answers_as_stock(call_to_busy, [weft_1, weft_gateway], Config).

%% Four of priority high, on two schedulers or any other number up to four.
node_of_high_priority_answers(Config) ->
    answers_as_stock(call_to_high, [weft_1] ++ [weft_gateway || os:getenv("FULL") =/= false],
                     Config).

%% Calls that wait for their turn among others of the same priority are few, though the fastest of
%% them may be fast.
answers_as_stock(Workload, Variants, Config) ->
    #{stock := #{latency_p50_us := StockUs, calls := Calls}} = Measured =
        measured(Workload, [stock | Variants], Config),
    [begin
         #{Variant := Of} = Measured,
         ?assert(maps:get(calls, Of) > Calls / ?TIMES),
         ?assert(maps:get(latency_p50_us, Of) < ?TIMES * StockUs + ?NOISE_US),
         ?assertMatch({Variant, #{timeouts := 0, nodedowns := 0}}, {Variant, Of})
     end || Variant <- Variants].

%% Floods of small messages to a node: its own processes have about the part of its processor time
%% that stock leaves them.
flood_leaves_the_node_its_time(Config) ->
    #{stock := #{computed_percent := Stock}, weft_1 := #{computed_percent := Weft}} =
        measured(flood_to_busy, [stock, weft_1], Config),
    ?assert(Weft > 0.75 * Stock).

%% The largest of the cells, in short unless it is about shares of time.
measured(Workload, Variants, Config) ->
    Cell = lists:last([Of || #{workload := Is} = Of <- weft_bench_busy:cells(quick),
                             Is =:= Workload]),
    DurationMs = case Workload of flood_to_busy -> 1500; _ -> 400 end,
    Dir = ?config(priv_dir, Config),
    Measured = weft_bench_place:with(
                 weft_bench_link:loopback(), Dir,
                 fun(Place) ->
                     [{Variant, on_nodes(Variant, Cell#{with := #{duration_ms => DurationMs}},
                                         #{place => Place, log_dir => Dir})}
                      || Variant <- Variants]
                 end),
    ct:pal("~p", [Measured]),
    maps:from_list(Measured).

on_nodes(Variant, #{layout := Layout} = Cell, Context) ->
    {ok, Nodes} = weft_bench_nodes:start(Variant, Layout, Context),
    try
        {ok, Metrics} = weft_bench_busy:run(Cell, Nodes),
        maps:from_list(Metrics)
    after
        weft_bench_nodes:stop(Nodes)
    end.
