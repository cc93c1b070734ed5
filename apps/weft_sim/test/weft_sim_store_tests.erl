%% SPDX-License-Identifier: Apache-2.0
%% @doc The store in the simulator, with all that happens to it at once: owners are away and others
%% stand in for them, partitions move, and nodes die meanwhile. FULL=1 tries thousands of schedules,
%% SEED=<number> only that one.
-module(weft_sim_store_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SCHEDULES, 100).
%% Of each three replicas two of the owners themselves, for reads and writes.
-define(OWNERS, #{pr => quorum, pw => quorum}).

%% Any two owners of a key have each write that was acknowledged, or what has replaced it, though
%% some was written to others in their place, or to former owners.
nothing_acknowledged_is_lost_and_each_hint_reaches_its_owner_test_() ->
    {timeout, 3600,
     fun() ->
         Results = results(#{}),
         at_rest(Results),
         tried(Results)
     end}.

%% A quorum of owners meets the next one, whoever is away, or hands over what it has.
sessions_read_their_own_writes_test_() ->
    {timeout, 3600,
     fun() ->
         Results = results(?OWNERS),
         ?assertEqual([], found(stale, Results)),
         at_rest(Results),
         tried(Results)
     end}.

%% So they do though a node has forgotten all it had when it starts again: it does not count before
%% it has got back what is left elsewhere. And that is all there was.
sessions_read_what_a_node_has_forgotten_test_() ->
    {timeout, 3600,
     fun() ->
         Results = results(?OWNERS#{nodes => 2}, #{forgets => true, tells => true}),
         ?assertEqual([], found(stale, Results)),
         at_rest(Results),
         %% In the end it counts.
         ?assertEqual([], found(lacking, Results)),
         %% Fewer nodes are down at a time.
         tried(Results, 1)
     end}.

%% In the end no acknowledged write is lost, no hint waits, and the plan is carried out.
at_rest(Results) ->
    [?assertEqual([], found(What, Results)) || What <- [lost, left, moving]].

%% So that it was put to the test.
tried(Results) -> tried(Results, 5).

tried(Results, Hints) ->
    Sum = fun(What) -> lists:sum([map_get(What, Result) || {_, Result} <- Results]) end,
    [?assert(Sum(What) >= AtLeast * length(Results))
     || {What, AtLeast} <- [{acked, 30}, {reads_of_own, 12}, {hints, Hints}], length(Results) > 1],
    ?assert(length(Results) =:= 1 orelse 3 * Sum(handed) >= length(Results)).

%% The checks themselves: quorums that need not meet, also those that do not ask for owners; and
%% writes of which one is dropped.
the_same_checks_fail_with_less_test_() ->
    [{timeout, 600, ?_assert(lists:any(fun(Seed) ->
                                           [] =/= map_get(What, weft_sim_store:run(Seed, Given))
                                       end, lists:seq(1, 500)))}
     || {What, Given} <- [{stale, ?OWNERS#{r => 1, pr => 1}}, {stale, ?OWNERS#{w => 1, pw => 1}},
                          {stale, #{}}, {lost, #{siblings => false}}]].

the_same_check_fails_if_who_has_forgotten_does_not_say_so_test_() ->
    Nodes = #{forgets => true, tells => false},
    {timeout, 600, ?_assert(lists:any(fun(Seed) ->
                                          #{stale := Stale} =
                                              weft_sim_store:run(Seed, ?OWNERS#{nodes => 2}, Nodes),
                                          Stale =/= []
                                      end, lists:seq(1, 500)))}.

the_same_seed_gives_the_same_result_test() ->
    [?assertEqual(weft_sim_store:run(7, #{}, Nodes), weft_sim_store:run(7, #{}, Nodes))
     || Nodes <- [#{forgets => false, tells => false}, #{forgets => true, tells => true}]].

results(Given) -> results(Given, #{forgets => false, tells => false}).

results(Given, Nodes) -> [{Seed, weft_sim_store:run(Seed, Given, Nodes)} || Seed <- seeds()].

found(What, Results) ->
    [{Seed, Wrong} || {Seed, #{What := [_ | _] = Wrong}} <- Results].

seeds() ->
    case {os:getenv("SEED"), os:getenv("FULL")} of
        {false, false} -> lists:seq(1, ?SCHEDULES);
        {false, _} -> lists:seq(1, 5000);
        {Seed, _} -> [list_to_integer(Seed)]
    end.
