%% SPDX-License-Identifier: Apache-2.0
%% @doc The first message to a node that is not connected: the VM encodes it before there is a
%% connection, and does not cut it into fragments. Of any size, kind of term and address, over one
%% lane, several, TLS and a gateway it arrives, and all behind it in order.
-module(weft_first_message_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, call/4, call/5, until/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([direct/1, over_lanes/1, over_tls/1, over_a_gateway/1, over_a_slow_network/1,
         after_breaks/1, the_largest/1]).
%% Called on the nodes under test.
-export([start_sink/0, send_first/3, send_bulk/2, term/2]).

-define(CALL_MS, 120000).
%% Around what goes in one packet, what one may have, and what the VM cuts when there is a
%% connection.
-define(SIZES, [1, 65536, 1 bsl 20, (1 bsl 20) + 70000, 16 bsl 20, 20 bsl 20]).
-define(LARGE, 20 bsl 20).
-define(LATE_MS, 1000).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [direct, over_lanes, over_tls, over_a_gateway, over_a_slow_network, after_breaks]
        ++ [the_largest || os:getenv("FULL") =:= "1"].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

direct(Config) ->
    [A, B] = pair([], Config),
    [arrives(A, B, binary, Bytes, To) || Bytes <- ?SIZES, To <- [name, pid]],
    [arrives(A, B, Kind, Bytes, name)
     || Kind <- [bitstring, list, tuple, map], Bytes <- [65536, ?LARGE]].

over_lanes(Config) ->
    [A, B] = pair([{lanes, 4}], Config),
    each_size_arrives(A, B).

each_size_arrives(A, B) ->
    [arrives(A, B, binary, Bytes, name) || Bytes <- ?SIZES],
    arrives(A, B, binary, ?LARGE, pid).

over_tls(Config) ->
    Tls = weft_interop_certificates:options(?config(priv_dir, Config), ours, [ours]),
    [A, B] = [weft_test_nodes:start(Name, #{config => [{transport, tls}, {tls_options, Tls}],
                                            long => "127.0.0.1", args => ["-connect_all", "false"]},
                                   ?config(place, Config))
              || Name <- [a, b]],
    [arrives(A, B, binary, Bytes, name) || Bytes <- ?SIZES].

over_a_gateway(Config) ->
    [A, G, B] = Names = [weft_test_nodes:node_name(Name) || Name <- [a, g, b]],
    Env = [{topology, {static, #{links => [{A, G}, {G, B}]}}}],
    Args = ["-connect_all", "false", "-kernel", "prevent_overlapping_partitions", "false"],
    Nodes = [start(Name, Env, Args, Config) || Name <- [a, g, b]],
    ?assertEqual(Names, [name(N) || N <- Nodes]),
    [{ok, _} = call(N, application, ensure_all_started, [weft]) || N <- Nodes],
    [NodeA, _, NodeB] = Nodes,
    until(fun() -> call(NodeA, net_kernel, connect_node, [B]) end),
    each_size_arrives(NodeA, NodeB).

%% A packet takes longer than an end may be silent: it has not come before it is whole, and nothing
%% is heard behind it. The lane is not given up for that.
over_a_slow_network(Config) ->
    Port = weft_test_nodes:free_port(),
    Proxy = weft_test_proxy:start_link(Port, #{bytes_per_ms => 600}),
    Options = [{keepalive_ms, 100}, {link_timeout_ms, 700}],
    Args = ["-start_epmd", "false", "-epmd_module", "weft_epmd", "-connect_all", "false"],
    A = start(slow_a, [{ports, #{"slow_a" => weft_test_nodes:free_port(),
                                 default => weft_test_proxy:port(Proxy)}} | Options],
              Args, Config),
    B = start(slow_b, [{ports, #{default => Port}} | Options], Args, Config),
    arrives(A, B, binary, 1 bsl 20, name),
    ?assertMatch([#{resumes := 0}], sessions(A)),
    %% A channel for bulk sends such packets at any time.
    [{ok, _} = call(N, application, ensure_all_started, [weft]) || N <- [A, B]],
    ok = call(B, ?MODULE, start_sink, []),
    ?assertEqual(call(A, ?MODULE, send_bulk, [{sink, name(B)}, 2 bsl 20]), received(B)).

%% The path is lost while the parts are under way. Until it was for the first time acknowledgements
%% are late, so that most parts wait for them.
after_breaks(Config) ->
    [A, B] = pair([{faults, true}], Config),
    ok = call(B, ?MODULE, start_sink, []),
    forget(A, B),
    ok = call(B, weft_fault, delay, [name(A), ?LATE_MS, ?LATE_MS]),
    Self = self(),
    Sender = spawn_link(fun() ->
                                Self ! {self(), send(A, {sink, name(B)}, binary, 60 bsl 20)}
                        end),
    until(fun() ->
              [Out || #{state := up, bytes_out := Out} <- sessions(A), Out > 65536] =/= []
          end),
    ok = call(A, weft_fault, break, [name(B)]),
    ok = call(B, weft_fault, heal, [name(A)]),
    Breaks = break_until_received(A, B, 1),
    ct:pal("~b breaks", [Breaks]),
    receive {Sender, Sent} -> ?assertEqual(Sent, received(B)) end,
    ?assertMatch([#{resumes := Resumes}] when Resumes > 0, sessions(A)).

sessions(Node) ->
    [call(Node, weft_session, info, [S]) || S <- call(Node, weft_sessions, list, [])].

break_until_received(A, B, Breaks) ->
    case call(B, erlang, process_info, [call(B, erlang, whereis, [sink]), message_queue_len]) of
        {message_queue_len, 2} ->
            Breaks;
        {message_queue_len, _} ->
            ok = call(A, weft_fault, break, [name(B)]),
            receive after 20 -> ok end, % pacing: of the breaks
            break_until_received(A, B, Breaks + 1)
    end.

the_largest(Config) ->
    [A, B] = pair([], Config),
    arrives(A, B, binary, 200 bsl 20, name).

%% --- steps ------------------------------------------------------------------------------------

pair(Env, Config) -> [start(Name, Env, ["-connect_all", "false"], Config) || Name <- [a, b]].

start(Name, Env, Args, Config) ->
    weft_test_nodes:start(Name, #{config => Env, args => Args}, ?config(place, Config)).

arrives(A, B, Kind, Bytes, To) ->
    ok = call(B, ?MODULE, start_sink, []),
    forget(A, B),
    Sent = send(A, case To of
                       name -> {sink, name(B)};
                       pid -> call(B, erlang, whereis, [sink])
                   end, Kind, Bytes),
    ?assertEqual({Kind, Bytes, To, Sent}, {Kind, Bytes, To, received(B)}).

%% No session is left that the first message could use. Each node may connect again at once: its
%% `rex' asks every node that comes up what it can do, also one that has gone meanwhile.
forget(A, B) ->
    until(fun() ->
                  _ = call(A, erlang, disconnect_node, [name(B)]),
                  is_forgotten(A, name(B)) andalso is_forgotten(B, name(A))
          end).

is_forgotten(Here, There) ->
    not lists:member(There, call(Here, erlang, nodes, [connected]))
        andalso call(Here, weft_sessions, with, [atom_to_binary(There)]) =:= [].

send(A, To, Kind, Bytes) -> call(A, ?MODULE, send_first, [To, Kind, Bytes], ?CALL_MS).

received(B) ->
    [First, second] = call(B, weft_test_nodes, ask, [sink, messages], ?CALL_MS),
    First.

%% --- on the nodes under test ------------------------------------------------------------------

%% @doc A process that keeps two messages until it is asked for them; of the first one the hash.
-spec start_sink() -> ok.
start_sink() ->
    _ = [begin
             Ref = monitor(process, Former),
             exit(Former, kill),
             receive {'DOWN', Ref, _, _, _} -> ok end
         end || Former <- [whereis(sink)], is_pid(Former)],
    Starter = self(),
    spawn(fun() -> register(sink, self()), Starter ! started, sink() end),
    receive started -> ok end.

sink() ->
    receive
        {messages, From, Ref} ->
            receive First when element(1, First) =:= first ->
                    receive second -> From ! {Ref, [erlang:phash2(First), second]} end
            end
    end.

%% @doc Sends a term and something small after it. Returns the hash of the former.
-spec send_first(pid() | {atom(), node()}, atom(), pos_integer()) -> non_neg_integer().
send_first(To, Kind, Bytes) ->
    First = {first, term(Kind, Bytes)},
    To ! First,
    To ! second,
    erlang:phash2(First).

%% @doc The same on the channel for bulk.
-spec send_bulk({atom(), node()}, pos_integer()) -> non_neg_integer().
send_bulk(To, Bytes) ->
    First = {first, term(binary, Bytes)},
    [ok = weft:send(To, Message, bulk) || Message <- [First, second]],
    erlang:phash2(First).

%% @doc About so many bytes in external format.
-spec term(atom(), pos_integer()) -> term().
term(binary, Bytes) -> binary:copy(<<7>>, Bytes);
term(bitstring, Bytes) -> <<(binary:copy(<<7>>, Bytes))/binary, 5:3>>;
term(list, Bytes) -> lists:duplicate(Bytes div 5 + 1, 100000);
term(tuple, Bytes) -> list_to_tuple(lists:duplicate(Bytes div 65536 + 1, term(binary, 65536)));
term(map, Bytes) -> maps:from_list([{N, term(binary, 65536)}
                                    || N <- lists:seq(0, Bytes div 65536)]).
