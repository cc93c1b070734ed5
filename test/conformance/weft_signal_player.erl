%% SPDX-License-Identifier: Apache-2.0
%% @doc Plays a program of weft_signal_program on two nodes and checks the order of all signals.
%%
%% The rule: two signals from one process to another never overtake each other. So at a listener
%%   - the numbers of a talker come as 1, 2, 3 ..., whatever addresses were used;
%%   - the spawn reply of an own talker comes before anything else from it;
%%   - when a talker's DOWN or EXIT comes (noproc too: it is the talker's answer), all its signals
%%     are there;
%% and at a talker the answers of a listener come as 1, 2, 3 ... When all is done, no listener has
%% got anything beyond that.
-module(weft_signal_player).

-export([play/2, play/3]).
-export([listen/2, talk/3]).

-type nodes() :: #{a := node(), b := node()}.

-define(PROGRAM_MS, 30_000).

%% @doc Plays the program; `a' is this node.
-spec play(weft_signal_program:program(), nodes()) -> ok | {violation, term()}.
play(#{talkers := Talkers} = Program, Nodes) ->
    play(Program, Talkers, Nodes).

%% @doc The same with other scripts than those the listeners count on.
-spec play(weft_signal_program:program(), #{weft_signal_program:talker() =>
           weft_signal_program:script()}, nodes()) -> ok | {violation, term()}.
play(#{listeners := Places} = Program, Scripts, Nodes) ->
    Run = #{program => Program, scripts => Scripts, nodes => Nodes, coordinator => self(),
            id => erlang:unique_integer([positive])},
    Start = fun(L, Place) -> spawn(maps:get(Place, Nodes), ?MODULE, listen, [L, Run]) end,
    Listeners = maps:map(Start, Places),
    Directory = maps:map(fun collect/2, Listeners),
    [Pid ! {go, Directory} || Pid <- maps:values(Listeners)],
    Verdict = verdict(Listeners, erlang:monotonic_time(millisecond) + ?PROGRAM_MS),
    Whole = case Verdict of
                ok -> nothing_more(maps:map(fun surplus/2, Listeners));
                {violation, _} -> Verdict
            end,
    [exit(Pid, kill) || Pid <- maps:values(Listeners)],
    Whole.

collect(L, Pid) ->
    receive {addresses, L, Pid, Addresses} -> Addresses
    after ?PROGRAM_MS -> erlang:error({listener_does_not_start, L, node(Pid)})
    end.

%% The first violation is the verdict; the others would be waited for in vain.
verdict(Left, _) when Left =:= #{} ->
    ok;
verdict(Left, EndMs) ->
    receive
        {verdict, L, Pid, ok} when map_get(L, Left) =:= Pid -> verdict(maps:remove(L, Left), EndMs);
        {verdict, L, Pid, Violation} when map_get(L, Left) =:= Pid -> {violation, Violation}
    after max(0, EndMs - erlang:monotonic_time(millisecond)) ->
        {violation, {nothing_more_comes, maps:map(fun state_of/2, Left)}}
    end.

nothing_more(Surplus) ->
    case [Signal || Signals <- maps:values(Surplus), Signal <- Signals] of
        [] -> ok;
        [_ | _] -> {violation, {surplus, Surplus}}
    end.

%% Signals that came to a listener after it had got all.
surplus(L, Pid) ->
    Pid ! {tell_surplus, self()},
    receive {surplus, L, Signals} -> Signals
    after ?PROGRAM_MS -> [{does_not_answer, node(Pid)}]
    end.

state_of(L, Pid) ->
    Pid ! {tell_state, self()},
    receive {state, L, State} -> State
    after 1_000 -> {does_not_answer, node(Pid)}
    end.

%% ---- listener ----

%% @private
-spec listen(weft_signal_program:listener(), map()) -> no_return().
listen(L, #{coordinator := Coordinator, id := Id} = Run) ->
    process_flag(trap_exit, true),
    Owner = monitor(process, Coordinator),
    Name = name(listener, L, Id),
    true = register(Name, self()),
    Coordinator ! {addresses, L, self(), {self(), {Name, node()}, alias()}},
    receive
        {go, Directory} ->
            #{program := #{talkers := Talkers} = Program} = Run,
            Expected = maps:from_list([{T, weft_signal_program:expected(T, L, Program)}
                                       || T <- maps:keys(Talkers)]),
            hear(spawn_talkers(#{me => L, run => Run, owner => Owner, expected => Expected,
                                 heard => maps:map(fun(_, _) -> 0 end, Expected), requests => #{},
                                 pids => #{}, watched => #{}, answered => #{}}, Directory));
        {'DOWN', Owner, process, _, _} ->
            exit(normal)
    end.

spawn_talkers(#{me := L, run := Run} = State, Directory) ->
    #{scripts := Scripts, nodes := Nodes, id := RunId} = Run,
    Mine = [Script || #{parent := Parent} = Script <- maps:values(Scripts), Parent =:= L],
    Spawn = fun(#{place := Place, spawn_options := Options} = Script) ->
                    Arguments = [Script, Directory, RunId],
                    spawn_request(maps:get(Place, Nodes), ?MODULE, talk, Arguments, Options)
            end,
    State#{requests => maps:from_list([{Spawn(Script), T} || #{id := T} = Script <- Mine])}.

hear(State) ->
    case is_complete(State) of
        true -> finish(ok, State);
        false -> receive Signal -> signal(Signal, State) end
    end.

%% All talkers that speak to us have said all, all our spawns are answered, all watches have fired.
is_complete(#{expected := Expected, heard := Heard, requests := Requests, watched := Watched}) ->
    Expected =:= Heard andalso Requests =:= #{} andalso Watched =:= #{}.

signal({spawn_reply, Request, ok, Pid}, #{requests := Requests} = State) ->
    {T, Rest} = maps:take(Request, Requests),
    case State of
        #{heard := #{T := 0}} -> hear(watch_own(T, Request, Pid, State#{requests := Rest}));
        #{heard := #{T := N}} -> finish({spawn_reply_overtaken, #{talker => T, by => N}}, State)
    end;
signal({spawn_reply, _, error, Reason}, State) ->
    finish({spawn_failed, Reason}, State);
signal({number, T, N, Pid, Payload}, State) ->
    number(T, N, Pid, Payload, State);
signal({'EXIT', Pid, {number, T, N, Pid, Payload}}, State) ->
    number(T, N, Pid, Payload, State);
signal({'DOWN', Owner, process, _, _}, #{owner := Owner}) ->
    exit(normal);
signal({'DOWN', Ref, process, _, Reason}, State) ->
    ended(Ref, Reason, State);
signal({'EXIT', Pid, Reason}, State) ->
    ended(Pid, Reason, State);
signal({tell_state, From}, #{me := L} = State) ->
    From ! {state, L, maps:with([expected, heard, requests, watched], State)},
    hear(State).

number(T, N, Pid, Payload, #{heard := Heard, requests := Requests} = State) ->
    case {maps:get(T, Heard) + 1, lists:member(T, maps:values(Requests))} of
        {N, false} -> hear(answer(T, Pid, Payload, watch(T, Pid, State#{heard := Heard#{T := N}})));
        {N, true} -> finish({spawn_reply_overtaken, #{talker => T, by => N}}, State);
        {Next, _} -> finish({overtaken, #{talker => T, awaited => Next, came => N}}, State)
    end.

%% Own talkers are watched as their spawn options say; the request is the monitor.
watch_own(T, Request, Pid, #{watched := Watched0, pids := Pids} = State0) ->
    #{run := #{scripts := #{T := #{spawn_options := Options}}}} = State0,
    Watches = [{case Option of monitor -> Request; link -> Pid end, T} || Option <- Options],
    Watched = maps:merge(Watched0, maps:from_list(Watches)),
    State = State0#{pids := Pids#{Pid => T}, watched := Watched},
    case Watches of
        [] -> watch_as(pid, T, Pid, State);
        _ -> State
    end.

watch(_, Pid, #{pids := Pids} = State) when is_map_key(Pid, Pids) ->
    State;
watch(T, Pid, #{me := L, run := #{scripts := Scripts}, pids := Pids} = State) ->
    #{T := #{watches := #{L := How}}} = Scripts,
    watch_as(How, T, Pid, State#{pids := Pids#{Pid => T}}).

watch_as(How, T, Pid, #{watched := Watched, run := #{id := RunId}} = State) ->
    Watch = case How of
                pid -> monitor(process, Pid);
                name -> monitor(process, {name(talker, T, RunId), node(Pid)});
                link -> link(Pid), Pid
            end,
    State#{watched := Watched#{Watch => T}}.

%% The talker's last signal. `noproc' says that it was dead when we began to watch, so that all its
%% signals had been sent, too.
ended(Watch, Reason, #{watched := Watched, heard := Heard, expected := Expected} = State) ->
    {T, Rest} = maps:take(Watch, Watched),
    #{T := N} = Heard,
    #{T := Wanted} = Expected,
    case Reason =:= noproc orelse Reason =:= {finished, T} of
        true when N =:= Wanted -> hear(State#{watched := Rest});
        true -> finish({end_overtook, #{talker => T, heard => N, sent => Wanted}}, State);
        false -> finish({talker_failed, #{talker => T, reason => Reason}}, State)
    end.

answer(T, Pid, {ask, Alias}, #{me := L, answered := Answered, run := #{id := RunId}} = State) ->
    N = maps:get(T, Answered, 0),
    Alias ! {answer, L, N + 1},
    Pid ! {answer, L, N + 2},
    {name(talker, T, RunId), node(Pid)} ! {answer, L, N + 3},
    State#{answered := Answered#{T => N + 3}};
answer(_, _, Bytes, State) when is_binary(Bytes) ->
    State.

finish(Verdict, #{me := L, run := #{coordinator := Coordinator}, owner := Owner}) ->
    Coordinator ! {verdict, L, self(), Verdict},
    receive
        {'DOWN', Owner, process, _, _} -> exit(normal);
        {tell_surplus, Coordinator} -> Coordinator ! {surplus, L, everything(Owner)}
    end,
    receive {'DOWN', Owner, process, _, _} -> exit(normal) end.

everything(Owner) ->
    receive
        {number, T, N, _, _} -> [{number, T, N} | everything(Owner)];
        Signal when element(2, Signal) =/= Owner -> [Signal | everything(Owner)]
    after 0 -> []
    end.

%% ---- talker ----

%% @private
-spec talk(weft_signal_program:script(), #{weft_signal_program:listener() => tuple()},
           RunId :: pos_integer()) -> no_return().
talk(#{id := T, steps := Steps} = Script, Directory, RunId) ->
    true = register(name(talker, T, RunId), self()),
    [step(Step, T, Directory) || Step <- Steps],
    [await_answers(L, 1, 3 * weft_signal_program:asks(L, Script)) || L <- maps:keys(Directory)],
    exit({finished, T}).

step({Kind, L, N, Bytes}, T, Directory) ->
    {Pid, Name, Alias} = maps:get(L, Directory),
    Signal = {number, T, N, self(), payload(Kind, Bytes)},
    case Kind of
        pid -> Pid ! Signal;
        name -> Name ! Signal;
        alias -> Alias ! Signal;
        ask -> Pid ! Signal;
        exit -> exit(Pid, Signal);
        nosuspend -> erlang:send_nosuspend(Pid, Signal) orelse (Pid ! Signal)
    end.

payload(ask, _) -> {ask, alias([reply])};
payload(_, Bytes) -> <<0:(8 * Bytes)>>.

await_answers(_, N, Last) when N > Last ->
    ok;
await_answers(L, N, Last) ->
    receive
        {answer, L, N} -> await_answers(L, N + 1, Last);
        {answer, L, Other} -> exit({answer_overtaken, #{from => L, awaited => N, came => Other}})
    after ?PROGRAM_MS -> exit({answer_missing, #{from => L, awaited => N}})
    end.

%% Of one run only, since what an earlier run left behind may still be there.
name(Role, Number, RunId) ->
    list_to_atom(lists:concat(["order_", Role, "_", Number, "_of_run_", RunId])).
