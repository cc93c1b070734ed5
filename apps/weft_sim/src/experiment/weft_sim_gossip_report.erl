%% SPDX-License-Identifier: Apache-2.0
%% @doc The results of `weft_sim_gossip' as tables, and all figures of them in a file
%% (comma-separated values).
-module(weft_sim_gossip_report).

-export([print/1, print/2, file/0]).

-define(SEED, 1).
-define(COLUMNS, [experiment, nodes, seed, virtual_ms, real_ms, kept,
                  connected, degree, clustering, path, path_max, events, messages_per_node_s,
                  bytes_per_node_s,
                  messages, reliability, least_reached, last_hop, last_hop_max, redundancy,
                  first_redundancy, last_ms, last_ms_max]).

%% @doc Runs and prints the experiments with 1,000 nodes, if not `quick' with 10,000 as well. The
%% result names what missed its limits.
-spec print(quick | full) -> Misses :: [iolist()].
print(quick) -> print([1000], file());
print(full) -> print([1000, 10000], file()).

%% @doc The same for some numbers of nodes, with the file to write.
-spec print(NodeCounts :: [pos_integer()], file:filename()) -> Misses :: [iolist()].
print(NodeCounts, File) ->
    Rows = lists:append([print_size(NodeCount) || NodeCount <- NodeCounts]),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, [line(?COLUMNS) | [line([value(Column, Row) || Column <- ?COLUMNS])
                                                  || Row <- Rows]]),
    io:format("All figures are in ~ts~n", [File]),
    [io_lib:format("~s with ~b nodes, seed ~b: ~ts. Repeat it: make sim ARGS=\"--gossip --nodes "
                   "~b\"", [Name, NodeCount, Seed, Violation, NodeCount])
     || #{experiment := Name, nodes := NodeCount, seed := Seed, violations := Violations} <- Rows,
        Violation <- Violations].

%% @doc Where all figures are written.
-spec file() -> file:filename().
file() ->
    filename:join(os:getenv("REBAR_BASE_DIR", "_build"), "sim/gossip.csv").

print_size(NodeCount) ->
    io:format("~nA peer-to-peer cluster of ~b nodes and its broadcasts (see docs/internals/"
              "peer_to_peer.md)~n", [NodeCount]),
    [Cluster | Broadcasts] = Rows = weft_sim_gossip:run(NodeCount, ?SEED),
    print_cluster(Cluster),
    io:format("~-15s ~8s ~8s ~8s ~5s ~4s ~7s ~7s ~7s ~7s ~8s  ~s~n",
              ["experiment", "messages", "reached", "least", "hops", "max", "redund.", "first",
               "ms", "max", "real s", "result"]),
    lists:foreach(fun print_broadcasts/1, Broadcasts),
    print_ratio(Rows),
    Rows.

print_cluster(#{connected := Connected, degree := Degree, clustering := Clustering, path := Path,
                path_max := PathMax, messages_per_node_s := Messages, bytes_per_node_s := Bytes,
                virtual_ms := VirtualMs, real_ms := RealMs} = Row) ->
    io:format("~.1f % connected, ~.2f neighbours, clustering ~.4f, paths ~.2f (at most ~b), "
              "~.1f messages and ~b bytes per node and second; ~b s in ~.1f s: ~s~n",
              [100 * Connected, Degree, Clustering, Path, PathMax, Messages, round(Bytes),
               VirtualMs div 1000, RealMs / 1000, result(Row)]).

print_broadcasts(#{experiment := Name, messages := Messages, reliability := Reached,
                   least_reached := Least, last_hop := Hops, last_hop_max := HopsMax,
                   redundancy := Redundancy, first_redundancy := First, last_ms := Ms,
                   last_ms_max := MsMax, real_ms := RealMs} = Row) ->
    io:format("~-15s ~8b ~6.2f % ~6.2f % ~5.1f ~4b ~7.3f ~7.3f ~7b ~7b ~8.1f  ~s~n",
              [Name, Messages, 100 * Reached, 100 * Least, Hops, HopsMax, Redundancy, First,
               round(Ms), round(MsMax), RealMs / 1000, result(Row)]).

print_ratio(Rows) ->
    Sum = fun(Key) -> lists:sum([map_get(Key, Row) || Row <- Rows]) / 1000 end,
    VirtualS = Sum(virtual_ms),
    RealS = max(0.001, Sum(real_ms)),
    io:format("~b s simulated in ~b s: ~.1f times as fast as life~n",
              [round(VirtualS), round(RealS), VirtualS / RealS]).

result(Row) ->
    case weft_sim_gossip:is_kept(Row) of
        true -> "ok";
        false -> "MISSED"
    end.

value(kept, Row) -> weft_sim_gossip:is_kept(Row);
value(Column, Row) -> maps:get(Column, Row, '').

line(Values) ->
    [lists:join($,, [cell(Value) || Value <- Values]), $\n].

cell(Float) when is_float(Float) -> float_to_list(Float, [{decimals, 5}, compact]);
cell(Integer) when is_integer(Integer) -> integer_to_list(Integer);
cell(Name) -> atom_to_list(Name).
