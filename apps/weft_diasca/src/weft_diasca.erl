%% SPDX-License-Identifier: Apache-2.0
%% @doc Simulations in discrete time by the actors of many nodes, whose results do not depend on the
%% nodes. The guide is `docs/guide/simulation.md'.
%%
%% Nothing has to be started: a run starts what it needs on its nodes, which need the code of this
%% application and of the workload, and ends it.
-module(weft_diasca).

-export([run/2, start/2, await/1, stop/1, status/1, continue/2, workloads/0, format_error/1]).
-export_type([options/0, result/0, reason/0]).

-type options() :: #{nodes => [node(), ...], seed => term(), ticks => weft_diasca_actor:tick(),
                     options => map(), order => sorted | shuffled,
                     probes => all | none | [Name :: term()],
                     checkpoint => file:filename(), checkpoint_ticks => pos_integer() | never,
                     diasca_ms => pos_integer(), code => same | any, actors_max => pos_integer(),
                     messages_max => pos_integer(), diascas_max => pos_integer(),
                     probes_max => pos_integer()}.
%% `ticks' is the last tick, `options' are those of the workload. With `checkpoint' the run is
%% written to that file each `checkpoint_ticks' ticks, and when it is stopped. `code': whether nodes
%% may have different versions of the engine and the workload.
-type result() :: weft_diasca_root_core:result().
%% `hash': of all values of probes. `probes': the values that were kept. `messages' between actors,
%% `away': how many of them went to another node. `wall_ms': without `setup_ms', which it took to
%% start the managers and to make the first actors.
-type reason() :: weft_diasca_root:reason()
                | {no_workload, module()}
                | {workload, module(), iodata()}
                | {option, Key :: term(), Value :: term()}.

%% @doc Simulates a workload: one of `workloads/0', or a module with the behaviour
%% `weft_diasca_workload'.
-spec run(Workload :: atom(), options()) -> {ok, result()} | {error, reason()}.
run(Workload, Options) ->
    case start(Workload, Options) of
        {ok, Run} -> await(Run);
        {error, Reason} -> {error, Reason}
    end.

%% @doc The same without waiting. The run ends with the caller.
-spec start(Workload :: atom(), options()) -> {ok, Run :: pid()} | {error, reason()}.
start(Workload, Given) ->
    Module = weft_diasca_workload:module(Workload),
    case weft_diasca_workload:about(Module) of
        none ->
            {error, {no_workload, Workload}};
        #{ticks := Ticks} = About ->
            case weft_diasca_options:new(Given, Ticks) of
                {ok, Options} -> start(Module, About, maps:get(options, Given, #{}), Options);
                {error, Reason} -> {error, Reason}
            end
    end.

start(Module, #{options := Defaults}, Own, Options) ->
    case maps:keys(maps:without(maps:keys(Defaults), Own)) of
        [Key | _] ->
            {error, {workload, Module, io_lib:format("it has no option ~tp; it has ~0tp",
                                                     [Key, Defaults])}};
        [] ->
            case weft_diasca_workload:actors(Module, maps:merge(Defaults, Own)) of
                {error, Text} -> {error, {workload, Module, Text}};
                {ok, Actors} -> weft_diasca_root:start(#{'begin' => {actors, Actors},
                                                         about => #{workload => Module},
                                                         options => Options})
            end
    end.

%% @doc The outcome of a run of the caller.
-spec await(Run :: pid()) -> {ok, result()} | {error, reason() | {run_lost, term()}}.
await(Run) ->
    Monitor = monitor(process, Run),
    receive
        {weft_diasca, Run, Outcome} ->
            demonitor(Monitor, [flush]),
            Outcome;
        {'DOWN', Monitor, process, Run, Why} ->
            receive {weft_diasca, Run, Outcome} -> Outcome
            after 0 -> {error, {run_lost, Why}}
            end
    end.

%% @doc Ends a run at the next tick. Its result is that of the ticks until then; with `checkpoint'
%% it can be continued.
-spec stop(Run :: pid()) -> ok.
stop(Run) -> weft_diasca_root:stop(Run).

%% @doc How far a run is. Of one that has ended it exits, as a call of a process that is not there.
-spec status(Run :: pid()) -> #{tick := weft_diasca_actor:tick(), diasca := non_neg_integer(),
                                phase := atom()}.
status(Run) -> weft_diasca_root:status(Run).

%% @doc Goes on from a checkpoint, on any nodes, to the result that the run would have had. Later
%% checkpoints are written to the same file, if the options say nothing else.
-spec continue(file:filename(), options()) -> {ok, result()} | {error, reason()}.
continue(File, Given) ->
    Options0 = maps:merge(#{checkpoint => File}, Given),
    case {weft_diasca_options:again(Options0), weft_diasca_file:read(File)} of
        {{ok, #{settings := #{ticks := Ticks}}}, {ok, #{checkpoint := #{time := {Tick, _}}}}}
          when Ticks < Tick ->
            {error, {option, ticks, {before_the_checkpoint, Ticks, Tick}}};
        {{ok, Options}, {ok, #{checkpoint := Checkpoint} = Kept}} ->
            {ok, Run} = weft_diasca_root:start(#{'begin' => {checkpoint, Checkpoint},
                                                 about => maps:remove(checkpoint, Kept),
                                                 options => Options}),
            await(Run);
        {{error, Reason}, _} -> {error, Reason};
        {_, {error, Reason}} -> {error, {checkpoint, File, Reason}}
    end.

%% @doc The workloads that come with the engine, and what they say of themselves.
-spec workloads() -> [{atom(), weft_diasca_workload:about()}].
workloads() ->
    [{Name, weft_diasca_workload:about(weft_diasca_workload:module(Name))}
     || Name <- weft_diasca_workload:names()].

%% @doc An error in words.
-spec format_error(term()) -> string().
format_error(Reason) -> weft_diasca_error:text(Reason).
