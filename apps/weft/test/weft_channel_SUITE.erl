%% SPDX-License-Identifier: Apache-2.0
%% @doc Channels on real nodes: order, policies, large messages, fan-out, acknowledgements, causal
%% order, and what remains of these when connections, processes and nodes go.
%%
%% Most cases are on the same nodes. Those that count have a channel of their own.
-module(weft_channel_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([order_without_a_key/1, order_by_key/1, unknown_things_are_named/1, calls_and_casts/1,
         fan_out/1, acknowledged_fan_out/1, large_messages_keep_their_place/1,
         refused_chunks_are_no_message/1, compressed/1, exactly_once_over_breaks/1,
         over_a_gateway/1, slow_receiver/1, what_has_arrived_outlives_its_stream/1,
         policies_when_nothing_moves/1, monotonic/1, acknowledged/1, acknowledged_here/1,
         acknowledged_across_deaths/1, causal_order/1, causal_and_death/1, idle_streams_close/1,
         stock_node/1, application_that_starts_later/1, node_down/1, hostile_payloads/1,
         telemetry_is_told/1]).

-define(T, weft_channel_traffic).
%% So many messages of each sender, while connections are cut.
-define(NUMBERED, 200).
-define(CHANNELS,
        #{default => #{block_ms => 60000},
          wide => #{parallelism => 4, block_ms => 60000},
          keyed => #{parallelism => 4, block_ms => 60000},
          fanned => #{},
          resting => #{},
          waking => #{block_ms => 60000},
          ending => #{},
          files => #{class => bulk, block_ms => 60000},
          small => #{queue_bytes => 65536, block_ms => 300},
          held_up => #{mailbox_max => 100},
          paced => #{queue_bytes => 65536, mailbox_max => 100, block_ms => 60000},
          newest => #{queue_bytes => 65536, policy => drop_newest},
          oldest => #{queue_bytes => 65536, policy => drop_oldest},
          strict => #{queue_bytes => 65536, policy => error},
          gossip => #{class => control, monotonic => 200},
          zipped => #{compression => 6}}).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [order_without_a_key, order_by_key, unknown_things_are_named, calls_and_casts, fan_out,
     acknowledged_fan_out, large_messages_keep_their_place, refused_chunks_are_no_message,
     compressed, exactly_once_over_breaks,
     over_a_gateway, slow_receiver, what_has_arrived_outlives_its_stream,
     policies_when_nothing_moves, monotonic, acknowledged,
     acknowledged_here, acknowledged_across_deaths, causal_order, causal_and_death,
     idle_streams_close, stock_node, application_that_starts_later, node_down, hostile_payloads,
     telemetry_is_told].

init_per_suite(Config0) ->
    Config = weft_test_nodes:begin_suite(Config0),
    Nodes = cluster([a, b, c], Config),
    ok = weft_test_nodes:share_all(),
    [{nodes, Nodes} | Config].

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- order ------------------------------------------------------------------------------------

%% Many senders, messages from a few bytes to several chunks, one stream and four.
order_without_a_key(Config) ->
    [A, B, _] = shared(Config),
    To = {keeper, name(B)},
    Senders = [{Channel, I, call(A, ?T, send_numbered, [To, {Channel, I}, 30, 400000, Channel])}
               || Channel <- [default, wide, files], I <- [1, 2]],
    [done = call(A, ?T, wait_numbered, [Pid]) || {_, _, Pid} <- Senders],
    in_order(B, 30 * length(Senders)).

%% A key makes one order of what several receivers get: the relay sees it in the messages.
order_by_key(Config) ->
    [A, B, _] = shared(Config),
    Options = #{channel => keyed, key => {any, "term"}},
    To = {keeper, name(B)},
    _ = [done = call(A, ?T, wait_numbered,
                     [call(A, ?T, send_numbered, [To, I, 50, 1000, Options])]) || I <- [1, 2, 3]],
    in_order(B, 150),
    %% One key, one stream; the senders of other keys spread.
    ?assertMatch([_], streams(A, keyed)),
    _ = [ok = call(A, weft, send, [To, {I, 1, <<>>}, #{channel => keyed, key => I}])
         || I <- lists:seq(10, 60)],
    ?assertEqual(4, length(streams(A, keyed))).

in_order(Node, Count) ->
    weft_test_nodes:until(fun() -> call(Node, ?T, count, [keeper]) >= Count end, 60000),
    Last = call(Node, ?T, numbers, [keeper]),
    ?assert(is_map(Last), Last),
    ?assertEqual(Count, lists:sum(maps:values(Last))).

%% --- the interface ----------------------------------------------------------------------------

unknown_things_are_named(Config) ->
    [_, B, _] = shared(Config),
    [A] = cluster([a], Config),
    To = {keeper, name(B)},
    Raised = fun(Dest, Options) ->
                     try call(A, weft, send, [Dest, x, Options]) of Result -> Result
                     catch error:Reason -> Reason
                     end
             end,
    ?assertMatch({unknown_channel, fast, [bulk, control | _]}, Raised(To, fast)),
    ?assertMatch({unknown_channel, fast, _}, Raised(To, #{channel => fast})),
    ?assertMatch({unknown_option, keys, [channel, key, ack, label]}, Raised(To, #{keys => 1})),
    ?assertMatch({bad_options, 17, _}, Raised(To, 17)),
    ?assertMatch({bad_destination, {keeper, "ab", 1}}, Raised({keeper, "ab", 1}, default)),
    ?assertMatch({bad_options, ack, _}, Raised(To, #{ack => 3})),
    [?assertMatch({bad_options, label, _}, Raised(To, #{channel => Drops, label => l}))
     || Drops <- [oldest, newest]],
    ?assertMatch({bad_options, label, _}, Raised(To, #{channel => gossip, label => l})),
    ?assertEqual([], call(B, ?T, received, [keeper])),
    %% Without the application there are no channels.
    ok = call(A, application, stop, [weft]),
    ?assertMatch({not_started, weft}, Raised(To, default)).

%% Servers know nothing of channels.
calls_and_casts(Config) ->
    [A, B, _] = shared(Config),
    {ok, Pid} = call(B, ?T, start_server, [server]),
    Server = {server, name(B)},
    ?assertEqual(5, call(A, weft, call, [Server, {add, 5}, 5000, control])),
    ok = call(A, weft, cast, [Server, {add, 2}, control]),
    ?assertEqual(8, call(A, weft, call, [Pid, {add, 1}, 5000, control])),
    ?assertEqual(9, call(B, weft, call, [server, {add, 1}, 5000, control])),
    Exits = fun(Dest, Request, TimeoutMs) ->
                    try call(A, weft, call, [Dest, Request, TimeoutMs, control]) of Reply -> Reply
                    catch exit:{Reason, {weft, call, _}} -> Reason
                    end
            end,
    ?assertEqual(timeout, Exits(Server, never, 300)),
    ?assertEqual(stopped, Exits(Server, stop, 30000)),
    ?assertEqual(noproc, Exits(Pid, never, 30000)),
    ?assertEqual({nodedown, nobody@nowhere}, Exits({server, nobody@nowhere}, never, 30000)).

fan_out(Config) ->
    [A, B, C] = shared(Config),
    [PidB, PidC] = [element(2, call(N, ?T, keeper, [none])) || N <- [B, C]],
    Names = [name(N) || N <- [A, B, C]],
    Message = {hello, binary:copy(<<7>>, 1000)},
    ok = call(A, weft, send, [[{keeper, Names}, PidB, [PidC]], Message, fanned]),
    [weft_test_nodes:until(fun() -> call(N, ?T, received, [K]) =:= [Message] end)
     || {N, K} <- [{A, keeper}, {B, keeper}, {C, keeper}, {B, PidB}, {C, PidC}]],
    %% One item for each node, whatever the number of its receivers.
    ?assertMatch(#{messages_out := 2, batches_out := 2}, counters(A, fanned)),
    %% A large one is announced once and given to all.
    Large = binary:copy(<<8>>, 1000000),
    ok = call(A, weft, send, [[PidB, {keeper, name(B)}, PidC], Large, wide]),
    [weft_test_nodes:until(fun() -> call(N, ?T, received, [K]) =:= [Message, Large] end)
     || {N, K} <- [{B, keeper}, {B, PidB}, {C, PidC}]].

%% All are asked at once: the retries of four names without a process take as long as those of one,
%% which is two timeouts, as the third answer ends it. With a label, too; and a large message is as
%% good as a small one.
acknowledged_fan_out(Config) ->
    [A, B, C] = shared(Config),
    Keepers = {keeper, [name(N) || N <- [A, B, C]]},
    Dead = element(2, call(B, ?T, keeper, [none])),
    true = call(B, erlang, exit, [Dead, kill]),
    Nobody = [{Name, name(N)} || Name <- [nobody, noone], N <- [B, C]],
    Retried = #{retries => 2, timeout_ms => 3000},
    Large = binary:copy(<<8>>, 1000000),
    ok = call(A, weft, send, [[Keepers], connected, #{ack => true}]),
    StartMs = erlang:monotonic_time(millisecond),
    {error, Errors} = call(A, weft, send, [[Keepers, Dead | Nobody], first, #{ack => Retried}]),
    TookMs = erlang:monotonic_time(millisecond) - StartMs,
    ?assertEqual(lists:sort([{{Dead, name(B)}, {not_delivered, noproc, 1}}
                             | [{To, {not_delivered, noproc, 3}} || To <- Nobody]]),
                 lists:sort(Errors)),
    ?assert(TookMs >= 2 * 3000 andalso TookMs < 3 * 2 * 3000, TookMs),
    ok = call(A, weft, send, [[Keepers], second, #{ack => true, label => talk}]),
    ok = call(A, weft, send, [[Keepers], third, #{label => talk}]),
    ok = call(A, weft, send, [[Keepers], Large, #{ack => true}]),
    [weft_test_nodes:until(fun() -> lists:sort(call(N, ?T, received, [keeper]))
                                        =:= lists:sort([connected, first, second, third, Large])
                           end) || N <- [A, B, C]].

%% Small messages behind a large one to the same receiver wait for it, whether it is called by its
%% pid or by its name; large binaries inside of terms are the same again.
large_messages_keep_their_place(Config) ->
    [A, B, _] = shared(Config),
    Pid = call(B, erlang, whereis, [keeper]),
    Sent = [call(A, ?T, send_large, [[Pid, {keeper, name(B)}], Channel])
            || Channel <- [default, files, wide]],
    Expected = lists:append(Sent),
    weft_test_nodes:until(fun() -> call(B, ?T, count, [keeper]) =:= length(Expected) end, 60000),
    Got = call(B, ?T, digests, [keeper]),
    %% `wide' may have sent by name and by pid on two partitions; each is in order.
    ?assertEqual(lists:sort(Expected), lists:sort(Got)),
    [?assertEqual(Digests, [D || D <- Got, lists:member(D, Digests)])
     || Digests <- lists:sublist(Sent, 2)].

%% The other node refuses a stream for chunks, as one that is just stopping its application. What
%% was announced on another stream is lost with that, and the next message finds new ones.
refused_chunks_are_no_message(Config) ->
    [A, B] = cluster([a, b], Config),
    ok = call(B, ?T, refuse_chunks, [1]),
    Large = binary:copy(<<7>>, 1000000),
    ok = call(A, weft, send, [{keeper, name(B)}, Large,
                              #{channel => wide, ack => #{retries => 59, timeout_ms => 500}}]),
    ?assertEqual([Large], call(B, ?T, received, [keeper])).

compressed(Config) ->
    [A, B, _] = shared(Config),
    Text = lists:duplicate(20000, $a),
    To = {keeper, name(B)},
    ok = call(A, weft, send, [To, Text, zipped]),
    ok = call(A, weft, send, [To, binary:copy(<<"abc">>, 500000), zipped]),
    weft_test_nodes:until(fun() -> call(B, ?T, received, [keeper])
                                       =:= [Text, binary:copy(<<"abc">>, 500000)] end),
    ?assert(maps:get(bytes_out, counters(A, zipped)) < 20000).

%% --- faults -----------------------------------------------------------------------------------

%% All connections are cut again and again while messages of all sizes go both ways.
exactly_once_over_breaks(Config) ->
    [A, B, _] = shared(Config),
    Nodes = [A, B],
    Both = [{A, B}, {B, A}],
    Senders = [{Here, call(Here, ?T, send_numbered,
                           [{keeper, name(There)}, {Channel, I}, ?NUMBERED, Bytes,
                            Channel])}
               || {Here, There} <- Both, I <- [1, 2],
                  {Channel, Bytes} <- [{default, 2000}, {wide, 20000}, {files, 200000}]],
    weft_test_nodes:until(fun() -> call(B, ?T, count, [keeper]) > 100 end),
    try lists:foreach(fun(I) -> break_and_go_on(I, Nodes) end, lists:seq(1, 12))
    catch
        error:Reason:Stack ->
            ct:pal("~p~n~p", [Reason, [states(N) || N <- Nodes]]),
            erlang:raise(error, Reason, Stack)
    end,
    [done = call(Here, ?T, wait_numbered, [Pid]) || {Here, Pid} <- Senders],
    [in_order(Node, ?NUMBERED * 6) || Node <- Nodes],
    %% Streams that have had nothing to do for a while may be closed by now, others are there.
    ?assert(lists:sum([resumes(A, S) || Channel <- [default, wide, files],
                                        S <- streams(A, Channel)]) > 0).

%% Some traffic between the faults, or the end of it.
break_and_go_on(I, [_, B] = Nodes) ->
    ok = call(lists:nth(1 + I rem 2, Nodes), weft_fault, break,
              [name(lists:nth(1 + (I + 1) rem 2, Nodes))]),
    Count = call(B, ?T, count, [keeper]),
    weft_test_nodes:until(fun() -> Now = call(B, ?T, count, [keeper]),
                                   Now > Count + 60 orelse Now =:= ?NUMBERED * 6
                          end).

states(Node) ->
    [{name(Node), counters(Node, default)}
     | [{Key, call(Node, gen_server, call, [Pid, info])}
        || {Key, Pid, _} <- call(Node, weft_channels, senders, [])]
     ++ [{Key, call(Node, gen_server, call, [Pid, info])}
         || {Key, Pid} <- call(Node, weft_channels, receivers, [])]].

over_a_gateway(Config) ->
    Names = [unique(N) || N <- [a, g, b]],
    [NodeA, NodeG, NodeB] = [node_name(N) || N <- Names],
    Topology = {static, #{links => [{NodeA, NodeG}, {NodeG, NodeB}]}},
    Flags = ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"],
    [A, G, B] = [start(N, [{topology, Topology}], Flags, Config) || N <- Names],
    weft_test_nodes:until(fun() -> call(A, weft_next_hop, choose, [NodeB]) =:= {via, NodeG} end),
    Senders = [call(A, ?T, send_numbered, [{keeper, NodeB}, {Channel, I}, ?NUMBERED, Bytes,
                                             Channel])
               || {Channel, Bytes} <- [{default, 2000}, {wide, 200000}], I <- [1, 2]],
    weft_test_nodes:until(fun() -> call(B, ?T, count, [keeper]) > 100 end),
    [begin
         ok = call(G, weft_fault, break, [N]),
         Count = call(B, ?T, count, [keeper]),
         weft_test_nodes:until(fun() -> Now = call(B, ?T, count, [keeper]),
                                        Now > Count + 50 orelse Now =:= ?NUMBERED * 4 end)
     end || _ <- lists:seq(1, 3), N <- [NodeA, NodeB]],
    [done = call(A, ?T, wait_numbered, [Pid]) || Pid <- Senders],
    in_order(B, ?NUMBERED * 4),
    ?assertNot(call(A, weft_links, up, [NodeB])),
    ok = call(A, weft, send, [{keeper, NodeB}, acked, #{ack => true}]).

%% The sending process looks every few seconds whether it was used; here we make it look. The next
%% message opens another stream.
idle_streams_close(Config) ->
    [A, B, _] = shared(Config),
    To = {keeper, name(B)},
    Acknowledged = #{channel => resting, ack => true},
    ok = call(A, weft, send, [To, first, Acknowledged]),
    [Sender] = streams(A, resting),
    Look = fun() -> call(A, erlang, send, [Sender, idle]), streams(A, resting) =:= [] end,
    weft_test_nodes:until(Look),
    weft_test_nodes:until(fun() -> not call(A, erlang, is_process_alive, [Sender]) end),
    ?assertMatch(#{lost := 0}, counters(A, resting)),
    ok = call(A, weft, send, [To, second, Acknowledged]),
    ?assertEqual([first, second], call(B, ?T, received, [keeper])),
    ?assertNotEqual([Sender], streams(A, resting)).

node_down(Config) ->
    [A, _, _] = shared(Config),
    [B] = cluster([b], Config),
    To = {keeper, name(B)},
    ok = call(A, weft, send, [To, first, ending]),
    weft_test_nodes:until(fun() -> call(B, ?T, received, [keeper]) =:= [first] end),
    weft_test_nodes:kill(B),
    weft_test_nodes:until(fun() -> streams(A, ending) =:= [] end),
    %% As with `!', a message to a node that is down is lost; here that is counted.
    Lost = maps:get(lost, counters(A, ending)),
    ok = call(A, weft, send, [To, second, ending]),
    weft_test_nodes:until(fun() -> maps:get(lost, counters(A, ending)) =:= Lost + 1 end),
    weft_test_nodes:until(fun() -> streams(A, ending) =:= [] end),
    ?assertMatch({error, {not_delivered, nodedown, 1}},
                 call(A, weft, send, [To, third,
                                      #{channel => ending,
                                        ack => #{retries => 0, timeout_ms => 30000}}])).

%% --- pressure ---------------------------------------------------------------------------------

%% A receiver that takes nothing, on a channel with a limit for mailboxes: the sender waits, and
%% neither node's memory grows beyond the queue, the window and the mailbox.
slow_receiver(Config) ->
    [A, B, _] = shared(Config),
    To = {keeper, name(B)},
    Before = {call(A, ?T, memory, []), call(B, ?T, memory, [])},
    hold = call(B, ?T, hold, [keeper]),
    Sender = call(A, ?T, send_numbered, [To, slow, 30000, 4000, paced]),
    %% The mailbox is full, the window is full, the queue is full: the sender stays where it is.
    weft_test_nodes:until(fun() -> nothing_moves(A, B, Sender) end),
    Sent = maps:get(messages_out, counters(A, paced)),
    ?assert(Sent < 20000, Sent),
    Grown = [call(N, ?T, memory, []) - element(I, Before) || {N, I} <- [{A, 1}, {B, 2}]],
    %% Windows on either side, and what is under way; all together were 60 MB to come.
    ?assert(lists:max(Grown) < 32 * 1024 * 1024, Grown),
    Keeper = call(B, erlang, whereis, [keeper]),
    {message_queue_len, Length} = call(B, erlang, process_info, [Keeper, message_queue_len]),
    ?assert(Length < 1000, Length),
    in_time(A, To),
    go_on = call(B, ?T, go_on, [keeper]),
    done = call(A, ?T, wait_numbered, [Sender]),
    in_order(B, 30000).

%% It waits in the process of the stream, because the mailbox is full, and the sender is killed.
%% Before it the first message may come again there, if the channel has got its own lane meanwhile.
what_has_arrived_outlives_its_stream(Config) ->
    [A, B, _] = shared(Config),
    To = {keeper, name(B)},
    hold = call(B, ?T, hold, [keeper]),
    Filling = [{full, N} || N <- lists:seq(1, 100)],
    _ = [call(B, erlang, send, [keeper, Message]) || Message <- Filling],
    ok = call(A, weft, send, [To, before, #{channel => held_up, ack => true}]),
    [Receiver] = [Pid || {{_, <<"held_up">>, _}, Pid} <- call(B, weft_channels, receivers, [])],
    ok = call(A, weft, send, [To, <<"arrived">>, held_up]),
    weft_test_nodes:until(fun() -> call(B, ?T, has, [Receiver, <<"arrived">>]) end),
    [Sender] = streams(A, held_up),
    true = call(A, erlang, exit, [Sender, kill]),
    weft_test_nodes:until(fun() -> not call(B, erlang, is_process_alive, [Receiver]) end),
    go_on = call(B, ?T, go_on, [keeper]),
    ?assertEqual(Filling ++ [before, <<"arrived">>], call(B, ?T, received, [keeper])).

%% Nor did it while the receiver was found full again and again.
nothing_moves(A, B, Sender) ->
    Sent = maps:get(messages_out, counters(A, paced)),
    Paused = maps:get(paused, counters(B, paced)),
    weft_test_nodes:until(fun() -> maps:get(paused, counters(B, paced)) > Paused + 20 end),
    is_waiting(A, Sender) andalso maps:get(messages_out, counters(A, paced)) =:= Sent.

%% The channel would let its senders wait for a minute.
in_time(A, To) ->
    Ack = #{channel => paced, ack => #{retries => 0, timeout_ms => 200}},
    {SendUs, Result} = timer:tc(fun() -> call(A, weft, send, [To, late, Ack]) end),
    ?assertEqual({error, {not_delivered, overloaded, 1}}, Result),
    {CallUs, Reason} = timer:tc(fun() ->
                                        try call(A, weft, call, [To, late, 200, paced])
                                        catch exit:{Why, {weft, call, _}} -> Why
                                        end
                                end),
    ?assertEqual(overloaded, Reason),
    ?assert(max(SendUs, CallUs) < 30000000, {SendUs, CallUs}).

is_waiting(Node, Pid) ->
    {current_function, {weft_channel_entry, wait, 4}}
        =:= call(Node, erlang, process_info, [Pid, current_function]).

%% The peer is stopped in its tracks: windows and queues fill, and each policy does what it says.
policies_when_nothing_moves(Config) ->
    [A, B] = cluster([a, b], [{window_bytes, 65536}], Config),
    To = {keeper, name(B)},
    Channels = [small, newest, oldest, strict],
    _ = [ok = call(A, weft, send, [To, {Channel, 0}, #{channel => Channel, ack => true}])
         || Channel <- Channels],
    weft_test_nodes:pause(B),
    Before = call(A, ?T, memory, []),
    Results = maps:from_list([{Channel, call(A, ?T, fill, [To, 10000, 800, Channel])}
                              || Channel <- Channels]),
    Counters = maps:from_list([{Channel, counters(A, Channel)} || Channel <- Channels]),
    %% One that has to arrive is not dropped.
    ?assertEqual({error, {not_delivered, overloaded, 2}},
                 call(A, weft, send, [To, last, #{channel => newest,
                                                  ack => #{retries => 1, timeout_ms => 100}}])),
    weft_test_nodes:continue(B),
    ct:pal("~p~n~p", [Results, Counters]),
    #{small := #{{error, overloaded} := Timeouts}, strict := #{{error, overloaded} := Refused}}
        = Results,
    ?assertMatch(#{small := #{block_timeouts := Timeouts}, strict := #{refused := Refused}},
                 Counters),
    [?assertEqual([ok], maps:keys(maps:get(Channel, Results))) || Channel <- [newest, oldest]],
    #{newest := #{dropped_newest := Newest}, oldest := #{dropped_oldest := Oldest}} = Counters,
    ?assert(Newest > 0 andalso Oldest > 0, {Newest, Oldest}),
    ?assert(call(A, ?T, memory, []) - Before < 32 * 1024 * 1024),
    %% What was not dropped arrives.
    Expected = length(Channels) + lists:sum([maps:get(ok, R) || R <- maps:values(Results)])
        - Newest - Oldest,
    weft_test_nodes:until(fun() -> call(B, ?T, count, [keeper]) =:= Expected end, 60000).

monotonic(Config) ->
    [A, B, _] = shared(Config),
    To = {keeper, name(B)},
    _ = call(A, ?T, many, [To, 1000, gossip]),
    ok = call(A, weft, send, [To, other, #{channel => gossip, key => other}]),
    %% The first at once, the last at the end of the window, few between; another key is apart.
    weft_test_nodes:until(fun() ->
                                  [{n, 1000}, other] -- call(B, ?T, received, [keeper]) =:= []
                          end),
    Received = call(B, ?T, received, [keeper]),
    Numbers = [N || {n, N} <- Received],
    ?assertEqual(Numbers, lists:usort(Numbers)),
    #{superseded := Superseded, messages_out := Out} = counters(A, gossip),
    ?assertEqual(1001, Superseded + Out),
    ?assertEqual(length(Received), Out),
    ?assert(length(Received) < 50, length(Received)).

telemetry_is_told(Config) ->
    [A, B, _] = shared(Config),
    {ok, _} = call(A, ?T, keeper, [events]),
    ok = call(A, ?T, attach_telemetry, [events]),
    _ = call(A, ?T, many, [{keeper, name(B)}, 500, gossip]),
    %% Among those of others that are told as well.
    weft_test_nodes:until(fun() -> lists:any(fun is_superseded/1, call(A, ?T, received, [events]))
                          end).

is_superseded({event, [weft, channel, superseded], #{count := _}, #{channel := gossip}}) -> true;
is_superseded(_) -> false.

%% --- acknowledged -----------------------------------------------------------------------------

acknowledged(Config) ->
    [A, B, _] = shared(Config),
    Pid = call(B, erlang, whereis, [keeper]),
    Ack = #{ack => true},
    ok = call(A, weft, send, [Pid, one, Ack]),
    %% `ok' means that it is in the mailbox, not that it is on its way.
    ?assertEqual([one], call(B, ?T, received, [keeper])),
    ok = call(A, weft, send, [{keeper, name(B)}, two, Ack]),
    ok = call(A, weft, send, [[Pid, {keeper, name(B)}], three, Ack]),
    ?assertEqual([one, two, three, three], call(B, ?T, received, [keeper])),
    call(B, ?T, stop, [keeper]),
    ?assertEqual({error, {not_delivered, noproc, 1}}, call(A, weft, send, [Pid, four, Ack])),
    ?assertEqual({error, {not_delivered, noproc, 3}},
                 call(A, weft, send, [{keeper, name(B)}, five,
                                      #{ack => #{retries => 2, timeout_ms => 2000}}])).

%% Receivers on the node of the sender are told apart as those elsewhere are.
acknowledged_here(Config) ->
    [A, _, _] = shared(Config),
    {ok, _} = call(A, ?T, keeper, [here]),
    Twice = #{ack => #{retries => 1, timeout_ms => 50}},
    Pid = call(A, erlang, whereis, [here]),
    [ok = call(A, weft, send, [To, To, Twice]) || To <- [Pid, here, {here, name(A)}]],
    ok = call(A, weft, send, [[Pid, {here, [name(A)]}], both, Twice]),
    ?assertEqual([Pid, here, {here, name(A)}, both, both], call(A, ?T, received, [here])),
    call(A, ?T, stop, [here]),
    Dead = {not_delivered, noproc, 1},
    Nobody = {not_delivered, noproc, 2},
    ?assertEqual({error, Dead}, call(A, weft, send, [Pid, late, Twice])),
    [?assertEqual({error, Nobody}, call(A, weft, send, [To, late, Twice]))
     || To <- [here, {here, name(A)}]],
    {error, Errors} = call(A, weft, send, [[Pid, here], late, Twice]),
    ?assertEqual(lists:sort([{{Pid, name(A)}, Dead}, {{here, name(A)}, Nobody}]),
                 lists:sort(Errors)),
    %% Without an acknowledgement a name of a list is as `{Name, Node} ! Message'.
    ok = call(A, weft, send, [[Pid, {here, [name(A)]}], late, #{}]),
    ok = call(A, weft, send, [[Pid, here], late, #{label => talk}]).

%% A name that comes back gets the message, once; a stream that breaks does not double it; a node
%% that is gone is an error.
acknowledged_across_deaths(Config) ->
    [A, _, _] = shared(Config),
    [B] = cluster([b], Config),
    To = {keeper, name(B)},
    Again = #{ack => #{retries => 250, timeout_ms => 100}},
    call(B, ?T, stop, [keeper]),
    Self = self(),
    spawn_link(fun() -> Self ! {result, call(A, weft, send, [To, patient, Again])} end),
    weft_test_nodes:until(fun() -> maps:get(undeliverable, counters(B, default)) > 1 end),
    {ok, _} = call(B, ?T, keeper, [keeper]),
    receive {result, Result} -> ?assertEqual(ok, Result) after 60000 -> ct:fail(no_result) end,
    ?assertEqual([patient], call(B, ?T, received, [keeper])),
    _ = [begin
             I rem 5 =:= 0 andalso call(A, weft_fault, break, [name(B)]),
             ok = call(A, weft, send, [To, I, Again])
         end || I <- lists:seq(1, 100)],
    ?assertEqual([patient | lists:seq(1, 100)], call(B, ?T, received, [keeper])),
    %% A receiving process dies with all of them, then the next one: what is repeated comes once.
    [{_, Receiver}] = call(B, weft_channels, receivers, []),
    ok = call(B, sys, suspend, [Receiver]),
    Before = maps:get(messages_out, counters(A, default)),
    Senders = [spawn_link(fun() -> Self ! {done, I, call(A, weft, send, [To, {I}, Again])} end)
               || I <- lists:seq(1, 20)],
    weft_test_nodes:until(fun() -> maps:get(messages_out, counters(A, default)) >= Before + 20 end),
    true = call(B, erlang, exit, [Receiver, shutdown]),
    weft_test_nodes:until(fun() -> call(B, ?T, exit_receivers, [Receiver]) > 0 end),
    [receive {done, I, Ok} -> ?assertEqual(ok, Ok) after 60000 -> ct:fail({no_result, I}) end
     || I <- lists:seq(1, length(Senders))],
    ?assertEqual([{I} || I <- lists:seq(1, 20)],
                 lists:sort([M || {_} = M <- call(B, ?T, received, [keeper])])),
    weft_test_nodes:kill(B),
    ?assertMatch({error, {not_delivered, _, 2}},
                 call(A, weft, send, [To, late, #{ack => #{retries => 1, timeout_ms => 200}}])).

%% --- causal order -----------------------------------------------------------------------------

%% A tells C directly over a link that is cut, and B, which tells C: C must not hear B first.
causal_order(Config) ->
    [A, B, C] = shared(Config),
    Labelled = #{label => news},
    To = {keeper, name(C)},
    {ok, _} = call(B, ?T, relay, [relay, To, answer, Labelled]),
    %% Introduce everybody before the link is cut.
    ok = call(A, weft, send, [To, {first, 0}, Labelled]),
    ok = call(A, weft, send, [{relay, name(B)}, {first, 0}, Labelled]),
    weft_test_nodes:until(fun() -> call(C, ?T, count, [keeper]) =:= 2 end),
    ok = call(A, weft_fault, cut, [name(C)]),
    Before = maps:get(messages_in, counters(C, default)),
    Numbers = lists:seq(1, 20),
    [begin
         ok = call(A, weft, send, [To, {question, N}, Labelled]),
         ok = call(A, weft, send, [{relay, name(B)}, {question, N}, Labelled])
     end || N <- Numbers],
    %% All that B said is there, and held up.
    weft_test_nodes:until(fun() -> maps:get(messages_in, counters(C, default)) >= Before + 20 end),
    ?assertEqual(2, call(C, ?T, count, [keeper])),
    ok = call(A, weft_fault, heal, []),
    weft_test_nodes:until(fun() -> call(C, ?T, count, [keeper]) =:= 42 end),
    Received = call(C, ?T, received, [keeper]),
    [?assert(place({question, N}, Received) < place({answer, N}, Received)) || N <- Numbers],
    ?assertEqual(0, maps:get(causal_forced, counters(C, default))).

place(Message, [Message | _]) -> 1;
place(Message, [_ | Rest]) -> 1 + place(Message, Rest).

%% What a dead node had sent is waited for no more.
causal_and_death(Config) ->
    [_, B, C] = shared(Config),
    [A] = cluster([a], Config),
    Before = maps:get(messages_in, counters(C, default)),
    Labelled = #{label => "news"},
    To = {keeper, name(C)},
    {ok, _} = call(B, ?T, relay, [relay_of_dead, To, answer, Labelled]),
    ok = call(A, weft, send, [To, {first, 0}, Labelled]),
    ok = call(A, weft, send, [{relay_of_dead, name(B)}, {first, 0}, Labelled]),
    weft_test_nodes:until(fun() -> call(C, ?T, count, [keeper]) =:= 2 end),
    ok = call(A, weft_fault, cut, [name(C)]),
    ok = call(A, weft, send, [To, {question, 1}, Labelled]),
    ok = call(A, weft, send, [{relay_of_dead, name(B)}, {question, 1}, Labelled]),
    {ok, Participant} = call(C, weft_channels, label, ["news"]),
    weft_test_nodes:until(fun() -> maps:get(messages_in, counters(C, default)) - Before >= 3 end),
    true = is_pid(Participant),
    ?assertEqual(2, call(C, ?T, count, [keeper])),
    weft_test_nodes:kill(A),
    weft_test_nodes:until(fun() -> lists:member({answer, 1}, call(C, ?T, received, [keeper])) end,
                          60000).

%% --- other nodes ------------------------------------------------------------------------------

%% A stock node gets everything by the distribution, but for acknowledgements.
stock_node(Config) ->
    [A, _, _] = shared(Config),
    Stock = #{carrier => stock, args => ["-pa", weft_test_nodes:ebin(weft)]},
    P = weft_test_nodes:start(unique(p), Stock, ?config(place, Config)),
    {ok, Pid} = call(P, ?T, keeper, [keeper]),
    To = {keeper, name(P)},
    ok = call(A, weft, send, [To, 1, default]),
    ok = call(A, weft, send, [[Pid, To], 2, wide]),
    weft_test_nodes:until(fun() -> lists:sort(call(P, ?T, received, [keeper])) =:= [1, 2, 2] end),
    ?assertEqual({error, {not_delivered, no_channels, 1}},
                 call(A, weft, send, [To, 3, #{ack => true}])),
    ?assertEqual({error, no_channels}, call(A, weft, send, [To, 3, #{label => l}])),
    ?assertMatch(#{plain := 2}, counters(A, default)),
    %% A node of weft without the application is as good as a stock node.
    W = weft_test_nodes:start(unique(w), #{}, ?config(place, Config)),
    {ok, _} = call(W, ?T, keeper, [keeper]),
    ok = call(A, weft, send, [{keeper, name(W)}, hello, default]),
    weft_test_nodes:until(fun() -> call(W, ?T, received, [keeper]) =:= [hello] end).

%% Who sends all the time to a node whose application starts gets a stream all the same, and the
%% order stays. The sending process looks every few seconds; here we make it look.
application_that_starts_later(Config) ->
    [A, _, _] = shared(Config),
    W = weft_test_nodes:start(unique(w), #{}, ?config(place, Config)),
    {ok, _} = call(W, ?T, keeper, [keeper]),
    To = {keeper, name(W)},
    done = call(A, ?T, wait_numbered, [call(A, ?T, send_numbered, [To, 1, 20, 1000, waking])]),
    [Sender] = streams(A, waking),
    State = fun() -> maps:get(state, call(A, gen_server, call, [Sender, info])) end,
    weft_test_nodes:until(fun() -> State() =:= plain end),
    Steady = call(A, ?T, send_numbered, [To, 2, 20000, 1000, waking]),
    %% There are no channels yet, and it goes on as before.
    idle = call(A, erlang, send, [Sender, idle]),
    weft_test_nodes:until(fun() -> State() =:= plain end),
    ok = call(W, ?T, start, [[]]),
    %% It asks only if it was used since it last looked, and the others may have been fast.
    weft_test_nodes:until(fun() ->
                                  ok = call(A, weft, send, [{nobody, name(W)}, used, waking]),
                                  _ = State() =:= plain
                                      andalso call(A, erlang, send, [Sender, idle]),
                                  State() =:= up
                          end),
    done = call(A, ?T, wait_numbered, [Steady]),
    in_order(W, 20020),
    ?assertEqual(ok, call(A, weft, send, [To, last, #{channel => waking, ack => true}])).

%% Payloads that make no sense end that stream and are reported; the node, its distribution and
%% other streams go on.
hostile_payloads(Config) ->
    [A, B, _] = shared(Config),
    To = {keeper, name(B)},
    ok = call(A, weft, send, [To, before, control]),
    true = call(A, net_kernel, connect_node, [name(B)]),
    Term = fun(T) -> term_to_binary(T) end,
    Payloads = [<<>>, <<0>>, <<255, 1, 2>>, <<1>>, <<1, 131>>, <<1, (Term(no_list))/binary>>,
                <<1, (Term([no_pair]))/binary>>, <<1, (Term([[1 | 2]]))/binary>>,
                <<1, (Term([[nobody | x] | improper]))/binary>>,
                <<5, (Term([keeper]))/binary>>, <<5, (Term([[keeper | improper]]))/binary>>,
                <<2, 100:32, 131>>, <<2, 5:32, (Term({[], [{[7], 9}]}))/binary>>,
                <<3, 1:64, 1:64, 1:32, (Term([keeper]))/binary>>,
                <<3, 1:64, (1 bsl 50):64, 1:32, (Term({self(), [keeper]}))/binary>>,
                <<4, 0, 1:64, 0:32, "chunk">>,
                <<1, (Term([{extra, keeper, m, {no_ref, 1}, none}]))/binary>>,
                <<1, (Term([{many, [keeper], <<131, 255>>}]))/binary>>,
                <<1, (Term([{extra_encoded, keeper, <<131, 255>>, none, none}]))/binary>>,
                <<1, 131, 80, 16#7fffffff:32, 1, 2, 3>>],
    [?assertEqual(ended, call(A, ?T, inject, [name(B), 20, [P]]), P) || P <- Payloads],
    %% Chunks that contradict their announcement, from beside.
    Announce = <<3, 9:64, 10:64, 2:32, (Term({call(A, erlang, self, []), [keeper]}))/binary>>,
    Self = self(),
    spawn_link(fun() -> Self ! {injected, call(A, ?T, inject, [name(B), 21, [Announce]])} end),
    weft_test_nodes:until(fun() ->
                                  Receivers = call(B, weft_channels, receivers, []),
                                  [] =/= [Pid || {{_, _, 21}, Pid} <- Receivers]
                          end),
    Chunks = [<<4, 21, 9:64, 0:32, "more than ten bytes">>, <<0>>],
    _ = call(A, ?T, inject, [name(B), 40, Chunks]),
    receive {injected, Result} -> ?assertEqual(ended, Result) after 20000 -> ct:fail(no_end) end,
    ok = call(A, weft, send, [To, behind, #{channel => control, ack => true}]),
    ?assertEqual([before, behind], call(B, ?T, received, [keeper])),
    ?assert(lists:member(name(A), call(B, erlang, nodes, []))).

%% --- steps ------------------------------------------------------------------------------------

%% The nodes of all cases, each with a new keeper.
shared(Config) ->
    Nodes = ?config(nodes, Config),
    [begin
         ok = call(Node, weft_fault, heal, []),
         _ = [call(Node, ?T, stop, [Keeper]) || Keeper <- [call(Node, erlang, whereis, [keeper])],
                                                is_pid(Keeper)],
         weft_test_nodes:until(fun() -> call(Node, erlang, whereis, [keeper]) =:= undefined end),
         {ok, _} = call(Node, ?T, keeper, [keeper])
     end || Node <- Nodes],
    Nodes.

cluster(Names, Config) ->
    cluster(Names, [], Config).

cluster(Names, More, Config) ->
    [start(unique(Name), More, [], Config) || Name <- Names].

start(Name, More, Args, Config) ->
    Weft = [{channels, ?CHANNELS}, {faults, true}, {resume_timeout_ms, 20000} | More],
    Node = weft_test_nodes:start(Name, #{config => Weft, args => Args}, ?config(place, Config)),
    ok = call(Node, ?T, start, [[keeper]]),
    Node.

unique(Name) ->
    list_to_atom(atom_to_list(Name) ++ integer_to_list(erlang:unique_integer([positive]))).

call(Node, Module, Function, Args) ->
    weft_test_nodes:call(Node, Module, Function, Args, 120000).

counters(Node, Channel) ->
    maps:get(counters, maps:get(Channel, call(Node, weft_channel, info, []))).

%% The partitions of a channel that carry messages now.
streams(Node, Channel) ->
    [Pid || {{_, Name, Partition}, Pid, _} <- call(Node, weft_channels, senders, []),
            Name =:= Channel, Partition < 32].

resumes(Node, Pid) ->
    #{resumes := Resumes, repairs := Repairs} = call(Node, gen_server, call, [Pid, info]),
    Resumes + Repairs.
