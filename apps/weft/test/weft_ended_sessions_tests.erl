%% SPDX-License-Identifier: Apache-2.0
%% @doc Which sessions are remembered when they have ended, and who is told of them.
-module(weft_ended_sessions_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PEER, <<"peer@host">>).

%% And not those that the peer has ended, or its node.
what_this_node_has_ended_is_remembered_test() ->
    ?assertEqual([[{<<1:128>>, timed_out, ?PEER}], [{<<1:128>>, disconnected, ?PEER}],
                  [{<<1:128>>, disconnected, ?PEER}], [], [], [], []],
                 [remembered(How, distribution)
                  || How <- [net_tick_timeout, disconnect, lost, closed, connection_closed,
                             shutdown, killed]]).

%% Its sender asks for a path, and is told then.
a_stream_of_a_channel_is_not_remembered_test() ->
    ?assertEqual([[], [], []], [remembered(Reason, {channel, <<"logs">>, 0})
                            || Reason <- [net_tick_timeout, disconnect, lost]]).

remembered(Reason, Kind) ->
    {Rows, [], _} = weft_ended_sessions:ended(Reason, {<<1:128>>, Kind, ?PEER},
                                              weft_ended_sessions:new([])),
    Rows.

%% A peer whose ticks heard nothing from here says so. The session exits as if the ticks of this
%% node had ended it, and is remembered like that.
what_the_peer_says_of_its_end_is_the_reason_test() ->
    ?assertEqual([net_tick_timeout, closed, closed],
                 [weft_ended_sessions:how(Why) || Why <- [timed_out, ended, gone]]).

%% What is known from others may be wrong, and what is missing here is not known there.
an_end_without_a_word_of_the_peer_is_lost_test() ->
    [?assertEqual({Why, lost}, {Why, weft_ended_sessions:how(Why)})
     || Why <- [died, departed, input_died, carrier_died, resume_lost, refused, broken]].

each_peer_is_told_of_its_own_test() ->
    Rows = [{<<1:128>>, timed_out, ?PEER}, {<<2:128>>, disconnected, <<"other@host">>},
            {<<3:128>>, disconnected, ?PEER}],
    ?assertEqual([[<<1:128>>, <<3:128>>], [<<2:128>>], []],
                 [weft_ended_sessions:told(Peer, Rows)
                  || Peer <- [?PEER, <<"other@host">>, <<"third@host">>]]).

%% Also of those that were remembered before a restart.
only_the_last_ones_are_remembered_test() ->
    Before = weft_ended_sessions:new([{<<N:128>>, timed_out, ?PEER} || N <- [1, 2]]),
    Ended = fun(N, {Gone, Ended0}) ->
                {[_], Forgotten, Ended} =
                    weft_ended_sessions:ended(disconnect, {<<N:128>>, distribution, ?PEER}, Ended0),
                {Gone ++ Forgotten, Ended}
            end,
    {None, Full} = lists:foldl(Ended, {[], Before}, lists:seq(3, 1000)),
    ?assertEqual([], None),
    {Gone, _} = lists:foldl(Ended, {[], Full}, lists:seq(1001, 1003)),
    ?assertEqual([<<N:128>> || N <- [1, 2, 3]], Gone).
