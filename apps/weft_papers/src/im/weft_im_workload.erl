%% SPDX-License-Identifier: Apache-2.0
%% @doc Workloads `im_rd' and `im_rsd': the Instant Messenger (`weft_im') in its distributed and its
%% grouped form, with one router and more and more servers (Fig. 11 of the paper); and with two
%% routers, or four on sixty nodes (Fig. 12), `_steady', `_killed', while processes of all kinds are
%% killed, and `_emptied', while databases are.
%%
%% `_grown' has as many more people as servers, with nodes of their own, for clusters whose nodes
%% have quotas (`weft_bench_quota').
%%
%% What they would say if each message was heard at once (`weft_im_demand') is told beside what is
%% delivered: no service can deliver more.
%%
%% The same people say the same in all others. Names are those of `global' where all nodes are
%% connected over the stock carrier, of weft_names on weft; the grouped form registers them on their
%% nodes on stock, and in groups on weft.
-module(weft_im_workload).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).
-export([names/2]).

-define(RUN_MS, 120000).
-define(SEED, 1).
-define(REPETITIONS_MAX, 2).
%% With quotas: more people than a server can carry, and nodes enough for these.
-define(PEOPLE_PER_SERVER, 40).
-define(SERVERS_PER_CLIENTS, 2).

%% @private
cells(quick) ->
    Talk = #{count => 60, scale => 0.01, warm_up_ms => 1000, run_ms => 4000, period_ms => 300},
    [cell(Workload, size(1, 3, 1), Talk, [Variant])
     || {Workload, Variant} <- [{im_rd, stock_mesh}, {im_rsd, stock}]]
        ++ [cell(workload(Form, How), size(2, 2, 1), Talk, Variants)
            || {Form, Variants} <- [{"im_rd", [stock_mesh]}, {"im_rsd", [stock, weft_groups]}],
               How <- ["_steady", "_killed"]]
        ++ grown([2, 4], 20, Talk);
cells(full) ->
    Talk = #{count => 200, scale => 0.02, warm_up_ms => 5000, run_ms => 15000, period_ms => 1000},
    [cell(Workload, size(1, Servers, 1), Talk, variants(Workload))
     || Servers <- [3, 6, 12], Workload <- [im_rd, im_rsd]]
        ++ grown([3, 6, 12, 16], ?PEOPLE_PER_SERVER, Talk)
        ++ [cell(workload(Form, How), size(2, 6, 1), Talk, variants(list_to_atom(Form)))
            || How <- ["_steady", "_killed", "_emptied"], Form <- ["im_rd", "im_rsd"]]
        ++ [(cell(workload(Form, How), size(4, 13, 1), Talk, Variants))#{repetitions_max := 1}
            || {Form, Variants} <- [{"im_rd", [stock_mesh]}, {"im_rsd", [stock, weft_groups]}],
               How <- ["_steady", "_killed"]].

grown(Servers, PeoplePerServer, Talk) ->
    [cell(workload(Form, "_grown"), size(1, Count, ceil(Count / ?SERVERS_PER_CLIENTS)),
          Talk#{count := PeoplePerServer * Count}, Variants)
     || Count <- Servers,
        {Form, Variants} <- [{"im_rd", [stock_mesh]}, {"im_rsd", [stock, weft_groups]}]].

variants(im_rd) -> [stock_mesh, weft_mesh, weft_groups];
variants(im_rsd) -> [stock, weft_groups].

workload(Form, How) -> list_to_atom(Form ++ How).

size(Routers, Servers, ClientNodes) ->
    #{routers => Routers, servers => Servers, client_nodes => ClientNodes}.

cell(Workload, Size, #{count := Count, warm_up_ms := WarmUpMs, run_ms := RunMs} = Talk, Variants) ->
    Nodes = weft_im_plan:needed(Size),
    #{suite => im, workload => Workload, size_bytes => 0, pairs => Nodes, streams => Count,
      link => weft_bench_link:loopback(), on_demand => true, fresh => true,
      layout => {cluster, weft_bench_cluster:shape(Nodes, weft_im_plan:groups(Size))},
      repetitions_max => ?REPETITIONS_MAX, variants => Variants,
      cost_ms => 1500 + 250 * Nodes + WarmUpMs + RunMs, with => maps:merge(Size, Talk)}.

%% @doc The registry that a form of the program uses with a variant.
-spec names(IsGrouped :: boolean(), weft_bench_variant:variant()) -> weft_im_names:names().
names(false, stock_mesh) -> global;
names(false, _Variant) -> {weft, cluster};
names(true, stock) -> local;
names(true, _Variant) -> {weft, groups}.

%% @private
run(#{workload := Workload, with := Settings}, Nodes) ->
    #{warm_up_ms := WarmUpMs, run_ms := RunMs} = Settings,
    {IsGrouped, How} = form(atom_to_list(Workload)),
    Options = Settings#{is_grouped => IsGrouped, seed => ?SEED,
                        names => names(IsGrouped, weft_bench_nodes:variant(Nodes))},
    Do = fun() -> weft_bench_cluster:run(weft_im, Options, Nodes, ?RUN_MS,
                                         #{servers_lost => [], logged_out => []}) end,
    Beside = [{typed_per_min, weft_im_demand:typed_per_min(Options)},
              {warm_up_s, WarmUpMs / 1000}, {measured_s, RunMs / 1000}],
    case How of
        none -> {ok, Do() ++ Beside};
        _ ->
            #{period_ms := PeriodMs} = Settings,
            {Values, Kills} = weft_im_killer:during(Nodes, Settings,
                                                    #{period_ms => PeriodMs, what => How,
                                                      seed => 1}, Do),
            {ok, Values ++ [{kills, Kills} | Beside]}
    end.

form("im_rd" ++ How) -> {false, how(How)};
form("im_rsd" ++ How) -> {true, how(How)}.

how("_killed") -> all;
how("_emptied") -> databases;
how(_Steady) -> none.
