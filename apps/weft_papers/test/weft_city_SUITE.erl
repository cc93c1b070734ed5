%% SPDX-License-Identifier: Apache-2.0
%% @doc Simulations as programs of the benchmark, on real nodes: one hash whatever carries the
%% messages, and what the command says.
-module(weft_city_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([the_hash_is_the_same_on_each_carrier/1, districts_need_fewer_messages_between_nodes/1,
         the_command_tells_its_hash/1, the_commands_of_the_guide_run/1]).

-define(RUN_MS, 60000).
-define(OPTIONS, #{workload => city, ticks => 100, options => #{scale => tiny}}).

suite() -> [{timetrap, {seconds, 180}}].

all() ->
    [the_hash_is_the_same_on_each_carrier, districts_need_fewer_messages_between_nodes,
     the_command_tells_its_hash]
        ++ [the_commands_of_the_guide_run || os:getenv("FULL") =/= false].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

%% With FULL=1 on all of them.
the_hash_is_the_same_on_each_carrier(Config) ->
    {ok, Hash} = weft_city:hash(?OPTIONS),
    [with_nodes(Variant, 3, Config,
                fun(Nodes) ->
                    ?assertMatch({ok, #{hash := Hash, program_messages := _}},
                                 city(?OPTIONS#{hash => Hash}, Nodes))
                end)
     || Variant <- [weft_groups] ++ [Other || os:getenv("FULL") =:= "1",
                                              Other <- [stock, stock_mesh, weft_mesh, weft_peers]]].

districts_need_fewer_messages_between_nodes(Config) ->
    with_nodes(stock, 2, Config,
               fun(Nodes) ->
                   [{Hash, Many}, {Hash, Few}] =
                       [begin
                            {ok, #{hash := H, away := Away}} =
                                city(?OPTIONS#{ticks => 30,
                                                options => #{scale => small, districts => D}},
                                     Nodes),
                            {H, Away}
                        end || D <- [false, true]],
                   ?assert(Few * 2 < Many),
                   another_hash_is_told(Nodes)
               end).

another_hash_is_told(Nodes) ->
    {error, Text} = city(?OPTIONS#{hash => <<"abc">>}, Nodes),
    ?assertMatch({match, _}, re:run(Text, "the hash is .*, and on one node .* abc")),
    {error, Wrong} = city(?OPTIONS#{options => #{scale => huge}}, Nodes),
    ?assertMatch({match, _}, re:run(Wrong, "scale is one of")).

the_command_tells_its_hash(Config) ->
    {ok, Hash} = weft_city:hash(#{workload => phold, ticks => 30}),
    {0, Lines} = command(["--workload", "phold", "--ticks", "30", "--nodes", "2"], Config),
    ?assertEqual(binary_to_list(Hash), proplists:get_value("hash", Lines)),
    ?assertEqual("1", proplists:get_value("connections_max", Lines)),
    ?assertEqual({2, []}, command(["--workload", "phold", "--scale", "tiny"], Config)),
    ?assertEqual({2, []}, command(["--workload", "village"], Config)).

%% docs/guide/simulation.md.
the_commands_of_the_guide_run(Config) ->
    [Script] = weft_guide:page("simulation.md", "sh"),
    Commands = [Command || "bin/bench " ++ Command <- string:lexemes(Script, "\n")],
    ?assert(length(Commands) >= 3),
    Out = proplists:get_value(priv_dir, Config),
    [?assertEqual({Command, 0}, {Command, weft_papers_cli:main(string:lexemes(Command, " ")
                                                               ++ ["--out", Out])})
     || Command <- Commands].

command(Arguments, Config) ->
    weft_bench_test_cluster:command(weft_city_command, Arguments, Config).

with_nodes(Variant, Count, Config, Test) ->
    Shape = weft_bench_cluster:shape(Count, weft_city_workload:groups(Count)),
    weft_bench_test_cluster:with_nodes(Variant, Shape, Config, Test).

city(Options, Nodes) ->
    weft_bench_test_cluster:run(weft_city, Options, weft_bench_cluster:nodes(Nodes), Nodes,
                                ?RUN_MS).
