%% SPDX-License-Identifier: Apache-2.0
%% @doc Eventual names and process groups on top of a mesh: processes register, re-register,
%% unregister, join, leave and die on all nodes while nodes and links fail, and a little longer. In
%% the end all must agree (`weft_sim_registry_checker').
%% In half of the worlds who changes a name waits until all have heard of it. Half of the names have
%% so much with them that each is a batch of its own at the beginning of a session.
%%
%% Few names and groups, so that nodes clash. A process is used once: after its node crashed nobody
%% registers it again.
-module(weft_sim_registry_scenario).

-export([names/0, describe/1, mesh/1, on_top/2]).

-define(NAMES, 6).
-define(OWN_NAMES, 2).
-define(GROUPS, 3).
%% Changes begin when the mesh is there, and go on for a while after the healing.
-define(FROM_MS, 4000).
-define(AFTER_MS, 4000).
-define(PER_NODE, 25).
-define(LARGE_BYTES, 5000000).

%% @doc All of them.
-spec names() -> [atom()].
names() -> [names_churn, names_split].

%% @doc One line about a scenario.
-spec describe(atom()) -> string().
describe(names_churn) -> "eventual names and process groups; all kinds of faults";
describe(names_split) -> "eventual names and process groups; in two halves for ten minutes".

%% @doc The scenario that it runs on.
-spec mesh(atom()) -> atom().
mesh(names_churn) -> mesh_churn;
mesh(names_split) -> mesh_split.

%% @doc Adds names and groups to a scenario in which in the end all nodes are neighbours: faults
%% that would last are left out. The random sequence of the calling process is seeded.
-spec on_top(weft_sim_scenario:scenario(), [node()]) -> weft_sim_scenario:scenario().
on_top(#{world := World, steps := Steps, heal_at_ms := HealMs, settle_ms := SettleMs} = Scenario,
       Nodes) ->
    #{machines := Machines, checkers := Checkers} = World,
    Conflict = pick([oldest, newest, fun greater_meta/3]),
    Loser = pick([exit, exit, notify]),
    Wait = pick([none, all]),
    Large = binary:copy(<<0>>, ?LARGE_BYTES),
    Changes = lists:append([changes(Node, Number, HealMs + ?AFTER_MS, Large)
                            || Node <- Nodes, Number <- lists:seq(1, ?PER_NODE)]),
    {Before, After} = lists:partition(fun({AtMs, _}) -> AtMs < HealMs end, Changes),
    Scenario#{steps := Steps ++ Before,
              lasting := [{AtMs - HealMs, Verb} || {AtMs, Verb} <- After],
              settle_ms := SettleMs + ?AFTER_MS,
              world := World#{machines := fun(Node) ->
                                  Machines(Node)
                                      ++ [{names, weft_names_eventual_core,
                                           #{scope => s, conflict => Conflict, loser => Loser,
                                             wait => Wait}},
                                          {members, weft_pg_core, #{}}]
                              end,
                              observer => {weft_sim_answers, weft_sim_answers:new()},
                              checkers := [{weft_sim_registry_checker, #{}} | Checkers]}}.

%% The same on both nodes, whoever asks.
greater_meta(_Via, {Pid1, Meta1, _}, {_, Meta2, _}) when Meta1 > Meta2 -> Pid1;
greater_meta(_Via, _, {Pid2, _, _}) -> Pid2.

%% All of them until UntilMs.
changes(Node, Number, UntilMs, Large) ->
    Pid = pid(Node, Number),
    AtMs = ?FROM_MS + at(UntilMs - ?FROM_MS),
    Later = fun() -> min(AtMs + at(20000), UntilMs) end,
    Name = fun(P, Ms) -> name(P, Ms, element(1 + Ms rem 2, {small, Large})) end,
    {Machine, Command} = pick([Name, fun group/2], Pid, AtMs),
    [{AtMs, {command, Node, Machine, Command}}
     | [{Later(), {notice, Node, Machine, {gone, Pid, killed}}} || at(3) =:= 1]]
        ++ [{Later(), undone(Node, Machine, Command)} || at(3) =:= 1].

name(Pid, AtMs, Size) ->
    %% Some names are used by one node only, so it is known who has them.
    Claim = [{name, pick([at(?NAMES), at(?NAMES), {node(Pid), at(?OWN_NAMES)}])}, Pid,
             {at(1000), Size}, AtMs * 1000],
    {names, list_to_tuple(case at(4) of
                              1 -> [re_register] ++ Claim ++ [-1];
                              _ -> [register | Claim]
                          end)}.

group(Pid, _AtMs) ->
    {members, {join, {group, at(?GROUPS)}, lists:duplicate(at(2), Pid)}}.

undone(Node, names, Claim) ->
    {command, Node, names, {unregister, element(2, Claim)}};
undone(Node, members, {join, Group, Pids}) ->
    {command, Node, members, {leave, Group, Pids}}.

%% A process of another node, as the external term format has it.
pid(Node, Number) ->
    Name = atom_to_binary(Node),
    binary_to_term(<<131, 88, 119, (byte_size(Name)), Name/binary, Number:32, 0:32, 1:32>>).

pick(Functions, Pid, AtMs) -> (pick(Functions))(Pid, AtMs).

pick(List) -> lists:nth(rand:uniform(length(List)), List).

at(Max) -> rand:uniform(Max).
