%% SPDX-License-Identifier: Apache-2.0
-module(weft_input_core_tests).

-include_lib("eunit/include/eunit.hrl").

frames_wait_until_the_handle_is_known_test() ->
    {[], false, One} = data(1, frames, <<"one">>, input()),
    {[{handshake, <<"shake">>}], false, Two} = data(2, handshake, <<"shake">>, One),
    {[], false, Three} = data(3, frames, <<"three">>, Two),
    {Waited, none, Connected} = weft_input_core:connected(handle, Three),
    ?assertEqual([{frames, <<"one">>}, {frames, <<"three">>}], Waited),
    ?assertMatch({[{frames, <<"four">>}], false, _}, data(4, frames, <<"four">>, Connected)),
    ?assertMatch({[], none, _}, weft_input_core:connected(handle, Connected)).

what_waits_is_acknowledged_once_the_handle_is_known_test() ->
    {[], false, Asked} = weft_input_core:data(1, frames_ack, <<"one">>, a_lane, 7, input()),
    {[], false, Later} = weft_input_core:data(2, frames, <<"two">>, another_lane, 8, Asked),
    {_, Answer, Connected} = weft_input_core:connected(handle, Later),
    ?assertEqual({a_lane, 7}, Answer),
    ?assertEqual(2, weft_input_core:received(Connected)),
    ?assertMatch({[_], true, _}, data(3, frames_ack, <<"three">>, Connected)).

what_waits_is_bounded_test() ->
    WindowBytes = 1024,
    Bytes = 4 * WindowBytes + weft_wire:packet_bytes_max(),
    {[], false, Full} = data(1, frames, <<0:(Bytes + 1)/unit:8>>,
                             weft_input_core:new(session, counters, WindowBytes)),
    ?assertEqual(overflow, data(2, frames, <<>>, Full)),
    {[_], none, Connected} = weft_input_core:connected(handle, Full),
    ?assertMatch({[_], false, _}, data(2, frames, <<>>, Connected)).

what_comes_early_is_bounded_test() ->
    Bytes = 4 * 1024 + weft_wire:packet_bytes_max(),
    ?assertEqual(overflow, data(2, frames, <<0:Bytes/unit:8>>, connected())).

parts_are_put_together_test() ->
    {[], false, One} = data(1, part, <<"a">>, connected()),
    {[], true, Two} = data(2, part_ack, <<"b">>, One),
    {Whole, false, Three} = data(3, frames, <<"c">>, Two),
    ?assertEqual([{frames, <<"abc">>}], Whole),
    ?assertMatch({[{frames, <<"d">>}], false, _}, data(4, frames, <<"d">>, Three)).

%% What came early is delivered with what it waited for.
%% It bypasses them, and is none of them, also if all comes before the connection is known.
what_bypasses_parts_stays_whole_test() ->
    {[], false, One} = data(1, part, <<"a">>, connected()),
    {[{frames, <<"x">>}], false, Two} = data(3, {bypass, 0, 0}, <<"x">>, One),
    ?assertMatch({[{frames, <<"ab">>}], true, _}, data(2, frames, <<"b">>, Two)),
    {[], false, Early} = data(1, part, <<"a">>, input()),
    {[], false, Bypass} = data(3, {bypass, 0, 0}, <<"x">>, Early),
    {[], false, All} = data(2, frames_ack, <<"b">>, Bypass),
    ?assertMatch({[{frames, <<"x">>}, {frames, <<"ab">>}], _, _},
                 weft_input_core:connected(handle, All)).

parts_come_in_any_order_test() ->
    {[], false, Last} = data(3, frames, <<"c">>, connected()),
    {[], false, Last2} = data(4, frames, <<"d">>, Last),
    {[], true, Middle} = data(1, part, <<"a">>, Last2),
    ?assertMatch({[{frames, <<"abc">>}, {frames, <<"d">>}], true, _},
                 data(2, part, <<"b">>, Middle)).

what_is_too_large_ends_the_session_test() ->
    Part = <<0:(1 bsl 20)/unit:8>>,
    ?assertEqual([malformed], parts(1, Part, connected())).

parts(Sequence, Part, Input0) ->
    case data(Sequence, part, Part, Input0) of
        {[], _, Input} when Sequence < 5000 -> parts(Sequence + 1, Part, Input);
        {Deliveries, _, _} -> Deliveries
    end.

a_tick_asks_for_what_has_come_test() ->
    ?assertMatch({false, _}, weft_input_core:tick(connected())),
    {[_], false, Came} = data(1, frames, <<"one">>, connected()),
    {true, Told} = weft_input_core:tick(Came),
    ?assertMatch({false, _}, weft_input_core:tick(Told)).

what_it_was_made_for_stays_with_it_test() ->
    Connected = connected(),
    ?assertEqual({session, counters, handle},
                 {weft_input_core:session(Connected), weft_input_core:counters(Connected),
                  weft_input_core:handle(Connected)}),
    ?assertEqual(undefined, weft_input_core:handle(input())).

input() -> weft_input_core:new(session, counters, 1024).

connected() ->
    {[], none, Connected} = weft_input_core:connected(handle, input()),
    Connected.

data(Sequence, Kind, Payload, Input) ->
    weft_input_core:data(Sequence, Kind, Payload, lane, 1, Input).
