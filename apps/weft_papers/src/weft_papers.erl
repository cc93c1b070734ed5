%% SPDX-License-Identifier: Apache-2.0
%% @doc What the benchmark gets from papers: workloads that measure their programs. The commands are
%% in weft_papers_cli, what is read from the results in weft_papers_figures.
-module(weft_papers).

-export([more/0]).

%% @doc All modules with the behaviour weft_bench_workload; no commands.
-spec more() -> weft_bench_cli:more().
more() ->
    #{workloads => [weft_partisan_workload, weft_orbit_workload, weft_aco_workload,
                    weft_de_bench_workload, weft_im_workload, weft_city_workload,
                    weft_store_workload, weft_partisan_vnode_workload,
                    weft_partisan_ads_workload, weft_watched_workload],
      commands => #{}}.
