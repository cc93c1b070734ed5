%% SPDX-License-Identifier: Apache-2.0
%% @doc A node that a workload has watched: it has agents and metrics, a browser that gets the
%% model, and somebody who scrapes again and again; afterwards it has none of them. Of a deployment
%% that is interrupted nothing stays, either.
-module(weft_watched_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([a_node_is_watched_and_then_not/1, interrupted_while_it_deploys/1]).
-export([watched_and_then_not/0]).

-define(CALL_MS, 30000).
-define(SCRAPE_MS, 20000).
-define(DEPLOY_MS, 180000).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [a_node_is_watched_and_then_not]
        ++ [interrupted_while_it_deploys || os:getenv("FULL") =/= false].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

a_node_is_watched_and_then_not(Config) ->
    weft_bench_test_cluster:with_nodes(
      weft_groups, weft_bench_cluster:shape(1, []), Config,
      fun(Nodes) ->
              Here = filename:absname(filename:dirname(code:which(?MODULE))),
              true = call(Nodes, code, add_patha, [Here]),
              ok = call(Nodes, ?MODULE, watched_and_then_not, [])
      end).

call(Nodes, Module, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, {n, 1}, Module, Function, {Arguments, ?CALL_MS}).

%% Nodes that are up, nodes that are being started, epmd, files.
interrupted_while_it_deploys(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "interrupted"),
    Deployment = filename:join([Dir, "sd_18", "deployment"]),
    Line = weft_bench_command:line(["paper", "sd_18", "--quick", "--out", Dir]),
    Port = weft_bench_command:open(["exec ", Line]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    Logs = filename:join(Deployment, "deploy/watched/host/nodes/*/log"),
    weft_test_nodes:until(fun() -> filelib:wildcard(Logs) =/= [] end, ?DEPLOY_MS),
    {ok, Terms} = file:consult(filename:join(Deployment, "watched.deploy")),
    {epmd_port, EpmdPort} = lists:keyfind(epmd_port, 1, Terms),
    [] = os:cmd(io_lib:format("kill -TERM ~b", [OsPid])),
    ?assertMatch({130, _}, weft_bench_command:collect(Port)),
    weft_test_nodes:until(fun() -> naming([Deployment, "/"]) =:= [] end, ?DEPLOY_MS),
    weft_test_nodes:until(fun() -> not filelib:is_file(Deployment) end, ?DEPLOY_MS),
    ?assertEqual({error, econnrefused}, gen_tcp:connect({127, 0, 0, 1}, EpmdPort, [])).

%% Processes of the operating system that have this on their command lines.
naming(Text) ->
    [File || File <- filelib:wildcard("/proc/[0-9]*/cmdline"),
             {ok, Words} <- [file:read_file(File)],
             binary:match(Words, unicode:characters_to_binary(Text)) =/= nomatch].

%% --- on the node --------------------------------------------------------------------------------

%% One of the scraped ports is the test's own, which so sees that the others were scraped, too.
watched_and_then_not() ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {active, false}, {packet, http_bin},
                                      {ip, {127, 0, 0, 1}}]),
    {ok, Own} = inet:port(Listen),
    Port = weft_watched_node:begin_node(),
    ok = weft_watched_node:begin_viewers([Port, Own]),
    ?assertEqual([weft_dashboard, weft_ops], watching()),
    [answer_scrape(Listen, <<"200 OK">>) || _ <- [first, again]],
    ok = weft_watched_node:end_viewers(),
    ?assertEqual([weft_ops], watching()),
    ok = weft_watched_node:begin_viewers([Port, Own]),
    without_answer_it_is_told(Listen),
    ok = application:stop(weft_dashboard),
    ok = weft_watched_node:end_node(),
    ?assertEqual([], watching()).

%% So nothing counts that was not watched to its end.
without_answer_it_is_told(Listen) ->
    Ref = monitor(process, weft_watched_node),
    answer_scrape(Listen, <<"503 Service Unavailable">>),
    receive {'DOWN', Ref, process, _, _} -> ok after ?SCRAPE_MS -> error(not_noticed) end,
    ?assertError(the_browser_has_ended, weft_watched_node:end_viewers()).

watching() ->
    [Name || Name <- [weft_dashboard, weft_ops],
             lists:keymember(Name, 1, application:which_applications())].

answer_scrape(Listen, Status) ->
    {ok, Socket} = gen_tcp:accept(Listen, ?SCRAPE_MS),
    {ok, {http_request, 'GET', {abs_path, <<"/metrics">>}, {1, 1}}} =
        gen_tcp:recv(Socket, 0, ?SCRAPE_MS),
    ok = gen_tcp:send(Socket, ["HTTP/1.1 ", Status, "\r\nconnection: close\r\n\r\n"]),
    ok = gen_tcp:close(Socket).
