%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes that reach nothing but a RabbitMQ broker: they talk, and nothing is lost whatever
%% happens to the broker, or whatever others write there.
%%
%% No node can find another: there is no epmd for them (`weft_epmd' without ports), and each listens
%% on a port that nobody knows. Skipped where RabbitMQ is not installed.
-module(weft_amqp_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2, init_per_testcase/2, end_per_testcase/2]).
-export([three_nodes_talk/1, connections_begin_and_end_with_the_application/1,
         large_messages_go_in_parts/1, lanes_of_channels_go_there_too/1,
         a_killed_node_comes_back_as_another/1, a_node_that_stops_says_so/1,
         a_node_leaves_and_joins_again/1,
         of_two_nodes_with_one_name_the_later_stays/1,
         a_node_whose_carrier_starts_again_stays/1, what_others_write_does_no_harm/1,
         a_blocked_broker_makes_senders_wait/1, closed_connections_lose_nothing/1,
         a_broker_that_rejects_messages_loses_nothing/1,
         a_restarted_broker_loses_nothing/1, a_broker_that_is_not_there_is_passed_over/1,
         a_cluster_changes_to_the_broker_and_back/1,
         a_wrong_password_is_said_and_tried_less_often/1,
         the_other_broker_of_a_cluster_takes_over/1, what_is_missing_or_wrong_is_said_at_start/1]).

-define(UNREACHABLE, ["-start_epmd", "false", "-epmd_module", "weft_epmd",
                      "-kernel", "inet_dist_use_interface", "{127,0,0,1}"]).
-define(LONG_MS, 90000).
%% So often a node is asked for its place at the broker.
-define(TRIES, 5).

suite() -> [{timetrap, {minutes, 5}}].

%% A cluster of three brokers takes half a minute to come together.
all() ->
    [{group, one_broker}, what_is_missing_or_wrong_is_said_at_start]
        ++ [the_other_broker_of_a_cluster_takes_over || os:getenv("FULL") =/= false].

%% Those of `pair' have the same two nodes. Links and lanes are counted from the first case on, and
%% the last one stops a node.
groups() ->
    [{one_broker, [],
      [{group, pair}, three_nodes_talk, connections_begin_and_end_with_the_application,
       a_killed_node_comes_back_as_another, a_node_whose_carrier_starts_again_stays,
       of_two_nodes_with_one_name_the_later_stays,
       a_restarted_broker_loses_nothing, a_broker_that_is_not_there_is_passed_over,
       a_wrong_password_is_said_and_tried_less_often, a_cluster_changes_to_the_broker_and_back]},
     {pair, [],
      [what_others_write_does_no_harm, large_messages_go_in_parts,
       a_broker_that_rejects_messages_loses_nothing, a_blocked_broker_makes_senders_wait,
       closed_connections_lose_nothing, lanes_of_channels_go_there_too,
       a_node_leaves_and_joins_again, a_node_that_stops_says_so]}].

init_per_suite(Config) ->
    case weft_amqp_test_broker:is_installed() of
        true ->
            {ok, Started} = application:ensure_all_started(amqp_client),
            [{started, Started} | weft_test_nodes:begin_suite(Config)];
        false ->
            {skip, "no RabbitMQ here (Debian package rabbitmq-server)"}
    end.

end_per_suite(Config) ->
    ok = weft_test_nodes:end_suite(Config),
    lists:foreach(fun application:stop/1, lists:reverse(?config(started, Config))).

init_per_group(one_broker, Config) ->
    [{keeper, weft_amqp_test_keeper:start([broker(Config)])} | Config];
%% In `what_others_write_does_no_harm' thirty megabytes stand before the keepalives.
init_per_group(pair, Config0) ->
    Config = [{cluster_name, "pair"} | Config0],
    Nodes = [start(Name, [{message_bytes, 4096}],
                   [{resume_timeout_ms, 600000}, {link_timeout_ms, 60000}], Config)
             || Name <- [a, b]],
    until_together(Nodes),
    [{pair, Nodes} | Config].

end_per_group(one_broker, Config) ->
    weft_amqp_test_keeper:stop(?config(keeper, Config));
end_per_group(pair, _Config) ->
    weft_test_nodes:stop_all().

init_per_testcase(Case, Config) ->
    case ?config(pair, Config) of
        undefined -> [{cluster_name, atom_to_list(Case)} | Config];
        _ -> Config
    end.

end_per_testcase(_Case, Config) ->
    ?config(pair, Config) =/= undefined orelse weft_test_nodes:stop_all().

%% --- cases with one broker --------------------------------------------------------------------

three_nodes_talk(Config) ->
    Nodes = [A, B, C] = [start(Name, Config) || Name <- [a, b, c]],
    until_together(Nodes),
    lists:foreach(fun({X, Y}) -> talk(X, Y) end, [{A, B}, {B, C}, {C, A}]),
    [?assertEqual([weft_amqp_test_keeper:port(?config(keeper, Config))],
                  call(Node, weft_amqp_test_talk, peer_ports, [])) || Node <- Nodes],
    weft_test_nodes:until(fun() -> maps:get(lanes, broker_status(A)) =:= 2 end, ?LONG_MS),
    ?assertMatch(#{state := up, ups := 1, last_error := "none"}, broker_status(A)),
    ?assertMatch({pubsub, #{broker := "..."}}, maps:get(topology, call(A, weft, status, []))).

talk(X, Y) ->
    ok = call(X, weft_amqp_test_talk, all, [name(Y)]).

%% Unlike those of other topologies, since the client of the broker is an application itself.
connections_begin_and_end_with_the_application(Config) ->
    A = start(a, Config),
    Topology = call(A, weft, topology, []),
    B = start_only(b, Topology, [], all, Config),
    ?assertEqual(false, call(B, net_kernel, connect_node, [name(A)])),
    ?assertEqual([], call(B, weft_amqp_test_talk, peer_ports, [])),
    [begin
         {ok, _} = call(B, application, ensure_all_started, [weft]),
         until_together([A, B]),
         talk(B, A),
         ok = call(B, application, stop, [weft]),
         weft_test_nodes:until(fun() -> call(A, erlang, nodes, []) =:= [] end, ?LONG_MS),
         weft_test_nodes:until(fun() -> call(B, weft_amqp_test_talk, peer_ports, []) =:= [] end)
     end || _ <- [first, again]].

large_messages_go_in_parts(Config) ->
    [A, B] = ?config(pair, Config),
    talk(A, B),
    Resumes = resumes(A),
    [?assertEqual(ok, call(A, weft_amqp_test_talk, echo, [name(B), Bytes]))
     || Bytes <- [1, 4000, 4096, 4097, 100000, 3000000]],
    ?assertEqual(Resumes, resumes(A)).

lanes_of_channels_go_there_too(Config) ->
    [A, B] = ?config(pair, Config),
    ok = call(A, weft_amqp_test_talk, by_channel, [name(B), 1000]),
    weft_test_nodes:until(fun() ->
                                  [#{lanes := Lanes}] = maps:get(links, call(A, weft, status, [])),
                                  Lanes > 1
                          end, ?LONG_MS).

a_killed_node_comes_back_as_another(Config) ->
    Nodes = [A, B] = [start(Name, [], [{resume_timeout_ms, 3000}], Config) || Name <- [a, b]],
    until_together(Nodes),
    ok = call(A, weft_resume_traffic, watch_nodes, []),
    weft_test_nodes:kill(B),
    weft_test_nodes:until(fun() -> downs(A) =:= [name(B)] end, ?LONG_MS),
    Again = start(b, Config),
    until_together([A, Again]),
    talk(A, Again).

%% Both go on announcing themselves at the broker.
a_node_leaves_and_joins_again(Config) ->
    [A, B] = Nodes = ?config(pair, Config),
    ok = call(B, weft, join, [name(A)]),
    ok = call(B, weft, leave, []),
    ?assertEqual({[], [name(B)]}, {call(B, erlang, nodes, []), call(B, weft, members, [])}),
    weft_test_nodes:until(fun() -> {[], [name(A)]} =:= {call(A, erlang, nodes, []),
                                                        call(A, weft, members, [])} end),
    ok = call(B, weft, join, [name(A)]),
    until_together(Nodes),
    talk(A, B).

%% Long before its sessions time out.
a_node_that_stops_says_so(Config) ->
    [A, B] = ?config(pair, Config),
    ok = call(A, weft_resume_traffic, watch_nodes, []),
    ok = call(B, init, stop, []),
    weft_test_nodes:until(fun() -> downs(A) =:= [name(B)] end, ?LONG_MS),
    %% Nor has it been forgotten for its silence, which takes six intervals.
    weft_test_nodes:until(fun() -> maps:get(nodes, broker_status(A)) =:= [] end, 3000).

%% It has another incarnation then, and hears what it says of itself.
a_node_whose_carrier_starts_again_stays(Config) ->
    [A, B] = Nodes = [start(Name, Config) || Name <- [a, b]],
    until_together(Nodes),
    Carrier = call(A, erlang, whereis, [weft_carrier_sup]),
    true = call(A, erlang, exit, [Carrier, kill]),
    weft_test_nodes:until(fun() ->
                                  Now = call(A, erlang, whereis, [weft_carrier_sup]),
                                  is_pid(Now) andalso Now =/= Carrier
                          end, ?LONG_MS),
    weft_test_nodes:until(fun() -> call(A, net_adm, ping, [name(B)]) =:= pong end, ?LONG_MS),
    %% It has announced itself when this one is there.
    C = start(c, Config),
    until_together([A, B, C]),
    talk(A, B),
    talk(C, A),
    ?assertMatch(#{state := up, ups := 1}, broker_status(A)).

of_two_nodes_with_one_name_the_later_stays(Config) ->
    [Older, Other] = Nodes = [start(Name, Config) || Name <- [a, b]],
    until_together(Nodes),
    Later = start(a, Config),
    weft_test_nodes:until(fun() -> maps:get(state, broker_status(Older)) =:= waiting end,
                          ?LONG_MS),
    until_together([Later, Other]),
    ?assertNotEqual(nomatch, string:find(maps:get(last_error, broker_status(Older)),
                                         "another node called a@")),
    talk(Later, Other).

%% Garbage, messages with our head and garbage behind it, recorded messages once more, for every
%% queue and for all. Hundreds of them would make an atom; a few come with code that is loaded now.
what_others_write_does_no_harm(Config) ->
    [A, B] = Nodes = ?config(pair, Config),
    talk(A, B),
    Resumes = resumes(A),
    Atoms = [call(Node, erlang, system_info, [atom_count]) || Node <- Nodes],
    Exchange = list_to_binary("weft." ++ ?config(cluster_name, Config)),
    Keeper = ?config(keeper, Config),
    Written = weft_amqp_test_intruder:write(weft_amqp_test_keeper:url(Keeper), Exchange, 2200),
    ?assert(Written >= 2200),
    %% What is behind it in the queues has been read.
    talk(A, B),
    talk(B, A),
    [?assert(call(Node, erlang, system_info, [atom_count]) < Before + 100)
     || {Node, Before} <- lists:zip(Nodes, Atoms)],
    ?assertEqual(Resumes, resumes(A)),
    weft_test_nodes:until(fun() -> maps:get(lanes, broker_status(A)) =:= 1 end, ?LONG_MS),
    [?assertMatch(#{state := up, ups := 1, nodes := [_]}, broker_status(Node)) || Node <- Nodes],
    weft_test_nodes:until(fun() ->
                                  {ok, Log} = file:read_file(maps:get(log, A)),
                                  binary:match(Log, <<"no node with our cookie">>) =/= nomatch
                          end).

a_blocked_broker_makes_senders_wait(Config) ->
    [A, B] = ?config(pair, Config),
    Keeper = ?config(keeper, Config),
    ok = call(B, weft_resume_traffic, expect, []),
    ok = call(A, weft_resume_traffic, watch, [name(B)]),
    ok = call(A, weft_resume_traffic, send,
              [name(B), #{rate => 200, bytes_max => 1000, seed => 3}]),
    until_received(B, 100),
    _ = weft_amqp_test_keeper:ctl(["set_vm_memory_high_watermark", "0.00001"], Keeper),
    weft_test_nodes:until(fun() -> maps:get(state, broker_status(A)) =:= blocked end, ?LONG_MS),
    _ = weft_amqp_test_keeper:ctl(["set_vm_memory_high_watermark", "0.6"], Keeper),
    weft_test_nodes:until(fun() -> maps:get(state, broker_status(A)) =:= up end, ?LONG_MS),
    all_arrived(A, B).

closed_connections_lose_nothing(Config) ->
    [A, B] = Nodes = ?config(pair, Config),
    traffic(A, B),
    Before = lists:map(fun ups/1, Nodes),
    _ = weft_amqp_test_keeper:ctl(["close_all_connections", "test"], ?config(keeper, Config)),
    weft_test_nodes:until(
      fun() -> lists:all(fun({Ups, Node}) -> ups(Node) > Ups end, lists:zip(Before, Nodes)) end,
      ?LONG_MS),
    until_received(B, received(B) + 200),
    all_arrived(A, B).

%% A limit on the length of queues makes it say no (nack) to what is over it.
a_broker_that_rejects_messages_loses_nothing(Config) ->
    [A, B] = ?config(pair, Config),
    Resumes = resumes(A),
    traffic(A, B),
    Keeper = ?config(keeper, Config),
    Policy = "{\"max-length-bytes\": 1, \"overflow\": \"reject-publish\"}",
    _ = weft_amqp_test_keeper:ctl(["set_policy", "--apply-to", "queues", "short", "^amq[.]gen",
                                   Policy], Keeper),
    weft_test_nodes:until(fun() -> is_resuming(A, Resumes) end, ?LONG_MS),
    _ = weft_amqp_test_keeper:ctl(["clear_policy", "short"], Keeper),
    until_received(B, received(B) + 200),
    all_arrived(A, B).

is_resuming(Node, Before) ->
    [#{state := State, resumes := Resumes}] = maps:get(sessions, call(Node, weft, status, [])),
    State =:= resuming orelse Resumes > Before.

%% And whoever comes while it is not there waits for it.
a_restarted_broker_loses_nothing(Config) ->
    Nodes = [A, B] = [start(Name, [], [{resume_timeout_ms, 600000}], Config) || Name <- [a, b]],
    until_together(Nodes),
    traffic(A, B),
    ok = weft_amqp_test_keeper:kill(1, ?config(keeper, Config)),
    weft_test_nodes:until(fun() -> maps:get(state, broker_status(A)) =:= waiting end, ?LONG_MS),
    C = start(c, Config),
    weft_test_nodes:until(fun() -> is_error("nothing listens there", C) end, ?LONG_MS),
    ?assertEqual(false, call(C, net_kernel, connect_node, [name(A)])),
    ok = weft_amqp_test_keeper:start_again(1, ?config(keeper, Config)),
    weft_test_nodes:until(fun() -> ups(A) >= 2 end, ?LONG_MS),
    until_received(B, received(B) + 200),
    all_arrived(A, B),
    until_together([C | Nodes]),
    talk(C, A).

%% Whoever is second in the list of one node is first in that of the other.
a_broker_that_is_not_there_is_passed_over(Config) ->
    Here = weft_amqp_test_keeper:url(?config(keeper, Config)),
    Absent = "amqp://guest:guest@127.0.0.1:" ++ integer_to_list(weft_test_nodes:free_port()),
    Nodes = [A, B] = [start(a, [{broker, [Absent, Here]}], [], Config),
                      start(b, [{broker, [Here, Absent]}], [], Config)],
    until_together(Nodes),
    talk(A, B).

a_wrong_password_is_said_and_tried_less_often(Config) ->
    Keeper = ?config(keeper, Config),
    _ = weft_amqp_test_keeper:ctl(["add_user", "node", "right"], Keeper),
    Url = fun(User, Password) -> weft_amqp_test_keeper:url(User, Password, Keeper) end,
    A = start(a, [{broker, Url("node", "wrong")}], [], Config),
    weft_test_nodes:until(fun() -> is_error("refuses user and password", A) end, ?LONG_MS),
    {ok, Log} = file:read_file(maps:get(log, A)),
    ?assertEqual(nomatch, binary:match(Log, <<"wrong">>)),
    B = start(b, [{broker, Url("node", "right") ++ "/other"}], [], Config),
    weft_test_nodes:until(fun() -> is_error("vhost", B) orelse is_error("virtual host", B) end,
                          ?LONG_MS),
    _ = [weft_amqp_test_keeper:ctl(Args, Keeper)
         || Args <- [["change_password", "node", "wrong"],
                     ["set_permissions", "node", "^(weft|amq\\.gen).*",
                      "^(weft|amq\\.gen|amq\\.default).*", "^(weft|amq\\.gen).*"]]],
    C = start(c, [{broker, Url("node", "wrong")}], [], Config),
    until_together([A, C]),
    talk(C, A).

%% Node by node, while one talks to another; these can dial each other. Nobody hears of anything.
a_cluster_changes_to_the_broker_and_back(Config) ->
    Mesh = {full_mesh, #{seeds => ['a@127.0.0.1']}},
    Nodes = [A, _, C] = [start_reachable(Name, Mesh, Config) || Name <- [a, b, c]],
    until_together(Nodes),
    traffic(A, C),
    Keeper = ?config(keeper, Config),
    Pubsub = {pubsub, #{broker => weft_amqp_test_keeper:url(Keeper), announce_ms => 1000}},
    Ports = [{Pubsub, [weft_amqp_test_keeper:port(Keeper)]}, {Mesh, any}],
    [begin
         [?assertEqual(ok, call(Node, weft, topology, [Topology])) || Node <- Nodes],
         weft_test_nodes:until(
           fun() -> [] =:= [Node || Node <- Nodes, not is_linked_by(Expected, Node, Config)] end,
           ?LONG_MS),
         until_received(C, received(C) + 200)
     end || {Topology, Expected} <- Ports],
    all_arrived(A, C),
    ok = call(A, weft, topology, [Pubsub]),
    {error, Text} = call(A, weft, topology, [Pubsub]),
    ?assertNotEqual(nomatch, string:find(Text, "at a broker already")).

%% To all others, and with connections to nothing but the broker, or none to it.
is_linked_by(Expected, Node, Config) ->
    #{links := Links, broker := Broker} = call(Node, weft, status, []),
    #{epmd := #{port := EpmdPort}} = ?config(place, Config),
    Ports = call(Node, weft_amqp_test_talk, peer_ports, []) -- [EpmdPort],
    [up, up] =:= [State || #{state := State} <- Links]
        andalso case Expected of
                    any -> Broker =:= none;
                    _ -> Ports =:= Expected
                end.

%% --- a case with brokers of its own -----------------------------------------------------------

%% Brokers of version 4 serve as long as most of their cluster are there, so there is a third.
the_other_broker_of_a_cluster_takes_over(Config) ->
    Brokers = [broker(Config) || _ <- lists:seq(1, 3)],
    Keeper = weft_amqp_test_keeper:start(Brokers),
    ok = weft_amqp_test_keeper:join(Keeper),
    [One, Two, _] = [weft_amqp_test_broker:url(Broker) || Broker <- Brokers],
    Resume = [{resume_timeout_ms, 600000}],
    Nodes = [A, B] = [start(a, [{broker, [One, Two]}], Resume, Config),
                      start(b, [{broker, [Two, One]}], Resume, Config)],
    until_together(Nodes),
    traffic(A, B),
    ok = weft_amqp_test_keeper:kill(1, Keeper),
    weft_test_nodes:until(fun() -> ups(A) >= 2 end, ?LONG_MS),
    until_received(B, received(B) + 200),
    all_arrived(A, B),
    weft_amqp_test_keeper:stop(Keeper).

%% --- without a broker -------------------------------------------------------------------------

what_is_missing_or_wrong_is_said_at_start(Config) ->
    Wrong = [{#{}, "needs the URL of a message broker"},
             {#{broker => "http://u:secret@h"}, "no URL"},
             {#{broker => []}, "no URL"},
             {#{broker => "amqp://u:secret@h:port"}, "cannot be read"},
             {#{broker => "amqp://u:secret@h", brokers => 1}, "no option brokers"},
             {#{broker => "amqp://u:secret@h", announce_ms => 1}, "announce_ms"}],
    Right = #{broker => "amqp://u:secret@h"},
    [begin
         Node = start_only(a, {pubsub, #{}}, [], Paths, Config),
         [is_said_at_start(Options, Text, Node) || {Options, Text} <- Cases],
         weft_test_nodes:kill(Node)
     end || {Paths, Cases} <- [{all, Wrong}, {without_client, [{Right, "amqp_client"}]},
                               {without_application, [{Right, "weft_amqp"}]}]].

is_said_at_start(Options, Text, Node) ->
    ok = call(Node, application, set_env, [weft, topology, {pubsub, Options}]),
    {error, {weft, Reason}} = call(Node, weft_amqp_test_talk, start_error, []),
    ?assertNotEqual({nomatch, Reason}, {string:find(Reason, Text), Reason}),
    ?assertEqual(nomatch, string:find(Reason, "secret")).

%% --- nodes ------------------------------------------------------------------------------------

broker(Config) ->
    #{epmd := #{port := EpmdPort}, dir := Dir} = ?config(place, Config),
    Own = lists:concat(["broker", erlang:unique_integer([positive])]),
    weft_amqp_test_broker:new(filename:join(Dir, Own), EpmdPort).

start(Name, Config) ->
    start(Name, [], [], Config).

start(Name, Options, More, Config) ->
    Given = maps:from_list(Options),
    Url = case Given of
              #{broker := _} -> #{};
              #{} -> #{broker => weft_amqp_test_keeper:url(?config(keeper, Config))}
          end,
    Topology = {pubsub, maps:merge(maps:merge(#{announce_ms => 1000}, Url), Given)},
    Node = start_only(Name, Topology, More, all, Config),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

start_reachable(Name, Topology, Config) ->
    Node = start_with(["-kernel", "inet_dist_use_interface", "{127,0,0,1}" | path_args(all)], Name,
                      [{topology, Topology}], Config),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

start_only(Name, Topology, More, Paths, Config) ->
    start_with(?UNREACHABLE ++ path_args(Paths), Name, [{topology, Topology} | More], Config).

start_with(Args, Name, Env, Config) ->
    Options = #{long => "127.0.0.1", args => Args,
                config => [{cluster_name, ?config(cluster_name, Config)} | Env]},
    weft_test_nodes:start(Name, Options, ?config(place, Config)).

path_args(Paths) ->
    Application = weft_test_nodes:ebin(weft_amqp),
    Dirs = case Paths of
               all -> [Application | weft_amqp_test_broker:client_dirs()];
               without_client -> [Application];
               without_application -> []
           end,
    lists:append([["-pa", Dir] || Dir <- [weft_test_nodes:ebin(weft_amqp_test_talk) | Dirs]]).

until_together(Nodes) ->
    Names = lists:sort([name(Node) || Node <- Nodes]),
    weft_test_nodes:until(
      fun() ->
              lists:all(fun(Node) ->
                                lists:sort([name(Node) | call(Node, erlang, nodes, [])]) =:= Names
                        end, Nodes)
      end, ?LONG_MS).

%% From A to B, and nobody hears of anything.
traffic(A, B) ->
    ok = call(B, weft_resume_traffic, expect, []),
    ok = call(A, weft_resume_traffic, watch, [name(B)]),
    ok = call(A, weft_resume_traffic, send,
              [name(B), #{rate => 500, bytes_max => 1000, seed => 2}]),
    until_received(B, 200).

all_arrived(A, B) ->
    Sent = call(A, weft_resume_traffic, finish, []),
    weft_test_nodes:until(fun() -> received(B) =:= Sent end, ?LONG_MS),
    ?assertMatch(#{wrong := []}, call(B, weft_resume_traffic, account, [])),
    ?assertMatch(#{signals := []}, ask_watch(A)).

%% A has a watcher, and no receiver.
ask_watch(A) ->
    ok = call(A, weft_resume_traffic, expect, []),
    call(A, weft_resume_traffic, account, []).

until_received(B, Count) ->
    weft_test_nodes:until(fun() -> received(B) >= Count end, ?LONG_MS).

received(B) ->
    #{received := Count} = call(B, weft_resume_traffic, account, []),
    Count.

downs(A) ->
    [Node || {_, {nodedown, Node, _}} <- maps:get(signals, ask_watch_once(A))].

ask_watch_once(A) ->
    _ = call(A, erlang, whereis, [weft_traffic_in]) =:= undefined
        andalso call(A, weft_resume_traffic, expect, []),
    call(A, weft_resume_traffic, account, []).

broker_status(Node) -> broker_status(Node, ?TRIES).

%% Who is asked on a busy node may not answer in time.
broker_status(Node, Tries) ->
    case maps:get(broker, call(Node, weft, status, [])) of
        #{state := not_running} when Tries > 1 -> broker_status(Node, Tries - 1);
        Status -> Status
    end.

ups(Node) -> maps:get(ups, broker_status(Node)).

%% The two may have called each other at once when they began, and kept one of two links.
resumes(Node) ->
    [#{resumes := Resumes}] = maps:get(sessions, call(Node, weft, status, [])),
    Resumes.

is_error(Text, Node) ->
    string:find(maps:get(last_error, broker_status(Node)), Text) =/= nomatch.

name(#{node := Node}) -> Node.

call(Node, Module, Function, Args) ->
    weft_test_nodes:call(Node, Module, Function, Args).
