%% SPDX-License-Identifier: Apache-2.0
%% @doc Metrics of real nodes, as a scraper gets them: over one lane and several, over a circuit,
%% and beside stock nodes; with FULL=1 over TLS, too.
%%
%% Most cases share nodes: a chain, or a pair that a third node may join. Each leaves them as they
%% were. Those that do not are the last ones; after one that failed there are new nodes.
-module(weft_ops_metrics_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, shared/2, call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([one_lane/1, four_lanes/1, tls/1, tls_and_four_lanes/1, a_circuit/1, a_stock_node/1,
         boards_and_alerts_ask_for_what_is_there/1, former_collector_and_a_circuit/1,
         former_collector_and_four_lanes/1,
         what_was_sent_was_received/1, promtool_finds_nothing/1, many_peers_are_left_out/1,
         a_session_that_does_not_answer/1, a_gatherer_that_is_killed_comes_back/1,
         chosen_families_of_distribution/1, many_scrapers/1, refused_requests/1,
         foreign_names_are_refused/1,
         the_former_collector_comes_back/1, a_wrong_configuration_is_told/1]).
%% On the nodes.
-export([keep/0, own_sockets/1, tls_sockets/0, former/0]).

-define(MESSAGES, 2000).
-define(TICK_BYTES, 5).
-define(OF_CIRCUITS, ["recv_bytes", "recv_cnt", "send_bytes", "send_cnt"]).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    of_chain() ++ [Case || Case <- [tls, tls_and_four_lanes], os:getenv("FULL") =/= false]
        ++ [a_stock_node] ++ of_pair().

of_chain() ->
    [one_lane, promtool_finds_nothing, boards_and_alerts_ask_for_what_is_there,
     former_collector_and_a_circuit, a_circuit].

of_pair() ->
    [four_lanes, former_collector_and_four_lanes, what_was_sent_was_received,
     a_gatherer_that_is_killed_comes_back,
     chosen_families_of_distribution, many_scrapers, refused_requests, foreign_names_are_refused,
     the_former_collector_comes_back, a_wrong_configuration_is_told, many_peers_are_left_out,
     a_session_that_does_not_answer].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(inets),
    Dir = ?config(priv_dir, Config),
    Tls = [{weft, [{transport, tls},
                   {tls_options, weft_interop_certificates:options(Dir, ours, [ours])}]}],
    File = filename:join(Dir, "tls.config"),
    ok = file:write_file(File, io_lib:format("~0p.~n", [Tls])),
    weft_test_nodes:begin_suite([{tls_config, File} | Config]).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

init_per_testcase(Case, Config) ->
    case {lists:member(Case, of_chain()), lists:member(Case, of_pair())} of
        {true, _} -> [{nodes, shared([a, g, b], fun() -> chain(Config) end)} | Config];
        {_, true} -> [{nodes, shared([p, q], fun() -> pair(Config) end)} | Config];
        _ -> weft_test_nodes:stop_all(), Config
    end.

end_per_testcase(_Case, Config) ->
    ?config(tc_status, Config) =:= ok orelse weft_test_nodes:stop_all(),
    ok.

%% --- a link -------------------------------------------------------------------------------------

one_lane(Config) ->
    [A, G, _] = ?config(nodes, Config),
    lanes(1, sockets_of_link(A, G), A, G).

four_lanes(Config) ->
    [P, Q] = ?config(nodes, Config),
    lanes(4, sockets_of_link(P, Q), P, Q).

%% All sockets of the link belong to its process.
sockets_of_link(A, B) ->
    fun() -> call(A, ?MODULE, own_sockets, [name(B)]) end.

lanes(Count, Sockets, A, B) ->
    until(fun() -> value("weft_lanes", [], A) =:= Count end),
    ?assertEqual(25, map_size(dist(B, A))),
    [until(fun() -> maps:get(Family, dist(B, A)) =:= sum(Key, Sockets()) end)
     || {Family, Key} <- [{"recv_bytes", recv_oct}, {"send_bytes", send_oct},
                          {"recv_cnt", recv_cnt}, {"send_cnt", send_cnt}]],
    ?assertEqual(Count, length(Sockets())),
    ?assertMatch(#{"node_state" := 3, "proc_status" := Status} when Status >= 1, dist(B, A)).

sum(Key, Stats) -> lists:sum([proplists:get_value(Key, Stat) || Stat <- Stats]).

tls(Config) -> over_tls(1, Config).

tls_and_four_lanes(Config) -> over_tls(4, Config).

%% What a socket of TLS counts is encrypted, and it belongs to a process of ssl. Both nodes use TLS
%% for nothing else.
over_tls(Count, Config) ->
    [A, B] = [node(Name, #{long => "127.0.0.1", config => [{lanes, Count}],
                           args => ["-config", ?config(tls_config, Config)]}, Config)
              || Name <- [a, b]],
    connect(A, B),
    lanes(Count, fun() -> call(A, ?MODULE, tls_sockets, []) end, A, B),
    Dist = dist(B, A),
    [?assert(maps:get(Family, Dist) > 0)
     || Family <- ["recv_bytes", "send_bytes", "port_memory_bytes"]].

%% --- a circuit ----------------------------------------------------------------------------------

%% The link to the gateway is not taken for that to the node behind it.
a_circuit(Config) ->
    [A, G, B] = Nodes = ?config(nodes, Config),
    talk(A, B),
    until(fun() -> value("weft_circuits", [], A) =:= 1 end),
    until(fun() -> value("weft_relayed_circuits", [], G) =:= 1 end),
    until(fun() -> value("weft_relayed_packets_total", [], G) > ?MESSAGES div 100 end),
    [?assertEqual(0, value("weft_unreachable_members", [], N)) || N <- Nodes],
    Dist = dist(B, A),
    ?assertEqual(lists:sort(["node_state", "node_queue_size_bytes" | ?OF_CIRCUITS]),
                 [Name || Name <- lists:sort(maps:keys(Dist)), not lists:prefix("proc_", Name)]),
    ?assertEqual(25, map_size(dist(G, A))),
    until(fun() -> counted(A, B) =:= of_session(A, B) end),
    ?assertEqual([[{next_hop, atom_to_list(name(G))}, {peer, atom_to_list(name(B))}]],
                 [Labels || {"weft_detailed_circuit_info", Labels}
                                <- maps:keys(scrape(A, "/metrics/detailed?family=circuit"))]),
    ok = weft_test_nodes:kill(G),
    until(fun() -> value("weft_unreachable_members", [], A) =:= 2 end).

counted(A, B) -> [maps:get(Name, dist(B, A)) || Name <- ?OF_CIRCUITS].

of_session(A, B) ->
    #{sessions := Sessions} = call(A, weft, status, []),
    hd([[In, PacketsIn, Out, PacketsOut]
        || #{node := Node, bytes_in := In, packets_in := PacketsIn, bytes_out := Out,
             packets_out := PacketsOut} <- Sessions, Node =:= name(B)]).

%% --- stock --------------------------------------------------------------------------------------

%% The same families as from the collector of prometheus.erl, and the same values where nothing
%% moves.
a_stock_node(Config) ->
    A = node(a, #{}, Config),
    Args = ["-pa", weft_test_nodes:ebin(weft) | weft_ops_test_args:args([?MODULE])],
    B = weft_test_nodes:start(b, #{carrier => stock, args => Args}, ?config(place, Config)),
    connect(A, B),
    ok = call(A, ?MODULE, former, []),
    Former = fun() -> text(call(A, prometheus_text_format, format, [former])) end,
    Sizes = ["recv_bytes", "recv_cnt", "send_bytes", "send_cnt", "node_state"],
    Of = fun(Dist) -> maps:with(Sizes, Dist) end,
    until(fun() -> Of(dist(B, A)) =:= Of(dist_of(B, Former())) end),
    ?assertEqual(25, map_size(dist(B, A))),
    ?assertEqual(maps:keys(dist_of(B, Former())), maps:keys(dist(B, A))),
    ?assertEqual(0, value("weft_sessions", [{state, "up"}], A)),
    %% Without the carrier there are no links, and all peers are stock.
    begin_metrics([], B),
    ?assertEqual(25, map_size(dist(A, B))),
    ?assertEqual(0, value("weft_lanes", [], B)).

%% --- the collector of prometheus.erl, where weft_ops does not run -------------------------------

%% It finds the one socket of the gateway, and takes it for nobody else's. The kernel keeps the
%% address of the lane over which a node was connected. When both nodes had dialled, this lane may
%% have been replaced since, so they are connected anew.
former_collector_and_a_circuit(Config) ->
    [A, G, B] = ?config(nodes, Config),
    true = call(A, erlang, disconnect_node, [name(G)]),
    connect(A, G),
    talk(A, B),
    without_weft_ops(A, fun(Former) ->
        until(fun() ->
                  [Stat] = call(A, ?MODULE, own_sockets, [name(G)]),
                  Is = dist_of(G, Former()),
                  [Stat] =:= call(A, ?MODULE, own_sockets, [name(G)]) andalso
                      maps:with(?OF_CIRCUITS, Is) =:= of_socket(Stat)
              end),
        ?assertMatch(#{"node_state" := 3}, dist_of(B, Former())),
        ?assertEqual([], of_sockets(dist_of(B, Former())))
    end).

%% It can not tell the lanes apart, and says nothing of them; what it says of others stays.
former_collector_and_four_lanes(Config) ->
    [P, Q] = ?config(nodes, Config),
    until(fun() -> length(call(P, ?MODULE, own_sockets, [name(Q)])) =:= 4 end),
    without_weft_ops(P, fun(Former) ->
        ?assertMatch(#{"node_state" := 3}, dist_of(Q, Former())),
        ?assertEqual([], of_sockets(dist_of(Q, Former())))
    end).

of_socket(Stat) ->
    maps:from_list([{Family, proplists:get_value(Key, Stat)}
                    || {Family, Key} <- [{"recv_bytes", recv_oct}, {"recv_cnt", recv_cnt},
                                         {"send_bytes", send_oct}, {"send_cnt", send_cnt}]]).

of_sockets(Dist) ->
    [Family || Family <- maps:keys(Dist), Part <- ["recv_", "send_", "port_"],
               lists:prefix(Part, Family)].

without_weft_ops(Node, Fun) ->
    ok = call(Node, application, stop, [weft_ops]),
    ok = call(Node, ?MODULE, former, []),
    Fun(fun() -> text(call(Node, prometheus_text_format, format, [former])) end),
    begin_metrics([], Node).

%% --- counters -----------------------------------------------------------------------------------

%% When both stand still. A tick that asks for an acknowledgement, or tries a new lane, is counted
%% by who reads it only.
what_was_sent_was_received(Config) ->
    [A, B] = ?config(nodes, Config),
    talk(A, B),
    until(fun() -> value("weft_stream_sent_bytes_total", [], A) > ?MESSAGES * 100 end),
    [until(fun() ->
                   Here = scrape(From),
                   There = scrape(To),
                   Ticks = total("stream_packets_received", There)
                       - total("stream_packets_sent", Here),
                   Ticks >= 0 andalso
                       total("stream_received_bytes", There)
                           =:= total("stream_sent_bytes", Here) + Ticks * ?TICK_BYTES
           end) || {From, To} <- [{A, B}, {B, A}]],
    until(fun() -> value("weft_session_queued_bytes", [], A) =:= 0 end).

total(Name, Values) -> maps:get({"weft_" ++ Name ++ "_total", []}, Values).

%% In a scrape of a node that has all of it but the stores, of which weft_ops_stores_SUITE compares
%% all families. A board that joins metrics of others shows nothing where these are not.
boards_and_alerts_ask_for_what_is_there(Config) ->
    [A | _] = ?config(nodes, Config),
    Asked = lists:usort([Name || File <- weft_ops_promql:shipped(),
                                 Expr <- weft_ops_promql:exprs(File),
                                 Name <- weft_ops_promql:metrics(Expr)]),
    ?assert(length(Asked) > 30),
    Own = [Name || Name <- Asked -- [<<"up">>],
                   re:run(Name, "^weft_(ring|kv|crdt)_") =:= nomatch],
    with_settings([{webhook, #{url => "http://127.0.0.1:9/"}}], A, fun() ->
        until(fun() -> Own -- [list_to_binary(Name) || {Name, _} <- maps:keys(scrape(A))] =:= []
              end)
    end).

promtool_finds_nothing(Config) ->
    case os:find_executable("promtool") of
        false -> weft_test_missing:skip("promtool");
        Promtool -> promtool_finds_nothing(Promtool, Config)
    end.

%% Of the families of weft; those of prometheus.erl have names that it advises against.
promtool_finds_nothing(Promtool, Config) ->
    [A, G, _] = ?config(nodes, Config),
    ok = call(A, weft, subscribe, [{room, "a \"b\"\n\\c"}]),
    [begin
         Text = [call(N, prometheus_text_format, format, [Registry]) || Registry <- Registries],
         File = filename:join(?config(priv_dir, Config), lists:concat([hd(Registries), ".prom"])),
         ok = file:write_file(File, Text),
         ?assertEqual({N, Registries, ""},
                      {N, Registries, os:cmd(Promtool ++ " check metrics < " ++ File ++ " 2>&1")})
     end || N <- [A, G],
            ok <- [call(N, prometheus_registry, register_collectors,
                        [own, [weft_ops_collector, weft_ops_dist_collector]])],
            %% The last one has names of the first one.
            Registries <- [[own, weft_ops_link, weft_ops_lane, weft_ops_session, weft_ops_circuit,
                            weft_ops_relay, weft_ops_channel, weft_ops_group], [weft_ops_dist]]].

many_peers_are_left_out(Config) ->
    [A, B] = ?config(nodes, Config),
    with_settings([{dist_peers_max, 1}], A, fun() ->
        until(fun() -> map_size(dist(B, A)) =:= 25 end),
        C = third(A, Config),
        until(fun() -> dist(B, A) =:= #{} end),
        ?assertEqual(2, value("weft_dist_peers_left_out", [], A)),
        [?assertEqual(25, map_size(dist_of(N, scrape(A, "/metrics/detailed?family=dist"))))
         || N <- [B, C]]
    end).

%% The scrape ends in time, and only what that session would have said is missing.
a_session_that_does_not_answer(Config) ->
    [A, B] = ?config(nodes, Config),
    C = third(A, Config),
    with_settings([{timeout_ms, 4000}], A, fun() ->
        until(fun() -> sessions(A) =:= {2, 0} end),
        [Session] = [Pid || #{node := N, pid := Pid} <- maps:get(sessions,
                                                                 call(A, weft, status, [])),
                            N =:= name(B)],
        ok = call(A, sys, suspend, [Session]),
        until(fun() -> sessions(A) =:= {1, 1} end),
        what_a_session_does_not_say(A, B, C),
        ok = call(A, sys, resume, [Session]),
        until(fun() -> sessions(A) =:= {2, 0} end)
    end),
    weft_test_nodes:kill(C).

what_a_session_does_not_say(A, B, C) ->
    Values = scrape(A),
    [?assert(is_map_key({Name, []}, Values))
     || Name <- ["weft_stream_sent_bytes_total", "weft_lanes", "weft_session_reroutes_total"]],
    ?assertMatch(#{"node_state" := 3, "proc_status" := _}, dist_of(B, Values)),
    ?assertNot(is_map_key("recv_bytes", dist_of(B, Values))),
    ?assertEqual(25, map_size(dist_of(C, Values))),
    ?assert(value("weft_scrape_errors_total", [{source, "session"}], A) >= 1),
    ?assertEqual(0, value("weft_scrape_errors_total", [{source, "status"}], A)),
    Unknown = [{path, "none"}, {peer, atom_to_list(name(B))}, {state, "unknown"}],
    ?assertMatch(#{{"weft_detailed_session_state", Unknown} := 1},
                 scrape(A, "/metrics/detailed?family=session")).

%% Those that are up, and those that are not known.
sessions(Node) ->
    Values = scrape(Node),
    list_to_tuple([maps:get({"weft_sessions", [{state, State}]}, Values)
                   || State <- ["up", "unknown"]]).

a_gatherer_that_is_killed_comes_back(Config) ->
    [A, _] = ?config(nodes, Config),
    Gatherer = call(A, erlang, whereis, [weft_ops_snapshot]),
    true = call(A, erlang, exit, [Gatherer, kill]),
    until(fun() -> is_map_key({"weft_lanes", []}, scrape(A)) end),
    ?assertNotEqual(Gatherer, call(A, erlang, whereis, [weft_ops_snapshot])).

%% As in the collector that it replaces.
chosen_families_of_distribution(Config) ->
    [A, B] = ?config(nodes, Config),
    ok = call(A, application, set_env, [prometheus, vm_dist_collector_metrics,
                                        [recv_bytes, node_state]]),
    until(fun() -> lists:sort(maps:keys(dist(B, A))) =:= ["node_state", "recv_bytes"] end),
    ok = call(A, application, unset_env, [prometheus, vm_dist_collector_metrics]).

%% --- HTTP, start, stop --------------------------------------------------------------------------

%% More than there may be connections at once.
many_scrapers(Config) ->
    [A, _] = ?config(nodes, Config),
    Url = url(A, "/metrics"),
    Self = self(),
    Request = {Url, [{"connection", "close"}]},
    Scrapers = [spawn_link(fun() -> Self ! {self(), httpc:request(get, Request, [], [])} end)
                || _ <- lists:seq(1, 40)],
    [receive {Scraper, Answer} -> ?assertMatch({ok, {{_, 200, _}, _, _}}, Answer) end
     || Scraper <- Scrapers].

refused_requests(Config) ->
    [A, _] = ?config(nodes, Config),
    Names = "link, lane, session, circuit, relay, channel, group, dist",
    [?assertMatch({Path, Status, {match, _}}, {Path, Status, re:run(Body, Expected)})
     || {Path, Want, Expected} <- [{"/", 404, "/metrics/detailed"},
                                   {"/metrics/x", 404, "/metrics"},
                                   {"/metrics/detailed", 400, Names},
                                   {"/metrics/detailed?family=links", 400, Names},
                                   {"/metrics/detailed?family=link&family=x", 400, Names},
                                   {"/metrics", 200, "weft_build_info"}],
        {Status, Body} <- [get(A, Path)], Status =:= Want orelse error({Path, Status})],
    {ok, {{_, 405, _}, Headers, _}} =
        httpc:request(post, {url(A, "/metrics"), [], "text/plain", ""}, [], []),
    ?assertEqual("GET", proplists:get_value("allow", Headers)).

%% A page whose name was made to lead here sends that name.
foreign_names_are_refused(Config) ->
    [A, _] = ?config(nodes, Config),
    Status = fun(Host, Path) ->
                     Request = {url(A, Path), [{"host", Host}]},
                     {ok, {{_, Code, _}, _, _}} = httpc:request(get, Request, [], []),
                     Code
             end,
    {ok, Own} = inet:gethostname(),
    with_settings([{http, #{port => 0, hosts => ["H1.example.org"]}}], A, fun() ->
        [?assertEqual({Host, Path, Want}, {Host, Path, Status(Host, Path)})
         || {Host, Want} <- [{"evil.example:9469", 403}, {"localhost.evil.example", 403},
                             {"127.0.0.1.evil.example", 403}, {"", 403}, {"localhost:9469", 200},
                             {"[::1]:9469", 200}, {"10.1.2.3", 200},
                             {string:uppercase(Own), 200}, {"h1.example.org:9469", 200}],
            Path <- ["/metrics", "/metrics/detailed?family=link"]]
    end).

the_former_collector_comes_back(Config) ->
    [A, _] = ?config(nodes, Config),
    Registered = fun(Collector) ->
                         call(A, prometheus_registry, collector_registeredp, [Collector])
                 end,
    All = [weft_ops_collector, weft_ops_dist_collector, prometheus_vm_dist_collector],
    ?assertEqual([true, true, false], [Registered(Collector) || Collector <- All]),
    Url = url(A, "/metrics"),
    ok = call(A, application, stop, [weft_ops]),
    ?assertEqual([false, false, true], [Registered(Collector) || Collector <- All]),
    ?assertMatch({error, _}, httpc:request(Url)),
    {ok, _} = call(A, application, ensure_all_started, [weft_ops]),
    ?assertEqual([true, true, false], [Registered(Collector) || Collector <- All]),
    %% When the application ends by itself.
    true = call(A, erlang, exit, [call(A, erlang, whereis, [weft_ops_sup]), kill]),
    until(fun() -> [Registered(Collector) || Collector <- All] =:= [false, false, true] end),
    %% It counts as one that runs for a moment longer.
    until(fun() ->
              not lists:keymember(weft_ops, 1, call(A, application, which_applications, []))
          end),
    begin_metrics([], A).

a_wrong_configuration_is_told(Config) ->
    [A, _] = ?config(nodes, Config),
    ok = call(A, application, stop, [weft_ops]),
    {ok, Taken} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Taken),
    [begin
         ok = call(A, application, set_env, [weft_ops, http, Http]),
         {error, {weft_ops, {Why, _}}} = call(A, application, ensure_all_started, [weft_ops]),
         ?assertMatch({match, _}, re:run(lists:flatten(io_lib:format("~tp", [Why])), Expected)),
         ?assertEqual(undefined, call(A, erlang, whereis, [weft_ops_sup]))
     end || {Http, Expected} <- [{#{port => Port}, "address already in use"},
                                 {#{prot => Port}, "unknown key prot"}]],
    begin_metrics([], A).

%% --- on the nodes -------------------------------------------------------------------------------

%% @doc Receives for ever.
keep() -> receive _ -> keep() end.

%% @doc What the sockets of the link to a node have counted.
own_sockets(Node) ->
    [Link] = [Pid || {N, Pid} <- weft_links:list(), N =:= Node],
    [Stat || Port <- erlang:ports(), {connected, Link} =:= erlang:port_info(Port, connected),
             {ok, Stat} <- [inet:getstat(Port)]].

%% @doc What the sockets of processes of ssl have counted.
tls_sockets() ->
    [Stat || Port <- erlang:ports(), {connected, Owner} <- [erlang:port_info(Port, connected)],
             application:get_application(Owner) =:= {ok, ssl},
             {ok, Stat} <- [inet:getstat(Port)]].

%% @doc Puts the collector of prometheus.erl in a registry of its own.
former() -> prometheus_registry:register_collector(former, prometheus_vm_dist_collector).

%% --- steps --------------------------------------------------------------------------------------

pair(Config) ->
    [A, B] = [node(Name, #{config => [{lanes, 4}]}, Config) || Name <- [p, q]],
    connect(A, B),
    [A, B].

%% Beside the pair, and connected to its first node.
third(A, Config) ->
    case [Node || Node <- weft_test_nodes:running(), name(Node) =:= node_name(r)] of
        [C] -> C;
        [] ->
            C = node(r, #{config => [{lanes, 4}]}, Config),
            connect(A, C),
            C
    end.

%% While the application of the node has these settings, too.
with_settings(Env, Node, Fun) ->
    ok = call(Node, application, stop, [weft_ops]),
    begin_metrics(Env, Node),
    Result = Fun(),
    ok = call(Node, application, stop, [weft_ops]),
    [ok = call(Node, application, unset_env, [weft_ops, Key]) || {Key, _} <- Env],
    begin_metrics([], Node),
    Result.

chain(Config) ->
    Names = [a, g, b],
    [NodeA, NodeG, NodeB] = [node_name(Name) || Name <- Names],
    Shape = {static, #{links => [{NodeA, NodeG}, {NodeG, NodeB}]}},
    [A, _, B] = Nodes =
        [node(Name, #{config => [{topology, Shape}, {channels, #{default => #{}}}],
                      args => ["-connect_all", "false", "-kernel",
                               "prevent_overlapping_partitions", "false"]}, Config)
         || Name <- Names],
    connect(A, B),
    Nodes.

node(Name, Options, Config) ->
    Args = maps:get(args, Options, []) ++ ops_args(Name),
    Node = weft_test_nodes:start(Name, Options#{args => Args}, ?config(place, Config)),
    begin_metrics([], Node),
    Node.

%% One finds its collectors as it does unless it is told.
ops_args(g) -> weft_ops_test_args:paths([?MODULE]);
ops_args(_) -> weft_ops_test_args:args([?MODULE]).

begin_metrics(Env, Node) ->
    [ok = call(Node, application, set_env, [weft_ops, Key, Value])
     || {Key, Value} <- [{http, #{port => 0}} | Env]],
    {ok, _} = call(Node, application, ensure_all_started, [weft_ops]).

%% What was gathered is given for a second, so to look more often is in vain.
until(Condition) ->
    weft_test_nodes:until(fun() ->
                              Condition() orelse receive after 200 -> false end % pacing: of looks
                          end).

connect(A, B) ->
    until(fun() -> call(A, net_kernel, connect_node, [name(B)]) end),
    until(fun() -> lists:member(name(A), call(B, erlang, nodes, [connected])) end).

talk(A, B) ->
    Keeper = call(B, erlang, spawn, [?MODULE, keep, []]),
    [call(A, erlang, send, [Keeper, binary:copy(<<N>>, 100)]) || N <- lists:seq(1, ?MESSAGES)],
    ok.

%% --- scrapes ------------------------------------------------------------------------------------

url(Node, Path) ->
    lists:concat(["http://127.0.0.1:", call(Node, weft_ops_http, port, []), Path]).

get(Node, Path) ->
    {ok, {{_, Status, _}, _, Body}} = httpc:request(url(Node, Path)),
    {Status, Body}.

value(Name, Labels, Node) ->
    maps:get({Name, Labels}, scrape(Node), missing).

scrape(Node) -> scrape(Node, "/metrics").

scrape(Node, Path) ->
    {200, Body} = get(Node, Path),
    text(Body).

text(Body) ->
    {match, Lines} = re:run(Body, "^(\\w+)(?:\\{(.*)\\})? (\\S+)$",
                            [global, multiline, {capture, all_but_first, list}]),
    maps:from_list([{{Name, labels(Labels)}, number(Value)} || [Name, Labels, Value] <- Lines]).

labels(Text) ->
    lists:sort([{list_to_atom(Name), string:trim(Value, both, "\"")}
                || Pair <- string:lexemes(Text, ","), [Name, Value] <- [string:split(Pair, "=")]]).

number(Text) ->
    try list_to_integer(Text)
    catch error:badarg -> list_to_float(Text)
    end.

%% The families of distribution about a node.
dist(Peer, Node) -> dist_of(Peer, scrape(Node)).

dist_of(Peer, Values) ->
    maps:from_list([{Family, Value} || {{"erlang_vm_dist_" ++ Family, Labels}, Value}
                                           <- maps:to_list(Values),
                                       {peer, Name} <- Labels, Name =:= atom_to_list(name(Peer))]).
