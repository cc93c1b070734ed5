%% SPDX-License-Identifier: Apache-2.0
%% @doc What is concluded about the node of a peer, and what proves nothing.
-module(weft_link_peer_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PEER, weft_link_peer).

a_node_with_no_name_or_no_listener_is_not_dialled_test() ->
    ?assertEqual([false, false, true, true],
                 [?PEER:can_be_dialled(Key, Peer)
                  || {Key, Peer} <- [{{anonymous, 1}, peer(true)}, {b@host, peer(false)},
                                     {b@host, peer(true)}, {b@host, undefined}]]).

the_proof_for_further_lanes_is_published_with_the_incarnation_test() ->
    Listener = (peer(true))#{role := listener},
    ?assertEqual([#{}, #{token => <<"token">>, incarnation => 1}],
                 [?PEER:published(Peer, 5) || Peer <- [undefined, Listener]]).

%% A call of the peer may cross it.
when_the_own_call_was_answered_is_published_test() ->
    ?assertEqual(#{token => <<"token">>, incarnation => 1, dialled_us => 5},
                 ?PEER:published(peer(true), 5)).

another_incarnation_is_another_start_test() ->
    Other = (peer(true))#{incarnation := 2},
    ?assertEqual([nothing, nothing, {restarted, 1}],
                 [?PEER:met(peer(true), Peer, false) || Peer <- [undefined, peer(true), Other]]).

%% It may have ended while it was authenticated. A later one is another start, also if the link
%% seems to be up.
an_earlier_start_does_not_take_a_link_that_is_up_test() ->
    Peers = [(peer(true))#{incarnation := Other} || Other <- [0, 1, 2]],
    ?assertEqual([{restarted, 1}, nothing, superseded],
                 [?PEER:met(peer(true), Peer, true) || Peer <- Peers]).

%% A reset is what the host of a killed node sends if something was under way.
only_one_that_cannot_be_dialled_and_was_closed_may_have_departed_test() ->
    ?assertEqual([may_have_departed, may_have_departed, nothing],
                 [?PEER:lost(Reason, peer(false)) || Reason <- [closed, econnreset, timeout]]),
    ?assertEqual([nothing, nothing],
                 [?PEER:lost(Reason, peer(true)) || Reason <- [closed, timeout]]),
    [?assertEqual({Reason, [may_have_departed, nothing, nothing]},
                  {Reason, [?PEER:not_dialled(Reason, Before, false, peer(true))
                            || Before <- [closed, Reason, timeout]]})
     || Reason <- [nxdomain, no_epmd, no_port]].

a_name_that_is_forgotten_is_a_node_that_has_died_test() ->
    ?assertEqual(died, ?PEER:not_dialled(no_such_node, closed, true, peer(true))),
    ?assertEqual(nothing, ?PEER:not_dialled(no_such_node, closed, false, peer(true))),
    ?assertEqual(nothing, ?PEER:not_dialled(econnrefused, closed, false, peer(true))).

of_a_node_that_was_never_there_nothing_is_told_test() ->
    ?assertEqual([nothing, nothing], [?PEER:not_dialled(no_such_node, closed, true, undefined),
                                      ?PEER:not_returned(false, undefined)]).

who_has_not_come_back_has_departed_test() ->
    ?assertEqual([departed, nothing], [?PEER:not_returned(IsUp, peer(false))
                                       || IsUp <- [false, true]]).

peer(Listens) -> #{listens => Listens, incarnation => 1, token => <<"token">>, role => dialer}.
