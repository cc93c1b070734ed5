%% SPDX-License-Identifier: Apache-2.0
%% @doc Stock nodes whose names a node has never heard: who knows the cookie gets in, and who does
%% not leaves nothing behind. Peers are played message by message (`weft_stock_client').
-module(weft_stock_names_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [call/4, name/1, node_name/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([forged_names_leave_nothing_behind/1, forged_hosts_leave_little_behind/1,
         a_new_name_is_acknowledged/1, a_wrong_cookie_is_told/1,
         a_node_that_is_not_allowed_is_refused/1, an_allowed_host_gets_in/1,
         the_call_of_the_greater_name_counts/1, the_peer_has_the_greater_name/1,
         a_stock_node_may_be_hidden/1]).

-define(C, weft_stock_client).
-define(COOKIE, "weft_test").
-define(MEMORY_MAX, 8 * 1024 * 1024).
%% With FULL=1, and without.
-define(FORGED_FULL, 50000).
-define(FORGED, 1700).
%% Those of modules that are loaded when they are first needed.
-define(CODE_ATOMS_MAX, 1500).
%% What is needed for names of this host was loaded for the other hosts.
-define(FORGED_HERE, 500).
-define(ATOMS_HERE_MAX, 400).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [forged_names_leave_nothing_behind, forged_hosts_leave_little_behind,
     a_new_name_is_acknowledged, a_wrong_cookie_is_told, a_node_that_is_not_allowed_is_refused,
     an_allowed_host_gets_in, the_call_of_the_greater_name_counts, the_peer_has_the_greater_name,
     a_stock_node_may_be_hidden].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

%% Most cases have the same node. So have those after which it does not let everybody in; to those
%% that it allows, others are added.
init_per_testcase(Case, Config) ->
    Node = case Case of
               forged_hosts_leave_little_behind -> start(Case, Config);
               a_node_that_is_not_allowed_is_refused -> shared(choosy, Config);
               an_allowed_host_gets_in -> shared(choosy, Config);
               _ -> shared(middle, Config)
           end,
    [{node, Node}, {port, port_of(Node)} | Config].

shared(Name, Config) ->
    weft_test_nodes:lasting(node_name(Name), fun() -> start(Name, Config) end).

start(Name, Config) ->
    Node = weft_test_nodes:start(Name, #{config => [{handshake_timeout_ms, 5000}]},
                                 ?config(place, Config)),
    ok = call(Node, weft_hostile_log, install, []),
    Node.

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- cases ------------------------------------------------------------------------------------

%% Each third hangs up after its name, each third after the challenge, each third does not know the
%% cookie.
forged_names_leave_nothing_behind(Config) ->
    Node = ?config(node, Config),
    [forge_name(N, Config) || N <- lists:seq(1, 100)],
    Before = size_of(Node),
    [forge_name(N, Config) || N <- lists:seq(101, 100 + forged())],
    bounded(Node, Before, ?CODE_ATOMS_MAX),
    gets_in(Node, #{}, Config).

%% A name is given before there is a proof. Those for one host are given again.
forged_hosts_leave_little_behind(Config) ->
    Node = ?config(node, Config),
    Before = size_of(Node),
    [forge_host("host" ++ integer_to_list(N), Config) || N <- lists:seq(1, 1000 + forged())],
    bounded(Node, Before, 1000 + ?CODE_ATOMS_MAX),
    told(Node, too_many_new_hosts),
    [_, Here] = string:split(atom_to_list(name(Node)), "@"),
    BeforeThese = size_of(Node),
    [forge_host(Here, Config) || _ <- lists:seq(1, forged() - ?FORGED + ?FORGED_HERE)],
    bounded(Node, BeforeThese, ?ATOMS_HERE_MAX),
    Nameless = weft_test_nodes:start(undefined, #{carrier => stock}, ?config(place, Config)),
    true = call(Nameless, net_kernel, connect_node, [name(Node)]),
    Named = call(Nameless, erlang, node, []),
    ?assertEqual(Named, call(Node, erpc, call, [Named, erlang, node, []])).

a_new_name_is_acknowledged(Config) ->
    Socket = begun("brand_new@nowhere", Config),
    ok = ?C:reply(Socket, ?C:challenge(Socket), ?COOKIE),
    ?assertEqual({ok, erlang:md5(?COOKIE ++ "17")}, ?C:acknowledgement(Socket)),
    weft_test_nodes:until(fun() -> connected(?config(node, Config)) =:= ['brand_new@nowhere'] end),
    ok = ?C:close(Socket),
    weft_test_nodes:until(fun() -> connected(?config(node, Config)) =:= [] end).

a_wrong_cookie_is_told(Config) ->
    Node = ?config(node, Config),
    Socket = begun("never_heard@nowhere", Config),
    ok = ?C:reply(Socket, ?C:challenge(Socket), "guessed"),
    ?assert(?C:is_closed(Socket)),
    told(Node, wrong_cookie),
    ?assertEqual({error, badarg}, existing(Node, "never_heard@nowhere")).

a_node_that_is_not_allowed_is_refused(Config) ->
    Node = ?config(node, Config),
    ok = call(Node, net_kernel, allow, [['friend@nowhere']]),
    Socket = begun("brand_new@nowhere", Config),
    ok = ?C:reply(Socket, ?C:challenge(Socket), ?COOKIE),
    ?assert(?C:is_closed(Socket)),
    ?assertEqual([], connected(Node)),
    weft_test_nodes:until(
      fun() -> [found || {_, _, Text} <- call(Node, weft_hostile_log, take, []),
                         string:find(Text, "disallowed node brand_new@nowhere") =/= nomatch] =/= []
      end).

an_allowed_host_gets_in(Config) ->
    ok = call(?config(node, Config), net_kernel, allow, [[nowhere]]),
    a_new_name_is_acknowledged(Config).

%% While the peer proves itself this node begins to call it. Its own call counts: the peer is not
%% acknowledged, and not hung up on, as it waits for that call.
the_call_of_the_greater_name_counts(Config) ->
    {Socket, Calling} = crossed("a_new_one", Config),
    ?assertEqual({error, timeout}, gen_tcp:recv(Socket, 0, 500)),
    ok = ?C:close(Calling).

%% The same, and the peer's call counts.
the_peer_has_the_greater_name(Config) ->
    {Socket, Calling} = crossed("z_new_one", Config),
    ?assertMatch({ok, _}, ?C:acknowledgement(Socket)),
    ?assert(?C:is_closed(Calling)),
    weft_test_nodes:until(fun() -> connected(?config(node, Config)) =/= [] end).

a_stock_node_may_be_hidden(Config) ->
    Node = ?config(node, Config),
    gets_in(Node, #{args => ["-hidden"]}, Config),
    %% Those of the cases before go.
    weft_test_nodes:until(fun() ->
                                  call(Node, erlang, nodes, []) =:= []
                                      andalso length(call(Node, erlang, nodes, [hidden])) =:= 1
                          end).

%% --- forging ----------------------------------------------------------------------------------

forged() ->
    case os:getenv("FULL") of
        "1" -> ?FORGED_FULL;
        _ -> ?FORGED
    end.

forge_name(N, Config) ->
    Socket = ?C:connect(?config(port, Config)),
    ok = ?C:name(Socket, "forged" ++ integer_to_list(N) ++ "@nowhere"),
    case N rem 3 of
        0 ->
            hung_up;
        1 ->
            {<<"ok">>, _Challenge} = {?C:status(Socket), ?C:challenge(Socket)};
        2 ->
            {<<"ok">>, Challenge} = {?C:status(Socket), ?C:challenge(Socket)},
            ok = ?C:reply(Socket, Challenge, "guessed"),
            true = ?C:is_closed(Socket)
    end,
    ?C:close(Socket).

%% Named or refused, it goes.
forge_host(Host, Config) ->
    Socket = ?C:connect(?config(port, Config)),
    ok = ?C:host(Socket, Host),
    _ = gen_tcp:recv(Socket, 0, 10000),
    ?C:close(Socket).

size_of(Node) ->
    weft_test_nodes:until(fun() -> pending(Node) =:= [] end),
    true = call(Node, erlang, garbage_collect, []),
    {call(Node, erlang, system_info, [atom_count]), call(Node, erlang, memory, [total])}.

bounded(Node, {AtomsBefore, BytesBefore}, AtomsMax) ->
    {Atoms, Bytes} = size_of(Node),
    ct:pal("~b atoms and ~b bytes more", [Atoms - AtomsBefore, Bytes - BytesBefore]),
    ?assert(Atoms - AtomsBefore =< AtomsMax),
    ?assert(Bytes - BytesBefore =< ?MEMORY_MAX).

%% Connections that the kernel knows and that are not up.
pending(Node) ->
    call(Node, ets, tab2list, [sys_dist]) -- up(Node).

up(Node) ->
    [C || C <- call(Node, ets, tab2list, [sys_dist]), element(2, C) =/= pending,
          lists:member(up, tuple_to_list(C))].

%% --- small parts ------------------------------------------------------------------------------

begun(Name, Config) ->
    Socket = ?C:connect(?config(port, Config)),
    ok = ?C:name(Socket, Name),
    <<"ok">> = ?C:status(Socket),
    Socket.

%% The peer of that name has proven itself after the node began to call it: its socket, and that of
%% the call.
crossed(Short, Config) ->
    Node = ?config(node, Config),
    #{epmd := #{port := EpmdPort}} = ?config(place, Config),
    Called = atom_to_list(node_name(Short)),
    {ok, Listen} = gen_tcp:listen(0, [binary, {active, false}, {packet, 2}]),
    {ok, ListenPort} = inet:port(Listen),
    _ = ?C:register_at_epmd(EpmdPort, Short, ListenPort),
    Socket = begun(Called, Config),
    Challenge = ?C:challenge(Socket),
    _ = call(Node, erlang, spawn, [net_kernel, connect_node, [node_name(Short)]]),
    {ok, Calling} = gen_tcp:accept(Listen, 10000),
    {ok, <<$N, _/binary>>} = gen_tcp:recv(Calling, 0, 10000),
    ok = ?C:reply(Socket, Challenge, ?COOKIE),
    {Socket, Calling}.

gets_in(Node, Options, Config) ->
    Name = list_to_atom("newcomer" ++ integer_to_list(erlang:unique_integer([positive]))),
    Stock = weft_test_nodes:start(Name, Options#{carrier => stock}, ?config(place, Config)),
    true = call(Stock, net_kernel, connect_node, [name(Node)]),
    ?assertEqual(name(Stock), call(Node, erpc, call, [name(Stock), erlang, node, []])).

connected(Node) -> call(Node, erlang, nodes, [connected]).

told(Node, Expected) ->
    weft_test_nodes:until(
      fun() -> lists:any(fun({warning, #{reason := {Reason, _}}, _}) -> Reason =:= Expected;
                            ({warning, #{reason := Reason}, _}) -> Reason =:= Expected;
                            (_) -> false
                         end, call(Node, weft_hostile_log, take, []))
      end).

existing(Node, Name) ->
    try call(Node, erlang, list_to_existing_atom, [Name])
    catch _:_ -> {error, badarg}
    end.

port_of(Node) ->
    [Short, Host] = string:split(atom_to_list(name(Node)), "@"),
    {port, Port, _} = call(Node, erl_epmd, port_please, [Short, Host]),
    Port.
