%% SPDX-License-Identifier: Apache-2.0
%% @doc The advertisement counter with more nodes than a machine can run, in virtual time. Each node
%% is a `weft_partisan_ads_core', so the store is the one that real nodes run, and its times are
%% those of the paper.
%%
%% Nodes exchange the same with any topology. What differs is who relays it, so that is added up
%% afterwards: between client and server the first node relays what two others exchange; peer to
%% peer it goes by a shortest path through a cluster that HyParView has formed in virtual time.
%% Relaying takes no time here, and no node has more to do than it can.
-module(weft_partisan_ads_simulated).

-export([run/3]).

-define(BEGIN_MS, 10000).
-define(STEP_MS, 1000).
%% What it takes at most, beyond twice the time of its impressions.
-define(OVER_MS, 600000).

-type measurement() :: {Metric :: atom(), number()}.

%% @doc Until all nodes know that it is over. Each node has so many impressions. Bytes are what
%% nodes received, as many times as they passed a link.
-spec run(Nodes :: pos_integer(), Impressions :: pos_integer(), Seed :: integer()) ->
          [measurement(), ...].
run(Count, Impressions, Seed) ->
    Graph = graph(Count, Seed),
    [Server | _] = Names = lists:sort(maps:keys(Graph)),
    Max = Count * Impressions,
    World = world(Names, Max, Seed),
    TwiceMs = 2 * Impressions * weft_partisan_ads:impression_ms(),
    {Shown, Over} = over(?BEGIN_MS + ?STEP_MS, TwiceMs, Names, Max, World),
    Sent = [{Name, weft_partisan_ads_core:sent_bytes(weft_sim_datagrams:core(Name, Over))}
            || Name <- Names],
    received(client_server, client_server(Server, Sent))
        ++ received(peer_to_peer, peer_to_peer(Graph, Sent))
        ++ [{duration_s, (weft_sim_datagrams:now_ms(Over) - 1 - ?BEGIN_MS) / 1000},
            {shown_too_often, Shown - Max}].

received(client_server, ByNode) ->
    [{client_server_bytes, lists:sum(ByNode)}, {client_server_most_bytes, lists:max(ByNode)}];
received(peer_to_peer, ByNode) ->
    [{peer_to_peer_bytes, lists:sum(ByNode)}, {peer_to_peer_most_bytes, lists:max(ByNode)}].

%% --- nodes ------------------------------------------------------------------------------------

%% Who is whose neighbour peer to peer. All of them are in one cluster.
graph(Count, Seed) ->
    {World, GrownMs} = weft_sim_gossip:starting(Count, Seed),
    Graph = weft_sim_graph:symmetric(weft_sim_peers:graph(weft_sim_world:run_until(GrownMs,
                                                                                   World))),
    [_] = weft_sim_graph:components(Graph),
    Graph.

world([Server | _] = Names, Max, Seed) ->
    ImpressionMs = weft_partisan_ads:impression_ms(),
    Options = fun(Name) ->
                  maps:merge(#{others => lists:delete(Name, Names), begin_ms => ?BEGIN_MS,
                               first_ms => ?BEGIN_MS + erlang:phash2(Name, ImpressionMs)},
                             maps:from_list([{max, Max} || Name =:= Server]))
              end,
    lists:foldl(fun(Name, World) -> weft_sim_datagrams:schedule(0, {start, Name}, World) end,
                weft_sim_datagrams:new(#{seed => Seed, core => weft_partisan_ads_core,
                                         options => Options}), Names).

%% Until all have the same count, and no advertisement. Nobody shows one then.
over(AtMs, TimeMs, Names, Max, World0) ->
    World = weft_sim_datagrams:run_until(AtMs, World0),
    [] = weft_sim_datagrams:notices(World),
    case lists:usort([weft_partisan_ads_core:state(weft_sim_datagrams:core(Name, World))
                      || Name <- Names]) of
        [{Shown, []}] when Shown >= Max -> {Shown, World};
        _ when AtMs < ?BEGIN_MS + TimeMs + ?OVER_MS ->
            over(AtMs + ?STEP_MS, TimeMs, Names, Max, World);
        States -> erlang:error({not_over, lists:sublist(States, 5)})
    end.

%% --- who relays -------------------------------------------------------------------------------

client_server(Server, Sent) ->
    maps:values(
      lists:foldl(fun({From, To, Bytes}, Sums) when From =:= Server; To =:= Server ->
                          add(To, Bytes, Sums);
                     ({_, To, Bytes}, Sums) -> add(Server, Bytes, add(To, Bytes, Sums))
                  end, #{}, [{From, To, Bytes} || {From, ByNode} <- Sent,
                                                  {To, Bytes} <- maps:to_list(ByNode)])).

peer_to_peer(Graph, Sent) ->
    maps:values(
      lists:foldl(fun({From, ByNode}, Sums0) ->
                      Parents = weft_sim_graph:parents(From, Graph),
                      maps:fold(fun(To, Bytes, Sums) -> relayed(To, Bytes, Parents, Sums) end,
                                Sums0, ByNode)
                  end, #{}, Sent)).

%% Backwards, to the node that has sent it.
relayed(Node, Bytes, Parents, Sums) ->
    case Parents of
        #{Node := Parent} -> relayed(Parent, Bytes, Parents, add(Node, Bytes, Sums));
        #{} -> Sums
    end.

add(Node, Bytes, Sums) ->
    maps:update_with(Node, fun(Before) -> Before + Bytes end, Bytes, Sums).
