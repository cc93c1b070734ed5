%% SPDX-License-Identifier: Apache-2.0
%% @doc Orbits on real nodes: the same orbit whatever carries the messages, and the connections that
%% each form makes.
-module(weft_orbit_SUITE).

-include_lib("stdlib/include/assert.hrl").

-import(weft_bench_test_cluster, [with_nodes/4, connections/1]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([over_the_links_of_the_groups/1, each_set_has_its_size_on_stock/1,
         distributed_is_the_same_on_1_3_and_5_nodes/1, grouped_is_the_same_on_each_carrier/1,
         connections_are_those_of_the_paper/1,
         command_takes_generators_of_the_user/1,
         command_tells_what_went_wrong/1]).

-define(RUN_MS, 60000).
-define(OPTIONS, #{generators => [1, 2, 4], space => 157, workers => 2}).
%% Known from other programs: g124 in a space of 157.
-define(SIZE, 133).
-define(SUM, 10267).

suite() -> [{timetrap, {seconds, 180}}].

all() ->
    [connections_are_those_of_the_paper, command_takes_generators_of_the_user,
     command_tells_what_went_wrong]
        ++ [Case || os:getenv("FULL") =/= false,
                    Case <- [over_the_links_of_the_groups, each_set_has_its_size_on_stock,
                             distributed_is_the_same_on_1_3_and_5_nodes,
                             grouped_is_the_same_on_each_carrier]].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

%% Both forms, and the distributed one on some of the nodes only. There every node talks with every
%% other, and has the connections of the groups all the same.
over_the_links_of_the_groups(Config) ->
    with_nodes(weft_groups, shape(), Config,
               fun(Nodes) ->
                   is_right(?OPTIONS, Nodes),
                   ?assertEqual(of_groups(), connections(Nodes)),
                   Names = weft_bench_cluster:nodes(Nodes),
                   [is_right(?OPTIONS, Nodes, lists:sublist(Names, Count)) || Count <- [1, 3, 5]],
                   is_right(grouped(Nodes), Nodes),
                   sets_have_their_sizes(Nodes)
               end).

each_set_has_its_size_on_stock(Config) ->
    with_nodes(stock, shape(), Config, fun sets_have_their_sizes/1).

distributed_is_the_same_on_1_3_and_5_nodes(Config) ->
    [with_nodes(Variant, weft_bench_cluster:shape(Count, []), Config,
                fun(Nodes) -> is_right(?OPTIONS, Nodes) end)
     || {Variant, Count} <- [{weft_mesh, 1}, {stock, 3}, {weft_mesh, 5}]].

grouped_is_the_same_on_each_carrier(Config) ->
    [with_nodes(Variant, shape(), Config,
                fun(Nodes) -> is_right(grouped(Nodes), Nodes) end)
     || Variant <- [weft_peers, stock, stock_mesh, weft_mesh]].

%% Some in small and in one form; with FULL=1 all, in both forms, up to ten thousand vertices.
sets_have_their_sizes(Nodes) ->
    IsLong = os:getenv("FULL") =/= false,
    [has_size(Digits, Space, Size, Form, Nodes)
     || {Digits, [_ | Sizes]} <- weft_orbit_sizes:of_each_set(),
        {Space, Size} <- lists:sublist(Sizes, case IsLong of true -> 2; false -> 1 end),
        IsLong orelse Size > 100, Form <- [grouped(Nodes)] ++ [?OPTIONS || IsLong]],
    has_size("1245", 1000, 854, grouped(Nodes), Nodes),
    has_size("12", 1000, 853, ?OPTIONS, Nodes),
    [has_size(Digits, 10000, Size, Form, Nodes)
     || IsLong, {Digits, Size, Form} <- [{"1245", 6892, grouped(Nodes)}, {"12", 6886, ?OPTIONS}]].

has_size(Digits, Space, Size, Form, Nodes) ->
    Options = Form#{generators := weft_orbit_sizes:generators(Digits), space := Space},
    {ok, #{size := Found, received := Received}} =
        orbit(Options, Nodes, weft_bench_cluster:nodes(Nodes)),
    ?assertEqual({Digits, Space, Size, 1 + Size * length(Digits)},
                 {Digits, Space, Found, Received}).

%% In the distributed form all have N - 1.
connections_are_those_of_the_paper(Config) ->
    with_nodes(stock, shape(), Config,
               fun(Nodes) ->
                   code_is_loaded_before_the_run(grouped(Nodes), Nodes),
                   is_right(grouped(Nodes), Nodes),
                   ?assertEqual(of_groups(), connections(Nodes)),
                   is_right(?OPTIONS, Nodes),
                   ?assertEqual(lists:duplicate(1 + 2 * size(), 2 * size()), connections(Nodes)),
                   lost_node_is_told(Nodes)
               end).

code_is_loaded_before_the_run(Options, Nodes) ->
    ?assertEqual([], weft_bench_test_cluster:loaded_in_run(weft_orbit, Options, Nodes, ?RUN_MS)).

lost_node_is_told(Nodes) ->
    [Here | _] = weft_bench_cluster:nodes(Nodes),
    {error, Text} = orbit(?OPTIONS, Nodes, [Here, 'none@127.0.0.1']),
    ?assertNotEqual(nomatch, string:find(Text, "none@127.0.0.1 was lost")).

%% As `bin/bench orbit'. Every number is reached from the one before it.
command_takes_generators_of_the_user(Config) ->
    File = generator(Config, "orbit_successor", "X + 1"),
    [begin
         {0, Lines} = command(["--generators", File, "--space", "157" | Form], Config),
         ?assertEqual({"157", integer_to_list(156 * 157 div 2)},
                      {proplists:get_value("size", Lines), proplists:get_value("sum", Lines)})
     end || Form <- [["--grouped", "--variant", "weft_groups", "--nodes", "5"]]
                   ++ [["--nodes", "5"] || os:getenv("FULL") =/= false]],
    {0, Known} = command(["--generators", "4,1,2", "--space", "157" | two()], Config),
    ?assertEqual(integer_to_list(?SIZE), proplists:get_value("size", Known)).

%% What is found out on the nodes only.
command_tells_what_went_wrong(Config) ->
    File = generator(Config, "orbit_fraction", "X / 2 + case X of 0 -> throw(none); _ -> 1 end"),
    ?assertMatch({2, []}, command(["--generators", File | two()], Config)),
    Later = generator(Config, "orbit_later", "case X of 0 -> 1; _ -> 1.5 end"),
    ?assertMatch({1, []}, command(["--generators", Later | two()], Config)).

%% A master and a worker.
two() -> ["--nodes", "2", "--groups", "1"].

generator(Config, Module, Expression) ->
    File = filename:join(proplists:get_value(priv_dir, Config), Module ++ ".erl"),
    ok = file:write_file(File, ["-module(", Module, ").\n-export([next/1]).\nnext(X) -> ",
                                Expression, ".\n"]),
    File.

command(Arguments, Config) ->
    weft_bench_test_cluster:command(weft_orbit_command, Arguments, Config).

%% A master and two groups of this size.
size() ->
    case os:getenv("FULL") of false -> 2; _ -> 3 end.

shape() ->
    weft_bench_cluster:shape(1 + 2 * size(), weft_orbit_workload:groups(2, size())).

%% N nodes, S = 2 groups: the master has S connections, a submaster (N-1)/S + S - 1, a worker
%% (N-1)/S - 1.
of_groups() ->
    [2 | lists:append(lists:duplicate(2, [size() + 1 | lists:duplicate(size() - 1, size() - 1)]))].

grouped(Nodes) ->
    {One, Other} = lists:split(size(), tl(weft_bench_cluster:nodes(Nodes))),
    ?OPTIONS#{groups => [One, Other], gateways => 2}.

is_right(Options, Nodes) ->
    is_right(Options, Nodes, weft_bench_cluster:nodes(Nodes)).

is_right(Options, Nodes, Names) ->
    ?assertMatch({ok, #{size := ?SIZE, sum := ?SUM, received := 1 + ?SIZE * 3}},
                 orbit(Options, Nodes, Names)).

orbit(Options, Nodes, Names) ->
    weft_bench_test_cluster:run(weft_orbit, Options, Names, Nodes, ?RUN_MS).
