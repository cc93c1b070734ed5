%% SPDX-License-Identifier: Apache-2.0
%% @doc A connection that its peer has ended before it is up here: what was sent over it is
%% delivered between `nodeup' and `nodedown', and nothing after them. Over one lane it is all that
%% was sent. Over several the end may overtake what is under way on the other lanes.
%%
%% Node b connects, sends and disconnects. Meanwhile the kernel of node a stands still, after it has
%% let b in and before it takes the connection for up.
-module(weft_short_connection_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, call/4, until/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([direct/1, over_lanes/1, over_a_gateway/1]).
%% Called on the nodes under test.
-export([observe/1, burst/1, is_ended_by_peer/1]).

-define(MESSAGES, 3000).
-define(ROUNDS, 5).
%% So often a round may begin anew.
-define(TRIES, 10).
%% What b sends in its handshake is so late that the kernel of a can be stopped in the midst of it.
-define(LATE_MS, 300).
-define(DISTRIBUTION, ["-connect_all", "false", "-kernel", "prevent_overlapping_partitions",
                       "false"]).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [direct, over_lanes, over_a_gateway].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

direct(Config) ->
    [A, B] = [start(Name, [], Config) || Name <- [a, b]],
    rounds(A, B, name(A), fun is_all/1).

over_lanes(Config) ->
    [A, B] = [start(Name, [{lanes, 3}], Config) || Name <- [a, b]],
    rounds(A, B, name(A), fun is_beginning/1).

over_a_gateway(Config) ->
    [NameA, NameG, NameB] = [weft_test_nodes:node_name(Name) || Name <- [a, g, b]],
    Env = [{topology, {static, #{links => [{NameA, NameG}, {NameG, NameB}]}}}],
    [A, _G, B] = Nodes = [start(Name, Env, Config) || Name <- [a, g, b]],
    [{ok, _} = call(Node, application, ensure_all_started, [weft]) || Node <- Nodes],
    until(fun() -> call(B, net_kernel, connect_node, [NameA]) end),
    rounds(A, B, NameG, fun is_all/1).

%% --- steps ------------------------------------------------------------------------------------

start(Name, Env, Config) ->
    weft_test_nodes:start(Name, #{config => [{faults, true} | Env], args => ?DISTRIBUTION},
                          ?config(place, Config)).

rounds(A, B, Neighbour, IsRight) ->
    ok = call(B, weft_fault, delay, [Neighbour, ?LATE_MS, ?LATE_MS]),
    [?assertMatch({Round, true, _}, {Round, IsRight(Seen), Seen})
     || Round <- lists:seq(1, ?ROUNDS), Seen <- [round(A, B)]].

is_all(Seen) -> Seen =:= [nodeup] ++ lists:seq(1, ?MESSAGES) ++ [nodedown].

is_beginning(Seen) -> Seen =:= [nodeup] ++ lists:seq(1, length(Seen) - 2) ++ [nodedown].

round(A, B) -> round(A, B, ?TRIES).

%% A busy machine may be too late to stop the kernel in time; then this round shows nothing.
round(A, B, Tries) when Tries > 0 ->
    until(fun() ->
                  _ = call(A, erlang, disconnect_node, [name(B)]),
                  is_forgotten(A, name(B)) andalso is_forgotten(B, name(A))
                      andalso call(A, erlang, whereis, [observer]) =:= undefined
          end),
    ok = call(A, ?MODULE, observe, [name(B)]),
    ok = call(B, ?MODULE, burst, [name(A)]),
    case call(A, weft_test_nodes, ask, [observer, is_in_time]) of
        true ->
            until(fun() -> call(A, ?MODULE, is_ended_by_peer, [name(B)]) end),
            call(A, weft_test_nodes, ask, [observer, seen]);
        false ->
            round(A, B, Tries - 1)
    end.

is_forgotten(Here, There) ->
    not lists:member(There, call(Here, erlang, nodes, [connected]))
        andalso call(Here, weft_sessions, with, [atom_to_binary(There)]) =:= [].

%% --- on the nodes under test ------------------------------------------------------------------

%% @doc A process that stops the kernel while Node connects, until it is asked what it has seen.
-spec observe(node()) -> ok.
observe(Node) ->
    {Starter, Ref} = {self(), make_ref()},
    spawn(fun() ->
                  register(observer, self()),
                  ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
                  Starter ! Ref,
                  observer(Node)
          end),
    receive Ref -> ok end.

observer(Node) ->
    until(fun() -> is_pending(Node) orelse is_told() end),
    %% Node has been let in when the kernel has answered.
    _ = sys:get_state(net_kernel),
    Kernel = whereis(net_kernel),
    true = erlang:suspend_process(Kernel),
    case is_pending(Node) of
        true ->
            receive {is_in_time, From, Ref} -> From ! {Ref, true} end,
            receive
                {seen, Asker, Asked} ->
                    true = erlang:resume_process(Kernel),
                    Asker ! {Asked, seen(Node)}
            end;
        false ->
            true = erlang:resume_process(Kernel),
            receive {is_in_time, From, Ref} -> From ! {Ref, false} end
    end.

%% That the connection is up already, or was.
is_told() -> {message_queue_len, 0} =/= process_info(self(), message_queue_len).

is_pending(Node) -> [pending] =:= [element(4, Row) || Row <- ets:lookup(sys_dist, Node)].

seen(Node) ->
    receive
        {nodeup, Node, _} -> [nodeup | seen(Node)];
        {nodedown, Node, _} -> [nodedown | late()];
        Message -> [Message | seen(Node)]
    after 30_000 -> [nothing_more]
    end.

late() ->
    receive Message -> [Message | late()]
    after 200 -> [] % pacing: what must not come
    end.

%% @doc Connects, sends and disconnects.
-spec burst(node()) -> ok.
burst(Node) ->
    true = net_kernel:connect_node(Node),
    [{observer, Node} ! N || N <- lists:seq(1, ?MESSAGES)],
    true = erlang:monitor_node(Node, true),
    true = erlang:disconnect_node(Node),
    receive {nodedown, Node} -> ok end.

%% @doc Has the session with Node heard that it is over, before it was up?
-spec is_ended_by_peer(node()) -> boolean().
is_ended_by_peer(Node) ->
    [true] =:= [gen_server:call(Session, is_to_end)
                || Session <- weft_sessions:of_distribution(atom_to_binary(Node))].
