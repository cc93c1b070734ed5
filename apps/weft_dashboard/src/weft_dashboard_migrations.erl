%% SPDX-License-Identifier: Apache-2.0
%% @doc Counts how often processes of this node go from one scheduler to another: they are traced
%% for a twentieth of a second. It needs nothing but OTP, as it is given to other nodes.
%%
%% Bounded: as many processes as are given, and no more than 10,000 of their events. From OTP 27 on
%% it has a trace session of its own, which disturbs nobody. Before that a process has one tracer:
%% one that somebody else traces is left out here, and for that short time it is the other way
%% round.
-module(weft_dashboard_migrations).

-export([count/1]).
-export([trace/1]).

-define(TRACED_MS, 50).
-define(EVENTS_MAX, 10000).
-define(END_MS, 1000).

%% @doc For each process that could be traced, how often it began to run on another scheduler than
%% before.
-spec count([pid()]) -> #{pid() => non_neg_integer()}.
count(Pids) ->
    {Tracer, Ref} = spawn_monitor(?MODULE, trace, [Pids]),
    receive
        {'DOWN', Ref, process, Tracer, {counted, Counts}} -> Counts;
        {'DOWN', Ref, process, Tracer, _Failed} -> #{}
    after ?TRACED_MS + ?END_MS ->
        true = exit(Tracer, kill),
        true = demonitor(Ref, [flush]),
        #{}
    end.

%% @private With the tracer all traces end that it did not end itself.
-spec trace([pid()]) -> no_return().
trace(Pids) ->
    _ = process_flag(priority, high),
    Switch = switch(),
    Traced = [Pid || Pid <- Pids, Pid =/= self(), switched(Switch, Pid)],
    _ = erlang:send_after(?TRACED_MS, self(), over),
    Seen = seen(#{}, ?EVENTS_MAX),
    ok = off(Switch, Traced),
    exit({counted, maps:from_list([{Pid, moves(maps:get(Pid, Seen, none))} || Pid <- Traced])}).

%% Pid => {the scheduler on which it ran last, how often that was another one than before}.
seen(Seen, 0) ->
    Seen;
seen(Seen, Left) ->
    receive
        over -> Seen;
        {trace, Pid, in, _Function, Scheduler} -> seen(ran(Pid, Scheduler, Seen), Left - 1);
        _Out -> seen(Seen, Left - 1)
    end.

ran(Pid, Scheduler, Seen) ->
    case Seen of
        #{Pid := {Scheduler, _}} -> Seen;
        #{Pid := {_Other, Moves}} -> Seen#{Pid := {Scheduler, Moves + 1}};
        #{} -> Seen#{Pid => {Scheduler, 0}}
    end.

moves(none) -> 0;
moves({_Scheduler, Moves}) -> Moves.

%% --- tracing ------------------------------------------------------------------------------------

%% The module is there from OTP 27 on.
switch() -> switch(trace).

switch(Module) ->
    _ = code:ensure_loaded(Module),
    case erlang:function_exported(Module, session_create, 3) of
        true -> {session, Module, apply(Module, session_create, [?MODULE, self(), []])};
        false -> alone
    end.

%% A process that has ended, or that somebody else traces, is badarg.
switched(Switch, Pid) ->
    try flags(Switch, Pid, true) of
        _ -> true
    catch error:badarg -> false
    end.

flags({session, Module, Session}, Pid, IsOn) ->
    apply(Module, process, [Session, Pid, IsOn, [running, scheduler_id]]);
flags(alone, Pid, true) ->
    erlang:trace(Pid, true, [running, scheduler_id, {tracer, self()}]);
flags(alone, Pid, false) ->
    erlang:trace(Pid, false, [running, scheduler_id]).

off({session, Module, Session}, _Traced) ->
    true = apply(Module, session_destroy, [Session]),
    ok;
off(alone, Traced) ->
    lists:foreach(fun(Pid) ->
                          try flags(alone, Pid, false) of _ -> ok catch error:badarg -> ok end
                  end, Traced).
