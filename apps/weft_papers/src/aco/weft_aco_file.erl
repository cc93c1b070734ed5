%% SPDX-License-Identifier: Apache-2.0
%% @doc Problems for ants in files of the user: whole numbers between blanks and ends of lines.
%% Either one problem, with the number n of its jobs first, then n durations, n weights, n due
%% dates; or, as in the files wt40, wt50 and wt100 of J. Beasley's OR-Library, any number of
%% problems one after the other without their n, which are all of the same size.
-module(weft_aco_file).

-export([read/2]).

%% @doc Options: `jobs', how many each problem has, where the file does not say so; `number', which
%% of its problems, from 1 on. The error is a text.
-spec read(file:filename(), #{jobs => pos_integer(), number => pos_integer(), _ => _}) ->
          {ok, weft_aco_problem:problem()} | {error, string()}.
read(File, Options) ->
    case file:read_file(File) of
        {ok, Text} -> in_file(File, chosen(weft_aco_problem:numbers(Text), Options));
        {error, Why} -> in_file(File, {error, file:format_error(Why)})
    end.

in_file(_File, {ok, Problem}) -> {ok, Problem};
in_file(File, {error, Text}) -> {error, lists:flatten([File, ": ", Text])}.

chosen({error, _} = Error, _Options) ->
    Error;
chosen({ok, Numbers}, #{jobs := Jobs} = Options) ->
    Size = 3 * Jobs,
    Count = length(Numbers) div Size,
    case {maps:get(number, Options, 1), length(Numbers) rem Size} of
        {Number, 0} when Number =< Count ->
            Skipped = lists:nthtail((Number - 1) * Size, Numbers),
            weft_aco_problem:new([Jobs | lists:sublist(Skipped, Size)]);
        {Number, 0} ->
            text("--number ~b: it has ~b problems of ~b jobs", [Number, Count, Jobs]);
        {_, _} ->
            text("it has ~b numbers, no multiple of 3 x ~b: --jobs is how many jobs each problem "
                 "has, for a file that does not begin with that number", [length(Numbers), Jobs])
    end;
chosen({ok, _}, #{number := _}) ->
    text("--number is for a file of several problems; say with --jobs how many jobs each has", []);
chosen({ok, [_ | _] = Numbers}, _Options) when length(Numbers) rem 3 =:= 0 ->
    text("it has ~b numbers, a problem with its number of jobs in front 1 + 3 n. A file of the "
         "OR-Library has no such number: say --jobs 40 (or 50, 100), and --number for which of its "
         "problems", [length(Numbers)]);
chosen({ok, Numbers}, _Options) ->
    weft_aco_problem:new(Numbers).

text(Format, Arguments) -> {error, lists:flatten(io_lib:format(Format, Arguments))}.
