%% SPDX-License-Identifier: Apache-2.0
%% @doc The problem that ants solve: one machine, jobs with a duration, a weight and a date at which
%% each is due; in which order is the sum of weights times lateness (the cost) smallest? Known as
%% single machine total weighted tardiness.
%%
%% Problems are read from text (3n + 1 numbers: n, durations, weights, due dates, as in J. Beasley's
%% OR-Library) or made by the rule of that library: durations from 1 to 100, weights from 1 to 10,
%% due dates in a range around (1 - Tightness) of the sum of durations P, of the width Range x P.
-module(weft_aco_problem).

-export([parse/1, numbers/1, new/1, generate/4]).
-export([jobs/1, cost/2, is_schedule/2, greedy/2, urgency/4]).
-export_type([problem/0, schedule/0, heuristic/0]).

-type problem() :: #{jobs := pos_integer(), durations := tuple(), weights := tuple(),
                     due := tuple()}.
%% Numbers of jobs, from 1, in the order in which they are done.
-type schedule() :: [pos_integer()].
%% Modified due date, earliest due date, apparent urgency.
-type heuristic() :: mdd | edd | au.

-define(LOOK_AHEAD, 2).

%% @doc Reads a problem. The error is a text.
-spec parse(binary()) -> {ok, problem()} | {error, string()}.
parse(Text) ->
    case numbers(Text) of
        {ok, Numbers} -> new(Numbers);
        {error, _} = Error -> Error
    end.

%% @doc The whole numbers that a text consists of. The error is a text.
-spec numbers(binary()) -> {ok, [integer()]} | {error, string()}.
numbers(Text) ->
    numbers([Word || Word <- re:split(Text, "\\s+"), Word =/= <<>>], []).

numbers([], Numbers) ->
    {ok, lists:reverse(Numbers)};
numbers([Word | Words], Numbers) ->
    try binary_to_integer(Word) of
        Number -> numbers(Words, [Number | Numbers])
    catch
        error:badarg ->
            error_text("a problem consists of whole numbers only, and word ~b is ~0tP",
                       [length(Numbers) + 1, Word, 10])
    end.

%% @doc A problem of numbers: that of its jobs, their durations, weights and due dates.
-spec new([integer()]) -> {ok, problem()} | {error, string()}.
new([Jobs | Numbers]) when Jobs > 0, length(Numbers) =:= 3 * Jobs ->
    {Durations, Rest} = lists:split(Jobs, Numbers),
    {Weights, Due} = lists:split(Jobs, Rest),
    checked(Jobs, Durations, Weights, Due);
new(Numbers) ->
    error_text("~b numbers: a problem has the number of its jobs and 3 numbers for each",
               [length(Numbers)]).

checked(Jobs, Durations, Weights, Due) ->
    case {lists:min(Durations) > 0, lists:min(Weights) >= 0} of
        {true, true} -> {ok, problem(Jobs, Durations, Weights, Due)};
        {false, _} -> error_text("a duration is ~b: it must be above 0", [lists:min(Durations)]);
        {_, false} -> error_text("a weight is ~b: it must not be below 0", [lists:min(Weights)])
    end.

error_text(Format, Arguments) ->
    {error, lists:flatten(io_lib:format(Format, Arguments))}.

problem(Jobs, Durations, Weights, Due) ->
    #{jobs => Jobs, durations => list_to_tuple(Durations), weights => list_to_tuple(Weights),
      due => list_to_tuple(Due)}.

%% @doc Makes a problem; the same seed makes the same one. Tightness and Range are from 0.2 to 1.0
%% in the library: the tighter and the narrower, the more jobs are late.
-spec generate(Seed :: integer(), Jobs :: pos_integer(), Tightness :: float(), Range :: float()) ->
          problem().
generate(Seed, Jobs, Tightness, Range) ->
    Random0 = rand:seed_s(exsss, {Seed, Jobs, round(100 * (10 * Tightness + Range))}),
    {Durations, Random1} = numbers(Jobs, 1, 100, Random0),
    {Weights, Random2} = numbers(Jobs, 1, 10, Random1),
    Sum = lists:sum(Durations),
    Middle = 1 - Tightness,
    {Due, _} = numbers(Jobs, max(0, round(Sum * (Middle - Range / 2))),
                       max(1, round(Sum * (Middle + Range / 2))), Random2),
    problem(Jobs, Durations, Weights, Due).

numbers(Count, From, To, Random) ->
    lists:mapfoldl(fun(_, State) ->
                       {Number, Next} = rand:uniform_s(To - From + 1, State),
                       {From + Number - 1, Next}
                   end, Random, lists:seq(1, Count)).

-spec jobs(problem()) -> [pos_integer(), ...].
jobs(#{jobs := Jobs}) -> lists:seq(1, Jobs).

-spec cost(schedule(), problem()) -> non_neg_integer().
cost(Schedule, #{durations := Durations, weights := Weights, due := Due}) ->
    {_, Cost} = lists:foldl(fun(Job, {Time, Sum}) ->
                                End = Time + element(Job, Durations),
                                Late = max(0, End - element(Job, Due)),
                                {End, Sum + element(Job, Weights) * Late}
                            end, {0, 0}, Schedule),
    Cost.

%% @doc Is each job in it once?
-spec is_schedule(term(), problem()) -> boolean().
is_schedule(Schedule, Problem) ->
    is_list(Schedule) andalso lists:sort(Schedule) =:= jobs(Problem).

%% @doc The schedule that always does the most urgent job next, of equal ones the first.
-spec greedy(heuristic(), problem()) -> schedule().
greedy(Heuristic, Problem) ->
    greedy(Heuristic, jobs(Problem), 0, Problem).

greedy(_Heuristic, [], _Time, _Problem) ->
    [];
greedy(Heuristic, Jobs, Time, #{durations := Durations} = Problem) ->
    {Job, _} = first_of_most(urgency(Heuristic, Jobs, Time, Problem)),
    [Job | greedy(Heuristic, lists:delete(Job, Jobs), Time + element(Job, Durations), Problem)].

first_of_most([First | Rest]) ->
    lists:foldl(fun({_, Urgency} = One, {_, Most}) when Urgency > Most -> One;
                   (_, Best) -> Best
                end, First, Rest).

%% @doc How urgent each of these jobs is at a time, in their order; all above 0.
-spec urgency(heuristic(), [pos_integer(), ...], Time :: non_neg_integer(), problem()) ->
          [{pos_integer(), float()}].
urgency(mdd, Jobs, Time, #{durations := Durations, due := Due}) ->
    [{Job, 1 / max(Time + element(Job, Durations), element(Job, Due))} || Job <- Jobs];
urgency(edd, Jobs, _Time, #{due := Due}) ->
    [{Job, 1 / max(1, element(Job, Due))} || Job <- Jobs];
urgency(au, Jobs, Time, #{durations := Durations, weights := Weights, due := Due}) ->
    Mean = lists:sum([element(Job, Durations) || Job <- Jobs]) / length(Jobs),
    [begin
         Duration = element(Job, Durations),
         Slack = max(element(Job, Due) - (Time + Duration), 0),
         {Job, element(Job, Weights) / Duration * math:exp(-Slack / (?LOOK_AHEAD * Mean))}
     end || Job <- Jobs].
