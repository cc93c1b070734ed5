%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs `weft_kv_coordinator_core' for one request, in a process of its own, so that replicas
%% are repaired also after the caller has its answer; and once more after some errors. How many
%% there may be at a time on a node is counted; more are refused. No process is shared by requests
%% (but in an experiment, see `weft_kv_request_sup').
-module(weft_kv_request).

-export([run/4]).

-define(MARGIN_MS, 1000).
%% The least and the longest time between two tries.
-define(PAUSE_MS, 20).
-define(PAUSE_MAX_MS, 500).

%% @doc The object that a quorum of replicas has. After an error it is tried again, at most
%% `retries'
%% times within `timeout_ms', with those who have the copies then: what moves to another node may be
%% served by none for a moment. Not tried again is what could take effect twice
%% (`weft_kv_coordinator_core:again/1'), and a refusal of this node itself.
-spec run(weft_kv_table:key(), weft_kv_coordinator_core:request(), weft_kv_bucket:options(),
          {counters:counters_ref(), pos_integer()}) ->
          {ok, weft_kv_object:object()} | {error, term()}.
run(Key, Request, #{retries := Retries, timeout_ms := TimeoutMs} = Options, Running) ->
    DeadlineMs = erlang:monotonic_time(millisecond) + TimeoutMs,
    tried(once(Key, Request, Options, Running), Retries, ?PAUSE_MS, DeadlineMs,
          fun(Again, LeftMs) -> once(Key, Again, Options#{timeout_ms := LeftMs}, Running) end).

tried({{error, Reason}, {ok, Again}}, Retries, PauseMs, DeadlineMs, Once) when Retries > 0 ->
    %% Those who had the same error do not come back at the same time.
    receive after PauseMs div 2 + erlang:phash2(make_ref(), PauseMs) -> ok end,
    case DeadlineMs - erlang:monotonic_time(millisecond) of
        LeftMs when LeftMs > 0 ->
            case Once(Again, LeftMs) of
                %% Of this try nothing was done. Of the one before that can not be said.
                {{error, _}, refused} -> {error, Reason};
                Result -> tried(Result, Retries - 1, min(2 * PauseMs, ?PAUSE_MAX_MS), DeadlineMs,
                                Once)
            end;
        _ -> {error, Reason}
    end;
tried({Answer, _}, _Retries, _PauseMs, _DeadlineMs, _Once) ->
    Answer.

once({_, Bucket, Name} = Key, Request, #{n := N, timeout_ms := TimeoutMs} = Options,
     {Running, Max}) ->
    case weft_ring:active({atom_to_binary(Bucket), Name}, N) of
        {error, Reason} -> {{error, Reason}, refused};
        {ok, Places} ->
            case counters:get(Running, 1) >= Max of
                true -> {{error, overload}, refused};
                false -> started(Key, Request, Places, Options, Running, TimeoutMs)
            end
    end.

started(Key, Request, Places, Options, Running, TimeoutMs) ->
    Caller = self(),
    Alias = alias([reply]),
    {Pid, Monitor} =
        begun(weft_kv_app:coordinators(),
              fun() ->
                  ok = counters:add(Running, 1, 1),
                  try
                      weft_redact:run(fun() ->
                          coordinate(Key, Request, Places, Options, {Caller, Alias})
                      end)
                  after counters:sub(Running, 1, 1)
                  end
              end),
    receive
        {Alias, Answer} ->
            true = demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, Pid, Reason} ->
            _ = unalias(Alias),
            {{error, {unknown, Reason}}, none}
    after TimeoutMs + ?MARGIN_MS ->
        _ = unalias(Alias),
        true = demonitor(Monitor, [flush]),
        receive {Alias, Answer} -> Answer after 0 -> {{error, timeout}, none} end
    end.

begun(spawned, Fun) -> spawn_monitor(Fun);
begun(one_supervisor, Fun) -> weft_kv_request_sup:start(Fun).

coordinate(Key, Request, Places, Options, To) ->
    {State, Effects} = weft_kv_coordinator_core:init(Request, Places, Options),
    effects(Effects, State, {Key, Options, To}).

effects([], State, Context) ->
    receive
        {reply, Place, Reply} -> event({reply, Place, Reply}, State, Context);
        {timer, Timer} -> event({timer, Timer}, State, Context)
    end;
effects([{ask, Place, Request} | Effects], State, Context) ->
    Self = self(),
    _ = in_private(fun() -> Self ! {reply, Place, asked(Place, Request, Context)} end),
    effects(Effects, State, Context);
effects([{repair, Place, Object} | Effects], State, Context) ->
    _ = in_private(fun() -> asked(Place, {merge, Object}, Context) end),
    effects(Effects, State, Context);
effects([{after_ms, Ms, Timer} | Effects], State, Context) ->
    _ = erlang:send_after(Ms, self(), {timer, Timer}),
    effects(Effects, State, Context);
effects([{answer, Answer} | Effects], State, {_, _, {_, Alias}} = Context) ->
    Alias ! {Alias, {Answer, weft_kv_coordinator_core:again(State)}},
    effects(Effects, State, Context);
effects([done | _], _State, _Context) ->
    ok.

%% What users have stored is not for logs.
in_private(Fun) -> spawn(weft_redact, run, [Fun]).

event(Event, State0, Context) ->
    {State, Effects} = weft_kv_coordinator_core:handle(Event, State0),
    effects(Effects, State, Context).

asked({_, _, Role} = Place, Request, {Key, #{timeout_ms := TimeoutMs} = Options, _}) ->
    Command = command(Request, Role, Options),
    case weft_vnode:ask(weft_kv_vnode, Place, Key, Command, TimeoutMs) of
        {ok, Answer} -> Answer;
        {error, Reason} -> {error, Reason}
    end.

command(Request, Role, Options) ->
    {Request, maps:with([n, evict, siblings], Options), Role}.
