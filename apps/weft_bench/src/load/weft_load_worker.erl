%% SPDX-License-Identifier: Apache-2.0
%% @doc One worker of a load: draws operations by their weights and has a driver run them.
%%
%% A driver is a module of Basho Bench: `new(Id) -> {ok, State} | {error, Reason}' and
%% `run(Operation, KeyGenerator, ValueGenerator, State)', which answers
%%
%%   {ok, S}, {{ok, Units}, S}   done
%%   {ok, ElapsedUs, S}          done, and it took so long
%%   {silent, S}                 not counted
%%   {as, Label, Answer}         counted as another operation, which labels/1 of the driver names
%%   {error, Reason, S}          failed
%%   {stop, Reason}              this worker has finished
%%   {'EXIT', Reason}, a crash   failed, and the driver starts anew
%%
%% What is thrown counts as an answer. Its optional `terminate(Reason, State)' is called at the end
%% and after a crash.
%%
%% Workers trap exits, as in Basho Bench: a client that is linked to its driver and dies does not
%% take the worker with it. Such an end is told among the errors.
%%
%% With `max' the next operation begins when the last one is done. With a rate the times at which
%% operations begin are drawn beforehand (exponential pauses), the first one of each worker too, so
%% that workers do not begin all at once. It does not matter whether the last operation is done;
%% a worker that is late does what is due at once, and `response' counts from the time drawn. At the
%% end of the run it goes on with what was due within the run, until it is told to stop.
-module(weft_load_worker).

-export([start/3, begin_at/3, pause_us/1]).
-export_type([shared/0]).

%% `all': how many workers there are, also of other loads. `delay_ms': so long a worker in the place
%% of another that ended waits before it calls the driver.
-type shared() :: #{meters := weft_load_meters:meters(), stop := atomics:atomics_ref(),
                    all := pos_integer(),
                    progress := weft_load_progress:progress(), delay_ms := non_neg_integer()}.

-record(worker, {config :: weft_load_config:config(),
                 id :: pos_integer(),
                 all :: pos_integer(),
                 meters :: weft_load_meters:meters(),
                 stop :: atomics:atomics_ref(),
                 progress :: weft_load_progress:progress(),
                 weighted :: tuple(),
                 key :: weft_load_generator:generator(),
                 value :: weft_load_generator:generator(),
                 state :: term(),
                 from_us = 0 :: integer(),
                 until_us = 0 :: integer() | infinity,
                 due_us = 0 :: integer()}).

%% @doc Starts worker number Id, monitored by the caller. It gets ready, says
%% `{weft_load_ready, Pid, ok | {error, Reason}}' and waits for `begin_at/3'; if it can not get
%% ready that is also the reason of its end. Stop is set to 1 when all shall end.
-spec start(pos_integer(), weft_load_config:config(), shared()) -> {pid(), reference()}.
start(Id, Config, Shared) ->
    Starter = self(),
    spawn_monitor(fun() -> init(Starter, Id, Config, Shared) end).

%% @doc What is due in this time is part of the run, in microseconds of `erlang:monotonic_time'.
%% With `infinity' it ends when it is told to stop.
-spec begin_at(pid(), FromUs :: integer(), UntilUs :: integer() | infinity) -> ok.
begin_at(Worker, FromUs, UntilUs) ->
    Worker ! {?MODULE, begin_at, FromUs, UntilUs},
    ok.

init(Starter, Id, #{operations := Operations} = Config,
     #{meters := Meters, stop := Stop, progress := Progress, delay_ms := DelayMs, all := All}) ->
    process_flag(trap_exit, true),
    _ = seed(Config, Id),
    receive after DelayMs -> ok end,
    Worker = #worker{config = Config, id = Id, all = All, meters = Meters, stop = Stop,
                     progress = Progress,
                     weighted = list_to_tuple(weft_load_config:weighted(Operations)),
                     key = fun() -> none end, value = fun() -> none end, state = none},
    case ready(Worker) of
        {ok, Ready} ->
            Starter ! {weft_load_ready, self(), ok},
            receive
                {?MODULE, begin_at, FromUs, UntilUs} ->
                    loop(Ready#worker{from_us = FromUs, until_us = UntilUs,
                                      due_us = first_due(Config, Progress)})
            end;
        {error, Reason} ->
            Starter ! {weft_load_ready, self(), {error, Reason}},
            exit({start, Reason})
    end.

%% A worker in the place of another goes on with what was due.
first_due(#{rate := max}, _Progress) ->
    0;
first_due(#{rate := Rate}, Progress) ->
    case weft_load_progress:next_due(Progress) of
        none ->
            DueUs = now_us() + pause_us(Rate),
            ok = weft_load_progress:next_due(DueUs, Progress),
            DueUs;
        DueUs ->
            DueUs
    end.

seed(#{rng_seed := now}, _Id) -> rand:seed(exsss);
seed(#{rng_seed := {A, B, C}}, Id) -> rand:seed(exsss, {A + Id, B + Id, C + Id}).

ready(#worker{config = #{key_generator := Keys, value_generator := Values}, id = Id,
              all = All} = Worker) ->
    Context = #{id => Id, concurrent => All},
    try Worker#worker{key = weft_load_generator:keys(Keys, Context),
                      value = weft_load_generator:values(Values, Context)}
    of Ready -> new(Ready)
    catch
        throw:{config, Text} -> {error, {config, lists:flatten(io_lib:format("~ts", [Text]))}};
        Class:Reason:Stack -> {error, {generator, {Class, Reason, hd(Stack)}}}
    end.

new(#worker{config = #{driver := Driver}, id = Id} = Worker) ->
    try Driver:new(Id) of
        {ok, State} -> {ok, Worker#worker{state = State}};
        Other -> {error, {new, Other}}
    catch
        Class:Reason:Stack -> {error, {new, {Class, Reason, hd(Stack)}}}
    end.

loop(#worker{stop = Stop} = Worker) ->
    case atomics:get(Stop, 1) of
        0 -> due(Worker);
        _ -> end_driver(normal, Worker)
    end.

due(#worker{config = #{rate := max}, until_us = UntilUs} = Worker) ->
    case now_us() of
        NowUs when NowUs < UntilUs -> run(NowUs, none, Worker);
        _ -> end_driver(normal, Worker)
    end;
due(#worker{due_us = DueUs, until_us = UntilUs} = Worker) when DueUs >= UntilUs ->
    end_driver(normal, Worker);
due(#worker{config = #{rate := Rate}, due_us = DueUs} = Worker) ->
    NextUs = DueUs + pause_us(Rate),
    case wait_until(DueUs, Worker) of
        ok -> run(DueUs, NextUs, Worker#worker{due_us = NextUs});
        stopped -> end_driver(normal, Worker)
    end.

%% @doc A pause between the times at which operations begin, in microseconds.
-spec pause_us(PerSecond :: number()) -> non_neg_integer().
pause_us(Rate) -> round(-math:log(1 - rand:uniform()) * 1.0e6 / Rate).

%% Timers count milliseconds; the rest of the time is yielded away, so that nothing begins early or
%% a millisecond late, unless `exact_start' is false: many nodes on few cores would use them up by
%% yielding. Long pauses are cut, to hear of the end.
wait_until(DueUs, #worker{stop = Stop, config = #{exact_start := IsExact}} = Worker) ->
    case DueUs - now_us() of
        Left when Left =< 0 ->
            ok;
        Left when IsExact, Left < 2000 ->
            erlang:yield(),
            wait_until(DueUs, Worker);
        Left ->
            receive after min(pause_ms(Left, IsExact), 200) -> ok end,
            case atomics:get(Stop, 1) of
                0 -> wait_until(DueUs, Worker);
                _ -> stopped
            end
    end.

pause_ms(LeftUs, true) -> LeftUs div 1000 - 1;
pause_ms(LeftUs, false) -> (LeftUs + 999) div 1000.

run(DueUs, NextUs, #worker{weighted = Weighted, config = #{driver := Driver}, key = Key,
                           value = Value, state = State, progress = Progress} = Worker) ->
    Number = rand:uniform(tuple_size(Weighted)),
    {Label, Operation} = element(Number, Weighted),
    ok = weft_load_progress:begun(Number, DueUs, NextUs, Progress),
    StartUs = now_us(),
    Answer = try Driver:run(Operation, Key, Value, State)
             catch
                 throw:Thrown -> Thrown;
                 Class:Reason:Stack -> {'EXIT', {Class, Reason, Stack}}
             end,
    EndUs = now_us(),
    ok = weft_load_progress:ended(Progress),
    ok = tell_exits(Label, DueUs, Worker),
    answer(Answer, {Label, DueUs, StartUs, EndUs}, Worker).

%% What the driver has linked, and what ended while it ran or before. In the warm-up it is no error,
%% as no operation is one then.
tell_exits(Label, DueUs, #worker{meters = Meters, from_us = FromUs} = Worker) ->
    receive
        {'EXIT', _, normal} ->
            tell_exits(Label, DueUs, Worker);
        {'EXIT', _, Reason} ->
            _ = DueUs >= FromUs
                andalso weft_load_meters:told(Label, {linked_process_ended, Reason}, Meters),
            tell_exits(Label, DueUs, Worker)
    after 0 ->
        ok
    end.

answer({as, Label, Answer}, {_, DueUs, StartUs, EndUs}, Worker) ->
    answer(Answer, {Label, DueUs, StartUs, EndUs}, Worker);
answer({ok, State}, {_, _, StartUs, EndUs} = Times, Worker) ->
    done(1, EndUs - StartUs, Times, Worker#worker{state = State});
answer({{ok, Units}, State}, {_, _, StartUs, EndUs} = Times, Worker)
  when is_integer(Units), Units > 0 ->
    done(Units, EndUs - StartUs, Times, Worker#worker{state = State});
answer({ok, ElapsedUs, State}, Times, Worker) ->
    done(1, round(ElapsedUs), Times, Worker#worker{state = State});
answer({silent, State}, _Times, Worker) ->
    loop(Worker#worker{state = State});
answer({{silent, _}, State}, _Times, Worker) ->
    loop(Worker#worker{state = State});
answer({error, Reason, State}, Times, Worker) ->
    after_error(failed(Reason, Times, Worker#worker{state = State}));
answer({stop, _Reason}, _Times, #worker{progress = Progress} = Worker) ->
    ok = weft_load_progress:finished(Progress),
    end_driver(normal, Worker);
answer({'EXIT', Reason}, Times, Worker) ->
    restart(Reason, failed({crash, Reason}, Times, Worker));
answer(Other, Times, Worker) ->
    restart({bad_answer, Other}, failed({bad_answer, Other}, Times, Worker)).

%% What was due before the run began has no part in it, however late it is done: what a slow warm-up
%% has held up would be counted in the run. What is done after its end has no part in what the run
%% has done, but was due in it: a system that stalls at the end would look well if it was left out.
done(Units, ServiceUs, {Label, DueUs, StartUs, EndUs},
     #worker{meters = Meters, from_us = FromUs, until_us = UntilUs} = Worker) ->
    ResponseUs = ServiceUs + StartUs - DueUs,
    case DueUs >= FromUs of
        true when EndUs =< UntilUs ->
            weft_load_meters:succeeded(Label, ServiceUs, ResponseUs, Units, Meters);
        true ->
            weft_load_meters:late(Label, ResponseUs, Meters);
        false ->
            ok
    end,
    loop(Worker).

failed(Reason, {Label, DueUs, _, _}, #worker{meters = Meters, from_us = FromUs} = Worker) ->
    DueUs >= FromUs andalso weft_load_meters:failed(Label, Reason, Meters),
    Worker.

after_error(#worker{config = #{shutdown_on_error := true}}) -> exit(shutdown_on_error);
after_error(Worker) -> loop(Worker).

%% The state may be what made it crash. Another failure at the start is the end of the worker. Its
%% generators go on where they are.
restart(_Reason, #worker{config = #{shutdown_on_error := true}}) ->
    exit(shutdown_on_error);
restart(Reason, Worker) ->
    ok = end_driver({'EXIT', Reason}, Worker),
    ok = lists:foreach(fun end_link/1, element(2, process_info(self(), links))),
    case new(Worker) of
        {ok, Ready} -> loop(Ready);
        {error, Failure} -> exit({restart, Failure})
    end.

%% As if the worker had ended, and with it the clients of its driver.
end_link(Pid) when is_pid(Pid) ->
    unlink(Pid),
    true = exit(Pid, crash);
end_link(Port) ->
    unlink(Port),
    try port_close(Port)
    catch error:badarg -> true
    end.

%% A driver that crashes here has done its work.
end_driver(Reason, #worker{config = #{driver := Driver}, state = State}) ->
    try
        _ = erlang:function_exported(Driver, terminate, 2) andalso Driver:terminate(Reason, State),
        ok
    catch
        _:_ -> ok
    end.

now_us() -> erlang:monotonic_time(microsecond).
