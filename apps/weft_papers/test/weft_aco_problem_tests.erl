%% SPDX-License-Identifier: Apache-2.0
%% @doc Problems, and what ants make of them, against numbers that other programs computed.
-module(weft_aco_problem_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TEXT, <<"8\n26 24 79 46 32 35 73 74\n1 10 9 10 10 4 3 2\n80 60 200 120 90 150 260 300\n">>).
-define(OPTIMUM, 644).

tiny() ->
    {ok, Problem} = weft_aco_problem:parse(?TEXT),
    Problem.

the_cost_is_weight_times_lateness_test() ->
    {ok, Problem} = weft_aco_problem:parse(<<"2 10 5 3 2 8 5">>),
    ?assertEqual(3 * (10 - 8) + 2 * (15 - 5), weft_aco_problem:cost([1, 2], Problem)),
    ?assertEqual(3 * (15 - 8), weft_aco_problem:cost([2, 1], Problem)).

greedy_schedules_and_their_costs_are_known_test() ->
    Problem = tiny(),
    ?assertEqual([2, 1, 5, 4, 6, 3, 7, 8], weft_aco_problem:greedy(mdd, Problem)),
    ?assertEqual([2, 5, 4, 6, 3, 7, 1, 8], weft_aco_problem:greedy(au, Problem)),
    ?assertEqual([853, 853, 644],
                 [weft_aco_problem:cost(weft_aco_problem:greedy(Heuristic, Problem), Problem)
                  || Heuristic <- [edd, mdd, au]]).

%% Problems of others are not part of this repository: WEFT_ACO_PROBLEMS is a directory with those
%% of J. Beasley's OR-Library, each in a file of its own, and one of M. Geiger. Costs of earliest
%% due date, modified due date, apparent urgency.
greedy_costs_of_known_problems_test_() ->
    Costs = [{"wt40.001", [1588, 1643, 1062]}, {"wt40.011", [67845, 39648, 17525]},
             {"wt100.001", [14138, 10213, 8741]},
             {"wt_100_prime_1.txt", [2089433657, 1294813405, 993546120]}],
    [{Name, ?_assertEqual(Expected, [ants_cost(Heuristic, Problem)
                                     || Heuristic <- [edd, mdd, au]])}
     || {Name, Expected} <- Costs, Problem <- known(Name)].

%% And no colony finds less than the optimum.
known_problems_are_not_beaten_test_() ->
    [{Name, {timeout, 60, ?_assert(found(au, Problem) >= Optimum)}}
     || {Name, Optimum} <- [{"wt40.001", 913}, {"wt40.011", 17465}, {"wt40.016", 72317},
                            {"wt50.001", 2134}, {"wt100.001", 5988},
                            {"wt_100_prime_1.txt", 802910360}],
        Problem <- known(Name)].

known(Name) ->
    [begin
         {ok, Text} = file:read_file(filename:join(Dir, Name)),
         {ok, Problem} = weft_aco_problem:parse(Text),
         Problem
     end || Dir <- [os:getenv("WEFT_ACO_PROBLEMS")], Dir =/= false].

%% Of one ant without pheromone and chance.
ants_cost(Heuristic, #{jobs := Jobs} = Problem) ->
    Options = #{alpha => 0.0, beta => 2.0, greed => 1.0, heuristic => Heuristic},
    Rows = fun(_Position) -> erlang:make_tuple(Jobs, 0.5) end,
    {Schedule, _} = weft_aco_ant:schedule(Problem, Rows, Options, weft_aco_random:new(cyclic)),
    ?assertEqual(weft_aco_problem:greedy(Heuristic, Problem), Schedule),
    weft_aco_problem:cost(Schedule, Problem).

%% Without pheromone and chance an ant does what is most urgent.
a_greedy_ant_is_greedy_test() ->
    Problem = weft_aco_problem:generate(5, 30, 0.6, 0.6),
    [?assertEqual(weft_aco_problem:cost(weft_aco_problem:greedy(Heuristic, Problem), Problem),
                  ants_cost(Heuristic, Problem))
     || Heuristic <- [mdd, edd, au]].

ants_follow_pheromone_test() ->
    Wanted = [8, 7, 6, 5, 4, 3, 2, 1],
    Rows = fun(Position) ->
               setelement(lists:nth(Position, Wanted), erlang:make_tuple(8, 1.0e-9), 1.0)
           end,
    Options = #{alpha => 1.0, beta => 0.0, greed => 1.0, heuristic => mdd},
    ?assertMatch({Wanted, _}, weft_aco_ant:schedule(tiny(), Rows, Options,
                                                    weft_aco_random:new({1, 2, 3}))).

%% With greed 0 every choice is by chance: in proportion to the scores, here 3 to 1.
chance_is_in_proportion_test() ->
    {ok, Problem} = weft_aco_problem:parse(<<"2 1 1 1 1 9 9">>),
    Options = #{alpha => 1.0, beta => 0.0, greed => 0.0, heuristic => mdd},
    {Firsts, _} = lists:mapfoldl(
                    fun(_, Random) ->
                        {[First, _], Next} = weft_aco_ant:schedule(
                                               Problem, fun(_) -> {0.75, 0.25} end, Options,
                                               Random),
                        {First, Next}
                    end, weft_aco_random:new({1, 2, 3}), lists:seq(1, 4000)),
    Share = length([1 || 1 <- Firsts]) / 4000,
    ?assert(abs(Share - 0.75) < 0.03).

cyclic_numbers_come_again_test() ->
    Take = fun(Random) ->
               {Numbers, _} = lists:mapfoldl(fun(_, R) -> weft_aco_random:next(R) end, Random,
                                             lists:seq(1, 11)),
               [round(Number * 100) || Number <- Numbers]
           end,
    Cycle = [9, 19, 29, 39, 49, 59, 69, 79, 89, 99, 9],
    {_, Used} = weft_aco_random:next(weft_aco_random:new(cyclic)),
    ?assertEqual(Cycle, Take(weft_aco_random:new(cyclic))),
    ?assertEqual(Cycle, Take(weft_aco_random:generation(Used))).

made_problems_keep_the_rule_test() ->
    #{jobs := 100, durations := Durations, weights := Weights, due := Due} = Problem =
        weft_aco_problem:generate(7, 100, 0.4, 0.2),
    ?assertEqual(Problem, weft_aco_problem:generate(7, 100, 0.4, 0.2)),
    ?assertNotEqual(Problem, weft_aco_problem:generate(8, 100, 0.4, 0.2)),
    Sum = lists:sum(tuple_to_list(Durations)),
    is_between(1, 100, Durations),
    is_between(1, 10, Weights),
    is_between(round(Sum * 0.5), round(Sum * 0.7), Due).

is_between(Low, High, Numbers) ->
    List = tuple_to_list(Numbers),
    ?assertEqual(100, length(List)),
    ?assert(lists:min(List) >= Low andalso lists:max(List) =< High).

bad_problems_are_told_test_() ->
    [?_assertMatch({Part, {match, _}}, {Part, re:run(text(Bad), Part)})
     || {Bad, Part} <- [{<<"2 1 1 1 1 9">>, "6 numbers"}, {<<"">>, "0 numbers"},
                        {<<"1 1 x 3">>, "whole numbers"}, {<<"1 0 1 1">>, "must be above 0"}]].

text(Bad) ->
    {error, Text} = weft_aco_problem:parse(Bad),
    Text.

%% The cheapest schedule by all sets of jobs that can come first: Cost(Set) is that of the best
%% order of the set, which ends when all of its durations are over.
optimum(#{jobs := Jobs, durations := Durations, weights := Weights, due := Due}) ->
    Full = (1 bsl Jobs) - 1,
    Costs = lists:foldl(
              fun(Set, Known) ->
                  In = [Job || Job <- lists:seq(1, Jobs), Set band (1 bsl (Job - 1)) =/= 0],
                  End = lists:sum([element(Job, Durations) || Job <- In]),
                  Last = [map_get(Set - (1 bsl (Job - 1)), Known)
                          + element(Job, Weights) * max(0, End - element(Job, Due)) || Job <- In],
                  Known#{Set => lists:min(Last)}
              end, #{0 => 0}, lists:seq(1, Full)),
    map_get(Full, Costs).

no_schedule_beats_the_optimum_test_() ->
    {timeout, 60,
     fun() ->
         ?assertEqual(?OPTIMUM, optimum(tiny())),
         ?assertEqual(?OPTIMUM, found(au, tiny())),
         [?assert(found(mdd, Problem) >= optimum(Problem))
          || Seed <- lists:seq(1, 5), Tightness <- [0.4, 0.8],
             Problem <- [weft_aco_problem:generate(Seed, 8, Tightness, 0.6)]]
     end}.

found(Heuristic, Problem) ->
    {ok, #{cost := Cost}} =
        weft_bench_program:run(weft_aco, #{version => tl, colonies => 2, problem => Problem,
                                           heuristic => Heuristic, ants => 5, rounds => 5,
                                           iterations => 10},
                               [node(), node()], 30000),
    Cost.
