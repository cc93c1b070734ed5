%% SPDX-License-Identifier: Apache-2.0
%% @doc Clusters of real nodes in shapes: partitions that heal, visible circuits, killed gateways,
%% quiet clusters that stay quiet.
%%
%% SOAK_MINUTES (0.05) is how long the quiet cluster chats; HEAL_CUT_MS (4000) how long the two
%% halves are apart.
-module(weft_topology_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4]).

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2, end_per_testcase/2]).
-export([services_count_on_nodes_that_are_not_connected/1,
         a_partition_longer_than_every_timeout_heals_by_itself/1,
         pg_over_a_star_of_visible_circuits_shows_every_member_everywhere/1,
         circuits_of_a_killed_gateway_are_back_within_a_second/1,
         a_grouped_cluster_that_chats_has_no_events/1,
         a_bad_topology_stops_the_application_with_a_text/1,
         members_join_leave_crash_and_rejoin/1,
         a_circuit_passes_no_more_gateways_than_the_hop_limit/1,
         a_gateway_holds_no_more_than_the_window_for_a_target_that_sleeps/1]).
%% Run on the nodes.
-export([watch/0, watched/0, talk/2, talker/3, echo/0, sink/1, flood/3, locker/1]).

-define(WINDOW_BYTES, 1048576).
-define(PARTIAL, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]).

suite() -> [{timetrap, {minutes, 40}}].

all() ->
    [{group, mesh}, {group, groups}, {group, row},
     pg_over_a_star_of_visible_circuits_shows_every_member_everywhere,
     a_bad_topology_stops_the_application_with_a_text].

%% The cases of a group have the same nodes; the last one of the first two kills some.
groups() ->
    [{mesh, [], [a_partition_longer_than_every_timeout_heals_by_itself,
                 members_join_leave_crash_and_rejoin]},
     {groups, [], [a_grouped_cluster_that_chats_has_no_events,
                   circuits_of_a_killed_gateway_are_back_within_a_second]},
     {row, [], [services_count_on_nodes_that_are_not_connected,
                a_circuit_passes_no_more_gateways_than_the_hop_limit,
                a_gateway_holds_no_more_than_the_window_for_a_target_that_sleeps]}].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

init_per_group(mesh, Config) ->
    [{nodes, start(mesh_names(), mesh_env(), mesh_args(), Config)} | Config];
%% Neighbouring groups share two nodes.
init_per_group(groups, Config) ->
    Names = names("g", 7),
    Group = fun(From, To) -> [node_name(lists:nth(N, Names)) || N <- lists:seq(From, To)] end,
    Env = [{topology, {groups, #{one => Group(1, 4), two => Group(3, 6), three => Group(5, 7)}}}],
    [{nodes, start(Names, Env, ["-kernel", "net_ticktime", "8" | tl(?PARTIAL)], Config)} | Config];
init_per_group(row, Config) ->
    Names = names("h", 4),
    Named = [node_name(Name) || Name <- Names],
    Env = [{topology, {static, #{links => lists:zip(lists:droplast(Named), tl(Named))}}},
           {hop_limit, 2}, {window_bytes, ?WINDOW_BYTES}, {queue_bytes, 8 * ?WINDOW_BYTES},
           {link_timeout_ms, 60000}, {resume_timeout_ms, 60000}],
    [{nodes, start(Names, Env, ?PARTIAL, Config)} | Config].

end_per_group(_Group, _Config) -> weft_test_nodes:stop_all().

end_per_testcase(_Case, Config) ->
    ?config(nodes, Config) =/= undefined orelse weft_test_nodes:stop_all().

%% --- cases ------------------------------------------------------------------------------------

mesh_names() -> names("p", 4).

mesh_env() ->
    [{topology, {full_mesh, #{seeds => [node_name(hd(mesh_names()))]}}}, {faults, true},
     {resume_timeout_ms, 1500}, {link_timeout_ms, 1000}, {keepalive_ms, 200}].

mesh_args() -> ["-kernel", "prevent_overlapping_partitions", "false", "net_ticktime", "2"].

a_partition_longer_than_every_timeout_heals_by_itself(Config) ->
    Nodes = ?config(nodes, Config),
    until_all_see_all(Nodes, 20000),
    {Left, Right} = lists:split(2, Nodes),
    on_pairs(fun(A, B) -> ok = call(A, weft_fault, cut, [name(B)]) end, Left, Right),
    weft_test_nodes:until(fun() -> sees(Left, Left) andalso sees(Right, Right) end),
    pace(env("HEAL_CUT_MS", 4000)),
    ?assertEqual([], [{name(A), nodes_of(A)} || {A, B} <- across(Left, Right),
                                                lists:member(name(B), nodes_of(A))]),
    weft_test_nodes:until(fun() -> sees(Left, Left) andalso sees(Right, Right) end),
    on_pairs(fun(A, B) -> ok = call(A, weft_fault, heal, [name(B)]) end, Left, Right),
    {Us, ok} = timer:tc(fun() -> until_all_see_all(Nodes, 30000) end),
    ct:pal("one cluster again after ~b ms", [Us div 1000]).

pg_over_a_star_of_visible_circuits_shows_every_member_everywhere(Config) ->
    [Hub | Leaves] = Names = names("s", 3),
    Links = [{node_name(Hub), node_name(Leaf)} || Leaf <- Leaves],
    Env = [{topology, {static, #{links => Links}}}, {circuits, visible}],
    Nodes = start(Names, Env, ["-kernel", "prevent_overlapping_partitions", "false"], Config),
    until_all_see_all(Nodes, 20000),
    Members = [begin
                   {ok, _} = start_pg(Node),
                   Pid = call(Node, erlang, spawn, [?MODULE, echo, []]),
                   ok = call(Node, pg, join, [everyone, Pid]),
                   Pid
               end || Node <- Nodes],
    weft_test_nodes:until(
      fun() ->
              lists:all(fun(Node) ->
                                lists:sort(Members)
                                    =:= lists:sort(call(Node, pg, get_members, [everyone]))
                        end, Nodes)
      end),
    %% A star: a leaf has one TCP connection, to the hub. (Who met before the overlay of both had
    %% started had another one, and gives it up.)
    weft_test_nodes:until(
      fun() -> [] =:= [Leaf || Leaf <- tl(Nodes), length(up_links(Leaf)) > 1] end),
    [_ | Gone] = Nodes,
    weft_test_nodes:kill(lists:last(Gone)),
    weft_test_nodes:until(
      fun() -> length(call(hd(Nodes), pg, get_members, [everyone])) =:= 2 end).

circuits_of_a_killed_gateway_are_back_within_a_second(Config) ->
    Nodes = ?config(nodes, Config),
    Ends = [{lists:nth(A, Nodes), lists:nth(B, Nodes)}
            || {A, B} <- [{1, 5}, {2, 6}, {1, 7}, {2, 5}, {1, 6}, {2, 7}]],
    [weft_test_nodes:until(fun() -> ping(A, B) =:= pong end) || {A, B} <- Ends],
    [ok = call(A, ?MODULE, watch, []) || {A, _} <- Ends],
    Gateway = most_used_gateway([lists:nth(3, Nodes), lists:nth(4, Nodes)]),
    weft_test_nodes:kill(Gateway),
    [?assertEqual(name(B), call(A, erpc, call, [name(B), erlang, node, [], 10000]))
     || {A, B} <- Ends],
    Times = lists:sort(lists:append([resume_times(A, B) || {A, B} <- Ends])),
    ct:pal("resumes after the gateway's death, ms: ~w", [Times]),
    ?assertNotEqual([], Times),
    %% One may be late on a busy machine. But nobody has to wait until silence (5 s) is proof.
    ?assertEqual([], [Ms || Ms <- lists:droplast(Times), Ms >= 1000]),
    ?assert(lists:last(Times) < 4000),
    [?assertEqual([], [E || E <- call(A, ?MODULE, watched, []), not about(E, Gateway)])
     || {A, _} <- Ends].

a_grouped_cluster_that_chats_has_no_events(Config) ->
    Nodes = ?config(nodes, Config),
    Pairs = [{A, B} || {A, B} <- lists:zip(Nodes, tl(Nodes) ++ [hd(Nodes)])]
        ++ [{hd(Nodes), lists:last(Nodes)}, {lists:nth(2, Nodes), lists:nth(6, Nodes)}],
    [weft_test_nodes:until(fun() -> ping(A, B) =:= pong end) || {A, B} <- Pairs],
    [ok = call(Node, ?MODULE, watch, []) || Node <- Nodes],
    Minutes = env("SOAK_MINUTES", 0.05),
    [ok = call(A, ?MODULE, talk, [name(B), Minutes]) || {A, B} <- Pairs],
    pace(round(Minutes * 60000)),
    weft_test_nodes:until(fun() -> length(talked(events(Nodes))) >= length(Pairs) end),
    Events = events(Nodes),
    Talked = talked(Events),
    ?assertEqual(length(Pairs), length(Talked)),
    ?assert(lists:all(fun(Count) -> Count > 10 end, Talked)),
    ?assertEqual([], [E || {_, What} = E <- Events, element(1, What) =/= talked]).

events(Nodes) ->
    [{name(Node), Event} || Node <- Nodes, Event <- call(Node, ?MODULE, watched, [])].

talked(Events) -> [Count || {_, {talked, _Peer, Count}} <- Events].

a_bad_topology_stops_the_application_with_a_text(Config) ->
    Here = node_name("t01"),
    Cases = [{{groups, #{one => []}}, false, "one"},
             {{groups, #{one => ['x@y']}}, false, "t01"},
             {{groups, #{one => [Here, nohost]}}, false, "nohost"},
             {{static, #{link => []}}, false, "link"},
             {{statics, #{links => []}}, false, "statics"},
             {{static, #{links => [{Here, 'a@b'}, {'a@b', 'c@d'}]}}, true,
              "prevent_overlapping_partitions"}],
    Node = weft_test_nodes:start(t01, #{}, ?config(place, Config)),
    [begin
         ok = call(Node, application, set_env, [weft, topology, Topology]),
         ok = call(Node, application, set_env, [kernel, prevent_overlapping_partitions, Prevents]),
         {error, {weft, Reason}} = call(Node, application, ensure_all_started, [weft]),
         Text = lists:flatten(io_lib:format("~0tp", [Reason])),
         ?assertNotEqual({nomatch, Topology, Text},
                         {string:find(Text, Word), Topology, Text})
     end || {Topology, Prevents, Word} <- Cases].

members_join_leave_crash_and_rejoin(Config) ->
    [A, B, C, D] = Nodes = ?config(nodes, Config),
    until_all_see_all(Nodes, 20000),
    ok = call(D, weft_overlay, leave, []),
    weft_test_nodes:kill(D),
    weft_test_nodes:until(fun() -> members(A) =:= members(B) andalso length(members(A)) =:= 3 end),
    weft_test_nodes:kill(C),
    weft_test_nodes:until(fun() -> nodes_of(A) =:= [name(B)] end),
    [C2, D2] = start(lists:nthtail(2, mesh_names()), mesh_env(), mesh_args(), Config),
    until_all_see_all([A, B, C2, D2], 20000).

%% Each end of the row is connected with its neighbour only, and has a route to the next node. The
%% two locks have two replicas in common.
services_count_on_nodes_that_are_not_connected(Config) ->
    [First, Second, Third, Fourth] = Nodes = ?config(nodes, Config),
    weft_test_nodes:until(fun() -> nodes_of(First) =:= [name(Second)] end),
    weft_test_nodes:until(fun() -> has_route(First, Third) andalso has_route(Fourth, Second) end),
    ok = call(First, application, set_env,
              [weft, partition_nodes, [name(First), name(Third), 'nobody@nowhere']]),
    ?assertMatch(#{unreachable := ['nobody@nowhere']}, call(First, weft_partition, status, [])),
    ok = call(First, application, unset_env, [weft, partition_nodes]),
    Has = call(First, ?MODULE, locker, [row]),
    weft_test_nodes:until(fun() -> has_lock(First) =:= Has end),
    Waits = call(Fourth, ?MODULE, locker, [row]),
    weft_test_nodes:until(fun() -> count(waiting, Nodes) > 0 end),
    ?assertEqual(undefined, has_lock(Fourth)),
    [true = call(Node, erlang, exit, [Pid, kill]) || {Node, Pid} <- [{Fourth, Waits},
                                                                     {First, Has}]],
    weft_test_nodes:until(fun() -> count(locks, Nodes) =:= 0 end).

has_route(Node, To) ->
    {error, no_route} =/= call(Node, weft_overlay, route, [name(To)]).

has_lock(Node) -> call(Node, erlang, whereis, [has_lock]).

count(What, Nodes) ->
    lists:sum([maps:get(What, call(Node, weft_global, info, [])) || Node <- Nodes]).

a_circuit_passes_no_more_gateways_than_the_hop_limit(Config) ->
    [First, _, Third, Fourth] = ?config(nodes, Config),
    weft_test_nodes:until(fun() -> ping(First, Third) =:= pong end),
    weft_test_nodes:until(fun() -> length(call(Fourth, weft_overlay, routes, [])) =:= 2 end),
    ?assertEqual(pang, ping(First, Fourth)),
    ?assertEqual(no_route, call(First, weft_next_hop, choose, [name(Fourth)])).

a_gateway_holds_no_more_than_the_window_for_a_target_that_sleeps(Config) ->
    [A, G, B, _] = ?config(nodes, Config),
    weft_test_nodes:until(fun() -> ping(A, B) =:= pong end),
    Sink = call(B, erlang, spawn, [?MODULE, sink, [0]]),
    {Before, BeforeA} = {memory(G), memory(A)},
    weft_test_nodes:pause(B),
    Senders = [call(A, erlang, spawn, [?MODULE, flood, [Sink, 40, 200000]])
               || _ <- lists:seq(1, 10)],
    %% Nobody gets on: all ten wait in send.
    weft_test_nodes:until(fun() -> lists:all(fun(P) -> waits(A, P) end, Senders) end),
    ?assert(memory(G) - Before < 8 * ?WINDOW_BYTES),
    %% Of the 80 MB: the queue, the window, and what waits to be collected.
    ?assert(memory(A) - BeforeA < 24 * ?WINDOW_BYTES),
    weft_test_nodes:continue(B),
    weft_test_nodes:until(fun() -> received(B, Sink) =:= 10 * 40 end, 30000).

%% All of it: the senders' own 200 kB each are in it.
memory(Node) ->
    call(Node, erlang, memory, [total]).

waits(Node, Pid) ->
    call(Node, erlang, process_info, [Pid, status]) =:= {status, suspended}.

received(Node, Sink) ->
    {dictionary, Dictionary} = call(Node, erlang, process_info, [Sink, dictionary]),
    proplists:get_value(count, Dictionary, 0).

%% --- on the nodes -----------------------------------------------------------------------------

%% @doc Keeps every event of the connections of this node from now on.
watch() ->
    Caller = self(),
    _ = [forget(Former) || Former <- [whereis(?MODULE)], is_pid(Former)],
    Pid = spawn(fun() ->
                        register(?MODULE, self()),
                        ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
                        Caller ! {self(), watching},
                        keep([])
                end),
    receive {Pid, watching} -> ok end.

forget(Former) ->
    Monitor = monitor(process, Former),
    exit(Former, kill),
    receive {'DOWN', Monitor, process, Former, _} -> ok end.

keep(Events) ->
    receive
        {tell, From} -> From ! {?MODULE, lists:reverse(Events)}, keep(Events);
        Event -> keep([Event | Events])
    end.

watched() ->
    ?MODULE ! {tell, self()},
    receive {?MODULE, Events} -> Events end.

%% @doc A call each 20 ms, a link and a monitor, for some minutes; tells the watcher the end.
talk(Peer, Minutes) ->
    spawn(?MODULE, talker, [Peer, erlang:monotonic_time(millisecond) + round(Minutes * 55000), 0]),
    ok.

talker(Peer, UntilMs, Count) ->
    Echo = spawn_link(Peer, ?MODULE, echo, []),
    monitor(process, Echo),
    process_flag(trap_exit, true),
    talk_on(Echo, UntilMs, Count).

talk_on(Echo, UntilMs, Count) ->
    Echo ! {self(), Count},
    receive
        Count -> ok;
        Event -> ?MODULE ! {unexpected, Event}
    after 10000 ->
        ?MODULE ! {no_answer, node(Echo), Count}
    end,
    case erlang:monotonic_time(millisecond) < UntilMs of
        true -> receive after 20 -> talk_on(Echo, UntilMs, Count + 1) end; % pacing: of the talk
        false -> ?MODULE ! {talked, node(Echo), Count}
    end.

%% @doc A process that wants a lock of the whole cluster. It has a name when it has got it, and
%% keeps it until it ends.
locker(Resource) ->
    spawn(fun() ->
                  true = weft_global:set_lock({Resource, self()}),
                  true = register(has_lock, self()),
                  receive the_end -> ok end
          end).

echo() ->
    receive {From, Message} -> From ! Message, echo() end.

sink(Count) ->
    receive
        Message when is_binary(Message) ->
            put(count, Count + 1),
            sink(Count + 1)
    end.

flood(_Sink, 0, _Bytes) -> ok;
flood(Sink, Count, Bytes) ->
    Sink ! binary:copy(<<Count>>, Bytes),
    flood(Sink, Count - 1, Bytes).

%% --- helpers ----------------------------------------------------------------------------------

start(Names, Env, Args, Config) ->
    Options = #{config => Env, args => Args},
    Nodes = [weft_test_nodes:start(list_to_atom(Name), Options, ?config(place, Config))
             || Name <- Names],
    [{ok, _} = call(Node, application, ensure_all_started, [weft]) || Node <- Nodes],
    Nodes.

start_pg(Node) ->
    call(Node, supervisor, start_child,
         [kernel_safe_sup, #{id => pg, start => {pg, start_link, []}}]).

names(Prefix, Count) ->
    [lists:flatten(io_lib:format("~s~2..0b", [Prefix, N])) || N <- lists:seq(1, Count)].

ping(A, B) -> call(A, net_adm, ping, [name(B)]).

nodes_of(Node) -> lists:sort(call(Node, erlang, nodes, [])).

members(Node) -> lists:sort(call(Node, weft_overlay, members, [])).

sees(Nodes, Expected) ->
    lists:all(fun(Node) ->
                      nodes_of(Node) =:= lists:sort([name(E) || E <- Expected, E =/= Node])
              end, Nodes).

until_all_see_all(Nodes, TimeoutMs) ->
    try
        weft_test_nodes:until(fun() -> sees(Nodes, Nodes) end, TimeoutMs)
    catch
        error:{never_true, _} -> ct:fail([situation(Node) || Node <- Nodes])
    end.

situation(Node) ->
    #{node => name(Node), sees => nodes_of(Node), members => members(Node),
      links => [maps:with([node, state, wanted, last_error, ups], Link)
                || Link <- call(Node, weft_links, info, [])]}.

on_pairs(Fun, Left, Right) ->
    lists:foreach(fun({A, B}) -> Fun(A, B) end, across(Left, Right)).

%% Each of one side with each of the other, in both directions.
across(Left, Right) ->
    lists:append([[{A, B}, {B, A}] || A <- Left, B <- Right]).

up_links(Node) ->
    [Link || #{state := up} = Link <- call(Node, weft_links, info, [])].

%% The gateway through which more circuits pass now.
most_used_gateway(Gateways) ->
    Used = [{circuits_through(G), N}
            || {N, G} <- lists:zip(lists:seq(1, length(Gateways)), Gateways)],
    {Count, N} = lists:max(Used),
    ?assert(Count > 0),
    lists:nth(N, Gateways).

circuits_through(Gateway) ->
    lists:sum([length(Circuits)
               || #{above := #{circuits := Circuits}} <- call(Gateway, weft_links, info, [])]).

%% A session that has just ended does not answer.
resume_times(A, B) ->
    Name = name(B),
    Infos = [try call(A, weft_session, info, [Session]) catch exit:_ -> #{} end
             || Session <- call(A, weft_sessions, list, [])],
    [Ms || #{node := Node, last_resume_ms := Ms} <- Infos, Node =:= Name, is_integer(Ms)].

about({_, Node, _}, #{node := Node}) -> true;
about(_, _) -> false.

env(Name, Default) ->
    case os:getenv(Name) of
        false -> Default;
        Text -> try list_to_float(Text) catch error:badarg -> list_to_integer(Text) end
    end.

pace(Ms) ->
    receive after Ms -> ok end. % pacing: what is tested is that nothing happens for a while
