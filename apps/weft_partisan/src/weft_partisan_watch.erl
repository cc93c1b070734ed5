%% SPDX-License-Identifier: Apache-2.0
%% @doc Calls functions when other nodes come and go, as `partisan_peer_service:on_up/2' and
%% `on_down/2' promise.
%%
%% A node is up while it can be reached: there is a route to it (or a connection, without a
%% topology). This is looked at every ?LOOK_MS, in a table and without a message, and only if there
%% is a function. So a break that is mended sooner is not told. Each call runs in a process of its
%% own; what crashes or hangs there holds up nothing here.
-module(weft_partisan_watch).
-behaviour(gen_server).

-export([new_table/0, start_link/0, add/3, up/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(LOOK_MS, 500).
%% Partisan has no call that takes a function back, so a program that adds one in a loop is stopped.
-define(FUNCTIONS_MAX, 1024).

-type which() :: node() | '_'.
-type event() :: up | down.
-type callback() :: fun(() -> term()) | fun((node()) -> term()).
%% known: the nodes that were up when it was looked the last time; none before the first function.
-record(state, {known = none :: none | [node()]}).

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

%% @doc The other nodes that can be reached now.
-spec up() -> [node()].
up() ->
    lists:usort([Node || {Node, _Route} <- weft_overlay:routes()] ++ nodes(connected)) -- [node()].

%% @private
-spec init([]) -> {ok, #state{}}.
init([]) ->
    case ets:info(?MODULE, size) of
        0 -> {ok, #state{}};
        _ -> {ok, look_later(#state{known = up()})}
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call({add, Event, Which, Function}, _From, State) ->
    case ets:info(?MODULE, size) of
        ?FUNCTIONS_MAX ->
            {reply, {error, {too_many_functions, ?FUNCTIONS_MAX}}, State};
        _ ->
            true = ets:insert(?MODULE, {erlang:unique_integer([monotonic]), Event, Which,
                                        Function}),
            {reply, ok, begun(State)}
    end;
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

begun(#state{known = none} = State) -> look_later(State#state{known = up()});
begun(State) -> State.

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
    Now = up(),
    tell(down, Known -- Now),
    tell(up, Now -- Known),
    {noreply, look_later(State#state{known = Now})};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

tell(_Event, []) -> ok;
tell(Event, Nodes) ->
    lists:foreach(fun({_, OfEvent, Which, Function}) when OfEvent =:= Event ->
                          [run(Function, Node)
                           || Node <- Nodes, Which =:= '_' orelse Which =:= Node];
                     (_Other) ->
                          ok
                  end, ets:tab2list(?MODULE)).

run(Function, _Node) when is_function(Function, 0) -> spawn(Function);
run(Function, Node) -> spawn(fun() -> Function(Node) end).
