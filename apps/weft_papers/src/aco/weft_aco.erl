%% SPDX-License-Identifier: Apache-2.0
%% @doc The program ACO: colonies of ants on many nodes look for a good schedule
%% (`weft_aco_problem'), and tell each other the best one after each round (N. Chechina et al.,
%% "Evaluating Scalable Distributed Erlang for Scalability and Reliability", IEEE TPDS 28(8), 2017,
%% sections 4.2 and 5.2.2). Four versions:
%%
%% tl  two levels: a master and its colonies
%% ml  a tree of submasters between them (`weft_aco_tree')
%% gr  the same tree, whose processes have names everywhere, and are replaced when they are lost
%% sr  the same with names in small groups, or on single nodes
%%
%% Without losses all of them find the same schedule from the same seed, whatever carries the
%% messages. Timed is all from the start of the first process to the last report, names included;
%% the nodes that talk to each other are connected before.
-module(weft_aco).
-behaviour(weft_bench_program).

-export([plan/2, start/1, run/1, check/1, stop/1]).
-export_type([settings/0, best/0]).

%% The options of ants (`weft_aco_ant'), and: how many ants a colony has, how often they go out in a
%% round, what evaporates of the pheromone each time, how often a colony sends the same report
%% (which makes it as many colonies for its parent), and the seed.
-type settings() :: #{problem := weft_aco_problem:problem(), names := weft_aco_names:names(),
                      run := integer(), ants := pos_integer(), rounds := pos_integer(),
                      iterations := pos_integer(), repeat := pos_integer(), rho := float(),
                      alpha := float(), beta := float(), greed := float(),
                      heuristic := weft_aco_problem:heuristic(), seed := cyclic | integer(),
                      best_known => pos_integer(), _ => _}.
-type best() :: none | {Cost :: non_neg_integer(), weft_aco_problem:schedule()}.

-record(state, {settings :: settings(), tree :: weft_aco_tree:process(),
                children = none :: none | weft_aco_children:children(), best = none :: best(),
                counts = none :: none | weft_aco_report:counts()}).

-define(DEFAULTS, #{names => none, ants => 10, rounds => 20, iterations => 20, repeat => 1,
                    rho => 0.1, alpha => 1.0, beta => 2.0, greed => 0.9, heuristic => mdd,
                    seed => 1}).

%% @doc Options: those of settings() but for `run'; `version'; `colonies' (tl: on the last so many
%% nodes), `degree' (the others). Defaults are those of the paper's program.
-spec plan(map(), [node(), ...]) -> {ok, {settings(), weft_aco_tree:process()}} | {error, iodata()}.
plan(#{version := Version, problem := _} = Options, Nodes) ->
    #{names := Names} = All = maps:merge(?DEFAULTS, Options),
    Settings = All#{run => erlang:unique_integer([positive])},
    case {bad(All), (Version =:= gr orelse Version =:= sr) =:= (Names =/= none)} of
        {[], true} -> with_tree(tree(All, Nodes), Settings);
        {[], false} -> {error, io_lib:format("version ~s with names ~0p: gr and sr have names, tl "
                                             "and ml none", [Version, Names])};
        {[Text | _], _} -> {error, Text}
    end.

bad(#{heuristic := Heuristic} = Options) ->
    [io_lib:format("~s is ~0p: it must be a number above 0", [Key, Value])
     || Key <- [ants, rounds, iterations, repeat], Value <- [map_get(Key, Options)],
        not is_integer(Value) orelse Value < 1]
        ++ [io_lib:format("heuristic is ~0p: it must be mdd, edd or au", [Heuristic])
            || not lists:member(Heuristic, [mdd, edd, au])].

tree(#{version := tl, colonies := Count}, [Master | _] = Nodes) when Count > 0 ->
    case Count =< length(Nodes) of
        true -> {ok, weft_aco_tree:two_level(Master, lists:nthtail(length(Nodes) - Count, Nodes))};
        false -> {error, io_lib:format("~b colonies on ~b nodes", [Count, length(Nodes)])}
    end;
tree(#{version := tl}, _Nodes) ->
    {error, "tl needs a number of colonies above 0"};
tree(#{degree := Degree}, Nodes) when is_integer(Degree), Degree > 1 ->
    weft_aco_tree:multi_level(Degree, Nodes);
tree(#{version := Version}, _Nodes) ->
    {error, io_lib:format("~s needs a degree above 1", [Version])}.

with_tree({ok, Tree}, Settings) -> {ok, {Settings, Tree}};
with_tree({error, _} = Error, _Settings) -> Error.

%% @private
start({Settings, Tree}) ->
    process_flag(trap_exit, true),
    ok = weft_aco_ways:open(Tree),
    #state{settings = Settings, tree = Tree}.

%% @private
run(#state{settings = #{rounds := Rounds} = Settings, tree = Tree} = State) ->
    Children = weft_aco_children:new([Tree], Settings, started),
    Counts = #{messages => 0, restarts => 0, given_up => 0},
    rounds(1, Rounds, State#state{children = Children, counts = Counts}).

rounds(Number, Last, State) when Number > Last ->
    State;
rounds(Number, Last, #state{children = Children, best = Best, counts = Counts} = State) ->
    {Found, RoundCounts, After} = gather(weft_aco_children:round(Number, Best, Children)),
    rounds(Number + 1, Last, State#state{children = After,
                                         best = weft_aco_report:better(Found, Best),
                                         counts = weft_aco_report:add(RoundCounts, Counts)}).

gather({done, Best, Counts, Children}) ->
    {Best, Counts, Children};
gather({_MoreOrOther, Children}) ->
    receive
        Message -> gather(weft_aco_children:handle(Message, Children))
    end.

%% @private
check(#state{best = none}) ->
    {error, "no colony is left"};
check(#state{best = {Cost, Schedule}, settings = #{problem := Problem} = Settings} = State) ->
    case weft_aco_problem:is_schedule(Schedule, Problem)
        andalso weft_aco_problem:cost(Schedule, Problem) of
        Cost -> {ok, maps:merge(result(State), error_percent(Cost, Settings))};
        false -> {error, io_lib:format("not every job is done once: ~0p", [Schedule])};
        Other -> {error, io_lib:format("the schedule costs ~b, and not ~b", [Other, Cost])}
    end.

%% The messages between this process, which stands above the master, and the master do not count.
result(#state{best = {Cost, Schedule}, tree = Tree, settings = Settings, counts = Counts}) ->
    #{names := Names, rounds := Rounds} = Settings,
    #{messages := Messages} = Counts,
    Registered = case Names of
                     none -> 0;
                     _ -> 1 + weft_aco_tree:reporters(Tree)
                 end,
    Counts#{cost => Cost, schedule => Schedule, names => Registered,
            program_messages => Messages - 2 * Rounds}.

error_percent(Cost, #{best_known := Best}) ->
    #{cost_error_percent => 100 * (Cost - Best) / Best};
error_percent(_Cost, _Settings) ->
    #{}.

%% @private
stop(#state{children = Children}) ->
    weft_aco_children:stop(Children).
