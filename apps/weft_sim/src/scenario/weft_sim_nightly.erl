%% SPDX-License-Identifier: Apache-2.0
%% @doc Many simulated fault schedules: each seed once in every scenario, on all cores.
%%
%% A schedule is a scenario with a seed; the seed says how many nodes there are too, few, so that
%% one takes some hundredths of a second. Seeds are taken in order. After each, the last one up to
%% which all are done is written to a file, so that a run that was stopped goes on there. A
%% violation is told at once, with the command that repeats it, and the others go on.
-module(weft_sim_nightly).

-export([run/2, seeds/1, file/0]).

-define(SCHEDULES, 100000).
-define(PROGRESS_MS, 10000).
-define(VIOLATIONS_MAX, 20).
-define(NODES_MIN, 4).
-define(NODES_MAX, 12).
%% Two ends and two gateways.
-define(SESSION_NODES, 4).

-record(run, {next :: pos_integer(),
              last :: pos_integer(),
              first :: pos_integer(),
              %% Seeds above `done' that are finished.
              finished = [] :: [pos_integer()],
              done :: non_neg_integer(),
              schedules = 0 :: non_neg_integer(),
              violations = 0 :: non_neg_integer(),
              workers = 0 :: non_neg_integer(),
              start_ms :: integer()}).

%% @doc The seeds to run: `from' (1) to `to' (as many as make 100,000 schedules), or after those
%% that are done already (`resume').
-spec seeds(#{from => pos_integer(), to => pos_integer(), resume => true, atom() => term()}) ->
          {From :: pos_integer(), To :: pos_integer()}.
seeds(Options) ->
    Scenarios = length(weft_sim_scenario:names()),
    From = case Options of
               #{resume := true} -> last_done() + 1;
               #{} -> maps:get(from, Options, 1)
           end,
    {From, maps:get(to, Options, max(From, (?SCHEDULES + Scenarios - 1) div Scenarios))}.

last_done() ->
    case file:read_file(file()) of
        {ok, Text} -> binary_to_integer(string:trim(Text));
        {error, enoent} -> 0
    end.

%% @doc Where the last seed is written up to which all are done.
-spec file() -> file:filename().
file() ->
    filename:join(os:getenv("REBAR_BASE_DIR", "_build"), "sim/nightly.done").

%% @doc Runs all scenarios with these seeds. True if no invariant was violated.
-spec run(From :: pos_integer(), To :: pos_integer()) -> boolean().
run(From, To) ->
    Scenarios = length(weft_sim_scenario:names()),
    io:format("~b schedules: ~b scenarios with the seeds ~b to ~b, ~b to ~b nodes, ~b at a time~n",
              [(To - From + 1) * Scenarios, Scenarios, From, To, ?NODES_MIN, ?NODES_MAX,
               erlang:system_info(schedulers_online)]),
    ok = filelib:ensure_dir(file()),
    Timer = timer_ref(),
    #run{schedules = Schedules, violations = Violations, start_ms = StartMs, done = Done} = Run =
        loop(Timer, start(erlang:system_info(schedulers_online),
                          #run{next = From, first = From, last = To, done = From - 1,
                               start_ms = now_ms()})),
    io:format("~b schedules in ~s, ~b violations~n",
              [Schedules, duration(now_ms() - StartMs), Violations]),
    _ = Done < To andalso io:format("Stopped. Go on with ~s~n", [resume_command(Run)]),
    Violations =:= 0.

start(0, Run) -> Run;
start(Count, Run) -> start(Count - 1, next(Run)).

%% One process per seed: its garbage goes with it.
next(#run{next = Next, last = Last, violations = Violations} = Run)
  when Next > Last; Violations >= ?VIOLATIONS_MAX ->
    Run;
next(#run{next = Seed, workers = Workers} = Run) ->
    Self = self(),
    _ = spawn_link(fun() -> Self ! {seed, Seed, violations(Seed)} end),
    Run#run{next = Seed + 1, workers = Workers + 1}.

violations(Seed) ->
    lists:append([violation(Name, Seed, node_count(Name, Seed))
                  || Name <- weft_sim_scenario:names()]).

violation(Name, Seed, Nodes) ->
    try weft_sim:run(Name, Seed, Nodes) of
        #{violation := none} -> [];
        #{violation := Violation} -> [{Name, Seed, Nodes, Violation}]
    catch
        Class:Reason:Stack ->
            Text = io_lib:format("~0tp ~0tp at ~0tp", [Class, Reason, lists:sublist(Stack, 3)]),
            [{Name, Seed, Nodes, {0, crash, lists:flatten(Text)}}]
    end.

tell({Name, Seed, Nodes, Violation}) ->
    io:put_chars(weft_sim:violation_text(Name, Seed, Nodes, Violation)).

node_count(Name, _Seed) when Name =:= session_faults; Name =:= session_lanes;
                                   Name =:= session_silence; Name =:= session_stopped;
                                   Name =:= session_lives ->
    ?SESSION_NODES;
node_count(_Name, Seed) -> ?NODES_MIN + Seed rem (?NODES_MAX - ?NODES_MIN + 1).

loop(_Timer, #run{workers = 0} = Run) ->
    Run;
loop(Timer, #run{workers = Workers} = Run) ->
    receive
        {seed, Seed, Violations} ->
            lists:foreach(fun tell/1, Violations),
            loop(Timer, next(finished(Seed, length(Violations), Run#run{workers = Workers - 1})));
        {Timer, progress} ->
            io:format("~ts~n", [progress(Run)]),
            erlang:send_after(?PROGRESS_MS, self(), {Timer, progress}),
            loop(Timer, Run)
    end.

timer_ref() ->
    Ref = make_ref(),
    _ = erlang:send_after(?PROGRESS_MS, self(), {Ref, progress}),
    Ref.

finished(Seed, Violations, #run{finished = Finished, done = Done0, schedules = Schedules} = Run) ->
    {Done, Left} = advance(Done0, lists:sort([Seed | Finished])),
    ok = file:write_file(file(), [integer_to_list(Done), $\n]),
    Run#run{done = Done, finished = Left, violations = Run#run.violations + Violations,
            schedules = Schedules + length(weft_sim_scenario:names())}.

advance(Done, [Next | Finished]) when Next =:= Done + 1 -> advance(Next, Finished);
advance(Done, Finished) -> {Done, Finished}.

progress(#run{schedules = Schedules, first = First, last = Last, violations = Violations,
              start_ms = StartMs} = Run) ->
    Total = (Last - First + 1) * length(weft_sim_scenario:names()),
    ElapsedMs = now_ms() - StartMs,
    Left = case Schedules of
               0 -> "not known yet";
               _ -> duration(ElapsedMs * (Total - Schedules) div Schedules)
           end,
    io_lib:format("~b of ~b (~.1f %), ~.1f per second, ~b violations, ~s left; to go on later: ~s",
                  [Schedules, Total, 100 * Schedules / Total, 1000 * Schedules / max(1, ElapsedMs),
                   Violations, Left, resume_command(Run)]).

resume_command(#run{done = Done, last = Last}) ->
    io_lib:format("make nightly FROM=~b TO=~b", [Done + 1, Last]).

duration(Ms) ->
    Minutes = Ms div 60000,
    case Minutes of
        0 -> io_lib:format("~b s", [Ms div 1000]);
        _ -> io_lib:format("~b min ~b s", [Minutes, Ms rem 60000 div 1000])
    end.

now_ms() -> erlang:monotonic_time(millisecond).
