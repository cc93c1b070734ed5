%% SPDX-License-Identifier: Apache-2.0
%% @doc Processes that compute without end, for a while: what makes a node busy. Runs on the nodes
%% under test.
%%
%% They may keep all others of the node from running, whoever rules it too. So all is begun before
%% they are, and a process of the highest priority ends them when it is time, or before if it is
%% told to. What they do is a list and its sum, again and again; each counts.
-module(weft_bench_computing).

-export([start_echo/0, start_relay/1, begin_to_compute/1, stop/1, result/2, calls/4]).
-export_type([plan/0]).

%% Numbers whose sum is one piece of work: some microseconds.
-define(NUMBERS, 500).
%% Before they begin, so that whoever asked for it gets his answer.
-define(LEAD_MS, 100).

-type plan() :: #{count := non_neg_integer(), priority := normal | high,
                  %% So many schedulers; `all' that there are.
                  schedulers := pos_integer() | all,
                  for_ms := pos_integer(),
                  %% What is counted begins so much later.
                  warm_up_ms := non_neg_integer()}.

%% @doc A process of the highest priority that answers.
-spec start_echo() -> pid().
start_echo() ->
    spawn_opt(fun echo/0, [{priority, max}]).

echo() ->
    receive
        {ping, From, Ref} -> From ! {Ref, pong}, echo()
    end.

%% @doc A process of the highest priority that has another one answer, and hands on its answers.
-spec start_relay(Echo :: pid()) -> pid().
start_relay(Echo) ->
    spawn_opt(fun() -> relay(Echo, none) end, [{priority, max}]).

%% There is one who calls.
relay(Echo, Caller) ->
    receive
        {ping, From, Ref} -> Echo ! {ping, self(), Ref}, relay(Echo, From);
        {_Ref, pong} = Answer -> Caller ! Answer, relay(Echo, Caller)
    end.

%% @doc Processes begin to compute in a moment, and end after `for_ms'. See result/2.
-spec begin_to_compute(plan()) -> Conductor :: pid().
begin_to_compute(Plan) ->
    spawn_opt(fun() -> conduct(Plan) end, [{priority, max}]).

conduct(#{count := Count, priority := Priority, schedulers := Schedulers, for_ms := ForMs,
          warm_up_ms := WarmUpMs}) ->
    Before = erlang:system_flag(schedulers_online, online(Schedulers)),
    %% What is used for the first time is loaded, by a process that may not have its turn later.
    _ = cpu_us(),
    wait(?LEAD_MS),
    Work = counters:new(1, [write_concurrency]),
    All = [spawn_opt(fun() -> compute(Work) end, [{priority, Priority}])
           || _ <- lists:seq(1, Count)],
    wait(WarmUpMs),
    Begin = {now_us(), cpu_us(), counters:get(Work, 1)},
    receive stop -> ok after ForMs - WarmUpMs -> ok end,
    End = {now_us(), cpu_us(), counters:get(Work, 1)},
    [exit(Pid, kill) || Pid <- All],
    _ = erlang:system_flag(schedulers_online, Before),
    receive {result, From, Ref} -> From ! {Ref, difference(Begin, End)} end.

online(all) -> erlang:system_info(schedulers);
online(Count) -> Count.

wait(Ms) ->
    receive after Ms -> ok end.

compute(Work) ->
    _ = lists:sum(lists:seq(1, ?NUMBERS)),
    counters:add(Work, 1, 1),
    compute(Work).

difference({BeginUs, BeginCpuUs, BeginWork}, {EndUs, EndCpuUs, EndWork}) ->
    #{elapsed_us => EndUs - BeginUs, cpu_us => EndCpuUs - BeginCpuUs, work => EndWork - BeginWork}.

%% @doc They need not go on. Where they keep all others from running this comes too late.
-spec stop(Conductor :: pid()) -> ok.
stop(Conductor) ->
    Conductor ! stop,
    ok.

%% @doc When they have ended: time that went by, processor time of the node, and pieces of work.
-spec result(Conductor :: pid(), TimeoutMs :: pos_integer()) ->
          #{elapsed_us := pos_integer(), cpu_us := non_neg_integer(), work := non_neg_integer()}.
result(Conductor, TimeoutMs) ->
    Ref = make_ref(),
    Conductor ! {result, self(), Ref},
    receive {Ref, Result} -> Result after TimeoutMs -> error(timeout) end.

%% @doc On the calling node, by a process of the highest priority: calls for DurationMs, each given
%% up after TimeoutMs and then counted with that time. Latencies as metrics, with the number of
%% those given up and of nodes that were lost meanwhile.
-spec calls(Echo :: pid(), DurationMs :: pos_integer(), TimeoutMs :: pos_integer(),
            PauseMs :: non_neg_integer()) -> #{atom() => number()}.
calls(Echo, DurationMs, TimeoutMs, PauseMs) ->
    Caller = self(),
    Calls = fun() -> Caller ! {self(), measure(Echo, DurationMs, TimeoutMs, PauseMs)} end,
    {Pid, Monitor} = spawn_opt(Calls, [monitor, {priority, max}]),
    receive
        {Pid, Metrics} ->
            true = demonitor(Monitor, [flush]),
            Metrics;
        {'DOWN', Monitor, process, Pid, Reason} ->
            error(Reason)
    end.

measure(Echo, DurationMs, TimeoutMs, PauseMs) ->
    ok = weft_bench_nodedowns:watch(),
    LatenciesUs = calls(Echo, now_us() + DurationMs * 1000, TimeoutMs, PauseMs, []),
    Metrics = weft_report_statistics:latencies(LatenciesUs),
    Metrics#{timeouts => length([Us || Us <- LatenciesUs, Us >= TimeoutMs * 1000]),
             nodedowns => length(weft_bench_nodedowns:seen())}.

calls(Echo, EndUs, TimeoutMs, PauseMs, LatenciesUs) ->
    All = [call(Echo, TimeoutMs) | LatenciesUs],
    PauseMs > 0 andalso wait(PauseMs),
    case now_us() < EndUs of
        true -> calls(Echo, EndUs, TimeoutMs, PauseMs, All);
        false -> All
    end.

call(Echo, TimeoutMs) ->
    Ref = make_ref(),
    StartUs = now_us(),
    Echo ! {ping, self(), Ref},
    receive {Ref, pong} -> ok after TimeoutMs -> ok end,
    min(now_us() - StartUs, TimeoutMs * 1000).

now_us() -> os:perf_counter(microsecond).

cpu_us() -> weft_bench_nodes:cpu_us_of("self").
