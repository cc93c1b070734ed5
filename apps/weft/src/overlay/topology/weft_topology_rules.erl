%% SPDX-License-Identifier: Apache-2.0
%% @doc Checks that the topologies share. Each answers `ok' or `{error, Text}', where the text says
%% what is wrong, where, and what to write instead.
-module(weft_topology_rules).

-export([first_error/1, known_keys/3, node_names/2, contains_self/3, doubles/1, connected/2]).
-export_type([verdict/0]).

-type verdict() :: ok | {error, iolist()}.

%% @doc Runs the checks in order up to the first error; later ones may rely on earlier ones.
-spec first_error([fun(() -> verdict())]) -> verdict().
first_error([]) -> ok;
first_error([Check | Rest]) ->
    case Check() of
        ok -> first_error(Rest);
        {error, _} = Error -> Error
    end.

%% @doc Refuses options that Topology does not have, most often a typing error.
-spec known_keys(Topology :: string(), map(), [atom()]) -> verdict().
known_keys(Topology, Options, Known) ->
    case lists:sort(maps:keys(Options)) -- Known of
        [] -> ok;
        [Unknown | _] ->
            {error, io_lib:format("topology ~ts has no option ~0tp: its options are ~ts",
                                  [Topology, Unknown, words(Known)])}
    end.

%% @doc Refuses what can not be the name of a node.
-spec node_names(Where :: iodata(), [term()]) -> verdict().
node_names(Where, Nodes) when length(Nodes) >= 0 -> % not of an improper list
    first_error([fun() -> node_name(Where, Node) end || Node <- Nodes]);
node_names(Where, Other) ->
    {error, io_lib:format("~ts: ~0tp is no list of nodes, write ['name@host', ...]",
                          [Where, Other])}.

node_name(Where, Node) ->
    case is_atom(Node) andalso string:split(atom_to_list(Node), "@", all) of
        [[_ | _], [_ | _]] -> ok;
        _ -> {error, io_lib:format("~ts: ~0tp is no node name, write 'name@host'", [Where, Node])}
    end.

%% @doc Refuses a configuration that leaves out the node that reads it.
-spec contains_self(weft_core:node_id(), [weft_core:node_id()], Where :: iodata()) -> verdict().
contains_self(Self, Nodes, Where) ->
    case lists:member(Self, Nodes) of
        true -> ok;
        false ->
            {error, io_lib:format("this node, ~0tp, does not occur in the topology: add it to ~ts, "
                                  "or start the node under one of the names there (~ts)",
                                  [Self, Where, words(lists:sublist(Nodes, 5))])}
    end.

%% @doc The elements that occur more than once.
-spec doubles([Element]) -> [Element].
doubles(List) ->
    lists:usort(List -- lists:usort(List)).

%% @doc Refuses a graph in several parts: nodes of one part could never reach those of another.
-spec connected([weft_core:node_id()], Links :: [{weft_core:node_id(), weft_core:node_id()}]) ->
          verdict().
connected([First | _] = Nodes, Links) ->
    Neighbours = lists:foldl(fun({A, B}, Map) -> add(A, B, add(B, A, Map)) end, #{}, Links),
    Reached = reach([First], Neighbours, #{First => []}),
    case [Node || Node <- Nodes, not is_map_key(Node, Reached)] of
        [] -> ok;
        [Lost | _] = All ->
            {error, io_lib:format("no path leads from ~0tp to ~0tp (~b nodes are cut off): add a "
                                  "link, or a node that both sides share",
                                  [First, Lost, length(All)])}
    end.

add(From, To, Map) ->
    maps:update_with(From, fun(Others) -> [To | Others] end, [To], Map).

reach([], _Neighbours, Reached) -> Reached;
reach([Node | Rest], Neighbours, Reached) ->
    New = [N || N <- lists:usort(maps:get(Node, Neighbours, [])), not is_map_key(N, Reached)],
    reach(New ++ Rest, Neighbours, maps:merge(Reached, maps:from_list([{N, []} || N <- New]))).

words(Atoms) ->
    lists:join(", ", [io_lib:format("~0tp", [Atom]) || Atom <- Atoms]).
