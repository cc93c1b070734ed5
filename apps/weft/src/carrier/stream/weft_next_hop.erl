%% SPDX-License-Identifier: Apache-2.0
%% @doc Over which link a session goes out: the link to its peer, or the one to the router's next
%% hop. Reads tables only; called for each attempt to open a path, not for each packet.
-module(weft_next_hop).

-export([choose/1, is_hidden/1, next_link/1, is_around/1, has_neighbour_besides/1]).

-type path() :: direct | {via, node()} | no_route.
-export_type([path/0]).

%% @doc The way to Node now. Without an overlay every node is dialled directly, as the stock carrier
%% does. In a partial topology a node that is no neighbour is reached by a circuit or not at all.
%% While the link to a neighbour is down, a way around it is taken if there is one. If the topology
%% decides which nodes are neighbours, a route is also preferred to a link that is up only for a
%% question.
-spec choose(node()) -> path().
choose(Node) ->
    case weft_links:is_neighbour(Node) of
        true -> direct;
        false -> detour(Node, without_route(Node))
    end.

without_route(Node) ->
    case weft_links:up(Node) orelse weft_links:wanted(Node) orelse not weft_overlay:is_partial() of
        true -> direct;
        false -> no_route
    end.

detour(Node, Otherwise) ->
    case weft_overlay:route(Node) of
        {ok, Node} -> direct_again(weft_links:is_released(Node));
        {ok, NextHop} -> {via, NextHop};
        {error, no_route} -> Otherwise
    end.

%% The router has not yet heard that the link is down. A link that was given up is not dialled again
%% because of that.
direct_again(true) -> no_route;
direct_again(false) -> direct.

%% @doc Is a connection that begins now to be hidden? A circuit to a node that is no neighbour is,
%% unless circuits are to be visible. A neighbour remains one while its link is down and a circuit
%% leads to it, and any node may become one before the topology has asked for its first links: a
%% connection that began hidden stays so.
-spec is_hidden(node()) -> boolean().
is_hidden(Node) ->
    weft_config:get(circuits) =:= hidden andalso weft_overlay:is_partial()
        andalso weft_overlay:has_asked() andalso not weft_links:wanted(Node)
        andalso is_circuit(choose(Node)).

is_circuit({via, _NextHop}) -> true;
is_circuit(_DirectOrNone) -> false.

%% @doc Does a route of a partial topology lead to that node by another link than its own?
-spec is_around(Name :: binary()) -> boolean().
is_around(Name) ->
    try weft_overlay:is_partial() andalso weft_overlay:route(binary_to_existing_atom(Name)) of
        {ok, NextHop} -> atom_to_binary(NextHop) =/= Name;
        _ -> false
    catch
        error:badarg -> false
    end.

%% @doc In a partial topology, does another neighbour remain if the link to that node is given up?
-spec has_neighbour_besides(Name :: binary()) -> boolean().
has_neighbour_besides(Name) ->
    weft_overlay:is_partial()
        andalso lists:any(fun({Node, _Cost}) -> atom_to_binary(Node) =/= Name end,
                          weft_overlay:neighbours()).

%% @doc On a gateway: the link towards a target named by a peer. Never makes an atom.
-spec next_link(binary()) -> {ok, Name :: binary(), Link :: pid()} | error.
next_link(Target) ->
    try choose(binary_to_existing_atom(Target)) of
        direct -> link_of(binary_to_existing_atom(Target));
        {via, NextHop} -> link_of(NextHop);
        no_route -> error
    catch
        error:badarg -> error
    end.

link_of(Node) ->
    case weft_links:up(Node) andalso weft_links:lookup(Node) of
        {ok, Link} -> {ok, atom_to_binary(Node), Link};
        _ -> error
    end.
