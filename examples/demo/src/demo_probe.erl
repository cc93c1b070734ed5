%% SPDX-License-Identifier: Apache-2.0
%% @doc The one process that the demo adds to a node: notes each nodedown the kernel reports, and on
%% the stock carrier cuts a link.
%%
%% weft can cut a link itself (`weft_fault'). On the stock carrier a cut is: the TCP connection
%% between the two nodes is closed, and each side takes a cookie for the other that is not the one
%% the other takes, so that no connection comes up until heal/1.
-module(demo_probe).
-behaviour(gen_server).

-export([start/0, nodedowns/0, connections/0, cut/1, heal/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% @doc Begins to watch.
-spec start() -> ok.
start() ->
    {ok, _} = gen_server:start({local, ?MODULE}, ?MODULE, [], []),
    ok.

%% @doc All nodedowns since start/0, oldest first.
-spec nodedowns() -> [node()].
nodedowns() ->
    gen_server:call(?MODULE, nodedowns).

%% @doc The nodes that this one has a distribution connection of the stock carrier to.
-spec connections() -> [node()].
connections() ->
    [Node || {Node, Port} <- erlang:system_info(dist_ctrl), is_port(Port)].

%% @doc Cuts the stock connection to Node, from this side.
-spec cut(node()) -> ok.
cut(Node) ->
    true = erlang:set_cookie(Node, list_to_atom("cut by " ++ atom_to_list(node()))),
    [exit(Port, kill) || {N, Port} <- erlang:system_info(dist_ctrl), N =:= Node],
    ok.

%% @doc Ends cut/1.
-spec heal(node()) -> ok.
heal(Node) ->
    true = erlang:set_cookie(Node, erlang:get_cookie()),
    ok.

init([]) ->
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    {ok, []}.

handle_call(nodedowns, _From, Nodedowns) ->
    {reply, lists:reverse(Nodedowns), Nodedowns}.

handle_cast(_Request, Nodedowns) ->
    {noreply, Nodedowns}.

handle_info({nodedown, Node, _Info}, Nodedowns) ->
    {noreply, [Node | Nodedowns]};
handle_info({nodeup, _Node, _Info}, Nodedowns) ->
    {noreply, Nodedowns}.
