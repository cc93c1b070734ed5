%% SPDX-License-Identifier: Apache-2.0
%% @doc Which lanes a link takes in, and what they replace.
-module(weft_link_welcome_tests).

-include_lib("eunit/include/eunit.hrl").

-define(FIRST, {<<>>, 0}).

the_first_lane_brings_the_link_up_test() ->
    ?assertEqual({welcome, nothing}, decide(link, peer(#{}), link(#{}, []))).

on_a_cut_link_nothing_comes_up_test() ->
    Link = (link(#{}, [{?FIRST, dialer}]))#{is_cut := true},
    ?assertEqual([refused, refused],
                 [decide(Purpose, peer(#{}), Link) || Purpose <- [link, {lane, <<>>, 1}]]).

a_peer_that_dials_again_has_given_up_all_lanes_test() ->
    Up = link(#{role => listener}, [{?FIRST, listener}, {{<<"x">>, 1}, dialer}]),
    ?assertEqual({welcome, {link_down, broken}}, decide(link, peer(#{role => listener}), Up)).

another_start_of_the_peer_ends_all_that_there_is_test() ->
    Up = link(#{incarnation => 7}, [{?FIRST, dialer}, {{<<"x">>, 1}, dialer}]),
    ?assertEqual({{restarted, 8}, {welcome, nothing}},
                 weft_link_welcome:met(link, peer(#{incarnation => 8}), Up)),
    ?assertEqual({{restarted, 6}, {welcome, nothing}},
                 weft_link_welcome:met(link, peer(#{incarnation => 6}), Up#{lanes := []})),
    ?assertEqual({{restarted, 8}, refused},
                 weft_link_welcome:met(link, peer(#{incarnation => 8}), Up#{is_cut := true})),
    ?assertEqual({superseded, refused},
                 weft_link_welcome:met(link, peer(#{incarnation => 6}), Up)).

%% What proves it is the token of the first one.
the_first_lane_says_who_the_peer_is_test() ->
    ?assertEqual([new, before], [weft_link_welcome:peer(Purpose, new, before)
                                 || Purpose <- [link, {lane, <<>>, 1}]]).

who_was_started_before_the_peer_gets_no_link_that_is_up_test() ->
    Of = fun(Incarnation, Lanes) ->
             decide(link, peer(#{incarnation => Incarnation}), link(#{incarnation => 7}, Lanes))
         end,
    ?assertEqual([refused, {welcome, {link_down, broken}}, {welcome, nothing}],
                 [Of(6, [{?FIRST, dialer}]), Of(7, [{?FIRST, dialer}]), Of(6, [])]).

%% Both calls were begun before the first one was answered, in either order, at a and at c. The
%% other end is b.
of_two_calls_that_crossed_both_ends_keep_that_of_the_greater_name_test() ->
    ?assertEqual([refused, {welcome, {link_down, broken}}],
                 [crossed(<<"a">>, First) || First <- [listener, dialer]]),
    ?assertEqual([refused, {welcome, {link_down, broken}}],
                 [crossed(<<"c">>, First) || First <- [dialer, listener]]).

crossed(Own, First) ->
    Second = case First of dialer -> listener; listener -> dialer end,
    Up = (link(#{role => First}, [{?FIRST, First}]))#{own_name := Own, up_us := 100},
    decide(link, peer(#{role => Second, begun_us => 99, name => <<"b">>}), Up).

a_call_that_was_begun_later_did_not_cross_test() ->
    Up = (link(#{role => listener}, [{?FIRST, listener}]))#{up_us := 100},
    ?assertEqual({welcome, {link_down, broken}},
                 decide(link, peer(#{role => dialer, begun_us => 100}), Up)).

a_further_lane_needs_the_link_that_it_was_authenticated_for_test() ->
    Lane = {lane, <<>>, 1},
    Up = link(#{token => <<"token">>}, [{?FIRST, dialer}]),
    ?assertEqual([{welcome, nothing}, refused, refused],
                 [decide(Lane, peer(#{proven_with => <<"token">>}), Up),
                  decide(Lane, peer(#{proven_with => <<"earlier">>}), Up),
                  decide(Lane, peer(#{proven_with => <<"token">>}),
                         link(#{token => <<"token">>}, []))]).

a_further_lane_replaces_that_of_its_key_and_side_test() ->
    Up = link(#{}, [{?FIRST, dialer}, {{<<"x">>, 1}, dialer}, {{<<"x">>, 1}, listener}]),
    ?assertEqual([{welcome, {lane_down, {{<<"x">>, 1}, Role}}} || Role <- [dialer, listener]],
                 [decide({lane, <<"x">>, 1}, peer(#{role => Role}), Up)
                  || Role <- [dialer, listener]]),
    ?assertEqual({welcome, nothing}, decide({lane, <<"x">>, 2}, peer(#{role => dialer}), Up)).

what_replaces_the_only_lane_replaces_all_test() ->
    Up = link(#{}, [{{<<>>, 1}, dialer}]),
    ?assertEqual([{welcome, {link_down, broken}}, {welcome, nothing}],
                 [decide({lane, <<>>, 1}, peer(#{role => Role}), Up)
                  || Role <- [dialer, listener]]).

a_link_has_not_more_lanes_than_it_may_test() ->
    ?assertEqual([true, false], [weft_link_welcome:has_room(Count) || Count <- [255, 256]]),
    Full = link(#{}, [{{<<"x">>, N}, listener} || N <- lists:seq(1, 256)]),
    ?assertEqual(refused, decide({lane, <<>>, 1}, peer(#{}), Full)).

the_first_lane_has_no_index_in_its_purpose_test() ->
    ?assertEqual([?FIRST, {<<"x">>, 2}],
                 [weft_link_welcome:key(Purpose) || Purpose <- [link, {lane, <<"x">>, 2}]]).

decide(Purpose, New, Link) ->
    {_, Welcome} = weft_link_welcome:met(Purpose, New, Link),
    Welcome.

%% Each lane is called what it is.
link(Peer, Lanes) ->
    #{own_name => <<"a">>, is_cut => false, peer => peer(Peer), up_us => 100,
      lanes => [{{Key, Role}, Key, Role} || {Key, Role} <- Lanes]}.

peer(Peer) ->
    maps:merge(#{role => dialer, name => <<"b">>, begun_us => 0, incarnation => 7,
                 token => <<"token">>, proven_with => <<"token">>}, Peer).
