%% SPDX-License-Identifier: Apache-2.0
%% @doc Switches tracing on a node on and off, and reads trace messages.
%%
%% From OTP 27 on it has a trace session of its own, which disturbs no other tracing. Before that
%% there is one tracer for a process, and one pattern for messages on the node: if anybody else
%% traces, nothing is begun, and what is removed in the end is only our own.
%%
%% Only messages between the nodes that are recorded together are traced: the patterns let pass
%% nothing else.
-module(weft_profile_switch).

-export([prepare/0, left_alone/0, make/4, on/1, pause/1, off/1, delivered/1, is_session/1,
         event/6, message_key/1, message_kind/1]).
-export_type([switch/0, kind/0]).

-type kind() :: session | alone.
-opaque switch() :: #{by := {session, module(), Session :: term()} | {alone, Collector :: pid()},
                      which := all | [pid()], untraced := [pid()], flags := [atom()],
                      ports := all | [port()]}.

-define(PORT_FLAGS, [running_ports, scheduler_id, monotonic_timestamp]).
-define(HASHES, (1 bsl 32)).
%% In the first levels of a message there are those references that make it unlike others.
-define(DEPTH, 3).
%% How long the busiest processes are looked for.
-define(BUSY_MS, 100).

%% @doc Whether this node can be traced now. The error is a text.
-spec prepare() -> {ok, kind()} | {error, string()}.
prepare() ->
    case code:ensure_loaded(trace) of
        {module, Trace} ->
            case erlang:function_exported(Trace, session_create, 3) of
                true -> {ok, session};
                false -> alone()
            end;
        {error, _} -> alone()
    end.

%% @doc Processes that only yield, to find out whether others wait: those of weft. They would fill
%% the recording with themselves.
-spec left_alone() -> [pid()].
left_alone() ->
    case erlang:function_exported(weft_turn, is_witness, 1) of
        true ->
            IsWitness = erlang:make_fun(weft_turn, is_witness, 1),
            [Pid || Pid <- processes(), IsWitness(Pid)];
        false ->
            []
    end.

alone() ->
    Patterns = [erlang:trace_info(What, match_spec) || What <- [send, 'receive']],
    case [Default || {match_spec, true} = Default <- Patterns] of
        [_, _] ->
            case {lists:any(fun is_traced/1, [new_processes | processes()]),
                  lists:any(fun is_traced/1, [new_ports | erlang:ports()])} of
                {false, false} -> {ok, alone};
                {true, _} -> {error, somebody("traces processes")};
                {_, true} -> {error, somebody("traces ports")}
            end;
        _ -> {error, somebody("has a trace pattern for messages")}
    end.

somebody(What) ->
    lists:concat(["somebody else ", What, " on ", node(), ", and before OTP 27 only one can: ",
                  "end that (dbg:stop() if it is dbg), then record again"]).

is_traced(What) ->
    case erlang:trace_info(What, flags) of
        {flags, [_ | _]} -> true;
        _ -> false
    end.

%% @doc All but the flags, which on/1 sets. Trace messages go to Collector; Untraced are processes
%% of the recording itself.
-spec make(kind(), pid(), [pid()], weft_profile_tracer:options()) -> switch().
make(Kind, Collector, Untraced, #{pids := Which} = Options) ->
    Flags = [running, exiting, send, 'receive', scheduler_id, monotonic_timestamp]
        ++ [garbage_collection || maps:get(gc, Options)] ++ [procs || maps:get(procs, Options)],
    Others = [Node || Node <- maps:get(nodes, Options), Node =/= node()],
    Chosen = chosen(Which, [Collector | Untraced]),
    #{by => by(Kind, Collector, sends(Others), receives(Others)), flags => Flags,
      which => Chosen, untraced => Untraced,
      ports => case Options of
                   #{ports := true} -> ports_of(Chosen);
                   #{ports := false} -> []
               end}.

%% With some processes go the ports that are theirs at the begin.
ports_of(all) ->
    all;
ports_of(Pids) ->
    [Port || Port <- erlang:ports(), {connected, Owner} <- [erlang:port_info(Port, connected)],
             lists:member(Owner, Pids)].

by(session, Collector, Sends, Receives) ->
    {module, Trace} = code:ensure_loaded(trace),
    Session = Trace:session_create(weft_profile, Collector, []),
    _ = Trace:send(Session, Sends, []),
    _ = Trace:recv(Session, Receives, []),
    {session, Trace, Session};
by(alone, Collector, Sends, Receives) ->
    ok = patterns(Sends, Receives),
    {alone, Collector}.

%% Called by its name, as the types that dialyzer has for it in OTP 25 know no messages.
patterns(Sends, Receives) ->
    Pattern = erlang:make_fun(erlang, trace_pattern, 3),
    _ = [Pattern(What, Specification, [])
         || {What, Specification} <- [{send, Sends}, {'receive', Receives}]],
    ok.

%% @doc Begins to trace, now or again.
-spec on(switch()) -> ok.
on(#{by := By, flags := Flags, ports := Ports} = Switch) ->
    processes_on(By, Switch, Flags),
    trace(By, port, Ports, true, ?PORT_FLAGS).

processes_on(By, #{which := all, untraced := Untraced}, Flags) ->
    trace(By, process, all, true, Flags),
    trace(By, process, Untraced, false, Flags);
processes_on(By, #{which := Pids}, Flags) ->
    trace(By, process, Pids, true, Flags).

trace(By, Kind, all, How, Flags) -> if_alive(By, Kind, all, How, Flags);
trace(By, Kind, Some, How, Flags) ->
    lists:foreach(fun(One) -> if_alive(By, Kind, One, How, Flags) end, Some).

%% A process, a port or a session may be gone.
if_alive(By, Kind, Which, How, Flags) ->
    try set(By, Kind, Which, How, Flags) of _ -> ok
    catch error:badarg -> ok
    end.

%% Of all, it has other words for processes and for ports where there are no sessions.
set({session, Trace, Session}, Kind, Which, How, Flags) ->
    Trace:Kind(Session, Which, How, Flags);
set({alone, Collector}, Kind, Which, How, Flags) ->
    Named = case {Which, Kind} of
                {all, process} -> processes;
                {all, port} -> ports;
                {One, _} -> One
            end,
    erlang:trace(Named, How, [{tracer, Collector} | Flags]).

%% @doc Ends tracing until on/1: in between nothing costs anything.
-spec pause(switch()) -> ok.
pause(#{by := {session, Trace, Session}, flags := Flags}) ->
    %% It may have been switched off meanwhile.
    By = {session, Trace, Session},
    if_alive(By, process, all, false, Flags),
    if_alive(By, port, all, false, ?PORT_FLAGS);
pause(#{by := {alone, Collector}}) ->
    _ = try erlang:trace(all, false, [all, {tracer, Collector}])
        catch error:badarg -> erlang:trace(all, false, [all])
        end,
    ok.

%% To a pid or an alias, or to {Name, Node}.
sends(Nodes) ->
    [{['$1', '_'], [one_of({node, '$1'}, Nodes)], []},
     {[{'_', '$1'}, '_'], [one_of('$1', Nodes)], []}].

%% What comes from no process, such as a timer, has something else in place of the node.
receives(Nodes) ->
    [{['$1', '_', '_'], [one_of('$1', Nodes)], []}].

one_of(_Node, []) -> false;
one_of(Node, Nodes) -> list_to_tuple(['orelse' | [{'=:=', Node, Other} || Other <- Nodes]]).

%% The busiest are those with the most reductions in a short time.
chosen(all, _Untraced) ->
    all;
chosen(Pids, _Untraced) when is_list(Pids) ->
    Pids;
chosen(Count, Untraced) ->
    Before = reductions(),
    receive after ?BUSY_MS -> ok end,
    Busy = [{Now - maps:get(Pid, Before, 0), Pid} || {Pid, Now} <- maps:to_list(reductions()),
                                                     not lists:member(Pid, [self() | Untraced])],
    [Pid || {_, Pid} <- lists:sublist(lists:reverse(lists:sort(Busy)), Count)].

reductions() ->
    maps:from_list([{Pid, Count} || Pid <- processes(),
                                    {reductions, Count} <- [process_info(Pid, reductions)]]).

%% @doc Switches off, as often as one likes.
-spec off(switch()) -> ok.
off(#{by := {session, Trace, Session}}) ->
    _ = Trace:session_destroy(Session),
    ok;
off(#{by := {alone, _}} = Switch) ->
    ok = patterns(true, true),
    pause(Switch).

%% @doc Asks for the message {trace_delivered, _, Ref}, which comes after all trace messages that
%% were under way.
-spec delivered(switch()) -> reference().
delivered(_Switch) -> erlang:trace_delivered(all).

%% @doc Whether it is a session of its own.
-spec is_session(switch()) -> boolean().
is_session(#{by := By}) -> element(1, By) =:= session.

%% @doc What is kept of a trace message. A and B are its arguments. A port runs as a process does,
%% and tells the command of a process that it runs, or nothing (0).
-spec event(atom(), pid() | port(), term(), term(), non_neg_integer(), integer()) ->
          weft_profile_tracer:event() | ignored.
event(What, Pid, A, none, Scheduler, Ns) ->
    case What of
        in -> {Ns, in, Pid, Scheduler, A};
        out -> {Ns, out, Pid, Scheduler, A};
        in_exiting -> {Ns, in, Pid, Scheduler, A};
        out_exiting -> {Ns, out, Pid, Scheduler, A};
        out_exited -> {Ns, out, Pid, Scheduler, A};
        gc_minor_start -> {Ns, gc_start, Pid, Scheduler, minor};
        gc_major_start -> {Ns, gc_start, Pid, Scheduler, major};
        gc_minor_end -> {Ns, gc_end, Pid, Scheduler, minor};
        gc_major_end -> {Ns, gc_end, Pid, Scheduler, major};
        'receive' -> arrival(Pid, A, Scheduler, Ns);
        _ -> ignored
    end;
event(send, Pid, Message, To, Scheduler, Ns) ->
    {Ns, send, Pid, Scheduler, To, message_key(Message), message_kind(Message)};
event(spawned, Pid, _Parent, {M, F, Arguments}, Scheduler, Ns) when is_list(Arguments) ->
    {Ns, spawned, Pid, Scheduler, {M, F, length(Arguments)}};
event(_What, _Pid, _A, _B, _Scheduler, _Ns) ->
    ignored.

%% Some signals arrive as messages that nobody has sent.
arrival(_Pid, {'DOWN', _, _, _, _}, _Scheduler, _Ns) -> ignored;
arrival(_Pid, {'EXIT', _, _}, _Scheduler, _Ns) -> ignored;
arrival(_Pid, {spawn_reply, _, _, _}, _Scheduler, _Ns) -> ignored;
arrival(Pid, Message, Scheduler, Ns) ->
    {Ns, 'receive', Pid, Scheduler, message_key(Message), message_kind(Message)}.

%% @doc The same for a message on both nodes: a hash, which of references has some bits only, and
%% the numbers of the first references in it.
-spec message_key(term()) -> {non_neg_integer(), [string()]}.
message_key(Message) ->
    {erlang:phash2(Message, ?HASHES), references(Message, ?DEPTH)}.

%% Without the first number, which stands for the node and is another one elsewhere.
references(Reference, _Depth) when is_reference(Reference) ->
    [lists:dropwhile(fun(Char) -> Char =/= $. end, ref_to_list(Reference))];
references(Tuple, Depth) when is_tuple(Tuple), tuple_size(Tuple) < 8, Depth > 0 ->
    lists:append([references(Element, Depth - 1) || Element <- tuple_to_list(Tuple)]);
references([alias | Reference], _Depth) ->
    references(Reference, 0);
references(_Term, _Depth) ->
    [].

%% @doc What kind of message it is, for people: an atom that is in it at the usual place.
-spec message_kind(term()) -> atom().
message_kind({'$gen_call', _From, Request}) -> message_kind(Request);
message_kind({'$gen_cast', Request}) -> message_kind(Request);
message_kind(Atom) when is_atom(Atom) -> Atom;
message_kind({Reference, _}) when is_reference(Reference) -> reply;
message_kind({[alias | _], _}) -> reply;
message_kind(Tuple) when is_tuple(Tuple), is_atom(element(1, Tuple)) -> element(1, Tuple);
message_kind(_Other) -> message.
