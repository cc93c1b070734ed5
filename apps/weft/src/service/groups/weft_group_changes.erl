%% SPDX-License-Identifier: Apache-2.0
%% @doc A process that runs a function a moment after the groups have changed, once for changes that
%% come together, and once when it starts. If asked to it also runs another function at intervals.
-module(weft_group_changes).
-behaviour(gen_server).

-export([start_link/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(DELAY_MS, 50).

-type actions() :: #{changed := fun(() -> ok),
                     at_intervals => {IntervalMs :: pos_integer(), fun(() -> ok)}}.

-record(state, {actions :: actions(), timer = none :: none | reference()}).

%% @doc Starts it, registered under a name.
-spec start_link(Name :: atom(), actions()) -> {ok, pid()} | {error, term()}.
start_link(Name, Actions) ->
    gen_server:start_link({local, Name}, ?MODULE, Actions, []).

%% @private
-spec init(actions()) -> {ok, #state{}}.
init(Actions) ->
    ok = weft_driver:subscribe(weft_groups, self()),
    _ = [self() ! interval || is_map_key(at_intervals, Actions)],
    {ok, later(#state{actions = Actions})}.

later(#state{timer = none} = State) ->
    State#state{timer = erlang:send_after(?DELAY_MS, self(), changed)};
later(State) ->
    State.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, {error, term()}, #state{}}.
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({weft_notice, weft_groups, {groups, changed}}, State) ->
    {noreply, later(State)};
handle_info({weft_notice, weft_groups, _Other}, State) ->
    {noreply, State};
handle_info(changed, #state{actions = #{changed := Changed}} = State) ->
    ok = Changed(),
    {noreply, State#state{timer = none}};
handle_info(interval, #state{actions = #{at_intervals := {IntervalMs, Act}}} = State) ->
    ok = Act(),
    _ = weft_period:send(IntervalMs, interval),
    {noreply, State};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.
