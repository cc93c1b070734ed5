%% SPDX-License-Identifier: Apache-2.0
%% @doc A node with weft over TLS and one with OTP's own TLS carrier are one cluster, whoever calls.
-module(weft_stock_tls_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([a_stock_tls_node_calls/1, a_stock_tls_node_is_called/1, both_ways_at_once_in_bulk/1,
         a_killed_stock_tls_node_is_down/1, ticks_keep_an_idle_connection/1,
         what_came_before_the_end_is_delivered/1]).
%% Run on the nodes.
-export([exchange/3, echo/0, watch/1, observe/1, to_observer/2]).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [a_stock_tls_node_calls, a_stock_tls_node_is_called, both_ways_at_once_in_bulk,
     a_killed_stock_tls_node_is_down, ticks_keep_an_idle_connection,
     what_came_before_the_end_is_delivered].

init_per_suite(Config) ->
    Dir = ?config(priv_dir, Config),
    Options = weft_interop_certificates:options(Dir, ours, [ours]),
    WeftConfig = written(Dir, "weft.config", [[{weft, [{transport, tls},
                                                       {tls_options, Options}]}]]),
    Optfile = written(Dir, "inet_tls.conf", [[{server, [{fail_if_no_peer_cert, true} | Options]},
                                              {client, Options}]]),
    weft_test_nodes:begin_suite([{weft_config, WeftConfig}, {optfile, Optfile} | Config]).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

written(Dir, Name, Terms) ->
    File = filename:join(Dir, Name),
    ok = file:write_file(File, [io_lib:format("~0p.~n", [Term]) || Term <- Terms]),
    File.

a_stock_tls_node_calls(Config) ->
    [Weft, Stock] = parted(Config),
    ?assertEqual(pong, call(Stock, net_adm, ping, [name(Weft)])),
    connected(Weft, Stock).

a_stock_tls_node_is_called(Config) ->
    [Weft, Stock] = parted(Config),
    ?assertEqual(pong, call(Weft, net_adm, ping, [name(Stock)])),
    connected(Weft, Stock).

connected(Weft, Stock) ->
    ?assertEqual([name(Stock)], call(Weft, erlang, nodes, [])),
    ?assertEqual([name(Weft)], call(Stock, erlang, nodes, [])),
    ?assertEqual(name(Stock), call(Weft, erpc, call, [name(Stock), erlang, node, []])),
    ?assertEqual([], call(Weft, weft_sessions, list, [])).

both_ways_at_once_in_bulk(Config) ->
    [Weft, Stock] = parted(Config),
    pong = call(Weft, net_adm, ping, [name(Stock)]),
    Calls = [{Here, There, N} || N <- [1, 2, 3], {Here, There} <- [{Weft, Stock}, {Stock, Weft}]],
    Self = self(),
    [spawn_link(fun() ->
                        Self ! {done, call(Here, ?MODULE, exchange, [name(There), 6, 1000000])}
                end) || {Here, There, _} <- Calls],
    [receive {done, Result} -> ?assertEqual(ok, Result) after 60000 -> ct:fail(hangs) end
     || _ <- Calls].

a_killed_stock_tls_node_is_down(Config) ->
    [Weft, Stock] = parted(Config),
    pong = call(Weft, net_adm, ping, [name(Stock)]),
    Watcher = call(Weft, erlang, spawn, [?MODULE, watch, [name(Stock)]]),
    weft_test_nodes:kill(Stock),
    weft_test_nodes:until(fun() -> not call(Weft, erlang, is_process_alive, [Watcher]) end).

ticks_keep_an_idle_connection(Config) ->
    [Weft, Stock] = pair(Config, ["-kernel", "net_ticktime", "8"]),
    pong = call(Weft, net_adm, ping, [name(Stock)]),
    Watchers = [{Node, call(Node, erlang, spawn, [?MODULE, watch, [name(Other)]])}
                || {Node, Other} <- [{Weft, Stock}, {Stock, Weft}]],
    receive after 12000 -> ok end, % pacing: without ticks either of them is down after ten seconds
    [?assert(call(Node, erlang, is_process_alive, [Watcher])) || {Node, Watcher} <- Watchers].

%% A send fails before the reader has delivered what came.
what_came_before_the_end_is_delivered(Config) ->
    [Weft, Stock] = parted(Config),
    pong = call(Weft, net_adm, ping, [name(Stock)]),
    ok = call(Weft, ?MODULE, observe, [name(Stock)]),
    [Reader] = reading(Weft),
    ok = call(Weft, sys, suspend, [Reader]),
    Numbers = lists:seq(1, 100),
    ok = call(Stock, ?MODULE, to_observer, [name(Weft), Numbers]),
    weft_test_nodes:until(fun() ->
        {message_queue_len, Waiting} = call(Weft, erlang, process_info, [Reader,
                                                                         message_queue_len]),
        Waiting >= length(Numbers)
    end),
    true = call(Stock, erlang, disconnect_node, [name(Weft)]),
    %% All that is sent fails from now on.
    [call(Weft, erlang, send, [{nobody, name(Stock)}, N, [noconnect]]) || N <- Numbers],
    ok = call(Weft, sys, resume, [Reader]),
    ?assertEqual(Numbers ++ [nodedown], call(Weft, weft_test_nodes, ask, [observer, seen])).

reading(Node) ->
    [Pid || Pid <- call(Node, erlang, processes, []),
            {weft_stock_tls_reader, _, _} <- [call(Node, proc_lib, translate_initial_call, [Pid])]].

%% --- on the nodes -----------------------------------------------------------------------------

%% @doc Sends binaries to an echo there and compares what comes back.
exchange(Node, Count, Bytes) ->
    Echo = spawn_link(Node, ?MODULE, echo, []),
    [begin
         Binary = rand:bytes(Bytes),
         Echo ! {self(), Binary},
         receive {Echo, Binary} -> ok end
     end || _ <- lists:seq(1, Count)],
    unlink(Echo),
    ok.

echo() ->
    receive {From, Binary} -> From ! {self(), Binary}, echo() end.

%% @doc Lives until the node is down.
watch(Node) ->
    true = erlang:monitor_node(Node, true),
    receive {nodedown, Node} -> ok end.

%% @doc A process that keeps what it gets until the node is down.
observe(Node) ->
    {Starter, Ref} = {self(), make_ref()},
    spawn(fun() ->
                  register(observer, self()),
                  true = erlang:monitor_node(Node, true),
                  Starter ! Ref,
                  Seen = seen(Node),
                  receive {seen, From, Asked} -> From ! {Asked, Seen} end
          end),
    receive Ref -> ok end.

seen(Node) ->
    receive
        {nodedown, Node} -> [nodedown];
        N when is_integer(N) -> [N | seen(Node)]
    end.

to_observer(Node, Messages) ->
    lists:foreach(fun(Message) -> {observer, Node} ! Message end, Messages).

%% --- helpers ----------------------------------------------------------------------------------

%% The two nodes of most cases, not connected.
parted(Config) ->
    [Weft, Stock] = Nodes =
        [weft_test_nodes:lasting(long(Name), fun() -> start(Name, [], Config) end)
         || Name <- [weft_node, stock_node]],
    weft_test_nodes:until(fun() ->
                                  _ = call(Weft, erlang, disconnect_node, [name(Stock)]),
                                  [[], []] =:= [call(Node, erlang, nodes, []) || Node <- Nodes]
                          end),
    Nodes.

long(Name) -> list_to_atom(atom_to_list(Name) ++ "@127.0.0.1").

pair(Config, Args) -> [start(Name, Args, Config) || Name <- [weft_ticking, stock_ticking]].

start(Name, Args, Config) ->
    weft_test_nodes:start(Name, (carrier(Name, Args, Config))#{long => "127.0.0.1"},
                          ?config(place, Config)).

carrier(Name, Args, Config) when Name =:= weft_node; Name =:= weft_ticking ->
    #{args => ["-config", ?config(weft_config, Config) | Args]};
carrier(_Name, Args, Config) ->
    #{carrier => stock,
      args => ["-proto_dist", "inet_tls", "-ssl_dist_optfile", ?config(optfile, Config) | Args]}.

call(Node, Module, Function, Args) -> weft_test_nodes:call(Node, Module, Function, Args, 60000).
