%% SPDX-License-Identifier: Apache-2.0
%% @doc What a distributed program of the papers is to the benchmark: written once, and run on any
%% nodes that can reach each other, whatever carries their messages.
%%
%% A program is run from one process on the first of its nodes: plan (who does what where, from the
%% options alone), start (processes on all nodes), run, check, stop. Only run is timed, unless the
%% result has a duration of its own. A program talks to its nodes by nothing but processes and
%% messages. What it gets wrong is an error with a text; if one of its processes is lost or the time
%% is over, all of them end, since they are linked or watch each other.
-module(weft_bench_program).

-export([run/4, spawn_link/4, spawn_link_monitor/4, lost/2]).
-compile({no_auto_import, [spawn_link/4]}).
-export_type([result/0]).

%% What a program found out. Numbers whose key is a metric of `weft_report_record' are recorded.
-type result() :: #{atom() => term()}.

%% The plan, or what is wrong with the options.
-callback plan(Options :: map(), [node(), ...]) -> {ok, Plan :: term()} | {error, iodata()}.
-callback start(Plan :: term()) -> State :: term().
-callback run(State) -> State.
%% Is what was computed right? If so, what it is.
-callback check(State :: term()) -> {ok, result()} | {error, iodata()}.
-callback stop(State :: term()) -> ok.

%% @doc Runs a program from this node, which is the first of the nodes.
-spec run(module(), Options :: map(), [node(), ...], TimeoutMs :: pos_integer()) ->
          {ok, result()} | {error, Text :: string()}.
run(Module, Options, Nodes, TimeoutMs) ->
    case Module:plan(Options, Nodes) of
        {ok, Plan} -> run_plan(Module, Plan, TimeoutMs);
        {error, Text} -> text("~ts", [Text])
    end.

run_plan(Module, Plan, TimeoutMs) ->
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> Self ! {self(), all_steps(Module, Plan)} end),
    receive
        {Pid, Outcome} ->
            demonitor(Monitor, [flush]),
            Outcome;
        {'DOWN', Monitor, process, Pid, {lost, Node, Why}} ->
            text("a process on ~ts was lost: ~0tP", [Node, Why, 20]);
        {'DOWN', Monitor, process, Pid, Why} ->
            text("~0tP", [Why, 40])
    after TimeoutMs ->
        exit(Pid, kill),
        receive {'DOWN', Monitor, process, Pid, _} -> ok end,
        %% It may have been done just then.
        receive {Pid, _} -> ok after 0 -> ok end,
        text("not done after ~b ms", [TimeoutMs])
    end.

text(Format, Arguments) ->
    {error, lists:flatten(io_lib:format(Format, Arguments))}.

all_steps(Module, Plan) ->
    Started = Module:start(Plan),
    StartUs = erlang:monotonic_time(microsecond),
    Ran = Module:run(Started),
    ElapsedUs = erlang:monotonic_time(microsecond) - StartUs,
    Checked = Module:check(Ran),
    ok = Module:stop(Ran),
    case Checked of
        {ok, Result} -> {ok, maps:merge(#{duration_s => ElapsedUs / 1.0e6}, Result)};
        {error, Text} -> text("~ts", [Text])
    end.

%% @doc Starts a process on a node, linked to the caller, who ends if the node can not be reached.
-spec spawn_link(node(), module(), Function :: atom(), [term()]) -> pid().
spawn_link(Node, Module, Function, Arguments) ->
    on(Node, erlang:spawn_link(Node, Module, Function, Arguments)).

%% @doc The same, and it is watched from its beginning: why it ends is known, however early it does.
-spec spawn_link_monitor(node(), module(), Function :: atom(), [term()]) -> {pid(), reference()}.
spawn_link_monitor(Node, Module, Function, Arguments) ->
    {Pid, Monitor} = spawn_opt(Node, Module, Function, Arguments, [link, monitor]),
    {on(Node, Pid), Monitor}.

%% For a node that can not be reached it is a process of this one that has ended.
on(Node, Pid) ->
    node(Pid) =:= Node orelse exit({lost, Node, noconnection}),
    Pid.

%% @doc For the process that runs the program, when another one is lost without which the program
%% cannot go on.
-spec lost(pid(), Why :: term()) -> no_return().
lost(_Pid, {lost, _Node, _Why} = Lost) -> exit(Lost);
lost(Pid, Why) -> exit({lost, node(Pid), Why}).
