%% SPDX-License-Identifier: Apache-2.0
%% @doc Each group has names of its own: a scope of `weft_names' that runs on its members. It is
%% started when this node becomes a member, and stopped when it is none any more.
%%
%% Scopes outlive this process, and so do the options that they were started with. If it had to be
%% told these again it would restart the scopes, and their names would be lost.
-module(weft_group_names).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, scope/1, configure/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {options :: map()}).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc The scope of a group of this node, running: `{via, weft_names, {Scope, Name}}'. Only the
%% first call asks a process.
-spec scope(weft_group_table:name()) ->
          {ok, weft_names:scope()} | {error, not_a_member | not_running}.
scope(Group) ->
    case {weft_view:lookup({group_scope, Group}), whereis(?MODULE)} of
        {undefined, undefined} -> {error, not_running};
        {undefined, _} -> gen_server:call(?MODULE, {scope, Group}, infinity);
        {Scope, _} -> {ok, Scope}
    end.

%% @doc The options of the scopes of all groups (`weft_names:start_scope/2'), in place of those of
%% the configuration (`group_names'), for as long as weft runs. Scopes that run are restarted if
%% that changes anything.
-spec configure(map()) -> ok.
configure(Options) -> gen_server:call(?MODULE, {configure, Options}, infinity).

%% @private
-spec init([]) -> {ok, #state{}}.
init([]) ->
    lists:foreach(fun(Group) -> ok = weft_view:delete(?MODULE, {group_scope, Group}) end,
                  started()),
    ok = weft_driver:subscribe(weft_groups, self()),
    %% Not now: the supervisor that starts scopes is above this process and waits for this function.
    self() ! follow,
    {ok, #state{options = case weft_view:lookup(group_names_options) of
                              undefined -> weft_config:get(group_names);
                              Options -> Options
                          end}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) ->
          {reply, ok | {ok, weft_names:scope()} | {error, not_a_member}, #state{}}.
handle_call({scope, Group}, _From, State) ->
    ok = follow(State),
    {reply, case weft_view:lookup({group_scope, Group}) of
                undefined -> {error, not_a_member};
                Scope -> {ok, Scope}
            end, State};
handle_call({configure, Options}, _From, #state{options = Options} = State) ->
    {reply, ok, State};
handle_call({configure, Options}, _From, State) ->
    ok = weft_view:put(?MODULE, group_names_options, Options),
    lists:foreach(fun stop/1, started()),
    {reply, follow(State#state{options = Options}), State#state{options = Options}};
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({weft_notice, weft_groups, Notice}, State) when Notice =/= {groups, changed} ->
    {noreply, State};
handle_info(Message, State) when Message =:= follow; element(1, Message) =:= weft_notice ->
    ok = follow(State),
    {noreply, State};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

follow(#state{options = Options}) ->
    Own = lists:sort(maps:keys(weft_group_view:own())),
    Started = started(),
    lists:foreach(fun stop/1, Started -- Own),
    lists:foreach(fun(Group) -> start(Group, Options) end, Own -- Started).

started() -> [Group || {Group, _} <- weft_view:all(group_scope)].

start(Group, Options) ->
    Scope = {group, scope_name(Group)},
    case weft_names:start_scope(Scope, Options) of
        ok -> weft_view:put(?MODULE, {group_scope, Group}, Scope);
        {error, Text} -> ?LOG_ERROR("weft: no names in group ~0tp: ~ts", [Group, Text])
    end.

stop(Group) ->
    Scope = weft_view:lookup({group_scope, Group}),
    ok = weft_view:delete(?MODULE, {group_scope, Group}),
    weft_names:stop_scope(Scope).

%% A scope is named by an atom, a group by any term.
scope_name(Group) when is_atom(Group) -> Group;
scope_name(Group) -> list_to_atom("group_" ++ weft_names_sup:hash(Group)).
