%% SPDX-License-Identifier: Apache-2.0
%% @doc Calls functions when other nodes come and go, as `partisan_peer_service:on_up/2' and
%% `on_down/2' promise, and sends messages to those that called `partisan:monitor_nodes/1,2'.
%%
%% A node is up while it can be reached: there is a route to it (or a connection, without a
%% topology). This is looked at every ?LOOK_MS and when a node is connected, in a table and without
%% a message, and only if somebody is to be told. So a break that is mended sooner is not told. Each
%% call runs in a process of its own; what crashes or hangs there holds up nothing here.
-module(weft_partisan_watch).
-behaviour(gen_server).

-export([new_table/0, start_link/0, add/3, monitor_nodes/3, up/0, up/4]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, code_change/3]).

-define(LOOK_MS, 500).
%% Partisan has no call that takes a function back, so a program that adds one in a loop is stopped.
-define(FUNCTIONS_MAX, 1024).

-type which() :: node() | '_'.
-type event() :: up | down.
-type callback() :: fun(() -> term()) | fun((node()) -> term()).
%% With the reason of a `nodedown', messages have a third element.
-type form() :: plain | with_reason.
%% The table has functions, `{Number, event(), which(), callback()}', and processes,
%% `{{pid(), form()}}'.

%% known: the nodes that were up when it was looked the last time; none before there was somebody to
%% tell.
-record(state, {known = none :: none | [node()],
                monitors = #{} :: #{pid() => reference()}}).

%% @private Owned by the caller.
-spec new_table() -> ok.
new_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, ordered_set]),
    ok.

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc From now on the function is called for each such node that comes, or goes.
-spec add(event(), which(), callback()) -> ok.
add(Event, Which, Function) ->
    case gen_server:call(?MODULE, {add, Event, Which, Function}) of
        ok -> ok;
        {error, Reason} -> error(Reason)
    end.

%% @doc From now on the process is told of all nodes that come and go, or no more.
-spec monitor_nodes(pid(), boolean(), form()) -> ok.
monitor_nodes(Pid, IsOn, Form) ->
    gen_server:call(?MODULE, {monitor_nodes, Pid, IsOn, Form}).

%% @doc The other nodes that can be reached now.
-spec up() -> [node()].
up() ->
    Routed = [Node || {Node, _Route} <- weft_overlay:routes()],
    up(Routed, nodes(), nodes(hidden), weft_overlay:members()).

%% @private Connections over other nodes may be hidden, and so are those of tools, which are no
%% members.
-spec up(Routed :: [node()], Visible :: [node()], Hidden :: [node()], Members :: [node()]) ->
          [node()].
up(Routed, Visible, Hidden, Members) ->
    lists:usort(Routed ++ Visible ++ [Node || Node <- Hidden, lists:member(Node, Members)])
        -- [node()].

%% @private
-spec init([]) -> {ok, #state{}}.
init([]) ->
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    Monitors = maps:from_list([{Pid, monitor(process, Pid)} || Pid <- monitoring()]),
    State = #state{monitors = Monitors},
    case ets:info(?MODULE, size) of
        0 -> {ok, State};
        _ -> {ok, begun(State)}
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call({add, Event, Which, Function}, _From, State0) ->
    State = begun(State0),
    case ets:select_count(?MODULE, [{{'_', '_', '_', '_'}, [], [true]}]) of
        ?FUNCTIONS_MAX ->
            {reply, {error, {too_many_functions, ?FUNCTIONS_MAX}}, State};
        _ ->
            true = ets:insert(?MODULE, {erlang:unique_integer([monotonic]), Event, Which,
                                        Function}),
            {reply, ok, State}
    end;
handle_call({monitor_nodes, Pid, true, Form}, _From, #state{monitors = Monitors} = State0) ->
    State = begun(State0),
    true = ets:insert(?MODULE, {{Pid, Form}}),
    case Monitors of
        #{Pid := _} -> {reply, ok, State};
        #{} -> {reply, ok, State#state{monitors = Monitors#{Pid => monitor(process, Pid)}}}
    end;
handle_call({monitor_nodes, Pid, false, Form}, _From, #state{monitors = Monitors} = State) ->
    true = ets:delete(?MODULE, {Pid, Form}),
    case {Monitors, lists:member(Pid, monitoring())} of
        {#{Pid := Monitor}, false} ->
            true = demonitor(Monitor, [flush]),
            {reply, ok, State#state{monitors = maps:remove(Pid, Monitors)}};
        _ ->
            {reply, ok, State}
    end;
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

monitoring() -> lists:usort(ets:select(?MODULE, [{{{'$1', '_'}}, [], ['$1']}])).

%% Who is new is told of what changes from now on.
begun(#state{known = none} = State) -> look_later(State#state{known = up()});
begun(State) -> look(State).

look(#state{known = Known} = State) ->
    Now = up(),
    tell(down, Known -- Now),
    tell(up, Now -- Known),
    State#state{known = Now}.

look_later(State) ->
    _ = erlang:send_after(?LOOK_MS, self(), look),
    State.

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info(look, #state{known = Known} = State) when is_list(Known) ->
    {noreply, look_later(look(State))};
handle_info({nodeup, _Node, _Info}, #state{known = Known} = State) ->
    case Known of
        none -> {noreply, State};
        _ -> {noreply, look(State)}
    end;
%% A connection that ends is no end of the routes.
handle_info({nodedown, _Node, _Info}, State) ->
    {noreply, State};
handle_info({'DOWN', _Monitor, process, Pid, _Reason}, #state{monitors = Monitors} = State) ->
    _ = ets:match_delete(?MODULE, {{Pid, '_'}}),
    {noreply, State#state{monitors = maps:remove(Pid, Monitors)}};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

tell(_Event, []) -> ok;
tell(Event, Nodes) ->
    lists:foreach(fun({_, OfEvent, Which, Function}) when OfEvent =:= Event ->
                          [run(Function, Node)
                           || Node <- Nodes, Which =:= '_' orelse Which =:= Node];
                     ({{Pid, Form}}) ->
                          [Pid ! message(Event, Node, Form) || Node <- Nodes];
                     (_Other) ->
                          ok
                  end, ets:tab2list(?MODULE)).

run(Function, _Node) when is_function(Function, 0) -> spawn(Function);
run(Function, Node) -> spawn(fun() -> Function(Node) end).

message(up, Node, plain) -> {nodeup, Node};
message(down, Node, plain) -> {nodedown, Node};
message(up, Node, with_reason) -> {nodeup, Node, []};
message(down, Node, with_reason) -> {nodedown, Node, [{nodedown_reason, noconnection}]}.

%% @private A process of the version before told functions only.
-spec code_change(term(), tuple(), term()) -> {ok, #state{}}.
code_change(_Version, {state, Known}, _Extra) ->
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    {ok, #state{known = Known}};
code_change(_Version, State, _Extra) ->
    {ok, State}.
