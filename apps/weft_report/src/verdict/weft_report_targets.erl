%% SPDX-License-Identifier: Apache-2.0
%% @doc What weft promises, as data: which numbers of a run are compared with which, and how. It is
%% the one table of goals: reports judge by it, and docs/benchmarks/goals is held against it.
%%
%% A target selects cells (`where') and a variant. In each of these cells the median of `metric'
%% over the repetitions is divided by that of what it is compared `with':
%% ```
%% {variant, V}          the same cell and metric with the variant V
%% {metric, M}           the same cell and variant, another metric
%% {pairs, N}            the same variant and metric, in the cell with N pairs
%% none                  nothing: it is the value itself
%% '''
%% and the result must be at_least or at_most `threshold'. The target is met if that holds in every
%% cell. `fast' is {Above, Threshold}: the other threshold holds in cells where the median of the
%% other variant is above that. (Stock distribution has two states with small messages: a system
%% call for each, or many in one once its socket was busy. Which one comes is chance.)
-module(weft_report_targets).

-export([all/0]).
-export_type([target/0]).

-type target() :: #{id := atom(), text := string(), where := #{atom() => [atom() | number()]},
                    variant := atom(), metric := atom(),
                    with := {variant, atom()} | {metric, atom()} | {pairs, integer()} | none,
                    comparison := at_least | at_most, threshold := number(),
                    fast => {Above :: number(), Threshold :: number()}}.

-define(KB, 1024).
-define(MB, 1048576).

%% @doc All targets, in the order of a report. Columns that `where' does not name are free.
-spec all() -> [target()].
all() ->
    small() ++ bulk() ++ lossy() ++ calls() ++ beside_bulk() ++ lanes() ++ no_starvation() ++ tls()
        ++ mesh() ++ form() ++ connection() ++ idle() ++ others().

small() ->
    Loopback = #{workload => [small], link => [loopback]},
    [(more(small_rate, Loopback, weft_1, 4))#{
       text => "unchanged !, 10 B to 1 KB", fast => {600000, 1.2}},
     less(small_cpu, "unchanged !, 10 B to 1 KB: CPU per message", Loopback, weft_1,
          cpu_us_per_message, 0.35),
     (more(small_gateway, Loopback, weft_gateway, 2))#{
       text => "the same over one gateway, against stock direct"},
     (more(small_channel, Loopback, channel, 7))#{text => "explicit channel, 10 B to 1 KB"},
     (more(maps_channel, #{workload => [maps]}, channel, 2))#{
       text => "maps with atoms on a channel, 512 senders"}].

bulk() ->
    Loopback = #{workload => [bulk], link => [loopback]},
    [(more(Id, Loopback#{size_bytes => [SizeBytes], pairs => Pairs}, weft_1, Threshold))#{
       text => Text}
     || {Id, Text, SizeBytes, Pairs, Threshold}
            <- [{bulk_64k, "64 KB, 1, 8 and 16 pairs", 64 * ?KB, [1, 8, 16], 1},
                {bulk_64k_many, "64 KB, 64 pairs", 64 * ?KB, [64], 0.95},
                {bulk_1m, "1 MB, 1 to 64 pairs", ?MB, [1, 16, 64], 0.95},
                {bulk_10m, "10 MB, 1 and 8 pairs", 10 * ?MB, [1, 8], 0.95},
                {bulk_10m_many, "10 MB, 16 and 64 pairs", 10 * ?MB, [16, 64], 0.95}]]
        ++ [(more(bulk_channel, Loopback, channel, 1.1))#{text => "64 KB to 10 MB by a channel"},
            (more(bulk_gateway, Loopback, weft_gateway, 0.6))#{
              text => "64 KB to 10 MB over one gateway, against stock direct"}].

lossy() ->
    [(more(lossy_01, #{workload => [bulk], link => ['20ms-400mbit-0.1%']}, weft_8, 6))#{
       text => "bulk at 20 ms and 0.1 % loss, 8 lanes"},
     (more(lossy_1, #{workload => [bulk], link => ['20ms-400mbit-1%']}, weft_8, 5))#{
       text => "bulk at 20 ms and 1 % loss, 8 lanes"}].

%% One caller, also beside no stream at all.
calls() ->
    [less(call, "one caller, p50",
          #{workload => [call, call_beside_bulk], pairs => [1], streams => [0],
            link => [loopback]}, weft_1, latency_p50_us, 1.1),
     less(call_paused, "one caller with pauses, p50", #{workload => [call_paused]}, weft_1,
          latency_p50_us, 1.25)].

beside_bulk() ->
    Text = "p99 of a small call beside ~b x 1 MB, ~s",
    [less(list_to_atom(lists:concat(["beside_", Streams, "_", Kind, "_", Variant])),
          lists:flatten(io_lib:format(Text, [Streams, Kind])) ++ by(Variant),
          #{workload => [call_beside_bulk], link => [Link], streams => [Streams]},
          Variant, latency_p99_us, Ratio)
     || {Link, Kind, Streams, Ratio} <-
            [{loopback, loopback, 1, 1 / 3}, {loopback, loopback, 8, 1 / 15},
             {loopback, loopback, 32, 1 / 50}, {'1ms-800mbit', '1ms', 8, 1 / 50},
             {'1ms-800mbit', '1ms', 32, 1 / 200}],
        Variant <- [weft_1, channel]].

by(weft_1) -> ", unchanged code";
by(channel) -> ", own channel".

%% More lanes are for links that lose packets; elsewhere they must not cost much.
lanes() ->
    [(less(Id, Text, Where#{link => [loopback]}, Variant, latency_p99_us, 1.5))#{
       with := {variant, weft_1}}
     || {Id, Text, Variant, Where}
            <- [{lanes_beside_8, "4 lanes against one: p99 of a small call beside 8 x 1 MB", weft_4,
                 #{workload => [call_beside_bulk], streams => [8]}},
                {lanes_beside_large, "4 lanes against one: p99 of a small call beside 200 MB",
                 weft_4, #{workload => [call_beside_large]}},
                {lanes_8_beside_8, "8 lanes against one: p99 of a small call beside 8 x 1 MB",
                 weft_8, #{workload => [call_beside_bulk], streams => [8]}},
                {lanes_8_beside_large, "8 lanes against one: p99 of a small call beside 200 MB",
                 weft_8, #{workload => [call_beside_large]}}]].

no_starvation() ->
    [(target(Id, Text, #{workload => [call_beside_bulk, call_beside_flood]}, weft_1,
             latency_max_us))#{with => With, comparison => at_most, threshold => Threshold}
     || {Id, Text, With, Threshold} <-
            [{starvation_ratio, "no starvation: the longest call against p99",
              {metric, latency_p99_us}, 20},
             {starvation, "no starvation: the longest call", none, 1000000}]].

tls() ->
    Tls = fun(Target) -> Target#{with => {variant, stock_tls}} end,
    [Tls((more(tls_small, #{workload => [small], link => [loopback], pairs => [16]},
               weft_tls_1, 1.8))#{text => "TLS, small messages, 16 pairs"}),
     Tls((more(tls_bulk, #{workload => [bulk], link => [loopback], pairs => [16],
                           size_bytes => [?MB]}, weft_tls_1, 1.2))#{
           text => "TLS, 1 MB, 16 pairs"}),
     Tls(less(tls_beside_8, "TLS, p99 of a small call beside 8 x 1 MB",
              #{workload => [call_beside_bulk], link => [loopback], streams => [8]},
              weft_tls_1, latency_p99_us, 1 / 50))].

mesh() ->
    [(target(list_to_atom(lists:concat(["mesh_", Nodes, "_", Callers])),
             lists:concat(["calls in a mesh of ", Nodes, " nodes, ", Of]),
             #{workload => [mesh_calls], pairs => [Nodes], streams => [Callers]}, weft_1,
             calls_per_s))#{
       with => {variant, stock}, comparison => at_least, threshold => Threshold}
     || {Callers, Of, Goals} <- [{1, "1 caller on each", [{24, 0.8}, {40, 0.7}]},
                                 {4, "4 callers on each", [{24, 0.9}, {40, 0.8}]}],
        {Nodes, Threshold} <- Goals].

form() ->
    [(less(Id, "until 8 to 40 nodes are connected, " ++ How,
           #{workload => [form], pairs => [8, 24, 40]}, Variant, formed_s, Threshold))#{
       with := {variant, Stock}}
     || {Id, How, Variant, Stock, Threshold}
            <- [{form, "on demand", weft_1, stock, 1.2},
                {form_mesh, "full mesh", weft_mesh, stock_mesh, 2},
                {form_swim, "SWIM", weft_swim, stock_mesh, 2}]].

connection() ->
    [value(list_to_atom(lists:concat([Metric, "_", Variant])), Text ++ of_variant(Variant),
           #{workload => [connection]}, Variant, Metric, Threshold)
     || {Metric, Text, Threshold} <- [{connection_bytes, "memory of a connection after calls",
                                       200000},
                                      {connection_processes, "processes of a connection", 5}],
        Variant <- [weft_1, weft_mesh, weft_swim]].

idle() ->
    [Target
     || Variant <- [weft_1, weft_mesh, weft_swim],
        Target <- [value(list_to_atom(lists:concat(["idle_", Variant])),
                         "processor time of a node at rest, of a core" ++ of_variant(Variant),
                         #{workload => [idle, hour]}, Variant, idle_percent, 0.03),
                   (value(list_to_atom(lists:concat(["idle_growth_", Variant])),
                          "the same with 24 and 40 nodes, against 8" ++ of_variant(Variant),
                          #{workload => [idle], pairs => [24, 40]}, Variant, idle_percent, 1))#{
                     with := {pairs, 8}}]].

of_variant(weft_1) -> ", on demand";
of_variant(weft_mesh) -> ", full mesh";
of_variant(weft_swim) -> ", SWIM".

others() ->
    [value(slow_receiver, "slow receiver: growth of the sender's memory",
           #{workload => [slow_receiver]}, weft_1, sender_growth_bytes, 96 * ?MB),
     (value(peers, "the way to a peer, with 1,000 peers against 10",
            #{workload => [peers], pairs => [1000]}, weft_1, lookup_ns, 1.2))#{
       with := {pairs, 10}}].

more(Id, Where, Variant, Threshold) ->
    (target(Id, "", Where, Variant, messages_per_s))#{
      with => {variant, stock}, comparison => at_least, threshold => Threshold}.

less(Id, Text, Where, Variant, Metric, Threshold) ->
    (target(Id, Text, Where, Variant, Metric))#{
      with => {variant, stock}, comparison => at_most, threshold => Threshold}.

value(Id, Text, Where, Variant, Metric, Threshold) ->
    (target(Id, Text, Where, Variant, Metric))#{
      with => none, comparison => at_most, threshold => Threshold}.

target(Id, Text, Where, Variant, Metric) ->
    #{id => Id, text => Text, where => Where, variant => Variant, metric => Metric}.
