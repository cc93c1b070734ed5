%% SPDX-License-Identifier: Apache-2.0
%% @doc The rows of a run, gathered by cell, variant and metric: medians with their range, series,
%% and what was skipped or failed. Pure data, for reports and comparisons.
%%
%% A ratio is that of two medians. Its interval (`weft_report_interval') tells how far it can be
%% trusted, and its superiority in what share of all pairs of repetitions ours was more.
-module(weft_report_results).

-export([new/1, cells/1, variants/2, measured/4, series/4, trouble/3, absolute/2, ratio/3, ratio/4,
         sharing/2, best/1, baseline/2, against_stock/2, one_lane/2, is_stock/1, headline_metrics/1,
         variant_order/1]).
-export_type([results/0, measured/0, key/0, ratio/0, absolute/0]).

-define(SHARING, [<<"vms_per_core">>, <<"quota_percent">>, <<"throttled_percent">>]).

-record(results, {cells :: [weft_report_record:cell()],
                  values :: #{key() => #{Repetition :: pos_integer() => number()}},
                  series :: #{key() => [{Repetition :: pos_integer(), AtMs :: number(), number()}]},
                  trouble :: #{{weft_report_record:cell(), binary()} =>
                                   [{skipped | failed, Note :: binary()}]}}).

-opaque results() :: #results{}.
-type key() :: {weft_report_record:cell(), Variant :: binary(), Metric :: binary()}.
-type measured() :: #{median := number(), low := number(), high := number(),
                      count := pos_integer(), sum => number()}.
-type ratio() :: #{median := float(), interval := weft_report_interval:interval(),
                   superiority := float()}.
-type absolute() :: #{median := number(), interval := weft_report_interval:interval()}.

%% Metrics with many values per repetition.
-define(SERIES, [<<"sender_memory_bytes">>, <<"receiver_memory_bytes">>, <<"mailbox">>,
                 <<"operations_per_s">>, <<"idle_minute_percent">>, <<"node_memory_bytes">>]).

%% @doc Gathers the rows that `weft_report_record:read/1' returns.
-spec new([weft_report_record:row()]) -> results().
new(Rows) ->
    Gathered = lists:foldl(fun add/2, #results{cells = [], values = #{}, series = #{},
                                               trouble = #{}}, Rows),
    Gathered#results{cells = in_order([weft_report_record:cell(Row) || Row <- Rows])}.

add(#{metric := Metric, variant := Variant, note := Note} = Row, #results{trouble = All} = Results)
  when Metric =:= <<"skipped">>; Metric =:= <<"failed">> ->
    Kind = case Metric of <<"skipped">> -> skipped; <<"failed">> -> failed end,
    Key = {weft_report_record:cell(Row), Variant},
    Results#results{trouble = All#{Key => maps:get(Key, All, []) ++ [{Kind, Note}]}};
add(#{metric := Metric, variant := Variant, value := Value} = Row, Results) ->
    #{at_ms := AtMs, repetition := Repetition} = Row,
    #results{values = Values, series = Series} = Results,
    Key = {weft_report_record:cell(Row), Variant, Metric},
    case lists:member(Metric, ?SERIES) of
        true ->
            Results#results{series = Series#{Key => [{Repetition, AtMs, Value}
                                                     | maps:get(Key, Series, [])]}};
        false ->
            Of = maps:get(Key, Values, #{}),
            Results#results{values = Values#{Key => Of#{Repetition => Value}}}
    end.

in_order(Cells) ->
    {Seen, _} = lists:foldl(fun(Cell, {_, Known} = Acc) when is_map_key(Cell, Known) -> Acc;
                               (Cell, {List, Known}) -> {[Cell | List], Known#{Cell => true}}
                            end, {[], #{}}, Cells),
    lists:reverse(Seen).

%% @doc All cells, in the order of the run.
-spec cells(results()) -> [weft_report_record:cell()].
cells(#results{cells = Cells}) -> Cells.

%% @doc The variants that were measured in a cell, skipped or failed; in the usual order.
-spec variants(weft_report_record:cell(), results()) -> [binary()].
variants(Cell, #results{values = Values, series = Series, trouble = Trouble}) ->
    Measured = [Variant || {Of, Variant, _} <- maps:keys(Values) ++ maps:keys(Series),
                           Of =:= Cell],
    variant_order(Measured ++ [Variant || {Of, Variant} <- maps:keys(Trouble), Of =:= Cell]).

%% @doc Stock first, then as in the list of variants, unknown ones last; each once.
-spec variant_order([binary()]) -> [binary()].
variant_order(Variants) ->
    Known = [atom_to_binary(Variant) || Variant <- weft_report_record:variants()],
    Unique = lists:usort(Variants),
    [Variant || Variant <- Known, lists:member(Variant, Unique)] ++ (Unique -- Known).

%% @doc Median, range and number of repetitions.
-spec measured(weft_report_record:cell(), binary(), binary(), results()) -> {ok, measured()} | none.
measured(Cell, Variant, Metric, #results{values = Values}) ->
    case Values of
        #{{Cell, Variant, Metric} := ByRepetition} -> {ok, summary(maps:values(ByRepetition))};
        #{} -> none
    end.

summary(Values) ->
    {Low, High} = weft_report_statistics:range(Values),
    #{median => weft_report_statistics:median(Values), low => Low, high => High,
      count => length(Values), sum => lists:sum(Values)}.

%% @doc A metric over the time of a measurement, in the repetition that had the highest value.
-spec series(weft_report_record:cell(), binary(), binary(), results()) ->
          [{AtMs :: number(), number()}].
series(Cell, Variant, Metric, #results{series = Series}) ->
    case maps:get({Cell, Variant, Metric}, Series, []) of
        [] ->
            [];
        All ->
            {_, Worst} = lists:max([{Value, Repetition} || {Repetition, _, Value} <- All]),
            lists:sort([{AtMs, Value} || {Repetition, AtMs, Value} <- All, Repetition =:= Worst])
    end.

%% @doc What did not work: once per cell if skipped, once per repetition if failed.
-spec trouble(weft_report_record:cell(), binary(), results()) -> [{skipped | failed, binary()}].
trouble(Cell, Variant, #results{trouble = Trouble}) ->
    maps:get({Cell, Variant}, Trouble, []).

%% @doc The median of a measurement, in terms of nothing else.
-spec absolute(key(), results()) -> {ok, absolute()} | none.
absolute(Key, #results{values = Values}) ->
    case Values of
        #{Key := ByRepetition} ->
            Of = maps:values(ByRepetition),
            {ok, #{median => weft_report_statistics:median(Of),
                   interval => weft_report_interval:median(Of)}};
        #{} ->
            none
    end.

%% @doc One measurement in terms of another. None if one is missing, or if the other one is zero.
-spec ratio(key(), key(), results()) -> {ok, ratio()} | none.
ratio(Key, Other, Results) ->
    ratio(Key, Results, Other, Results).

%% @doc The same, where the other one is from another run.
-spec ratio(key(), results(), key(), results()) -> {ok, ratio()} | none.
ratio(Key, #results{values = Values}, Other, #results{values = OtherValues}) ->
    case {Values, OtherValues} of
        {#{Key := Same}, #{Other := Same}} when Key =:= Other ->
            itself(weft_report_statistics:median(maps:values(Same)));
        {#{Key := Ours}, #{Other := Theirs}} ->
            quotient(maps:values(Ours), maps:values(Theirs));
        _ ->
            none
    end.

%% Nobody has to be told that something is as fast as itself, within what noise.
itself(Median) when Median == 0 -> none;
itself(_Median) -> {ok, #{median => 1.0, interval => none, superiority => 0.5}}.

quotient(Ours, Theirs) ->
    case weft_report_statistics:median(Theirs) of
        Median when Median == 0 ->
            none;
        Median ->
            {ok, #{median => weft_report_statistics:median(Ours) / Median,
                   interval => weft_report_interval:ratio(Ours, Theirs),
                   superiority => weft_report_interval:superiority(Ours, Theirs)}}
    end.

%% @doc How nodes shared the machine in some cells: the smallest and the largest value of each
%% metric of `weft_bench_sharing' that was recorded.
-spec sharing([weft_report_record:cell()], results()) -> weft_report_words:sharing().
sharing(Cells, #results{values = Values}) ->
    Recorded = [{Metric, Value}
                || {{Cell, _, Metric}, Of} <- maps:to_list(Values),
                   lists:member(Metric, ?SHARING), lists:member(Cell, Cells),
                   Value <- maps:values(Of)],
    maps:from_list([{Metric, weft_report_statistics:range([Value || {Of, Value} <- Recorded,
                                                                    Of =:= Metric])}
                    || Metric <- ?SHARING, lists:keymember(Metric, 1, Recorded)]).

%% @doc Whether more or less of a metric is better; `none' for those that only inform.
-spec best(Metric :: binary()) -> more | less | none.
best(Metric) ->
    [Best] = [Best || {Name, _, Best, _} <- weft_report_record:metrics(),
                      atom_to_binary(Name) =:= Metric],
    Best.

%% @doc What a measurement is compared with: the same of the stock carrier that comes nearest to the
%% variant, of those that were measured.
-spec baseline(key(), results()) -> key() | none.
baseline({Cell, Variant, Metric}, #results{values = Values}) ->
    case [Key || Stock <- nearest(Variant), Key <- [{Cell, Stock, Metric}],
                 is_map_key(Key, Values)] of
        [Key | _] -> Key;
        [] -> none
    end.

nearest(<<"weft_tls", _/binary>>) -> [<<"stock_tls">>];
nearest(Mesh) when Mesh =:= <<"weft_mesh">>; Mesh =:= <<"weft_swim">> ->
    [<<"stock_mesh">>, <<"stock">>];
nearest(<<"stock">>) -> [<<"stock">>];
nearest(<<"stock", _/binary>>) -> [<<"stock">>];
nearest(_) -> [<<"stock">>, <<"stock_mesh">>].

%% @doc A measurement in terms of its baseline, if more or less of it is better.
-spec against_stock(key(), results()) -> {ok, ratio()} | none.
against_stock({_, _, Metric} = Key, Results) ->
    case {best(Metric), baseline(Key, Results)} of
        {none, _} -> none;
        {_, none} -> none;
        {_, Stock} -> ratio(Key, Stock, Results)
    end.

%% @doc The same measurement with one lane, where the variant has several and both were measured.
-spec one_lane(key(), results()) -> key() | none.
one_lane({Cell, Variant, Metric}, #results{values = Values}) ->
    Key = {Cell, one_lane(Variant), Metric},
    case best(Metric) =/= none andalso is_map_key(Key, Values) of
        true -> Key;
        false -> none
    end.

one_lane(<<"weft_tls_", Lanes/binary>>) when Lanes =/= <<"1">> -> <<"weft_tls_1">>;
one_lane(Several) when Several =:= <<"weft_4">>; Several =:= <<"weft_8">> -> <<"weft_1">>;
one_lane(<<"channel_8">>) -> <<"channel">>;
one_lane(_Variant) -> none.

-spec is_stock(Variant :: binary()) -> boolean().
is_stock(<<"stock", _/binary>>) -> true;
is_stock(_) -> false.

%% @doc The metrics that say most about a workload; of one that is not known here, all of which more
%% or less is better, so that nothing that was measured is left out of a comparison.
-spec headline_metrics(Workload :: binary()) -> [binary()].
headline_metrics(<<"call_beside_", _/binary>>) ->
    [<<"latency_p50_us">>, <<"latency_p99_us">>, <<"latency_max_us">>, <<"timeouts">>,
     <<"background_megabytes_per_s">>];
headline_metrics(<<"bulk">>) -> [<<"megabytes_per_s">>, <<"messages_per_s">>];
headline_metrics(<<"unicast">>) -> [<<"duration_s">>];
headline_metrics(<<"slow_receiver">>) -> [<<"sender_growth_bytes">>, <<"receiver_growth_bytes">>];
headline_metrics(<<"orbit", _/binary>>) ->
    [<<"duration_s">>, <<"connections_max">>, <<"received_bytes">>];
headline_metrics(<<"phold">>) ->
    [<<"events_per_s">>, <<"received_packets">>];
headline_metrics(<<"city", _/binary>>) ->
    [<<"duration_s">>, <<"received_packets">>, <<"connections_max">>];
headline_metrics(<<"aco_quality">>) ->
    [<<"cost_error_percent">>, <<"duration_s">>];
headline_metrics(<<"aco", _/binary>>) ->
    [<<"duration_s">>, <<"connections_max">>, <<"received_packets">>];
headline_metrics(<<"de_", _/binary>>) ->
    [<<"calls_per_s">>, <<"failed_operations">>, <<"register_mean_us">>,
     <<"remote_call_mean_us">>];
headline_metrics(<<"im_", _/binary>>) ->
    [<<"delivered_per_min">>, <<"lost_messages">>, <<"latency_p50_us">>, <<"latency_p99_us">>,
     <<"connections_max">>];
headline_metrics(<<"simulated_ads">>) ->
    [<<"client_server_bytes">>, <<"client_server_most_bytes">>, <<"peer_to_peer_bytes">>,
     <<"peer_to_peer_most_bytes">>, <<"duration_s">>, <<"shown_too_often">>];
headline_metrics(Workload) when Workload =:= <<"ads">>; Workload =:= <<"slow_ads">> ->
    [<<"received_bytes">>, <<"server_received_bytes">>, <<"duration_s">>, <<"shown_too_often">>];
headline_metrics(<<"crdt_", _/binary>>) ->
    [<<"state_bytes">>, <<"delta_bytes">>];
headline_metrics(<<"riak_elasticity">>) ->
    [<<"calls_per_s">>, <<"failed_operations">>, <<"recovery_kill_s">>, <<"recovery_start_s">>];
headline_metrics(<<"riak_availability">>) ->
    [<<"calls">>, <<"failed_operations">>, <<"repeated_operations">>, <<"kills">>];
headline_metrics(<<"riak_", _/binary>>) ->
    [<<"calls_per_s">>, <<"failed_operations">>, <<"latency_p50_us">>, <<"latency_p99_us">>,
     <<"store_cpu_us">>];
headline_metrics(<<"load ", _/binary>>) ->
    [<<"calls_per_s">>, <<"latency_p50_us">>, <<"latency_p99_us">>, <<"response_p99_us">>,
     <<"failed_operations">>, <<"stalled_s">>];
headline_metrics(<<"stores ", _/binary>>) ->
    [<<"calls_per_s">>, <<"latency_p50_us">>, <<"latency_p99_us">>, <<"failed_operations">>,
     <<"lost_keys">>];
headline_metrics(<<"bencherl ", _/binary>>) -> [<<"run_us">>];
headline_metrics(<<"both_ways">>) ->
    [<<"megabytes_per_s">>, <<"slower_megabytes_per_s">>, <<"cpu_us_per_message">>];
headline_metrics(<<"peers">>) -> [<<"lookup_ns">>];
headline_metrics(<<"form">>) -> [<<"formed_s">>, <<"forming_cpu_ms">>];
headline_metrics(<<"idle">>) -> [<<"idle_percent">>, <<"idle_wakeups_per_s">>];
headline_metrics(<<"hour">>) ->
    [<<"idle_percent">>, <<"idle_changed_percent">>, <<"memory_changed_percent">>];
headline_metrics(<<"connection">>) ->
    [<<"connection_bytes">>, <<"connection_rest_bytes">>, <<"connection_processes">>];
headline_metrics(Workload)
  when Workload =:= <<"small">>; Workload =:= <<"terms">>; Workload =:= <<"maps">>;
       Workload =:= <<"fan_out">> ->
    [<<"messages_per_s">>, <<"cpu_us_per_message">>];
headline_metrics(<<"flood_", _/binary>>) ->
    [<<"computed_percent">>, <<"computed_in_time_percent">>, <<"messages_per_s">>];
headline_metrics(<<"watched_deploy">>) -> [<<"watched_percent">>, <<"duration_s">>];
headline_metrics(<<"watched_", _/binary>>) ->
    [<<"watched_percent">>, <<"watched_rate_percent">>, <<"cpu_us_per_message">>,
     <<"messages_per_s">>];
headline_metrics(Busy)
  when Busy =:= <<"call_to_busy">>; Busy =:= <<"call_to_busy_one">>; Busy =:= <<"call_to_high">>;
       Busy =:= <<"call_from_busy">>; Busy =:= <<"call_paused">> ->
    [<<"latency_p50_us">>, <<"latency_p99_us">>, <<"timeouts">>, <<"nodedowns">>];
headline_metrics(Calls)
  when Calls =:= <<"call">>; Calls =:= <<"erpc">>; Calls =:= <<"rpc">>; Calls =:= <<"mesh_calls">>;
       Calls =:= <<"echo">>; Calls =:= <<"key_value">>; Calls =:= <<"key_value_paced">>;
       Calls =:= <<"vnode_echo">>; Calls =:= <<"vnode_quorum">>; Calls =:= <<"vnode_gossip">> ->
    [<<"calls_per_s">>, <<"latency_p50_us">>, <<"latency_p99_us">>];
headline_metrics(_Unknown) ->
    [atom_to_binary(Metric) || {Metric, _, Best, _} <- weft_report_record:metrics(),
                               Best =/= none].
