%% SPDX-License-Identifier: Apache-2.0
%% @doc Scenarios of strong names: users of three names on all nodes while nodes and links fail,
%% in the end quiet and checked (`weft_sim_names_checker').
%%
%% After the healing users go on for a while, and in that time somebody must get each name or have
%% it.
%%
%% Times are those of a lease of 3 s. Half of the nodes (at least three) are voters. Faults are more
%% frequent than elsewhere: one in some seconds.
-module(weft_sim_names_scenario).

-export([names/0, describe/1, build/2]).

-define(SCOPE, accounts).
-define(LEASE_MS, 3000).
-define(FAULTS_FROM_MS, 5000).
-define(HEAL_MS, 35000).
-define(SETTLE_MS, 30000).
%% From the healing: until names of those who are not heard of any more are free (the lease, the
%% margin, and finding leaders), and until users stop.
-define(FREE_MS, 8000).
-define(USED_MS, 18000).
-define(PARTITIONS, 2).
%% What the clocks say at first, where they are set back later.
-define(CLOCK, 1000).

%% @doc All of them.
-spec names() -> [atom()].
names() ->
    [strong_faults, strong_crashes, strong_clocks, strong_voters, strong_retries, strong_removals].

%% @doc One line about a scenario.
-spec describe(atom()) -> string().
describe(strong_faults) -> "strong names; partitions, links cut (one way, too), crashes, pauses";
describe(strong_crashes) -> "strong names; nodes crash and restart, often most of them at once";
describe(strong_clocks) -> "strong names; clocks set back before a restart, or forward in a run";
describe(strong_voters) -> "strong names; voters change while links are cut and nodes restart";
describe(strong_retries) -> "strong names; who does not get a name at once tries until he does";
describe(strong_removals) -> "strong names; anybody takes them away, among all kinds of faults".

%% @doc The scenario; the random sequence of the calling process is seeded.
-spec build(atom(), [node()]) -> weft_sim_scenario:scenario().
build(strong_faults, Nodes) ->
    scenario(Nodes, [lists:append([fault(pick([partition, cut, cut, cut_one_way, crash, pause]),
                                         Nodes) || _ <- lists:seq(1, 12)])]);
build(strong_crashes, Nodes) ->
    scenario(Nodes, [lists:append([fault(pick([crash, restart, restart, pause, massacre]), Nodes)
                                   || _ <- lists:seq(1, 8)])]);
build(strong_clocks, Nodes) ->
    #{steps := Steps, world := #{checkers := [{Checker, Checked}]} = World} = Scenario =
        scenario(Nodes, [lists:append([fault(pick([crash, restart, restart, massacre, cut, pause]),
                                             Nodes) || _ <- lists:seq(1, 8)])]),
    %% The incarnations that the simulator itself gives are earlier than the first ones here.
    Scenario#{world := World#{checkers := [{Checker, Checked#{tokens_grow := false}}]},
              steps := [started(Step) || Step <- Steps]
                       ++ [{some_time(), {notice, pick(Nodes), names,
                                          {set_forward, 300 + at(3 * ?LEASE_MS)}}}
                           || _ <- lists:seq(1, 6)]};
build(strong_voters, Nodes) ->
    Changes = [{?FAULTS_FROM_MS + N * 8000, Some}
               || N <- lists:seq(1, 3), Some <- [some(max(3, length(Nodes) - 2), Nodes)]],
    Scenario = scenario(Nodes, [[{AtMs, {command, pick(Nodes), names, {voters, Some}}}
                                 || {AtMs, Some} <- Changes],
                                [Fault || Kind <- [cut, cut, cut_one_way, pause, restart],
                                          Fault <- fault(Kind, Nodes)]]),
    %% The last one is told when all is healed, so that it is the one that holds.
    {_, Last} = lists:last(Changes),
    with_replicas(fun(P) -> weft_names_strong_placement:replicas(P, Last, 3) end,
                  Scenario#{lasting := [{100 + N * 3000,
                                         {command, hd(Nodes), names, {voters, Last}}}
                                        || N <- lists:seq(0, 1)],
                            settle_ms := 2 * ?SETTLE_MS});
build(strong_retries, Nodes) ->
    scenario(Nodes, [lists:append([fault(pick([partition, cut, cut_one_way, restart, pause]),
                                         Nodes) || _ <- lists:seq(1, 8)])],
             #{users => patient, names => [one], timeout_ms => 200 + at(1500)});
build(strong_removals, Nodes) ->
    Kinds = [partition, cut, cut_one_way, cut_one_way, crash, restart, pause],
    scenario(Nodes, [lists:append([fault(pick(Kinds), Nodes) || _ <- lists:seq(1, 12)])],
             %% Some removals are waited for until a lease has ended.
             #{users => strangers, names => [one, two], timeout_ms => 500 + at(5000)}).

scenario(Nodes, Steps) ->
    scenario(Nodes, Steps, #{users => random, names => [one, two, three], timeout_ms => 1500}).

scenario(Nodes, Steps, #{names := Names} = Users) ->
    Faults = lists:append(Steps),
    Voters = lists:sublist(Nodes, max(3, (length(Nodes) + 1) div 2)),
    Options = Users#{scope => ?SCOPE, voters => Voters, partitions => ?PARTITIONS,
                     lease_ms => ?LEASE_MS, pause_ms => 400, until_ms => ?HEAL_MS + ?USED_MS},
    Checked = #{machine => names, partitions => ?PARTITIONS, nodes => Nodes,
                tokens_grow => true, names => Names, free_from_ms => ?HEAL_MS + ?FREE_MS,
                replicas_of => fun(P) -> weft_names_strong_placement:replicas(P, Voters, 3) end,
                crashes => [{AtMs * 1000, Node} || {AtMs, {crash, Node}} <- Faults,
                                                   AtMs < ?HEAL_MS]},
    #{world => #{machines => fun(_Node) -> [{names, weft_sim_names_core, Options}] end,
                 detection_ms => {50, 1500},
                 observer => {weft_sim_name_history, weft_sim_name_history:new()},
                 checkers => [{weft_sim_names_checker, Checked}]},
      steps => [{at(500), {start, Node}} || Node <- Nodes] ++ Faults,
      heal_at_ms => ?HEAL_MS, lasting => [], settle_ms => ?SETTLE_MS}.

started({AtMs, {start, Node}}) when AtMs < ?FAULTS_FROM_MS ->
    {AtMs, {start, Node, ?CLOCK}};
started({AtMs, {start, Node}}) ->
    {AtMs, pick([{start, Node}, {start, Node}, {start, Node, ?CLOCK + AtMs}])};
started(Step) ->
    Step.

with_replicas(ReplicasOf, #{world := #{checkers := [{Checker, Checked}]} = World} = Scenario) ->
    Scenario#{world := World#{checkers := [{Checker, Checked#{replicas_of := ReplicasOf}}]}}.

fault(partition, Nodes) ->
    AtMs = some_time(),
    Part = some(at(length(Nodes) - 1), Nodes),
    [{AtMs, {partition, [Part, Nodes -- Part]}}
     | [{AtMs + 1000 + at(6000), {heal, A, B}} || A <- Part, B <- Nodes -- Part]];
fault(cut, Nodes) ->
    [A, B] = some(2, Nodes),
    AtMs = some_time(),
    [{AtMs, {cut, A, B}}, {AtMs + at(6000), {heal, A, B}}];
fault(cut_one_way, Nodes) ->
    [A, B] = some(2, Nodes),
    AtMs = some_time(),
    [{AtMs, {cut_one_way, A, B}}, {AtMs + at(6000), {heal, A, B}}];
fault(crash, Nodes) ->
    Node = pick(Nodes),
    AtMs = some_time(),
    [{AtMs, {crash, Node}}, {AtMs + at(8000), {start, Node}}];
fault(restart, Nodes) ->
    Node = pick(Nodes),
    AtMs = some_time(),
    [{AtMs, {crash, Node}}, {AtMs + at(200), {start, Node}}];
fault(massacre, Nodes) ->
    AtMs = some_time(),
    [Step || Node <- some(at(length(Nodes)), Nodes), DieMs <- [AtMs + at(1000)],
             Step <- [{DieMs, {crash, Node}}, {DieMs + at(3000), {start, Node}}]];
fault(pause, Nodes) ->
    Node = pick(Nodes),
    AtMs = some_time(),
    [{AtMs, {pause, Node}}, {AtMs + at(7000), {resume, Node}}].

some_time() -> ?FAULTS_FROM_MS + at(?HEAL_MS - ?FAULTS_FROM_MS - 1000).

some(Count, Nodes) ->
    {_, Shuffled} = lists:unzip(lists:sort([{rand:uniform(), Node} || Node <- Nodes])),
    lists:sublist(Shuffled, Count).

pick(List) -> lists:nth(rand:uniform(length(List)), List).

at(MaxMs) -> rand:uniform(MaxMs).
