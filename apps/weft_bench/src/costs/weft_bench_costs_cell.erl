%% SPDX-License-Identifier: Apache-2.0
%% @doc What `bin/bench costs' counts: cells of the benchmark in which stock distribution is hard to
%% beat. Each can be done again and again, and says how often it did what it is named after.
-module(weft_bench_costs_cell).

-export([names/0, cell/1, prepare/3]).
-export_type([cell/0, work/0]).

-type cell() :: #{layout := weft_bench_nodes:layout(), variants := [weft_bench_variant:variant()],
                  %% What is counted is divided by the number of these.
                  unit := call | message | node | node_second | connection,
                  %% It can be done only once by the same nodes.
                  once => boolean(),
                  %% What is counted in the place of all else, on the first node.
                  only => weft_bench_counts:counting()}.
%% How many units it did.
-type work() :: fun(() -> number()).

-define(KB, 1024).
-define(MB, 1048576).
-define(PAUSE_MS, 1).
-define(CALL_MS, 120000).
%% What forming a cluster has begun goes on for some seconds.
-define(SETTLE_MS, 15000).

%% @doc The names of all.
-spec names() -> [atom()].
names() ->
    [paused_call, call, bulk_64k_1, bulk_64k_8, bulk_10m_1, bulk_10m_8, bulk_1m_16, mesh_24_1,
     mesh_40_1, mesh_40_4, form_40, idle_40, connection_24].

%% @doc One of them.
-spec cell(atom()) -> cell().
cell(paused_call) -> pair(call, [stock, weft_1]);
cell(call) -> pair(call, [stock, weft_1]);
cell(bulk_1m_16) -> pair(message, [stock, weft_1, weft_gateway]);
cell(mesh_24_1) -> cluster(24, call);
cell(mesh_40_1) -> cluster(40, call);
cell(mesh_40_4) -> cluster(40, call);
cell(form_40) ->
    (apart(40, node, [stock_mesh, weft_mesh, weft_swim, stock, weft_1]))#{once => true};
cell(connection_24) ->
    (apart(24, connection, [stock, weft_1, stock_mesh, weft_mesh, weft_swim]))#{
      once => true, only => memory};
cell(idle_40) -> apart(40, node_second, [stock_mesh, weft_mesh, weft_swim]);
cell(_Bulk) -> pair(message, [stock, weft_1]).

pair(Unit, Variants) -> #{layout => pair, unit => Unit, variants => Variants}.

cluster(Count, Unit) ->
    #{layout => {cluster, weft_bench_cluster:shape(Count, [])}, unit => Unit,
      variants => [stock, weft_1]}.

apart(Count, Unit, Variants) ->
    #{layout => {apart, weft_bench_cluster:shape(Count, [])}, unit => Unit, variants => Variants}.

%% @doc Makes nodes ready for it: then it can be done, each time for so long.
-spec prepare(atom(), weft_bench_nodes:nodes(), ForMs :: pos_integer()) -> work().
prepare(paused_call, Nodes, ForMs) ->
    Echo = weft_bench_nodes:call(Nodes, b, weft_bench_computing, start_echo, {[], ?CALL_MS}),
    fun() ->
        #{calls := Calls} = weft_bench_nodes:call(Nodes, a, weft_bench_computing, calls,
                                                  {[Echo, ForMs, ?CALL_MS, ?PAUSE_MS], ?CALL_MS}),
        Calls
    end;
prepare(call, Nodes, ForMs) ->
    Server = weft_bench_nodes:call(Nodes, b, weft_bench_calls, start_server, {[], ?CALL_MS}),
    fun() ->
        {_, #{calls := Calls}} = weft_bench_nodes:call(Nodes, a, weft_bench_calls, run_callers,
                                                       {[call, plain, Server, 1, ForMs], ?CALL_MS}),
        Calls
    end;
prepare(bulk_64k_1, Nodes, ForMs) -> flood(Nodes, 1, 64 * ?KB, ForMs);
prepare(bulk_64k_8, Nodes, ForMs) -> flood(Nodes, 8, 64 * ?KB, ForMs);
prepare(bulk_10m_1, Nodes, ForMs) -> flood(Nodes, 1, 10 * ?MB, ForMs);
prepare(bulk_10m_8, Nodes, ForMs) -> flood(Nodes, 8, 10 * ?MB, ForMs);
prepare(bulk_1m_16, Nodes, ForMs) -> flood(Nodes, 16, ?MB, ForMs);
prepare(mesh_24_1, Nodes, ForMs) -> mesh(Nodes, 1, ForMs);
prepare(mesh_40_1, Nodes, ForMs) -> mesh(Nodes, 1, ForMs);
prepare(mesh_40_4, Nodes, ForMs) -> mesh(Nodes, 4, ForMs);
prepare(connection_24, Nodes, _ForMs) ->
    {_First, Connect} = weft_bench_connection:prepare(Nodes),
    Connect;
prepare(form_40, Nodes, _ForMs) ->
    Roles = weft_bench_nodes:roles(Nodes),
    ok = weft_bench_form:load(Roles, Nodes),
    fun() -> _ = weft_bench_form:form(Roles, Nodes), length(Roles) end;
prepare(idle_40, Nodes, ForMs) ->
    Roles = weft_bench_nodes:roles(Nodes),
    ok = weft_bench_form:load(Roles, Nodes),
    _ = weft_bench_form:form(Roles, Nodes),
    receive after ?SETTLE_MS -> ok end, % what comes after it is not at rest
    %% Nobody speaks for five times as long as others work: little happens.
    fun() -> receive after 5 * ForMs -> length(Roles) * 5 * ForMs / 1000 end end.

mesh(Nodes, Callers, ForMs) ->
    ok = weft_bench_mesh:prepare(Nodes),
    fun() ->
        {_CallsPerS, LatenciesUs} = weft_bench_mesh:calls(Nodes, Callers, ForMs),
        length(LatenciesUs)
    end.

flood(Nodes, Pairs, Bytes, ForMs) ->
    fun() ->
        {_, Messages} = weft_bench_throughput:flood(Nodes, Pairs, {binary, Bytes},
                                                    {duration_ms, ForMs}, ?CALL_MS),
        Messages
    end.
