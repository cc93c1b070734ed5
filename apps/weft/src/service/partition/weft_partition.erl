%% SPDX-License-Identifier: Apache-2.0
%% @doc What this node does when it finds itself in the smaller part of a cluster. This is the one
%% place for that decision.
%%
%% A node is in the `majority' if it reaches more than half of the nodes that count, itself
%% included. Those are the configuration key `partition_nodes', or else the voters of all strong
%% scopes of this node. Without either the side is `unknown'. It reaches a node that it is connected
%% with, and one to which there is a route: where circuits are hidden, only neighbours are connected
%% before programs talk with others. A change of the side is used once it has lasted for
%% `partition_grace_ms'.
%%
%% The key `partition_policy' says what follows. With `stay' nothing does (strong names and
%% singletons refuse and stop by themselves, see `weft_names_strong'). With `pause_minority' the
%% applications in `pause_applications' are stopped on the smaller side, also those that are started
%% there later, and started again on the greater one. With `{callback, {Module, Function}}' Function
%% is called with the side and what is reachable, in a process of its own. With any policy a
%% subscriber gets `{weft_partition, Side, Info}'.
%%
%% The subscribers are a row of `weft_view', which outlives this process. After a restart of it they
%% are told the present side, also if it is the one that they know.
%%
%% Not here: which side may change data. Strong names decide that by votes, name by name.
-module(weft_partition).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, child_spec/0, status/0, side/0, subscribe/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([side/0, status/0]).

%% Nodes that come and go are told at once, routes are not.
-define(LOOK_MS, 5000).

-define(SUBSCRIBERS, {?MODULE, subscribers}).

-type side() :: majority | minority | unknown.
-type status() :: #{policy := term(), side := side(), reachable := [node()],
                    unreachable := [node()], paused := [atom()]}.
%% `paused': the applications that were stopped here.

-record(partition, {
    side = unknown :: side(),
    %% A side that has not lasted long enough yet.
    next = none :: none | {side(), reference()},
    subscribers = #{} :: #{reference() => pid()}}).

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec child_spec() -> supervisor:child_spec().
child_spec() ->
    #{id => ?MODULE, start => {?MODULE, start_link, []}}.

%% @doc The policy, and the present side.
-spec status() -> status() | undefined.
status() ->
    try gen_server:call(?MODULE, status)
    catch exit:_NotRunning -> undefined
    end.

%% @doc The side of this node; reads a table.
-spec side() -> side().
side() ->
    case weft_view:lookup(?MODULE) of
        undefined -> unknown;
        Side -> Side
    end.

%% @doc From now on the caller gets a message for each change, however often it subscribes.
-spec subscribe() -> ok.
subscribe() ->
    gen_server:call(?MODULE, {subscribe, self()}).

%% @private
-spec init([]) -> {ok, #partition{}}.
init([]) ->
    ok = weft_view:delete(?MODULE, ?MODULE),
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    Former = case weft_view:lookup(?SUBSCRIBERS) of
                 undefined -> [];
                 Pids -> Pids
             end,
    {ok, look_again(looked(lists:foldl(fun subscribed/2, #partition{}, Former)))}.

%% @private
-spec handle_call(term(), gen_server:from(), #partition{}) -> {reply, term(), #partition{}}.
handle_call(status, _From, State) ->
    {Reachable, Unreachable} = reach(),
    {reply, #{policy => weft_config:get(partition_policy), side => State#partition.side,
              reachable => Reachable, unreachable => Unreachable,
              paused => weft_partition_applications:paused()}, State};
handle_call({subscribe, Pid}, _From, #partition{subscribers = Subscribers} = State) ->
    {reply, ok, case lists:member(Pid, maps:values(Subscribers)) of
                    true -> State;
                    false -> subscribed(Pid, State)
                end};
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
-spec handle_cast(term(), #partition{}) -> {noreply, #partition{}}.
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #partition{}) -> {noreply, #partition{}}.
handle_info({lasted, Ref}, #partition{next = {Side, Ref}} = State) ->
    %% A route may have come or gone meanwhile.
    {noreply, case side_of(reach()) of
                  Side -> changed(Side, State#partition{side = Side, next = none});
                  _Another -> looked(State#partition{next = none})
              end};
handle_info({lasted, _Former}, State) ->
    {noreply, State};
handle_info({'DOWN', Ref, process, _, _}, #partition{subscribers = Subscribers} = State) ->
    {noreply, kept(maps:remove(Ref, Subscribers), State)};
%% Scopes that are started later bring further voters.
handle_info(look, State) ->
    ok = still_paused(State),
    {noreply, look_again(looked(State))};
handle_info({_NodeUpOrDown, _Node, _Info}, State) ->
    {noreply, looked(State)};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

subscribed(Pid, #partition{subscribers = Subscribers} = State) ->
    kept(Subscribers#{monitor(process, Pid) => Pid}, State).

kept(Subscribers, State) ->
    ok = weft_view:put(?MODULE, ?SUBSCRIBERS, maps:values(Subscribers)),
    State#partition{subscribers = Subscribers}.

look_again(State) ->
    _ = weft_period:send(?LOOK_MS, look),
    State.

looked(#partition{side = Now, next = Next} = State) ->
    GraceMs = weft_config:get(partition_grace_ms),
    case {side_of(reach()), Next} of
        {Now, _} -> State#partition{next = none};
        {Side, {Side, _}} -> State;
        {Side, _} ->
            Ref = make_ref(),
            _ = erlang:send_after(GraceMs, self(), {lasted, Ref}),
            State#partition{next = {Side, Ref}}
    end.

reach() ->
    Nodes = case weft_config:get(partition_nodes) of
                [] -> weft_names_strong:voters();
                Configured -> Configured
            end,
    Connected = [node() | nodes(connected)],
    lists:partition(fun(Node) ->
                            lists:member(Node, Connected) orelse weft_overlay:has_route(Node)
                    end, lists:usort(Nodes)).

side_of({[], []}) -> unknown;
side_of({Reachable, Unreachable}) when length(Reachable) > length(Unreachable) -> majority;
side_of(_) -> minority.

changed(Side, State) ->
    ok = weft_view:put(?MODULE, ?MODULE, Side),
    {Reachable, Unreachable} = reach(),
    Info = #{reachable => Reachable, unreachable => Unreachable},
    Policy = weft_config:get(partition_policy),
    Side =:= minority andalso
        ?LOG_WARNING(#{weft => ?MODULE, side => Side, policy => Policy,
                       unreachable => Unreachable}),
    lists:foreach(fun(Pid) -> Pid ! {weft_partition, Side, Info} end,
                  maps:values(State#partition.subscribers)),
    ok = follow(Policy, Side, Info),
    State.

%% An application may have been started since, as on a node that starts in the minority.
still_paused(#partition{side = minority}) ->
    case weft_config:get(partition_policy) of
        pause_minority -> follow(pause_minority, minority, #{});
        _ -> ok
    end;
still_paused(_State) ->
    ok.

follow(stay, _Side, _Info) ->
    ok;
follow({callback, {Module, Function}}, Side, Info) ->
    _ = spawn(Module, Function, [Side, Info]),
    ok;
%% While the node boots, whoever needs the application would not start, and the node neither.
follow(pause_minority, minority, _Info) ->
    case init:get_status() of
        {_, started} -> weft_partition_applications:pause(weft_config:get(pause_applications));
        _Booting -> ok
    end;
follow(pause_minority, _MajorityOrUnknown, _Info) ->
    weft_partition_applications:resume().
