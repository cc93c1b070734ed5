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
%%   {'EXIT', Reason}, a crash   failed, and the worker starts anew
%%
%% Its optional `terminate(Reason, State)' is called at the end.
%%
%% With `max' the next operation begins when the last one is done. With a rate the times at which
%% operations begin are drawn beforehand (exponential pauses), whether the last one is done or not;
%% a worker that is late does what is due at once, and `response' counts from the time drawn.
-module(weft_load_worker).

-export([start/3, begin_at/3]).

-record(worker, {config :: weft_load_config:config(),
                 id :: pos_integer(),
                 meters :: weft_load_meters:meters(),
                 stop :: atomics:atomics_ref(),
                 weighted :: tuple(),
                 key :: weft_load_generator:generator(),
                 value :: weft_load_generator:generator(),
                 state :: term(),
                 from_us = 0 :: integer(),
                until_us = 0 :: integer(),
                 due_us = 0 :: integer()}).

%% @doc Starts worker number Id, monitored by the caller. It gets ready, says
%% `{weft_load_ready, Pid, ok | {error, Reason}}' and waits for `begin_at/3'. Stop is set to 1 when
%% all shall end.
-spec start(pos_integer(), weft_load_config:config(),
            #{meters := weft_load_meters:meters(), stop := atomics:atomics_ref()}) ->
          {pid(), reference()}.
start(Id, Config, Shared) ->
    Starter = self(),
    spawn_monitor(fun() -> init(Starter, Id, Config, Shared) end).

%% @doc What ends in this time counts, in microseconds of `erlang:monotonic_time'.
-spec begin_at(pid(), FromUs :: integer(), UntilUs :: integer()) -> ok.
begin_at(Worker, FromUs, UntilUs) ->
    Worker ! {?MODULE, begin_at, FromUs, UntilUs},
    ok.

init(Starter, Id, #{operations := Operations} = Config, #{meters := Meters, stop := Stop}) ->
    _ = seed(Config, Id),
    Worker = #worker{config = Config, id = Id, meters = Meters, stop = Stop,
                     weighted = list_to_tuple(lists:append([lists:duplicate(Weight, {Label, Op})
                                                            || {Label, Op, Weight} <- Operations])),
                     key = fun() -> none end, value = fun() -> none end, state = none},
    case ready(Worker) of
        {ok, Ready} ->
            Starter ! {weft_load_ready, self(), ok},
            receive
                {?MODULE, begin_at, FromUs, UntilUs} ->
                    loop(Ready#worker{from_us = FromUs, until_us = UntilUs, due_us = now_us()})
            end;
        {error, Reason} ->
            Starter ! {weft_load_ready, self(), {error, Reason}}
    end.

seed(#{rng_seed := now}, _Id) -> rand:seed(exsss);
seed(#{rng_seed := {A, B, C}}, Id) -> rand:seed(exsss, {A + Id, B + Id, C + Id}).

ready(#worker{config = #{driver := Driver, concurrent := Workers, key_generator := Keys,
                         value_generator := Values}, id = Id} = Worker) ->
    Context = #{id => Id, concurrent => Workers},
    try
        Ready = Worker#worker{key = weft_load_generator:keys(Keys, Context),
                              value = weft_load_generator:values(Values, Context)},
        case Driver:new(Id) of
            {ok, State} -> {ok, Ready#worker{state = State}};
            Other -> {error, {new, Other}}
        end
    catch
        throw:{config, Text} -> {error, {config, lists:flatten(io_lib:format("~ts", [Text]))}};
        Class:Reason:Stack -> {error, {new, {Class, Reason, hd(Stack)}}}
    end.

loop(#worker{stop = Stop} = Worker) ->
    case atomics:get(Stop, 1) of
        0 -> due(Worker);
        _ -> terminate(normal, Worker)
    end.

due(#worker{config = #{rate := max}} = Worker) ->
    run(now_us(), Worker);
due(#worker{config = #{rate := Rate}, due_us = DueUs} = Worker) ->
    Next = Worker#worker{due_us = DueUs + pause_us(Rate)},
    case wait_until(DueUs, Worker) of
        ok -> run(DueUs, Next);
        stopped -> terminate(normal, Worker)
    end.

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

run(DueUs, #worker{weighted = Weighted, config = #{driver := Driver}, key = Key, value = Value,
                   state = State} = Worker) ->
    {Label, Operation} = element(rand:uniform(tuple_size(Weighted)), Weighted),
    StartUs = now_us(),
    Answer = try Driver:run(Operation, Key, Value, State)
             catch Class:Reason:Stack -> {'EXIT', {Class, Reason, Stack}}
             end,
    answer(Answer, {Label, DueUs, StartUs, now_us()}, Worker).

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
answer({error, Reason, State}, Times, Worker) ->
    after_error(failed(Reason, Times, Worker#worker{state = State}));
answer({stop, Reason}, _Times, Worker) ->
    terminate(Reason, Worker);
answer({'EXIT', Reason}, Times, Worker) ->
    restart(failed({crash, Reason}, Times, Worker));
answer(Other, Times, Worker) ->
    restart(failed({bad_answer, Other}, Times, Worker)).

done(Units, ServiceUs, {Label, DueUs, StartUs, EndUs}, #worker{meters = Meters} = Worker) ->
    counts(EndUs, Worker)
        andalso weft_load_meters:succeeded(Label, ServiceUs, ServiceUs + StartUs - DueUs, Units,
                                           Meters),
    loop(Worker).

failed(Reason, {Label, _, _, EndUs}, #worker{meters = Meters} = Worker) ->
    counts(EndUs, Worker) andalso weft_load_meters:failed(Label, Reason, Meters),
    Worker.

counts(EndUs, #worker{from_us = FromUs, until_us = UntilUs}) ->
    EndUs >= FromUs andalso EndUs =< UntilUs.

after_error(#worker{config = #{shutdown_on_error := true}}) -> exit(shutdown_on_error);
after_error(Worker) -> loop(Worker).

%% The state may be what made it crash. Another failure at the start is the end of the worker.
restart(#worker{config = #{shutdown_on_error := true}}) ->
    exit(shutdown_on_error);
restart(Worker) ->
    case ready(Worker) of
        {ok, Ready} -> loop(Ready);
        {error, Reason} -> exit({restart, Reason})
    end.

terminate(Reason, #worker{config = #{driver := Driver}, state = State}) ->
    case erlang:function_exported(Driver, terminate, 2) of
        true -> _ = Driver:terminate(Reason, State), ok;
        false -> ok
    end.

now_us() -> erlang:monotonic_time(microsecond).
