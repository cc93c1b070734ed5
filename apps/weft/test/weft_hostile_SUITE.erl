%% SPDX-License-Identifier: Apache-2.0
%% @doc What strangers, broken peers and hostile members send to a node's port.
%%
%% One node is attacked while it talks with another one. After each attack: the reason is in the
%% log, in one event; no process of ours crashed; that talk went on undisturbed; no atom was made
%% and memory did not grow. Each attack is made more than once, as the first time loads code.
-module(weft_hostile_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([port_scans/1, half_open_peers/1, wrong_cookie/1, wrong_cluster/1, wrong_version/1,
         wrong_target/1, name_of_the_node_itself/1, names_that_are_none/1, garbage/1,
         truncated_hello/1, oversized_hello/1, replayed_proof/1, lane_without_link/1,
         lane_with_wrong_token/1, oversized_packet/1, unknown_packets/1, unknown_labels/1,
         hostile_opens/1, guessed_sessions/1, control_that_is_no_term/1, frames_that_are_none/1,
         gaps_without_end/1, frames_before_their_time/1, repeated_open_is_one_session/1,
         plain_garbage/1, flood_fills_no_log/1, no_room_for_a_connection/1, fuzz/1]).
%% Run on the nodes.
-export([occupy/0]).

-define(C, weft_hostile_client).
-define(T, weft_resume_traffic).
-define(COOKIE, <<"weft_test">>).
-define(PENDING_MAX, 40).
%% More than the test takes for its part on a busy machine; and what it waits for itself.
-define(HANDSHAKE_MS, 8000).
-define(SHORT_HANDSHAKE_MS, 1500).
-define(LAST_LABEL, 16#ffffffff).
-define(MEMORY_MAX, 4 * 1024 * 1024).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [port_scans, half_open_peers, wrong_cookie, wrong_cluster, wrong_version, wrong_target,
     name_of_the_node_itself, names_that_are_none, garbage, truncated_hello, oversized_hello,
     replayed_proof, lane_without_link, lane_with_wrong_token, oversized_packet, unknown_packets,
     unknown_labels, hostile_opens, guessed_sessions, control_that_is_no_term,
     frames_that_are_none, gaps_without_end, frames_before_their_time,
     repeated_open_is_one_session, plain_garbage, flood_fills_no_log,
     no_room_for_a_connection, fuzz].

init_per_suite(Config0) ->
    Seed = weft_test_nodes:seed(),
    Config = weft_test_nodes:begin_suite(Config0),
    Weft = [{handshake_timeout_ms, ?HANDSHAKE_MS}, {pending_handshakes_max, ?PENDING_MAX},
            {resume_timeout_ms, 2000}, {window_bytes, 65536}],
    Options = #{config => Weft, args => ["-kernel", "net_setuptime", "2"]},
    [A, B] = [weft_test_nodes:start(Name, Options, ?config(place, Config))
              || Name <- [victim, friend]],
    %% What the nodes give each other for it is short, for the cases that follow.
    weft_test_nodes:until(fun() -> call(A, net_kernel, connect_node, [name(B)]) end),
    ok = call(A, weft_hostile_log, install, []),
    [ok = call(N, ?T, expect, []) || N <- [A, B]],
    [ok = call(N, ?T, watch, [name(M)]) || {N, M} <- [{A, B}, {B, A}]],
    [ok = call(N, ?T, send, [name(M), #{rate => 200, bytes_max => 100, seed => Seed}])
     || {N, M} <- [{A, B}, {B, A}]],
    [{seed, Seed}, {a, A}, {b, B}, {port, port_of(A)} | Config].

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

init_per_testcase(_Case, Config) ->
    A = ?config(a, Config),
    fresh_log(A),
    _ = rand:seed(exsss, ?config(seed, Config)),
    Config.

%% The victim and its friend have talked all the time, over the one session they began with.
end_per_testcase(_Case, Config) ->
    [A, B] = [?config(Key, Config) || Key <- [a, b]],
    Received = received(A),
    weft_test_nodes:until(fun() -> received(A) > Received end),
    [?assertMatch(#{wrong := [], signals := []}, call(N, ?T, account, [])) || N <- [A, B]],
    Friend = name(B),
    ?assertMatch([#{resumes := 0}], [Info || S <- call(A, weft_sessions, list, []),
                                             #{node := N} = Info <- [info(A, S)], N =:= Friend]),
    ok.

info(A, Session) ->
    try call(A, weft_session, info, [Session]) catch _:_ -> #{node => undefined} end.

%% --- before anything is proven ----------------------------------------------------------------

port_scans(Config) ->
    Scan = fun(N) -> [?C:close(?C:connect(?config(port, Config))) || _ <- lists:seq(1, N)] end,
    refused(Config, 1, fun() -> Scan(1) end, closed),
    quiet(Config, fun() -> Scan(200) end).

%% More than may wait: each is given up after its time, and the oldest for a newcomer.
half_open_peers(Config) ->
    A = ?config(a, Config),
    ok = handshake_timeout(?SHORT_HANDSHAKE_MS, A),
    quiet(Config, fun() ->
                          Sockets = [?C:connect(?config(port, Config))
                                     || _ <- lists:seq(1, 2 * ?PENDING_MAX)],
                          [true = ?C:closed_by_peer(Socket) || Socket <- Sockets]
                  end),
    ok = handshake_timeout(?HANDSHAKE_MS, A),
    fresh_log(A),
    Before = refusals(A),
    [Oldest | Waiting] = [?C:connect(?config(port, Config)) || _ <- lists:seq(1, ?PENDING_MAX)],
    Late = ?C:connect(?config(port, Config)),
    true = ?C:closed_by_peer(Oldest),
    one_refusal(A, overload),
    [?C:close(Socket) || Socket <- [Late | Waiting]],
    weft_test_nodes:until(fun() -> refusals(A) - Before > ?PENDING_MAX end),
    ok = handshake_timeout(?SHORT_HANDSHAKE_MS, A),
    refused(Config, 1, fun() ->
                               true = ?C:closed_by_peer(?C:connect(?config(port, Config)))
                       end, timeout),
    ok = handshake_timeout(?HANDSHAKE_MS, A).

%% Of the connections that come from now on.
handshake_timeout(Ms, A) ->
    call(A, application, set_env, [weft, handshake_timeout_ms, Ms]).

%% Told or not.
refusals(A) -> maps:get(refusals, call(A, weft_counters, read, [])).

wrong_cookie(Config) ->
    refused(Config, 3,
            fun() ->
                    Socket = ?C:connect(?config(port, Config)),
                    Hello = ?C:hello(claims(Config)),
                    {ok, Challenge} = ?C:begin_handshake(Socket, Hello),
                    ?assertEqual(wrong_cookie, ?C:prove(Socket, <<"guess">>, Hello, Challenge)),
                    ?C:close(Socket)
            end, wrong_cookie).

wrong_cluster(Config) ->
    turned_away(Config, #{cluster => <<"elsewhere">>}, wrong_cluster).

wrong_version(Config) ->
    turned_away(Config, #{versions => {2, 9}}, wrong_version).

wrong_target(Config) ->
    turned_away(Config, #{target => <<"other@nowhere">>}, wrong_target).

name_of_the_node_itself(Config) ->
    turned_away(Config, #{name => atom_to_binary(name(?config(a, Config)))}, same_name).

turned_away(Config, Change, Status) ->
    refused(Config, 3,
            fun() ->
                    Socket = ?C:connect(?config(port, Config)),
                    Hello = ?C:hello(maps:merge(claims(Config), Change)),
                    ?assertMatch({Status, _}, ?C:begin_handshake(Socket, Hello)),
                    ?C:close(Socket)
            end, Status).

names_that_are_none(Config) ->
    [refused(Config, 2, fun() ->
                                Claims = maps:merge(claims(Config), Change),
                                drop_after(Config, [?C:hello(Claims)])
                        end, malformed)
     || Change <- [#{name => <<255, 254, "@x">>}, #{name => binary:copy(<<"x">>, 300)},
                   #{cluster => <<128>>}, #{target => <<192, 0>>}]],
    ok.

garbage(Config) ->
    Random = crypto:strong_rand_bytes(500),
    [refused(Config, 1, fun() -> raw(Config, Bytes) end, Reason)
     || {Bytes, Reason} <-
            [{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", not_a_node},
             {<<22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, Random/binary>>, not_a_node},
             {<<0:4096>>, empty_message},
             %% (By chance it might begin as the name of a stock node does.)
             {<<0, 40, 0, Random:39/binary>>, not_a_node},
             {<<"SSH-2.0-OpenSSH_9.2\r\n">>, not_a_node},
             {binary:copy(<<255>>, 1000), not_a_node}]],
    ok.

%% (At each byte: weft_hello_tests.)
truncated_hello(Config) ->
    Hello = ?C:hello(claims(Config)),
    [refused(Config, 1, fun() -> drop_after(Config, [binary:part(Hello, 0, Size)]) end,
             case Size of 0 -> empty_message; _ when Size < 4 -> not_a_node; _ -> malformed end)
     || Size <- lists:seq(0, 10) ++ lists:seq(11, byte_size(Hello) - 2, 5)
                    ++ [byte_size(Hello) - 1]],
    %% The length promises more than comes.
    refused(Config, 1, fun() -> raw(Config, [<<(byte_size(Hello)):16>>, "WEFT"]) end, closed).

oversized_hello(Config) ->
    refused(Config, 1, fun() -> raw(Config, <<65535:16, "WEFT", 0:16000>>) end, not_a_node).

%% What was heard of an earlier, successful connection is of no use later.
replayed_proof(Config) ->
    Claims = claims(Config),
    Hello = ?C:hello(Claims),
    Socket = ?C:connect(?config(port, Config)),
    {ok, Challenge} = ?C:begin_handshake(Socket, Hello),
    ok = ?C:prove(Socket, ?COOKIE, Hello, Challenge),
    Proof = weft_hello:mac(?COOKIE, dialer, Hello, Challenge),
    ?C:close(Socket),
    refused(Config, 3,
            fun() ->
                    Again = ?C:connect(?config(port, Config)),
                    {ok, _Other} = ?C:begin_handshake(Again, Hello),
                    ok = ?C:say(Again, Proof),
                    {ok, Answer} = ?C:hear(Again),
                    ?assertMatch({ok, wrong_cookie, _}, weft_hello:parse_answer(Answer)),
                    ?C:close(Again)
            end, wrong_cookie).

lane_without_link(Config) ->
    turned_away(Config, #{purpose => {lane, <<>>, 3}, name => <<"nobody@nowhere">>}, no_link).

%% The cookie alone does not attach a lane to somebody's link. To the node it is as one that comes
%% after its link was made anew, which is nothing to tell.
lane_with_wrong_token(Config) ->
    Name = atom_to_binary(name(?config(b, Config))),
    quiet(Config,
          fun() ->
                  Socket = ?C:connect(?config(port, Config)),
                  Hello = ?C:hello((claims(Config))#{purpose := {lane, <<>>, 1}, name := Name}),
                  {ok, Challenge} = ?C:begin_handshake(Socket, Hello),
                  ?assertEqual(no_link, ?C:prove(Socket, ?COOKIE, Hello, Challenge)),
                  true = ?C:closed_by_peer(Socket)
          end).

%% --- members that misbehave -------------------------------------------------------------------

oversized_packet(Config) ->
    Max = weft_wire:packet_bytes_max(),
    refused(Config, 2,
            fun() ->
                    Socket = member(Config),
                    ok = inet:setopts(Socket, [{packet, raw}]),
                    ok = gen_tcp:send(Socket, <<(Max + 1):32, 0:800>>),
                    true = ?C:closed_by_peer(Socket)
            end, emsgsize).

%% A later version may say more than we know: such packets are passed over, the link lives.
unknown_packets(Config) ->
    quiet(Config,
          fun() ->
                  Socket = member(Config),
                  [ok = ?C:send_packet(Socket, [Type, crypto:strong_rand_bytes(Type)])
                   || Type <- lists:seq(10, 255)],
                  ok = ?C:send_packet(Socket, <<>>),
                  ok = ?C:send_packet(Socket, weft_wire:tick(77)),
                  ?assertEqual({close, 77, unknown}, ?C:recv_packet(Socket)),
                  ?C:close(Socket)
          end).

unknown_labels(Config) ->
    quiet(Config,
          fun() ->
                  Socket = member(Config),
                  [begin
                       ok = ?C:send_packet(Socket, Packet),
                       ?assertEqual({close, 16#fffffffe, unknown}, ?C:recv_packet(Socket))
                   end || Packet <- [weft_wire:data(16#fffffffe, 1, frames, <<"x">>),
                                     weft_wire:ack(16#fffffffe, 1),
                                     weft_wire:tick(16#fffffffe),
                                     weft_wire:accept(16#fffffffe, 0)]],
                  ok = ?C:send_packet(Socket, weft_wire:close(16#fffffffe, ended)),
                  ?C:close(Socket)
          end).

hostile_opens(Config) ->
    Long = binary:copy(<<"x">>, 1000),
    quiet(Config,
          fun() ->
                  Socket = member(Config),
                  [begin
                       ok = ?C:send_packet(Socket, weft_wire:open(9, open(Open))),
                       ?assertEqual({close, 9, Reason}, ?C:recv_packet(Socket))
                   end || {Open, Reason} <-
                              [{#{target => <<"nobody@nowhere">>}, no_route},
                               {#{target => Long}, no_route},
                               {#{target => <<255, 255>>}, no_route},
                               {#{target => <<>>}, no_route},
                               {#{target => <<"x@y">>, hops => 0}, hop_limit},
                               {#{target => <<"x@y">>, mode => resume}, no_route}]],
                  %% Over the size of a name: not even looked at, and the link lives.
                  TooLong = open(#{target => binary:copy(<<"x">>, 1025)}),
                  ok = ?C:send_packet(Socket, weft_wire:open(9, TooLong)),
                  ok = ?C:send_packet(Socket, weft_wire:tick(77)),
                  ?assertEqual({close, 77, unknown}, ?C:recv_packet(Socket)),
                  ?C:close(Socket)
          end).

%% Neither an unknown session nor that of somebody else can be resumed.
guessed_sessions(Config) ->
    A = ?config(a, Config),
    Ids = [crypto:strong_rand_bytes(16) | session_ids(A)],
    true = length(Ids) > 1,
    quiet(Config,
          fun() ->
                  Socket = member(Config),
                  [begin
                       Open = open(#{mode => Mode, session => Id, received => Received,
                                     target => atom_to_binary(name(A))}),
                       ok = ?C:send_packet(Socket, weft_wire:open(9, Open)),
                       ?assertEqual({close, 9, gone}, ?C:recv_packet(Socket))
                   end || Id <- Ids, Received <- [0, 5, 1 bsl 60],
                          Mode <- [resume] ++ [new || Id =/= hd(Ids)]],
                  ?C:close(Socket)
          end).

control_that_is_no_term(Config) ->
    A = ?config(a, Config),
    Subscriber = call(A, erlang, spawn, [timer, sleep, [infinity]]),
    ok = call(A, weft_links, subscribe, [weft_hostile_core, Subscriber]),
    Core = <<"weft_hostile_core">>,
    %% The victim takes this one for a neighbour and calls back: not under the name of the others.
    Claims = (claims(Config))#{name := <<"neighbour@nowhere">>},
    refused(Config, 2,
            fun() ->
                    Socket = ?C:authenticate(?config(port, Config), Claims, ?COOKIE),
                    ok = ?C:send_packet(Socket, weft_wire:control(<<"no_such_core">>, <<131>>)),
                    ok = ?C:send_packet(Socket, weft_wire:control(Core, <<131, 104, 255>>)),
                    true = ?C:closed_by_peer(Socket)
            end, bad_control_message),
    true = call(A, erlang, exit, [Subscriber, kill]).

%% A session whose data is no sequence of frames ends; only that session does.
frames_that_are_none(Config) ->
    quiet(Config,
          fun() ->
                  Socket = opened(Config, crypto:strong_rand_bytes(16)),
                  [ok = ?C:send_packet(Socket, weft_wire:data(9, N, frames, Bytes))
                   || {N, Bytes} <- [{1, <<1000:32, "short">>}, {2, <<>>}, {3, <<"x">>}]],
                  ok = ?C:send_packet(Socket, weft_wire:data(9, 4, handshake, <<"garbage">>)),
                  ?assertEqual({close, 9, ended}, ?C:recv_packet(Socket)),
                  ?C:close(Socket)
          end).

%% What comes out of order waits, but not without end: the circuit is closed.
gaps_without_end(Config) ->
    overload(Config, 2).

%% Nor do frames that come before the handshake of the distribution is over.
frames_before_their_time(Config) ->
    overload(Config, 1).

%% Sends payloads from this number on, without end, until the circuit is closed.
overload(Config, First) ->
    quiet(Config,
          fun() ->
                  Socket = opened(Config, crypto:strong_rand_bytes(16)),
                  Payload = binary:copy(<<0>>, 65536),
                  Sender = spawn_link(fun() -> send_all(Socket, First, Payload) end),
                  ?assertEqual({close, 9, overload}, ?C:recv_packet(Socket)),
                  unlink(Sender),
                  exit(Sender, kill),
                  ?C:close(Socket)
          end).

send_all(Socket, Sequence, Payload) ->
    case ?C:send_packet(Socket, weft_wire:data(9, Sequence, frames, Payload)) of
        ok -> send_all(Socket, Sequence + 1, Payload);
        {error, _} -> ok
    end.

%% A connection on which a session is open under label 9.
opened(Config, Id) ->
    Socket = member(Config),
    Open = open(#{session => Id, target => atom_to_binary(name(?config(a, Config)))}),
    ok = ?C:send_packet(Socket, weft_wire:open(9, Open)),
    ?assertEqual({accept, 9, 0}, ?C:recv_packet(Socket)),
    Socket.

%% A peer that did not hear our answer opens once more: that is the same session.
repeated_open_is_one_session(Config) ->
    A = ?config(a, Config),
    quiet(Config,
          fun() ->
                  Id = crypto:strong_rand_bytes(16),
                  Socket = opened(Config, Id),
                  Ids = session_ids(A),
                  Open = open(#{session => Id, target => atom_to_binary(name(A))}),
                  ok = ?C:send_packet(Socket, weft_wire:open(11, Open)),
                  {close, 9, broken} = accepted_then(11, Socket),
                  ?assertEqual(2, length(call(A, weft_sessions, list, []))),
                  ?assertEqual(Ids, session_ids(A)),
                  ?C:close(Socket)
          end).

session_ids(Node) ->
    [element(1, Row) || Row <- call(Node, ets, tab2list, [weft_sessions])].

%% The new path is accepted and the old one closed, in any order.
accepted_then(Label, Socket) ->
    case {?C:recv_packet(Socket), ?C:recv_packet(Socket)} of
        {{accept, Label, 0}, Other} -> Other;
        {Other, {accept, Label, 0}} -> Other
    end.

%% A stock handshake that is none, or that ends in the middle.
plain_garbage(Config) ->
    [refused(Config, 1, fun() -> raw(Config, Bytes) end, malformed)
     || Bytes <- [<<4:16, "Nxyz">>, <<15:16, $N, 0:64, 1:32, 0:16>>, <<1:16, $N>>,
                  <<20:16, $N, 0:64, 1:32, 9:16, "a@b", 255, 255>>]],
    Name = "stranger@nowhere",
    refused(Config, 1, fun() ->
                               raw(Config, [<<(15 + length(Name)):16, $N, 16#d07df7fbd:64, 1:32,
                                              (length(Name)):16>>, Name])
                       end, closed).

%% --- in masses --------------------------------------------------------------------------------

flood_fills_no_log(Config) ->
    Node = weft_test_nodes:start(flooded, #{}, ?config(place, Config)),
    ok = call(Node, weft_hostile_log, install, []),
    Port = port_of(Node),
    [begin
         Socket = ?C:connect(Port),
         ok = gen_tcp:send(Socket, "GET / HTTP/1.0\r\n\r\n"),
         true = ?C:closed_by_peer(Socket),
         ?C:close(Socket)
     end || _ <- lists:seq(1, 500)],
    %% After the period the rest is told in one line.
    Events = collect(Node, fun(Es) -> lists:any(fun is_sum/1, Es) end, []),
    Told = length([x || {_, #{what := connection_refused}, _} <- Events]),
    [Suppressed] = [Count || {_, #{what := connections_refused, suppressed := Count}, _} <- Events],
    ct:pal("~b events, of which ~b refusals, and ~b summed up",
           [length(Events), Told, Suppressed]),
    ?assertEqual(500, Told + Suppressed),
    ?assert(length(Events) =< 21),
    weft_test_nodes:kill(Node).

is_sum({_, #{what := What}, _}) -> What =:= connections_refused;
is_sum(_) -> false.

collect(Node, Done, Events) ->
    weft_test_nodes:until(fun() -> call(Node, ets, info, [weft_hostile_log, size]) > 0 end, 20000),
    All = Events ++ call(Node, weft_hostile_log, take, []),
    case Done(All) of
        true -> All;
        false -> collect(Node, Done, All)
    end.

%% A node that has no port left drops who calls, says so once, and goes on when there is one again.
no_room_for_a_connection(Config) ->
    Node = weft_test_nodes:start(full, #{args => ["+Q", "1024"]}, ?config(place, Config)),
    ok = call(Node, weft_hostile_log, install, []),
    Port = port_of(Node),
    Target = name(Node),
    Occupier = call(Node, ?MODULE, occupy, []),
    [true = ?C:closed_by_peer(?C:connect(Port)) || _ <- lists:seq(1, 5)],
    true = call(Node, erlang, exit, [Occupier, kill]),
    weft_test_nodes:until(fun() -> call(Node, erlang, system_info, [port_count]) < 1000 end),
    Socket = ?C:connect(Port),
    {ok, _Challenge} = ?C:begin_handshake(Socket, ?C:hello(?C:claims(Target))),
    ?C:close(Socket),
    ?assertMatch([{warning, #{what := connection_refused, reason := {no_room, system_limit}}, _}],
                 [Event || {_, #{reason := {no_room, _}}, _} = Event
                               <- call(Node, weft_hostile_log, take, [])]),
    weft_test_nodes:kill(Node).

%% A process that holds all ports that are left.
occupy() ->
    Caller = self(),
    Pid = spawn(fun() ->
                        fill(gen_udp:open(0)),
                        Caller ! {self(), full},
                        receive stop -> ok end
                end),
    receive {Pid, full} -> Pid end.

fill({ok, _Socket}) -> fill(gen_udp:open(0));
fill({error, system_limit}) -> ok.

%% Valid messages with something changed, on real sockets: handshakes first, then packets of an
%% authenticated peer, some of them in a session. (The codecs alone get more of it in
%% weft_wire_tests and weft_hello_tests.)
fuzz(Config) ->
    A = ?config(a, Config),
    Handshakes = list_to_integer(os:getenv("FUZZ_HANDSHAKES", fuzz_count("3000", "1000"))),
    Packets = list_to_integer(os:getenv("FUZZ_PACKETS", fuzz_count("50000", "15000"))),
    _ = fuzz_handshakes(Config, 200),
    _ = fuzz_packets(Config, 2000),
    settle(A),
    %% First, since to ask for it makes atoms.
    Memory = memory(A),
    %% Of proc_lib, when the first process ends by an exit: one that serves a stream which another
    %% process serves already.
    'Argument__1' = call(A, erlang, list_to_atom, ["Argument__1"]),
    Atoms = call(A, erlang, system_info, [atom_count]),
    Statuses = fuzz_handshakes(Config, Handshakes),
    Connections = fuzz_packets(Config, Packets),
    settle(A),
    ct:pal("~b handshakes: ~p~n~b packets on ~b connections~nmemory ~b before, ~b after",
           [Handshakes, Statuses, Packets, Connections, Memory, memory(A)]),
    ?assertEqual(Atoms, call(A, erlang, system_info, [atom_count])),
    ?assert(memory(A) < Memory + ?MEMORY_MAX),
    ?assertEqual([], crashes(A)).

fuzz_count(Long, Usual) ->
    case os:getenv("FULL") of false -> Usual; _ -> Long end.

fuzz_handshakes(Config, Count) ->
    lists:foldl(fun(_, Counts) ->
                        Outcome = fuzz_handshake(Config),
                        maps:update_with(Outcome, fun(N) -> N + 1 end, 1, Counts)
                end, #{}, lists:seq(1, Count)).

fuzz_handshake(Config) ->
    Socket = ?C:connect(?config(port, Config)),
    Hello = ?C:hello(claims(Config)),
    Outcome = case rand:uniform(3) of
                  1 -> fuzz_proof(Socket, Hello);
                  _ -> fuzz_hello(Socket, weft_hostile_mutation:mutate(Hello))
              end,
    _ = inet:setopts(Socket, [{linger, {true, 0}}]),
    ?C:close(Socket),
    Outcome.

fuzz_hello(Socket, Hello) ->
    _ = ?C:say(Socket, Hello),
    _ = gen_tcp:shutdown(Socket, write),
    case ?C:hear(Socket) of
        {ok, Challenge} ->
            answered(weft_hello:parse_challenge(Challenge), Hello, Challenge);
        {error, Reason} ->
            Reason
    end.

answered({ok, #{status := Status}}, _Hello, _Challenge) -> Status;
answered({error, malformed}, Hello, Challenge) -> ct:fail({no_challenge, Challenge, to, Hello}).

fuzz_proof(Socket, Hello) ->
    {ok, Challenge} = ?C:begin_handshake(Socket, Hello),
    Proof = weft_hello:mac(?COOKIE, dialer, Hello, Challenge),
    _ = ?C:say(Socket, weft_hostile_mutation:mutate(Proof)),
    _ = gen_tcp:shutdown(Socket, write),
    case ?C:hear(Socket) of
        {ok, Answer} -> {ok, Status, _} = weft_hello:parse_answer(Answer), {proof, Status};
        {error, Reason} -> {proof, Reason}
    end.

%% Returns how many connections it took: some packets end one.
fuzz_packets(Config, Count) ->
    fuzz_packets(Config, Count, 0).

fuzz_packets(_Config, Left, Connections) when Left =< 0 ->
    Connections;
fuzz_packets(Config, Left, Connections) ->
    Socket = member(Config),
    Target = atom_to_binary(name(?config(a, Config))),
    ok = inet:setopts(Socket, [{active, true}]),
    Sent = fuzz_connection(Socket, Target, min(Left, 250), 0),
    _ = ?C:send_packet(Socket, weft_wire:tick(?LAST_LABEL)),
    all_processed(Socket),
    _ = inet:setopts(Socket, [{linger, {true, 0}}]),
    ?C:close(Socket),
    fuzz_packets(Config, Left - Sent, Connections + 1).

fuzz_connection(_Socket, _Target, 0, Sent) ->
    Sent;
fuzz_connection(Socket, Target, Left, Sent) ->
    Packet = iolist_to_binary(weft_hostile_mutation:packet(Target)),
    Mutated = case rand:uniform(2) of
                  1 -> Packet;
                  2 -> weft_hostile_mutation:mutate(Packet)
              end,
    case ?C:send_packet(Socket, Mutated) of
        ok -> fuzz_connection(Socket, Target, Left - 1, Sent + 1);
        {error, _} -> max(1, Sent)
    end.

all_processed(Socket) ->
    receive
        {tcp, Socket, Packet} ->
            case weft_wire:decode(Packet) of
                {close, ?LAST_LABEL, unknown} -> ok;
                _ -> all_processed(Socket)
            end;
        {tcp_closed, Socket} ->
            ok
    after 10000 ->
            ct:fail(not_processed)
    end.

%% --- steps and checks -------------------------------------------------------------------------

port_of(#{node := Name} = Node) ->
    [Short, Host] = string:split(atom_to_list(Name), "@"),
    {port, Port, _} = call(Node, erl_epmd, port_please, [Short, Host]),
    Port.

claims(Config) -> ?C:claims(name(?config(a, Config))).

member(Config) -> ?C:authenticate(?config(port, Config), claims(Config), ?COOKIE).

open(Change) ->
    maps:merge(#{mode => new, kind => distribution, hops => 3,
                 session => crypto:strong_rand_bytes(16), received => 0,
                 source => <<"hostile@nowhere">>, target => <<"nobody@nowhere">>}, Change).

raw(Config, Bytes) ->
    Socket = ?C:connect(?config(port, Config)),
    _ = gen_tcp:send(Socket, Bytes),
    _ = gen_tcp:shutdown(Socket, write),
    true = ?C:closed_by_peer(Socket),
    ?C:close(Socket).

drop_after(Config, Messages) ->
    Socket = ?C:connect(?config(port, Config)),
    [_ = ?C:say(Socket, Message) || Message <- Messages],
    true = ?C:closed_by_peer(Socket),
    ?C:close(Socket).

received(Node) ->
    maps:get(received, call(Node, ?T, account, [])).

%% Each time the attack is made there is one event, and its text is that of the reason.
refused(Config, Times, Attack, Reason) ->
    A = ?config(a, Config),
    harmless(Config, fun() ->
                             [begin fresh_log(A), Attack(), one_refusal(A, Reason) end
                              || _ <- lists:seq(1, Times)]
                     end).

one_refusal(A, Reason) ->
    Events = collect(A, fun(Es) -> Es =/= [] end, []),
    ?assertMatch([{warning, #{what := connection_refused}, _}], Events),
    [{warning, #{reason := Actual, from := {{127, 0, 0, 1}, _Port}}, Text}] = Events,
    ?assertEqual(Reason, reason(Actual)),
    ?assertNotEqual(nomatch, string:find(Text, "weft refused a connection")).

reason({Reason, _}) -> Reason;
reason(Reason) -> Reason.

%% The attack may be told or not, but nothing crashes.
quiet(Config, Attack) ->
    harmless(Config, Attack).

harmless(Config, Attack) ->
    A = ?config(a, Config),
    Attack(),
    settle(A),
    Memory = memory(A),
    Atoms = atoms_after(A, Attack),
    %% Code that is loaded late brings its atoms once, an attack that makes them does so each time.
    ?assert(Atoms =:= atoms_after(A, Attack) orelse atoms_after(A, fun() -> ok end)
                =:= atoms_after(A, Attack)),
    ?assert(memory(A) < Memory + ?MEMORY_MAX),
    ?assertEqual([], crashes(A)).

atoms_after(A, Attack) ->
    Attack(),
    settle(A),
    call(A, erlang, system_info, [atom_count]).

%% Links of attackers and what they began are gone: only the friend's is left.
settle(A) ->
    weft_test_nodes:until(fun() -> length(call(A, weft_sessions, list, [])) =:= 1 end, 20000).

memory(A) ->
    [call(A, erlang, garbage_collect, [Pid]) || Pid <- call(A, erlang, processes, [])],
    call(A, erlang, memory, [total]).

crashes(A) ->
    [Event || {Level, _, _} = Event <- call(A, weft_hostile_log, take, []),
              lists:member(Level, [error, critical, alert, emergency])].

%% Begins a new period of `weft_refusals', as if ten seconds had passed, and forgets the events.
fresh_log(A) ->
    period = call(A, erlang, send, [weft_refusals, period]),
    _ = call(A, weft_hostile_log, take, []),
    ok.
