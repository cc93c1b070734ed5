%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether a link is demanded. This module is the handler above it; its state says what it
%% answers.
-module(weft_link_demand_tests).

-include_lib("eunit/include/eunit.hrl").

-export([wants_link/1, is_in_use/1, can_spare_link/1, wants_lanes/1, sent_packets/1]).

-define(DEMAND, weft_link_demand).
-define(IDLE, #{}).

wants_link(Above) -> maps:get(wants_link, Above, false).

is_in_use(Above) -> maps:get(is_in_use, Above, false).

can_spare_link(Above) -> maps:get(can_spare_link, Above, false).

wants_lanes(Above) -> maps:get(wants_lanes, Above, []).

%% It is the tunnel of the lanes as well.
sent_packets(_) -> 0.

a_link_is_dialled_for_its_own_sake_or_for_what_is_above_test() ->
    [New, Wanted] = [?DEMAND:new(), ?DEMAND:want(true, ?DEMAND:new())],
    ?assertEqual([false, link, link],
                 [?DEMAND:missing(Demand, false, {?MODULE, Above}, undefined, #{})
                  || {Demand, Above} <- [{New, ?IDLE}, {Wanted, ?IDLE},
                                         {New, #{wants_link => true}}]]).

%% It gets no further lanes for that.
a_link_is_dialled_while_its_node_may_have_ended_test() ->
    Unwanted = ?DEMAND:want(false, ?DEMAND:want(true, ?DEMAND:new())),
    Lane = lane({<<>>, 0}),
    Silent = weft_link_lanes:add(Lane, peer(), 10, #{}),
    {Lane, Heard} = weft_link_lanes:received(weft_lane:socket(Lane), Silent),
    ?assertEqual([link, false],
                 [?DEMAND:missing(Unwanted, true, {?MODULE, ?IDLE}, peer(), Of)
                  || Of <- [#{}, Heard]]).

%% As many of its own as are configured, one; and those that a channel wants.
a_link_that_was_heard_gets_further_lanes_test() ->
    Lane = lane({<<>>, 0}),
    Silent = weft_link_lanes:add(Lane, peer(), 10, #{}),
    {Lane, Heard} = weft_link_lanes:received(weft_lane:socket(Lane), Silent),
    Missing = fun(Above, Lanes) ->
                      ?DEMAND:missing(?DEMAND:new(), false, {?MODULE, Above}, peer(), Lanes)
              end,
    Channel = #{wants_lanes => [{<<"x">>, 1}]},
    ?assertEqual([false, false, {{lane, <<"x">>, 1}, <<"token">>}],
                 [Missing(Channel, Silent), Missing(?IDLE, Heard), Missing(Channel, Heard)]),
    Full = lists:foldl(fun(N, Lanes) -> weft_link_lanes:add(lane({<<>>, N}), peer(), 10, Lanes) end,
                       Heard, lists:seq(1, 255)),
    ?assertEqual(false, Missing(Channel, Full)).

what_is_wanted_or_in_use_is_kept_test() ->
    New = ?DEMAND:new(),
    ?assertEqual([false, true, true],
                 [?DEMAND:is_kept(New, {?MODULE, ?IDLE}),
                  ?DEMAND:is_kept(New, {?MODULE, #{is_in_use => true}}),
                  ?DEMAND:is_kept(?DEMAND:want(true, New), {?MODULE, ?IDLE})]).

%% One that is not in use is the other end's, or is closed when it has been idle.
what_was_never_wanted_is_released_only_if_all_that_uses_it_can_spare_it_test() ->
    New = ?DEMAND:new(),
    ?assertNot(?DEMAND:is_wanted(New)),
    ?assertEqual([false, false, true], may_be_released(0, New)),
    ?assertEqual(New, ?DEMAND:want(false, New)).

what_is_wanted_stays_test() ->
    Wanted = ?DEMAND:want(true, ?DEMAND:new()),
    ?assert(?DEMAND:is_wanted(Wanted)),
    ?assertEqual([false, false, false], may_be_released(later_ms(), Wanted)).

what_is_not_wanted_any_more_may_be_closed_a_little_later_test() ->
    Given = ?DEMAND:want(false, ?DEMAND:want(true, ?DEMAND:new())),
    ?assertEqual([false, false, false],
                 may_be_released(erlang:monotonic_time(millisecond) - 1000, Given)),
    receive unwanted -> ok after 5000 -> error(not_told) end,
    ?assertEqual([true, false, true], may_be_released(later_ms(), Given)),
    ?assertEqual([false, false, false], may_be_released(later_ms(), ?DEMAND:want(true, Given))).

who_parts_has_time_until_told_test_() ->
    {timeout, 30, fun who_parts_has_time_until_told/0}.

who_parts_has_time_until_told() ->
    Parting = ?DEMAND:part(?DEMAND:want(false, ?DEMAND:want(true, ?DEMAND:new()))),
    ?assert(?DEMAND:is_parting(Parting)),
    ?assertEqual([false, false, false], may_be_released(later_ms(), Parting)),
    receive {timeout, Timer, parted} -> ?assert(?DEMAND:is_parted(Timer, Parting))
    after 10000 -> error(not_told)
    end,
    ?assertEqual([true, false, true], may_be_released(later_ms(), ?DEMAND:stay(Parting))).

a_timer_of_an_earlier_parting_does_not_count_test_() ->
    {timeout, 30, fun a_timer_of_an_earlier_parting_does_not_count/0}.

a_timer_of_an_earlier_parting_does_not_count() ->
    Again = ?DEMAND:stay(?DEMAND:part(?DEMAND:new())),
    receive {timeout, Timer, parted} -> ?assertNot(?DEMAND:is_parted(Timer, Again))
    after 10000 -> error(not_told)
    end.

%% When nothing uses the link, when something does, and when that can go another way.
may_be_released(NowMs, Demand) ->
    [?DEMAND:may_be_released(NowMs, Demand, {?MODULE, Above})
     || Above <- [?IDLE, #{is_in_use => true}, #{is_in_use => true, can_spare_link => true}]].

later_ms() -> erlang:monotonic_time(millisecond) + 1000000.

peer() -> #{role => dialer, token => <<"token">>, peername => undefined}.

lane(Key) ->
    weft_lane:new({tunnel, ?MODULE, make_ref()}, Key, {weft_fault_table, lateness, ['peer@host']}).
