%% SPDX-License-Identifier: Apache-2.0
%% @doc Small runs, made up, for the tests of what reads a run. Not a measurement of anything.
%%
%% Rows are written as {Cell, Variant, Metric, [value of each repetition]}; Cell names what differs
%% from small messages of 10 bytes between one pair on loopback. {Value, AtMs} is part of a series,
%% a binary the reason why something was skipped or failed.
-module(weft_report_sample).

-export([rows/1, results/1, cell/1, write/3, environment/0, read_numbers/1]).

-define(CELL, #{suite => <<"a">>, workload => <<"small">>, size_bytes => 10, pairs => 1,
                streams => 0, link => <<"loopback">>}).

%% @doc Rows as they come from a file.
-spec rows([tuple()]) -> [weft_report_record:row()].
rows(Short) ->
    lists:append([rows(Cell, Variant, Metric, Values) || {Cell, Variant, Metric, Values} <- Short]).

rows(Cell, Variant, Metric, Values) ->
    {Metric, Unit, _, _} = lists:keyfind(Metric, 1, weft_report_record:metrics()),
    [maps:merge(maps:merge(?CELL, Cell),
                (value(Value))#{run => <<"test">>, variant => atom_to_binary(Variant),
                                rtt_ms => 0, rate_mbit => 0, loss_percent => 0,
                                repetition => Repetition, metric => atom_to_binary(Metric),
                                unit => list_to_binary(Unit)})
     || {Repetition, Value} <- lists:zip(lists:seq(1, length(Values)), Values)].

value({Value, AtMs}) -> #{value => Value, at_ms => AtMs, note => <<>>};
value(Note) when is_binary(Note) -> #{value => 0, at_ms => 0, note => Note};
value(Value) -> #{value => Value, at_ms => 0, note => <<>>}.

-spec results([tuple()]) -> weft_report_results:results().
results(Short) ->
    weft_report_results:new(rows(Short)).

%% @doc The cell that `Cell' stands for.
-spec cell(map()) -> weft_report_record:cell().
cell(Cell) ->
    weft_report_record:cell(maps:merge(?CELL, Cell)).

%% @doc The files of a run.
-spec write(file:filename(), [tuple()], [{string(), string()}]) -> ok.
write(Dir, Short, Environment) ->
    Results = weft_report_record:results_file(Dir),
    ok = filelib:ensure_dir(Results),
    ok = file:write_file(Results, [weft_report_record:header()
                                   | [weft_report_record:line(Row) || Row <- rows(Short)]]),
    weft_report_record:write_environment(Dir, Environment).

-spec environment() -> [{string(), string()}].
environment() ->
    [{"run", "test"}, {"commit", "abc1234"}, {"date", "2026-01-31"}, {"otp_release", "25"},
     {"cores", "2"}, {"processor", "A & B <C>"}, {"congestion_control", "reno"},
     {"congestion_control_of_the_machine", "cubic"},
     {"scope", "quick"}, {"repetitions", "3"}].

%% @doc The numbers of a file of a load, which has a line of heads, and spaces after commas.
-spec read_numbers(file:filename()) -> [[number()]].
read_numbers(File) ->
    {ok, Text} = file:read_file(File),
    [[number(string:trim(Field)) || Field <- Row] || Row <- tl(weft_report_csv:parse(Text))].

number(Text) ->
    try binary_to_integer(Text)
    catch error:badarg -> binary_to_float(Text)
    end.
