%% SPDX-License-Identifier: Apache-2.0
-module(weft_amqp_presence_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NEW, weft_amqp_presence_core:new(<<"a@h">>, 50)).

says(What, Name, Incarnation, Stamp) ->
    #{what => What, name => Name, incarnation => Incarnation, stamp => Stamp, interval_ms => 1000,
      queue => <<"q", (integer_to_binary(Incarnation))/binary>>}.

heard(Announcements) ->
    lists:foldl(fun({NowMs, Announcement}, {_, Presence}) ->
                        weft_amqp_presence_core:heard(Announcement, NowMs, Presence)
                end, {[], ?NEW}, Announcements).

one_that_says_hello_is_answered_test() ->
    {Effects, Presence} = heard([{0, says(hello, <<"b@h">>, 1, 1)}]),
    ?assertEqual([{hello, <<"q1">>}, {moved, <<"b@h">>, <<"q1">>}], Effects),
    ?assertEqual([<<"b@h">>], weft_amqp_presence_core:nodes(Presence)).

hearing_it_again_is_no_news_test() ->
    ?assertMatch({[], _}, heard([{0, says(here, <<"b@h">>, 1, 1)},
                                 {1, says(here, <<"b@h">>, 1, 2)}])).

a_recorded_announcement_is_ignored_test() ->
    {[], Presence} = heard([{0, says(here, <<"b@h">>, 2, 8)}, {1, says(hello, <<"b@h">>, 2, 8)}]),
    ?assertMatch({[], Presence}, weft_amqp_presence_core:heard(says(bye, <<"b@h">>, 2, 7), 2,
                                                               Presence)),
    ?assertMatch({[], Presence}, weft_amqp_presence_core:heard(says(here, <<"b@h">>, 1, 9), 2,
                                                               Presence)).

a_later_start_takes_the_place_test() ->
    ?assertMatch({[{moved, <<"b@h">>, <<"q3">>}], _}, heard([{0, says(here, <<"b@h">>, 2, 8)},
                                                            {1, says(here, <<"b@h">>, 3, 1)}])).

who_says_bye_is_gone_until_it_says_more_test() ->
    {Effects, Presence} = heard([{0, says(here, <<"b@h">>, 1, 1)},
                                 {1, says(bye, <<"b@h">>, 1, 2)}]),
    ?assertEqual([{gone, <<"b@h">>}], Effects),
    ?assertEqual([], weft_amqp_presence_core:nodes(Presence)),
    ?assertMatch({[{moved, <<"b@h">>, <<"q1">>}], _},
                 weft_amqp_presence_core:heard(says(here, <<"b@h">>, 1, 3), 2, Presence)).

who_is_not_heard_for_long_is_lost_test() ->
    {_, Presence} = heard([{0, says(here, <<"b@h">>, 1, 1)}, {4000, says(here, <<"c@h">>, 1, 1)}]),
    ?assertMatch({[], Presence}, weft_amqp_presence_core:expire(6000, Presence)),
    {Effects, Left} = weft_amqp_presence_core:expire(6001, Presence),
    ?assertEqual([{lost, <<"b@h">>}], Effects),
    ?assertEqual([<<"c@h">>], weft_amqp_presence_core:nodes(Left)).

nobody_expires_while_nothing_could_be_heard_test() ->
    {_, Presence0} = heard([{0, says(here, <<"b@h">>, 1, 1)}]),
    Presence = weft_amqp_presence_core:restart(100000, Presence0),
    ?assertMatch({[], _}, weft_amqp_presence_core:expire(106000, Presence)),
    ?assertMatch({[_], _}, weft_amqp_presence_core:expire(106001, Presence)).

of_two_with_our_name_the_later_counts_test() ->
    [?assertMatch({Effects, _}, heard([{0, says(What, <<"a@h">>, Incarnation, 1)}]))
     || {What, Incarnation, Effects} <- [{here, 50, []}, {here, 51, [superseded]},
                                         {hello, 49, [older]}, {bye, 51, []}]].

the_table_is_bounded_and_the_interval_grows_with_it_test() ->
    Names = [<<(integer_to_binary(N))/binary, "@h">> || N <- lists:seq(1, 10001)],
    {_, Presence} = heard([{0, says(here, Name, 1, 1)} || Name <- Names]),
    ?assertEqual(10000, length(weft_amqp_presence_core:nodes(Presence))),
    ?assertEqual(1000000, weft_amqp_presence_core:interval_ms(5000, Presence)),
    ?assertEqual(5000, weft_amqp_presence_core:interval_ms(5000, ?NEW)).
