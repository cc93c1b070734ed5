%% SPDX-License-Identifier: Apache-2.0
%% @doc What weft promises, as data: which numbers of a run are compared with which, and how.
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

%% @doc All targets, in the order of a report. Columns that `where' does not name are free.
-spec all() -> [target()].
all() ->
    small() ++ bulk() ++ lossy() ++ beside_bulk() ++ no_starvation() ++ tls() ++ others().

small() ->
    Loopback = #{workload => [small], link => [loopback]},
    [(more(small_rate, Loopback, weft_1, 4))#{
       text => "unchanged !, 10 B to 1 KB", fast => {600000, 1.2}},
     less(small_cpu, "unchanged !, 10 B to 1 KB: CPU per message", Loopback, weft_1,
          cpu_us_per_message, 0.35),
     (more(small_gateway, Loopback, weft_gateway, 2))#{
       text => "the same over one gateway, against stock direct"},
     (more(small_channel, Loopback, channel, 7))#{text => "explicit channel, 10 B to 1 KB"}].

bulk() ->
    Loopback = #{workload => [bulk], link => [loopback]},
    [(more(bulk_rate, Loopback, weft_1, 0.95))#{text => "64 KB to 10 MB, 1 to 64 pairs"},
     (more(bulk_channel, Loopback, channel, 1.1))#{text => "the same by a channel"}].

lossy() ->
    [(more(lossy_01, #{workload => [bulk], link => ['20ms-400mbit-0.1%']}, weft_8, 6))#{
       text => "bulk at 20 ms and 0.1 % loss, 8 lanes"},
     (more(lossy_1, #{workload => [bulk], link => ['20ms-400mbit-1%']}, weft_8, 5))#{
       text => "bulk at 20 ms and 1 % loss, 8 lanes"}].

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
                           size_bytes => [1048576]}, weft_tls_1, 1.2))#{
           text => "TLS, 1 MB, 16 pairs"}),
     Tls(less(tls_beside_8, "TLS, p99 of a small call beside 8 x 1 MB",
              #{workload => [call_beside_bulk], link => [loopback], streams => [8]},
              weft_tls_1, latency_p99_us, 1 / 50))].

others() ->
    [less(idle_call, "a call on an idle connection",
          #{workload => [call_beside_bulk], link => [loopback], streams => [0]},
          weft_1, latency_p50_us, 1.2),
     (target(slow_receiver, "slow receiver: growth of the sender's memory",
             #{workload => [slow_receiver]}, weft_1, sender_growth_bytes))#{
       with => none, comparison => at_most, threshold => 100663296},
     (target(peers, "the way to a peer, with 1,000 peers against 10",
             #{workload => [peers], pairs => [1000]}, weft_1, lookup_ns))#{
       with => {pairs, 10}, comparison => at_most, threshold => 1.2}].

more(Id, Where, Variant, Threshold) ->
    (target(Id, "", Where, Variant, messages_per_s))#{
      with => {variant, stock}, comparison => at_least, threshold => Threshold}.

less(Id, Text, Where, Variant, Metric, Threshold) ->
    (target(Id, Text, Where, Variant, Metric))#{
      with => {variant, stock}, comparison => at_most, threshold => Threshold}.

target(Id, Text, Where, Variant, Metric) ->
    #{id => Id, text => Text, where => Where, variant => Variant, metric => Metric}.
