%% SPDX-License-Identifier: Apache-2.0
%% @doc One schedule, as data, for the simulator and for real nodes.
-module(weft_chaos_verbs_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODES, ['a@h', 'b@h', 'c@h']).

%% Every verb that both have.
schedule() ->
    [{100, {crash, 'a@h'}}, {200, {start, 'a@h'}},
     {300, {pause, 'b@h'}}, {400, {resume, 'b@h'}},
     {500, {cut, 'a@h', 'b@h'}}, {600, {heal, 'b@h', 'a@h'}},
     {700, {cut_one_way, 'c@h', 'a@h'}}, {800, {heal, 'a@h', 'c@h'}},
     {900, {partition, [['a@h'], ['b@h', 'c@h']]}}, {950, {pause, 'c@h'}}, {1000, heal_all}].

the_simulator_carries_it_out_test() ->
    World0 = weft_sim_world:new(#{seed => 1, machines => fun(_Node) -> [] end}),
    World = lists:foldl(fun({AtMs, Verb}, W) -> weft_sim_world:schedule(AtMs, Verb, W) end, World0,
                        [{0, {start, Node}} || Node <- ?NODES] ++ schedule()),
    ?assertEqual(?NODES -- ['c@h'], weft_sim_world:running(weft_sim_world:run_until(999, World))),
    ?assertEqual(?NODES, weft_sim_world:running(weft_sim_world:run_until(1000, World))).

%% What lasts is as long as until the step that ends it.
real_nodes_carry_it_out_test() ->
    ?assertEqual(ok, weft_chaos_schedule:check(schedule())),
    ?assertEqual(?NODES, weft_chaos_schedule:nodes(schedule())),
    ?assertEqual([{100, {crash, 'a@h'}}, {200, {start, 'a@h'}},
                  {300, {pause, 'b@h', 100}}, {400, {resume, 'b@h'}},
                  {500, {cut, 'a@h', 'b@h', 100}}, {600, {heal, 'b@h', 'a@h'}},
                  {700, {cut_one_way, 'c@h', 'a@h', 100}}, {800, {heal, 'a@h', 'c@h'}},
                  {900, {cut, 'a@h', 'b@h', 100}}, {900, {cut, 'a@h', 'c@h', 100}},
                  {950, {pause, 'c@h', 50}}, {1000, heal_all}],
                 weft_chaos_schedule:expand(schedule())).

%% Told in words, with what is nearest.
what_only_the_simulator_has_test() ->
    [begin
         {error, Text} = weft_chaos_schedule:check([{1, Verb}]),
         ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"simulator only">>))
     end || Verb <- [{restart_machine, 'a@h', router}, {start, 'a@h', 7},
                     {command, 'a@h', router, leave}, {notice, 'a@h', router, {link_cost, b, 1}}]].
