%% SPDX-License-Identifier: Apache-2.0
%% @doc Scenarios: from a name, a seed and a number of nodes to a list of timed verbs.
%%
%% Every scenario has a safety phase, in which nodes and links fail as the seed has it, and then
%% a liveness phase: at `heal_at_ms' everything is healed but for a tenth of the links, which are
%% cut for good within the next second, and after `settle_ms' the checkers ask for what must hold
%% in the end. `settle_ms' is the bound on convergence that the scenario promises:
%% detection of a broken link (3 s), the longest pause between two attempts to connect (5 s), the
%% connection itself (1 s) and the protocol's own time. With SWIM a suspicion that nobody confirms
%% comes on top.
-module(weft_sim_scenario).

-export([names/0, describe/1, build/3, own/3, random_links/2]).
-export_type([scenario/0]).

-type scenario() :: #{world := map(),
                      steps := [{AtMs :: non_neg_integer(), weft_sim_world:verb()}],
                      heal_at_ms := non_neg_integer(),
                      lasting := [{AfterMs :: non_neg_integer(), weft_sim_world:verb()}],
                      settle_ms := non_neg_integer()}.
%% `steps': those from `heal_at_ms' on do not take place. `lasting': faults after the healing that
%% stay, so that the end is not the state of the start; or what else happens then.

-define(SAFETY_MS, 60000).
-define(SETTLE_MS, 20000).
-define(SWIM_SETTLE_MS, 60000).
%% So long groups are changed after the healing.
-define(GROUPS_AFTER_MS, 4000).

%% @doc All scenarios.
-spec names() -> [atom()].
names() ->
    [static_churn, static_costs, static_restarts, router_restarts, groups_churn, group_changes,
     mesh_churn, mesh_leave, mesh_split, swim_churn, swim_leave, swim_split,
     clients_churn, clients_loss, peers_churn, peers_leave, peers_split, peers_near,
     session_faults, session_lanes, session_silence, session_stopped, session_lives
     | weft_sim_registry_scenario:names() ++ weft_sim_names_scenario:names()].

%% @doc One line about a scenario.
-spec describe(atom()) -> string().
describe(static_churn) -> "random graph; links cut (also one way), nodes crash and pause";
describe(static_costs) -> "random graph; link costs change all the time, links cut";
describe(static_restarts) -> "random graph; nodes restart, some with an older clock";
describe(router_restarts) -> "random graph; routers lose their state while nodes and links stay";
describe(groups_churn) -> "overlapping groups; links cut, nodes crash and pause";
describe(group_changes) -> "groups made, changed and deleted by all at once; all kinds of faults";
describe(mesh_churn) -> "full mesh through two seeds; links cut, nodes crash and pause";
describe(mesh_leave) -> "full mesh; nodes join, leave and come back while links are cut";
describe(mesh_split) -> "full mesh in two halves for ten minutes";
describe(swim_churn) -> "as mesh_churn, with SWIM as failure detector";
describe(swim_leave) -> "as mesh_leave, with SWIM as failure detector";
describe(swim_split) -> "as mesh_split, with SWIM as failure detector";
describe(clients_churn) -> "clients of a third as many servers; all kinds of faults";
describe(clients_loss) -> "half of the servers crash for good, the others one after another";
describe(peers_churn) -> "peer to peer, with broadcasts; all kinds of faults";
describe(peers_leave) -> "peer to peer, with broadcasts; nodes leave and come back";
describe(peers_split) -> "peer to peer, with broadcasts; in two halves for ten minutes";
describe(peers_near) -> "as peers_churn, with neighbours exchanged for nearer ones";
describe(session_faults) -> "a session over gateways that crash, pause and lose lanes";
describe(session_lanes) -> "a session over one link, the lanes of which are lost and found";
describe(session_silence) -> "a session that says nothing for an hour, over paths that break";
describe(session_stopped) -> "a session with a node whose kernel stops while its links go on";
describe(session_lives) -> "sessions between nodes that crash and start again";
describe(Names) when Names =:= names_churn; Names =:= names_split ->
    weft_sim_registry_scenario:describe(Names);
describe(StrongNames) -> weft_sim_names_scenario:describe(StrongNames).

%% @doc Builds a scenario, with more nodes than that if it would lack what it is named for. The same
%% arguments give the same scenario.
-spec build(atom(), Seed :: integer(), NodeCount :: pos_integer()) -> scenario().
build(Name, Seed, NodeCount) ->
    %% The scenario draws from its own sequence, so that a change of the network model does not
    %% change what happens.
    _ = rand:seed(exsss, {Seed, NodeCount, erlang:phash2(Name)}),
    build(Name, node_names(max(NodeCount, least(Name)))).

%% With two groups; with two clients of four servers; with a gateway between two ends.
least(groups_churn) -> 6;
least(clients_loss) -> 6;
least(Session) when Session =:= session_faults; Session =:= session_silence;
                    Session =:= session_stopped; Session =:= session_lives -> 3;
least(_Name) -> 1.

build(static_churn, Nodes) ->
    Pairs = random_graph(Nodes),
    static(Nodes, Pairs, faults(Nodes, Pairs, [cut, cut_one_way, crash, pause]));
build(static_costs, Nodes) ->
    Pairs = random_graph(Nodes),
    static(Nodes, Pairs, faults(Nodes, Pairs, [cut, cost, cost, cost]));
build(static_restarts, Nodes) ->
    Pairs = random_graph(Nodes),
    static(Nodes, Pairs, faults(Nodes, Pairs, [restart, restart, old_clock, cut]));
build(router_restarts, Nodes) ->
    Pairs = random_graph(Nodes),
    Scenario = static(Nodes, Pairs, faults(Nodes, Pairs, [router, router, router, cut])),
    %% A router without its feasibility distances can not promise that there are no loops until its
    %% neighbours have heard of its restart; the end must be right all the same.
    without_checkers([weft_sim_loop_checker, weft_sim_distance_checker], Scenario);
build(groups_churn, Nodes) ->
    Groups = random_groups(Nodes),
    Pairs = lists:usort([{A, B} || Group <- maps:values(Groups), A <- Group, B <- Group, A < B]),
    routed({weft_groups_core, #{groups => Groups}}, Pairs, starts(Nodes, 1000),
           faults(Nodes, Pairs, [cut, cut_one_way, crash, pause]));
build(group_changes, Nodes) ->
    Pairs = random_graph(Nodes),
    Machines = [{topology, weft_static_core, #{links => Pairs}},
                {groups, weft_group_gossip_core, #{groups => #{first => lists:sublist(Nodes, 3)}}}],
    Cut = tenth(Pairs),
    #{world => #{machines => fun(_Node) -> Machines end,
                 observer => {weft_sim_answers, weft_sim_answers:new()},
                 checkers => [{weft_sim_group_checker, #{apart => Cut}}]},
      steps => starts(Nodes, 1000) ++ group_changes(Nodes)
          ++ faults(Nodes, all_pairs(Nodes), [cut, cut_one_way, crash, restart, pause]),
      heal_at_ms => ?SAFETY_MS,
      lasting => [{at(1000), {cut, A, B}} || {A, B} <- Cut]
          ++ [{at(?GROUPS_AFTER_MS), {command, Node, groups, group_change(Node, Nodes)}}
              || Node <- Nodes],
      settle_ms => ?GROUPS_AFTER_MS + ?SETTLE_MS};
build(mesh_churn, Nodes) ->
    Pairs = all_pairs(Nodes),
    mesh(Nodes, Nodes, [], faults(Nodes, Pairs, [cut, cut_one_way, crash, restart, pause]));
build(mesh_leave, Nodes) ->
    {Back, Rest} = lists:split(length(Nodes) div 4, tl(tl(Nodes))),
    Left = lists:sublist(Rest, length(Nodes) div 4),
    Steps = lists:append([gone(Node, 6000 + at(20000), 30000 + at(29000)) || Node <- Back])
        ++ [{6000 + at(50000), {command, Node, topology, leave}} || Node <- Left],
    Staying = Nodes -- (Left ++ Back),
    mesh(Nodes, Nodes -- Left, Left, Steps ++ faults(Staying, all_pairs(Staying), [cut, restart]));
build(mesh_split, Nodes) ->
    {One, Other} = lists:split(length(Nodes) div 2, Nodes),
    Scenario = mesh(Nodes, Nodes, [], [{10000, {partition, [One, Other]}}]),
    Scenario#{heal_at_ms := 610000};
build(swim_churn, Nodes) ->
    with_swim(build(mesh_churn, Nodes));
build(swim_leave, Nodes) ->
    with_swim(build(mesh_leave, Nodes));
build(swim_split, Nodes) ->
    with_swim(build(mesh_split, Nodes));
build(clients_churn, Nodes) ->
    {Servers, Clients} = lists:split(max(2, length(Nodes) div 4), Nodes),
    client_server(Servers, Clients, faults(Nodes, all_pairs(Nodes),
                                           [cut, cut_one_way, crash, restart, pause]), []);
build(clients_loss, Nodes) ->
    {Servers, Clients} = lists:split(max(4, length(Nodes) div 4), Nodes),
    {Lost, Kept} = lists:split(length(Servers) div 2, Servers),
    Steps = lists:append([[{N * 8000, {crash, Node}}, {N * 8000 + 4000, {start, Node}}]
                          || {N, Node} <- lists:zip(lists:seq(1, length(Kept)), Kept)]),
    client_server(Servers, Clients, Steps, [{at(1000), {crash, Node}} || Node <- Lost]);
build(peers_churn, Nodes) ->
    peers(Nodes, faults(Nodes, all_pairs(Nodes), [cut, cut_one_way, crash, restart, pause]),
          ?SAFETY_MS);
build(peers_leave, Nodes) ->
    {Back, Staying} = lists:split(length(Nodes) div 4, Nodes),
    peers(Nodes, lists:append([gone(Node, 6000 + at(20000), 30000 + at(29000)) || Node <- Back])
          ++ faults(Staying, all_pairs(Staying), [cut, restart]), ?SAFETY_MS);
build(peers_split, Nodes) ->
    {One, Other} = lists:split(length(Nodes) div 2, Nodes),
    peers(Nodes, [{10000, {partition, [One, Other]}}], 610000);
build(peers_near, Nodes) ->
    near(build(peers_churn, Nodes));
build(Name, Nodes) when Name =:= session_faults; Name =:= session_lanes;
                        Name =:= session_silence; Name =:= session_stopped;
                        Name =:= session_lives ->
    weft_sim_session_scenario:build(Name, Nodes);
build(Names, Nodes) when Names =:= names_churn; Names =:= names_split ->
    Mesh = whole(all_pairs(Nodes), build(weft_sim_registry_scenario:mesh(Names), Nodes)),
    weft_sim_registry_scenario:on_top(Mesh, Nodes);
build(StrongNames, Nodes) ->
    weft_sim_names_scenario:build(StrongNames, Nodes).

%% @doc A scenario for a topology that is not part of weft: links are cut (also one way), nodes
%% crash,
%% restart and pause. OptionsOf says what each of the nodes is configured with.
-spec own({module(), OptionsOf :: fun(([node()], node()) -> map())}, Seed :: integer(),
          NodeCount :: pos_integer()) -> scenario().
own({Module, OptionsOf}, Seed, NodeCount) ->
    _ = rand:seed(exsss, {Seed, NodeCount, erlang:phash2(own)}),
    Nodes = node_names(NodeCount),
    Pairs = all_pairs(Nodes),
    Options = fun(Node) -> #{own => {Module, OptionsOf(Nodes, Node)}} end,
    Scenario = routed({weft_own_topology_core, Options}, Pairs, starts(Nodes, 5000),
                      faults(Nodes, Pairs, [cut, cut_one_way, crash, restart, pause])),
    #{world := #{checkers := Checkers} = World, lasting := Lasting} = Scenario,
    Own = {weft_sim_own_topology_checker, #{cut => [{A, B} || {_AtMs, {cut, A, B}} <- Lasting]}},
    Scenario#{world := World#{checkers := [Own | lists:keydelete(weft_sim_link_checker, 1,
                                                                 Checkers)]}}.

%% Few names, so that they clash, and some of the changes at the same moment. One name of each node
%% is used by no other, so it is known what becomes of it.
group_changes(Nodes) ->
    lists:append([[{AtMs, {command, Node, groups, group_change(Node, Nodes)}}
                   || Node <- [pick(Nodes) || _ <- lists:seq(1, pick([1, 1, 4]))]]
                  || _ <- lists:seq(1, 5 * length(Nodes)),
                     AtMs <- [2000 + at(?SAFETY_MS - 3000)]]).

group_change(Node, Nodes) ->
    Name = pick([first, g1, g2, g3, {own, Node}]),
    Some = [pick(Nodes) || _ <- lists:seq(1, at(5))],
    pick([{create, Name, [Node | Some]}, {create, Name, [Node | Some]}, {create, Name, Some},
          {add, Name, Some}, {add, Name, Some}, {remove, Name, Some}, {leave, Name},
          {delete, Name}]).

%% Leaves, is stopped, and comes back with a new incarnation.
gone(Node, LeaveMs, BackMs) ->
    [{LeaveMs, {command, Node, topology, leave}}, {LeaveMs + 1000, {crash, Node}},
     {BackMs, {start, Node}}].

static(Nodes, Pairs, Faults) ->
    routed({weft_static_core, #{links => Pairs}}, Pairs, starts(Nodes, 1000), Faults).

mesh(Nodes, Staying, Left, Faults) ->
    Seeds = lists:sublist(Nodes, 2),
    Scenario = routed({weft_full_mesh_core, #{seeds => Seeds}}, all_pairs(Staying),
                      starts(Nodes, 5000), Faults),
    #{world := #{checkers := Checkers} = World} = Scenario,
    Scenario#{world := World#{checkers := [{weft_sim_membership_checker, #{left => Left}}
                                           | Checkers]}}.

%% Only the first two servers are told; the others are found by gossip.
client_server(Servers, Clients, Faults, Lasting) ->
    Links = 2,
    Options = fun(Node) ->
                      Known = #{servers => lists:sublist(Servers, 2)},
                      case lists:member(Node, Servers) of
                          true -> Known#{role => server};
                          false -> Known#{role => client, links => Links}
                      end
              end,
    Checked = #{servers => Servers, clients => Clients, links => Links},
    Pairs = all_pairs(Servers),
    Scenario = whole(Pairs, routed({weft_client_server_core, Options}, Pairs,
                                   starts(Servers ++ Clients, 5000), Faults)),
    #{world := #{checkers := Checkers} = World} = Scenario,
    Scenario#{world := World#{checkers := [{weft_sim_client_server_checker, Checked},
                                           {weft_sim_membership_checker, #{}} | Checkers]},
              lasting := Lasting}.

%% Neighbours are whom it may be, and at times somebody looks for another one; so which links are up
%% and whether it is quiet are no questions here, and routes may just be about to change. Shuffles
%% and probes are five times as frequent as usual, to fit into the time.
peers(Nodes, Faults, HealMs) ->
    Options = #{seeds => lists:sublist(Nodes, 2), shuffle_ms => 2000, probe_ms => 12000},
    Scenario = routed({weft_peer_to_peer_core, Options}, all_pairs(Nodes), starts(Nodes, 5000),
                      Faults),
    #{world := #{machines := Machines, checkers := Checkers} = World, lasting := Cuts} =
        without_checkers([weft_sim_link_checker, weft_sim_quiet_checker, weft_sim_route_checker],
                         Scenario),
    Broadcasts = [{?SETTLE_MS + at(10000), {command, Node, broadcast, {broadcast, <<>>}}}
                  || Node <- Nodes],
    Among = [{?SETTLE_MS + at(HealMs - ?SETTLE_MS), Verb} || {_AtMs, Verb} <- Broadcasts],
    #{steps := Steps} = Scenario,
    Scenario#{steps := Steps ++ Among, heal_at_ms := HealMs,
              lasting := Cuts ++ Broadcasts, settle_ms := 2 * ?SETTLE_MS,
              world := World#{machines := fun(Node) -> Machines(Node)
                                                  ++ [{broadcast, weft_plumtree_core, #{}}]
                                          end,
                              observer => {weft_sim_deliveries, weft_sim_deliveries:new()},
                              checkers := [{weft_sim_connectivity_checker, #{}},
                                           {weft_sim_symmetry_checker, #{}},
                                           {weft_sim_patient_checker, neighbours(Cuts)},
                                           {weft_sim_reliability_checker, #{since_ms => HealMs}},
                                           {weft_sim_patient_checker,
                                            #{checker => {weft_sim_route_checker, #{}}}}
                                           | Checkers]}}.

%% With few nodes, of which a tenth of the links is cut, not all can have five neighbours. An
%% exchange of neighbours leaves places free for some rounds.
neighbours(Cuts) ->
    #{checker => {weft_sim_degree_checker, #{apart => [{A, B} || {_AtMs, {cut, A, B}} <- Cuts]}},
      within_ms => 20000}.

%% Any two nodes are up to 50 ms apart. Links to measure come and go all the time, and here they
%% count as routes (real ones do not), so routes are never right at all nodes.
near(Peers) ->
    #{world := #{machines := Machines} = World} = Scenario =
        without_checkers([weft_sim_route_checker], Peers),
    Latency = fun(A, B) ->
                      Us = 1000 * erlang:phash2({min(A, B), max(A, B)}, 50),
                      {Us + 200, Us + 500}
              end,
    Near = #{optimise => rtt, optimise_ms => 4000, mix_from => 1, mix_rounds => 2},
    Scenario#{world := World#{latency_us => Latency, machines := fun(Node) ->
        [case Machine of
             {topology, Topology, Options} -> {topology, Topology, maps:merge(Options, Near)};
             _ -> Machine
         end || Machine <- Machines(Node)]
    end}}.

routed({Topology, TopologyOptions}, Pairs, Starts, Faults) when is_map(TopologyOptions) ->
    routed({Topology, fun(_Node) -> TopologyOptions end}, Pairs, Starts, Faults);
routed({Topology, OptionsOf}, Pairs, Starts, Faults) ->
    Machines = fun(Node) -> [{topology, Topology, OptionsOf(Node)},
                             {router, weft_router_core, #{}}]
               end,
    Cut = tenth(Pairs),
    #{world => #{machines => Machines,
                 checkers => [{weft_sim_loop_checker, #{}}, {weft_sim_distance_checker, #{}},
                              {weft_sim_link_checker, #{pairs => Pairs -- Cut}},
                              {weft_sim_route_checker, #{}}, {weft_sim_quiet_checker, #{}}]},
      steps => Starts ++ Faults, heal_at_ms => ?SAFETY_MS,
      lasting => [{at(1000), {cut, A, B}} || {A, B} <- Cut], settle_ms => ?SETTLE_MS}.

%% At least one, in a small world too.
tenth(Pairs) ->
    lists:usort([pick(Pairs) || _ <- lists:seq(1, max(1, length(Pairs) div 10))]).

%% No link is cut for good, so all of them have to be up in the end.
whole(Pairs, #{world := #{checkers := Checkers} = World} = Scenario) ->
    Links = {weft_sim_link_checker, #{pairs => Pairs}},
    Scenario#{world := World#{checkers := lists:keyreplace(weft_sim_link_checker, 1, Checkers,
                                                           Links)},
              lasting := []}.

with_swim(#{world := #{machines := Machines} = World} = Scenario) ->
    Scenario#{settle_ms := ?SWIM_SETTLE_MS,
              world := World#{machines := fun(Node) ->
                  [case Machine of
                       {topology, weft_full_mesh_core, Options} ->
                           {topology, weft_swim_mesh_core, Options};
                       _ -> Machine
                   end || Machine <- Machines(Node)]
              end}}.

without_checkers(Checkers, #{world := #{checkers := All} = World} = Scenario) ->
    Scenario#{world := World#{checkers := [Checker || Checker <- All,
                                                      not lists:member(holds(Checker), Checkers)]}}.

holds({weft_sim_patient_checker, #{checker := {Checker, _}}}) -> Checker;
holds({Checker, _}) -> Checker.

%% --- faults ---

starts(Nodes, WithinMs) ->
    [{at(WithinMs), {start, Node}} || Node <- Nodes].

%% About two faults per node and minute, in any case twenty, each over after up to ten seconds.
faults(Nodes, Pairs, Kinds) ->
    lists:append([fault(pick(Kinds), Nodes, Pairs, 2000 + at(?SAFETY_MS - 2000))
                  || _ <- lists:seq(1, max(20, 2 * length(Nodes)))]).

fault(cut, _Nodes, Pairs, AtMs) ->
    {A, B} = pick(Pairs),
    [{AtMs, {cut, A, B}}, {AtMs + at(10000), {heal, A, B}}];
fault(cut_one_way, _Nodes, Pairs, AtMs) ->
    {A, B} = pick(Pairs),
    {From, To} = pick([{A, B}, {B, A}]),
    [{AtMs, {cut_one_way, From, To}}, {AtMs + at(10000), {heal, A, B}}];
fault(crash, Nodes, _Pairs, AtMs) ->
    Node = pick(Nodes),
    [{AtMs, {crash, Node}}, {AtMs + at(10000), {start, Node}}];
fault(restart, Nodes, _Pairs, AtMs) ->
    Node = pick(Nodes),
    [{AtMs, {crash, Node}}, {AtMs + at(500), {start, Node}}];
fault(old_clock, Nodes, _Pairs, AtMs) ->
    Node = pick(Nodes),
    [{AtMs, {crash, Node}}, {AtMs + at(2000), {start, Node, 0}}];
fault(pause, Nodes, _Pairs, AtMs) ->
    Node = pick(Nodes),
    [{AtMs, {pause, Node}}, {AtMs + at(6000), {resume, Node}}];
fault(router, Nodes, _Pairs, AtMs) ->
    [{AtMs, {restart_machine, pick(Nodes), router}}];
fault(cost, _Nodes, Pairs, AtMs) ->
    {A, B} = pick(Pairs),
    [{AtMs + at(10), {notice, A, router, {link_cost, B, at(100000)}}},
     {AtMs + at(10), {notice, B, router, {link_cost, A, at(100000)}}}].

%% --- shapes ---

node_names(Count) ->
    [list_to_atom(lists:flatten(io_lib:format("n~3..0b@sim", [N]))) || N <- lists:seq(1, Count)].

all_pairs(Nodes) ->
    [{A, B} || A <- Nodes, B <- Nodes, A < B].

%% @doc Links of a connected random graph with about four links per node.
-spec random_links([node()], Seed :: integer()) -> [{node(), node()}].
random_links(Nodes, Seed) ->
    _ = rand:seed(exsss, Seed),
    random_graph(Nodes).

%% A random tree and as many links again.
random_graph([First | Rest] = Nodes) ->
    {Tree, _} = lists:mapfoldl(fun(Node, Placed) -> {{pick(Placed), Node}, [Node | Placed]} end,
                               [First], Rest),
    More = [{min(A, B), max(A, B)} || _ <- Rest, {A, B} <- [{pick(Nodes), pick(Nodes)}], A =/= B],
    lists:usort([{min(A, B), max(A, B)} || {A, B} <- Tree] ++ More).

%% Groups of about five, each sharing one node with an earlier group.
random_groups(Nodes) ->
    Parts = parts(5, Nodes),
    {Groups, _} = lists:mapfoldl(fun(Part, []) -> {Part, Part};
                                    (Part, Earlier) -> {[pick(Earlier) | Part], Part ++ Earlier}
                                 end, [], Parts),
    maps:from_list(lists:zip(lists:seq(1, length(Groups)), Groups)).

parts(Size, List) when length(List) =< Size -> [List];
parts(Size, List) ->
    {Part, Rest} = lists:split(Size, List),
    [Part | parts(Size, Rest)].

pick(List) ->
    lists:nth(rand:uniform(length(List)), List).

at(MaxMs) ->
    rand:uniform(MaxMs).
