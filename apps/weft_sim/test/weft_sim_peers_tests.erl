%% SPDX-License-Identifier: Apache-2.0
%% @doc Peer-to-peer clusters and broadcasts: properties over small random worlds, the checkers
%% against worlds that are wrong, and the experiments with a small cluster.
-module(weft_sim_peers_tests).
-behaviour(weft_sim_observer).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([sent/5, notice/5]).

-define(NODES, ['a@sim', 'b@sim', 'c@sim', 'd@sim', 'e@sim', 'f@sim', 'g@sim', 'h@sim']).
-define(STEPS_MS, 20000).
-define(SETTLE_MS, 35000).

%% FULL=1 tries more.
worlds() ->
    case os:getenv("FULL") of false -> 60; _ -> 1000 end.

%% --- peer to peer -----------------------------------------------------------------------------

a_cluster_is_one_and_at_rest_and_both_ends_agree_once_healed_test_() ->
    {timeout, 1200, ?_assert(proper:quickcheck(prop_cluster(), [{numtests, worlds()},
                                                                {to_file, user}]))}.

%% Views that are too small to know everybody.
prop_cluster() ->
    ?FORALL({Seed, Steps}, {integer(), list(step())},
            begin
                World = cluster(Seed, Steps),
                ?WHENFAIL(io:format(user, "~tp~n", [weft_sim_world:violation(World)]),
                          none =:= weft_sim_world:violation(World) andalso is_at_rest(World))
            end).

cluster(Seed, Steps) ->
    Machines = [{topology, weft_peer_to_peer_core,
                 #{seeds => ['a@sim', 'b@sim'], active => 3, passive => 4, shuffle_ms => 2000,
                   probe_ms => 3000}}],
    run(Seed, Machines, Steps ++ [{?STEPS_MS, heal_all}], [],
        [{weft_sim_connectivity_checker, #{}}, {weft_sim_symmetry_checker, #{}},
         {weft_sim_degree_checker, #{max => 3, apart => []}}]).

is_at_rest(World) ->
    Later = weft_sim_world:run_until(weft_sim_world:now_ms(World) + 10000, World),
    weft_sim_peers:graph(World) =:= weft_sim_peers:graph(Later).

%% Smaller clusters say little about how many neighbours a node finds.
most_nodes_of_a_larger_cluster_have_all_neighbours_test() ->
    ?assertMatch(#{violation := none}, weft_sim:run(peers_churn, 1, 10)).

%% The root of the cluster crashes and counts from a lower incarnation when it is back. Nodes that
%% took its beats for old ones were another part to it, and exchanged neighbours for ever.
a_root_with_an_older_clock_leaves_the_cluster_at_rest_test() ->
    World = cluster(14, [{6948, {cut, 'e@sim', 'g@sim'}}, {7158, {crash, 'b@sim'}},
                         {7896, {start, 'g@sim'}}, {8224, {cut, 'd@sim', 'f@sim'}},
                         {10036, {cut, 'e@sim', 'f@sim'}}, {11674, {start, 'b@sim', 0}},
                         {12781, {cut_one_way, 'a@sim', 'b@sim'}}]),
    ?assertEqual(none, weft_sim_world:violation(World)),
    ?assert(is_at_rest(World)).

%% --- broadcast --------------------------------------------------------------------------------

all_nodes_get_all_messages_once_test_() ->
    {timeout, 1200, ?_assert(proper:quickcheck(prop_broadcast(), [{numtests, worlds()},
                                                                  {to_file, user}]))}.

%% The model: the set of all pairs of message and node. Nobody crashes, so once is once; all ends
%% while the messages are still kept.
prop_broadcast() ->
    ?FORALL({Seed, Links, Steps, Sends, Trees},
            {integer(), links(), list(harmless_step()), list({integer(0, ?STEPS_MS), node_name()}),
             oneof([shared, per_root])},
            begin
                Machines = [{topology, weft_static_core, #{links => Links}},
                            {broadcast, weft_plumtree_core, #{exchange_ms => 2000,
                                                              trees => Trees}}],
                Running = [{AtMs, {command, Node, broadcast, {broadcast, <<N>>}}}
                           || {N, {AtMs, Node}} <- lists:zip(lists:seq(1, length(Sends)), Sends)],
                World = run(Seed, Machines, Running ++ Steps ++ [{?STEPS_MS, heal_all}],
                            {?MODULE, []}, []),
                Delivered = weft_sim_world:observed(World),
                Ids = [Id || {Id, 0, _} <- Delivered],
                lists:sort([{Id, Node} || {Id, _, Node} <- Delivered])
                    =:= lists:sort([{Id, Node} || Id <- Ids, Node <- ?NODES])
            end).

sent(_Node, _Machine, _Message, _NowUs, Delivered) ->
    Delivered.

notice(Node, broadcast, {deliver, Id, Hops, _}, _NowUs, Delivered) ->
    [{Id, Hops, Node} | Delivered];
notice(_Node, _Machine, _Notice, _NowUs, Delivered) ->
    Delivered.

%% --- checkers ---------------------------------------------------------------------------------

%% Two nodes that nobody told of the others are a part of their own.
a_cluster_in_two_parts_is_caught_test() ->
    World = run_parts([['a@sim', 'b@sim', 'c@sim', 'd@sim'], ['e@sim', 'f@sim']]),
    {violation, Text} = weft_sim_connectivity_checker:settled(World, #{}),
    ?assertMatch({match, _}, re:run(Text, "2 nodes are cut off from the other 4")),
    ?assertEqual(ok, weft_sim_connectivity_checker:settled(World, #{share => 0.6})).

one_sided_links_are_caught_test() ->
    World = run_parts([['a@sim', 'b@sim', 'c@sim']]),
    ?assertEqual(ok, weft_sim_symmetry_checker:settled(World, #{})),
    NowMs = weft_sim_world:now_ms(World),
    Restarted = weft_sim_world:schedule(NowMs, {restart_machine, 'a@sim', topology}, World),
    %% The others hear nothing of it, and are told by the next beat only.
    Amnesia = weft_sim_world:run_until(NowMs, Restarted),
    ?assertMatch({violation, _}, weft_sim_symmetry_checker:settled(Amnesia, #{pause_ms => 0})),
    Later = weft_sim_world:run_until(NowMs + 30000, Amnesia),
    ?assertEqual(ok, weft_sim_symmetry_checker:settled(Later, #{})).

links_of_which_the_contrary_is_said_are_caught_test() ->
    World = run_parts([['a@sim', 'b@sim', 'c@sim']]),
    ?assertEqual(ok, weft_sim_symmetry_checker:settled(said(true, World), #{})),
    ?assertMatch({violation, _}, weft_sim_symmetry_checker:settled(said(false, World), #{})).

said(IsNeighbour, World) ->
    NowMs = weft_sim_world:now_ms(World),
    Say = {command, 'a@sim', script, {perform, [{neighbour, 'b@sim', IsNeighbour}]}},
    weft_sim_world:run_until(NowMs, weft_sim_world:schedule(NowMs, Say, World)).

wrong_numbers_of_neighbours_are_caught_test() ->
    World = run_parts([['a@sim', 'b@sim', 'c@sim'], ['d@sim']]),
    ?assertMatch({violation, _}, weft_sim_degree_checker:settled(World, #{})),
    Whole = run_parts([['a@sim', 'b@sim', 'c@sim']]),
    ?assertEqual(ok, weft_sim_degree_checker:settled(Whole, #{})),
    ?assertMatch({violation, _}, weft_sim_degree_checker:settled(Whole, #{max => 1})),
    ?assertMatch({violation, _}, weft_sim_degree_checker:settled(Whole, #{full => 0.5})).

places_that_two_nodes_could_fill_are_caught_test() ->
    World = run_parts([['a@sim', 'b@sim', 'c@sim'], ['d@sim', 'e@sim']]),
    ?assertEqual(ok, weft_sim_degree_checker:settled(World, #{})),
    {violation, Text} = weft_sim_degree_checker:settled(World, #{apart => [{'a@sim', 'd@sim'}]}),
    ?assertMatch({match, _}, re:run(Text, ": \\[{a@sim,e@sim},{b@sim,d@sim}")),
    Across = [{A, B} || A <- ['a@sim', 'b@sim', 'c@sim'], B <- ['d@sim', 'e@sim']],
    ?assertEqual(ok, weft_sim_degree_checker:settled(World, #{apart => Across})).

broadcasts_beyond_their_limits_are_caught_test() ->
    World = run_parts([['a@sim', 'b@sim', 'c@sim'], ['d@sim']]),
    NowMs = weft_sim_world:now_ms(World),
    Command = {command, 'a@sim', broadcast, {broadcast, <<>>}},
    Sent = weft_sim_world:run_until(NowMs + 1000, weft_sim_world:schedule(NowMs, Command, World)),
    [?assertMatch({Checker, Options, Verdict}, {Checker, Options, Checker:settled(Sent, Options)})
     || {Checker, Options, Verdict} <- [{weft_sim_reliability_checker, #{least => 0.75}, ok},
                                        {weft_sim_last_hop_checker, #{below => 3}, ok},
                                        {weft_sim_redundancy_checker, #{below => 3}, ok}]],
    [?assertMatch({violation, _}, Checker:settled(Sent, Options))
     || {Checker, Options} <- [{weft_sim_reliability_checker, #{}},
                               {weft_sim_last_hop_checker, #{below => 1}},
                               {weft_sim_redundancy_checker, #{below => 0.1}}]].

%% What comes twice makes up for nothing that does not come. After a start it may come again.
a_broadcast_that_comes_twice_is_caught_test() ->
    Got = fun(AtMs, Node, Hops) ->
              {AtMs, {command, Node, broadcast, {perform, [{notice, {deliver, id, Hops, <<>>}}]}}}
          end,
    Once = [Got(1, 'a@sim', 0), Got(2, 'b@sim', 1)],
    Restart = [{3, {crash, 'b@sim'}}, {4, {start, 'b@sim'}}],
    ?assertEqual(ok, delivered(Once)),
    ?assertEqual(ok, delivered(Once ++ Restart ++ [Got(5, 'b@sim', 1)])),
    [begin
         {violation, Text} = delivered(Steps),
         ?assertMatch({match, _}, re:run(Text, Words))
     end || {Words, Steps} <- [{"1 messages came twice, among them id to b@sim",
                                Once ++ [Got(5, 'b@sim', 1)]},
                               {"1 messages came twice, among them id to a@sim",
                                [Got(1, 'a@sim', 0), Got(2, 'a@sim', 1)]},
                               {"messages reach 50.00 % of the nodes", [Got(1, 'a@sim', 0)]}]].

delivered(Steps) ->
    World = weft_sim_world:new(#{seed => 1,
                                 machines => fun(_) -> [{broadcast, weft_sim_script, #{}}] end,
                                 observer => {weft_sim_deliveries, weft_sim_deliveries:new()}}),
    Started = [{0, {start, Node}} || Node <- ['a@sim', 'b@sim']],
    weft_sim_reliability_checker:settled(
      weft_sim_world:run_until(10, lists:foldl(fun({AtMs, Verb}, W) ->
                                                   weft_sim_world:schedule(AtMs, Verb, W)
                                               end, World, Started ++ Steps)), #{}).

%% Each part has its first node as the seed, and knows of no other.
run_parts(Parts) ->
    Machines = fun(Node) ->
                       [Seed] = [hd(Part) || Part <- Parts, lists:member(Node, Part)],
                       [{topology, weft_peer_to_peer_core, #{seeds => [Seed]}},
                        {broadcast, weft_plumtree_core, #{}}, {script, weft_sim_script, #{}}]
               end,
    World = weft_sim_world:new(#{seed => 1, machines => Machines,
                                 observer => {weft_sim_deliveries, weft_sim_deliveries:new()}}),
    weft_sim_world:run_until(60000, lists:foldl(fun(Node, W) ->
                                                    weft_sim_world:schedule(0, {start, Node}, W)
                                                end, World, lists:append(Parts))).

%% --- experiments ------------------------------------------------------------------------------

the_experiments_with_a_small_cluster_keep_their_limits_and_are_written_down_test_() ->
    {timeout, 600, fun() ->
        File = filename:join([os:getenv("REBAR_BASE_DIR", "_build"), "sim",
                              "gossip_test_" ++ os:getpid() ++ ".csv"]),
        ?assertEqual([], weft_sim_gossip_report:print([40], File)),
        {ok, Text} = file:read_file(File),
        ok = file:delete(File),
        [Head | Lines] = string:lexemes(Text, "\n"),
        ?assertEqual(length(weft_sim_gossip:experiments()), length(Lines)),
        Columns = length(binary:split(Head, <<",">>, [global])),
        [?assertEqual(Columns, length(binary:split(Line, <<",">>, [global]))) || Line <- Lines]
    end}.

%% --- generators -------------------------------------------------------------------------------

node_name() -> oneof(?NODES).

pair() ->
    ?SUCHTHAT({A, B}, {node_name(), node_name()}, A =/= B).

links() ->
    [First | Rest] = ?NODES,
    ?LET({Tree, More}, {tree(Rest, [First]), list(pair())},
         lists:usort([{min(A, B), max(A, B)} || {A, B} <- Tree ++ More])).

tree([], _Placed) -> [];
tree([Node | Rest], Placed) -> [{Node, oneof(Placed)} | tree(Rest, [Node | Placed])].

harmless_step() ->
    {integer(1000, ?STEPS_MS - 1),
     oneof([?LET({A, B}, pair(), {cut, A, B}), ?LET({A, B}, pair(), {cut_one_way, A, B}),
            ?LET({A, B}, pair(), {heal, A, B}), {pause, node_name()}, {resume, node_name()}])}.

step() ->
    oneof([harmless_step(),
           {integer(1000, ?STEPS_MS - 1),
            oneof([{crash, node_name()}, {start, node_name()}, {start, node_name(), 0},
                   {partition, [lists:sublist(?NODES, 4), lists:nthtail(4, ?NODES)]}])}]).

run(Seed, Machines, Steps, Observer, Checkers) ->
    Config = #{seed => Seed, machines => fun(_Node) -> Machines end, checkers => Checkers,
               detection_ms => {10, 3000}},
    World0 = weft_sim_world:new(case Observer of
                                    [] -> Config;
                                    _ -> Config#{observer => Observer}
                                end),
    World = lists:foldl(fun({AtMs, Verb}, W) -> weft_sim_world:schedule(AtMs, Verb, W) end, World0,
                        [{0, {start, Node}} || Node <- ?NODES] ++ Steps),
    weft_sim_world:settled(weft_sim_world:run_until(?STEPS_MS + ?SETTLE_MS, World)).
