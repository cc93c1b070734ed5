%% SPDX-License-Identifier: Apache-2.0
%% @doc The program ACO with all of its processes on one node; see also weft_aco_SUITE.
-module(weft_aco_tests).

-include_lib("eunit/include/eunit.hrl").

-export([init/1]).

-define(RUN_MS, 60000).
-define(ROUNDS, 3).

options() ->
    #{problem => weft_aco_problem:generate(1, 20, 0.6, 0.6), ants => 3, rounds => ?ROUNDS,
      iterations => 3}.

%% As many nodes as eight colonies need in a tree of degree 2.
run(Options) ->
    weft_bench_program:run(weft_aco, maps:merge(options(), Options),
                           lists:duplicate(11, node()), ?RUN_MS).

solution(Options) ->
    {ok, #{cost := Cost, schedule := Schedule}} = run(Options),
    {Cost, Schedule}.

all_versions_find_the_same_test_() ->
    {timeout, 60,
     fun() ->
         [begin
              Expected = solution(#{version => tl, colonies => 8, seed => Seed}),
              [?assertEqual({Other, Expected}, {Other, solution(Other#{seed => Seed})})
               || Other <- [#{version => tl, colonies => 8}, #{version => ml, degree => 2},
                            #{version => tl, colonies => 8, repeat => 3},
                            #{version => sr, degree => 2, names => local}]]
          end || Seed <- [1, cyclic]]
     end}.

%% A child is told of the round and reports: two messages; and a report repeated is one more each.
messages_are_those_of_the_tree_test() ->
    Messages = fun(Options) ->
                   {ok, #{program_messages := Count}} = run(Options),
                   Count
               end,
    ?assertEqual(?ROUNDS * 2 * 8, Messages(#{version => tl, colonies => 8})),
    ?assertEqual(?ROUNDS * 2 * (2 + 4 + 8), Messages(#{version => ml, degree => 2})),
    ?assertEqual(?ROUNDS * (2 * (2 + 4) + 8 + 8 * 5),
                 Messages(#{version => ml, degree => 2, repeat => 5})).

more_rounds_are_not_worse_test() ->
    Costs = [Cost || Rounds <- [1, 2, 4, 8],
                     {Cost, _} <- [solution(#{version => tl, colonies => 2, rounds => Rounds})]],
    ?assertEqual(Costs, lists:reverse(lists:sort(Costs))).

the_error_is_against_the_best_known_test() ->
    {Cost, _} = solution(#{version => tl, colonies => 1}),
    ?assertMatch({ok, #{cost_error_percent := 100.0}},
                 run(#{version => tl, colonies => 1, best_known => Cost div 2, rounds => ?ROUNDS,
                       problem => (maps:get(problem, options()))})).

nothing_is_left_test() ->
    {ok, #{names := 15}} = run(#{version => gr, degree => 2, names => local}),
    ?assertEqual([], [Name || Name <- registered(),
                              lists:prefix("weft_aco_", atom_to_list(Name))]).

%% Whoever has a name is killed, again and again, masters as well: in so many rounds that this
%% happens some times, however fast the machine is.
killed_processes_are_replaced_test_() ->
    {timeout, 120, fun() -> ?assert(some_are_killed_in(20)) end}.

some_are_killed_in(Rounds) ->
    {Killer, Monitor} = spawn_monitor(fun() -> kill(0) end),
    {ok, Result} = run(#{version => gr, degree => 2, names => local, rounds => Rounds,
                         iterations => 8}),
    Killer ! {stop, self()},
    Kills = receive {'DOWN', Monitor, process, Killer, {kills, Count}} -> Count end,
    ok = weft_test_nodes:until(fun nobody_is_left/0),
    #{restarts := Restarts, given_up := 0, schedule := Schedule, cost := Cost} = Result,
    #{problem := Problem} = options(),
    ?assertEqual(Cost, weft_aco_problem:cost(Schedule, Problem)),
    (Kills > 5 andalso Restarts > 5)
        orelse (Rounds < 1000 andalso some_are_killed_in(2 * Rounds)).

%% Who is killed while it ends those below it leaves them: they would wait for another parent, and
%% other tests would find them. One that is killed may be started again by one that is not yet.
nobody_is_left() ->
    [] =:= [killed(Pid) || Name <- registered(), lists:prefix("weft_aco_", atom_to_list(Name)),
                           Pid <- [whereis(Name)], is_pid(Pid)].

kill(Kills) ->
    receive
        {stop, _} -> exit({kills, Kills})
    after 15 ->
        case [Name || Name <- registered(), lists:prefix("weft_aco_", atom_to_list(Name))] of
            [] -> kill(Kills);
            Names ->
                Victim = lists:nth(1 + Kills * 7 rem length(Names), Names),
                IsKilled = case whereis(Victim) of
                               undefined -> 0;
                               Pid -> exit(Pid, kill), 1
                           end,
                kill(Kills + IsKilled)
        end
    end.

%% It is no part of either round, and told all the same.
who_is_lost_between_two_rounds_is_counted_test() ->
    {ok, {#{run := Run} = Settings, #{children := [#{children := [First, _] = Colonies} | _]}}} =
        weft_aco:plan((options())#{version => sr, degree => 2, names => local},
                      lists:duplicate(5, node())),
    {_, Begun} = done(weft_aco_children:round(1, none, weft_aco_children:new(Colonies, Settings,
                                                                            started))),
    exit(weft_aco_names:whereis(local, Run, First), kill),
    {more, Again} = receive {'DOWN', _, process, _, killed} = Down ->
                        weft_aco_children:handle(Down, Begun)
                    end,
    {Counts, After} = done(weft_aco_children:round(2, none, Again)),
    ?assertMatch(#{restarts := 1, given_up := 0, messages := 4}, Counts),
    ?assertMatch({#{restarts := 0, messages := 4}, _},
                 done(weft_aco_children:round(3, none, After))),
    ok = weft_aco_children:stop(After).

done({done, _Best, Counts, Children}) -> {Counts, Children};
done({more, Children}) -> done(receive Message -> weft_aco_children:handle(Message, Children) end).

killed_ants_are_replaced_test_() ->
    {timeout, 60,
     fun() ->
         Self = self(),
         Options = #{version => tl, colonies => 2, rounds => 30, iterations => 30},
         spawn_link(fun() -> Self ! {result, run(Options)} end),
         [killed(started({weft_aco_colony, ant, 4})) || _ <- lists:seq(1, 20)],
         receive {result, Result} -> ?assertMatch({ok, #{cost := _, restarts := 0}}, Result) end
     end}.

what_fails_each_time_is_told_at_last_test_() ->
    {timeout, 120,
     fun() ->
         %% Each failure is an error report.
         #{level := Level} = logger:get_primary_config(),
         ok = logger:set_primary_config(level, none),
         Result = run(#{version => gr, degree => 2, names => local, problem => #{}}),
         ok = logger:set_primary_config(level, Level),
         {error, Text} = Result,
         ?assertNotEqual(nomatch, string:find(Text, "function_clause"))
     end}.

%% It may be over before its parent goes on.
why_a_child_ends_at_once_is_known_test_() ->
    [fun() ->
         weft_test_trapping:run(
           fun() ->
               weft_test_steps:on_one_scheduler(fun() -> ended_after_each_step(Names) end)
           end)
     end || Names <- [none, local]].

ended_after_each_step(Names) ->
    [?assertEqual(wrong, weft_test_steps:interrupted(Steps, fun() -> ended(Names) end))
     || Steps <- lists:seq(1, 60)].

ended(Names) ->
    {Pid, Monitor} = weft_aco_parent:start(#{node => node()}, ?MODULE, [wrong], #{names => Names}),
    receive {'DOWN', Monitor, process, Pid, Why} -> Why end.

init(Why) -> exit(Why).

without_names_a_loss_is_told_test() ->
    Self = self(),
    spawn_link(fun() -> Self ! run(#{version => tl, colonies => 1, rounds => 1000000}) end),
    Colony = started({weft_aco_colony, init, 3}),
    exit(Colony, kill),
    receive
        {error, Text} -> ?assertNotEqual(nomatch, string:find(Text, "was lost: killed"))
    after ?RUN_MS -> error(not_told)
    end.

killed(Pid) ->
    Monitor = monitor(process, Pid),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end.

%% A process that was started with this call, as soon as there is one.
started(Call) ->
    case [Pid || Pid <- processes(), process_info(Pid, initial_call) =:= {initial_call, Call}] of
        [Pid | _] -> Pid;
        [] -> started(Call)
    end.

%% Of repetitions that draw the same nobody could tell how far they differ.
each_repetition_of_the_quality_draws_something_else_test() ->
    [Cell | _] = [Cell || #{workload := aco_quality} = Cell <- weft_aco_workload:cells(full)],
    Drawn = fun(Repetition, Colonies) ->
                [Seed || #{seed := Seed} <- weft_aco_workload:quality_options(
                                              Cell#{repetition => Repetition,
                                                    streams := Colonies})]
            end,
    ?assertEqual(3, length(lists:usort([Drawn(Repetition, 1) || Repetition <- [1, 2, 3]]))),
    ?assertEqual(5, length(Drawn(2, 1))),
    ?assertEqual(Drawn(2, 1), Drawn(2, 16)).

bad_options_are_told_test_() ->
    [?_assertMatch({Part, {match, _}}, {Part, re:run(text(Options), Part)})
     || {Options, Part} <- [{#{version => tl, colonies => 12}, "12 colonies on 11 nodes"},
                            {#{version => tl, colonies => 0}, "above 0"},
                            {#{version => tl}, "above 0"},
                            {#{version => ml, degree => 1}, "degree above 1"},
                            {#{version => ml, degree => 4}, "need 17"},
                            {#{version => gr, degree => 2}, "have names"},
                            {#{version => tl, colonies => 1, ants => 0}, "ants is 0"},
                            {#{version => tl, colonies => 1, rounds => x}, "rounds is x"},
                            {#{version => tl, colonies => 1, heuristic => tea}, "mdd, edd or au"},
                            {#{version => ml, degree => 2, names => local}, "none"}]].

text(Options) ->
    {error, Text} = run(Options),
    Text.
