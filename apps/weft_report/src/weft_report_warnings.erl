%% SPDX-License-Identifier: Apache-2.0
%% @doc What makes the numbers of a run doubtful, in sentences: a congestion control that is not the
%% one of the machine, and measurements that took less time than their warm-up.
-module(weft_report_warnings).

-export([all/2]).
-export_type([environment/0]).

%% As weft_report_record reads it.
-type environment() :: #{Key :: binary() => Value :: binary()}.

%% @doc The warnings of a run.
-spec all(weft_report_results:results(), environment()) -> [unicode:chardata()].
all(Results, Environment) ->
    congestion_control(Environment) ++ warm_ups(Results).

%% A namespace may refuse what is asked of it, and takes another one without a word.
congestion_control(#{<<"congestion_control">> := InForce,
                     <<"congestion_control_of_the_machine">> := OfMachine})
  when InForce =/= OfMachine, OfMachine =/= <<>> ->
    [["the connections of this run had the congestion control ", InForce, ", those of the machine "
      "have ", OfMachine]];
congestion_control(_Environment) ->
    [].

%% Then most of what there was to get used to may have come while it was measured.
warm_ups(Results) ->
    [[weft_report_words:cell(Cell), ", ", weft_report_words:variant(Variant),
      ": was measured for ", weft_report_words:value(Measured, "s"), ", after a warm-up of ",
      weft_report_words:value(WarmUp, "s")]
     || Cell <- weft_report_results:cells(Results),
        Variant <- weft_report_results:variants(Cell, Results),
        {ok, #{median := WarmUp}} <- [time(Cell, Variant, <<"warm_up_s">>, Results)],
        {ok, #{median := Measured}} <- [time(Cell, Variant, <<"measured_s">>, Results)],
        Measured < WarmUp].

time(Cell, Variant, Metric, Results) ->
    weft_report_results:absolute({Cell, Variant, Metric}, Results).
