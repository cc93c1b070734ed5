%% SPDX-License-Identifier: Apache-2.0
%% @doc How soon the end of a node is known: behind gateways, and of nodes that can not be dialled.
%% Sessions may be without a path for long here (?RESUME_MS), so what is known soon was told.
-module(weft_obituary_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([killed_behind_gateways_and_back/1, killed_among_random_neighbours/1,
         halted_on_a_host_that_cannot_be_found/1,
         halted_behind_gateways_without_a_port/1, silence_is_no_end/1,
         silence_of_a_host_out_of_reach_is_no_end/1,
         broken_link_without_a_port_is_no_end/1]).
-export([watch/0, downs/0]).

-define(RESUME_MS, 40000).
%% So soon on a busy machine, too; and how long nothing may happen.
-define(SOON_MS, 10000).
-define(QUIET_MS, 2000).
%% Who is a neighbour of whom is chance.
-define(RANDOM_TIMES, 3).

%% Cases with the same chain share it. All others have nodes of their own names: epmd
%% may still have to forget those of the one before.
suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [killed_behind_gateways_and_back, killed_among_random_neighbours,
     halted_on_a_host_that_cannot_be_found, broken_link_without_a_port_is_no_end,
     halted_behind_gateways_without_a_port, silence_is_no_end,
     silence_of_a_host_out_of_reach_is_no_end].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% What tells the sessions of a has been started again by itself. The next incarnation of the node
%% has sessions while the news of the end of the one before are fresh; these resume like others.
killed_behind_gateways_and_back(Config) ->
    Names = [a, g1, g2, b],
    [A, G1 | _] = Nodes = chain(Names, #{}, Config),
    B = lists:last(Nodes),
    Others = lists:droplast(Nodes),
    connect_all(B, Others),
    ok = weft_test_nodes:kill_named(A, weft_sessions),
    down_soon(name(B), Others, fun() -> ok = weft_test_nodes:kill(B) end),
    New = start_linked(b, links(Names), #{}, Config),
    connect_all(New, Others),
    [ok = call(Node, ?MODULE, watch, []) || Node <- Others],
    Before = resumes(A),
    ok = call(A, weft_fault, break, [name(G1)]),
    weft_test_nodes:until(fun() -> resumes(A) > Before end),
    ?assertEqual(name(New), call(A, erpc, call, [name(New), erlang, node, []])),
    ?assert(is_map_key(name(B), died(A))),
    ?assertEqual([[], [], []], [call(Node, ?MODULE, downs, []) || Node <- Others]).

died(Node) ->
    maps:from_list([{Dead, Ms} || {{died, Dead, _Incarnation}, Ms}
                                      <- call(Node, weft_view, all, [])]).

resumes(Node) ->
    lists:sum([maps:get(resumes, call(Node, weft_session, info, [Session]))
               || Session <- call(Node, weft_sessions, list, [])]).

%% Who loses a neighbour takes another node in its place, and wants no link with it any more. It
%% finds out all the same whether it has ended: the watching node may be no neighbour, and waits for
%% it. New nodes come to the seeds, of which it is none.
killed_among_random_neighbours(Config) ->
    Names = [r1, r2, r3, r4, r5, r6, r7, r8, r9],
    Seeds = [node_name(r1), node_name(r2)],
    Start = fun(Name) ->
                    Node = start(Name, #{config => config([{topology, {peer_to_peer,
                                                                       #{seeds => Seeds,
                                                                         active => 3}}}]),
                                         args => ["-kernel", "prevent_overlapping_partitions",
                                                  "false", "-connect_all", "false"]}, Config),
                    {ok, _} = call(Node, application, ensure_all_started, [weft]),
                    Node
            end,
    [_, _, Watching | _] = [Start(Name) || Name <- lists:droplast(Names)],
    lists:foreach(fun(_) ->
                          B = Start(lists:last(Names)),
                          connect_all(Watching, [B]),
                          down_soon(name(B), [Watching], fun() -> ok = weft_test_nodes:kill(B) end)
                  end, lists:seq(1, ?RANDOM_TIMES)).

%% Only that node can dial, as from a container whose name nobody else knows.
halted_on_a_host_that_cannot_be_found(Config) ->
    File = filename:join(?config(priv_dir, Config), "inetrc"),
    ok = file:write_file(File, "{lookup, [file]}.\n{host, {127, 0, 0, 1}, [\"localhost\"]}.\n"),
    Options = #{config => config([]), args => ["-kernel", "inetrc", "\"" ++ File ++ "\""]},
    [A, B] = [start(Name, Options#{long => Host}, Config)
              || {Name, Host} <- [{o, "127.0.0.1"}, {p, "nowhere.invalid"}]],
    true = call(B, net_kernel, connect_node, [name(A)]),
    weft_test_nodes:until(fun() -> is_connected(A, name(B)) end),
    down_soon(name(B), [A], fun() -> ok = weft_test_nodes:kill(B) end).

%% A node with a name and links, which nobody can dial.
halted_behind_gateways_without_a_port(Config) ->
    [A, G, B] = chain([e, i, f], #{f => ["-dist_listen", "false"]}, Config),
    connect_all(B, [A, G]),
    down_soon(name(B), [A, G], fun() -> ok = weft_test_nodes:kill(B) end).

%% A host that says nothing has not closed anything; one that halts has, also if its node has got
%% its name from another one.
silence_is_no_end(Config) ->
    A = start(n, impatient(), Config),
    Nameless = start(undefined, #{config => config([])}, Config),
    silent(A, Nameless),
    down_soon(call(Nameless, erlang, node, []), [A],
              fun() -> ok = weft_test_nodes:kill(Nameless) end).

%% Nor has one that cannot be reached from here: the network may be down. It has not answered either
%% that it does not know the node. Connections to a multicast address fail at once.
silence_of_a_host_out_of_reach_is_no_end(Config) ->
    A = start(q, (impatient())#{long => "127.0.0.1"}, Config),
    B = start(r, #{config => config([]), long => "224.0.0.1"}, Config),
    silent(A, B),
    down_soon(name(B), [A], fun() -> ok = weft_test_nodes:kill(B) end).

impatient() -> #{config => config([{keepalive_ms, 200}, {link_timeout_ms, 1000}])}.

%% B stands still for a while, and A cannot dial it.
silent(A, B) ->
    true = call(B, net_kernel, connect_node, [name(A)]),
    Name = call(B, erlang, node, []),
    weft_test_nodes:until(fun() -> is_connected(A, Name) end),
    ok = call(A, ?MODULE, watch, []),
    ok = weft_test_nodes:pause(B),
    weft_test_nodes:until(fun() -> [] =:= up_links(A) end),
    receive after 2 * ?QUIET_MS -> ok end, % pacing: nothing may happen in this time
    ok = weft_test_nodes:continue(B),
    weft_test_nodes:until(fun() -> [] =/= up_links(A) end),
    ?assertEqual(Name, call(A, erpc, call, [Name, erlang, node, []])),
    ?assertEqual([], call(A, ?MODULE, downs, [])).

up_links(Node) ->
    [Link || #{state := up} = Link <- call(Node, weft_links, info, [])].

%% Broken by either side, again and again.
broken_link_without_a_port_is_no_end(Config) ->
    [A, G, B] = chain([e, i, f], #{f => ["-dist_listen", "false"]}, Config),
    connect_all(B, [A, G]),
    [ok = call(Node, ?MODULE, watch, []) || Node <- [A, G]],
    [begin
         Before = ups(G, B),
         ok = call(Side, weft_fault, break, [name(There)]),
         weft_test_nodes:until(fun() -> ups(G, B) > Before end)
     end || _ <- [1, 2, 3], {Side, There} <- [{G, B}, {B, G}]],
    receive after ?QUIET_MS -> ok end, % pacing: nothing may happen in this time
    [?assertEqual(name(B), call(Node, erpc, call, [name(B), erlang, node, []])) || Node <- [A, G]],
    ?assertEqual([[], []], [call(Node, ?MODULE, downs, []) || Node <- [A, G]]).

ups(Node, #{node := Peer}) ->
    [Ups] = [Ups || #{node := N, ups := Ups} <- call(Node, weft_links, info, []), N =:= Peer],
    Ups.

%% --- steps ------------------------------------------------------------------------------------

down_soon(Dead, Nodes, Kill) ->
    [ok = call(Node, ?MODULE, watch, []) || Node <- Nodes],
    AtMs = erlang:system_time(millisecond),
    Kill(),
    weft_test_nodes:until(fun() -> lists:all(fun(Node) -> [] =/= downs_of(Dead, Node) end, Nodes)
                          end, ?RESUME_MS),
    Downs = [{name(Node), DownMs - AtMs, Reason}
             || Node <- Nodes, {DownMs, Reason} <- downs_of(Dead, Node)],
    ct:pal("known: ~p", [Downs]),
    ?assertEqual([connection_closed], lists:usort([Reason || {_, _, Reason} <- Downs])),
    ?assertEqual([], [Late || {_, Ms, _} = Late <- Downs, Ms > ?SOON_MS]).

downs_of(Dead, Node) ->
    [{Ms, Reason} || {Ms, Name, Reason} <- call(Node, ?MODULE, downs, []), Name =:= Dead].

%% @private Runs on a node: from now on nodedowns are noted.
-spec watch() -> ok.
watch() ->
    Self = self(),
    Pid = spawn(fun() ->
                        _ = is_pid(whereis(?MODULE)) andalso unregister(?MODULE),
                        true = register(?MODULE, self()),
                        ok = net_kernel:monitor_nodes(true, [nodedown_reason, {node_type, all}]),
                        Self ! {self(), ready},
                        note([])
                end),
    receive {Pid, ready} -> ok end.

note(Downs) ->
    receive
        {nodedown, Node, Info} ->
            Reason = proplists:get_value(nodedown_reason, Info),
            note([{erlang:system_time(millisecond), Node, Reason} | Downs]);
        {nodeup, _Node, _Info} ->
            note(Downs);
        {downs, From, Ref} ->
            From ! {Ref, lists:reverse(Downs)},
            note(Downs)
    end.

%% @private Runs on a node: what was noted.
-spec downs() -> [{AtMs :: integer(), node(), Reason :: term()}].
downs() -> weft_test_nodes:ask(?MODULE, downs).

%% From there: nobody can connect to a node without a port.
connect_all(From, Nodes) ->
    [weft_test_nodes:until(fun() -> call(From, net_kernel, connect_node, [name(Node)]) =:= true
                           end) || Node <- Nodes].

is_connected(Node, To) -> lists:member(To, call(Node, erlang, nodes, [connected])).

%% Nodes of these names, each linked to the next; Args are further arguments of some of them.
chain(Names, Args, Config) ->
    [weft_test_nodes:lasting(node_name(Name),
                             fun() -> start_linked(Name, links(Names), Args, Config) end)
     || Name <- Names].

links(Names) ->
    [{node_name(X), node_name(Y)} || {X, Y} <- lists:zip(lists:droplast(Names), tl(Names))].

start_linked(Name, Links, Args, Config) ->
    Node = start(Name, #{config => config([{topology, {static, #{links => Links}}}]),
                         args => ["-kernel", "prevent_overlapping_partitions", "false",
                                  "-connect_all", "false"] ++ maps:get(Name, Args, [])}, Config),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

start(Name, Options, Config) ->
    weft_test_nodes:start(Name, Options, ?config(place, Config)).

config(More) ->
    [{resume_timeout_ms, ?RESUME_MS}, {faults, true} | More].
