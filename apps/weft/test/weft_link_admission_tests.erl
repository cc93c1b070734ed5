%% SPDX-License-Identifier: Apache-2.0
%% @doc Who may go on to prove what it claims, and with what.
-module(weft_link_admission_tests).

-include_lib("eunit/include/eunit.hrl").

-define(LANE, {lane, <<"bulk">>, 1}).

a_node_without_a_link_proves_that_it_knows_the_cookie_test() ->
    ?assertEqual([{ok, cookie}, {ok, cookie}],
                 [decide(<<"b">>, link, Link) || Link <- [undefined, #{is_calling => false}]]).

a_further_lane_is_for_a_link_that_is_up_test() ->
    ?assertEqual([no_link, no_link, {ok, {token, <<"token">>}}],
                 [decide(<<"b">>, ?LANE, Link)
                  || Link <- [undefined, #{token => <<"token">>}, up(#{})]]).

on_a_cut_link_nobody_goes_on_test() ->
    ?assertEqual([refused, refused],
                 [weft_link_admission:decide(claim(<<"b">>, 7, Purpose), up(#{}), own(true, 0))
                  || Purpose <- [link, ?LANE]]).

of_two_calls_that_of_the_greater_name_goes_on_test() ->
    ?assertEqual([simultaneous, {ok, cookie}],
                 [decide(Name, link, #{is_calling => true}) || Name <- [<<"b">>, <<"z">>]]).

%% It may have been begun before its dialer knew of this node's call.
a_call_that_comes_a_moment_after_the_own_one_is_up_crosses_it_test() ->
    At = fun(Name, Incarnation, NowUs) ->
             weft_link_admission:decide(claim(Name, Incarnation, link),
                                        up(#{dialled_us => 500}), own(false, NowUs))
         end,
    ?assertEqual(simultaneous, At(<<"b">>, 7, 1_000_499)),
    ?assertEqual({ok, cookie}, At(<<"b">>, 7, 1_000_500)),
    ?assertEqual({ok, cookie}, At(<<"z">>, 7, 1_000_499)),
    %% A node that has started again did not know of it, and needs its link.
    ?assertEqual({ok, cookie}, At(<<"b">>, 8, 1_000_499)).

an_earlier_start_does_not_take_a_link_that_is_up_test() ->
    Of = fun(Incarnation, Link) ->
             weft_link_admission:decide(claim(<<"b">>, Incarnation, link), Link, own(false, 0))
         end,
    ?assertEqual([superseded, {ok, cookie}, {ok, cookie}],
                 [Of(6, up(#{})), Of(7, up(#{})), Of(6, #{incarnation => 7})]).

decide(Name, Purpose, Link) ->
    weft_link_admission:decide(claim(Name, 7, Purpose), Link, own(false, 0)).

claim(Name, Incarnation, Purpose) ->
    #{name => Name, incarnation => Incarnation, purpose => Purpose}.

own(IsCut, NowUs) -> #{own_name => <<"n">>, is_cut => IsCut, now_us => NowUs}.

up(More) -> maps:merge(#{lane => lane, token => <<"token">>, incarnation => 7}, More).
