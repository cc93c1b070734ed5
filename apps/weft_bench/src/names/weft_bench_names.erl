%% SPDX-License-Identifier: Apache-2.0
%% @doc What a registered name costs, in clusters of growing size: the question of DE-Bench
%% (Ghaffari 2014), asked of `global' on stock distribution, and on weft of `weft_global' and of
%% both kinds of scopes of `weft_names'.
%%
%% ```
%% one      one process registers names, one after the other
%% all      processes on every node do, all at once; of them N on each, for each N of `--callers'
%% visible  from before the call until the last node sees the name
%% mix P    a process on every node calls processes on others; P of 100 operations register a name
%%          and unregister it again
%% '''
%% Each name is that of a new process: `global' gives a process one name only. Workers start at the
%% same moment (nodes of one machine share its clock) and go on for `--seconds'; what they are at
%% then is finished and counted, so a rate is that of all calls over the time until the last one
%% ended; a worker that made `?CALLS_MAX' calls has done enough. Arguments: `[--nodes N,N] [--kinds
%% K,K] [--workloads W,W] [--seconds S] [--callers N,N] [--voters N] [--out DIR]'. Without
%% `--voters' all nodes are voters of the strong scope. Writes DIR/names.csv, a row as soon as it
%% is measured.
-module(weft_bench_names).

-export([command/0, main/1, work_ms/1]).
-export([start/2, is_ready/1, work/4, seen/3, echo/0]).

-define(NODES, [10, 20, 40, 60]).
-define(KINDS, [global, weft_global, eventual, strong]).
-define(WORKLOADS, [one, all, visible, mix]).
-define(SECONDS, 5).
-define(CALLERS, [1]).
-define(MIXES, [0.01, 0.5, 1.0]).
-define(SAMPLES, 20).
-define(CALLS_MAX, 50000).
-define(CALL_MS, 180000).
-define(HEAD_START_US, 500000).
-define(SCOPE, bench).
-define(ECHO, weft_bench_names_echo).

-type kind() :: global | weft_global | eventual | strong.
-type workload() :: one | {all, Callers :: pos_integer()} | {mix, Percent :: float()}.

%% @doc 0: measured, 2: not.
-spec main([string()]) -> 0 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(), "bin/bench names").

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "names: global, weft_global, and scopes of both kinds",
      arguments =>
          [#{name => nodes, long => "-nodes", type => {list, {integer, [{min, 2}]}},
             default => ?NODES, value => "N,N", help => "clusters of so many, one after the other"},
           #{name => kinds, long => "-kinds", type => {list, {atom, ?KINDS}}, default => ?KINDS,
             value => "K,K", help => "only these kinds of names"},
           #{name => workloads, long => "-workloads", type => {list, {atom, ?WORKLOADS}},
             default => ?WORKLOADS, value => "W,W", help => "only these"},
           #{name => seconds, long => "-seconds", type => {integer, [{min, 1}]},
             default => ?SECONDS, value => "S", help => "for how long each"},
           #{name => callers, long => "-callers", type => {list, {integer, [{min, 1}]}},
             default => ?CALLERS, value => "N,N", help => "on each node"},
           #{name => voters, long => "-voters", type => {integer, [{min, 1}]}, default => all,
             value => "N", help => "of a strong scope (default: all nodes)"}
           | weft_bench_arguments:common("where the results go", "names")],
      handler => fun(Options) -> weft_bench_arguments:recorded(Options, fun run/1) end}.

run(#{nodes := Counts, kinds := Kinds, out := Dir} = Options) ->
    File = filename:join(Dir, "names.csv"),
    ok = weft_bench_environment:write(Dir, Options,
                                      [{variant(Kind), {cluster, shape(Count)}}
                                       || Kind <- Kinds, Count <- Counts]),
    Measure = fun(Write) ->
                      lists:append([cluster(Kind, Count, Write, Options)
                                    || Count <- Counts, Kind <- Kinds])
              end,
    Rows = weft_report_file:rows(File, head(), fun line/1, Measure),
    io:format("~n~ts~nfile: ~ts~n", [table(Rows), File]).

cluster(Kind, Count, Write, #{out := Dir} = Options) ->
    io:format("~ts, ~b nodes, ~.1f VMs per core~n",
              [Kind, Count, weft_bench_cluster:vms_per_core(Count)]),
    weft_bench_cluster:with_nodes(variant(Kind), shape(Count), Dir,
                                  fun(Nodes) -> rows(Kind, Nodes, Write, Options) end).

variant(global) -> stock_mesh;
variant(_OfWeft) -> weft_mesh.

shape(Count) -> weft_bench_cluster:shape(Count, []).

rows(Kind, Nodes, Write, #{workloads := Workloads, voters := Voters} = Options) ->
    ready(Kind, Nodes, Voters),
    Count = length(weft_bench_nodes:roles(Nodes)),
    [Write((measure(Workload, Kind, Nodes, Options))#{kind => Kind, nodes => Count,
                                                      workload => Workload})
     || Wanted <- Workloads, Workload <- expanded(Wanted, Options)].

expanded(mix, _Options) -> [{mix, Percent} || Percent <- ?MIXES];
expanded(all, #{callers := Counts}) -> [{all, Callers} || Callers <- Counts];
expanded(Workload, _Options) -> [Workload].

%% Every node has the scope and can register in it.
ready(Kind, Nodes, Voters) ->
    Names = case Voters of
                all -> weft_bench_cluster:nodes(Nodes);
                Count -> lists:sublist(weft_bench_cluster:nodes(Nodes), Count)
            end,
    _ = on_all(Nodes, fun(Role) -> ok = call(Nodes, Role, start, [Kind, Names]) end),
    DeadlineMs = erlang:monotonic_time(millisecond) + ?CALL_MS,
    lists:foreach(fun(Role) ->
                      until(fun() -> call(Nodes, Role, is_ready, [Kind]) end, DeadlineMs)
                  end, weft_bench_nodes:roles(Nodes)).

measure(visible, Kind, Nodes, _Options) ->
    [First | _] = Roles = lists:sort(weft_bench_nodes:roles(Nodes)),
    Latencies = [visible(Kind, Sample, First, Roles, Nodes) || Sample <- lists:seq(1, ?SAMPLES)],
    row(Latencies, lists:sum(Latencies), 1);
measure(Workload, Kind, Nodes, #{seconds := Seconds}) ->
    All = weft_bench_nodes:roles(Nodes),
    Roles = case Workload of
                one -> [{n, 1}];
                {all, Callers} -> lists:append(lists:duplicate(Callers, All));
                {mix, _} -> All
            end,
    StartUs = os:perf_counter(microsecond) + ?HEAD_START_US,
    Times = {StartUs, StartUs + Seconds * 1000000},
    Names = weft_bench_cluster:nodes(Nodes),
    Results = on_each(Roles, fun(Role) ->
                                 weft_bench_nodes:call(Nodes, Role, ?MODULE, work,
                                                       {[Workload, Kind, Times, Names],
                                                        work_ms(Seconds)})
                             end),
    {Latencies, Ends} = lists:unzip(Results),
    row(lists:append(Latencies), lists:max(Ends) - StartUs, length(Roles)).

%% @private How long work/4 may take: so long, and what the last call of each worker takes.
-spec work_ms(Seconds :: pos_integer()) -> pos_integer().
work_ms(Seconds) -> ?HEAD_START_US div 1000 + Seconds * 1000 + ?CALL_MS.

row(Latencies, ElapsedUs, Callers) ->
    #{latency_p50_us := P50, latency_p99_us := P99, latency_max_us := Max, calls := Calls} =
        weft_report_statistics:latencies(Latencies),
    #{callers => Callers, calls => Calls, calls_per_s => Calls * 1.0e6 / ElapsedUs,
      p50_us => P50, p99_us => P99, max_us => Max}.

%% Each node looks every millisecond; who registers waits until all have seen it.
visible(Kind, Sample, First, Roles, Nodes) ->
    Name = {visible, Sample},
    Watching = [{Role, spawn_call(fun() -> call(Nodes, Role, seen, [Kind, Name, watch]) end)}
                || Role <- Roles],
    until(fun() -> lists:all(fun(Role) -> call(Nodes, Role, seen, [Kind, Name, watches]) end, Roles)
          end, erlang:monotonic_time(millisecond) + ?CALL_MS),
    StartUs = call(Nodes, First, seen, [Kind, Name, register]),
    lists:max([received(Watch) || {_Role, Watch} <- Watching]) - StartUs.

on_all(Nodes, Fun) -> on_each(weft_bench_nodes:roles(Nodes), Fun).

on_each(Roles, Fun) ->
    [received(Call) || Call <- [spawn_call(fun() -> Fun(Role) end) || Role <- Roles]].

spawn_call(Fun) ->
    Self = self(),
    spawn_monitor(fun() -> Self ! {self(), Fun()} end).

received({Pid, Monitor}) ->
    receive
        {Pid, Result} -> demonitor(Monitor, [flush]), Result;
        {'DOWN', Monitor, process, Pid, Why} -> error(Why)
    end.

call(Nodes, Role, Function, Args) ->
    weft_bench_nodes:call(Nodes, Role, ?MODULE, Function, {Args, ?CALL_MS}).

until(Condition, DeadlineMs) ->
    case Condition() of
        true -> ok;
        false ->
            erlang:monotonic_time(millisecond) < DeadlineMs orelse error(not_ready),
            receive after 20 -> until(Condition, DeadlineMs) end
    end.

%% --- on the nodes -----------------------------------------------------------------------------

%% @doc Starts the scope, and a process that answers.
-spec start(kind(), Voters :: [node()]) -> ok.
start(Kind, Voters) ->
    true = register(?ECHO, spawn(?MODULE, echo, [])),
    case Kind of
        _ when Kind =:= global; Kind =:= weft_global -> ok;
        eventual -> weft_names:start_scope(?SCOPE, #{});
        strong -> weft_names:start_scope(?SCOPE, #{kind => strong, voters => Voters})
    end.

%% @private
-spec echo() -> no_return().
echo() ->
    receive {echo, From, Ref} -> From ! Ref end,
    ?MODULE:echo().

%% @doc Does a name come and go again here?
-spec is_ready(kind()) -> boolean().
is_ready(Kind) ->
    Name = {ready, make_ref()},
    try is_registered(Kind, Name, self()) of
        true -> _ = unregister(Kind, Name), true;
        false -> false
    catch
        _:_ -> false
    end.

is_registered(Module, Name, Pid) when Module =:= global; Module =:= weft_global ->
    Module:register_name(Name, Pid) =:= yes;
is_registered(_, Name, Pid) -> weft_names:register({?SCOPE, Name}, Pid) =:= ok.

unregister(Module, Name) when Module =:= global; Module =:= weft_global ->
    Module:unregister_name(Name);
unregister(_, Name) -> ok = weft_names:unregister({?SCOPE, Name}).

whereis_name(Module, Name) when Module =:= global; Module =:= weft_global ->
    Module:whereis_name(Name);
whereis_name(_, Name) -> weft_names:whereis_name({?SCOPE, Name}).

%% @doc Works from one time to the other: microseconds of each operation, and the time of the end.
%% Names go with their process.
-spec work(workload(), kind(), {StartUs :: integer(), EndUs :: integer()}, [node()]) ->
          {[non_neg_integer()], EndedUs :: integer()}.
work(Workload, Kind, {StartUs, EndUs}, Nodes) ->
    received(spawn_call(fun() ->
                            WaitMs = (StartUs - os:perf_counter(microsecond)) div 1000,
                            receive after max(0, WaitMs) -> ok end,
                            repeat(operation(Workload, Kind, list_to_tuple(Nodes)), 1, EndUs, [])
                        end)).

repeat(Operation, Number, EndUs, Latencies) ->
    StartUs = os:perf_counter(microsecond),
    ok = Operation({StartUs, Number}),
    case os:perf_counter(microsecond) of
        NowUs when NowUs < EndUs, Number < ?CALLS_MAX ->
            repeat(Operation, Number + 1, EndUs, [NowUs - StartUs | Latencies]);
        NowUs -> {[NowUs - StartUs | Latencies], NowUs}
    end.

operation({mix, Percent}, Kind, Nodes) ->
    fun({_, Number} = Unique) ->
            case rand:uniform() * 100 < Percent of
                true ->
                    Name = {self(), Unique},
                    Keeper = keeper(),
                    true = is_registered(Kind, Name, Keeper),
                    _ = unregister(Kind, Name),
                    true = exit(Keeper, kill),
                    ok;
                false ->
                    answered(element(Number rem tuple_size(Nodes) + 1, Nodes))
            end
    end;
operation(_OneOrAll, Kind, _Nodes) ->
    fun(Unique) ->
            true = is_registered(Kind, {self(), Unique}, keeper()),
            ok
    end.

keeper() -> spawn(fun() -> receive the_end -> ok end end).

answered(Node) ->
    Ref = make_ref(),
    {?ECHO, Node} ! {echo, self(), Ref},
    receive Ref -> ok end.

%% @doc `watch' waits for a name, and tells when it was seen; `watches': does somebody? `register'
%% registers it, and tells when it began to.
-spec seen(kind(), Name :: term(), watch | watches | register) -> boolean() | integer().
seen(Kind, Name, watch) ->
    true = register(?MODULE, self()),
    AtUs = watch(Kind, Name),
    true = erlang:unregister(?MODULE),
    AtUs;
seen(_Kind, _Name, watches) ->
    whereis(?MODULE) =/= undefined;
seen(Kind, Name, register) ->
    Keeper = keeper(),
    StartUs = os:perf_counter(microsecond),
    true = is_registered(Kind, Name, Keeper),
    StartUs.

watch(Kind, Name) ->
    case whereis_name(Kind, Name) of
        undefined -> receive after 1 -> watch(Kind, Name) end;
        _ -> os:perf_counter(microsecond)
    end.

%% --- what comes of it -------------------------------------------------------------------------

-define(COLUMNS, [kind, nodes, workload, callers, calls, calls_per_s, p50_us, p99_us, max_us]).

head() -> weft_report_csv:line(?COLUMNS).

line(Row) -> weft_report_csv:line([text(maps:get(Column, Row)) || Column <- ?COLUMNS]).

table(Rows) ->
    Header = ["workload", "kind", "nodes", "callers", "calls", "calls/s", "p50 ms", "p99 ms",
              "max ms"],
    [io_lib:format("~-10s ~-9s ~5s ~7s ~8s ~9s ~9s ~9s ~9s~n", Header)
     | [io_lib:format("~-10ts ~-9s ~5b ~7b ~8b ~9.1f ~9.3f ~9.3f ~9.3f~n",
                      [text(Workload), Kind, Count, Callers, Calls, float(PerS), P50 / 1000,
                       P99 / 1000, Max / 1000])
        || #{workload := Workload, kind := Kind, nodes := Count, callers := Callers,
             calls := Calls, calls_per_s := PerS, p50_us := P50, p99_us := P99,
             max_us := Max} <- sorted(Rows)]].

sorted(Rows) ->
    lists:sort(fun(#{workload := A, kind := KindA}, #{workload := B, kind := KindB}) ->
                       {text(A), KindA} =< {text(B), KindB}
               end, Rows).

text({all, _Callers}) -> "all";
text({mix, Percent}) -> io_lib:format("mix ~w", [Percent]);
text(Value) when is_float(Value) -> io_lib:format("~.1f", [Value]);
text(Value) -> io_lib:format("~w", [Value]).
