%% SPDX-License-Identifier: Apache-2.0
-module(weft_payload_fifo_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

what_goes_in_comes_out_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_same_bytes(), [{numtests, 500}, quiet]))}.

%% Frames by one and in batches, taken now and then: the same frames in the same order, and the
%% counts are right all the time.
prop_same_bytes() ->
    ?FORALL(Steps, list(frequency([{5, {add, frame(), oneof([whole, middle, final])}},
                                   {2, {batch, non_empty(list(frame()))}},
                                   {3, take}])),
            begin
                New = weft_payload_fifo:new(131072),
                {Fifo, In, Out} = lists:foldl(fun step/2, {New, [], []}, Steps),
                Left = rest(Fifo),
                iolist_to_binary(lists:reverse(In)) =:= iolist_to_binary(lists:reverse(Out, Left))
                    andalso weft_payload_fifo:begun(Fifo)
                        =:= weft_payload_fifo:taken(Fifo) + length(Left)
            end).

frame() ->
    ?LET(Size, oneof([range(0, 200), range(0, 70000)]), binary:copy(<<Size:8>>, Size)).

step({add, Frame, Part}, {Fifo, In, Out}) ->
    {weft_payload_fifo:add(byte_size(Frame), [Frame], Part, none, Fifo), [sized(Frame) | In], Out};
step({batch, Frames}, {Fifo, In, Out}) ->
    Batch = [sized(Frame) || Frame <- Frames],
    {weft_payload_fifo:add_batch(Batch, iolist_size(Batch), length(Batch),
                                 [{length(Batch), none}], Fifo), [Batch | In],
     Out};
step(take, {Fifo0, In, Out}) ->
    case weft_payload_fifo:take(Fifo0) of
        {{Payload, Bytes, _Whole, Stamps}, Fifo} ->
            Bytes = iolist_size(Payload),
            [{Count, none}] = Stamps,
            Count = length([F || <<S:32, F:S/binary>> <= iolist_to_binary(Payload)]),
            Bytes = weft_payload_fifo:bytes(Fifo0) - weft_payload_fifo:bytes(Fifo),
            {Fifo, In, [Payload | Out]};
        empty ->
            0 = weft_payload_fifo:bytes(Fifo0),
            {Fifo0, In, Out}
    end.

sized(Frame) -> <<(byte_size(Frame)):32, Frame/binary>>.

rest(Fifo0) ->
    case weft_payload_fifo:take(Fifo0) of
        {{Payload, _, _, _}, Fifo} -> [Payload | rest(Fifo)];
        empty -> []
    end.

take(Fifo0) ->
    {{_, Bytes, Whole, _}, Fifo} = weft_payload_fifo:take(Fifo0),
    {Bytes, Whole, Fifo}.

%% Two fragments make a payload; it is not whole if the message goes on.
a_payload_of_fragments_test() ->
    Fragment = binary:copy(<<1>>, 65560),
    Add = fun({Frame, Part}, F) ->
                  weft_payload_fifo:add(byte_size(Frame), [Frame], Part, none, F)
          end,
    Fifo0 = lists:foldl(Add, weft_payload_fifo:new(131072),
                        [{Fragment, middle}, {Fragment, middle}, {Fragment, middle},
                         {<<"end">>, final}]),
    {131128, false, Fifo1} = take(Fifo0),
    ?assertMatch({65571, true, _}, take(Fifo1)).

many_small_pieces_become_one_binary_test() ->
    ?assert(is_binary(weft_payload_fifo:flatten(100, 2, [<<0:800>>]))),
    ?assert(is_binary(weft_payload_fifo:flatten(70000, 17, [<<0:560000>>]))),
    ?assert(is_list(weft_payload_fifo:flatten(70000, 16, [<<0:560000>>]))).
