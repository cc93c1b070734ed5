%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs a load (`weft_load_config'): starts the workers, reads their meters each second, writes
%% the results as they come, and ends what hangs.
%%
%% Workers that end, finished or not, are counted, and the others go on; when none is left the run
%% is over early. At the end each has `operation_timeout_s' to finish its operation; what hangs
%% longer is killed and told. Whatever happens, what was measured is in the files.
-module(weft_load).

-export([run/2, silent/1]).
-export_type([outcome/0]).

-type outcome() :: #{total := weft_load_meters:reading(), elapsed_us := pos_integer(),
                     errors := [{atom(), binary(), pos_integer()}], hung := non_neg_integer(),
                     finished := non_neg_integer(), crashed := [term()]}.

-define(TICK_MS, 1000).
-define(READY_MS, 60000).

-record(run, {config :: weft_load_config:config(),
              files :: weft_load_files:files(),
              meters :: weft_load_meters:meters(),
              workers :: #{pid() => reference()},
              start_us :: integer(),
              last :: weft_load_meters:reading(),
              finished = 0 :: non_neg_integer(),
              crashed = [] :: [term()],
              progress :: fun((unicode:chardata()) -> term())}).

%% @doc Runs a load and writes its results to a directory, which is made. Progress gets a line each
%% second. The error is a text; results up to it are kept.
-spec run(weft_load_config:config(),
          #{dir := file:filename(), progress := fun((unicode:chardata()) -> term())}) ->
          {ok, outcome()} | {error, string()}.
run(Config, #{dir := Dir, progress := Progress}) ->
    case driver(Config) of
        ok ->
            Meters = weft_load_meters:new(labels(Config)),
            case weft_load_files:open(Dir, Config, weft_load_meters:labels(Meters)) of
                {ok, Files} ->
                    try started(Config, Files, Meters, Progress)
                    catch throw:{load, Text} -> {error, lists:flatten(io_lib:format("~ts", [Text]))}
                    after weft_load_files:close(Files)
                    end;
                {error, Text} -> {error, Text}
            end;
        {error, Text} ->
            {error, Text}
    end.

%% @doc Progress that nobody looks at.
-spec silent(unicode:chardata()) -> ok.
silent(_Line) -> ok.

%% A driver that counts operations as others (`as') tells which there may be.
labels(#{driver := Driver, operations := Operations}) ->
    Labels = lists:usort([Label || {Label, _, _} <- Operations]),
    case erlang:function_exported(Driver, labels, 1) of
        true -> Driver:labels(Labels);
        false -> Labels
    end.

driver(#{driver := Driver, code_paths := Paths, source_dir := SourceDir, pairs := Pairs}) ->
    ok = basho_bench_config:load(Pairs),
    ok = code:add_paths([Path || Path <- Paths, is_list(Path)]),
    case weft_load_source:load(Driver, SourceDir) of
        ok ->
            case erlang:function_exported(Driver, new, 1)
                andalso erlang:function_exported(Driver, run, 4) of
                true -> ok;
                false -> text("driver ~ts has no new/1 and run/4", [Driver])
            end;
        {error, Text} ->
            text("driver ~ts: ~ts", [Driver, Text])
    end.

text(Format, Arguments) -> {error, lists:flatten(io_lib:format(Format, Arguments))}.

started(#{concurrent := Count, warm_up_ms := WarmUpMs, duration_ms := DurationMs} = Config, Files,
        Meters, Progress) ->
    Shared = #{meters => Meters, stop => Stop = atomics:new(1, [])},
    Workers = [weft_load_worker:start(Id, Config, Shared) || Id <- lists:seq(1, Count)],
    try
        lists:foreach(fun ready/1, Workers),
        StartUs = erlang:monotonic_time(microsecond) + 1000 * WarmUpMs,
        EndUs = StartUs + 1000 * DurationMs,
        Nothing = weft_load_meters:snapshot(Meters),
        [weft_load_worker:begin_at(Pid, StartUs, EndUs) || {Pid, _} <- Workers],
        receive after WarmUpMs -> ok end,
        Run = #run{config = Config, files = Files, meters = Meters, progress = Progress,
                   workers = maps:from_list(Workers), start_us = StartUs, last = Nothing},
        finish(Stop, EndUs, ticks(1, EndUs, Run))
    after
        [exit(Pid, kill) || {Pid, _} <- Workers]
    end.

ready({Pid, Monitor}) ->
    receive
        {weft_load_ready, Pid, ok} -> ok;
        {weft_load_ready, Pid, {error, {config, Text}}} -> throw({load, Text});
        {weft_load_ready, Pid, {error, Reason}} ->
            throw({load, io_lib:format("a worker does not start: ~0tP", [Reason, 30])});
        {'DOWN', Monitor, process, Pid, Reason} ->
            throw({load, io_lib:format("a worker ends at the start: ~0tP", [Reason, 30])})
    after ?READY_MS ->
        throw({load, io_lib:format("a worker does not start within ~b s", [?READY_MS div 1000])})
    end.

%% --- while it runs ----------------------------------------------------------------------------

%% Up to the end; the last second is read when all have ended.
ticks(_N, _EndUs, #run{workers = Workers} = Run) when map_size(Workers) =:= 0 ->
    Run;
ticks(N, EndUs, #run{start_us = StartUs} = Run) ->
    case StartUs + N * ?TICK_MS * 1000 of
        AtUs when AtUs < EndUs ->
            Waited = wait(AtUs, Run),
            ticks(N + 1, EndUs, tick(erlang:monotonic_time(microsecond), Waited));
        _ ->
            wait(EndUs, Run)
    end.

wait(_AtUs, #run{workers = Workers} = Run) when map_size(Workers) =:= 0 ->
    Run;
wait(AtUs, #run{workers = Workers} = Run) ->
    LeftMs = max(0, (AtUs - erlang:monotonic_time(microsecond)) div 1000),
    receive
        {'DOWN', Monitor, process, Pid, Reason} when map_get(Pid, Workers) =:= Monitor ->
            wait(AtUs, down(Pid, Reason, Run))
    after LeftMs ->
        Run
    end.

down(Pid, Reason, #run{workers = Workers, finished = Finished, crashed = Crashed} = Run) ->
    Left = Run#run{workers = maps:remove(Pid, Workers)},
    case Reason of
        normal -> Left#run{finished = Finished + 1};
        _ -> Left#run{crashed = lists:sublist([Reason | Crashed], 20)}
    end.

tick(AtUs, #run{meters = Meters, last = Last, start_us = StartUs, files = Files0} = Run) ->
    Now = weft_load_meters:snapshot(Meters),
    Window = weft_load_meters:since(Last, Now),
    ElapsedUs = max(1, AtUs - StartUs),
    case weft_load_files:window(ElapsedUs, Window, Files0) of
        {ok, Files} ->
            progress(ElapsedUs, Window, Run),
            Run#run{last = Now, files = Files};
        {error, Text} ->
            throw({load, Text})
    end.

progress(ElapsedUs, Window, #run{progress = Progress, config = #{duration_ms := DurationMs},
                                 workers = Workers}) ->
    All = weft_load_histogram:merge([Service || #{service := Service} <- maps:values(Window)]),
    Failed = lists:sum([Count || #{failed := Count} <- maps:values(Window)]),
    Progress(io_lib:format("~4b of ~b s  ~b workers  ~b/s  p50 ~b  p99 ~b  max ~b us  errors ~b",
                           [ElapsedUs div 1000000, DurationMs div 1000, map_size(Workers),
                            weft_load_histogram:count(All), weft_load_histogram:percentile(50, All),
                            weft_load_histogram:percentile(99, All), weft_load_histogram:max(All),
                            Failed])).

%% --- the end ----------------------------------------------------------------------------------

finish(Stop, EndUs, #run{config = #{operation_timeout_ms := TimeoutMs}, meters = Meters,
                         start_us = StartUs} = Run0) ->
    atomics:put(Stop, 1, 1),
    LastUs = min(EndUs, erlang:monotonic_time(microsecond)),
    Run = tick(LastUs, drain(erlang:monotonic_time(millisecond) + TimeoutMs, Run0)),
    Outcome = #{total => Run#run.last, elapsed_us => max(1, LastUs - StartUs),
                hung => map_size(Run#run.workers),
                errors => weft_load_meters:errors(Meters), finished => Run#run.finished,
                crashed => Run#run.crashed},
    case weft_load_files:finish(Outcome, Run#run.files) of
        ok -> {ok, Outcome};
        {error, Text} -> throw({load, Text})
    end.

drain(_EndMs, #run{workers = Workers} = Run) when map_size(Workers) =:= 0 ->
    Run;
drain(EndMs, #run{workers = Workers} = Run) ->
    receive
        {'DOWN', Monitor, process, Pid, Reason} when map_get(Pid, Workers) =:= Monitor ->
            drain(EndMs, down(Pid, Reason, Run))
    after max(0, EndMs - erlang:monotonic_time(millisecond)) ->
        Run
    end.
