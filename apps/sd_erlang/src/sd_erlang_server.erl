%% SPDX-License-Identifier: Apache-2.0
%% @doc The process `s_group': gives the configured groups to weft, and sends `{nodeup, Node}' and
%% `{nodedown, Node}' to those that called `s_group:monitor_nodes/1'.
%%
%% A node that is in a group hears of the nodes of its groups only, once of each however many groups
%% are shared; a free node of all.
-module(sd_erlang_server).
-behaviour(gen_server).

-export([start_link/1, monitor_nodes/2, monitoring/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, code_change/3]).

-record(state, {
    subscribers = #{} :: #{pid() => reference()},
    %% Connected nodes, and the groups that are shared with them.
    fellows = #{} :: #{node() => [Group :: term()]},
    %% Connected nodes of the cluster: of one that is lost nothing says any more that it was one.
    connected = [] :: [node()]}).

-spec start_link(#{term() => [node()]}) -> {ok, pid()} | {error, term()}.
start_link(Groups) ->
    gen_server:start_link({local, s_group}, ?MODULE, Groups, []).

%% @doc From now on Pid is told of nodes, or no more.
-spec monitor_nodes(pid(), boolean()) -> ok.
monitor_nodes(Pid, IsOn) -> gen_server:call(s_group, {monitor_nodes, Pid, IsOn}, infinity).

%% @doc The processes that are told.
-spec monitoring() -> [pid()].
monitoring() -> gen_server:call(s_group, monitoring, infinity).

%% @private
-spec init(#{term() => [node()]}) -> {ok, #state{}}.
init(Groups) ->
    ok = weft_group_names:configure(names()),
    ok = weft_group:configure(Groups),
    ok = monitor_all_nodes(),
    {ok, Connected} = weft_group:monitor_nodes(all, true),
    Shared = [{Node, Group} || {Group, Nodes} <- maps:to_list(weft_group:own()), Node <- Nodes,
                               lists:member(Node, Connected)],
    {ok, #state{connected = sd_erlang_nodes:connected(),
                fellows = lists:foldl(fun({Node, Group}, Map) ->
                                          maps:update_with(Node, fun(G) -> [Group | G] end, [Group],
                                                           Map)
                                      end, #{}, Shared)}}.

%% Connections over other nodes may be hidden.
monitor_all_nodes() -> net_kernel:monitor_nodes(true, #{node_type => all}).

%% The rule of `global', which the original has as well.
names() ->
    case application:get_env(kernel, global_multi_name_action) of
        {ok, allow} -> #{};
        _ -> #{names_per_pid => one}
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, ok | [pid()], #state{}}.
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
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

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
handle_info({'DOWN', _Ref, process, Pid, _Reason}, #state{subscribers = Subscribers} = State) ->
    {noreply, State#state{subscribers = maps:remove(Pid, Subscribers)}};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

tell(Message, #state{subscribers = Subscribers}) ->
    lists:foreach(fun(Pid) -> Pid ! Message end, maps:keys(Subscribers)).

%% @private A process of the version before was told of visible nodes only.
-spec code_change(term(), tuple(), term()) -> {ok, #state{}}.
code_change(_Version, {state, Subscribers, Fellows}, _Extra) ->
    ok = net_kernel:monitor_nodes(false),
    ok = monitor_all_nodes(),
    {ok, #state{subscribers = Subscribers, fellows = Fellows,
                connected = sd_erlang_nodes:connected()}};
code_change(_Version, State, _Extra) ->
    {ok, State}.
