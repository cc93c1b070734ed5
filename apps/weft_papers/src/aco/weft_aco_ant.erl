%% SPDX-License-Identifier: Apache-2.0
%% @doc How an ant makes a schedule (M. den Besten, T. Stützle, M. Dorigo, "Ant colony optimization
%% for the total weighted tardiness problem", PPSN 2000): position by position, by pheromone and
%% urgency, it takes the best job or, less often, one by chance. Pure; the process that is an ant
%% belongs to `weft_aco_colony'.
-module(weft_aco_ant).

-export([schedule/4]).
-export_type([options/0, rows/0]).

%% `greed' is the probability of taking the best job.
-type options() :: #{alpha := number(), beta := number(), greed := number(),
                     heuristic := weft_aco_problem:heuristic(), _ => _}.
%% The pheromone of each job at a position.
-type rows() :: fun((Position :: pos_integer()) -> tuple()).

-spec schedule(weft_aco_problem:problem(), rows(), options(), weft_aco_random:random()) ->
          {weft_aco_problem:schedule(), weft_aco_random:random()}.
schedule(Problem, Rows, Options, Random) ->
    step(1, 0, weft_aco_problem:jobs(Problem), {Problem, Rows, Options}, Random, []).

step(_Position, _Time, [Last], _Context, Random, Done) ->
    {lists:reverse(Done, [Last]), Random};
step(Position, Time, Jobs, {Problem, Rows, Options} = Context, Random, Done) ->
    {Draw, Next} = weft_aco_random:next(Random),
    Scores = scores(Jobs, Time, Rows(Position), Problem, Options),
    {Job, After} = case Draw < maps:get(greed, Options) of
                       true -> {best(Scores), Next};
                       false -> by_chance(Scores, Next)
                   end,
    #{durations := Durations} = Problem,
    step(Position + 1, Time + element(Job, Durations), lists:delete(Job, Jobs), Context, After,
         [Job | Done]).

scores(Jobs, Time, Row, Problem, #{heuristic := Heuristic, alpha := Alpha, beta := Beta}) ->
    [{Job, power(element(Job, Row), Alpha) * power(Urgency, Beta)}
     || {Job, Urgency} <- weft_aco_problem:urgency(Heuristic, Jobs, Time, Problem)].

power(_Base, Exponent) when Exponent == 0 -> 1.0;
power(Base, Exponent) when Exponent == 1 -> Base;
power(Base, Exponent) when Exponent == 2 -> Base * Base;
power(Base, Exponent) -> math:pow(Base, Exponent).

%% Of equal ones the first.
best([First | Rest]) ->
    {Job, _} = lists:foldl(fun({_, Score} = One, {_, Most}) when Score > Most -> One;
                              (_, Best) -> Best
                           end, First, Rest),
    Job.

by_chance(Scores, Random) ->
    {Draw, Next} = weft_aco_random:next(Random),
    {pick(Scores, Draw * lists:sum([Score || {_, Score} <- Scores])), Next}.

pick([{Job, _}], _Left) -> Job;
pick([{Job, Score} | _], Left) when Left =< Score -> Job;
pick([{_, Score} | Rest], Left) -> pick(Rest, Left - Score).
