%% SPDX-License-Identifier: Apache-2.0
%% @doc What becomes of something that happens at a simulated node.
-module(weft_sim_node_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ID, 7).
-define(DELIVER, {deliver, ?ID, peer, self, router, hello}).
-define(DOWN, {link_down, ?ID, self, peer, timeout}).

a_message_is_taken_of_the_stream_that_the_node_believes_in_test() ->
    ?assertEqual(take, weft_sim_node:fate(?DELIVER, linked())),
    ?assertEqual(lost, weft_sim_node:fate(?DELIVER, weft_sim_node:with_stream(peer, 8, linked()))),
    ?assertEqual(lost, weft_sim_node:fate(?DELIVER, weft_sim_node:without_stream(peer, linked()))).

a_paused_node_gets_what_came_in_its_order_when_it_is_resumed_test() ->
    Paused = weft_sim_node:pause(linked()),
    ?assertEqual([hold, hold, hold],
                 [weft_sim_node:fate(Event, Paused) || Event <- [?DELIVER, link_up(), ?DOWN]]),
    Held = weft_sim_node:hold(?DOWN, weft_sim_node:hold(?DELIVER, Paused)),
    {Waited, Resumed} = weft_sim_node:resume(Held),
    ?assertEqual([?DELIVER, ?DOWN], Waited),
    ?assertEqual(running, weft_sim_node:state(Resumed)),
    ?assertMatch({[], _}, weft_sim_node:resume(weft_sim_node:pause(Resumed))).

%% That the stream is up may be among what waits.
a_message_of_a_stream_that_a_paused_node_does_not_know_waits_test() ->
    ?assertEqual(hold, weft_sim_node:fate(?DELIVER, weft_sim_node:pause(started()))).

nothing_happens_at_a_node_that_is_down_test() ->
    [?assertEqual({Event, lost}, {Event, weft_sim_node:fate(Event, Node)})
     || Node <- [weft_sim_node:new(), weft_sim_node:crash(linked())],
        Event <- [?DELIVER, link_up(), ?DOWN, {timer, self, 1, router, 0, tick},
                  {connect_failed, self, 1, peer}, {pause_noticed, self, 1}]].

the_end_of_another_stream_is_no_end_of_this_one_test() ->
    ?assertEqual(take, weft_sim_node:fate(?DOWN, linked())),
    [?assertEqual(lost, weft_sim_node:fate({link_down, 8, self, peer, timeout}, Node))
     || Node <- [linked(), weft_sim_node:pause(linked())]].

a_refusal_is_of_no_matter_to_who_is_linked_by_then_test() ->
    ?assertEqual(take, weft_sim_node:fate({connect_failed, self, 1, peer}, started())),
    ?assertEqual(lost, weft_sim_node:fate({connect_failed, self, 1, peer}, linked())).

what_belongs_to_a_run_that_has_ended_is_lost_test() ->
    Again = weft_sim_node:start(11, weft_sim_node:crash(started())),
    ?assertEqual({2, 11}, {weft_sim_node:starts(Again), weft_sim_node:incarnation(Again)}),
    [?assertEqual(lost, weft_sim_node:fate(Event, Node))
     || {Event, Node} <- [{{timer, self, 1, router, 0, tick}, Again},
                          {{timer, self, 1, router, 0, tick}, weft_sim_node:pause(Again)},
                          {{connect_failed, self, 1, peer}, Again},
                          {{pause_noticed, self, 1}, weft_sim_node:pause(Again)},
                          {{pause_noticed, self, 2}, Again}]],
    ?assertEqual(take, weft_sim_node:fate({pause_noticed, self, 2}, weft_sim_node:pause(Again))).

%% Generation 1: the machine was started again.
a_timer_of_a_machine_that_was_started_again_is_lost_test() ->
    {Machines, _} = weft_sim_machines:start(self, {router, weft_alone_core, #{}}, 1,
                                            weft_sim_machines:none()),
    Node = weft_sim_node:with_machines(Machines, started()),
    ?assertEqual([lost, take], [weft_sim_node:fate({timer, self, 1, router, Generation, tick}, Node)
                                || Generation <- [0, 1]]).

link_up() -> {link_up, ?ID, self, peer}.

started() -> weft_sim_node:start(10, weft_sim_node:new()).

linked() -> weft_sim_node:with_stream(peer, ?ID, started()).
