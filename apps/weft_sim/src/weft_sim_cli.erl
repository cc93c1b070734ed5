%% SPDX-License-Identifier: Apache-2.0
%% @doc The simulator from the command line: runs scenarios over many seeds and prints a table. The
%% arguments are in command/0 and in `--help'; leading dashes may be left out. Without a choice of
%% scenario, seeds or nodes the figures follow.
%% The first violation of a scenario ends its row and is told with the command that repeats it.
-module(weft_sim_cli).

-export([run/1, main/1]).

-record(plan, {scenario :: atom(), nodes :: pos_integer(), seeds :: [integer()]}).

%% @doc `main/1', then ends the emulator with its exit status.
-spec run([string()]) -> no_return().
run(Arguments) ->
    halt(main(Arguments)).

%% @doc Runs what the arguments say. 0: all invariants held, 1: a violation, 2: bad arguments.
-spec main([string()]) -> 0 | 1 | 2.
main(Arguments) ->
    Names = [Long || #{long := [$- | Long]} <- arguments()],
    weft_argparse:run([with_dashes(Word, Names) || Word <- Arguments, Word =/= ""], command(),
                      "weft_sim").

with_dashes(Word, Names) ->
    Name = string:trim(Word, leading, "-"),
    case lists:member(Name, Names) of
        true -> "--" ++ Name;
        false -> Word
    end.

command() ->
    #{help => "simulates the protocols in virtual time", arguments => arguments(),
      handler => fun simulated/1}.

arguments() ->
    [#{name => scenario, long => "-scenario", type => {atom, weft_sim_scenario:names()},
       value => "NAME", help => "only this one"},
     #{name => seed, long => "-seed", type => {integer, [{min, 1}]}, help => "only this one"},
     #{name => seeds, long => "-seeds", type => {integer, [{min, 1}]}, value => "COUNT",
       help => "those from 1 to so many"},
     #{name => nodes, long => "-nodes", type => {integer, [{min, 1}]}, value => "COUNT",
       help => "so many"},
     #{name => from, long => "-from", type => {integer, [{min, 1}]}, value => "SEED",
       help => "the first seed, with --nightly"},
     #{name => to, long => "-to", type => {integer, [{min, 1}]}, value => "SEED",
       help => "the last one"}
     | [#{name => Name, long => "-" ++ atom_to_list(Name), type => boolean, help => Help}
        || {Name, Help} <- [{quick, "fewer seeds and nodes, about two minutes"},
                            {trace, "what happens, with --scenario and --seed"},
                            {list, "the scenarios"},
                            {swim, "only the figures of the failure detector"},
                            {gossip, "only those of large peer-to-peer clusters"},
                            {sites, "only a cluster on several sites, with nearer neighbours"},
                            {plots, "only the page with plots of one"},
                            {nightly, "100,000 schedules of faults"},
                            {resume, "those of them that were not done yet"}]]].

simulated(#{list := true}) ->
    list();
simulated(#{trace := true, scenario := Scenario, seed := Seed} = Options) ->
    trace(Scenario, Seed, maps:get(nodes, Options, 5));
simulated(#{trace := true}) ->
    failed("--trace needs --scenario and --seed");
simulated(#{swim := true} = Options) ->
    figures([fun weft_sim_swim:print/1], Options);
simulated(#{nightly := true} = Options) ->
    nightly(weft_sim_nightly:seeds(Options));
simulated(#{gossip := true, nodes := Nodes}) ->
    figures([fun(_) -> gossip(Nodes) end], #{});
simulated(#{gossip := true} = Options) ->
    figures([fun weft_sim_gossip_report:print/1], Options);
simulated(#{sites := true} = Options) ->
    figures([fun weft_sim_sites:print/1], Options);
simulated(#{plots := true} = Options) ->
    figures([fun weft_sim_report:print/1], Options);
simulated(Options) when is_map_key(scenario, Options); is_map_key(seed, Options);
                        is_map_key(seeds, Options); is_map_key(nodes, Options) ->
    run_plans(plans(Options));
simulated(Options) ->
    max(run_plans(plans(Options)),
        figures([fun weft_sim_swim:print/1, fun weft_sim_gossip_report:print/1,
                 fun weft_sim_sites:print/1, fun weft_sim_report:print/1], Options)).

failed(Text) ->
    io:format(standard_error, "~ts~n", [Text]),
    2.

list() ->
    lists:foreach(fun(Name) ->
                      io:format("~-16s ~s~n", [Name, weft_sim_scenario:describe(Name)])
                  end, weft_sim_scenario:names()),
    0.

%% --- plans ---

plans(#{quick := true} = Options) ->
    chosen([small(Name, 20, 200) || Name <- weft_sim_scenario:names()], Options);
plans(Options) ->
    Small = [small(Name, 100, 1000) || Name <- weft_sim_scenario:names()],
    Large = [#plan{scenario = Name, nodes = 100, seeds = lists:seq(1, 5)}
             || Name <- [static_churn, static_costs, static_restarts, groups_churn]],
    Meshes = [#plan{scenario = Name, nodes = 50, seeds = lists:seq(1, 3)}
              || Name <- [mesh_churn, mesh_leave, swim_churn, swim_leave]],
    chosen(Small ++ Large ++ Meshes, Options).

%% A session needs two ends and two gateways, and takes milliseconds: many seeds instead of nodes.
small(Name, _Seeds, SessionSeeds)
  when Name =:= session_faults; Name =:= session_lanes; Name =:= session_lives ->
    #plan{scenario = Name, nodes = 4, seeds = lists:seq(1, SessionSeeds)};
%% An hour, or minutes, each.
small(Name, Seeds, _SessionSeeds) when Name =:= session_silence; Name =:= session_stopped ->
    #plan{scenario = Name, nodes = 4, seeds = lists:seq(1, Seeds)};
%% Three histories each, which take longer to check than to make.
small(Name, Seeds, _SessionSeeds) ->
    case lists:member(Name, weft_sim_names_scenario:names()) of
        true -> #plan{scenario = Name, nodes = 5, seeds = lists:seq(1, 4 * Seeds)};
        false -> #plan{scenario = Name, nodes = 20, seeds = lists:seq(1, Seeds)}
    end.

chosen(Plans, Options) ->
    Wanted = [Plan || Plan <- Plans, is_wanted(Plan, Options)],
    lists:usort([Plan#plan{nodes = maps:get(nodes, Options, Plan#plan.nodes),
                           seeds = seeds(Plan, Options)} || Plan <- Wanted]).

is_wanted(#plan{scenario = Name}, #{scenario := Wanted}) -> Name =:= Wanted;
is_wanted(_Plan, _Options) -> true.

seeds(_Plan, #{seed := Seed}) -> [Seed];
seeds(_Plan, #{seeds := Count}) -> lists:seq(1, Count);
seeds(Plan, _Options) -> Plan#plan.seeds.

%% --- running ---

run_plans(Plans) ->
    io:format("~-16s ~5s ~5s ~9s ~9s ~10s ~9s ~7s  ~s~n",
              ["scenario", "nodes", "seeds", "virtual s", "events", "messages", "kB", "real s",
               "result"]),
    Failures = lists:append([run_plan(Plan) || Plan <- Plans]),
    lists:foreach(fun print_failure/1, Failures),
    case Failures of
        [] -> io:format("All invariants held.~n"), 0;
        _ -> 1
    end.

run_plan(#plan{scenario = Name, nodes = Nodes, seeds = Seeds}) ->
    {Done, Failure, Sums} = run_seeds(Seeds, Name, Nodes, 0, #{}),
    [VirtualMs, Events, Messages, Bytes, RealMs] =
        [maps:get(Key, Sums, 0) || Key <- [virtual_ms, events, messages, bytes, real_ms]],
    io:format("~-16s ~5b ~5b ~9b ~9b ~10b ~9b ~7.1f  ~s~n",
              [Name, Nodes, Done, VirtualMs div 1000, Events, Messages, Bytes div 1000,
               RealMs / 1000, case Failure of [] -> "ok"; _ -> "VIOLATED" end]),
    Failure.

run_seeds([], _Name, _Nodes, Done, Sums) ->
    {Done, [], Sums};
run_seeds([Seed | Rest], Name, Nodes, Done, Sums0) ->
    Result = weft_sim:run(Name, Seed, Nodes),
    {Violation, Numbers} = maps:take(violation, Result),
    Sums = maps:map(fun(Key, Number) -> Number + maps:get(Key, Sums0, 0) end, Numbers),
    case Violation of
        none -> run_seeds(Rest, Name, Nodes, Done + 1, Sums);
        _ -> {Done + 1, [{Name, Seed, Nodes, Violation}], Sums}
    end.

nightly({From, To}) when From > To ->
    failed(io_lib:format("nothing to do: all seeds up to ~b are done", [To]));
nightly({From, To}) ->
    case weft_sim_nightly:run(From, To) of
        true -> 0;
        false -> 1
    end.

gossip(Nodes) ->
    weft_sim_gossip_report:print([Nodes], weft_sim_gossip_report:file()).

figures(Prints, Options) ->
    Size = case Options of #{quick := true} -> quick; #{} -> full end,
    Misses = lists:append([Print(Size) || Print <- Prints]),
    lists:foreach(fun(Miss) -> io:format("MISSED: ~ts~n", [Miss]) end, Misses),
    case Misses of [] -> 0; _ -> 1 end.

print_failure({Name, Seed, Nodes, Violation}) ->
    io:put_chars(weft_sim:violation_text(Name, Seed, Nodes, Violation)).

trace(Scenario, Seed, Nodes) ->
    {Result, Trace} = weft_sim:run_traced(Scenario, Seed, Nodes),
    io:put_chars(weft_sim_trace:format(Trace)),
    case Result of
        #{violation := none} -> io:format("All invariants held.~n"), 0;
        #{violation := Violation} -> print_failure({Scenario, Seed, Nodes, Violation}), 1
    end.
