%% SPDX-License-Identifier: Apache-2.0
-module(weft_parts_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% A lane on a slow network is not held up by one packet for long, and a mebibyte is not copied.
what_is_much_larger_than_a_mebibyte_is_cut_test() ->
    ?assertEqual([false, true],
                 [weft_parts:is_too_large(Bytes, distribution) || Bytes <- [1 bsl 20, 1 bsl 21]]).

%% Their receivers put nothing together.
payloads_of_channels_are_whole_test() ->
    ?assertEqual([false, true], [weft_parts:is_too_large(weft_wire:packet_bytes_max() - Less,
                                                         {channel, <<"bulk">>, 0})
                                 || Less <- [1024, 0]]).

parts_are_put_together_again_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_joined(), [{numtests, 100}, {to_file, user}]))}.

prop_joined() ->
    ?FORALL({Kind, Sizes}, {oneof([frames, defines]), list(range(0, 400000))},
            begin
                Payload = [[rand:bytes(Size)] || Size <- Sizes],
                {Parts, [{Last, LastPart, _}]} = lists:split(length(sent(Kind, Payload)) - 1,
                                                             sent(Kind, Payload)),
                lists:all(fun({What, Part, Bytes}) ->
                                  What =:= part andalso iolist_size(Part) =:= Bytes
                                      andalso Bytes =< 131072
                          end, Parts)
                    andalso Last =:= Kind
                    andalso received([Part || {_, Part, _} <- Parts], LastPart)
                    =:= iolist_to_binary(Payload)
            end).

sent(Kind, Payload) -> sent(weft_parts:cut(Kind, Payload)).

sent(none) ->
    [];
sent(Rest0) ->
    {Kind, Part, Bytes, Rest} = weft_parts:next(Rest0),
    [{Kind, Part, Bytes} | sent(Rest)].

received(Parts, Last) ->
    Joined = lists:foldl(fun(Part, Acc) -> weft_parts:join(iolist_to_binary(Part), Acc) end,
                         none, Parts),
    weft_parts:finish(iolist_to_binary(Last), Joined).

more_than_a_frame_can_have_is_refused_test_() ->
    {timeout, 60,
     fun() ->
         Part = binary:copy(<<0>>, 1 bsl 27),
         Joined = lists:foldl(fun(_, Acc) -> weft_parts:join(Part, Acc) end, none,
                              lists:seq(1, 33)),
         ?assertEqual(too_large, weft_parts:join(Part, Joined))
     end}.
