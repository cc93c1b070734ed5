%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of one actor. It carries out what `weft_diasca_actor_core' decides, and looks
%% other actors up in the directory of its node. It is linked to its manager and ends with it.
-module(weft_diasca_process).
-behaviour(gen_server).

-export([start_link/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {manager :: pid(), lookup :: weft_diasca_actor_core:lookup(),
                actor :: weft_diasca_actor_core:actor()}).

%% @doc A process for a birth; it looks others up in that table.
-spec start_link(weft_diasca_balancer:birth(), pid(), ets:table()) -> {ok, pid()}.
start_link(Birth, Manager, Directory) ->
    {ok, _} = gen_server:start_link(?MODULE, {Birth, Manager, Directory}, []).

%% @private
init({{Id, {_, #{module := Module}} = Birth}, Manager, Directory}) ->
    %% Whether it has a `terminate' is asked of code that is loaded. If there is no such module, its
    %% first callback says so.
    _ = code:ensure_loaded(Module),
    {ok, #state{manager = Manager, actor = weft_diasca_actor_core:new(Id, Birth),
                lookup = fun(To) -> weft_diasca_directory:find(To, Directory) end}}.

%% @private
handle_call(Request, _From, State) ->
    {reply, {error, {unknown, Request}}, State}.

%% @private
handle_cast(_Request, State) ->
    {noreply, State}.

%% @private
handle_info({weft_diasca, Event}, #state{actor = Actor, lookup = Lookup} = State) ->
    {Effects, Next} = weft_diasca_actor_core:handle(Event, Lookup, Actor),
    lists:foreach(fun(Effect) -> effect(Effect, State) end, Effects),
    {noreply, State#state{actor = Next}};
handle_info(Stray, State) ->
    logger:warning("an actor of a simulation got a message that is not for it: ~0tP", [Stray, 10]),
    {noreply, State}.

effect({post, Pid, {message, Time, From, Number, Content}}, _State) ->
    Pid ! {weft_diasca, {message, Time, From, Number, Content, self()}};
effect({send, Pid, Event}, _State) -> Pid ! {weft_diasca, Event};
effect({manager, Message}, #state{manager = Manager}) -> Manager ! {weft_diasca, Message}.
