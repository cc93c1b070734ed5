%% SPDX-License-Identifier: Apache-2.0
%% @doc Who does what in an orbit: which worker owns a vertex, on which node a worker is, and in
%% which group. Pure.
%%
%% Workers are numbered from 1. A table of twice as many slots as the space has numbers is cut into
%% equal parts, one for each worker; the slot of a vertex is a hash of it. Distributed: all workers
%% are in one group without gateways. Grouped: the first node of each group is its submaster, where
%% its gateways are; the workers are on its other nodes, or on the submaster as well if it has none.
-module(weft_orbit_plan).

-export([new/2, slot/2, owner/2]).
-export_type([plan/0, group/0, worker/0]).

-type worker() :: pos_integer().
-type group() :: #{number := pos_integer(), head := node(), first := worker(),
                   nodes := [node()]}.
-type plan() :: #{generators := weft_orbit_generators:set(), space := pos_integer(),
                  slots := pos_integer(), chunk := pos_integer(), idle_ms := non_neg_integer(),
                  groups := [group()], gateways := non_neg_integer(), workers := pos_integer(),
                  %% The group of each worker.
                  group_of := tuple()}.

%% @doc Options: `generators', `space', `workers' (on each node), `idle_ms'; for the grouped form
%% `groups' (lists of nodes) and `gateways' (of each group). The error is a text.
-spec new(map(), [node(), ...]) -> {ok, plan()} | {error, iodata()}.
new(Options, Nodes) ->
    case [Text || {false, Text} <- checks(Options, Nodes)] of
        [] -> {ok, plan(Options, Nodes)};
        [Text | _] -> {error, Text}
    end.

checks(#{generators := Generators, space := Space, workers := Workers} = Options, Nodes) ->
    Groups = maps:get(groups, Options, []),
    Members = lists:append(Groups),
    [{lists:usort(Generators) =:= Generators
      andalso lists:all(fun weft_orbit_generators:is_generator/1, Generators),
      io_lib:format("generators are ~0p: they must be different numbers from 1 to 5 or "
                    "functions that are loaded, in order",
                    [Generators])},
     {is_integer(Space) andalso Space > 0, io_lib:format("the space is ~0p: it must be above 0",
                                                         [Space])},
     {is_integer(Workers) andalso Workers > 0,
      io_lib:format("~0p workers on a node: there must be one", [Workers])},
     {not lists:member([], Groups), "a group has no node"},
     {length(lists:usort(Members)) =:= length(Members), "a node is in two groups"},
     {Members -- Nodes =:= [], io_lib:format("groups have nodes that are not there: ~0p",
                                             [Members -- Nodes])},
     {Groups =:= [] orelse maps:get(gateways, Options, 0) > 0, "groups need a gateway"}].

plan(#{generators := Generators, space := Space, workers := PerNode} = Options, Nodes) ->
    Groups = numbered(groups(Options, Nodes), PerNode, 1, 1),
    GroupOf = [Number || #{number := Number, nodes := Of} <- Groups, _ <- Of,
                         _ <- lists:seq(1, PerNode)],
    Chunk = 2 * Space div length(GroupOf) + 1,
    #{generators => Generators, space => Space, chunk => Chunk, slots => Chunk * length(GroupOf),
      idle_ms => maps:get(idle_ms, Options, 1), groups => Groups, workers => PerNode,
      gateways => maps:get(gateways, Options, 0), group_of => list_to_tuple(GroupOf)}.

%% The master's node does not work, unless it is the only one.
groups(#{groups := [_ | _] = Groups}, _Nodes) ->
    [{Head, case Others of [] -> [Head]; _ -> Others end} || [Head | Others] <- Groups];
groups(_Distributed, [Only]) ->
    [{Only, [Only]}];
groups(_Distributed, [Master | Workers]) ->
    [{Master, Workers}].

numbered([], _PerNode, _Number, _First) ->
    [];
numbered([{Head, Nodes} | Rest], PerNode, Number, First) ->
    [#{number => Number, head => Head, nodes => Nodes, first => First}
     | numbered(Rest, PerNode, Number + 1, First + length(Nodes) * PerNode)].

%% @doc The slot of a vertex in the table of all workers.
-spec slot(non_neg_integer(), plan()) -> non_neg_integer().
slot(X, #{slots := Slots}) ->
    erlang:phash2(X) rem Slots.

%% @doc The worker that has a slot.
-spec owner(Slot :: non_neg_integer(), plan()) -> worker().
owner(Slot, #{chunk := Chunk}) ->
    Slot div Chunk + 1.
