%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs a load (`weft_load_config'): starts the workers, reads their meters each second, writes
%% the results as they come, and ends what hangs.
%%
%% Workers that have finished are counted, and the others go on; when none is left the run is over
%% early. In the place of a worker that ends otherwise another starts, a bounded number of times; if
%% it was an error that shall end the run (`shutdown_on_error'), all end. After an interrupt the run
%% is over at once, and what was due is not waited for; so it is after one at the end.
%%
%% At the end workers have `operation_timeout_s' to do what was due in the run; who hangs longer is
%% killed and told. What is not done then counts as failed, in the response times with the time that
%% it has waited. Whatever happens, what was measured is in the files.
-module(weft_load).

-export([run/2]).
-export_type([outcome/0, options/0, numbers/0]).

-type outcome() :: #{total := weft_load_meters:reading(), elapsed_us := pos_integer(),
                     %% When the workers were told to begin, on the clock of the machine.
                     began_us := integer(),
                     errors := [{atom(), binary(), pos_integer()}], hung := non_neg_integer(),
                     finished := non_neg_integer(), crashed := [term()],
                     unfinished := non_neg_integer(),
                     %% Of several loads in one: what became of those that are not in it to the end.
                     lost => [string()]}.
-type options() :: #{dir := file:filename(), progress := progress(),
                     %% Of the machine, where it is known already.
                     environment => [{string(), string()}],
                     %% Of the workers, if there are other loads at the same time.
                     numbers => numbers(),
                     %% Waits, once the workers are ready, until they shall begin, and returns that
                     %% time (`erlang:monotonic_time', microseconds).
                     begin_us => fun(() -> integer())}.

-type progress() :: fun((weft_load_second:second()) -> term()).
%% Workers of other loads have the numbers before, and all of them are so many.
-type numbers() :: #{before := non_neg_integer(), all := pos_integer()}.

-define(TICK_MS, 1000).
-define(READY_MS, 60000).
%% What a worker needs to stop that is between two operations.
-define(STOP_MS, 1000).
%% Restarts of one worker, and the pause before its first one; each is longer by that.
-define(RESTARTS_MAX, 5).
-define(RESTART_PAUSE_MS, 100).

-record(run, {config :: weft_load_config:config(),
              files :: weft_load_files:files(),
              meters :: weft_load_meters:meters(),
              stop :: atomics:atomics_ref(),
              workers :: #{pid() => {Id :: pos_integer(), Monitor :: reference()}},
              progresses :: #{Id :: pos_integer() => weft_load_progress:progress()},
              restarts = #{} :: #{Id :: pos_integer() => pos_integer()},
              began_us = 0 :: integer(),
              start_us :: integer(),
              end_us :: integer() | infinity,
              is_draining = false :: boolean(),
              last :: weft_load_meters:reading(),
              finished = 0 :: non_neg_integer(),
              crashed = [] :: [term()],
              numbers :: numbers(),
              progress :: progress()}).

%% @doc Runs a load and writes its results to a directory, which is made. Progress is told each
%% second. The error is a text; results up to it are kept.
-spec run(weft_load_config:config(), options()) -> {ok, outcome()} | {error, string()}.
run(Config, #{dir := Dir} = Options) ->
    case weft_load_modules:prepare(Config) of
        ok ->
            Meters = weft_load_meters:new(labels(Config)),
            case weft_load_files:open(Dir, Config, weft_load_meters:labels(Meters),
                                      environment(Config, Options)) of
                {ok, Files} ->
                    try hooked(Config, Files, Meters, Options)
                    catch throw:{load, Text} -> {error, lists:flatten(io_lib:format("~ts", [Text]))}
                    after weft_load_files:close(Files)
                    end;
                {error, Text} -> {error, Text}
            end;
        {error, Text} ->
            {error, Text}
    end.

environment(_Config, #{environment := Environment}) -> Environment;
environment(Config, _Options) -> weft_load_files:environment(Config).

%% A driver that counts operations as others (`as') tells which there may be.
labels(#{driver := Driver, operations := Operations}) ->
    Labels = lists:usort([Label || {Label, _, _} <- Operations]),
    case erlang:function_exported(Driver, labels, 1) of
        true -> Driver:labels(Labels);
        false -> Labels
    end.

%% The hook after the run is called if the one before it was, whatever came between.
hooked(#{pre_hook := Before, post_hook := After} = Config, Files, Meters, Options) ->
    case hook(Before) of
        ok -> ok;
        {failed, Reason} -> throw({load, weft_bench_error:text("pre_hook: ~0tp", [Reason])})
    end,
    try started(Config, Files, Meters, Options) of
        {ok, #{crashed := Crashed} = Outcome} ->
            case hook(After) of
                ok -> {ok, Outcome};
                {failed, Why} -> {ok, Outcome#{crashed := [{post_hook, Why} | Crashed]}}
            end
    catch
        throw:{load, Text} ->
            _ = hook(After),
            throw({load, Text})
    end.

hook(none) -> ok;
hook({Module, Function}) ->
    try
        _ = Module:Function(),
        ok
    catch
        Class:Reason:Stack -> {failed, {Class, Reason, hd(Stack)}}
    end.

started(#{concurrent := Count, warm_up_ms := WarmUpMs, duration_ms := DurationMs} = Config, Files,
        Meters, #{progress := Progress} = Options) ->
    Progresses = maps:from_list([{Id, weft_load_progress:new()} || Id <- lists:seq(1, Count)]),
    Run0 = #run{config = Config, files = Files, meters = Meters, progress = Progress,
                stop = atomics:new(1, []), workers = #{}, progresses = Progresses, start_us = 0,
                end_us = infinity, last = weft_load_meters:snapshot(Meters),
                numbers = maps:get(numbers, Options, #{before => 0, all => Count})},
    Run = lists:foldl(fun(Id, Acc) -> start(Id, 0, Acc) end, Run0, lists:seq(1, Count)),
    Workers = [{Pid, Monitor} || {Pid, {_, Monitor}} <- maps:to_list(Run#run.workers)],
    try
        lists:foreach(fun ready/1, Workers),
        BeginUs = maps:get(begin_us, Options, fun now_us/0),
        StartUs = BeginUs() + 1000 * WarmUpMs,
        EndUs = end_us(StartUs, DurationMs),
        [weft_load_worker:begin_at(Pid, StartUs, EndUs) || {Pid, _} <- Workers],
        BeganUs = os:perf_counter(microsecond),
        %% In the warm-up, too, others come in the place of those that end, and interrupts count.
        WarmedUp = wait(StartUs, Run#run{began_us = BeganUs, start_us = StartUs, end_us = EndUs}),
        finish(ticks(1, WarmedUp))
    after
        %% Also those that came in the place of others: they wait for their turn or work.
        atomics:put(Run#run.stop, 1, 1),
        [exit(Pid, kill) || {Pid, _} <- Workers]
    end.

end_us(_StartUs, infinity) -> infinity;
end_us(StartUs, DurationMs) -> StartUs + 1000 * DurationMs.

start(Id, DelayMs, #run{config = Config, meters = Meters, stop = Stop, workers = Workers,
                        progresses = Progresses, numbers = Numbers} = Run) ->
    #{before := Before, all := All} = Numbers,
    #{Id := Progress} = Progresses,
    {Pid, Monitor} = weft_load_worker:start(Before + Id, Config,
                                            #{meters => Meters, stop => Stop, all => All,
                                              progress => Progress, delay_ms => DelayMs}),
    Run#run{workers = Workers#{Pid => {Id, Monitor}}}.

now_us() -> erlang:monotonic_time(microsecond).

ready({Pid, Monitor}) ->
    receive
        {weft_load_ready, Pid, ok} -> ok;
        {weft_load_ready, Pid, {error, {config, Text}}} -> throw({load, Text});
        {weft_load_ready, Pid, {error, Reason}} ->
            throw({load, weft_bench_error:text("a worker does not start: ~0tp", [Reason])});
        {'DOWN', Monitor, process, Pid, Reason} ->
            throw({load, weft_bench_error:text("a worker ends at the start: ~0tp", [Reason])})
    after ?READY_MS ->
        throw({load, io_lib:format("a worker does not start within ~b s", [?READY_MS div 1000])})
    end.

%% --- while it runs ----------------------------------------------------------------------------

%% Up to the end; the last second is read when all have ended.
ticks(_N, #run{workers = Workers} = Run) when map_size(Workers) =:= 0 ->
    Run;
ticks(N, #run{start_us = StartUs, end_us = EndUs} = Run) ->
    case StartUs + N * ?TICK_MS * 1000 of
        AtUs when AtUs < EndUs ->
            Waited = wait(AtUs, Run),
            ticks(N + 1, tick(now_us(), Waited));
        _ ->
            wait(EndUs, Run)
    end.

wait(_AtUs, #run{workers = Workers} = Run) when map_size(Workers) =:= 0 ->
    Run;
wait(AtUs, #run{workers = Workers} = Run) ->
    LeftMs = max(0, (AtUs - now_us()) div 1000),
    receive
        {weft_load_ready, Pid, _} when is_map_key(Pid, Workers) ->
            wait(AtUs, Run);
        {'DOWN', Monitor, process, Pid, Reason}
          when element(2, map_get(Pid, Workers)) =:= Monitor ->
            wait(AtUs, down(Pid, Reason, Run));
        weft_bench_interrupt ->
            ok = atomics:put(Run#run.stop, 1, 1),
            Run#run{end_us = now_us()}
    after LeftMs ->
        Run
    end.

down(Pid, Reason, #run{workers = Workers} = Run) ->
    {{Id, _}, Left} = maps:take(Pid, Workers),
    ended(Id, Reason, Run#run{workers = Left}).

ended(_Id, normal, #run{finished = Finished} = Run) ->
    Run#run{finished = Finished + 1};
ended(_Id, shutdown_on_error, #run{stop = Stop} = Run) ->
    atomics:put(Stop, 1, 1),
    crashed(shutdown_on_error, Run);
ended(_Id, Reason, #run{is_draining = true} = Run) ->
    crashed(Reason, Run);
ended(Id, Reason, #run{restarts = Restarts} = Run0) ->
    Run = lost(Id, Reason, crashed(Reason, Run0)),
    case maps:get(Id, Restarts, 0) + 1 of
        N when N =< ?RESTARTS_MAX -> restarted(Id, N, Run);
        _ -> Run
    end.

crashed(Reason, #run{crashed = Crashed} = Run) ->
    Run#run{crashed = lists:sublist([Reason | Crashed], 20)}.

%% The operation that the worker has taken with it failed, if it was due in the run.
lost(Id, Reason, #run{progresses = Progresses, meters = Meters, start_us = StartUs} = Run) ->
    #{Id := Progress} = Progresses,
    [ok = weft_load_meters:failed(label(Number, Run), {worker_ended, Reason}, Meters)
     || {Number, DueUs} <- weft_load_progress:under_way(Progress), DueUs >= StartUs],
    ok = weft_load_progress:ended(Progress),
    Run.

label(Number, #run{config = #{operations := Operations}}) ->
    element(1, lists:nth(Number, weft_load_config:weighted(Operations))).

restarted(Id, N, #run{restarts = Restarts, workers = Before, start_us = StartUs,
                      end_us = EndUs} = Run0) ->
    #run{workers = Workers} = Run = start(Id, N * ?RESTART_PAUSE_MS, Run0),
    [Pid] = maps:keys(maps:without(maps:keys(Before), Workers)),
    ok = weft_load_worker:begin_at(Pid, StartUs, EndUs),
    Run#run{restarts = Restarts#{Id => N}}.

tick(AtUs, Run) -> tick(AtUs, #{}, Run).

tick(AtUs, Waited, #run{meters = Meters, last = Last, start_us = StartUs, files = Files0} = Run) ->
    Now = weft_load_meters:snapshot(Meters),
    Window = maps:map(fun(Label, Meter) -> maps:merge(Meter, maps:get(Label, Waited, #{})) end,
                      weft_load_meters:since(Last, Now)),
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
    Progress(#{elapsed_us => ElapsedUs, duration_ms => DurationMs, workers => map_size(Workers),
               window => Window}).

%% --- the end ----------------------------------------------------------------------------------

finish(#run{config = #{operation_timeout_ms := TimeoutMs}, stop = Stop, start_us = StartUs,
            end_us = EndUs} = Run0) ->
    LastUs = min(EndUs, now_us()),
    Waited = waited(LastUs, Run0),
    Drained = drain(TimeoutMs, Run0),
    atomics:put(Stop, 1, 1),
    #run{workers = Hung} = Stopped = drain(?STOP_MS, Drained),
    [exit(Pid, kill) || Pid <- maps:keys(Hung)],
    Unfinished = unfinished(LastUs, Stopped),
    Run = tick(LastUs, Waited, Stopped),
    Outcome = #{total => Run#run.last, elapsed_us => max(1, LastUs - StartUs),
                began_us => Run#run.began_us, hung => map_size(Hung), unfinished => Unfinished,
                errors => weft_load_meters:errors(Run#run.meters), finished => Run#run.finished,
                crashed => Run#run.crashed},
    case weft_load_files:finish(Outcome, Run#run.files) of
        ok -> {ok, Outcome};
        {error, Text} -> throw({load, Text})
    end.

%% No others come in the place of those that end now. After an interrupt each ends with the
%% operation that is under way.
drain(TimeoutMs, Run) ->
    drain_until(erlang:monotonic_time(millisecond) + TimeoutMs, Run).

drain_until(_EndMs, #run{workers = Workers} = Run) when map_size(Workers) =:= 0 ->
    Run;
drain_until(EndMs, #run{workers = Workers} = Run) ->
    receive
        {weft_load_ready, Pid, _} when is_map_key(Pid, Workers) ->
            drain_until(EndMs, Run);
        {'DOWN', Monitor, process, Pid, Reason}
          when element(2, map_get(Pid, Workers)) =:= Monitor ->
            drain_until(EndMs, down(Pid, Reason, Run#run{is_draining = true}));
        weft_bench_interrupt ->
            ok = atomics:put(Run#run.stop, 1, 1),
            drain_until(EndMs, Run)
    after max(0, EndMs - erlang:monotonic_time(millisecond)) ->
        Run
    end.

%% The longest that operations have waited up to the end of the run, of those that were done since
%% the last second and those that are not. How much longer these take is no time of the run.
waited(LastUs, #run{meters = Meters, last = Last} = Run) ->
    Done = maps:map(fun(_, #{response := Response}) -> weft_load_histogram:max(Response) end,
                    weft_load_meters:since(Last, weft_load_meters:snapshot(Meters))),
    Longer = fun(_How, Label, DueUs, Longest) ->
                     maps:update_with(Label, fun(Us) -> max(Us, LastUs - DueUs) end, Longest)
             end,
    maps:map(fun(_, Us) -> #{waited_us => Us} end, fold_not_done(Longer, Done, LastUs, Run)).

%% Operations that were due in the run and are not done; returns how many there are.
unfinished(LastUs, #run{meters = Meters} = Run) ->
    NowUs = now_us(),
    Told = fun(How, Label, DueUs, Count) ->
                   ok = weft_load_meters:unfinished(Label, How, NowUs - DueUs, Meters),
                   Count + 1
           end,
    fold_not_done(Told, 0, LastUs, Run).

%% Which one a worker would have done next is not known, and drawn as it draws it.
fold_not_done(Fun, Acc0, LastUs, #run{progresses = Progresses, start_us = StartUs,
                                      config = #{rate := Rate, operations := Operations}} = Run) ->
    Weighted = list_to_tuple(weft_load_config:weighted(Operations)),
    NotBegun = fun(DueUs, Acc) when DueUs < StartUs -> Acc;
                  (DueUs, Acc) ->
                       {Label, _} = element(rand:uniform(tuple_size(Weighted)), Weighted),
                       Fun(due, Label, DueUs, Acc)
               end,
    lists:foldl(fun(Progress, Acc) ->
                        Begun = lists:foldl(fun({Number, DueUs}, Before) ->
                                                    Fun(begun, label(Number, Run), DueUs, Before)
                                            end, Acc,
                                            [One || {_, DueUs} = One
                                                        <- weft_load_progress:under_way(Progress),
                                                    DueUs >= StartUs]),
                        weft_load_progress:fold_due(NotBegun, Begun, LastUs, Rate, Progress)
                end, Acc0, maps:values(Progresses)).
