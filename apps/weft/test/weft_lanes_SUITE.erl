%% SPDX-License-Identifier: Apache-2.0
%% @doc Several lanes under one session: what is lost with a lane is repeated on the others, in
%% order, and nobody above notices.
-module(weft_lanes_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [node_name/1, call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([large_payloads_use_all_lanes/1, stalled_lane_is_replaced/1, lanes_lost_at_a_gateway/1,
         pinned_messages_pass_others/1, a_lane_of_an_earlier_link_is_closed/1,
         cores_begin_anew_when_their_lane_is_lost/1,
         a_receiver_that_stands_still_does_not_widen_the_window/1]).
-export([attached_late/1, core/0, heard/0, lose_control_lane/1, losses/0]).

-define(T, weft_resume_traffic).
-define(LOAD, weft_fairness_load).
-define(LANES, 4).
-define(MEBIBYTE, 1048576).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [large_payloads_use_all_lanes, a_lane_of_an_earlier_link_is_closed,
     cores_begin_anew_when_their_lane_is_lost, pinned_messages_pass_others,
     a_receiver_that_stands_still_does_not_widen_the_window,
     stalled_lane_is_replaced, lanes_lost_at_a_gateway].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

large_payloads_use_all_lanes(Config) ->
    [A, B] = pair(Config),
    begin_traffic([A, B], 60000),
    %% Keepalive alone makes some packets on each lane; payloads make many more.
    weft_test_nodes:until(fun() -> lists:min(packets(B, A)) > 100 end),
    end_traffic([A, B]).

%% A lane that swallows all and is never closed: noticed after link_timeout_ms, and no connection
%% between the nodes ends.
stalled_lane_is_replaced(Config) ->
    Port = weft_test_nodes:free_port(),
    Proxy = weft_test_proxy:start_link(Port),
    %% A node that stands still for less than that loses no other lane.
    Options = [{keepalive_ms, 100}, {link_timeout_ms, 5000}],
    Args = ["-start_epmd", "false", "-epmd_module", "weft_epmd"],
    A = start(stall_a, [{ports, #{"stall_a" => weft_test_nodes:free_port(),
                                  default => weft_test_proxy:port(Proxy)}} | Options],
              Args, Config),
    B = start(stall_b, [{ports, #{default => Port}} | Options], Args, Config),
    connect(A, B),
    weft_test_nodes:until(fun() -> length(lanes(A, B)) =:= ?LANES end),
    begin_traffic([A, B], 40000),
    Connections = weft_test_proxy:connections(Proxy),
    %% The last one is a lane now; earlier ones may have been attempts.
    ok = weft_test_proxy:stall(Proxy, Connections),
    weft_test_nodes:until(fun() -> weft_test_proxy:connections(Proxy) > Connections end),
    weft_test_nodes:until(fun() -> length(lanes(A, B)) =:= ?LANES end),
    end_traffic([A, B]),
    [#{repairs := Repairs, resumes := 0}] = sessions(A),
    ?assert(Repairs >= 1).

%% It was authenticated while the link was made anew, by the other end: as one lane more it would
%% stay for ever.
a_lane_of_an_earlier_link_is_closed(Config) ->
    [A, B] = pair(Config),
    ?assertEqual({error, closed}, call(B, ?MODULE, attached_late, [node_name(pair_a)])),
    ?assertEqual(?LANES, length(lanes(B, A))).

%% Called on a node: what becomes of a lane that has proved the token of another link.
attached_late(Node) ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listen),
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    {ok, Other} = gen_tcp:accept(Listen),
    [Incarnation] = [I || #{node := N, incarnation := I} <- weft_links:info(), N =:= Node],
    ok = weft_links:attach(Socket, #{node => Node, name => atom_to_binary(Node),
                                     incarnation => Incarnation, listens => true,
                                     token => <<1:256>>, proven_with => <<2:256>>, role => dialer,
                                     version => 1, begun_us => erlang:monotonic_time(microsecond),
                                     peername => undefined},
                           {lane, <<>>, 9}),
    gen_tcp:recv(Other, 0, 10000).

%% What they have said may be lost with it, though the link is up all the time. Sessions go on.
cores_begin_anew_when_their_lane_is_lost(Config) ->
    [A, #{node := Peer} = B] = Nodes = pair(Config),
    Before = resumes(A),
    [ok = call(N, ?MODULE, core, []) || N <- Nodes],
    [weft_test_nodes:until(fun() -> call(N, ?MODULE, heard, []) =:= [up] end) || N <- Nodes],
    ok = call(A, ?MODULE, lose_control_lane, [Peer]),
    [weft_test_nodes:until(fun() -> has_begun_anew(call(N, ?MODULE, heard, [])) end) || N <- Nodes],
    ok = call(A, weft_links, send, [Peer, ?MODULE, hello]),
    weft_test_nodes:until(fun() -> lists:member(message, call(B, ?MODULE, heard, [])) end),
    weft_test_nodes:until(fun() -> length(lanes(A, B)) =:= ?LANES end),
    ?assertEqual(Before, resumes(A)),
    [true = call(N, erlang, exit, [call(N, erlang, whereis, [?MODULE]), kill]) || N <- Nodes].

has_begun_anew(Heard) ->
    lists:member(down, Heard) andalso lists:last(Heard) =:= up.

%% @private Runs on a node: from now on a process is a core, and notes what it hears of links.
-spec core() -> ok.
core() ->
    Caller = self(),
    Core = spawn(fun() ->
                     true = register(?MODULE, self()),
                     ok = weft_links:subscribe(?MODULE, self()),
                     Caller ! {subscribed, self()},
                     note([])
                 end),
    receive {subscribed, Core} -> ok end.

note(Heard) ->
    receive
        {weft_link, What, _Node, _} -> note([What | Heard]);
        {heard, From, Ref} -> From ! {Ref, lists:reverse(Heard)}, note(Heard)
    end.

%% @private Runs on a node: what that process has heard.
-spec heard() -> [up | down | message].
heard() -> weft_test_nodes:ask(?MODULE, heard).

%% @private Runs on a node: the lane by which its cores send to that node is reset.
-spec lose_control_lane(node()) -> ok.
lose_control_lane(Node) ->
    {_Link, #{lane := Lane}} = weft_link_table:read(Node),
    Socket = weft_lane:socket(Lane),
    ok = inet:setopts(Socket, [{linger, {true, 0}}]),
    gen_tcp:close(Socket).

%% Payloads are spread over the lanes of the next link by the gateway; when one is lost there the
%% circuit is opened anew.
lanes_lost_at_a_gateway(Config) ->
    Names = [gate_a, gate_g, gate_b],
    [NodeA, NodeG, NodeB] = [node_name(Name) || Name <- Names],
    Overlay = [{topology, {static, #{links => [{NodeA, NodeG}, {NodeG, NodeB}]}}}],
    Args = ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"],
    [A, G, B] = Nodes = [start(Name, Overlay, Args, Config) || Name <- Names],
    [{ok, _} = call(N, application, ensure_all_started, [weft]) || N <- Nodes],
    connect(A, B),
    weft_test_nodes:until(fun() -> length(lanes(G, A)) =:= ?LANES
                                       andalso length(lanes(G, B)) =:= ?LANES end),
    begin_traffic([A, B], 40000),
    lists:foreach(fun({N, Which}) ->
                          kill_lane(G, Which, N),
                          weft_test_nodes:until(fun() -> resumes(A) >= N end)
                  end, lists:zip(lists:seq(1, 6), [A, B, A, B, A, B])),
    end_traffic([A, B]).

%% Each packet takes another time, so lanes overtake each other, and what arrives waits for what was
%% sent before it; but not what a pinned process sends, for what others have sent. Processes are
%% pinned and unpinned in the middle of it, lanes break, and everything arrives once and in order.
pinned_messages_pass_others(Config) ->
    [A, #{node := Peer} = B] = pair(Config),
    ok = call(A, weft_fault, delay, [Peer, 10, 60]),
    begin_traffic([A, B], 3000),
    Sender = call(A, erlang, whereis, [weft_traffic_out]),
    Bulk = call(A, ?LOAD, senders, [call(B, ?LOAD, receivers, [4]), 100000, infinity]),
    Times = [begin
                 ok = call(A, weft_pins, pin, [Sender, default]),
                 InTurn = call(A, ?LOAD, calls_in_turn, [Peer, 4, 4]),
                 ok = call(A, weft_pins, unpin, [Sender]),
                 1 = call(A, ?T, kill_lanes, [Peer, rst, one]),
                 weft_test_nodes:until(fun() -> length(lanes(A, B)) =:= ?LANES end),
                 InTurn
             end || _ <- [1, 2, 3]],
    {Pinned, Others} = lists:unzip(Times),
    ok = call(A, ?LOAD, stop, [Bulk]),
    end_traffic([A, B]),
    ct:pal("us: pinned ~w, not pinned ~w", [median(Pinned), median(Others)]),
    ?assert(median(Pinned) < median(Others)).

%% As one that copies a large message. Nothing is lost, so no more needs to be under way. (On a busy
%% machine a kernel may drop something all the same, and what comes after that says nothing.) At the
%% rate that is waited for, a window for such a pause would be as wide as may be. What it has seen
%% of other cases is not to matter, so the nodes are new ones.
a_receiver_that_stands_still_does_not_widen_the_window(Config) ->
    [A, B] = [start(Name, [], [], Config) || Name <- [sends, stands_still]],
    connect(A, B),
    weft_test_nodes:until(fun() -> length(lanes(B, A)) =:= ?LANES end),
    Bulk = call(A, ?LOAD, senders, [call(B, ?LOAD, receivers, [4]), ?MEBIBYTE, infinity]),
    weft_test_nodes:until(fun() -> maps:get(bytes_per_second, session(A)) > 64 * ?MEBIBYTE end),
    MaxBytes = call(A, weft_config, get, [window_bytes]),
    Pauses = [stood_still(A, B) || _ <- [1, 2, 3]],
    ok = call(A, ?LOAD, stop, [Bulk]),
    %% A round trip that was measured while the machine was busy makes it wide before, too.
    case [Widest || {Before, Widest, _} <- lists:takewhile(fun({_, _, Lost}) -> Lost =:= 0 end,
                                                           Pauses), Before < MaxBytes div 2] of
        [] -> {skip, "the kernel has sent something again before the first pause was over, or the "
                     "window was wide before"};
        Judged -> ?assertEqual([], [Widest || Widest <- Judged, Widest >= MaxBytes])
    end.

%% The window before it, the widest one after it, and what the kernel has sent again since the nodes
%% began.
stood_still(A, B) ->
    Before = maps:get(window_bytes, session(A)),
    weft_test_nodes:pause(B),
    receive after 300 -> ok end, % pacing: longer than a timeout of TCP
    weft_test_nodes:continue(B),
    {Before, widest(A, erlang:monotonic_time(millisecond) + 500, 0),
     call(A, ?MODULE, losses, [])}.

%% @doc On a node: how many segments the kernel has sent again on its connections.
losses() ->
    lists:sum([Lost || Port <- erlang:ports(), {name, "tcp_inet"} =:= erlang:port_info(Port, name),
                       Lost <- [weft_transport:losses(Port)], is_integer(Lost)]).

%% The largest window until then.
widest(Node, Deadline, Before) ->
    Bytes = max(Before, maps:get(window_bytes, session(Node))),
    case erlang:monotonic_time(millisecond) < Deadline of
        true -> widest(Node, Deadline, Bytes);
        false -> Bytes
    end.

session(Node) ->
    [Session] = sessions(Node),
    Session.

median(Times) ->
    Sorted = lists:sort(lists:append(Times)),
    lists:nth((length(Sorted) + 1) div 2, Sorted).

kill_lane(G, #{node := End}, N) ->
    How = case N rem 2 of 0 -> fin; 1 -> rst end,
    1 = call(G, ?T, kill_lanes, [End, How, one]).

%% --- steps ------------------------------------------------------------------------------------

%% Two nodes that most cases share, at rest.
pair(Config) ->
    [A, B] = Nodes =
        [weft_test_nodes:lasting(node_name(Name),
                                 fun() -> start(Name, [{faults, true}], [], Config) end)
         || Name <- [pair_a, pair_b]],
    [begin
         ok = call(Node, ?T, stop, []),
         ok = call(Node, weft_fault, heal, [])
     end || Node <- Nodes],
    connect(A, B),
    weft_test_nodes:until(fun() -> length(lanes(B, A)) =:= ?LANES end),
    Nodes.

start(Name, Weft, Args, Config) ->
    weft_test_nodes:start(Name, #{config => [{lanes, ?LANES} | Weft], args => Args},
                          ?config(place, Config)).

connect(A, #{node := B}) ->
    weft_test_nodes:until(fun() -> call(A, net_kernel, connect_node, [B]) end).

begin_traffic(Nodes, BytesMax) ->
    [ok = call(N, ?T, expect, []) || N <- Nodes],
    [A, B] = Nodes,
    Pairs = [{A, B}, {B, A}],
    [ok = call(Here, ?T, watch, [maps:get(node, There)]) || {Here, There} <- Pairs],
    [ok = call(Here, ?T, send, [maps:get(node, There),
                                #{rate => 1000, bytes_max => BytesMax, seed => 1}])
     || {Here, There} <- Pairs],
    ok.

%% Everything that was sent arrives, once and in order, and nobody noticed anything.
end_traffic([A, B]) ->
    Sent = [{N, call(Peer, ?T, finish, [])} || {N, Peer} <- [{A, B}, {B, A}]],
    [weft_test_nodes:until(fun() -> received(N) >= Count end, 30000) || {N, Count} <- Sent],
    [?assertMatch(#{received := Count, wrong := [], signals := []}, call(N, ?T, account, []))
     || {N, Count} <- Sent],
    ok.

received(Node) ->
    maps:get(received, call(Node, ?T, account, [])).

lanes(Node, #{node := Peer}) ->
    lists:append([Lanes || #{node := P, lanes := Lanes} <- call(Node, weft_links, info, []),
                           P =:= Peer]).

packets(Node, Peer) ->
    [Packets || #{packets_in := Packets} <- lanes(Node, Peer)].

sessions(Node) ->
    [call(Node, weft_session, info, [S]) || S <- call(Node, weft_sessions, list, [])].

resumes(Node) ->
    lists:sum([Resumes || #{resumes := Resumes} <- sessions(Node)]).
