%% SPDX-License-Identifier: Apache-2.0
%% @doc Visible circuits: keeps a distribution connection to every node that has a route, so that
%% `nodes()' lists all members although few of them are neighbours.
%%
%% It learns the routes from the notices of the router. It dials with backoff and without a last
%% attempt, as topologies do (`weft_wanted_links'), except that a link is here a distribution
%% connection. A node without a route is not dialled, because the attempt could not succeed; it is
%% dialled when the route comes back. A connection that is up is never closed from here.
-module(weft_visible).
-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(visible, {links :: weft_wanted_links:links()}).

%% @doc Starts the connector. Options: those of `weft_wanted_links:new/2'.
-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Options) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

%% @private
-spec init(map()) -> {ok, #visible{}}.
init(Options) ->
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    ok = weft_driver:subscribe(weft_router, self()),
    Links0 = weft_wanted_links:new(node(), Options),
    Links = lists:foldl(fun weft_wanted_links:up/2, Links0, nodes(connected)),
    Routed = [Dest || {Dest, _} <- weft_view:all(route)],
    {ok, lists:foldl(fun want/2, #visible{links = Links}, Routed)}.

%% @private
-spec handle_call(term(), gen_server:from(), #visible{}) -> {reply, {error, term()}, #visible{}}.
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
-spec handle_cast(term(), #visible{}) -> {noreply, #visible{}}.
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #visible{}) -> {noreply, #visible{}}.
handle_info({weft_notice, weft_router, {route, Dest, unreachable}}, State) ->
    {noreply, forget(Dest, State)};
handle_info({weft_notice, weft_router, {route, Dest, _NextHop}}, State) ->
    {noreply, want(Dest, State)};
handle_info({weft_notice, weft_router, _Other}, State) ->
    {noreply, State};
handle_info({nodeup, Node, _Info}, #visible{links = Links} = State) ->
    {noreply, State#visible{links = weft_wanted_links:up(Node, Links)}};
handle_info({nodedown, Node, _Info}, State) ->
    {noreply, perform(weft_wanted_links:down(Node, State#visible.links), State)};
handle_info({dial_failed, Node}, State) ->
    {noreply, perform(weft_wanted_links:down(Node, State#visible.links), State)};
handle_info({weft_timer, Timer}, State) ->
    {noreply, perform(weft_wanted_links:timer(Timer, State#visible.links), State)};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

want(Node, State) ->
    perform(weft_wanted_links:want(Node, State#visible.links), State).

%% The effect `disconnect' is left out: a session may outlive the loss of its route.
forget(Node, State) ->
    {Links, _Disconnect} = weft_wanted_links:unwant(Node, State#visible.links),
    State#visible{links = Links}.

perform({Links, Effects}, State) ->
    lists:foreach(fun perform_one/1, Effects),
    State#visible{links = Links}.

%% Connecting may take seconds and must not delay events about other nodes. Success comes as nodeup.
perform_one({connect, Node}) ->
    Self = self(),
    _ = spawn_link(fun() -> net_kernel:connect_node(Node) =:= true orelse
                                (Self ! {dial_failed, Node}) end),
    ok;
perform_one({after_ms, Ms, Timer}) ->
    _ = erlang:send_after(Ms, self(), {weft_timer, Timer}),
    ok.
