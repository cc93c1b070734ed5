%% SPDX-License-Identifier: Apache-2.0
%% @doc Clusters of equal nodes, for programs that run on many of them: which nodes there are, which
%% groups they form, whether all of them can be reached, and what their connections carried.
%%
%% A shape is how many nodes there are, numbered from 1, and the groups of those that talk most with
%% each other; nodes in two groups join them. Groups are links with the variant `weft_groups', and
%% say nothing to the others. Connections are counted as sockets, so that all carriers are measured
%% by the same thing. Each node has one scheduler, as if it was a small host. With
%% `schedulers => all' it has one for each core, for a few nodes that are compared with programs
%% that use all cores, or in which something holds up what could run beside it.
-module(weft_bench_cluster).

-export([shape/2, with_nodes/4, with_layout/4, in_place/4, roles/1, named/2, await/1, connect/1,
         nodes/1, run/4, run/5, program/4, traffic/1, vms_per_core/1]).
-export([group/1, unreachable/1, traffic/0, received_bytes/0]).
-export_type([shape/0, named/0, traffic/0]).

-type shape() :: #{nodes := pos_integer(), groups := [[pos_integer(), ...]], schedulers => all}.
%% The same with names of nodes.
-type named() :: #{seeds := [node()], groups := #{Group :: atom() => [node()]}}.
%% Of one node: sockets to other nodes, and what came in through those that are still open. A
%% packet is what the carrier sends as one: a message with stock distribution, often many with weft.
-type traffic() :: #{connections := non_neg_integer(), packets := non_neg_integer(),
                     bytes := non_neg_integer()}.

-define(CONNECT_MS, 30000).
-define(CALL_MS, 20000).
-define(TRAFFIC_MS, 60000).
-define(SYNC_MS, 60000).
-define(AGAIN_MS, 50).

%% @doc A cluster of so many nodes; without groups they are all in one.
-spec shape(Count :: pos_integer(), [[pos_integer(), ...]]) -> shape().
shape(Count, []) -> #{nodes => Count, groups => [lists:seq(1, Count)]};
shape(Count, Groups) -> #{nodes => Count, groups => Groups}.

%% @doc What the function says of a cluster of that shape, which runs on this machine alone for as
%% long. It keeps its logs in Dir/logs. If the nodes do not start, that ends the command with a text
%% (as in `weft_report_file').
-spec with_nodes(weft_bench_variant:variant(), shape(), Dir :: file:filename(),
                 fun((weft_bench_nodes:nodes()) -> Result)) -> Result.
with_nodes(Variant, Shape, Dir, Function) ->
    with_layout(Variant, {cluster, Shape}, Dir, Function).

%% @doc The same with nodes that may know nothing of each other (`apart', see `weft_bench_nodes').
-spec with_layout(weft_bench_variant:variant(), {cluster | apart, shape()}, Dir :: file:filename(),
                  fun((weft_bench_nodes:nodes()) -> Result)) -> Result.
with_layout(Variant, Layout, Dir, Function) ->
    in_place(Variant, Layout, Dir, fun(_Place, Nodes) -> Function(Nodes) end).

%% @doc The same with the place in which the nodes are, for what has to run beside them.
-spec in_place(weft_bench_variant:variant(), {cluster | apart, shape()}, Dir :: file:filename(),
               fun((weft_bench_place:place(), weft_bench_nodes:nodes()) -> Result)) -> Result.
in_place(Variant, Layout, Dir, Function) ->
    LogDir = filename:join(Dir, "logs"),
    ok = weft_report_file:directory(LogDir),
    Place = started(weft_bench_place:start(weft_bench_link:loopback(), Dir), Variant, LogDir),
    try
        Nodes = started(weft_bench_nodes:start(Variant, Layout,
                                               #{place => Place, log_dir => LogDir}),
                        Variant, LogDir),
        try Function(Place, Nodes) after weft_bench_nodes:stop(Nodes) end
    after
        weft_bench_place:stop(Place)
    end.

started({ok, Started}, _Variant, _LogDir) -> Started;
started({error, Text}, Variant, LogDir) ->
    Told = io_lib:format("the nodes of ~ts do not start: ~ts. See what they say above and in ~ts; "
                         "a machine that is too small or busy needs fewer nodes. What was measured "
                         "before is kept.", [Variant, Text, LogDir]),
    throw({results, lists:flatten(Told)}).

%% @doc How many of so many nodes a core of this machine has to run.
-spec vms_per_core(Count :: pos_integer()) -> float().
vms_per_core(Count) ->
    Count / erlang:system_info(logical_processors_available).

-spec roles(shape()) -> [weft_bench_nodes:role()].
roles(#{nodes := Count}) ->
    [{n, Number} || Number <- lists:seq(1, Count)].

-spec named(shape(), fun((weft_bench_nodes:role()) -> node())) -> named().
named(#{groups := Groups}, NameOf) ->
    Numbered = lists:zip(lists:seq(1, length(Groups)), Groups),
    #{seeds => [NameOf({n, 1})],
      groups => maps:from_list([{group(Number), [NameOf({n, Member}) || Member <- Members]}
                                || {Number, Members} <- Numbered])}.

%% @doc The name of a group, from its number.
-spec group(pos_integer()) -> atom().
group(Number) ->
    list_to_atom("group_" ++ integer_to_list(Number)).

%% @doc The names of the nodes, in their order.
-spec nodes(weft_bench_nodes:nodes()) -> [node()].
nodes(Nodes) ->
    [weft_bench_nodes:node(Nodes, Role) || Role <- lists:sort(weft_bench_nodes:roles(Nodes))].

%% ---- until all can be reached ----

%% @doc Waits until each node has connections or ways to all others, if that is so by itself.
-spec await(weft_bench_nodes:nodes()) -> ok.
await(Nodes) ->
    [First | Others] = ?MODULE:nodes(Nodes),
    Variant = weft_bench_nodes:variant(Nodes),
    ConnectsAll = weft_bench_variant:connects_all(Variant),
    Deadline = erlang:monotonic_time(millisecond) + ?CONNECT_MS,
    [connect({n, 1}, Node, Nodes, Deadline) || ConnectsAll, Node <- Others],
    lists:foreach(fun(Role) -> await(Role, [First | Others], Nodes, Deadline) end,
                  [Role || ConnectsAll orelse weft_bench_variant:is_weft(Variant),
                           Role <- weft_bench_nodes:roles(Nodes)]).

%% @doc Connects each node with all others, of whatever variant, where that is no part of what is
%% measured.
-spec connect(weft_bench_nodes:nodes()) -> ok.
connect(Nodes) ->
    Names = ?MODULE:nodes(Nodes),
    Deadline = erlang:monotonic_time(millisecond) + ?CONNECT_MS,
    lists:foreach(fun({Number, Other}) -> connect({n, Number}, Other, Nodes, Deadline) end,
                  [{Number, Other} || Number <- lists:seq(1, length(Names)),
                                      Other <- lists:nthtail(Number, Names)]).

%% On a busy machine a handshake may take too long.
connect(Role, Node, Nodes, Deadline) ->
    case weft_bench_nodes:call(Nodes, Role, net_kernel, connect_node, {[Node], ?CALL_MS}) of
        true -> ok;
        false ->
            erlang:monotonic_time(millisecond) < Deadline orelse throw({no_connection, Node}),
            receive after ?AGAIN_MS -> connect(Role, Node, Nodes, Deadline) end
    end.

await(Role, All, Nodes, Deadline) ->
    case weft_bench_nodes:call(Nodes, Role, ?MODULE, unreachable, {[All], ?CALL_MS}) of
        [] -> ok;
        Missing ->
            erlang:monotonic_time(millisecond) < Deadline
                orelse throw({unreachable, {from, Role}, Missing}),
            receive after ?AGAIN_MS -> await(Role, All, Nodes, Deadline) end
    end.

%% @doc On a node: those that it has neither a connection nor a way to.
-spec unreachable([node()]) -> [node()].
unreachable(Nodes) ->
    [Node || Node <- Nodes -- [node() | erlang:nodes(connected)], not has_way(Node)].

has_way(Node) ->
    is_pid(whereis(weft_links)) andalso weft_next_hop:choose(Node) =/= no_route.

%% ---- what connections carry ----

%% @doc On a node: its traffic since the connections were made.
-spec traffic() -> traffic().
traffic() ->
    EpmdPort = list_to_integer(os:getenv("ERL_EPMD_PORT", "4369")),
    Sockets = [Port || Port <- erlang:ports(),
                       erlang:port_info(Port, name) =:= {name, "tcp_inet"},
                       {ok, {_, PeerPort}} <- [inet:peername(Port)], PeerPort =/= EpmdPort],
    Counts = [maps:from_list(Values)
              || Socket <- Sockets, {ok, Values} <- [inet:getstat(Socket, [recv_cnt, recv_oct])]],
    #{connections => length(Sockets),
      packets => lists:sum([Packets || #{recv_cnt := Packets} <- Counts]),
      bytes => lists:sum([Bytes || #{recv_oct := Bytes} <- Counts])}.

%% @doc On a node: what all its sockets have received, those that are closed by now, too. What the
%% benchmark asks of the node comes by its standard input, and is not counted.
-spec received_bytes() -> non_neg_integer().
received_bytes() ->
    {{input, Bytes}, _} = erlang:statistics(io),
    Bytes - lists:sum([Input || Port <- erlang:ports(),
                                {name, Name} <- [erlang:port_info(Port, name)],
                                Name =/= "tcp_inet",
                                {input, Input} <- [erlang:port_info(Port, input)]]).

%% @doc The same as `traffic/0' of all nodes, in their order.
-spec traffic(weft_bench_nodes:nodes()) -> [traffic()].
traffic(Nodes) ->
    [weft_bench_nodes:call(Nodes, Role, ?MODULE, traffic, {[], ?TRAFFIC_MS})
     || Role <- lists:sort(weft_bench_nodes:roles(Nodes))].

%% @doc Runs a program (`weft_bench_program') on all nodes, and returns what of its result is a
%% metric, and the traffic. If it fails that is an error with its text.
-spec run(module(), Options :: map(), weft_bench_nodes:nodes(), TimeoutMs :: pos_integer()) ->
          [weft_bench_workload:measurement()].
run(Program, Options, Nodes, TimeoutMs) ->
    run(Program, Options, Nodes, TimeoutMs, #{}).

%% @doc The same of a program that goes on without what it has lost: it fails if this is not in its
%% result.
-spec run(module(), Options :: map(), weft_bench_nodes:nodes(), TimeoutMs :: pos_integer(),
          Complete :: weft_bench_program:result()) -> [weft_bench_workload:measurement()].
run(Program, Options, Nodes, TimeoutMs, Complete) ->
    case program(Program, Options, Nodes, TimeoutMs) of
        {ok, Result} ->
            maps:with(maps:keys(Complete), Result) =:= Complete
                orelse erlang:error({Program, incomplete(Complete, Result)}),
            maps:to_list(maps:with([Metric || {Metric, _, _, _} <- weft_report_record:metrics()],
                                   Result));
        {error, Text} ->
            erlang:error({Program, Text})
    end.

incomplete(Complete, Result) ->
    lists:flatten(io_lib:format("a part of it was lost: ~0tp",
                                [maps:with(maps:keys(Complete), Result)])).

%% @doc The same with all of the result, whatever was lost.
-spec program(module(), Options :: map(), weft_bench_nodes:nodes(), TimeoutMs :: pos_integer()) ->
          {ok, weft_bench_program:result()} | {error, Text :: string()}.
program(Program, Options, Nodes, TimeoutMs) ->
    Arguments = [Program, Options, ?MODULE:nodes(Nodes), TimeoutMs],
    ok = synchronized(Nodes),
    Before = all_traffic(Nodes),
    case weft_bench_nodes:call(Nodes, {n, 1}, weft_bench_program, run,
                               {Arguments, TimeoutMs + ?CALL_MS}) of
        {ok, Result} ->
            #{received_packets := Packets} = After = all_traffic(Nodes),
            Run = #{run_packets => max(0, Packets - maps:get(received_packets, Before))},
            {ok, maps:merge(Result, maps:merge(After, Run))};
        {error, Text} ->
            {error, Text}
    end.

%% Nodes that have just been connected tell each other all names, under locks, which would hold up
%% the first names of a program.
synchronized(Nodes) ->
    lists:foreach(fun(Role) ->
                      ok = weft_bench_nodes:call(Nodes, Role, global, sync, {[], ?SYNC_MS})
                  end, [Role || weft_bench_variant:connects_all(weft_bench_nodes:variant(Nodes)),
                                Role <- weft_bench_nodes:roles(Nodes)]).

%% @doc What all nodes received since they were started, which includes what it took to connect
%% them, and the connections that they have.
-spec all_traffic(weft_bench_nodes:nodes()) -> #{Metric :: atom() => number()}.
all_traffic(Nodes) ->
    All = traffic(Nodes),
    Connections = [Count || #{connections := Count} <- All],
    #{connections_max => lists:max(Connections),
      connections_mean => lists:sum(Connections) / length(Connections),
      received_packets => lists:sum([Packets || #{packets := Packets} <- All]),
      received_bytes => lists:sum([Bytes || #{bytes := Bytes} <- All])}.
