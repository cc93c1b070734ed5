%% SPDX-License-Identifier: Apache-2.0
%% @doc The receiving half of a session, rule by rule. Both halves together are in
%% weft_outbound_core_tests.
-module(weft_inbound_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(EARLY_MAX, 10000).

new() -> weft_inbound_core:new(?EARLY_MAX).

accept(Sequence, Payload, In0) ->
    {Deliveries, Ack, In} = weft_inbound_core:accept(Sequence, frames, Payload, In0),
    {[P || {frames, P} <- Deliveries], Ack, In}.

what_is_expected_is_delivered_at_once_test() ->
    {[<<"a">>], false, In1} = accept(1, <<"a">>, new()),
    {[<<"b">>], false, In2} = accept(2, <<"b">>, In1),
    ?assertEqual(2, weft_inbound_core:received(In2)).

what_is_asked_for_is_acknowledged_test() ->
    ?assertMatch({[{frames, <<"a">>}], true, _},
                 weft_inbound_core:accept(1, frames_ack, <<"a">>, new())),
    ?assertMatch({[{handshake, <<"a">>}], false, _},
                 weft_inbound_core:accept(1, handshake, <<"a">>, new())).

a_repeated_payload_is_dropped_and_acknowledged_again_test() ->
    {_, _, In} = accept(1, <<"a">>, new()),
    ?assertEqual({[], true, In}, accept(1, <<"a">>, In)),
    ?assertEqual({[], true, In}, accept(0, <<"a">>, In)).

what_comes_early_waits_for_the_gap_to_close_test() ->
    {[], false, In1} = accept(3, <<"c">>, new()),
    {[], false, In2} = accept(2, <<"b">>, In1),
    {[], false, In3} = accept(3, <<"c">>, In2),
    ?assertEqual(0, weft_inbound_core:received(In3)),
    {[<<"a">>, <<"b">>, <<"c">>], true, In4} = accept(1, <<"a">>, In3),
    ?assertEqual(3, weft_inbound_core:received(In4)),
    {[<<"d">>], false, _} = accept(4, <<"d">>, In4).

what_waits_is_bounded_in_bytes_test() ->
    Third = binary:copy(<<0>>, ?EARLY_MAX div 3 - 200),
    {[], _, In1} = accept(2, Third, new()),
    {[], _, In2} = accept(3, Third, In1),
    {[], _, In3} = accept(4, Third, In2),
    ?assertEqual(overflow, weft_inbound_core:accept(5, frames, Third, In3)),
    %% What closes the gap is welcome all the same, and makes room.
    {[_, _, _, _], true, In4} = accept(1, Third, In3),
    ?assertMatch({[], false, _}, accept(9, Third, In4)).

%% Empty payloads take memory too.
what_waits_is_bounded_in_number_test() ->
    ?assertMatch({overflow, Count} when Count < 1000, fill(2, new())).

fill(Sequence, In0) when Sequence < 2000 ->
    case weft_inbound_core:accept(Sequence, frames, <<>>, In0) of
        {[], false, In} -> fill(Sequence + 1, In);
        overflow -> {overflow, Sequence}
    end;
fill(Sequence, _In) ->
    {no_overflow, Sequence}.

%% --- what bypasses others ---------------------------------------------------------------------

bypass(Sequence, After, Floor, In0) ->
    {Deliveries, Ack, In} = weft_inbound_core:accept(Sequence, {bypass, After, Floor},
                                                     <<Sequence>>, In0),
    {[N || {_, <<N>>} <- Deliveries], Ack, In}.

in_order(Sequence, In0) ->
    {Deliveries, _, In} = weft_inbound_core:accept(Sequence, frames, <<Sequence>>, In0),
    {[N || {_, <<N>>} <- Deliveries], In}.

%% 1, 3 and 4 have not come.
what_bypasses_others_waits_for_nobody_else_test() ->
    {[2], false, In1} = bypass(2, 0, 0, new()),
    {[5], false, In2} = bypass(5, 2, 0, In1),
    ?assertEqual(0, weft_inbound_core:received(In2)),
    ?assertMatch({[], _, In2}, bypass(5, 2, 0, In2)),
    {[1], In3} = in_order(1, In2),
    ?assertEqual(2, weft_inbound_core:received(In3)),
    {[], In4} = in_order(4, In3),
    {[3, 4], In5} = in_order(3, In4),
    ?assertEqual(5, weft_inbound_core:received(In5)),
    ?assertMatch({[6], _}, in_order(6, In5)).

it_waits_for_the_one_that_it_follows_and_for_its_floor_test() ->
    {[], false, In1} = bypass(5, 4, 0, new()),
    {[], false, In2} = bypass(4, 3, 1, In1),
    {[3], false, In3} = bypass(3, 0, 0, In2),
    {[1, 4, 5], In4} = in_order(1, In3),
    {[2], In5} = in_order(2, In4),
    ?assertEqual(5, weft_inbound_core:received(In5)).

%% Also if it was to wait for longer.
at_its_number_it_is_given_out_test() ->
    {[], false, In1} = bypass(3, 2, 2, new()),
    {[], In2} = in_order(2, In1),
    {[1, 2, 3], In3} = in_order(1, In2),
    ?assertMatch({[4], _, _}, bypass(4, 3, 3, In3)).

an_acknowledgement_can_be_asked_for_early_test() ->
    {[_], true, In} = weft_inbound_core:accept(2, {bypass_ack, 0, 0}, <<>>, new()),
    ?assertEqual(0, weft_inbound_core:received(In)).

%% What has been given out takes its place until its number is reached, and no more.
what_was_given_out_early_is_bounded_too_test() ->
    Large = binary:copy(<<0>>, ?EARLY_MAX),
    {[_], _, In} = weft_inbound_core:accept(2, {bypass, 0, 0}, Large, new()),
    ?assertMatch({[_], _, _}, weft_inbound_core:accept(3, {bypass, 2, 0}, Large, In)),
    ?assertMatch({overflow, Count} when Count < 200, give_early(2, new())).

give_early(Sequence, In0) when Sequence < 2000 ->
    case weft_inbound_core:accept(Sequence, {bypass, 0, 0}, <<>>, In0) of
        {[_], false, In} -> give_early(Sequence + 1, In);
        overflow -> {overflow, Sequence}
    end;
give_early(Sequence, _In) ->
    {no_overflow, Sequence}.

%% Links at rest would carry twice as much.
a_tick_is_answered_if_something_came_test() ->
    {IsNew0, In0} = weft_inbound_core:ticked(new()),
    {_, false, In1} = weft_inbound_core:accept(1, frames, <<>>, In0),
    {IsNew1, In2} = weft_inbound_core:ticked(In1),
    {IsNew2, In3} = weft_inbound_core:ticked(In2),
    %% It was acknowledged already, but that may have been lost.
    {_, true, In4} = weft_inbound_core:accept(2, frames_ack, <<>>, In3),
    {IsNew4, _} = weft_inbound_core:ticked(In4),
    ?assertEqual([false, true, false, true], [IsNew0, IsNew1, IsNew2, IsNew4]),
    ?assertEqual(2, weft_inbound_core:received(In4)).

%% Only where it was asked for: a gateway on another path may not know such packets.
times_are_told_on_the_lanes_that_ask_test() ->
    {_, true, In0} = weft_inbound_core:accept(1, frames_ack, <<>>, new()),
    Answers = fun(In) -> [iolist_to_binary(weft_inbound_core:answer(Lane, Label, 77, In))
                          || {Lane, Label} <- [{near, 5}, {far, 5}, {near, 6}]]
              end,
    Ack = fun(Label) -> iolist_to_binary(weft_wire:ack(Label, 1)) end,
    Arrived = fun(Label) -> iolist_to_binary(weft_wire:arrived(Label, 1, 77)) end,
    Near = weft_inbound_core:times(near, 5, In0),
    Both = weft_inbound_core:times(far, 5, Near),
    ?assertEqual([Ack(5), Ack(5), Ack(6)], Answers(In0)),
    ?assertEqual([Arrived(5), Ack(5), Ack(6)], Answers(Near)),
    ?assertEqual([Arrived(5), Arrived(5), Ack(6)], Answers(Both)),
    ?assertEqual([Ack(5), Ack(5), Arrived(6)], Answers(weft_inbound_core:times(near, 6, Both))).

%% Whoever asks again and again.
lanes_that_ask_for_times_are_bounded_test() ->
    Many = lists:foldl(fun(Lane, In) -> weft_inbound_core:times(Lane, 5, In) end, new(),
                       lists:seq(1, 1000) ++ lists:duplicate(1000, same)),
    ?assert(erts_debug:flat_size(Many) < 1000),
    ?assertMatch(<<14, _/binary>>, iolist_to_binary(weft_inbound_core:answer(1000, 5, 0, Many))).

%% Links are not suspended when another version is loaded.
the_state_of_the_version_before_is_read_test() ->
    {_, _, In} = weft_inbound_core:accept(1, frames, <<>>, new()),
    Before = erlang:delete_element(tuple_size(In), In),
    ?assertMatch({[{frames, <<"x">>}], true, _},
                 weft_inbound_core:accept(2, frames_ack, <<"x">>, Before)),
    ?assertEqual({true, 1}, {element(1, weft_inbound_core:ticked(Before)),
                             weft_inbound_core:received(Before)}),
    ?assertEqual(weft_inbound_core:times(near, 5, In), weft_inbound_core:times(near, 5, Before)),
    ?assertEqual(weft_wire:ack(5, 1), weft_inbound_core:answer(near, 5, 0, Before)).
