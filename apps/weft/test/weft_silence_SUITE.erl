%% SPDX-License-Identifier: Apache-2.0
%% @doc Connections on which nothing is said, for many net_ticktimes: only the kernel's ticks pass.
%% And nodes that stand still for less than that time, and for more. With FULL=1 neighbours change
%% for longer, and forty-four nodes are silent for a quarter of an hour, with the ticks that a node
%% has by itself.
-module(weft_silence_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, call/4, until/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([breaks_are_no_end/1, breaks_are_no_end_with_a_time_to_resume/1,
         changes_of_neighbours_are_no_end/1, a_session_at_rest_is_small/1,
         ticks_pass_by_a_session_at_rest/1,
         a_link_at_rest_is_still/1, what_waits_is_watched_at_once/1,
         node_that_stands_still_for_a_while_is_up/1, node_that_stands_still_for_long_is_down/1,
         who_does_not_tick_is_down/1, a_quarter_of_an_hour/0, a_quarter_of_an_hour/1]).

-define(T, weft_resume_traffic).
%% Ticks come each second. The shortest silence after which the kernel takes a node for dead is
%% three seconds then, the longest five.
-define(TICKTIME_S, 4).
-define(REST_BYTES, 12288).

suite() -> [{timetrap, {minutes, 3}}].

a_quarter_of_an_hour() -> [{timetrap, {minutes, 25}}].

all() ->
    [breaks_are_no_end, ticks_pass_by_a_session_at_rest, a_session_at_rest_is_small,
     changes_of_neighbours_are_no_end, a_link_at_rest_is_still, what_waits_is_watched_at_once,
     node_that_stands_still_for_a_while_is_up, node_that_stands_still_for_long_is_down,
     who_does_not_tick_is_down]
        ++ case is_full() of
               true -> [breaks_are_no_end_with_a_time_to_resume, a_quarter_of_an_hour];
               false -> []
           end.

is_full() -> os:getenv("FULL") =:= "1".

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- silence ----------------------------------------------------------------------------------

breaks_are_no_end(Config) ->
    breaks(silent_pair(Config)).

breaks_are_no_end_with_a_time_to_resume(Config) ->
    [A, B] = Nodes = [start(Name, ticking(?TICKTIME_S),
                            [{faults, true}, {resume_timeout_ms, 2000}], Config)
                      || Name <- [a, b]],
    connect(A, B),
    breaks(Nodes).

%% More often than ticks: each break costs the session its path, and what was under way on it. Where
%% there is no path yet, it costs nothing.
breaks([A, B] = Nodes) ->
    watch(A, B),
    Before = resumes(A),
    until(fun() ->
                  lists:foreach(fun({Here, There}) ->
                                        ok = call(Here, weft_fault, break, [name(There)]),
                                        pause_ms(700)
                                end, [{A, B}, {B, A}]),
                  resumes(A) >= Before + 20
          end),
    [?assertEqual([], ends(N)) || N <- Nodes].

resumes(Node) ->
    [#{resumes := Resumes}] = [call(Node, weft_session, info, [S])
                               || S <- call(Node, weft_sessions, list, [])],
    Resumes.

%% What messages have left in the memory of its process goes at a tick.
a_session_at_rest_is_small(Config) ->
    [A, B] = Nodes = silent_pair(Config),
    _ = [call(From, erpc, cast, [name(To), erlang, byte_size, [binary:copy(<<1>>, 900)]])
         || _ <- lists:seq(1, 1000), {From, To} <- [{A, B}, {B, A}]],
    [until(fun() -> memory_of_session(N) < ?REST_BYTES end) || N <- Nodes],
    call(A, erpc, call, [name(B), erlang, node, []]).

%% Its process is not woken for them, and they follow it to another path.
ticks_pass_by_a_session_at_rest(Config) ->
    [A, B] = Nodes = silent_pair(Config),
    watch(A, B),
    [until(fun() -> is_passed(N) end) || N <- Nodes],
    ok = call(A, weft_fault, break, [name(B)]),
    [until(fun() -> is_passed(N) end) || N <- Nodes],
    pause_ms(1300 * ?TICKTIME_S),
    [?assertEqual([], ends(N)) || N <- Nodes].

is_passed(Node) ->
    [Session] = call(Node, weft_sessions, list, []),
    Read = fun() ->
               {reductions, Reductions} = call(Node, erlang, process_info, [Session, reductions]),
               #{packets_out := Packets} = call(Node, weft_counters, read, []),
               {Reductions, Packets}
           end,
    {Reductions, Packets} = Read(),
    pause_ms(2500),
    {After, PacketsAfter} = Read(),
    After =:= Reductions andalso PacketsAfter >= Packets + 2.

memory_of_session(Node) ->
    [Session] = call(Node, weft_sessions, list, []),
    {memory, Bytes} = call(Node, erlang, process_info, [Session, memory]),
    Bytes.

%% Looks each 50 ms would take some 50,000 reductions in this time. Two ends that ping and answer
%% every 3 s take a tenth of that. Whoever has something to say is at rest again after it.
a_link_at_rest_is_still(Config) ->
    Nodes = pair([{keepalive_ms, 50}, {idle_keepalive_ms, 3000}], Config),
    until(fun() -> grown([moves(hd(Nodes))], 1000) =:= [0] end),
    until(fun() -> is_at_most(20000, grown([moves(N) || N <- Nodes], 6000)) end),
    until(fun() -> is_at_most(12, grown([packets_in(N) || N <- Nodes], 6000)) end).

is_at_most(Max, Counts) -> lists:max(Counts) =< Max.

%% If it were looked at as rarely as it is pinged, this would take an hour.
what_waits_is_watched_at_once(Config) ->
    [A, B] = pair([{keepalive_ms, 100}, {idle_keepalive_ms, 3600000}, {link_timeout_ms, 1000}],
                  Config),
    until(fun() -> grown([moves(A)], 1000) =:= [0] end),
    ok = weft_test_nodes:pause(B),
    call(A, erlang, send, [{nobody, name(B)}, hello]),
    until(fun() -> maps:get(state, link_info(A)) =/= up end),
    ok = weft_test_nodes:continue(B).

pair(Env, Config) ->
    [A, B] = [start(Name, ["-connect_all", "false"], Env, Config) || Name <- [a, b]],
    connect(A, B),
    [A, B].

%% Reductions of the process of its link.
moves(Node) ->
    fun() ->
        {reductions, Count} = call(Node, erlang, process_info, [own_link(Node), reductions]),
        Count
    end.

packets_in(Node) ->
    fun() ->
        #{lanes := Lanes} = link_info(Node),
        lists:sum([Packets || #{packets_in := Packets} <- Lanes])
    end.

%% By how much what these functions read becomes more in a time, which is the same for all.
grown(Reads, Ms) ->
    Before = [Read() || Read <- Reads],
    pause_ms(Ms),
    [Read() - Count || {Read, Count} <- lists:zip(Reads, Before)].

own_link(Node) ->
    [{_, Link}] = call(Node, weft_link_table, list, []),
    Link.

link_info(Node) -> call(Node, weft_link, info, [own_link(Node)]).

%% Neighbours change all the time, and with them the circuits between those that are none.
changes_of_neighbours_are_no_end(Config) ->
    {Count, Ticktimes} = case is_full() of true -> {8, 5}; false -> {6, 3} end,
    Names = [list_to_atom("p" ++ integer_to_list(N)) || N <- lists:seq(1, Count)],
    Seed = weft_test_nodes:node_name(hd(Names)),
    Shape = {peer_to_peer, #{seeds => [Seed], shuffle_ms => 1000, active => 3, passive => 8}},
    TicktimeS = 2 * ?TICKTIME_S,
    Nodes = [start(Name, ticking(TicktimeS) ++ partial(), [{topology, Shape}, {faults, true}],
                   Config) || Name <- Names],
    [{ok, _} = call(N, application, ensure_all_started, [weft]) || N <- Nodes],
    [connect(A, B) || A <- Nodes, B <- Nodes, name(A) < name(B)],
    [begin
         ok = call(N, ?T, expect, []),
         ok = call(N, ?T, watch_nodes, [])
     end || N <- Nodes],
    Before = resumes_of_all(Nodes),
    Changes = lists:seq(1, Ticktimes * TicktimeS div 2),
    [lose_neighbour(I, lists:nth(1 + I rem Count, Nodes)) || I <- Changes],
    [?assertEqual({name(N), []}, {name(N), ends(N)}) || N <- Nodes],
    %% Sessions of those that were neighbours went on over others.
    ?assert(resumes_of_all(Nodes) - Before >= length(Changes) div 2).

%% For a second, in which it may find another one.
lose_neighbour(I, Node) ->
    Ref = make_ref(),
    %% Those that were seen: a moment later there may be none.
    until(fun() ->
                  Found = neighbours(Node),
                  _ = [self() ! {Ref, Found} || Found =/= []],
                  Found =/= []
          end),
    Neighbours = receive {Ref, Seen} -> Seen end,
    Former = lists:nth(1 + I rem length(Neighbours), Neighbours),
    ok = call(Node, weft_fault, cut, [Former]),
    until(fun() -> not lists:member(Former, neighbours(Node)) end),
    pause_ms(1000),
    ok = call(Node, weft_fault, heal, []),
    pause_ms(1000).

neighbours(Node) -> [Name || {Name, _Cost} <- call(Node, weft_overlay, neighbours, [])].

resumes_of_all(Nodes) ->
    lists:sum([Resumes || Node <- Nodes, Session <- call(Node, weft_sessions, list, []),
                          #{resumes := Resumes} <- [call(Node, weft_session, info, [Session])]]).

%% Thirty nodes of one overlay, twelve in groups, two whose link breaks all the time: each connected
%% with all others of its cluster, and silent.
a_quarter_of_an_hour(Config) ->
    Peers = cluster("q", 30, fun([Seed | _]) -> {peer_to_peer, #{seeds => [Seed]}} end, Config),
    Grouped = cluster("r", 12, fun groups/1, Config),
    [A, B] = Two = [start(Name, ["-connect_all", "false"], [{faults, true}], Config)
                    || Name <- [s1, s2]],
    connect(A, B),
    [begin ok = call(N, ?T, expect, []), ok = call(N, ?T, watch_nodes, []) end
     || N <- Peers ++ Grouped],
    watch(A, B),
    lists:foreach(fun(_) -> ok = call(A, weft_fault, break, [name(B)]), pause_ms(5000) end,
                  lists:seq(1, 180)),
    [?assertEqual({name(N), []}, {name(N), ends(N)}) || N <- Peers ++ Grouped ++ Two].

cluster(Prefix, Count, ShapeOf, Config) ->
    Names = [list_to_atom(Prefix ++ integer_to_list(N)) || N <- lists:seq(1, Count)],
    Shape = ShapeOf([weft_test_nodes:node_name(Name) || Name <- Names]),
    Nodes = [start(Name, partial(), [{topology, Shape}], Config) || Name <- Names],
    [{ok, _} = call(N, application, ensure_all_started, [weft]) || N <- Nodes],
    [connect(A, B) || A <- Nodes, B <- Nodes, name(A) < name(B)],
    Nodes.

%% Four of four, that share a node with the next one.
groups(Nodes) ->
    {groups, maps:from_list([{list_to_atom("group_" ++ integer_to_list(First)),
                              lists:sublist(Nodes, First, 4)} || First <- [1, 4, 7, 9]])}.

partial() ->
    ["-connect_all", "false", "-kernel", "prevent_overlapping_partitions", "false"].

%% --- nodes that stand still ---------------------------------------------------------------------

%% Less than net_ticktime, with the settings that a node has by itself.
node_that_stands_still_for_a_while_is_up(Config) ->
    Pairs = stand_still(6 * ?TICKTIME_S, fun(_) -> pause_ms(10000) end, [[], []], Config),
    lists:foreach(fun({_Still, Other} = Pair) ->
                          talk(Pair),
                          talk({Other, element(1, Pair)})
                  end, Pairs),
    [?assertEqual([], ends(N)) || {Still, Other} <- Pairs, N <- [Still, Other]].

talk({Here, There}) ->
    Plan = #{rate => 100, bytes_max => 100, seed => 1, count => 100},
    ok = call(Here, ?T, send, [name(There), Plan]),
    until(fun() -> maps:get(received, call(There, ?T, account, [])) =:= 100 end).

%% Until it was noticed: the same is said at both ends, also if the link has noticed nothing yet, as
%% one at rest may not have.
node_that_stands_still_for_long_is_down(Config) ->
    Noticed = fun(Others) ->
                      pause_ms(12000),
                      [until(fun() -> downs(N) =/= [] end) || N <- Others]
              end,
    [begin
         until(fun() -> downs(N) =/= [] end),
         ?assertEqual({name(N), [net_tick_timeout]}, {name(N), downs(N)})
     end || {Still, Other} <- stand_still(2 * ?TICKTIME_S, Noticed,
                                         [[], [], [{link_timeout_ms, 60000}]], Config),
            N <- [Other, Still]].

%% Two nodes of several cases, of which the last one ends the ticks between them.
silent_pair(Config) ->
    Args = ["-connect_all", "false" | ticking(?TICKTIME_S)],
    [A, B] = Nodes = [weft_test_nodes:lasting(weft_test_nodes:node_name(Name),
                                              fun() -> start(Name, Args, [{faults, true}], Config)
                                              end)
                      || Name <- [silent_a, silent_b]],
    connect(A, B),
    Nodes.

%% What its links answer is no word of its ticker.
who_does_not_tick_is_down(Config) ->
    [A, B] = silent_pair(Config),
    watch(A, B),
    until(fun() -> call(B, ?T, stop_ticks, []) =:= 1 end),
    until(fun() -> downs(A) =/= [] end),
    ?assertEqual([net_tick_timeout], downs(A)).

%% A pair for each of these environments: in one who was called stands still, in the next one who
%% has called.
stand_still(TicktimeS, Wait, Envs, Config) ->
    Pairs = [begin
                 [Caller, Called] = [start(list_to_atom([Side | integer_to_list(Index)]),
                                           ["-connect_all", "false" | ticking(TicktimeS)], Env,
                                           Config) || Side <- "ab"],
                 connect(Caller, Called),
                 watch(Caller, Called),
                 case Index rem 2 of
                     1 -> {Called, Caller};
                     0 -> {Caller, Called}
                 end
             end || {Index, Env} <- lists:zip(lists:seq(1, length(Envs)), Envs)],
    [ok = weft_test_nodes:pause(Still) || {Still, _} <- Pairs],
    _ = Wait([Other || {_, Other} <- Pairs]),
    [ok = weft_test_nodes:continue(Still) || {Still, _} <- Pairs],
    Pairs.

%% --- steps ------------------------------------------------------------------------------------

ticking(TicktimeS) -> ["-kernel", "net_ticktime", integer_to_list(TicktimeS)].

start(Name, Args, Env, Config) ->
    weft_test_nodes:start(Name, #{config => Env, args => Args}, ?config(place, Config)).

connect(A, B) ->
    until(fun() -> call(A, net_kernel, connect_node, [name(B)]) end),
    until(fun() -> lists:member(name(A), call(B, erlang, nodes, [connected])) end).

%% Nodes, links and monitors.
watch(A, B) ->
    [ok = call(N, ?T, expect, []) || N <- [A, B]],
    [ok = call(Here, ?T, watch, [name(There)]) || {Here, There} <- [{A, B}, {B, A}]],
    ok.

ends(Node) ->
    [Signal || {_, Signal} <- maps:get(signals, call(Node, ?T, account, [])),
               lists:member(element(1, Signal), ['DOWN', 'EXIT', nodedown])].

downs(Node) ->
    [proplists:get_value(nodedown_reason, Info) || {nodedown, _, Info} <- ends(Node)].

pause_ms(Ms) ->
    receive after Ms -> ok end. % pacing: silence, or a node that stands still, is the matter itself
