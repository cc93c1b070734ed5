%% SPDX-License-Identifier: Apache-2.0
%% @doc A storm of locks while connections come and go: `global' on stock distribution, beside
%% `weft_global' on weft.
%%
%% Each node starts processes at its share of `--rate', each of which wants one of `?RESOURCES'
%% locks of all nodes, holds it for some milliseconds and gives it back, or gives up after
%% `?RETRIES'. Twice a second two nodes lose their connection. Meanwhile each node looks at itself:
%% the longest message queue, how many processes there are, how much memory. After `--seconds' no
%% more are started, and the time is taken until all is over (`drain_s'; -1: not within
%% `?DRAIN_MS'). Where no lock was granted there is no time until one was (`none'). Arguments:
%% `[--nodes N] [--rate R] [--seconds S] [--out DIR]'. Writes DIR/locks.csv, a row as soon as it is
%% measured.
-module(weft_bench_locks).

-export([command/0, main/1, waits_ms/1]).
-export([storm/4, look/0, result/0]).

-define(RESOURCES, 5).
-define(RETRIES, 5).
-define(HOLD_MS, 2).
-define(FLAP_MS, 500).
-define(LOOK_MS, 250).
-define(DRAIN_MS, 60000).
-define(CALL_MS, 120000).

%% @doc 0: measured, 2: not.
-spec main([string()]) -> 0 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(), "bin/bench locks").

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "a storm of locks: global, and weft_global",
      arguments =>
          [#{name => nodes, long => "-nodes", type => {integer, [{min, 2}]}, default => 30,
             value => "N", help => "how many"},
           #{name => rate, long => "-rate", type => {integer, [{min, 2}]}, default => 500,
             value => "R", help => "locks per second"},
           #{name => seconds, long => "-seconds", type => {integer, [{min, 2}]}, default => 20,
             value => "S", help => "for how long"}
           | weft_bench_arguments:common("where the results go", "locks")],
      handler => fun(Options) -> weft_bench_arguments:recorded(Options, fun run/1) end}.

run(#{nodes := Count, out := Dir} = Options) ->
    File = filename:join(Dir, "locks.csv"),
    ok = weft_bench_environment:write(Dir, Options,
                                      [{variant(Module), {cluster, shape(Count)}}
                                       || Module <- [global, weft_global]]),
    Measure = fun(Write) ->
                      [Write(cluster(Module, Options)) || Module <- [global, weft_global]]
              end,
    Rows = weft_report_file:rows(File, head(), fun line/1, Measure),
    io:format("~n~ts~nfile: ~ts~n", [[head() | [line(Row) || Row <- Rows]], File]).

cluster(Module, #{nodes := Count, out := Dir} = Options) ->
    io:format("~ts, ~b nodes, ~.1f VMs per core~n",
              [Module, Count, weft_bench_cluster:vms_per_core(Count)]),
    weft_bench_cluster:with_nodes(variant(Module), shape(Count), Dir,
                                  fun(Nodes) -> measure(Module, Nodes, Options) end).

variant(global) -> stock_mesh;
variant(weft_global) -> weft_mesh.

shape(Count) -> weft_bench_cluster:shape(Count, []).

measure(Module, Nodes, #{nodes := Count, rate := Rate, seconds := Seconds}) ->
    Roles = weft_bench_nodes:roles(Nodes),
    Names = weft_bench_cluster:nodes(Nodes),
    Before = [call(Nodes, Role, look, []) || Role <- Roles],
    lists:foreach(fun(Role) ->
                      ok = call(Nodes, Role, storm, [Module, Names, Rate / Count, Seconds * 1000])
                  end, Roles),
    EndMs = now_ms() + Seconds * 1000,
    flap(Names, Roles, Nodes, EndMs),
    DrainS = drained(Roles, Nodes, now_ms(), now_ms() + ?DRAIN_MS),
    Results = [call(Nodes, Role, result, []) || Role <- Roles],
    row(Module, Count, Rate, Seconds, DrainS, Before, Results).

flap(Names, Roles, Nodes, EndMs) ->
    case now_ms() < EndMs of
        true ->
            Role = lists:nth(rand:uniform(length(Roles)), Roles),
            Other = lists:nth(rand:uniform(length(Names)), Names),
            _ = weft_bench_nodes:call(Nodes, Role, erlang, disconnect_node, {[Other], ?CALL_MS}),
            receive after ?FLAP_MS -> ok end,
            _ = weft_bench_nodes:call(Nodes, Role, net_kernel, connect_node, {[Other], ?CALL_MS}),
            flap(Names, Roles, Nodes, EndMs);
        false ->
            ok
    end.

drained(Roles, Nodes, StartMs, DeadlineMs) ->
    case lists:sum([maps:get(running, call(Nodes, Role, result, [])) || Role <- Roles]) of
        0 -> (now_ms() - StartMs) / 1000;
        _ ->
            case now_ms() < DeadlineMs of
                true -> receive after 200 -> drained(Roles, Nodes, StartMs, DeadlineMs) end;
                false -> -1
            end
    end.

row(Module, Count, Rate, Seconds, DrainS, Before, Results) ->
    Sum = fun(Key) -> lists:sum([maps:get(Key, Result) || Result <- Results]) end,
    Max = fun(Key) -> lists:max([maps:get(Key, Result) || Result <- Results]) end,
    Waits = waits_ms(lists:append([maps:get(latencies_us, Result) || Result <- Results])),
    Growth = lists:max([maps:get(memory, After) - maps:get(memory, First)
                        || {After, First} <- lists:zip(Results, Before)]),
    Waits#{module => Module, nodes => Count, rate => Rate, seconds => Seconds,
           asked => Sum(asked), granted => Sum(granted), aborted => Sum(aborted),
           running => Sum(running), queue_max => Max(queue), processes_max => Max(processes),
           memory_growth_max_mb => Growth / 1048576, drain_s => DrainS}.

%% @private What locks took until they were granted, in the table.
-spec waits_ms(LatenciesUs :: [non_neg_integer()]) -> #{p50_ms | p99_ms := float() | none}.
waits_ms([]) -> #{p50_ms => none, p99_ms => none};
waits_ms(LatenciesUs) ->
    #{p50_ms => weft_report_statistics:percentile(50, LatenciesUs) / 1000,
      p99_ms => weft_report_statistics:percentile(99, LatenciesUs) / 1000}.

call(Nodes, Role, Function, Args) ->
    weft_bench_nodes:call(Nodes, Role, ?MODULE, Function, {Args, ?CALL_MS}).

now_ms() -> erlang:monotonic_time(millisecond).

%% --- on the nodes -----------------------------------------------------------------------------

%% @doc Starts the storm of this node, so many per second, for a time.
-spec storm(global | weft_global, [node()], PerS :: float(), DurationMs :: pos_integer()) -> ok.
storm(Module, Nodes, PerS, DurationMs) ->
    Collector = spawn(fun() -> collect(#{asked => 0, granted => 0, aborted => 0, running => 0,
                                         latencies_us => [], queue => 0, processes => 0,
                                         memory => 0}) end),
    true = register(?MODULE, Collector),
    _ = spawn(fun() -> ask(Module, Nodes, 1000 / PerS, now_ms(), 0, now_ms() + DurationMs) end),
    ok.

ask(Module, Nodes, EveryMs, StartMs, Number, EndMs) ->
    DueMs = StartMs + round(Number * EveryMs),
    case now_ms() of
        NowMs when NowMs >= EndMs -> ok;
        NowMs when NowMs < DueMs ->
            receive after DueMs - NowMs -> ask(Module, Nodes, EveryMs, StartMs, Number, EndMs) end;
        _ ->
            ?MODULE ! asked,
            _ = spawn(fun() -> ?MODULE ! want(Module, Nodes) end),
            ask(Module, Nodes, EveryMs, StartMs, Number + 1, EndMs)
    end.

want(Module, Nodes) ->
    Id = {{storm, rand:uniform(?RESOURCES)}, self()},
    StartUs = os:perf_counter(microsecond),
    Hold = fun() ->
                   GrantedUs = os:perf_counter(microsecond),
                   receive after ?HOLD_MS -> {granted, GrantedUs - StartUs} end
           end,
    Module:trans(Id, Hold, Nodes, ?RETRIES).

%% Looks at its node, too.
collect(#{latencies_us := Latencies} = Result) ->
    receive
        asked -> collect(add([asked, running], 1, Result));
        {granted, Us} ->
            Counted = add([granted], 1, add([running], -1, Result)),
            collect(Counted#{latencies_us := [Us | Latencies]});
        aborted -> collect(add([aborted], 1, add([running], -1, Result)));
        {result, From, Ref} ->
            From ! {Ref, Result},
            collect(Result)
    after ?LOOK_MS ->
        collect(looked(Result))
    end.

add(Keys, By, Result) ->
    looked_at_times(lists:foldl(fun(Key, R) -> R#{Key := maps:get(Key, R) + By} end, Result, Keys)).

looked_at_times(#{asked := Asked} = Result) when Asked rem 10 =:= 0 -> looked(Result);
looked_at_times(Result) -> Result.

looked(Result) ->
    maps:fold(fun(Key, Value, R) -> R#{Key := max(Value, maps:get(Key, R))} end, Result, look()).

%% @doc The longest message queue, the number of processes, the memory of this node.
-spec look() -> #{queue | processes | memory := non_neg_integer()}.
look() ->
    Queues = [Length || Pid <- processes(), Pid =/= self(),
                        {message_queue_len, Length} <- [process_info(Pid, message_queue_len)]],
    #{queue => lists:max(Queues), processes => erlang:system_info(process_count),
      memory => erlang:memory(total)}.

%% @doc What happened so far.
-spec result() -> #{atom() => term()}.
result() ->
    Ref = make_ref(),
    ?MODULE ! {result, self(), Ref},
    receive {Ref, Result} -> Result end.

%% --- what comes of it -------------------------------------------------------------------------

-define(COLUMNS, [module, nodes, rate, seconds, asked, granted, aborted, running, p50_ms, p99_ms,
                  queue_max, processes_max, memory_growth_max_mb, drain_s]).

head() -> weft_report_csv:line(?COLUMNS).

line(Row) -> weft_report_csv:line([text(maps:get(Column, Row)) || Column <- ?COLUMNS]).

text(Value) when is_float(Value) -> io_lib:format("~.1f", [Value]);
text(Value) -> io_lib:format("~w", [Value]).
