%% SPDX-License-Identifier: Apache-2.0
%% @doc Workload `form': how long it takes until each of many nodes is connected with all others, if
%% all begin at the same moment.
%%
%% All nodes run before, and know nothing of each other. Without a topology (stock distribution, and
%% weft as it is without configuration) each node then connects to all others, one after the other,
%% beginning with the one after itself. With a topology each node gets it at that moment, with the
%% first node as its seed. Measured is the time until the last node sees all others in
%% nodes(connected), and what processor time that took. With more nodes than cores most of it is
%% processor time. All code is loaded before, as it is in a release.
-module(weft_bench_form).
-behaviour(weft_bench_workload).

-export([cells/1, run/2, form/2, still_formed/2, load/2]).
-export([join/3, load/0, ask/3]).

-define(START_IN_MS, 300).
-define(FORM_MS, 60000).
-define(AGAIN_MS, 200).
-define(CALL_MS, 90000).

%% @private
cells(quick) -> [cell(3)];
cells(full) -> [cell(Count) || Count <- [8, 24, 40]].

cell(Count) ->
    #{suite => rest, workload => form, size_bytes => 0, pairs => Count, streams => 0,
      link => weft_bench_link:loopback(), on_demand => true, fresh => true,
      layout => {apart, weft_bench_cluster:shape(Count, [])},
      variants => [stock, weft_1, stock_mesh, weft_mesh, weft_swim],
      cost_ms => 1500 + 300 * Count}.

%% @private
run(_Cell, Nodes) ->
    Roles = weft_bench_nodes:roles(Nodes),
    ok = load(Roles, Nodes),
    Before = weft_bench_idle:cpu_us(Nodes, Roles),
    FormedS = form(Roles, Nodes),
    UsedUs = weft_bench_idle:cpu_us(Nodes, Roles) - Before,
    {ok, [{formed_s, FormedS}, {forming_cpu_ms, UsedUs / length(Roles) / 1000}]}.

%% @doc Connects nodes of that layout with each other, in the way of their variant: in how many
%% seconds. Nodes that are connected already stay so.
-spec form([weft_bench_nodes:role()], weft_bench_nodes:nodes()) -> float().
form(Roles, Nodes) ->
    Names = [weft_bench_nodes:node(Nodes, Role) || Role <- lists:sort(Roles)],
    How = case weft_bench_variant:cluster_topology(weft_bench_nodes:variant(Nodes),
                                                   #{seeds => [hd(Names)], groups => #{}}) of
              none -> connect;
              Topology -> {topology, Topology}
          end,
    StartUs = os:system_time(microsecond) + ?START_IN_MS * 1000,
    Asked = [spawn_monitor(?MODULE, ask, [Nodes, Role, [How, Names, StartUs]]) || Role <- Roles],
    Ends = [receive {'DOWN', Ref, process, Pid, {joined, AtUs}} -> AtUs;
                    {'DOWN', Ref, process, Pid, Reason} -> error({not_formed, Reason})
            end || {Pid, Ref} <- Asked],
    (lists:max(Ends) - StartUs) / 1.0e6.

%% @private
-spec ask(weft_bench_nodes:nodes(), weft_bench_nodes:role(), [term()]) -> no_return().
ask(Nodes, Role, Arguments) ->
    exit({joined, weft_bench_nodes:call(Nodes, Role, ?MODULE, join, {Arguments, ?CALL_MS})}).

%% @doc Nodes that were connected with each other must still be so. One that does not answer, or has
%% lost another one, is an error: what is measured of the others would look better without it.
-spec still_formed([weft_bench_nodes:role()], weft_bench_nodes:nodes()) -> ok.
still_formed(Roles, Nodes) ->
    Names = [weft_bench_nodes:node(Nodes, Role) || Role <- Roles],
    lists:foreach(fun(Role) ->
                          case Names -- [weft_bench_nodes:node(Nodes, Role)
                                         | connected(Role, Nodes)] of
                              [] -> ok;
                              Lost -> error({lost, Lost, by, Role})
                          end
                  end, Roles).

connected(Role, Nodes) ->
    try weft_bench_nodes:call(Nodes, Role, erlang, nodes, {[connected], ?CALL_MS})
    catch _:Why -> error({no_answer_of, Role, Why})
    end.

%% @doc Loads the code of weft on nodes that have it.
-spec load([weft_bench_nodes:role()], weft_bench_nodes:nodes()) -> ok.
load(Roles, Nodes) ->
    lists:foreach(fun(Role) ->
                          ok = weft_bench_nodes:call(Nodes, Role, ?MODULE, load, {[], ?CALL_MS})
                  end, Roles).

%% @doc On a node: does so.
-spec load() -> ok.
load() ->
    case application:get_key(weft, modules) of
        {ok, Modules} -> code:ensure_modules_loaded(Modules);
        undefined -> ok
    end.

%% @doc On a node: connects with the nodes of these names at that time, and returns when it is
%% connected with all of them.
-spec join(connect | {topology, term()}, [node()], StartUs :: integer()) -> AtUs :: integer().
join(How, Names, StartUs) ->
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    receive after max(0, (StartUs - os:system_time(microsecond)) div 1000) -> ok end,
    {Before, [_Own | After]} = lists:splitwith(fun(Name) -> Name =/= node() end, Names),
    Others = After ++ Before,
    ok = begun(How, Others),
    await(How, Others, erlang:monotonic_time(millisecond) + ?FORM_MS).

begun(connect, Others) ->
    lists:foreach(fun net_kernel:connect_node/1, Others);
begun({topology, Topology}, _Others) ->
    case weft:topology() of
        Topology -> ok;
        _Other -> weft:topology(Topology)
    end.

await(How, Others, DeadlineMs) ->
    case Others -- nodes(connected) of
        [] ->
            ok = net_kernel:monitor_nodes(false, [{node_type, all}]),
            os:system_time(microsecond);
        Missing ->
            erlang:monotonic_time(millisecond) < DeadlineMs orelse error({not_connected, Missing}),
            receive
                {nodeup, _, _} -> ok;
                {nodedown, _, _} -> ok
            after ?AGAIN_MS ->
                    %% Of two calls that crossed one may have failed, and the other one, too.
                    _ = How =:= connect andalso begun(How, Missing)
            end,
            await(How, Others, DeadlineMs)
    end.
