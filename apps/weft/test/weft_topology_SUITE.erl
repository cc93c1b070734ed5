%% SPDX-License-Identifier: Apache-2.0
%% @doc Clusters of real nodes in shapes: partitions that heal, visible circuits, killed gateways,
%% quiet clusters that stay quiet.
%%
%% SOAK_MINUTES (0.1) is how long the quiet cluster chats; HEAL_CUT_MS (4000) how long the two
%% halves are apart.
-module(weft_topology_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([a_partition_longer_than_every_timeout_heals_by_itself/1,
         pg_over_a_star_of_visible_circuits_shows_every_member_everywhere/1,
         circuits_of_a_killed_gateway_are_back_within_a_second/1,
         a_grouped_cluster_that_chats_has_no_events/1,
         a_bad_topology_stops_the_application_with_a_text/1,
         members_join_leave_crash_and_rejoin/1,
         a_circuit_passes_no_more_gateways_than_the_hop_limit/1,
         a_gateway_holds_no_more_than_the_window_for_a_target_that_sleeps/1]).
%% Run on the nodes.
-export([watch/0, watched/0, talk/2, talker/3, echo/0, sink/1, flood/3]).

-define(PARTIAL, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]).

suite() -> [{timetrap, {minutes, 40}}].

all() ->
    [a_partition_longer_than_every_timeout_heals_by_itself,
     pg_over_a_star_of_visible_circuits_shows_every_member_everywhere,
     circuits_of_a_killed_gateway_are_back_within_a_second,
     a_grouped_cluster_that_chats_has_no_events,
     a_bad_topology_stops_the_application_with_a_text,
     members_join_leave_crash_and_rejoin,
     a_circuit_passes_no_more_gateways_than_the_hop_limit,
     a_gateway_holds_no_more_than_the_window_for_a_target_that_sleeps].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- cases ------------------------------------------------------------------------------------

a_partition_longer_than_every_timeout_heals_by_itself(Config) ->
    Names = names("p", 6),
    [Seed | _] = Names,
    Env = [{topology, {full_mesh, #{seeds => [node_name(Seed)]}}}, {faults, true},
           {resume_timeout_ms, 1500}, {link_timeout_ms, 1000}, {keepalive_ms, 200}],
    Args = ["-kernel", "prevent_overlapping_partitions", "false", "net_ticktime", "2"],
    Nodes = start(Names, Env, Args, Config),
    until_all_see_all(Nodes, 20000),
    {Left, Right} = lists:split(3, Nodes),
    on_pairs(fun(A, B) -> ok = call(A, weft_fault, cut, [name(B)]) end, Left, Right),
    weft_test_nodes:until(fun() -> sees(Left, Left) andalso sees(Right, Right) end),
    pace(env("HEAL_CUT_MS", 4000)),
    ?assert(sees(Left, Left) andalso sees(Right, Right)),
    on_pairs(fun(A, B) -> ok = call(A, weft_fault, heal, [name(B)]) end, Left, Right),
    {Us, ok} = timer:tc(fun() -> until_all_see_all(Nodes, 30000) end),
    ct:pal("one cluster again after ~b ms", [Us div 1000]).

pg_over_a_star_of_visible_circuits_shows_every_member_everywhere(Config) ->
    [Hub | Leaves] = Names = names("s", 6),
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
      fun() -> length(call(hd(Nodes), pg, get_members, [everyone])) =:= 5 end).

circuits_of_a_killed_gateway_are_back_within_a_second(Config) ->
    %% Three groups of nine; neighbouring groups share two nodes: 24 in all with the last's extra.
    Names = names("g", 24),
    Group = fun(From, To) -> [node_name(lists:nth(N, Names)) || N <- lists:seq(From, To)] end,
    Groups = #{one => Group(1, 9), two => Group(8, 17), three => Group(16, 24)},
    Env = [{topology, {groups, Groups}}],
    Nodes = start(Names, Env, ?PARTIAL, Config),
    Ends = [{lists:nth(N, Nodes), lists:nth(N + 9, Nodes)} || N <- lists:seq(1, 6)],
    [weft_test_nodes:until(fun() -> ping(A, B) =:= pong end) || {A, B} <- Ends],
    [ok = call(A, ?MODULE, watch, []) || {A, _} <- Ends],
    Gateway = most_used_gateway([lists:nth(8, Nodes), lists:nth(9, Nodes)]),
    weft_test_nodes:kill(Gateway),
    [?assertEqual(name(B), call(A, erpc, call, [name(B), erlang, node, [], 10000]))
     || {A, B} <- Ends],
    Times = lists:sort(lists:append([resume_times(A, B) || {A, B} <- Ends])),
    ct:pal("resumes after the gateway's death, ms: ~w", [Times]),
    ?assertNotEqual([], Times),
    ?assert(lists:nth((length(Times) + 1) div 2, Times) < 1000),
    [?assertEqual([], [E || E <- call(A, ?MODULE, watched, []), not about(E, Gateway)])
     || {A, _} <- Ends].

a_grouped_cluster_that_chats_has_no_events(Config) ->
    Names = names("q", 12),
    Group = fun(From, To) -> [node_name(lists:nth(N, Names)) || N <- lists:seq(From, To)] end,
    Env = [{topology, {groups, #{one => Group(1, 5), two => Group(4, 9), three => Group(8, 12)}}}],
    Nodes = start(Names, Env, ["-kernel", "net_ticktime", "8" | tl(?PARTIAL)], Config),
    Pairs = [{A, B} || {A, B} <- lists:zip(Nodes, tl(Nodes) ++ [hd(Nodes)])]
        ++ [{hd(Nodes), lists:last(Nodes)}, {lists:nth(2, Nodes), lists:nth(11, Nodes)}],
    [weft_test_nodes:until(fun() -> ping(A, B) =:= pong end) || {A, B} <- Pairs],
    [ok = call(Node, ?MODULE, watch, []) || Node <- Nodes],
    Minutes = env("SOAK_MINUTES", 0.1),
    [ok = call(A, ?MODULE, talk, [name(B), Minutes]) || {A, B} <- Pairs],
    pace(round(Minutes * 60000)),
    Events = [{name(Node), Event} || Node <- Nodes, Event <- call(Node, ?MODULE, watched, [])],
    Talked = [Count || {_, {talked, _Peer, Count}} <- Events],
    ?assertEqual(length(Pairs), length(Talked)),
    ?assert(lists:all(fun(Count) -> Count > 10 end, Talked)),
    ?assertEqual([], [E || {_, What} = E <- Events, element(1, What) =/= talked]).

a_bad_topology_stops_the_application_with_a_text(Config) ->
    Here = node_name("t01"),
    Cases = [{{groups, #{one => []}}, ?PARTIAL, "one"},
             {{groups, #{one => ['x@y']}}, ?PARTIAL, "t01"},
             {{groups, #{one => [Here, nohost]}}, ?PARTIAL, "nohost"},
             {{static, #{link => []}}, ?PARTIAL, "link"},
             {{statics, #{links => []}}, ?PARTIAL, "statics"},
             {{static, #{links => [{Here, 'a@b'}, {'a@b', 'c@d'}]}}, [],
              "prevent_overlapping_partitions"}],
    [begin
         Node = weft_test_nodes:start(t01, #{config => [{topology, Topology}], args => Args},
                                      ?config(place, Config)),
         {error, {weft, Reason}} = call(Node, application, ensure_all_started, [weft]),
         Text = lists:flatten(io_lib:format("~0tp", [Reason])),
         ?assertNotEqual({nomatch, Topology, Text},
                         {string:find(Text, Word), Topology, Text}),
         weft_test_nodes:kill(Node)
     end || {Topology, Args, Word} <- Cases].

members_join_leave_crash_and_rejoin(Config) ->
    Names = [S, _, _, _] = names("m", 4),
    Env = [{topology, {full_mesh, #{seeds => [node_name(S)]}}}],
    [A, B, C, D] = Nodes = start(Names, Env, [], Config),
    until_all_see_all(Nodes, 20000),
    ok = call(D, weft_overlay, leave, []),
    weft_test_nodes:kill(D),
    weft_test_nodes:until(fun() -> members(A) =:= members(B) andalso length(members(A)) =:= 3 end),
    weft_test_nodes:kill(C),
    weft_test_nodes:until(fun() -> nodes_of(A) =:= [name(B)] end),
    [C2, D2] = start(lists:nthtail(2, Names), Env, [], Config),
    until_all_see_all([A, B, C2, D2], 20000).

a_circuit_passes_no_more_gateways_than_the_hop_limit(Config) ->
    Names = names("h", 5),
    Named = [node_name(Name) || Name <- Names],
    Env = [{topology, {static, #{links => lists:zip(lists:droplast(Named), tl(Named))}}},
           {hop_limit, 3}],
    [First, _, _, Fourth, Fifth] = start(Names, Env, ?PARTIAL, Config),
    weft_test_nodes:until(fun() -> ping(First, Fourth) =:= pong end),
    weft_test_nodes:until(fun() -> length(call(Fifth, weft_overlay, routes, [])) =:= 3 end),
    ?assertEqual(pang, ping(First, Fifth)),
    ?assertEqual(no_route, call(First, weft_next_hop, choose, [name(Fifth)])).

a_gateway_holds_no_more_than_the_window_for_a_target_that_sleeps(Config) ->
    Names = names("w", 3),
    [NameA, NameG, NameB] = [node_name(Name) || Name <- Names],
    WindowBytes = 1048576,
    Env = [{topology, {static, #{links => [{NameA, NameG}, {NameG, NameB}]}}},
           {window_bytes, WindowBytes}, {queue_bytes, 8 * WindowBytes},
           {link_timeout_ms, 60000}, {resume_timeout_ms, 60000}],
    [A, G, B] = start(Names, Env, ?PARTIAL, Config),
    weft_test_nodes:until(fun() -> ping(A, B) =:= pong end),
    Sink = call(B, erlang, spawn, [?MODULE, sink, [0]]),
    {Before, BeforeA} = {memory(G), memory(A)},
    weft_test_nodes:pause(B),
    Senders = [call(A, erlang, spawn, [?MODULE, flood, [Sink, 100, 200000]])
               || _ <- lists:seq(1, 10)],
    %% Nobody gets on: all ten wait in send.
    weft_test_nodes:until(fun() -> lists:all(fun(P) -> waits(A, P) end, Senders) end),
    ?assert(memory(G) - Before < 8 * WindowBytes),
    %% Of the 200 MB: the queue, the window, and what waits to be collected.
    ?assert(memory(A) - BeforeA < 24 * WindowBytes),
    weft_test_nodes:continue(B),
    weft_test_nodes:until(fun() -> received(B, Sink) =:= 10 * 100 end, 30000).

%% All of it: the senders' own 200 kB each are in it.
memory(Node) ->
    call(Node, erlang, memory, [total]).

waits(Node, Pid) ->
    call(Node, erlang, process_info, [Pid, status]) =:= {status, suspended}.

received(Node, Sink) ->
    {dictionary, Dictionary} = call(Node, erlang, process_info, [Sink, dictionary]),
    proplists:get_value(count, Dictionary, 0).

%% --- on the nodes -----------------------------------------------------------------------------

%% @doc Keeps every event of the connections of this node.
watch() ->
    Caller = self(),
    Pid = spawn(fun() ->
                        register(?MODULE, self()),
                        ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
                        Caller ! {self(), watching},
                        keep([])
                end),
    receive {Pid, watching} -> ok end.

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
    [begin Fun(A, B), Fun(B, A) end || A <- Left, B <- Right],
    ok.

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
