%% SPDX-License-Identifier: Apache-2.0
%% @doc Words and numbers of a run for people: cells, variants, values with three digits and a unit
%% that fits. Metric prefixes are powers of ten, except for the sizes of messages (KB is 1024).
-module(weft_report_words).

-export([cell/1, workload/1, varied/2, variant/1, metric/1, unit/1, value/2, tick/2,
         range/3, ratio/1, interval/1, noise/1,
         message_size/1, network/1, verdict/1, verdict/2,
         promised/2, result/2, sharing/1]).
-export_type([sharing/0]).

%% By the name of a metric: the smallest and the largest value.
-type sharing() :: #{Metric :: binary() => {Least :: number(), Most :: number()}}.

%% @doc What was done, in a few words: `small 1 KB, 16 pairs, 20ms-400mbit'.
-spec cell(weft_report_record:cell()) -> iolist().
cell({_Suite, Workload, SizeBytes, Pairs, Streams, Link}) ->
    lists:join(", ", [[workload(Workload), [[" ", message_size(SizeBytes)] || SizeBytes > 0]]
                      | pairs(Workload, Pairs) ++ streams(Workload, Streams) ++ links(Link)]).

pairs(_Workload, 0) -> [];
pairs(<<"call_beside_", _/binary>>, 1) -> [];
pairs(<<"load ", _/binary>>, Workers) ->
    [[integer_to_list(Workers), " worker", plural(Workers)]];
pairs(<<"peers">>, Pairs) -> [[integer_to_list(Pairs), " peers"]];
pairs(<<"orbit", _/binary>>, Nodes) -> [[integer_to_list(Nodes), " nodes"]];
pairs(<<"city", _/binary>>, Nodes) -> [[integer_to_list(Nodes), " node", plural(Nodes)]];
pairs(<<"phold">>, Nodes) -> [[integer_to_list(Nodes), " node", plural(Nodes)]];
pairs(<<"aco", _/binary>>, Nodes) -> [[integer_to_list(Nodes), " nodes"]];
pairs(<<"de_", _/binary>>, Nodes) -> [[integer_to_list(Nodes), " nodes"]];
pairs(<<"riak_s", _/binary>>, Clients) ->
    [[integer_to_list(Clients), " client", plural(Clients)]];
pairs(Workload, Nodes)
  when Workload =:= <<"ads">>; Workload =:= <<"slow_ads">>; Workload =:= <<"simulated_ads">> ->
    [[integer_to_list(Nodes), " nodes"]];
pairs(<<"crdt_counter">>, Count) -> [[integer_to_list(Count), " actors"]];
pairs(<<"crdt_set">>, Count) -> [[integer_to_list(Count), " elements"]];
pairs(Workload, Nodes)
  when Workload =:= <<"riak_get_rings">>; Workload =:= <<"riak_insert_rings">>;
       Workload =:= <<"riak_update_rings">> ->
    [["rings of ", integer_to_list(Nodes), " nodes"]];
pairs(<<"stores ", _/binary>>, Clients) ->
    [[integer_to_list(Clients), " client", plural(Clients)]];
pairs(<<"bencherl ", _/binary>>, Count) ->
    [[integer_to_list(Count), " scheduler", plural(Count)]];
pairs(<<"riak_", _/binary>>, Nodes) -> [[integer_to_list(Nodes), " nodes"]];
pairs(<<"im_", _/binary>>, Nodes) -> [[integer_to_list(Nodes), " nodes"]];
pairs(Rest, Nodes) when Rest =:= <<"form">>; Rest =:= <<"idle">>; Rest =:= <<"hour">>;
                         Rest =:= <<"connection">> ->
    [[integer_to_list(Nodes), " nodes"]];
pairs(<<"watched_", _/binary>>, Nodes) -> [[integer_to_list(Nodes), " nodes"]];
pairs(<<"fan_out">>, Pairs) -> [[integer_to_list(Pairs), " nodes"]];
pairs(<<"mesh_calls">>, Nodes) -> [[integer_to_list(Nodes), " nodes"]];
pairs(Workload, Pairs) when Workload =:= <<"call">>; Workload =:= <<"erpc">>;
                            Workload =:= <<"rpc">>; Workload =:= <<"call_paused">> ->
    [[integer_to_list(Pairs), " caller", plural(Pairs)]];
pairs(_Workload, Pairs) -> [[integer_to_list(Pairs), " pair", plural(Pairs)]].

streams(<<"call_beside_", _/binary>>, 0) -> ["idle"];
streams(<<"orbit", _/binary>>, Space) -> [["space of ", integer_to_list(Space)]];
streams(<<"city", _/binary>>, Ticks) -> [[integer_to_list(Ticks), " ticks"]];
streams(<<"phold">>, Ticks) -> [[integer_to_list(Ticks), " ticks"]];
streams(<<"aco", _/binary>>, Count) -> [[integer_to_list(Count), " colonies"]];
streams(<<"de_", _/binary>> = Workload, Streams) -> [varied(Workload, Streams)];
streams(<<"riak_s", _/binary>>, Nodes) ->
    [[integer_to_list(Nodes), " node", plural(Nodes)]];
streams(<<"riak_", _/binary>>, Count) -> [[integer_to_list(Count), " clients"]];
streams(<<"im_", _/binary>>, Count) -> [[integer_to_list(Count), " clients"]];
streams(<<"mesh_calls">>, Callers) ->
    [[integer_to_list(Callers), " caller", plural(Callers), " a node"]];
streams(_Workload, 0) -> [];
streams(<<"bencherl ", _/binary>>, Count) ->
    [[integer_to_list(Count), " slave node", plural(Count)]];
streams(<<"watched_im">>, Count) -> [[integer_to_list(Count), " clients"]];
streams(<<"watched_aco">>, Count) -> [[integer_to_list(Count), " colonies"]];
streams(_Workload, Streams) -> [[integer_to_list(Streams), " stream", plural(Streams)]].

%% @doc What is varied in a workload of DE-Bench.
-spec varied(Workload :: binary(), non_neg_integer()) -> iolist().
varied(Workload, Of10000) when Workload =:= <<"de_global">>; Workload =:= <<"de_names">> ->
    [io_lib:format("~p", [Of10000 / 100]), " % global"];
varied(Workload, Percent) when Workload =:= <<"de_server">>; Workload =:= <<"de_calls">> ->
    [integer_to_list(Percent), " % server calls"];
varied(_Workload, ComputeUs) when ComputeUs >= 1000 ->
    [integer_to_list(ComputeUs div 1000), " ms computation"];
varied(_Workload, ComputeUs) ->
    [integer_to_list(ComputeUs), " us computation"].

links(<<"loopback">>) -> [];
links(Link) -> [network(Link)].

plural(1) -> "";
plural(_) -> "s".

%% @doc The name of a workload with spaces; those of DE-Bench without where they come from.
-spec workload(binary()) -> iolist().
workload(<<"de_global">>) -> "global commands";
workload(<<"de_names">>) -> "names";
workload(<<"de_size">>) -> "data size";
workload(<<"de_compute">>) -> "computation";
workload(<<"de_heavy">>) -> "data and computation";
workload(<<"de_server">>) -> "server calls";
workload(<<"de_calls">>) -> "calls";
workload(<<"watched_im">>) -> "watched Instant Messenger";
workload(<<"watched_aco">>) -> "watched ACO";
workload(<<"watched_deploy">>) -> "watched deployment";
workload(Workload) -> string:replace(Workload, "_", " ", all).

%% @doc A link with spaces: `20 ms, 400 Mbit/s, 0.1 % loss' or `20 ms, 400 Mbit/s, buffers of 128
%% KB'.
-spec network(binary()) -> iodata().
network(<<"loopback">>) ->
    "loopback";
network(Label) ->
    case re:run(Label, "^([0-9.]+)ms-([0-9.]+)mbit(?:-([0-9.]+)(%|KB))?$",
                [{capture, all_but_first, binary}]) of
        {match, [RttMs, Rate | More]} -> [RttMs, " ms, ", Rate, " Mbit/s", limits(More)];
        nomatch -> Label
    end.

limits([]) -> "";
limits([Percent, <<"%">>]) -> [", ", Percent, " % loss"];
limits([Size, <<"KB">>]) -> [", buffers of ", Size, " KB"].

%% @doc The name of a variant for a legend.
-spec variant(binary()) -> iodata().
variant(<<"stock">>) -> "stock TCP";
variant(<<"stock_tls">>) -> "stock TLS";
variant(<<"weft_gateway">>) -> "weft, 1 gateway";
variant(<<"stock_relay">>) -> "stock TCP, a process between";
variant(<<"weft_tls_", Lanes/binary>>) -> ["weft TLS, ", lanes(Lanes)];
variant(<<"stock_mesh">>) -> "stock, full mesh";
variant(<<"weft_mesh">>) -> "weft, full mesh";
variant(<<"weft_swim">>) -> "weft, full mesh, SWIM";
variant(<<"weft_groups">>) -> "weft, groups";
variant(<<"weft_peers">>) -> "weft, peer to peer";
variant(<<"weft_", Lanes/binary>>) -> ["weft, ", lanes(Lanes)];
variant(<<"channel">>) -> "channel";
variant(<<"channel_", Parallelism/binary>>) -> ["channel, ", Parallelism, " lanes"];
variant(Other) -> Other.

lanes(<<"1">>) -> "1 lane";
lanes(Lanes) -> [Lanes, " lanes"].

%% @doc The name of a metric without its unit.
-spec metric(binary()) -> iodata().
metric(<<"messages_per_s">>) -> "messages";
metric(<<"megabytes_per_s">>) -> "payload";
metric(<<"calls_per_s">>) -> "calls";
metric(<<"cpu_us_per_message">>) -> "CPU per message";
metric(<<"slower_megabytes_per_s">>) -> "slower direction";
metric(<<"background_megabytes_per_s">>) -> "background payload";
metric(<<"background_messages_per_s">>) -> "background messages";
metric(<<"latency_p50_us">>) -> "p50";
metric(<<"latency_p99_us">>) -> "p99";
metric(<<"latency_p999_us">>) -> "p99.9";
metric(<<"latency_max_us">>) -> "longest call";
metric(<<"duration_s">>) -> "duration";
metric(<<"run_us">>) -> "time";
metric(<<"sender_growth_bytes">>) -> "sender grows by";
metric(<<"receiver_growth_bytes">>) -> "receiver grows by";
metric(<<"lookup_ns">>) -> "lookup";
metric(<<"connections_max">>) -> "connections, most";
metric(<<"connections_mean">>) -> "connections, mean";
metric(<<"received_packets">>) -> "packets";
metric(<<"run_packets">>) -> "packets after set-up";
metric(<<"received_bytes">>) -> "received";
metric(<<"cost_error_percent">>) -> "above the best known cost";
metric(<<"delivered_per_min">>) -> "messages delivered";
metric(<<"store_cpu_us">>) -> "CPU of the store";
metric(<<"clients_cpu_us">>) -> "CPU of the clients";
metric(<<"call_received_bytes">>) -> "received for an operation";
metric(<<"call_written_bytes">>) -> "written for an operation";
metric(<<"store_node_bytes">>) -> "memory of a node";
metric(<<"formed_s">>) -> "all connected";
metric(<<"forming_cpu_ms">>) -> "CPU of a node for it";
metric(<<"idle_percent">>) -> "CPU of a node at rest";
metric(<<"idle_wakeups_per_s">>) -> "wakeups of a node";
metric(<<"idle_changed_percent">>) -> "change of it in an hour";
metric(<<"memory_changed_percent">>) -> "change of its memory";
metric(<<"connection_bytes">>) -> "memory of a connection";
metric(<<"connection_rest_bytes">>) -> "memory of it at rest";
metric(<<"connection_processes">>) -> "processes of it";
metric(<<"calls">>) -> "number of calls";
metric(<<"stalled_s">>) -> "stalled";
metric(<<"watched_percent">>) -> "with monitoring, of without";
metric(<<"watched_rate_percent">>) -> "throughput with monitoring, of without";
metric(<<"vms_per_core">>) -> "VMs per core";
metric(<<"quota_percent">>) -> "quota of a node";
metric(<<"throttled_percent">>) -> "throttled";
metric(<<"quota_used_percent">>) -> "used of all quotas";
metric(<<"machine_busy_percent">>) -> "machine busy";
metric(Metric) -> string:replace(Metric, "_", " ", all).

%% @doc The unit of a metric, as it is in the file.
-spec unit(binary()) -> string().
unit(Metric) ->
    case [Unit || {Name, Unit, _, _} <- weft_report_record:metrics(),
                  atom_to_binary(Name) =:= Metric] of
        [Unit] -> Unit;
        [] -> ""
    end.

%% @doc A value with a unit that fits: value(1260000, "1/s") is `1.26 M/s'.
-spec value(number(), Unit :: string()) -> iodata().
value(Value, Unit) ->
    {Scaled, Scale} = scaled(Value, scales(Unit)),
    case Scale of
        "" -> digits(Scaled);
        _ -> [digits(Scaled), " ", Scale]
    end.

%% @doc The same at an axis: 1, 20 or 500 of something need no further digits.
-spec tick(number(), Unit :: string()) -> iodata().
tick(Value, Unit) ->
    {Scaled, Scale} = scaled(Value * 1.0000001, scales(Unit)),
    [short(Scaled), [[" ", Scale] || Scale =/= ""]].

short(Value) when Value == 0 -> "0";
short(Value) when abs(Value) < 0.99; abs(Value) >= 100 -> digits(Value);
short(Value) when abs(Value - round(Value)) < 0.05 -> integer_to_list(round(Value));
short(Value) -> io_lib:format("~.1f", [Value]).

%% Factors of a unit, from large to small; the last one is for all that is smaller.
scales("1/s") -> [{1.0e6, "M/s"}, {1.0e3, "k/s"}, {1.0, "/s"}];
scales("us") -> [{1.0e6, "s"}, {1.0e3, "ms"}, {1.0, [16#b5, "s"]}];
scales("ns") -> [{1.0e9, "s"}, {1.0e6, "ms"}, {1.0e3, [16#b5, "s"]}, {1.0, "ns"}];
scales("MB/s") -> [{1.0e3, "GB/s"}, {1.0, "MB/s"}, {1.0e-3, "kB/s"}];
scales("/min") -> [{1.0e6, "M/min"}, {1.0e3, "k/min"}, {1.0, "/min"}];
scales("bytes") -> [{1.0e9, "GB"}, {1.0e6, "MB"}, {1.0e3, "kB"}, {1.0, "B"}];
scales(Unit) -> [{1.0, Unit}].

%% What would be rounded to a thousand of a unit is one of the next.
scaled(Value, [{Factor, Unit}]) -> {Value / Factor, Unit};
scaled(Value, [{Factor, Unit} | _]) when abs(Value) >= 0.9995 * Factor -> {Value / Factor, Unit};
scaled(Value, [_ | Smaller]) -> scaled(Value, Smaller).

%% Three digits that count; whole numbers from 100 on.
digits(Value) when Value == 0 -> "0";
digits(Value) when abs(Value) >= 99.95 -> integer_to_list(round(Value));
digits(Value) when abs(Value) >= 9.995 -> io_lib:format("~.1f", [Value]);
digits(Value) when abs(Value) >= 0.1 -> io_lib:format("~.2f", [Value]);
digits(Value) -> io_lib:format("~.3f", [Value]).

%% @doc From the smallest to the largest, one unit for both.
-spec range(number(), number(), Unit :: string()) -> iodata().
range(Low, High, Unit) ->
    {ScaledHigh, Scale} = scaled(High, scales(Unit)),
    Factor = case ScaledHigh == 0 of true -> 1; false -> High / ScaledHigh end,
    [digits(Low / Factor), [$\s, 16#2013, $\s], digits(ScaledHigh), [[" ", Scale] || Scale =/= ""]].

%% @doc How many times: `4.52'.
-spec ratio(number()) -> iodata().
ratio(Ratio) when Ratio == 0 -> "0";
ratio(Ratio) when abs(Ratio) < 0.00995 -> io_lib:format("~.4f", [float(Ratio)]);
ratio(Ratio) when abs(Ratio) < 0.0995 -> io_lib:format("~.3f", [float(Ratio)]);
ratio(Ratio) when abs(Ratio) >= 99.95 -> integer_to_list(round(Ratio));
ratio(Ratio) when abs(Ratio) >= 9.995 -> io_lib:format("~.1f", [float(Ratio)]);
ratio(Ratio) -> io_lib:format("~.2f", [float(Ratio)]).

%% @doc The interval of a ratio; nothing if there is none.
-spec interval(weft_report_interval:interval()) -> iodata().
interval(none) -> "";
interval({Low, High}) -> [ratio(Low), [$\s, 16#2013, $\s], ratio(High)].

%% @doc Does the interval of a ratio tell that it is another one than 1?
-spec noise(weft_report_interval:interval()) -> string().
noise(Interval) ->
    case weft_report_interval:contains(1, Interval) of
        true -> "within noise";
        false -> ""
    end.

%% @doc The size of a message.
-spec message_size(non_neg_integer()) -> iodata().
message_size(Bytes) when Bytes >= 1048576, Bytes rem 1048576 =:= 0 ->
    [integer_to_list(Bytes div 1048576), " MB"];
message_size(Bytes) when Bytes >= 1024, Bytes rem 1024 =:= 0 ->
    [integer_to_list(Bytes div 1024), " KB"];
message_size(Bytes) ->
    [integer_to_list(Bytes), " B"].

%% @doc A verdict.
-spec verdict(weft_report_verdict:verdict()) -> string().
verdict(met) -> "met";
verdict(within_noise) -> "within noise of the target";
verdict(missed) -> "missed";
verdict(not_measured) -> "not measured".

%% @doc A verdict with what it hangs on.
-spec verdict(weft_report_verdict:verdict(), weft_report_verdict:check() | none) -> string().
verdict(Verdict, Check) ->
    verdict(Verdict) ++ case weft_report_verdict:has_interval(Check) of
                            true -> "";
                            false -> ", measured once"
                        end.

%% @doc The threshold of a target: at least 4, or at most 1 s.
-spec promised(number(), weft_report_targets:target()) -> iodata().
promised(Threshold, #{comparison := Comparison} = Target) ->
    Sign = case Comparison of at_least -> 16#2265; at_most -> 16#2264 end,
    [Sign, " ", amount(Threshold, Target)].

%% A ratio, or a value with its unit.
amount(Value, #{with := none, metric := Metric}) -> value(Value, unit(atom_to_binary(Metric)));
amount(Ratio, _Target) -> [ratio(Ratio), $\s, 16#d7].

%% @doc What was measured for a target, and its interval.
-spec result(weft_report_results:ratio() | weft_report_results:absolute() | {failed, binary()},
             weft_report_targets:target()) -> {Measured :: iodata(), Interval :: iodata()}.
result({failed, Why}, _Target) ->
    {["failed: ", Why], ""};
result(#{median := Median, interval := {Low, High}},
       #{with := none, metric := Metric} = Target) ->
    {amount(Median, Target), range(Low, High, unit(atom_to_binary(Metric)))};
result(#{median := Median, interval := Interval}, Target) ->
    {amount(Median, Target), interval(Interval)}.

%% @doc How the nodes of a cluster shared the machine, as far as that was recorded.
-spec sharing(sharing()) -> iodata().
sharing(Sharing) ->
    lists:join(", ", [shared(Metric, maps:get(Metric, Sharing))
                      || Metric <- [<<"vms_per_core">>, <<"quota_percent">>,
                                    <<"throttled_percent">>], is_map_key(Metric, Sharing)]).

shared(<<"vms_per_core">>, Range) ->
    [from_to(Range), " VMs per core"];
shared(<<"quota_percent">>, Range) ->
    ["each node at most ", whole(Range), " % of a core"];
shared(<<"throttled_percent">>, Range) ->
    ["which held it up in ", whole(Range), " % of the periods in which it ran"].

from_to({Same, Same}) -> digits(Same);
from_to({Least, Most}) -> [digits(Least), " to ", digits(Most)].

whole({Least, Most}) ->
    case {round(Least), round(Most)} of
        {Same, Same} -> integer_to_list(Same);
        {Low, High} -> [integer_to_list(Low), " to ", integer_to_list(High)]
    end.
