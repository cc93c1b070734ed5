%% SPDX-License-Identifier: Apache-2.0
%% @doc Tells subscribers which members of a group come and go: `{weft_group, Name, {up | down,
%% Node}}'. A member comes when it is connected or joins. It goes when it is lost or leaves, when
%% the group is deleted, or when this node leaves it.
%%
%% A subscriber gets each change once, however often the driver of the groups was restarted, or this
%% process: what was told last, and who subscribes to what, are rows of `weft_view', which outlives
%% it. The subscriptions of a subscriber end with it.
-module(weft_group_monitor).
-behaviour(gen_server).

-export([start_link/0, subscribe/2, unsubscribe/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(RETRY_MS, 100).

%% The kinds of rows: the connected members by group, and the groups by subscriber.
-define(FELLOWS, weft_group_fellows).
-define(SUBSCRIBERS, weft_group_subscribers).

-record(state, {
    fellows = #{} :: #{weft_group_table:name() => [node()]},
    subscribers = #{} :: #{pid() => {reference(), [weft_group_table:name()]}}}).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc The members that are connected now, this node left out; from now on Pid gets the changes.
%% `all' means all groups of this node, whichever these are at the time.
-spec subscribe(weft_group_table:name() | all, pid()) -> {ok, [node()]}.
subscribe(Name, Pid) -> gen_server:call(?MODULE, {subscribe, Name, Pid}).

-spec unsubscribe(weft_group_table:name() | all, pid()) -> ok.
unsubscribe(Name, Pid) -> gen_server:call(?MODULE, {unsubscribe, Name, Pid}).

%% @private
-spec init([]) -> {ok, #state{}}.
init([]) ->
    self() ! listen,
    Subscribers = [{Pid, {monitor(process, Pid), Names}}
                   || {Pid, Names} <- weft_view:all(?SUBSCRIBERS)],
    {ok, #state{fellows = maps:from_list(weft_view:all(?FELLOWS)),
                subscribers = maps:from_list(Subscribers)}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, ok | {ok, [node()]}, #state{}}.
handle_call({subscribe, Name, Pid}, _From, #state{subscribers = Subscribers} = State) ->
    {Ref, Names} = case Subscribers of
                       #{Pid := Known} -> Known;
                       #{} -> {monitor(process, Pid), []}
                   end,
    {reply, {ok, fellows(Name, State)}, subscribed(Pid, Ref, lists:usort([Name | Names]), State)};
handle_call({unsubscribe, Name, Pid}, _From, #state{subscribers = Subscribers} = State) ->
    {reply, ok, case Subscribers of
                    #{Pid := {Ref, [Name]}} ->
                        true = demonitor(Ref, [flush]),
                        gone(Pid, State);
                    #{Pid := {Ref, Names}} ->
                        subscribed(Pid, Ref, Names -- [Name], State);
                    #{} ->
                        State
                end};
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

subscribed(Pid, Ref, Names, #state{subscribers = Subscribers} = State) ->
    ok = weft_view:put(?MODULE, {?SUBSCRIBERS, Pid}, Names),
    State#state{subscribers = Subscribers#{Pid => {Ref, Names}}}.

gone(Pid, #state{subscribers = Subscribers} = State) ->
    ok = weft_view:delete(?MODULE, {?SUBSCRIBERS, Pid}),
    State#state{subscribers = maps:remove(Pid, Subscribers)}.

fellows(all, #state{fellows = Fellows}) -> lists:usort(lists:append(maps:values(Fellows)));
fellows(Name, #state{fellows = Fellows}) -> maps:get(Name, Fellows, []).

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info(listen, State) ->
    {noreply, listen(whereis(weft_groups), State)};
handle_info({weft_notice, weft_groups, {group, Name, {What, Node}}}, State) ->
    {noreply, changed(Name, What, Node, State)};
handle_info({weft_notice, weft_groups, _Other}, State) ->
    {noreply, State};
handle_info({'DOWN', _Ref, process, Pid, _Reason}, #state{subscribers = Subscribers} = State)
  when is_map_key(Pid, Subscribers) ->
    {noreply, gone(Pid, State)};
handle_info({'DOWN', _Ref, process, _Driver, _Reason}, State) ->
    {noreply, listen(undefined, State)};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

%% Changes while there was no driver are the difference to what was told last.
listen(undefined, State) ->
    _ = erlang:send_after(?RETRY_MS, self(), listen),
    State;
listen(Driver, #state{fellows = Before} = State) ->
    _ = monitor(process, Driver),
    try
        ok = weft_driver:subscribe(weft_groups, self()),
        weft_driver:command(weft_groups, fellows)
    of
        Now -> lists:foldl(fun({Name, What, Node}, S) -> changed(Name, What, Node, S) end, State,
                           difference(Before, Now))
    catch
        exit:_ItEnded -> State
    end.

difference(Before, Now) ->
    lists:append([[{Name, down, Node} || Node <- maps:get(Name, Before, [])
                                                     -- maps:get(Name, Now, [])]
                  ++ [{Name, up, Node} || Node <- maps:get(Name, Now, [])]
                  || Name <- lists:sort(maps:keys(maps:merge(Before, Now)))]).

changed(Name, What, Node, #state{fellows = Fellows} = State) ->
    Before = maps:get(Name, Fellows, []),
    case {What, lists:member(Node, Before)} of
        {up, false} -> tell(Name, What, Node, kept(Name, [Node | Before], State));
        {down, true} -> tell(Name, What, Node, kept(Name, Before -- [Node], State));
        _Known -> State
    end.

kept(Name, [], #state{fellows = Fellows} = State) ->
    ok = weft_view:delete(?MODULE, {?FELLOWS, Name}),
    State#state{fellows = maps:remove(Name, Fellows)};
kept(Name, Nodes, #state{fellows = Fellows} = State) ->
    Sorted = lists:sort(Nodes),
    ok = weft_view:put(?MODULE, {?FELLOWS, Name}, Sorted),
    State#state{fellows = Fellows#{Name => Sorted}}.

tell(Name, What, Node, #state{subscribers = Subscribers} = State) ->
    _ = [Pid ! {weft_group, Name, {What, Node}}
         || {Pid, {_, Names}} <- maps:to_list(Subscribers),
            lists:member(Name, Names) orelse lists:member(all, Names)],
    State.
