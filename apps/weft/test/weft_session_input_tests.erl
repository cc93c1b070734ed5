%% SPDX-License-Identifier: Apache-2.0
%% @doc The link to the peer delivers what comes over it; who goes another way has a process for it.
-module(weft_session_input_tests).

-include_lib("eunit/include/eunit.hrl").

-define(INPUT, weft_session_input).
-define(PEER, peer@host).

the_link_to_the_peer_delivers_test() ->
    with_link(fun() ->
                  Counters = weft_session_counters:new(),
                  ?assertEqual({self(), true}, ?INPUT:of_initiator(?PEER, Counters)),
                  ?assertEqual({host, self(), Counters}, told(host))
              end).

%% The registry, which is not there, would make another one.
a_link_that_has_ended_delivers_nothing_test() ->
    {Ended, Monitor} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Monitor, process, Ended, _} -> ok end,
    with_link(Ended, fun() ->
                         ?assertEqual({error, not_running}, weft_links:ensure(?PEER)),
                         {Own, false} = ?INPUT:of_initiator(?PEER, weft_session_counters:new()),
                         ended(Own)
                     end).

%% As on a node whose links are about to begin again.
without_links_there_is_a_process_for_it_test() ->
    {Own, false} = ?INPUT:of_initiator(?PEER, weft_session_counters:new()),
    ?assert(is_linked(Own)),
    ended(Own).

who_is_reached_gets_what_its_link_has_said_test() ->
    Counters = weft_session_counters:new(),
    ?assertEqual({self(), true}, ?INPUT:of_acceptor(self(), Counters)),
    {Own, false} = ?INPUT:of_acceptor(own_process, Counters),
    ?assert(is_linked(Own)),
    ended(Own).

whoever_delivers_is_told_of_the_handle_test() ->
    ok = ?INPUT:connected(handle, {self(), true}),
    ?assertEqual({connected, self(), handle}, told(connected)),
    ok = ?INPUT:connected(handle, {self(), false}),
    ?assertEqual(handle, receive {weft_input, connected, Handle} -> Handle after 0 -> none end).

%% It is delivered first, however late the process has its turn, and then there is no process.
a_session_that_ends_waits_until_its_input_is_delivered_test() ->
    {Own, false} = Input = ?INPUT:of_acceptor(own_process, weft_session_counters:new()),
    true = unlink(Own),
    true = erlang:suspend_process(Own),
    Own ! {weft_packet, self(), self(), lane, 1, {data, 1, 1, handshake, <<"hello">>}},
    resumed_when_waited_for(Own),
    ok = ?INPUT:finish(Input),
    ?assertEqual(<<"hello">>, receive {weft_handshake, Packet} -> Packet after 0 -> none end),
    ?assertNot(is_process_alive(Own)).

resumed_when_waited_for(Suspended) ->
    Waits = self(),
    spawn_link(fun() ->
                   true = erlang:suspend_process(Suspended),
                   Waits ! suspended_by_another,
                   weft_test_nodes:until(fun() -> {status, waiting} =:= process_info(Waits, status)
                                         end),
                   true = erlang:resume_process(Suspended)
               end),
    receive suspended_by_another -> true = erlang:resume_process(Suspended) end.

a_session_that_ends_does_not_wait_for_a_link_that_has_ended_test() ->
    {Link, Monitor} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Monitor, process, Link, _} -> ok end,
    ?assertEqual(ok, ?INPUT:finish({Link, true})).

%% The test is the process of the link to its peer.
with_link(Test) -> with_link(self(), Test).

with_link(Link, Test) ->
    ok = weft_link_table:new(),
    try
        ok = weft_link_table:enter(?PEER, Link),
        ok = weft_link_table:publish(?PEER, #{neighbour => true, wanted => true}),
        Test()
    after
        ets:delete(weft_links)
    end.

told(What) ->
    receive {weft_handler, Message} when element(1, Message) =:= What -> Message
    after 0 -> nothing
    end.

is_linked(Pid) ->
    {links, Links} = process_info(self(), links),
    lists:member(Pid, Links).

ended(Pid) ->
    true = unlink(Pid),
    exit(Pid, kill).
