%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs `weft_kv_coordinator_core' for one request, in a process of its own, so that replicas
%% are repaired also after the caller has its answer; and once more after some errors. Callers of so
%% many at a time may wait on a node (`weft_kv_admission'); more are refused. One that goes on after
%% its answer may be told to give up, as if its time were over (`weft_kv_lingering'). No process is
%% shared by requests (but in an experiment, see `weft_kv_request_sup').
-module(weft_kv_request).

-export([run/4]).

%% The least and the longest time between two tries.
-define(PAUSE_MS, 20).
-define(PAUSE_MAX_MS, 500).
%% After so long without an answer it looks whether replicas are still there; then after twice as
%% long each time, up to the longest.
-define(LOOK_MS, 25).
-define(LOOK_MAX_MS, 400).

-record(run, {key :: weft_kv_table:key(),
              kind :: weft_kv_table:kind(),
              timeout_ms :: pos_integer(),
              to :: weft_kv_admission:caller(),
              %% Replicas whose answer comes here without a process in between.
              sent = #{} :: #{weft_kv_coordinator_core:place() => weft_vnode:sent()},
              %% After the answer.
              stay = none :: none | weft_kv_admission:stay(),
              look_ms = ?LOOK_MS :: pos_integer()}).

%% @doc The object that a quorum of replicas has. What was refused only because partitions belong to
%% other nodes by now is tried again until `timeout_ms' is over: what moves is served by nobody for
%% a moment only. After another error it is tried again at most `retries' times within that time.
%% Each try asks those who have the copies then, and only what they answer to it counts. Not tried
%% again is what could take effect twice (`weft_kv_coordinator_core:again/1'), and a refusal of this
%% node itself.
-spec run(weft_kv_table:key(), weft_kv_coordinator_core:request(), weft_kv_bucket:options(),
          weft_kv_admission:running()) ->
          {ok, weft_kv_object:object()} | {error, term()}.
run(Key, Request, #{retries := Retries, timeout_ms := TimeoutMs} = Options, Running) ->
    DeadlineMs = now_ms() + TimeoutMs,
    tried(once(Key, Request, Options, Running), Retries, ?PAUSE_MS, DeadlineMs,
          fun(Again, LeftMs) -> once(Key, Again, Options#{timeout_ms := LeftMs}, Running) end).

tried({{error, Reason}, {Why, Again}}, Retries, PauseMs, DeadlineMs, Once)
  when Why =:= moved; Retries > 0 ->
    %% Those who had the same error do not come back at the same time.
    receive after PauseMs div 2 + erlang:phash2(make_ref(), PauseMs) -> ok end,
    case DeadlineMs - now_ms() of
        %% A try that has less would only tell that it had no time.
        LeftMs when LeftMs > ?PAUSE_MS ->
            case Once(Again, LeftMs) of
                %% Of this try nothing was done. Of the one before that can not be said.
                {{error, _}, refused} -> {error, Reason};
                Result ->
                    Left = case Why of moved -> Retries; ok -> Retries - 1 end,
                    tried(Result, Left, min(2 * PauseMs, ?PAUSE_MAX_MS), DeadlineMs, Once)
            end;
        _ -> {error, Reason}
    end;
tried({Answer, _}, _Retries, _PauseMs, _DeadlineMs, _Once) ->
    Answer.

once({Partition, _, _} = Key, Request, #{n := N} = Options, Running) ->
    case weft_ring_lookup:replicas(weft_ring, Partition, N) of
        {error, Reason} -> {{error, Reason}, refused};
        {ok, Places} ->
            case weft_kv_admission:is_full(Running) of
                true -> {{error, overload}, refused};
                false -> started(Key, Request, Places, Options, Running)
            end
    end.

started(Key, Request, Places, #{timeout_ms := TimeoutMs} = Options, Running) ->
    Coordinate = fun(To) -> coordinate(Key, Request, Places, Options, To) end,
    case weft_kv_admission:run(Coordinate, fun begun/1, TimeoutMs, Running) of
        {answer, Answer} -> Answer;
        overload -> {{error, overload}, refused};
        timeout -> {{error, timeout}, none};
        {ended, Reason} -> {{error, {unknown, Reason}}, none}
    end.

begun(Fun) -> begun(weft_kv_app:coordinators(), Fun).

begun(spawned, Fun) -> spawn_monitor(Fun);
begun(one_supervisor, Fun) -> weft_kv_request_sup:start(Fun).

coordinate(Key, Request, Places, #{timeout_ms := TimeoutMs} = Options, To) ->
    {State, Effects} = weft_kv_coordinator_core:init(Request, in_turn(Request, Places), Options),
    effects(Effects, State, #run{key = Key, kind = maps:with([n, evict, siblings], Options),
                                 timeout_ms = TimeoutMs, to = To}).

%% A read asks all of them anyway.
in_turn(read, Places) -> Places;
in_turn(_Write, Places) -> weft_kv_suspects:last(Places, now_ms(), weft_kv_app:suspects()).

now_ms() -> erlang:monotonic_time(millisecond).

effects([], State, #run{sent = Sent, look_ms = LookMs} = Run) ->
    receive
        {timer, Timer} -> event({timer, Timer}, State, Run);
        give_up -> event({timer, deadline}, State, Run);
        {reply, Place, Reply} -> replied(Place, Reply, State, Run);
        {Place, Answer} when is_map_key(Place, Sent) -> replied(Place, reply(Answer), State, Run)
    after case map_size(Sent) of 0 -> infinity; _ -> LookMs end ->
        effects([], State, looked(Run))
    end;
effects([{ask, Place, Request} | Effects], State, Run) ->
    effects(Effects, State, asked(Place, Request, Run));
effects([{repair, Place, Object} | Effects], State, Run) ->
    ok = repaired(Place, Object, Run),
    effects(Effects, State, Run);
effects([{suspect, {_, Node, _}} | Effects], State, Run) ->
    ok = weft_kv_suspects:suspect(Node, now_ms(), weft_kv_app:suspects()),
    effects(Effects, State, Run);
effects([{after_ms, Ms, Timer} | Effects], State, Run) ->
    _ = erlang:send_after(Ms, self(), {timer, Timer}),
    effects(Effects, State, Run);
effects([{answer, Answer} | Effects], State, #run{to = To} = Run) ->
    ok = weft_kv_admission:answer(To, {Answer, weft_kv_coordinator_core:again(State)}),
    effects(Effects, State, answered(Effects, State, Run));
effects([done | _], _State, #run{stay = none}) ->
    ok;
effects([done | _], _State, #run{stay = Stay, to = To}) ->
    weft_kv_admission:lingered(Stay, To).

answered(Effects, State, #run{to = To} = Run) ->
    case lists:member(done, Effects) of
        true -> Run;
        false ->
            MayBeTwice = weft_kv_coordinator_core:may_be_twice(State),
            Run#run{stay = weft_kv_admission:linger(MayBeTwice, To)}
    end.

replied(Place, Reply, State, #run{sent = Sent} = Run) ->
    event({reply, Place, Reply}, State, Run#run{sent = maps:remove(Place, Sent)}).

event(Event, State0, Run) ->
    {State, Effects} = weft_kv_coordinator_core:handle(Event, State0),
    effects(Effects, State, Run).

%% --- replicas ---------------------------------------------------------------------------------

%% A process of its own waits where this one might have to: for a connection, or the start of a
%% partition.
asked(Place, Request, #run{sent = Sent, to = Caller} = Run) ->
    case sent(Place, Request, Place, Run) of
        {ok, To} -> Run#run{sent = Sent#{Place => To}};
        unknown ->
            Self = self(),
            Ask = fun() -> Self ! {reply, Place, ask(Place, Request, Run)} end,
            ok = weft_kv_admission:aside(Ask, Caller),
            Run
    end.

%% Nobody waits for what becomes of it.
repaired(Place, Object, #run{to = Caller} = Run) ->
    case sent(Place, {merge, Object}, repaired, Run) of
        {ok, _} -> ok;
        unknown ->
            weft_kv_admission:aside(fun() -> ask(Place, {merge, Object}, Run) end, Caller)
    end.

sent(Place, Request, Tag, #run{key = Key} = Run) ->
    weft_vnode:send(weft_kv_vnode, Place, Key, command(Place, Request, Run), Tag).

ask(Place, Request, #run{key = Key, timeout_ms = TimeoutMs} = Run) ->
    reply(weft_vnode:ask(weft_kv_vnode, Place, Key, command(Place, Request, Run), TimeoutMs)).

command({_, _, Role}, Request, #run{kind = Kind}) ->
    {Request, told(Request, Kind, weft_kv_app:compares()), Role}.

%% A replica that has lost what it had is to say so, if it is to get it back. A cache need not.
told(read, #{evict := false} = Kind, true) -> Kind#{tell => incomplete};
told(_, Kind, _) -> Kind.

reply({ok, Answer}) -> Answer;
reply({error, Reason}) -> {error, Reason}.

%% Those whose process or connection has ended meanwhile do not answer any more. What they have
%% answered before is here already, before what is said here in their place.
looked(#run{sent = Sent, look_ms = LookMs} = Run) ->
    lists:foreach(fun({Place, Reason}) -> self() ! {reply, Place, {error, Reason}} end,
                  [{Place, Reason} || {Place, To} <- maps:to_list(Sent),
                                      {true, Reason} <- [weft_vnode:lost(To)]]),
    Run#run{look_ms = min(2 * LookMs, ?LOOK_MAX_MS)}.
