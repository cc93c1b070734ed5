%% SPDX-License-Identifier: Apache-2.0
%% @doc The files of a BenchErl run, as BenchErl names and writes them, and all times in one table.
%%
%% ```
%% DIR/results.csv                             every single time
%% DIR/BENCH/output/OTP[_ARGS].AXIS.N.out      what the benchmark printed
%% DIR/BENCH/measurements/OTP[_ARGS].AXIS.time     WHAT <tab> N <tab> seconds, for each point
%% DIR/BENCH/measurements/OTP[_ARGS].AXIS.speedup  time with the least N over time with N
%% '''
-module(weft_bencherl_files).

-export([output/2, write/3, insane/1, points/1]).

%% @doc Where a benchmark prints to.
-spec output(file:filename(), map()) -> file:filename().
output(Dir, #{bench := Bench, otp := {Otp, _}, erl_args := Args, axis := Axis, schedulers := S,
              slaves := N}) ->
    At = case Axis of sched -> S; node -> N end,
    filename:join([Dir, Bench, "output",
                   lists:concat([series(Otp, Args), ".", Axis, ".", At, ".out"])]).

series(Otp, "") -> Otp;
series(Otp, Args) ->
    Otp ++ "_" ++ [case Char of
                       _ when Char >= $a, Char =< $z; Char >= $A, Char =< $Z;
                              Char >= $0, Char =< $9 -> Char;
                       _ -> $_
                   end || Char <- Args].

%% @doc Benchmarks whose outputs are not all the same, but for empty lines.
-spec insane(file:filename()) -> [string()].
insane(Dir) ->
    [filename:basename(filename:dirname(Output))
     || Output <- filelib:wildcard(filename:join(Dir, "*/output")), not is_sane(Output)].

is_sane(Output) ->
    Files = filelib:wildcard(filename:join(Output, "*.out")),
    length(lists:usort([printed(File) || File <- Files])) =< 1.

printed(File) ->
    {ok, Text} = file:read_file(File),
    [Line || Line <- binary:split(Text, <<"\n">>, [global]), string:trim(Line) =/= <<>>].

%% @doc Writes all but the outputs.
-spec write(file:filename(), [weft_bencherl:row()], weft_bencherl_config:config()) -> ok.
write(Dir, Rows, #{output_format := Format}) ->
    Lines = [weft_bench_csv:line([Bench, Otp, Args, Axis, At, What, Ms])
             || #{bench := Bench, otp := Otp, erl_args := Args, axis := Axis, at := At,
                  what := What, ms := Ms} <- Rows],
    Head = weft_bench_csv:line([bench, otp, erl_args, axis, at, what, ms]),
    ok = weft_bench_file:write(filename:join(Dir, "results.csv"), [Head | Lines]),
    maps:foreach(fun({Bench, Otp, Args, Axis}, Points) ->
                         File = filename:join([Dir, Bench, "measurements",
                                               lists:concat([series(Otp, Args), ".", Axis])]),
                         ok = weft_bench_file:directory(filename:dirname(File)),
                         ok = weft_bench_file:write(File ++ ".time", times(Points, Format)),
                         ok = weft_bench_file:write(File ++ ".speedup", speedups(Points))
                 end, grouped(Rows)).

grouped(Rows) ->
    maps:groups_from_list(fun(#{bench := B, otp := O, erl_args := A, axis := X}) -> {B, O, A, X}
                          end, Rows).

%% @doc The times of each point, in order: {What, At, [Ms]}.
-spec points([weft_bencherl:row()]) -> [{string(), non_neg_integer(), [float(), ...]}].
points(Rows) ->
    Times = lists:foldl(fun(#{what := What, at := At, ms := Ms}, Acc) ->
                                maps:update_with({What, At}, fun(All) -> [Ms | All] end, [Ms], Acc)
                        end, #{}, Rows),
    [{What, At, lists:reverse(Ms)} || {{What, At}, Ms} <- lists:sort(maps:to_list(Times))].

times(Rows, Format) ->
    [io_lib:format("~ts\t~b\t~ts~n", [What, At, shown(Format, Ms)])
     || {What, At, Ms} <- points(Rows)].

shown(min, Ms) -> seconds(lists:min(Ms));
shown(max, Ms) -> seconds(lists:max(Ms));
shown(avg, Ms) -> seconds(lists:sum(Ms) / length(Ms));
shown(avg_min_max, Ms) -> lists:join("\t", [shown(F, Ms) || F <- [avg, min, max]]);
shown(plain, Ms) -> lists:join("\t", [seconds(One) || One <- Ms]).

seconds(Ms) -> io_lib:format("~.6f", [Ms / 1000]).

speedups(Rows) ->
    Points = points(Rows),
    [io_lib:format("~ts\t~b\t~.3f~n", [What, At, least(What, Points) / lists:min(Ms)])
     || {What, At, Ms} <- Points].

%% Points are in order, so the first one of a set of arguments has the least of what was swept.
least(What, Points) ->
    {What, _, Ms} = lists:keyfind(What, 1, Points),
    lists:min(Ms).
