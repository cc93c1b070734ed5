%% SPDX-License-Identifier: Apache-2.0
-module(weft_link_wish_tests).

-include_lib("eunit/include/eunit.hrl").

-define(WISH, weft_link_wish).

what_was_never_wanted_is_not_given_up_but_may_be_closed_test() ->
    New = ?WISH:new(),
    ?assertEqual({false, false, true},
                 {?WISH:is_wanted(New), ?WISH:is_given_up(New), ?WISH:is_settled(0, New)}),
    ?assertEqual(New, ?WISH:wish(false, New)).

what_is_wanted_stays_test() ->
    Wanted = ?WISH:wish(true, ?WISH:new()),
    ?assertEqual({true, false, false},
                 {?WISH:is_wanted(Wanted), ?WISH:is_given_up(Wanted),
                  ?WISH:is_settled(later_ms(), Wanted)}).

what_is_not_wanted_any_more_may_be_closed_a_little_later_test() ->
    Given = ?WISH:wish(false, ?WISH:wish(true, ?WISH:new())),
    ?assert(?WISH:is_given_up(Given)),
    ?assertNot(?WISH:is_settled(erlang:monotonic_time(millisecond) - 1000, Given)),
    receive unwanted -> ok after 5000 -> error(not_told) end,
    ?assert(?WISH:is_settled(later_ms(), Given)),
    ?assertNot(?WISH:is_settled(later_ms(), ?WISH:wish(true, Given))).

who_parts_has_time_until_told_test_() ->
    {timeout, 30, fun who_parts_has_time_until_told/0}.

who_parts_has_time_until_told() ->
    Parting = ?WISH:part(?WISH:wish(false, ?WISH:wish(true, ?WISH:new()))),
    ?assert(?WISH:is_parting(Parting)),
    ?assertNot(?WISH:is_settled(later_ms(), Parting)),
    receive {timeout, Timer, parted} -> ?assert(?WISH:is_parted(Timer, Parting))
    after 10000 -> error(not_told)
    end,
    ?assert(?WISH:is_settled(later_ms(), ?WISH:stay(Parting))).

a_timer_of_an_earlier_parting_does_not_count_test_() ->
    {timeout, 30, fun a_timer_of_an_earlier_parting_does_not_count/0}.

a_timer_of_an_earlier_parting_does_not_count() ->
    Again = ?WISH:stay(?WISH:part(?WISH:new())),
    receive {timeout, Timer, parted} -> ?assertNot(?WISH:is_parted(Timer, Again))
    after 10000 -> error(not_told)
    end.

later_ms() -> erlang:monotonic_time(millisecond) + 1000000.
