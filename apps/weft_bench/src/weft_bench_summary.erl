%% SPDX-License-Identifier: Apache-2.0
%% @doc A run as a table for the terminal: a line per cell and variant, the median of each metric
%% that says most about the workload, its range, and how often it is that of the variant it is
%% compared with: stock, or stock over TLS.
-module(weft_bench_summary).

-export([print/1, headline_metrics/1, medians/1, baseline/1]).

%% @doc Prints the run in a directory.
-spec print([weft_bench_record:row()]) -> ok.
print(Rows) ->
    Groups = groups(Rows),
    io:format("~n~-34s ~-13s ~-27s ~12s ~9s  ~s~n",
              ["cell", "variant", "metric", "median", "x stock", "range"]),
    lists:foreach(fun(Cell) -> print_cell(Cell, Groups) end,
                  in_order([weft_bench_record:cell(Row) || Row <- Rows])).

print_cell({_, Workload, _, _, _, _} = Cell, Groups) ->
    lists:foreach(fun({Variant, Metric}) -> print_line(Cell, Variant, Metric, Groups) end,
                  [{Variant, Metric}
                   || Metric <- headline_metrics(Workload), Variant <- in_table_order(),
                      is_map_key({Cell, Variant, Metric}, Groups)]).

print_line(Cell, Variant, Metric, Groups) ->
    Values = maps:get({Cell, Variant, Metric}, Groups),
    {Min, Max} = weft_bench_statistics:range(Values),
    Median = weft_bench_statistics:median(Values),
    io:format("~-34ts ~-13s ~-27s ~12s ~9s  ~s .. ~s (~b)~n",
              [title(Cell), Variant, Metric, number(Median),
               ratio(Median, maps:find({Cell, baseline(Variant), Metric}, Groups)),
               number(Min), number(Max), length(Values)]).

ratio(Median, {ok, Values}) ->
    case weft_bench_statistics:median(Values) of
        Other when Other > 0 -> io_lib:format("~.3f", [Median / Other]);
        _ -> ""
    end;
ratio(_Median, error) ->
    "".

number(Value) when abs(Value) >= 1000 -> integer_to_list(round(Value));
number(Value) -> io_lib:format("~.2f", [float(Value)]).

title({Suite, Workload, SizeBytes, Pairs, Streams, Link}) ->
    io_lib:format("~s ~s ~bB x~b~s~s", [Suite, short(Workload), SizeBytes, Pairs,
                                        [io_lib:format(" +~b", [Streams]) || Streams > 0],
                                        [[" ", Link] || Link =/= <<"loopback">>]]).

short(<<"call_beside_", What/binary>>) -> <<"call+", What/binary>>;
short(Workload) -> Workload.

in_table_order() ->
    [atom_to_binary(Variant) || Variant <- weft_bench_variant:all()].

in_order(Cells) ->
    lists:reverse(lists:foldl(fun(Cell, Seen) ->
                                  case lists:member(Cell, Seen) of
                                      true -> Seen;
                                      false -> [Cell | Seen]
                                  end
                              end, [], Cells)).

groups(Rows) ->
    lists:foldr(fun(#{variant := Variant, metric := Metric, value := Value} = Row, Groups) ->
                    Key = {weft_bench_record:cell(Row), Variant, Metric},
                    Groups#{Key => [Value | maps:get(Key, Groups, [])]}
                end, #{}, Rows).

%% @doc The median of each metric in each cell and variant.
-spec medians([weft_bench_record:row()]) ->
          #{{weft_bench_record:cell(), Variant :: binary(), Metric :: binary()} => number()}.
medians(Rows) ->
    maps:map(fun(_, Values) -> weft_bench_statistics:median(Values) end, groups(Rows)).

%% @doc What a variant is compared with.
-spec baseline(Variant :: binary()) -> binary().
baseline(<<"weft_tls", _/binary>>) -> <<"stock_tls">>;
baseline(_) -> <<"stock">>.

%% @doc The metrics that say most about a workload.
-spec headline_metrics(Workload :: binary()) -> [binary()].
headline_metrics(<<"call_beside_", _/binary>>) ->
    [<<"latency_p50_us">>, <<"latency_p99_us">>, <<"latency_max_us">>,
     <<"background_megabytes_per_s">>];
headline_metrics(<<"bulk">>) -> [<<"megabytes_per_s">>, <<"messages_per_s">>];
headline_metrics(<<"unicast">>) -> [<<"duration_s">>];
headline_metrics(<<"slow_receiver">>) -> [<<"sender_growth_bytes">>, <<"receiver_growth_bytes">>];
headline_metrics(<<"peers">>) -> [<<"lookup_ns">>];
headline_metrics(Workload)
  when Workload =:= <<"small">>; Workload =:= <<"terms">>; Workload =:= <<"fan_out">> ->
    [<<"messages_per_s">>, <<"cpu_us_per_message">>];
headline_metrics(_Calls) ->
    [<<"calls_per_s">>, <<"latency_p50_us">>, <<"latency_p99_us">>].
