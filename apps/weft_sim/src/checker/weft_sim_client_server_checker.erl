%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariants of the topology `client_server': never is a link up between two clients; once
%% settled, each client has links to as many servers as it wants, or to all that run if they are
%% fewer, and to no more.
%%
%% Options: `servers', `clients', `links' (how many a client wants).
-module(weft_sim_client_server_checker).
-behaviour(weft_sim_checker).

-export([view_changed/5, settled/2]).

%% @doc Looks at the links of a client whenever it says something.
-spec view_changed(node(), term(), term(), weft_sim_world:world(), map()) ->
          weft_sim_checker:verdict().
view_changed(Name, _Key, _Value, World, #{clients := Clients}) ->
    case lists:member(Name, Clients) of
        true -> no_clients(Name, [C || C <- Clients, weft_sim_world:is_live(Name, C, World)]);
        false -> ok
    end.

no_clients(_Name, []) -> ok;
no_clients(Name, [Other | _]) ->
    {violation, io_lib:format("the clients ~0tp and ~0tp are linked", [Name, Other])}.

%% @doc Counts the links of all clients that run.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, #{servers := Servers, clients := Clients, links := Links}) ->
    Graph = weft_sim_peers:linked(World),
    Expected = min(Links, length([S || S <- Servers, is_map_key(S, Graph)])),
    case [{C, map_get(C, Graph)} || C <- Clients, is_map_key(C, Graph),
                                    length(map_get(C, Graph)) =/= Expected] of
        [] -> ok;
        Wrong -> {violation, io_lib:format("clients should have ~b links: ~0tp",
                                           [Expected, Wrong])}
    end.
