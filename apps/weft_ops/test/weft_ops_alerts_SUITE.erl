%% SPDX-License-Identifier: Apache-2.0
%% @doc The alerts of a node that is cut off fire, and none before: four nodes, two of them
%% gateways, a Prometheus that scrapes them, and the rules that are shipped, with short times.
%%
%% With FULL=1 each alert fires once by a real fault, also that of a cluster in halves, each of
%% which takes itself for the whole. The nodes work for ten minutes before the first one, under the
%% rules as they are shipped too, and nothing may fire. Nor may it under these in ten minutes in
%% which all nodes call all others as fast as they can.
-module(weft_ops_alerts_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4, until/2]).
-import(weft_ops_prometheus, [fires/2, firing/2, sum/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([a_node_that_is_cut_off_is_told/1, each_alert_fires_once/1, nothing_is_told_under_load/1,
         a_cluster_in_halves_is_told/1]).
%% On the nodes.
-export([work/1, echo/0, load/2, answers/0, flood/2, pour/1, flap/1]).
-export([init/2]).

-define(NAMES, [a, g1, g2, b]).
-define(PARTIAL, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]).
-define(FIRES_MS, 60000).
%% Above the threshold of WeftQueuesGrow together.
-define(SENDERS, 80).
-define(MESSAGE_BYTES, 1048576).
-define(STRANGERS, 60).
%% A sender that waits for its answer has less in its queue than makes it wait.
-define(LOAD_BYTES, 65536).
-define(CALLERS, 16).
-define(SILENCE_S, 600).
-define(SILENCE_SHORT_S, 10).
-define(SILENT_MS, 90000).
-define(OF_LATE_ANSWERS, ["WeftMetricsIncomplete", "WeftNodeDown"]).

suite() -> [{timetrap, {minutes, 30}}].

all() ->
    case os:getenv("FULL") of
        false -> [a_node_that_is_cut_off_is_told];
        _ -> [each_alert_fires_once, nothing_is_told_under_load, a_cluster_in_halves_is_told]
    end.

init_per_suite(Config) ->
    case weft_ops_prometheus:find() of
        false ->
            weft_test_missing:skip("prometheus");
        _Program ->
            {ok, _} = application:ensure_all_started(cowboy),
            weft_test_nodes:begin_suite(Config)
    end.

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) ->
    ok = weft_http_listener:stop(?MODULE),
    weft_test_nodes:stop_all().

a_node_that_is_cut_off_is_told(Config0) ->
    {[A, _, _, B], Server, _Config} = begun(Config0),
    [_ | _] = isolated(A, B, Server).

each_alert_fires_once(Config0) ->
    {[A, _, _, B], Server, Config} = begun(Config0),
    Fired = lists:append([isolated(A, B, Server), flapping(A, Server), late(A, Server),
                          strangers(A, Server), stuck(A, Server), dead(A, B, Config, Server)]),
    %% That one has a case of its own.
    ?assertEqual(["WeftClusterSplit"], weft_ops_prometheus:alerts(rules()) -- Fired).

rules() -> weft_ops_prometheus:rules("weft-alerts.yml").

%% Each of the four nodes has processes that call each other one, over the gateways too, with large
%% messages. So there is always something on its way, and the machine does what it can. Processes
%% that send on and on without an answer are no such load: of these WeftSendersSuspended tells.
nothing_is_told_under_load(Config0) ->
    {[A, G1, G2, B] = Nodes, _Answers, Config} = started(Config0),
    ok = working([{A, b}, {B, a}, {G1, g2}, {G2, g1}]),
    Server = weft_ops_prometheus:as_shipped(rules(), maps:values(?config(ports, Config)),
                                            filename:join(?config(priv_dir, Config), "load")),
    until(fun() -> {ok, 4.0} =:= sum("up", Server) end, ?FIRES_MS),
    [ok = call(Node, ?MODULE, load, [[name(N) || N <- Nodes, N =/= Node], ?CALLERS])
     || Node <- Nodes],
    Fired = fired(?SILENCE_S, Server),
    Answers = [call(Node, ?MODULE, answers, []) || Node <- Nodes],
    ct:pal("answers of ~b bytes in ~b s, of each node: ~0p; milliseconds of processor time: ~0p",
           [?LOAD_BYTES, ?SILENCE_S, Answers,
            [element(1, call(Node, erlang, statistics, [runtime])) || Node <- Nodes]]),
    ?assertEqual([], Fired),
    [?assert(Count > ?SILENCE_S) || Count <- Answers].

%% Nodes that work, of which nothing was told for a while.
begun(Config0) ->
    {[A, _, _, B] = Nodes, Answers, Config} = started(Config0),
    ok = working([{A, b}, {B, a}]),
    Server = weft_ops_prometheus:start(rules(), maps:values(?config(ports, Config)),
                                       filename:join(?config(priv_dir, Config), "prometheus")),
    until(fun() -> {ok, 4.0} =:= sum("up", Server) end, ?FIRES_MS),
    ok = silent(Server),
    ok = atomics:put(Answers, 1, 403),
    {Nodes, Server, Config}.

%% Nodes that reach each other, and what their webhook answers.
started(Config0) ->
    Answers = atomics:new(1, []),
    ok = atomics:put(Answers, 1, 204),
    Config = [{ports, ports()}, {hook, webhook(Answers)} | Config0],
    Nodes = [start(Name, [], Config) || Name <- ?NAMES],
    until(fun() -> [] =:= [N || N <- Nodes, unreachable(N) > 0] end, ?FIRES_MS),
    {Nodes, Answers, Config}.

working(Pairs) ->
    [true = is_pid(call(Node, ?MODULE, work, [node_name(Other)])) || {Node, Other} <- Pairs],
    ok.

ports() -> maps:from_list([{Name, weft_test_nodes:free_port()} || Name <- ?NAMES]).

%% --- halves -----------------------------------------------------------------------------------

%% No node lists all members, or one that has failed is none any more.
a_cluster_in_halves_is_told(Config) ->
    Seeds = #{seeds => [node_name(a)]},
    in_halves({peer_to_peer, Seeds}, ["WeftClusterSplit"], Config),
    _ = [in_halves({full_mesh, Seeds#{detector => swim}},
                   ["WeftClusterSplit", "WeftMembersUnreachable"], Config)
         || os:getenv("FULL") =/= false],
    ok.

in_halves({Kind, _} = Topology, Alerts, Config0) ->
    Ports = ports(),
    Config = [{ports, Ports}, {hook, "http://127.0.0.1:9/"}, {topology, Topology} | Config0],
    [A, G1, G2, B] = Nodes = [start(Name, [], Config) || Name <- ?NAMES],
    until(fun() -> [4, 4, 4, 4] =:= [length(call(N, weft, members, [])) || N <- Nodes] end,
          ?FIRES_MS),
    Server = weft_ops_prometheus:start(rules(), maps:values(Ports),
                                       filename:join(?config(priv_dir, Config), Kind)),
    until(fun() -> {ok, 4.0} =:= sum("up", Server) end, ?FIRES_MS),
    receive after 3000 -> ok end, % pacing: rules are evaluated each second
    ?assertEqual([], [Alert || Alert <- firing("[10s]", Server), lists:member(Alert, Alerts)]),
    [ok = call(Here, weft_fault, cut, [name(There)]) || Here <- [A, G1], There <- [G2, B]],
    Alerts = fires(Alerts, Server),
    weft_test_nodes:stop_all().

%% --- silence ----------------------------------------------------------------------------------

%% Counted by Prometheus itself, over all that time. In the usual form a short one is waited for:
%% with short times an answer that a busy machine has delayed is told of at once.
silent(Server) ->
    case os:getenv("FULL") of
        false ->
            until(fun() ->
                      Fired = fired(?SILENCE_SHORT_S, Server),
                      ct:log("fired in ~b s: ~p", [?SILENCE_SHORT_S, Fired]),
                      ?assertEqual([], Fired -- ?OF_LATE_ANSWERS),
                      Fired =:= []
                  end, ?SILENT_MS);
        _ ->
            ?assertEqual([], fired(?SILENCE_S, Server)),
            ok
    end.

fired(Seconds, Server) ->
    receive after Seconds * 1000 -> ok end, % pacing: silence takes time
    firing(lists:concat(["[", Seconds, "s]"]), Server).

%% --- faults -----------------------------------------------------------------------------------

%% Its session has no path, what it sends waits, and what others broadcast is gone: they keep one.
isolated(A, B, Server) ->
    ok = call(B, weft, broadcast, [scope, hello]),
    [ok = call(A, weft_fault, cut, [node_name(G)]) || G <- [g1, g2]],
    [ok = call(B, weft, broadcast, [scope, N]) || N <- lists:seq(1, 10)],
    true = is_pid(call(A, erlang, spawn, [?MODULE, flood, [node_name(b), ?SENDERS]])),
    Pour = call(A, erlang, spawn, [?MODULE, pour, [node_name(b)]]),
    Fired = fires(["WeftMembersUnreachable", "WeftLinkDown", "WeftSessionsWithoutPath",
                   "WeftQueuesGrow", "WeftSendersSuspended", "WeftDialsFail",
                   "WeftChannelQueueGrows", "WeftWebhookDropsAlarms"], Server),
    true = call(A, erlang, exit, [Pour, kill]),
    ok = call(A, weft_fault, heal, []),
    until(fun() -> unreachable(A) =:= 0 end, ?FIRES_MS),
    ok = call(B, weft, broadcast, [scope, again]),
    Fired.

%% What was missed is told when nobody can have it any more.
flapping(A, Server) ->
    Flap = call(A, erlang, spawn, [?MODULE, flap, [[node_name(G) || G <- [g1, g2]]]]),
    Fired = fires(["WeftBroadcastMissed", "WeftLinksFlap", "WeftSessionsResumeOften"], Server),
    true = call(A, erlang, exit, [Flap, kill]),
    Fired.

late(A, Server) ->
    [ok = call(A, weft_fault, delay, [node_name(G), 1100, 1200]) || G <- [g1, g2]],
    Fired = fires(["WeftRoundTripLong"], Server),
    ok = call(A, weft_fault, heal, []),
    Fired.

%% They do not speak the protocol.
strangers(A, Server) ->
    {port, Port, _} = call(A, erl_epmd, port_please, ["a", {127, 0, 0, 1}]),
    lists:foreach(fun(_) ->
                      {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [{active, true}]),
                      ok = gen_tcp:send(Socket, "GET / HTTP/1.0\r\n\r\n"),
                      receive {tcp_closed, Socket} -> ok; {tcp_error, Socket, _} -> ok end
                  end, lists:seq(1, ?STRANGERS)),
    fires(["WeftConnectionsRefused"], Server).

stuck(A, Server) ->
    [Session] = [Pid || #{node := Node, pid := Pid} <- maps:get(sessions, call(A, weft, status,
                                                                                [])),
                        Node =:= node_name(b)],
    ok = call(A, sys, suspend, [Session]),
    Fired = fires(["WeftMetricsIncomplete"], Server),
    ok = call(A, sys, resume, [Session]),
    Fired.

%% And comes back with another version.
dead(A, B, Config, Server) ->
    ok = weft_test_nodes:kill(B),
    until(fun() -> not lists:member(name(B), call(A, erlang, nodes, [connected])) end, ?FIRES_MS),
    ok = call(A, weft, send, [{keeper, name(B)}, lost, default]),
    Fired = fires(["WeftNodeDown", "WeftChannelLosesMessages"], Server),
    _ = start(b, [another_version], Config),
    Fired ++ fires(["WeftVersionsMixed"], Server).

%% --- a webhook -------------------------------------------------------------------------------

%% A busy machine is an alarm, but no alert. It is refused only later.
webhook(Answers) ->
    Dispatch = cowboy_router:compile([{'_', [{'_', ?MODULE, Answers}]}]),
    {ok, _} = cowboy:start_clear(?MODULE, [{port, 0}, {ip, {127, 0, 0, 1}}],
                                 #{env => #{dispatch => Dispatch}}),
    lists:concat(["http://127.0.0.1:", ranch:get_port(?MODULE), "/"]).

%% @private
init(Request, Answers) -> {ok, cowboy_req:reply(atomics:get(Answers, 1), Request), Answers}.

%% --- on the nodes -----------------------------------------------------------------------------

%% @doc Calls the echo of that node all the time, and answers.
work(Node) ->
    register(echo, spawn(?MODULE, echo, [])),
    spawn(fun Ask() ->
                  {echo, Node} ! {self(), make_ref()},
                  receive {_Echo, _Ref} -> ok after 1000 -> ok end,
                  receive after 5 -> Ask() end % pacing: some hundred calls a second
          end).

echo() ->
    receive
        {From, Ref} -> From ! {echo, Ref}, echo();
        {From, Ref, _Message} -> From ! {echo, Ref}, echo()
    end.

%% @doc For each of these nodes so many processes send a message to the echo there, each another one
%% when it has the answer, which is a small one: one process gives all of them.
load(Nodes, Count) ->
    Answers = counters:new(1, [write_concurrency]),
    ok = persistent_term:put(?MODULE, Answers),
    Message = binary:copy(<<0>>, ?LOAD_BYTES),
    lists:foreach(fun(Node) -> spawn(fun() -> loaded(Node, Message, Answers) end) end,
                  [Node || Node <- Nodes, _ <- lists:seq(1, Count)]).

loaded(Node, Message, Answers) ->
    Ref = make_ref(),
    {echo, Node} ! {self(), Ref, Message},
    receive {echo, Ref} -> ok end,
    ok = counters:add(Answers, 1, 1),
    loaded(Node, Message, Answers).

%% @doc How often they had one.
answers() -> counters:get(persistent_term:get(?MODULE), 1).

%% @doc So many processes send a large message to nobody.
flood(Node, Count) ->
    Message = binary:copy(<<0>>, ?MESSAGE_BYTES),
    lists:foreach(fun(_) -> spawn(fun() -> {nobody, Node} ! Message end) end,
                  lists:seq(1, Count)).

%% @doc Sends to nobody on a channel, until its queue is full, and whenever there is room.
pour(Node) ->
    _ = weft:send({nobody, Node}, binary:copy(<<0>>, ?LOAD_BYTES), default),
    pour(Node).

%% @doc Breaks these links all the time.
flap(Nodes) ->
    [weft_fault:break(Node) || Node <- Nodes],
    receive after 150 -> flap(Nodes) end. % pacing: a network that flaps

%% --- steps ------------------------------------------------------------------------------------

start(Name, Options, Config) ->
    [A, G1, G2, B] = [node_name(N) || N <- ?NAMES],
    Static = {static, #{links => [{A, G1}, {A, G2}, {G1, B}, {G2, B}]}},
    Weft = [{topology, proplists:get_value(topology, Config, Static)},
            {faults, true}, {channels, #{default => #{}}},
            {broadcast, #{keep_ms => 1000, keep_messages => 1}},
            {tuning, #{keepalive_ms => 500, idle_keepalive_ms => 500}}],
    How = #{config => Weft, args => ?PARTIAL ++ weft_ops_test_args:args([?MODULE])},
    Node = weft_test_nodes:start(Name, How, ?config(place, Config)),
    _ = [ok = another_version(Node) || lists:member(another_version, Options)],
    Ops = [{http, #{port => maps:get(Name, ?config(ports, Config))}}, {timeout_ms, 800},
           {sample_ms, 500}, {grace_ms, #{default => 500, unreachable => 500}},
           {webhook, #{url => ?config(hook, Config)}}],
    [ok = call(Node, application, set_env, [weft_ops, Key, Value]) || {Key, Value} <- Ops],
    {ok, _} = call(Node, application, ensure_all_started, [weft_ops]),
    Node.

%% As far as it says.
another_version(Node) ->
    {ok, [{application, weft, Keys}]} =
        call(Node, file, consult, [filename:join(weft_test_nodes:ebin(weft), "weft.app")]),
    _ = call(Node, application, unload, [weft]),
    call(Node, application, load, [{application, weft, lists:keystore(vsn, 1, Keys,
                                                                      {vsn, "0.0.9"})}]).

unreachable(Node) ->
    #{members := Members, routes := Routes, links := Links} = call(Node, weft, status, []),
    length(lists:usort(Members) -- [name(Node) | maps:keys(Routes)
                                    ++ [N || #{node := N, state := up} <- Links]])
        + case Members of [_, _, _, _] -> 0; _NotYet -> 1 end.
