%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes that are busy with their own work, measured beside stock distribution in the same run.
%%
%% The bounds are wide, since a machine that does other things too disturbs one variant more than
%% the other. What they tell apart are powers of ten: where the processes of a connection wait for
%% their turn among 3,000, a call takes a hundred times as long.
-module(weft_bench_busy_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([busy_node_answers/1, node_of_high_priority_answers/1, flood_leaves_the_node_its_time/1]).

-define(TIMES, 8).
-define(NOISE_US, 20000).

suite() -> [{timetrap, {seconds, 90}}].

all() -> [busy_node_answers, node_of_high_priority_answers, flood_leaves_the_node_its_time].

%% 3,000 processes compute on the node that answers, or on the gateway to it.
busy_node_answers(Config) ->
    answers_as_stock("call_to_busy .* beside 3000$", Config).

%% Four of priority high, on two schedulers or any other number up to four.
node_of_high_priority_answers(Config) ->
    answers_as_stock("call_to_high", Config).

%% Calls that wait for their turn among others of the same priority are few, though the fastest of
%% them may be fast.
answers_as_stock(Cell, Config) ->
    Rows = run(Cell, "stock,weft_1,weft_gateway", Config),
    StockUs = value(<<"stock">>, <<"latency_p50_us">>, Rows),
    Calls = value(<<"stock">>, <<"calls">>, Rows),
    [begin
         ?assert(value(Variant, <<"calls">>, Rows) > Calls / ?TIMES),
         ?assert(value(Variant, <<"latency_p50_us">>, Rows) < ?TIMES * StockUs + ?NOISE_US),
         ?assertEqual({Variant, 0}, {Variant, value(Variant, <<"timeouts">>, Rows)}),
         ?assertEqual({Variant, 0}, {Variant, value(Variant, <<"nodedowns">>, Rows)})
     end || Variant <- [<<"weft_1">>, <<"weft_gateway">>]].

%% Floods of small messages to a node: its own processes have about the part of its processor time
%% that stock leaves them.
flood_leaves_the_node_its_time(Config) ->
    Rows = run("flood_to_busy", "stock,weft_1", Config),
    Stock = value(<<"stock">>, <<"computed_percent">>, Rows),
    ?assert(value(<<"weft_1">>, <<"computed_percent">>, Rows) > 0.75 * Stock).

value(Variant, Metric, Rows) ->
    [Value] = [V || #{variant := W, metric := M, value := V} <- Rows, W =:= Variant, M =:= Metric],
    Value.

run(Cell, Variants, Config) ->
    Dir = ?config(priv_dir, Config),
    0 = weft_bench_cli:main(["--quick", "--suites", "k", "--only", Cell, "--variants", Variants,
                             "--repetitions", "1", "--out", Dir]),
    {ok, Rows} = weft_report_record:read(Dir),
    ct:pal("~p", [[{W, M, V} || #{variant := W, metric := M, value := V} <- Rows]]),
    Rows.
