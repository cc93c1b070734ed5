%% SPDX-License-Identifier: Apache-2.0
%% @doc Crowds of strangers at the port of a node: others come in all the same, and the node stays
%% as it was.
%%
%% Times are told in the log of the suite; what is asserted leaves room for a busy machine.
-module(weft_strangers_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [call/4, name/1, until/1, until/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([crowd_and_storm/1, crowd_over_tls/1, places_are_taken/1,
         who_asks_for_a_name_takes_a_place/1]).

-define(CROWD, weft_strangers_crowd).
-define(FROM, [{127, 0, 0, 2}, {127, 0, 0, 3}, {127, 0, 0, 4}, {127, 0, 0, 5}]).
-define(IDLE, 1500).
-define(STORM, case os:getenv("FULL") of false -> 2000; _ -> 4000 end).
%% An attempt to connect takes 7 s at most.
-define(CONNECT_MS, 15000).
-define(MEMORY_MAX, 100000000).
-define(ATOMS_MAX, 1000).
%% Of a node that asks to be given a name, and knows all that OTP 25 knows.
-define(FLAGS, (16#0000000D07DF7FBD bor 16#200000000)).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [crowd_and_storm, crowd_over_tls, places_are_taken, who_asks_for_a_name_takes_a_place].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% 1,500 that say nothing and come again when they are dropped, and 16 that come and go as fast as
%% they can, all the time, 2,000 times and more, which is twice the atoms that may be left; with
%% FULL=1 4,000 times.
crowd_and_storm(Config) ->
    A = start(tcp_a, weft, [], Config),
    [Friend, New] = of_weft(Config),
    [Stock, Crowds] = others(Config),
    connect(Friend, A),
    {Memory, Atoms} = size_of(A),
    Idle = begin_idle(Crowds, port(A), ?IDLE),
    Storm = call(Crowds, ?CROWD, storm, [port(A), lists:append(lists:duplicate(4, ?FROM)), 0]),
    Times = #{new_node => time_ms(fun() -> connect(New, A) end),
              stock_node => time_ms(fun() -> connect(Stock, A) end),
              resume => time_ms(fun() -> resume(Friend, A) end)},
    ct:pal("ms: ~p", [Times]),
    until(fun() -> call(Crowds, ?CROWD, count, [Storm]) > ?STORM end, 60000),
    {MemoryNow, AtomsNow} = size_of(A),
    ct:pal("bytes: ~b, atoms: ~b, processes: ~b",
           [MemoryNow - Memory, AtomsNow - Atoms, call(A, erlang, system_info, [process_count])]),
    ?assertMatch(Grown when Grown < ?MEMORY_MAX, MemoryNow - Memory),
    ?assertMatch(Grown when Grown < ?ATOMS_MAX, AtomsNow - Atoms),
    ?assertEqual([], [name(New), name(Friend)] -- call(A, erlang, nodes, [])),
    [ok = call(Crowds, ?CROWD, stop, [Crowd]) || Crowd <- [Storm, Idle]],
    ok.

%% TLS begins when somebody has said something, so those who say nothing cost no more than over TCP.
crowd_over_tls(Config) ->
    Tls = weft_interop_certificates:options(?config(priv_dir, Config), ours, [ours]),
    Options = [{transport, tls}, {tls_options, Tls}],
    [A, New] = [start(Name, weft, Options, Config) || Name <- [tls_a, tls_new]],
    [_, Crowds] = others(Config),
    {Memory, _Atoms} = size_of(A),
    Idle = begin_idle(Crowds, port(A), ?IDLE),
    ct:pal("ms: ~b", [time_ms(fun() -> connect(New, A) end)]),
    {MemoryNow, _} = size_of(A),
    ?assertMatch(Grown when Grown < ?MEMORY_MAX, MemoryNow - Memory),
    ok = call(Crowds, ?CROWD, stop, [Idle]).

%% Those who come from one address drop each other, and nobody from another one. Without that all
%% places would be taken for a minute.
places_are_taken(Config) ->
    A = start(share_a, weft, [{pending_handshakes_max, 20}, {handshake_timeout_ms, 60000}], Config),
    [Friend, New] = of_weft(Config),
    [Stock, Crowds] = others(Config),
    connect(Friend, A),
    {ok, Alone} = gen_tcp:connect({127, 0, 0, 1}, port(A), [{active, false}, {ip, {127, 0, 0, 9}}]),
    Idle = call(Crowds, ?CROWD, idle, [port(A), [{127, 0, 0, 2}], 30, 100]),
    until(fun() -> call(Crowds, ?CROWD, count, [Idle]) > 100 end),
    connect(New, A),
    connect(Stock, A),
    resume(Friend, A),
    ?assertEqual({error, timeout}, gen_tcp:recv(Alone, 1, 0)),
    ok = call(Crowds, ?CROWD, stop, [Idle]).

%% As a stock node without a name does, of a host of which there are nodes, and then nothing more.
who_asks_for_a_name_takes_a_place(Config) ->
    Places = 20,
    A = weft_test_nodes:start(names_a, #{config => [{pending_handshakes_max, Places}],
                                         args => ["-kernel", "net_setuptime", "60"],
                                         long => "127.0.0.1"}, ?config(place, Config)),
    [Stock, _] = others(Config),
    Asks = <<$N, (?FLAGS):64, 0:32, 9:16, "127.0.0.1">>,
    Options = [binary, {packet, 2}, {active, true}, {ip, {127, 0, 0, 2}}],
    Named = [begin
                 {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, port(A), Options),
                 ok = gen_tcp:send(Socket, Asks),
                 receive {tcp, Socket, <<"s", "named:", _/binary>>} -> Socket
                 after 10000 -> error(not_named)
                 end
             end || _ <- lists:seq(1, 3 * Places)],
    until(fun() ->
              length([open || Socket <- Named, {ok, _} <- [inet:peername(Socket)]]) =< Places
          end),
    connect(Stock, A),
    lists:foreach(fun gen_tcp:close/1, Named).

%% --- steps ------------------------------------------------------------------------------------

%% Stock nodes of all cases: one that connects, and one for the crowds.
others(Config) ->
    [lasting(Name, stock, Config) || Name <- [stock, crowd]].

%% Nodes of all cases, too: one that is connected before a crowd comes, and one that comes then.
of_weft(Config) ->
    [lasting(Name, weft, Config) || Name <- [friend, new]].

lasting(Name, Carrier, Config) ->
    weft_test_nodes:lasting(list_to_atom(atom_to_list(Name) ++ "@127.0.0.1"),
                            fun() -> start(Name, Carrier, [], Config) end).

start(Name, Carrier, Weft, Config) ->
    weft_test_nodes:start(Name, #{carrier => Carrier, config => Weft, long => "127.0.0.1"},
                          ?config(place, Config)).

port(#{node := Node} = Ref) ->
    [Short, _] = string:split(atom_to_list(Node), "@"),
    {port, Port, _} = call(Ref, erl_epmd, port_please, [Short, {127, 0, 0, 1}]),
    Port.

%% All of them have come once.
begin_idle(Crowds, Port, Count) ->
    Idle = call(Crowds, ?CROWD, idle, [Port, ?FROM, Count, 500]),
    until(fun() -> call(Crowds, ?CROWD, count, [Idle]) > Count end, 60000),
    Idle.

size_of(Node) ->
    {call(Node, erlang, memory, [total]), call(Node, erlang, system_info, [atom_count])}.

connect(Node, To) ->
    until(fun() -> call(Node, net_kernel, connect_node, [name(To)]) end, ?CONNECT_MS).

resume(Node, Peer) ->
    Before = resumes(Node, Peer),
    ok = call(Node, weft_links, break, [name(Peer)]),
    until(fun() -> resumes(Node, Peer) > Before end, ?CONNECT_MS).

%% -1 while there is no path.
resumes(Node, Peer) ->
    #{sessions := Sessions} = call(Node, weft, status, []),
    lists:max([-1 | [Resumes || #{node := N, resumes := Resumes, state := up} <- Sessions,
                                N =:= name(Peer)]]).

time_ms(Fun) ->
    {Us, ok} = timer:tc(Fun),
    Us div 1000.
