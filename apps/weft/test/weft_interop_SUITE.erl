%% SPDX-License-Identifier: Apache-2.0
%% @doc The carrier beside stock Erlang: its nodes, remsh, erl_call, and every way to start a node
%% that stock distribution knows.
-module(weft_interop_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([stock_node_calls_weft/1, weft_calls_stock_node/1,
         who_hangs_up_once_is_no_stock_node/1,
         a_node_changes_its_carrier_and_back/1, stock_nodes_denied/1,
         remsh/1, erl_call/1, without_epmd/1, long_names/1, ipv6/1, hidden_nodes/1,
         dynamic_name/1, allowed_nodes/1, ticks_keep_an_idle_connection/1, socket_options/1,
         statistics/1, wrong_cookie_and_cookie_per_node/1, started_at_run_time/1,
         node_that_does_not_listen/1, wrong_configuration/1,
         tls_with_mutual_certificates/1, tls_wrong_authority/1, tls_without_certificate/1,
         tls_and_tcp/1]).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [stock_node_calls_weft, weft_calls_stock_node, who_hangs_up_once_is_no_stock_node,
     a_node_changes_its_carrier_and_back, stock_nodes_denied, remsh, erl_call,
     without_epmd, ipv6, dynamic_name,
     ticks_keep_an_idle_connection, socket_options, statistics, wrong_cookie_and_cookie_per_node,
     started_at_run_time, node_that_does_not_listen, wrong_configuration,
     tls_with_mutual_certificates, tls_wrong_authority, tls_without_certificate, tls_and_tcp]
        ++ case is_full() of
               true -> [long_names, hidden_nodes, allowed_nodes];
               false -> []
           end.

is_full() -> os:getenv("FULL") =:= "1".

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- stock nodes ------------------------------------------------------------------------------

stock_node_calls_weft(Config) ->
    [Stock, Weft] = [stock(Config), alone(Config)],
    true = connects(Stock, Weft),
    talk(Stock, Weft),
    talk(Weft, Stock).

weft_calls_stock_node(Config) ->
    [Stock, Weft] = [stock(Config), alone(Config)],
    true = connects(Weft, Stock),
    talk(Weft, Stock),
    talk(Stock, Weft).

%% A weft node hangs up, too, as when it has no port left for a connection. Here it is the network
%% before it.
who_hangs_up_once_is_no_stock_node(Config) ->
    [PortA, PortB] = [weft_test_nodes:free_port() || _ <- [a, b]],
    Proxy = weft_test_proxy:start_link(PortB, #{hang_ups => 1}),
    Start = fun(Name, Ports) ->
                    start_named(Name, #{config => [{ports, Ports}],
                                        args => ["-start_epmd", "false",
                                                 "-epmd_module", "weft_epmd"]}, Config)
            end,
    A = Start(hung_up_a, #{"hung_up_a" => PortA, default => weft_test_proxy:port(Proxy)}),
    B = Start(hung_up_b, #{default => PortB}),
    true = connects(A, B),
    ?assertMatch([_], call(A, weft_sessions, list, [])),
    talk(A, B).

%% Restarted with the flag, without it and with it again, under one name: whatever others remember
%% of the node before does not keep it out.
a_node_changes_its_carrier_and_back(Config) ->
    Weft = alone(Config),
    Stock = stock(Config),
    [begin
         Node = start_named(changing, #{carrier => Carrier}, Config),
         true = connects(Node, Weft),
         true = connects(Node, Stock),
         talk(Weft, Node),
         talk(Node, Weft),
         talk(Stock, Node),
         ok = weft_test_nodes:kill(Node),
         [gone(Node, Other) || Other <- [Weft, Stock]]
     end || Carrier <- [weft, stock, weft]],
    ok.

gone(#{node := Node}, Other) ->
    weft_test_nodes:until(fun() ->
                                  not lists:member(Node, weft_test_nodes:call(Other, erlang, nodes,
                                                                              []))
                          end).

stock_nodes_denied(Config) ->
    Stock = stock(Config),
    Weft = start(weft, #{config => [{stock_nodes, deny}]}, Config),
    ok = call(Weft, weft_hostile_log, install, []),
    false = connects(Stock, Weft),
    told(Weft, stock_denied),
    false = connects(Weft, Stock).

remsh(Config) ->
    Weft = alone(Config),
    case os:find_executable("script") of
        false ->
            {skip, "no program `script` to give erl a terminal"};
        _ ->
            [?assertMatch({match, _}, re:run(remsh(Arguments, Weft, Config), "i am " ++ name(Weft)))
             || Arguments <- remsh_arguments()],
            ok
    end.

remsh_arguments() ->
    ["-sname undefined",
     "-sname remsh_weft -proto_dist weft -pa " ++ weft_test_nodes:ebin(weft_dist),
     "-sname remsh_stock", "-hidden -sname remsh_hidden"].

%% What a remote shell prints that runs one expression.
remsh(Arguments, Weft, Config) ->
    Erl = "erl -setcookie weft_test " ++ Arguments ++ " -remsh " ++ name(Weft),
    Port = open_port({spawn_executable, os:find_executable("script")},
                     [{args, ["-qec", Erl, "/dev/null"]}, binary, exit_status,
                      {env, epmd_env(Config)}]),
    Prompt = read_until(Port, ")1> ", <<>>),
    true = port_command(Port, "io:format(\"i ~s ~p~n\", [am, node()]).\n"),
    Output = read_until(Port, ")2> ", Prompt),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    port_close(Port),
    %% Without its terminal the shell's node ends.
    _ = os:cmd("kill -KILL " ++ integer_to_list(OsPid)),
    Output.

read_until(Port, Pattern, Output) ->
    case binary:match(Output, list_to_binary(Pattern)) of
        nomatch ->
            receive
                {Port, {data, Data}} -> read_until(Port, Pattern, <<Output/binary, Data/binary>>);
                {Port, {exit_status, Status}} -> ct:fail({remsh_ended, Status, Output})
            after 60000 ->
                ct:fail({remsh, Output})
            end;
        _ ->
            Output
    end.

erl_call(Config) ->
    Weft = alone(Config),
    case filelib:wildcard(filename:join(code:root_dir(), "lib/erl_interface-*/bin/erl_call")) of
        [] ->
            {skip, "no erl_call here"};
        [ErlCall | _] ->
            Port = open_port({spawn_executable, ErlCall},
                             [{args, ["-c", "weft_test", "-sname", short_name(Weft),
                                      "-a", "erlang node []"]},
                              binary, exit_status, {env, epmd_env(Config)}]),
            {0, Output} = output(Port, <<>>),
            ?assertEqual(name(Weft), string:trim(binary_to_list(Output)))
    end.

output(Port, Output) ->
    receive
        {Port, {data, Data}} -> output(Port, <<Output/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Output}
    after 60000 -> ct:fail({no_end, Output})
    end.

epmd_env(Config) ->
    #{epmd := #{port := Port}} = ?config(place, Config),
    [{"ERL_EPMD_PORT", integer_to_list(Port)}, {"TERM", "xterm"}].

%% --- ways to start a node ---------------------------------------------------------------------

without_epmd(Config) ->
    [PortA, PortB] = [weft_test_nodes:free_port() || _ <- [a, b]],
    Options = #{config => [{ports, #{"fixed_a" => PortA, default => PortB}},
                           {resume_timeout_ms, 3000}],
                args => ["-start_epmd", "false", "-epmd_module", "weft_epmd"]},
    [A, B] = [start_named(Name, Options, Config) || Name <- [fixed_a, fixed_b]],
    true = connects(A, B),
    talk(A, B),
    talk(B, A),
    ?assertEqual({error, address}, call(A, net_adm, names, [])),
    %% There is no epmd to say that it was killed: it is given up when its session can not resume.
    ok = weft_test_nodes:kill(B),
    weft_test_nodes:until(fun() -> not is_connected(A, B) end, 20000).

long_names(Config) ->
    [A, B] = [start(Name, #{long => "127.0.0.1"}, Config) || Name <- [a, b]],
    true = connects(A, B),
    talk(A, B).

ipv6(Config) ->
    case gen_tcp:listen(0, [inet6, {ip, {0, 0, 0, 0, 0, 0, 0, 1}}]) of
        {ok, Socket} ->
            gen_tcp:close(Socket),
            Options = #{long => "::1", config => [{family, inet6}]},
            [A, B] = [start(Name, Options, Config) || Name <- [a, b]],
            true = connects(A, B),
            talk(A, B),
            [#{lanes := [#{peername := {Address, _}}]}] = call(A, weft_links, info, []),
            ?assertEqual({0, 0, 0, 0, 0, 0, 0, 1}, Address);
        {error, _} ->
            {skip, "no IPv6 here"}
    end.

hidden_nodes(Config) ->
    Hidden = start(hidden, #{args => ["-hidden"]}, Config),
    Seen = alone(Config),
    true = connects(Hidden, Seen),
    ?assertEqual({[], [node_of(Seen)]}, {call(Hidden, erlang, nodes, []),
                                         call(Hidden, erlang, nodes, [hidden])}),
    ?assertEqual({[], [node_of(Hidden)]}, {call(Seen, erlang, nodes, []),
                                           call(Seen, erlang, nodes, [hidden])}),
    talk(Hidden, Seen),
    talk(Seen, Hidden).

%% A node that asks its first peer for a name. Its session survives a lost connection too.
dynamic_name(Config) ->
    A = start(a, #{config => [{resume_timeout_ms, 5000}]}, Config),
    Nameless = start_named(undefined, #{config => [{resume_timeout_ms, 5000}]}, Config),
    ?assertEqual(nonode@nohost, node_of(Nameless)),
    true = connects(Nameless, A),
    Named = call(Nameless, erlang, node, []),
    ?assertNotEqual(nonode@nohost, Named),
    Node = Nameless#{node := Named},
    talk(Node, A),
    talk(A, Node),
    [#{node := {anonymous, _}}] = call(A, weft_links, info, []),
    Pid = call(A, erpc, call, [Named, erlang, spawn, [timer, sleep, [infinity]]]),
    1 = call(Node, weft_resume_traffic, kill_lanes, [node_of(A), rst, all]),
    weft_test_nodes:until(fun() -> has_resumed(A) end),
    ?assert(call(A, erpc, call, [Named, erlang, is_process_alive, [Pid]])),
    talk(Node, A).

%% Once or more: a peer that waited too long for the answer asks again.
has_resumed(Node) ->
    [Session] = call(Node, weft_sessions, list, []),
    #{resumes := Resumes} = call(Node, weft_session, info, [Session]),
    Resumes > 0.

allowed_nodes(Config) ->
    [A, B, C] = [start(a, #{}, Config), alone(Config), other(Config)],
    ok = call(A, net_kernel, allow, [[node_of(B)]]),
    false = connects(C, A),
    ?assertNot(is_connected(A, C)),
    true = connects(B, A),
    talk(B, A).

%% Ticks keep an idle connection alive, with weft on one end; and with FULL=1 on both, too.
ticks_keep_an_idle_connection(Config) ->
    Args = ["-kernel", "net_ticktime", "8"],
    A = start(a, #{args => Args}, Config),
    Others = [start(other, #{carrier => Carrier, args => Args}, Config)
              || Carrier <- [stock | [weft || is_full()]]],
    [true = connects(A, Node) || Node <- Others],
    [ok = call(A, weft_resume_traffic, F, Arg)
     || {F, Arg} <- [{expect, []}, {watch_nodes, []}]],
    receive after 12000 -> ok end, % pacing: without ticks it would be down after ten seconds
    ?assertMatch(#{signals := []}, call(A, weft_resume_traffic, account, [])),
    [talk(A, Node) || Node <- Others],
    ok.

socket_options(Config) ->
    [A, B] = [alone(Config), other(Config)],
    true = connects(A, B),
    ?assertEqual({ok, [{nodelay, true}]}, call(A, net_kernel, getopts, [node_of(B), [nodelay]])),
    ok = call(A, net_kernel, setopts, [node_of(B), [{nodelay, false}, {sndbuf, 50000}]]),
    ?assertEqual({ok, [{nodelay, false}]}, call(A, net_kernel, getopts, [node_of(B), [nodelay]])),
    %% What decides how packets are read is refused, and nothing of it is done.
    ?assertMatch({error, {badopts, [{active, false}]}},
                 call(A, net_kernel, setopts, [node_of(B), [{active, false}, {nodelay, true}]])),
    ?assertEqual({ok, [{nodelay, false}]}, call(A, net_kernel, getopts, [node_of(B), [nodelay]])),
    ok = call(A, net_kernel, setopts, [new, [{nodelay, true}]]),
    talk(A, B).

statistics(Config) ->
    [A, B] = [alone(Config), other(Config)],
    true = connects(A, B),
    Before = node_info(A, B),
    ?assertEqual({up, normal}, {maps:get(state, Before), maps:get(type, Before)}),
    [talk(A, B) || _ <- lists:seq(1, 3)],
    After = node_info(A, B),
    [?assert(maps:get(Key, After) > maps:get(Key, Before)) || Key <- [in, out]],
    ok.

node_info(A, B) ->
    {ok, Info} = call(A, net_kernel, node_info, [node_of(B)]),
    maps:from_list(Info).

wrong_cookie_and_cookie_per_node(Config) ->
    [A, B] = [start(Name, #{cookie => Cookie}, Config) || {Name, Cookie} <- [{a, "x"}, {b, "y"}]],
    ok = call(B, weft_hostile_log, install, []),
    false = connects(A, B),
    %% On a busy machine a second attempt may begin before the first has ended.
    told(B, wrong_cookie, 2),
    false = connects(B, A),
    true = call(A, erlang, set_cookie, [node_of(B), y]),
    true = connects(B, A),
    talk(A, B),
    true = call(A, erlang, disconnect_node, [node_of(B)]),
    weft_test_nodes:until(fun() -> not is_connected(B, A) end),
    true = connects(A, B).

%% net_kernel:start/1 and stop/0 in a node that was started without a name.
started_at_run_time(Config) ->
    A = alone(Config),
    Late = start_named(none, #{}, Config),
    ?assertEqual(nonode@nohost, node_of(Late)),
    [begin
         Name = unique(late),
         {ok, _} = call(Late, net_kernel, start, [[Name, shortnames]]),
         true = call(Late, erlang, set_cookie, [weft_test]),
         Node = Late#{node := call(Late, erlang, node, [])},
         ?assertEqual(atom_to_list(Name), short_name(Node)),
         true = connects(Node, A),
         talk(Node, A),
         talk(A, Node),
         ok = call(Late, net_kernel, stop, []),
         weft_test_nodes:until(fun() -> not is_connected(A, Node) end),
         ?assertEqual(undefined, call(Late, erlang, whereis, [weft_links]))
     end || _ <- [1, 2]],
    ok.

node_that_does_not_listen(Config) ->
    A = alone(Config),
    Deaf = start(deaf, #{args => ["-dist_listen", "false"]}, Config),
    true = connects(Deaf, A),
    talk(Deaf, A),
    talk(A, Deaf),
    %% It cannot be dialled: it has to come back itself.
    1 = call(A, weft_resume_traffic, kill_lanes, [node_of(Deaf), rst, all]),
    weft_test_nodes:until(fun() -> has_resumed(A) end),
    talk(A, Deaf).

%% A node with a wrong option does not start, and says which one.
wrong_configuration(Config) ->
    Node = start_named(none, #{config => [{lanes, 65}]}, Config),
    ok = call(Node, weft_hostile_log, install, []),
    {error, _} = call(Node, net_kernel, start, [[unique(wrong), shortnames]]),
    Texts = [Text || {_, _, _, Text} <- call(Node, ets, tab2list, [weft_hostile_log])],
    ?assertMatch([_], [Text || Text <- Texts,
                               string:find(Text, "lanes is 65, it must be an integer from 1 to 64")
                                   =/= nomatch]).

%% --- TLS --------------------------------------------------------------------------------------

tls_with_mutual_certificates(Config) ->
    [A, B] = [alone_tls(Config), start_tls(b, #{authority => one, trusts => [one]}, Config)],
    true = connects(A, B),
    talk(A, B),
    talk(B, A),
    %% And it is TLS that is spoken on the wire: a session resumes over a new connection of it.
    ?assertNotEqual(undefined, call(A, erlang, whereis, [ssl_sup])),
    ok = call(A, weft_fault, break, [node_of(B)]),
    weft_test_nodes:until(fun() -> has_resumed(A) andalso has_resumed(B) end),
    talk(A, B).

tls_wrong_authority(Config) ->
    A = alone_tls(Config),
    Stranger = start_tls(stranger, #{authority => two, trusts => [one, two]}, Config),
    refused_by_tls(A, Stranger).

tls_without_certificate(Config) ->
    A = alone_tls(Config),
    refused_by_tls(A, without_certificate(Config)).

%% A node does not start so; but its certificate may be taken from it.
without_certificate(Config) ->
    Bare = start_tls(bare, #{authority => one, trusts => [one]}, Config),
    Options = weft_interop_certificates:options(?config(priv_dir, Config), none, [one]),
    ok = call(Bare, application, set_env, [weft, tls_options, Options]),
    Bare.

refused_by_tls(A, Stranger) ->
    ok = call(A, weft_hostile_log, install, []),
    false = connects(Stranger, A),
    %% On a busy machine a second attempt may begin before the first has ended what asked for it.
    told(A, tls, 2),
    false = connects(A, Stranger),
    ?assertEqual([], call(A, erlang, nodes, [connected])).

tls_and_tcp(Config) ->
    A = alone_tls(Config),
    ok = call(A, weft_hostile_log, install, []),
    Stock = start(stock, #{long => "127.0.0.1", carrier => stock}, Config),
    false = connects(Stock, A),
    told(A, tls),
    Other = start(other, #{long => "127.0.0.1"}, Config),
    false = connects(Other, A),
    false = connects(A, Other).

start_tls(Name, Certificates, Config) ->
    start_tls_named(unique(Name), Certificates, Config).

start_tls_named(Name, #{authority := Authority, trusts := Trusted}, Config) ->
    Dir = ?config(priv_dir, Config),
    Options = weft_interop_certificates:options(Dir, Authority, Trusted),
    File = filename:join(Dir, atom_to_list(Name)),
    Env = [{weft, [{transport, tls}, {tls_options, Options}, {faults, true}]}],
    ok = file:write_file(File ++ ".config", io_lib:format("~p.~n", [Env])),
    start_named(Name, #{long => "127.0.0.1", args => ["-config", File]}, Config).

%% --- steps ------------------------------------------------------------------------------------

%% Nodes of many cases, on which nothing is left of the one before.
alone(Config) -> lasting(weft_alone, #{}, Config).

other(Config) -> lasting(weft_other, #{}, Config).

stock(Config) -> lasting(stock_alone, #{carrier => stock}, Config).

lasting(Name, Options, Config) ->
    alone_as(weft_test_nodes:node_name(Name), fun() -> start_named(Name, Options, Config) end).

alone_tls(Config) ->
    alone_as('tls_alone@127.0.0.1',
             fun() -> start_tls_named(tls_alone, #{authority => one, trusts => [one]}, Config) end).

alone_as(Name, Start) ->
    Node = weft_test_nodes:lasting(Name, Start),
    weft_test_nodes:until(fun() ->
                                  _ = [call(Node, erlang, disconnect_node, [Other])
                                       || Other <- call(Node, erlang, nodes, [connected])],
                                  call(Node, erlang, nodes, [connected]) =:= []
                                      andalso has_no_session(Node)
                          end),
    Node.

has_no_session(Node) ->
    call(Node, erlang, whereis, [weft_links]) =:= undefined
        orelse call(Node, weft_sessions, list, []) =:= [].

start(Name, Options, Config) ->
    start_named(unique(Name), Options, Config).

start_named(Name, Options, Config) ->
    weft_test_nodes:start(Name, Options, ?config(place, Config)).

unique(Name) ->
    list_to_atom(atom_to_list(Name) ++ integer_to_list(erlang:unique_integer([positive]))).

node_of(#{node := Node}) -> Node.

name(#{node := Node}) -> atom_to_list(Node).

short_name(Node) ->
    hd(string:split(name(Node), "@")).

connects(A, #{node := Node}) ->
    call(A, net_kernel, connect_node, [Node]).

is_connected(A, #{node := Node}) ->
    lists:member(Node, call(A, erlang, nodes, [connected])).

%% Calls, messages, links and monitors between two nodes, and a large message.
talk(Here, There) ->
    Node = node_of(There),
    ?assertEqual(Node, call(Here, erpc, call, [Node, erlang, node, []])),
    Big = binary:copy(<<"weft">>, 100000),
    ?assertEqual(Big, call(Here, erpc, call, [Node, binary, copy, [Big, 1]])),
    ?assertEqual({killed, killed}, call(Here, weft_interop_talk, link_and_monitor, [Node])).

told(Node, Reason) ->
    told(Node, Reason, 1).

%% One event for each connection, which gives the reason. A connection is known by the port that it
%% came from. (OTP's ssl has notices of its own.)
told(Node, Reason, ConnectionsMax) ->
    Warnings = fun() -> [Event || {_, warning, _, _} = Event
                                      <- call(Node, ets, tab2list, [weft_hostile_log])] end,
    weft_test_nodes:until(fun() -> Warnings() =/= [] end),
    Events = Warnings(),
    ?assert(length(Events) =< ConnectionsMax, Events),
    From = [Peername || {_, _, #{from := Peername}, _} <- Events],
    ?assertEqual(lists:usort(From), lists:sort(From)),
    [begin
         ?assertMatch(#{what := connection_refused}, Report),
         #{reason := Actual} = Report,
         ?assertEqual(Reason, case Actual of {R, _} -> R; R -> R end)
     end || {_, _, Report, _} <- Events],
    ok.
