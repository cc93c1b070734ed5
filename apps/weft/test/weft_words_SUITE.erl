%% SPDX-License-Identifier: Apache-2.0
%% @doc What a user reads is true, and says what to do. Each case is on the text itself.
-module(weft_words_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [call/4, name/1, until/1, until/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([tls_without_certificates/1, port_in_use/1, lanes_of_a_first_connection/1,
         outdated_lane/1, no_more_unacknowledged_than_sent/1, tools_are_no_candidates/1,
         epmd_names_this_node/1, file_with_a_bad_byte/1]).
-export([calling/0]).

-define(LOG, weft_hostile_log).
%% The log of discovery is patient for ten seconds.
-define(TOLD_MS, 60000).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [tls_without_certificates, port_in_use, lanes_of_a_first_connection, outdated_lane,
     no_more_unacknowledged_than_sent, tools_are_no_candidates, file_with_a_bad_byte,
     epmd_names_this_node].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- nodes that do not start ------------------------------------------------------------------

tls_without_certificates(_Config) ->
    {Status, Text} = boot(["-weft", "transport", "tls"]),
    ?assertNotEqual(0, Status),
    assert_has(["transport is tls", "has no certificate of this node", "{certfile, File}"], Text).

port_in_use(_Config) ->
    {ok, Socket} = gen_tcp:listen(0, [{ip, {0, 0, 0, 0}}]),
    {ok, Port} = inet:port(Socket),
    {Status, Text} = boot(["-weft", "ports", term(#{default => Port})]),
    ok = gen_tcp:close(Socket),
    ?assertNotEqual(0, Status),
    assert_has(["can not listen on port " ++ integer_to_list(Port), "ports in {weft, tuning}"],
               Text).

%% A node that can not boot, and what it prints.
boot(Args) ->
    Port = open_port({spawn_executable, filename:join([code:root_dir(), "bin", "erl"])},
                     [{args, ["-noinput", "-start_epmd", "false", "-epmd_module", "weft_epmd",
                              "-pa", weft_test_nodes:ebin(weft_dist), "-proto_dist", "weft",
                              "-name", "words_boot@127.0.0.1"] ++ Args
                           ++ ["-s", "init", "stop"]},
                      {env, [{"ERL_CRASH_DUMP_SECONDS", "0"}]},
                      exit_status, stderr_to_stdout, binary]),
    printed(Port, []).

printed(Port, Text) ->
    receive
        {Port, {data, Data}} -> printed(Port, [Text, Data]);
        {Port, {exit_status, Status}} -> {Status, unicode:characters_to_list(Text)}
    after 60000 -> ct:fail({does_not_end, Text})
    end.

%% --- lanes ------------------------------------------------------------------------------------

%% Further lanes are dialled when the other side has the link up: nothing is refused.
lanes_of_a_first_connection(Config) ->
    Nodes = two(Config),
    [ok = call(Node, ?LOG, install, []) || Node <- Nodes],
    Pairs = [{From, To} || From <- Nodes, To <- Nodes, name(From) < name(To)],
    [true = call(From, net_kernel, connect_node, [name(To)]) || {From, To} <- Pairs],
    [until(fun() -> lanes(From, To) =:= 4 andalso lanes(To, From) =:= 4 end)
     || {From, To} <- Pairs],
    ?assertEqual([], [Text || Node <- Nodes, {warning, #{}, Text} <- call(Node, ?LOG, take, []),
                              string:find(Text, "refused") =/= nomatch]).

lanes(Node, Peer) ->
    lists:sum([Lanes || #{node := N, lanes := Lanes}
                            <- maps:get(links, call(Node, weft, status, [])), N =:= name(Peer)]).

%% @private Called at node A.
calling() -> ok.

%% A lane for what the link was before it broke. The cookies are the same, and nobody says else.
outdated_lane(Config) ->
    [A, B] = Nodes = pair(Config),
    [ok = call(Node, ?LOG, install, []) || Node <- Nodes],
    Outdated = {{lane, <<>>, 1}, <<0:256>>},
    {error, Reason} = call(A, weft_dialer, dial, [name(B), Outdated, undefined,
                                                  fun ?MODULE:calling/0, 20000]),
    Text = unicode:characters_to_list(call(A, weft_refusals, explain, [Reason])),
    assert_has(["replaced in the meantime"], Text),
    ?assertEqual(nomatch, string:find(Text, "cookie")),
    ?assertEqual([], [T || Node <- Nodes, {warning, _, T} <- call(Node, ?LOG, take, [])]).

%% --- sessions ---------------------------------------------------------------------------------

no_more_unacknowledged_than_sent(Config) ->
    [A, B] = pair(Config),
    [B1 = call(A, erpc, call, [B1, erlang, node, []]) || B1 <- lists:duplicate(20, name(B))],
    #{text := Lines} = call(A, weft_status, why, [name(B)]),
    Text = lists:flatten(lists:join($\n, Lines)),
    {match, [Unacked, Sent]} =
        re:run(Text, "Queue: ([0-9]+) bytes not yet acknowledged.* So far ([0-9]+) bytes out",
               [{capture, all_but_first, list}]),
    ?assert(list_to_integer(Unacked) =< list_to_integer(Sent)).

%% --- who is a node of the cluster -------------------------------------------------------------

%% Hidden nodes that only look, as the command does: a stock node, or over TLS one of weft.
tools_are_no_candidates(Config) ->
    [A, _] = Nodes = pair(Config),
    Tools = [weft_test_nodes:start(Name, #{carrier => Carrier, args => ["-hidden"]},
                                   ?config(place, Config))
             || {Name, Carrier} <- [{place_stock, stock}, {place_weft, weft}]],
    [true = call(Tool, net_kernel, connect_node, [name(A)]) || Tool <- Tools],
    until(fun() -> [name(Tool) || Tool <- Tools] -- call(A, erlang, nodes, [connected]) =:= [] end),
    Names = lists:sort([name(Node) || Node <- Nodes]),
    until(fun() ->
                  #{nodes := Chosen, silent := Late} = call(A, weft_place, choose_nodes, [[]]),
                  ?assertEqual([], (Chosen ++ Late) -- Names),
                  Chosen =:= Names
          end),
    until(fun() ->
                  #{silent := Late, groups := Groups} = call(A, weft_group, suggest, [#{}]),
                  ?assertEqual([], lists:append([Late | maps:values(Groups)]) -- Names),
                  Late =:= []
          end).

%% --- discovery --------------------------------------------------------------------------------

%% Its own name on localhost is no other node, so nobody dials it.
epmd_names_this_node(Config) ->
    [_, _] = pair(Config),
    A = start(pair_own, [{discovery, [{epmd, #{hosts => ["localhost"], prefix => "pair_"}}]},
                         {topology, {full_mesh, #{}}}, {discovery_interval_ms, 200}], Config),
    {ok, _} = call(A, application, ensure_all_started, [weft]),
    until(fun() -> lists:sort(call(A, weft_discovery_poller, found, []))
                       =:= ['pair_a@localhost', 'pair_b@localhost'] end),
    ?assertNot(lists:keymember('pair_own@localhost', 1, call(A, weft_links, list, []))).

file_with_a_bad_byte(Config) ->
    File = filename:join(?config(priv_dir, Config), "nodes"),
    [_, B] = pair(Config),
    ok = file:write_file(File, ["# nodes\n", atom_to_list(name(B)), "\nfile", 255, "_c@h\n"]),
    A = start(file_a, [{discovery, [{file, #{path => File}}]}, {topology, {full_mesh, #{}}},
                       {discovery_interval_ms, 500}], Config),
    ok = call(A, ?LOG, install, []),
    {ok, _} = call(A, application, ensure_all_started, [weft]),
    until(fun() -> call(A, weft_discovery_poller, found, []) =:= [name(B)] end),
    until(fun() -> told(call(A, ?LOG, take, [])) end, ?TOLD_MS).

told(Events) ->
    lists:any(fun({_, _, Text}) ->
                      string:find(Text, "no_node_names") =/= nomatch
                          andalso string:find(Text, "line => 3") =/= nomatch
              end, Events).

%% --- helpers ----------------------------------------------------------------------------------

%% The two of several cases. The first case is the first that connects them.
two(Config) ->
    [weft_test_nodes:lasting(weft_test_nodes:node_name(Name),
                             fun() -> start(Name, [{lanes, 4}], Config) end)
     || Name <- [pair_a, pair_b]].

%% Connected.
pair(Config) ->
    [A, B] = two(Config),
    true = call(A, net_kernel, connect_node, [name(B)]),
    [A, B].

start(Name, Weft, Config) ->
    weft_test_nodes:start(Name, #{config => Weft}, ?config(place, Config)).

assert_has(Words, Text) ->
    [?assertNotEqual({nomatch, Word, Text}, {string:find(Text, Word), Word, Text})
     || Word <- Words],
    ok.

term(Term) -> lists:flatten(io_lib:format("~0p", [Term])).
