%% SPDX-License-Identifier: Apache-2.0
%% @doc The time manager of a node for one run: it carries out what `weft_diasca_manager_core'
%% decides, owns the processes of the actors and the directory, and ends with the run.
%%
%% It hears when a connection of its node is lost and made again, without making one: what actors
%% have sent each other over it may not have arrived. That alone ends no run.
-module(weft_diasca_manager).
-behaviour(gen_server).

-export([start/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {root :: pid(), monitor :: reference(), directory :: ets:table(),
                actors = #{} :: #{pid() => weft_diasca_actor:id()},
                core :: weft_diasca_manager_core:manager()}).

%% @doc Starts it on this node for a run whose root is there.
-spec start(Root :: pid()) -> {ok, pid()}.
start(Root) ->
    {ok, _} = gen_server:start(?MODULE, Root, []).

%% @private
init(Root) ->
    process_flag(trap_exit, true),
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    {ok, #state{root = Root, monitor = monitor(process, Root),
                directory = weft_diasca_directory:new(),
                core = weft_diasca_manager_core:new(node())}}.

%% @private
handle_call(Request, _From, State) ->
    {reply, {error, {unknown, Request}}, State}.

%% @private
handle_cast(_Request, State) ->
    {noreply, State}.

%% @private
handle_info({weft_diasca, Event}, State) ->
    {noreply, handle(Event, State)};
handle_info({nodedown, Node, _}, State) ->
    {noreply, handle({lost, Node}, State)};
handle_info({nodeup, Node, _}, State) ->
    {noreply, handle({up, Node}, State)};
handle_info({'DOWN', Monitor, process, _, _}, #state{monitor = Monitor} = State) ->
    {stop, shutdown, State};
handle_info({'EXIT', Pid, Why}, #state{actors = Actors, root = Root} = State) ->
    case maps:take(Pid, Actors) of
        {Id, Others} ->
            Root ! {weft_diasca, {failed, node(), none, Id, {process, exit, Why, []}}},
            {noreply, State#state{actors = Others}};
        error ->
            {noreply, State}
    end;
handle_info(Stray, State) ->
    logger:warning("a manager of a simulation got a message that is not for it: ~0tP",
                   [Stray, 10]),
    {noreply, State}.

handle(Event, #state{core = Core} = State) ->
    {Effects, Next} = weft_diasca_manager_core:handle(Event, Core),
    lists:foldl(fun effect/2, State#state{core = Next}, Effects).

effect({send, Pid, Event}, State) ->
    Pid ! {weft_diasca, Event},
    State;
effect({root, Message}, #state{root = Root} = State) ->
    Root ! {weft_diasca, Message},
    State;
effect({directory, Born, Gone}, #state{directory = Directory} = State) ->
    ok = weft_diasca_directory:update(Born, Gone, Directory),
    State;
effect({spawn, {Id, _} = Birth}, #state{directory = Directory, actors = Actors} = State) ->
    {ok, Pid} = weft_diasca_process:start_link(Birth, self(), Directory),
    handle({spawned, Id, Pid}, State#state{actors = Actors#{Pid => Id}});
effect({end_actor, Pid}, #state{actors = Actors} = State) ->
    unlink(Pid),
    exit(Pid, kill),
    State#state{actors = maps:remove(Pid, Actors)}.
