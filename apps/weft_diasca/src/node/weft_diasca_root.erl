%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of one run: it starts the managers, carries out what `weft_diasca_root_core'
%% decides, writes checkpoints, and watches.
%%
%% It tells its owner `{weft_diasca, Run, {ok, Result} | {error, Reason}}' once and ends; managers
%% and actors end with it. It ends without a word when its owner ends. All nodes have to have the
%% same code. A node that is lost ends the run. If a diasca is not over after `diasca_ms', the
%% managers that are awaited are asked which of their actors are late, and whether a connection was
%% lost, and the run ends with their answers. To make actors, to collect a checkpoint and to finish
%% may take as long each; to write a file takes as long as it takes.
-module(weft_diasca_root).
-behaviour(gen_server).

-export([start/1, stop/1, status/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([job/0, reason/0]).

-define(START_MS, 30000).
-define(ANSWER_MS, 2000).

%% `begin': the first actors, or a checkpoint. `about': kept with checkpoints.
-type job() :: #{'begin' := {actors, list()} | {checkpoint, map()}, about := map(),
                 options := weft_diasca_options:options()}.
-type reason() :: weft_diasca_root_core:reason()
                | {no_node, node(), term()}
                | {no_module, node(), module(), Why :: term()}
                | {other_code, node(), module(), Than :: node()}
                | {node_lost, node(), weft_diasca_actor:time(), term()}
                | {late, Phase :: atom(), weft_diasca_actor:time(), late()}
                | {connection_lost, {node(), node()}, weft_diasca_actor:time(), late()}
                | {checkpoint, file:filename(), term()}.

-type late() :: [{node(), [weft_diasca_actor:id()] | silent}].

-record(state, {
    owner :: pid(),
    watch :: reference(),
    job :: job(),
    core = none :: none | weft_diasca_root_core:root(),
    managers = #{} :: #{node() => pid()},
    monitors = #{} :: #{reference() => node()},
    started_ms :: integer(),
    began_ms = none :: none | integer(),
    timer = none :: none | reference(),
    late = none :: none | #{node() => {[weft_diasca_actor:id()], Lost :: [node()]}}}).

%% @doc Starts a run for the caller.
-spec start(job()) -> {ok, pid()}.
start(Job) ->
    {ok, _} = gen_server:start(?MODULE, {self(), Job}, []).

%% @doc It ends at the next tick, with what it has.
-spec stop(pid()) -> ok.
stop(Run) -> gen_server:cast(Run, stop).

%% @doc How far it is. Waits while it writes a checkpoint: a caller that ends, ends the run.
-spec status(pid()) -> #{tick := weft_diasca_actor:tick(), diasca := non_neg_integer(),
                         phase := atom()}.
status(Run) -> gen_server:call(Run, status, infinity).

%% @private
init({Owner, Job}) ->
    {ok, #state{owner = Owner, watch = monitor(process, Owner), job = Job, started_ms = now_ms()},
     {continue, start}}.

now_ms() -> erlang:monotonic_time(millisecond).

%% @private
handle_continue(start, #state{job = #{options := #{checkpoint := File}}} = State) ->
    case File =:= none orelse weft_diasca_file:check(File) of
        {error, Why} -> over({error, {checkpoint, File, {not_writable, Why}}}, State);
        _ -> alike(State)
    end.

alike(#state{job = #{options := #{code := any}}} = State) ->
    managers(State);
alike(#state{job = #{'begin' := Begin, about := About, options := #{nodes := Nodes}}} = State) ->
    Modules = weft_diasca_code:modules(About, Begin),
    Answers = lists:zip(Nodes, erpc:multicall(Nodes, weft_diasca_code, md5s, [Modules],
                                              ?START_MS)),
    case unlike(Answers) of
        [] -> managers(State);
        [Reason | _] -> over({error, Reason}, State)
    end.

unlike(Answers) ->
    case [{no_node, Node, why(Answer)} || {Node, {Class, _} = Answer} <- Answers, Class =/= ok] of
        [] -> weft_diasca_code:differences(
                [{Node, Md5s} || {Node, {ok, Md5s}} <- Answers],
                {node(), weft_diasca_code:md5s(weft_diasca_code:engine())});
        Unusable -> Unusable
    end.

managers(#state{job = #{options := #{nodes := Nodes}}} = State) ->
    Answers = lists:zip(Nodes, erpc:multicall(Nodes, weft_diasca_manager, start, [self()],
                                              ?START_MS)),
    case [{Node, Answer} || {Node, Answer} <- Answers, not is_started(Answer)] of
        [] ->
            Managers = maps:from_list([{Node, Pid} || {Node, {ok, {ok, Pid}}} <- Answers]),
            Monitors = maps:from_list([{monitor(process, Pid), Node}
                                       || {Node, Pid} <- maps:to_list(Managers)]),
            first(State#state{managers = Managers, monitors = Monitors});
        [{Node, Answer} | _] ->
            over({error, {no_node, Node, why(Answer)}}, State)
    end.

is_started({ok, {ok, Pid}}) -> is_pid(Pid);
is_started(_) -> false.

why({error, {erpc, Why}}) -> Why;
why({error, {exception, undef, _}}) -> no_code;
why(Other) -> Other.

first(#state{job = #{'begin' := Begin, options := Options}} = State) ->
    #{nodes := Nodes, settings := Settings} = Options,
    {Effects, Core} = case Begin of
                          {actors, Actors} ->
                              weft_diasca_root_core:new(Actors, Nodes, Settings);
                          {checkpoint, Checkpoint} ->
                              weft_diasca_root_core:restored(Checkpoint, Nodes, Settings)
                      end,
    effects(Effects, State#state{core = Core}).

%% @private
handle_call(status, _From, #state{core = none} = State) ->
    {reply, #{phase => starting, tick => 0, diasca => 0}, State};
handle_call(status, _From, #state{core = Core} = State) ->
    {Phase, {Tick, Diasca}, _} = weft_diasca_root_core:is_late(Core),
    {reply, #{phase => Phase, tick => Tick, diasca => Diasca}, State};
handle_call(Request, _From, State) ->
    {reply, {error, {unknown, Request}}, State}.

%% @private
handle_cast(stop, State) -> handle(stop, State);
handle_cast(_Other, State) -> {noreply, State}.

%% @private
handle_info({weft_diasca, {late, Node, Ids, Lost}}, #state{late = Late} = State) ->
    {noreply, State#state{late = case Late of none -> none; _ -> Late#{Node => {Ids, Lost}} end}};
%% A manager of the version before does not watch connections; `code => any' lets it take part.
handle_info({weft_diasca, {late, Node, Ids}}, State) ->
    handle_info({weft_diasca, {late, Node, Ids, []}}, State);
handle_info({weft_diasca, {failed, Node, none, Id, Why}}, #state{core = Core} = State) ->
    {_, Time, _} = weft_diasca_root_core:is_late(Core),
    handle({failed, Node, Time, Id, Why}, State);
handle_info({weft_diasca, Event}, State) ->
    handle(Event, State);
handle_info({'DOWN', Watch, process, _, _}, #state{watch = Watch} = State) ->
    {stop, normal, State};
handle_info({'DOWN', Monitor, process, _, Why}, #state{monitors = Monitors, core = Core} = State)
  when is_map_key(Monitor, Monitors) ->
    {_, Time, _} = weft_diasca_root_core:is_late(Core),
    over({error, {node_lost, map_get(Monitor, Monitors), Time, Why}}, State);
handle_info({timeout, Timer, what_is_late}, #state{timer = Timer} = State) ->
    {noreply, ask(State)};
handle_info({timeout, Timer, {late, Before}}, #state{timer = Timer, core = Core} = State) ->
    case weft_diasca_root_core:is_late(Core) of
        {_, _, _} = Before ->
            over({error, too_late(Before, State)}, State);
        _ ->
            {noreply, alive(State)}
    end;
handle_info({timeout, _, _}, State) ->
    {noreply, State};
handle_info(Stray, State) ->
    logger:warning("a run of a simulation got a message that is not for it: ~0tP", [Stray, 10]),
    {noreply, State}.

handle(Event, #state{core = Core} = State) ->
    {Effects, Next} = weft_diasca_root_core:handle(Event, Core),
    effects(Effects, State#state{core = Next}).

effects([], State) ->
    {noreply, State};
effects([{send, Node, Event} | Effects], #state{managers = Managers} = State) ->
    map_get(Node, Managers) ! {weft_diasca, Event},
    effects(Effects, State);
effects([{began, running} | Effects], #state{began_ms = none} = State) ->
    effects(Effects, alive(State#state{began_ms = now_ms()}));
effects([{began, _Phase} | Effects], State) ->
    effects(Effects, alive(State));
effects([{keep, Checkpoint}], #state{job = #{about := About, options := Options}} = State) ->
    #{checkpoint := File} = Options,
    case weft_diasca_file:write(File, About#{checkpoint => Checkpoint}) of
        ok -> handle(kept, State);
        {error, Why} -> over({error, {checkpoint, File, Why}}, State)
    end;
effects([{over, Result}], #state{started_ms = Started, began_ms = Began} = State) ->
    First = case Began of none -> now_ms(); _ -> Began end,
    over({ok, Result#{wall_ms => now_ms() - First, setup_ms => First - Started}}, State);
effects([{failed, Reason}], State) ->
    over({error, Reason}, State).

over(Outcome, #state{owner = Owner} = State) ->
    Owner ! {weft_diasca, self(), Outcome},
    {stop, normal, State}.

%% --- the watchdog -----------------------------------------------------------------------------

alive(#state{timer = Timer, job = #{options := #{diasca_ms := Ms}}} = State) ->
    _ = Timer =:= none orelse erlang:cancel_timer(Timer),
    State#state{timer = erlang:start_timer(Ms, self(), what_is_late), late = none}.

%% If a connection between two nodes of the run was lost in this diasca, or is since an earlier one,
%% that is probably why.
too_late({Phase, Time, Nodes}, #state{late = Answers, managers = Managers}) ->
    Late = [{Node, case Answers of #{Node := {Ids, _}} -> Ids; #{} -> silent end} || Node <- Nodes],
    case [{Node, Other} || Node <- Nodes, #{Node := {_, Lost}} <- [Answers], Other <- Lost,
                           is_map_key(Other, Managers)] of
        [Ends | _] -> {connection_lost, Ends, Time, Late};
        [] -> {late, Phase, Time, Late}
    end.

ask(#state{core = Core, managers = Managers} = State) ->
    {_, _, Nodes} = Late = weft_diasca_root_core:is_late(Core),
    lists:foreach(fun(Node) -> map_get(Node, Managers) ! {weft_diasca, who_is_late} end, Nodes),
    State#state{timer = erlang:start_timer(?ANSWER_MS, self(), {late, Late}), late = #{}}.
