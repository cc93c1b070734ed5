%% SPDX-License-Identifier: Apache-2.0
%% @doc The process `s_group': gives the configured groups to weft, and sends `{nodeup, Node}' and
%% `{nodedown, Node}' to those that called `s_group:monitor_nodes/1'. Changes of the attributes of
%% this node are made here, one after the other.
%%
%% A node that is in a group hears of the nodes of its groups only, once of each however many groups
%% are shared; a free node of all.
%%
%% The processes of weft's groups may end and be started anew. Then this one tells them again what
%% it wants of them. They find the other nodes by and by, so a node that was lost meanwhile is told
%% of `?SETTLE_MS' later, and one that is still there is not told as lost.
-module(sd_erlang_server).
-behaviour(gen_server).

-export([start_link/1, monitor_nodes/2, monitoring/0, configured/1, change_list/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, code_change/3]).

-define(RETRY_MS, 100).
-define(SETTLE_MS, 5000).

-record(state, {
    subscribers = #{} :: #{pid() => reference()},
    %% Connected nodes, and the groups that are shared with them.
    fellows = #{} :: #{node() => [Group :: term()]},
    %% Connected nodes of the cluster: of one that is lost nothing says any more that it was one.
    connected = [] :: [node()],
    %% As configured last.
    groups = #{} :: #{term() => [node()]},
    %% The processes of weft that were told what this one wants of them.
    told = #{} :: #{reference() => weft_group_names | weft_group_monitor}}).

-spec start_link(#{term() => [node()]}) -> {ok, pid()} | {error, term()}.
start_link(Groups) ->
    gen_server:start_link({local, s_group}, ?MODULE, Groups, []).

%% @doc From now on Pid is told of nodes, or no more.
-spec monitor_nodes(pid(), boolean()) -> ok.
monitor_nodes(Pid, IsOn) -> gen_server:call(s_group, {monitor_nodes, Pid, IsOn}, infinity).

%% @doc The processes that are told.
-spec monitoring() -> [pid()].
monitoring() -> gen_server:call(s_group, monitoring, infinity).

%% @doc These groups were given to weft, and are to be given to it again when it needs them.
-spec configured(#{term() => [node()]}) -> ok.
configured(Groups) -> gen_server:call(s_group, {configured, Groups}, infinity).

%% @doc Adds terms to an attribute of this node that is a set of them, or removes them. Others who
%% change it at the same time wait for one another.
-spec change_list(Attribute :: term(), add | remove, [term()]) -> ok | {error, term()}.
change_list(Attribute, How, Terms) when length(Terms) >= 0 ->
    gen_server:call(s_group, {change_list, Attribute, How, Terms}, infinity).

%% @private
-spec init(#{term() => [node()]}) -> {ok, #state{}}.
init(Groups) ->
    ok = monitor_all_nodes(),
    {ok, settled(told(weft_group_monitor,
                      told(weft_group_names, #state{connected = sd_erlang_nodes:connected(),
                                                    groups = Groups})))}.

%% --- what weft's groups are told --------------------------------------------------------------

%% If that process is not there, or ends, it is told again.
told(Process, #state{told = Told} = State) ->
    Ref = monitor(process, Process),
    case tell_weft(Process, State) of
        ok ->
            _ = erlang:send_after(?SETTLE_MS, self(), settle),
            State#state{told = Told#{Ref => Process}};
        error ->
            true = demonitor(Ref, [flush]),
            tell_later(Process, State)
    end.

tell_later(Process, State) ->
    _ = erlang:send_after(?RETRY_MS, self(), {tell_weft, Process}),
    State.

%% Where the process of names was started anew the driver of groups may have been, too.
tell_weft(weft_group_names, #state{groups = Groups}) ->
    try
        ok = weft_group_names:configure(names()),
        weft_group:configure(Groups)
    of
        ok -> ok;
        {error, not_running} -> error
    catch exit:_ItEnded -> error
    end;
tell_weft(weft_group_monitor, _State) ->
    case fellows() of
        {ok, _} -> ok;
        error -> error
    end.

%% Connected nodes with the groups that are shared with them, of whose changes this process hears
%% from now on.
fellows() ->
    try weft_group:monitor_nodes(all, true) of
        {ok, Connected} ->
            Shared = [{Node, Group} || {Group, Nodes} <- lists:sort(maps:to_list(weft_group:own())),
                                       Node <- Nodes, lists:member(Node, Connected)],
            {ok, maps:groups_from_list(fun({Node, _}) -> Node end, fun({_, Group}) -> Group end,
                                       Shared)};
        {error, not_running} -> error
    catch exit:_ItEnded -> error
    end.

%% What is there now is what is told.
settled(#state{fellows = Before} = State) ->
    case fellows() of
        {ok, Now} ->
            [Old, New] = [maps:keys(Fellows) || Fellows <- [Before, Now]],
            lists:foreach(fun(Message) -> tell(Message, State) end,
                          [{nodedown, Node} || Node <- Old -- New]
                          ++ [{nodeup, Node} || Node <- New -- Old]),
            State#state{fellows = Now};
        error ->
            State
    end.

%% Connections over other nodes may be hidden.
monitor_all_nodes() -> net_kernel:monitor_nodes(true, #{node_type => all}).

%% The rule of `global', which the original has as well.
names() ->
    case application:get_env(kernel, global_multi_name_action) of
        {ok, allow} -> #{};
        _ -> #{names_per_pid => one}
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) ->
          {reply, ok | {error, term()} | [pid()], #state{}}.
handle_call({monitor_nodes, Pid, true}, _From, #state{subscribers = Subscribers} = State)
  when not is_map_key(Pid, Subscribers) ->
    {reply, ok, State#state{subscribers = Subscribers#{Pid => monitor(process, Pid)}}};
handle_call({monitor_nodes, Pid, false}, _From, #state{subscribers = Subscribers} = State)
  when is_map_key(Pid, Subscribers) ->
    true = demonitor(map_get(Pid, Subscribers), [flush]),
    {reply, ok, State#state{subscribers = maps:remove(Pid, Subscribers)}};
handle_call({monitor_nodes, _Pid, _AsItIs}, _From, State) ->
    {reply, ok, State};
handle_call(monitoring, _From, #state{subscribers = Subscribers} = State) ->
    {reply, lists:sort(maps:keys(Subscribers)), State};
handle_call({configured, Groups}, _From, State) ->
    {reply, ok, State#state{groups = Groups}};
handle_call({change_list, Attribute, How, Terms}, _From, State) ->
    {reply, changed(Attribute, How, Terms), State};
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

changed(Attribute, How, Terms) ->
    try
        case weft_attributes:read([Attribute]) of
            #{Attribute := Known} -> weft_attributes:update(Attribute, list(How, Known, Terms));
            #{} -> weft_attributes:insert(Attribute, list(How, [], Terms))
        end
    catch exit:_ItEnded -> {error, not_running}
    end.

list(add, Known, Terms) -> lists:usort(Known ++ Terms);
list(remove, Known, Terms) -> Known -- Terms.

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({weft_group, Group, {up, Node}}, #state{fellows = Fellows} = State) ->
    case maps:get(Node, Fellows, []) of
        [] -> tell({nodeup, Node}, State);
        _ -> ok
    end,
    {noreply, State#state{fellows = Fellows#{Node => lists:usort([Group | maps:get(Node, Fellows,
                                                                                   [])])}}};
handle_info({weft_group, Group, {down, Node}}, #state{fellows = Fellows} = State) ->
    case maps:get(Node, Fellows, []) of
        [] ->
            {noreply, State};
        [Group] ->
            tell({nodedown, Node}, State),
            {noreply, State#state{fellows = maps:remove(Node, Fellows)}};
        Groups ->
            {noreply, State#state{fellows = Fellows#{Node := lists:delete(Group, Groups)}}}
    end;
handle_info({nodeup, Node, #{node_type := Type}}, #state{connected = Connected} = State) ->
    case Type =:= visible orelse sd_erlang_nodes:is_of_cluster(Node) of
        true -> _ = weft_group:is_free() andalso tell({nodeup, Node}, State),
                {noreply, State#state{connected = lists:usort([Node | Connected])}};
        false -> {noreply, State}
    end;
handle_info({nodedown, Node, _Info}, #state{connected = Connected} = State) ->
    _ = lists:member(Node, Connected) andalso weft_group:is_free()
        andalso tell({nodedown, Node}, State),
    {noreply, State#state{connected = lists:delete(Node, Connected)}};
handle_info({'DOWN', Ref, process, _Pid, _Reason}, #state{told = Told} = State)
  when is_map_key(Ref, Told) ->
    {Process, Others} = maps:take(Ref, Told),
    {noreply, tell_later(Process, State#state{told = Others})};
handle_info({tell_weft, Process}, State) ->
    {noreply, told(Process, State)};
handle_info(settle, State) ->
    {noreply, settled(State)};
handle_info({'DOWN', _Ref, process, Pid, _Reason}, #state{subscribers = Subscribers} = State) ->
    {noreply, State#state{subscribers = maps:remove(Pid, Subscribers)}};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

tell(Message, #state{subscribers = Subscribers}) ->
    lists:foreach(fun(Pid) -> Pid ! Message end, maps:keys(Subscribers)).

%% @private A process of an earlier version was told of visible nodes only, or did not watch the
%% processes of groups.
-spec code_change(term(), tuple(), term()) -> {ok, #state{}}.
code_change(Version, {state, Subscribers, Fellows}, Extra) ->
    ok = net_kernel:monitor_nodes(false),
    ok = monitor_all_nodes(),
    code_change(Version, {state, Subscribers, Fellows, sd_erlang_nodes:connected()}, Extra);
code_change(_Version, {state, Subscribers, Fellows, Connected}, _Extra) ->
    {ok, lists:foldl(fun tell_later/2, #state{subscribers = Subscribers, fellows = Fellows,
                                              connected = Connected, groups = configured()},
                     [weft_group_names, weft_group_monitor])};
code_change(_Version, State, _Extra) ->
    {ok, State}.

configured() ->
    case sd_erlang_config:groups() of
        {ok, Groups} -> Groups;
        {error, _} -> #{}
    end.
