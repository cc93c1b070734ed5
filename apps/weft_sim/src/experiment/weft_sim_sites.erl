%% SPDX-License-Identifier: Apache-2.0
%% @doc A peer-to-peer cluster spread over ten sites: what its links cost, with and without the
%% option `optimise', and what that does to its shape and to broadcasts.
%%
%% Nodes of one site are 0.2 to 0.5 ms apart, those of different sites 10 to 50 ms, the same for
%% each pair of sites but for a tenth. Figures and limits are otherwise those of `weft_sim_gossip'.
-module(weft_sim_sites).

-export([run/3, print/1, cost_ms/2]).
-export_type([row/0]).

-define(SITES, 10).
-define(SEED, 1).
-define(ROUNDS, 100).
-define(ROUND_MS, 10000).
-define(MESSAGES, 50).

-type row() :: #{optimise := none | rtt, nodes := pos_integer(), cost_ms := float(),
                 connected := float(), asymmetric := non_neg_integer(), degree := float(),
                 clustering := float(), path := float(), path_max := non_neg_integer(),
                 one := map(), many := map()}.
%% `cost_ms': mean round trip of the links. `one', `many': broadcasts of one sender and of many, see
%% `weft_sim_deliveries:figures/2'.

%% @doc A cluster that ran undisturbed for 100 rounds of optimising, then broadcasts in it.
-spec run(NodeCount :: pos_integer(), Seed :: integer(), none | rtt) -> row().
run(NodeCount, Seed, Optimise) ->
    {World0, GrownMs} = weft_sim_gossip:starting(NodeCount, Seed, #{optimise => Optimise},
                                                 fun latency_us/2),
    World = weft_sim_world:run_until(GrownMs + ?ROUNDS * ?ROUND_MS, World0),
    Taken = weft_sim_peers:graph(World),
    Graph = weft_sim_graph:symmetric(Taken),
    [Largest | _] = weft_sim_graph:components(Graph),
    {Path, PathMax} = weft_sim_graph:path_lengths(lists:sublist(lists:sort(Largest), 20), Graph),
    #{optimise => Optimise, nodes => NodeCount, cost_ms => mean_cost_ms(Graph),
      connected => length(Largest) / map_size(Graph),
      asymmetric => length(weft_sim_graph:asymmetric(Taken)),
      degree => lists:sum([length(Peers) || Peers <- maps:values(Graph)]) / map_size(Graph),
      clustering => weft_sim_graph:clustering(Graph), path => Path, path_max => PathMax,
      one => broadcasts(1000, first, World), many => broadcasts(2000, in_turn, World)}.

broadcasts(EveryMs, Who, World) ->
    SinceMs = weft_sim_world:now_ms(World),
    weft_sim_deliveries:figures(weft_sim_gossip:senders(EveryMs, Who, ?MESSAGES, World),
                                #{since_ms => SinceMs}).

mean_cost_ms(Graph) ->
    Costs = [cost_ms(Node, Peer) || {Node, Peers} <- maps:to_list(Graph), Peer <- Peers],
    lists:sum(Costs) / length(Costs).

%% @doc The mean round trip between two nodes.
-spec cost_ms(node(), node()) -> float().
cost_ms(A, B) ->
    {MinUs, MaxUs} = latency_us(A, B),
    (MinUs + MaxUs) / 1000.

latency_us(A, B) ->
    case {site(A), site(B)} of
        {Site, Site} -> {200, 500};
        {One, Other} ->
            Us = 10000 + erlang:phash2({min(One, Other), max(One, Other)}, 40001),
            {Us, Us + Us div 10}
    end.

site(Node) ->
    erlang:phash2(Node, ?SITES).

%% @doc Runs and prints both, with 1,000 nodes (`quick': 200). The result names what is not as it
%% should be.
-spec print(quick | full | NodeCount :: pos_integer()) -> Misses :: [iolist()].
print(quick) -> print(200);
print(full) -> print(1000);
print(NodeCount) ->
    io:format("~nA peer-to-peer cluster of ~b nodes on ~b sites~n"
              "~-9s ~7s ~9s ~6s ~6s ~5s ~4s  ~s~n",
              [NodeCount, ?SITES, "optimise", "link ms", "connected", "degree", "clust.", "paths",
               "max", "last hop, redundancy, last ms: one sender; many"]),
    [Plain, Optimised] = [run(NodeCount, ?SEED, Optimise) || Optimise <- [none, rtt]],
    lists:foreach(fun print_row/1, [Plain, Optimised]),
    misses(Plain, Optimised).

print_row(#{optimise := Optimise, cost_ms := Cost, connected := Connected, degree := Degree,
            clustering := Clustering, path := Path, path_max := PathMax, one := One,
            many := Many}) ->
    io:format("~-9s ~7.1f ~7.1f % ~6.2f ~6.3f ~5.2f ~4b  ~ts; ~ts~n",
              [Optimise, Cost, 100 * Connected, Degree, Clustering, Path, PathMax, text(One),
               text(Many)]).

text(#{last_hop := Hops, redundancy := Redundancy, last_ms := Ms}) ->
    io_lib:format("~.1f, ~.3f, ~b", [Hops, Redundancy, round(Ms)]).

misses(#{cost_ms := Before}, #{cost_ms := After} = Row) ->
    [io_lib:format("optimised cluster: ~ts", [Text])
     || {false, Text} <- [{2 * After < Before, "links are not half as expensive"} | shape(Row)]].

shape(#{connected := Connected, asymmetric := Asymmetric, degree := Degree,
        one := #{reliability := One, redundancy := OneRedundancy, last_hop := OneHops},
        many := #{reliability := Many, redundancy := ManyRedundancy, last_hop := ManyHops}}) ->
    [{Connected == 1.0, "it has several parts"}, {Asymmetric =:= 0, "links with one end"},
     {Degree > 4.9 andalso Degree =< 5.0, "not five neighbours each"},
     {One == 1.0 andalso Many == 1.0, "broadcasts do not reach all"},
     {OneHops < 15 andalso ManyHops < 18, "broadcasts go over too many hops"},
     {OneRedundancy < 0.2 andalso ManyRedundancy < 1, "broadcasts come too often"}].
