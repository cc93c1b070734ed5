%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs one scenario with one seed. Everything else is in `weft_sim_world' (what happens),
%% `weft_sim_scenario' (what shall happen) and the checkers (what must hold).
-module(weft_sim).

-export([run/3, run_own/3, run_traced/3, run_scenario/2, violation_text/4, replay_command/3]).
-export_type([result/0]).

-type violation() :: {AtMs :: non_neg_integer(), Checker :: module(), string()}.
-type result() :: #{violation := none | violation(),
                    virtual_ms := non_neg_integer(),
                    real_ms := non_neg_integer(),
                    events := non_neg_integer(),
                    messages := non_neg_integer(),
                    bytes := non_neg_integer()}.

%% @doc Runs a scenario by name.
-spec run(Scenario :: atom(), Seed :: integer(), NodeCount :: pos_integer()) -> result().
run(Name, Seed, NodeCount) ->
    {Result, _NoTrace} = run_scenario(Seed, weft_sim_scenario:build(Name, Seed, NodeCount)),
    Result.

%% @doc Runs a topology that is not part of weft through faults; see `weft_sim_scenario:own/3'. In
%% the end each node has to have links with all that it wants as neighbours, every node of a part a
%% route to all others of it, and nothing may change any more. No route may ever be a loop.
-spec run_own({module(), OptionsOf :: fun(([node()], node()) -> map())}, Seed :: integer(),
              NodeCount :: pos_integer()) -> result().
run_own(Topology, Seed, NodeCount) ->
    {Result, _NoTrace} = run_scenario(Seed, weft_sim_scenario:own(Topology, Seed, NodeCount)),
    Result.

%% @doc The same as `run/3', and what happened.
-spec run_traced(Scenario :: atom(), Seed :: integer(), NodeCount :: pos_integer()) ->
          {result(), [{NowUs :: non_neg_integer(), term()}]}.
run_traced(Name, Seed, NodeCount) ->
    #{world := World} = Scenario = weft_sim_scenario:build(Name, Seed, NodeCount),
    run_scenario(Seed, Scenario#{world := World#{trace => true}}).

%% @doc Runs a scenario: its steps, then the healing, then the time to settle, then the last checks.
-spec run_scenario(Seed :: integer(), weft_sim_scenario:scenario()) ->
          {result(), Trace :: [{NowUs :: non_neg_integer(), term()}]}.
run_scenario(Seed, #{world := Config, heal_at_ms := HealMs, settle_ms := SettleMs} = Scenario) ->
    Start = erlang:monotonic_time(millisecond),
    World0 = lists:foldl(fun({AtMs, Verb}, World) -> weft_sim_world:schedule(AtMs, Verb, World) end,
                         weft_sim_world:new(Config#{seed => Seed}), steps(Scenario)),
    World = weft_sim_world:settled(weft_sim_world:run_until(HealMs + SettleMs, World0)),
    {(weft_sim_world:counters(World))#{
         violation => weft_sim_world:violation(World),
         virtual_ms => weft_sim_world:now_ms(World),
         real_ms => erlang:monotonic_time(millisecond) - Start},
     weft_sim_world:trace(World)}.

steps(#{steps := Steps, lasting := Lasting, heal_at_ms := HealMs}) ->
    [Step || {AtMs, _} = Step <- Steps, AtMs < HealMs]
        ++ [{HealMs, heal_all}]
        ++ [{HealMs + AfterMs, Verb} || {AfterMs, Verb} <- Lasting].

%% @doc What was violated, when, and how to see it again.
-spec violation_text(Scenario :: atom(), Seed :: integer(), NodeCount :: pos_integer(),
                     violation()) -> iolist().
violation_text(Name, Seed, NodeCount, {AtMs, Checker, Text}) ->
    io_lib:format("~n~s, seed ~b, ~b nodes: violated at ~b ms (~s)~n  ~ts~n  Repeat it: ~ts~n",
                  [Name, Seed, NodeCount, AtMs, Checker, Text,
                   replay_command(Name, Seed, NodeCount)]).

%% @doc The command that repeats a run, for the root of the repository.
-spec replay_command(Scenario :: atom(), Seed :: integer(), NodeCount :: pos_integer()) -> iolist().
replay_command(Name, Seed, NodeCount) ->
    io_lib:format("erl -noinput -pa _build/default/lib/*/ebin -eval 'weft_sim_cli:run("
                  "[\"--scenario\", \"~s\", \"--seed\", \"~b\", \"--nodes\", \"~b\"]).'",
                  [Name, Seed, NodeCount]).
