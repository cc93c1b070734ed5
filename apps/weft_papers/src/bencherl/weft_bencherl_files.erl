%% SPDX-License-Identifier: Apache-2.0
%% @doc The files of a BenchErl run, as BenchErl names and writes them, and all times in one table.
%%
%% ```
%% DIR/results.csv                             every single time; none for what failed
%% DIR/points.csv                              what was run at each point: the benchmark and its
%%                                             sets of arguments, and the emulator as it says itself
%% DIR/BENCH/output/OTP[_ARGS].AXIS.N.out      what the benchmark printed
%% DIR/BENCH/output/OTP[_ARGS].AXIS.N.I.out    and what it printed in iteration I, from the second
%% DIR/BENCH/measurements/OTP[_ARGS].AXIS.time     WHAT <tab> N <tab> seconds, for each point
%% DIR/BENCH/measurements/OTP[_ARGS].AXIS.speedup  time with the least N over time with N
%% '''
-module(weft_bencherl_files).

-export([open/1, close/1, append/2, point/2, read/1, output/4, emptied/1, write/3, insane/1,
         points/1]).
-export_type([tables/0, point/0]).

-define(COLUMNS, [bench, otp, erl_args, axis, at, what, ms]).
-define(OF_POINTS, [bench, axis, schedulers, slaves, version, iterations, arguments,
                    otp, otp_release, erts, emulator, emulator_flags, schedulers_online]).

-opaque tables() :: #{dir := file:filename(), results := file:io_device(),
                      points := file:io_device()}.
%% Keys are the columns.
-type point() :: #{atom() => atom() | number() | unicode:chardata()}.

%% @doc Begins the tables of all times, and of all points.
-spec open(file:filename()) -> tables().
open(Dir) ->
    #{dir => Dir,
      results => weft_report_file:open(results(Dir), weft_report_csv:line(?COLUMNS)),
      points => weft_report_file:open(of_points(Dir), weft_report_csv:line(?OF_POINTS))}.

%% @doc Ends them.
-spec close(tables()) -> ok.
close(#{results := Results, points := Points}) ->
    ok = file:close(Results),
    ok = file:close(Points).

results(Dir) -> filename:join(Dir, "results.csv").

of_points(Dir) -> filename:join(Dir, "points.csv").

%% @doc Adds a point.
-spec point(tables(), point()) -> ok.
point(#{dir := Dir, points := Device}, Point) ->
    weft_report_file:append(of_points(Dir), Device,
                            weft_report_csv:line([map_get(Column, Point) || Column <- ?OF_POINTS])).

%% @doc Adds rows to the times, and answers them.
-spec append(tables(), [weft_bencherl:row(Ms)]) ->
          [weft_bencherl:row(Ms)] when Ms :: float() | none.
append(#{dir := Dir, results := Device}, Rows) ->
    Lines = [weft_report_csv:line([Bench, Otp, Args, Axis, At, What, Ms])
             || #{bench := Bench, otp := Otp, erl_args := Args, axis := Axis, at := At,
                  what := What, ms := Ms} <- Rows],
    ok = weft_report_file:append(results(Dir), Device, Lines),
    Rows.

%% @doc The times of a table that a run has left; none where there is no such table.
-spec read(file:filename()) -> {ok, [weft_bencherl:row()]} | none.
read(Dir) ->
    Columns = [atom_to_binary(Column) || Column <- ?COLUMNS],
    case file:read_file(results(Dir)) of
        {ok, Text} ->
            case weft_report_csv:parse(Text) of
                [Columns | Lines] ->
                    {ok, [row(Line) || Line <- Lines, lists:last(Line) =/= <<"none">>]};
                _ -> none
            end;
        {error, _} ->
            none
    end.

row([Bench, Otp, Args, Axis, At, What, Ms]) ->
    #{bench => text(Bench), otp => text(Otp), erl_args => text(Args),
      axis => case Axis of <<"sched">> -> sched; <<"node">> -> node end,
      at => binary_to_integer(At), what => text(What), ms => binary_to_float(Ms)}.

text(Field) -> unicode:characters_to_list(Field).

%% @doc Where a benchmark prints to.
-spec output(file:filename(), Bench :: string(),
             {Otp :: string(), Args :: string(), sched | node, non_neg_integer()},
             Iteration :: pos_integer()) -> file:filename().
output(Dir, Bench, {Otp, Args, Axis, At}, Iteration) ->
    Name = lists:concat([series(Otp, Args), ".", Axis, ".", At,
                         case Iteration of 1 -> ""; _ -> "." ++ integer_to_list(Iteration) end,
                         ".out"]),
    filename:join([Dir, Bench, "output", Name]).

%% @doc Makes output files that have nothing in them.
-spec emptied([file:filename()]) -> ok.
emptied(Outputs) ->
    lists:foreach(fun(Output) ->
                          ok = weft_report_file:directory(filename:dirname(Output)),
                          ok = weft_report_file:write(Output, "")
                  end, Outputs).

series(Otp, "") -> Otp;
series(Otp, Args) ->
    Otp ++ "_" ++ [case Char of
                       _ when Char >= $a, Char =< $z; Char >= $A, Char =< $Z;
                              Char >= $0, Char =< $9 -> Char;
                       _ -> $_
                   end || Char <- Args].

%% @doc Benchmarks whose outputs are not all the same, but for empty lines.
-spec insane([{Bench :: string(), Output :: file:filename()}]) -> [string()].
insane(Outputs) ->
    Printed = maps:groups_from_list(fun({Bench, _}) -> Bench end,
                                    fun({_, Output}) -> printed(Output) end, Outputs),
    lists:sort([Bench || {Bench, Texts} <- maps:to_list(Printed), length(lists:usort(Texts)) > 1]).

printed(File) ->
    {ok, Text} = file:read_file(File),
    [Line || Line <- binary:split(Text, <<"\n">>, [global]), string:trim(Line) =/= <<>>].

%% @doc Writes what follows from all rows; benchmarks have formats of their own.
-spec write(file:filename(), [weft_bencherl:row()],
            #{Bench :: string() => min | avg | max | avg_min_max | plain}) -> ok.
write(Dir, Rows, Formats) ->
    maps:foreach(fun({Bench, Otp, Args, Axis}, Points) ->
                         File = filename:join([Dir, Bench, "measurements",
                                               lists:concat([series(Otp, Args), ".", Axis])]),
                         ok = weft_report_file:directory(filename:dirname(File)),
                         Times = times(Points, maps:get(Bench, Formats)),
                         ok = weft_report_file:write(File ++ ".time", Times),
                         ok = weft_report_file:write(File ++ ".speedup", speedups(Points))
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
