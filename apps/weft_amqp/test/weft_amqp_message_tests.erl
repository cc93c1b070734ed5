%% SPDX-License-Identifier: Apache-2.0
-module(weft_amqp_message_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(ID, <<1:64, 2:64>>).

what_is_encoded_is_decoded_test() ->
    Decoded = fun(Message) -> weft_amqp_message:decode(iolist_to_binary(Message)) end,
    ?assertEqual({lane, ?ID, {open, <<"queue">>}},
                 Decoded(weft_amqp_message:open(?ID, <<"queue">>))),
    ?assertEqual({lane, ?ID, {plain, 3, <<"bytes">>}},
                 Decoded(weft_amqp_message:plain(?ID, 3, ["by", <<"tes">>]))),
    ?assertEqual({lane, ?ID, {plain, 1, <<>>}}, Decoded(weft_amqp_message:plain(?ID, 1, <<>>))),
    ?assertEqual({announce, <<"it">>}, Decoded(weft_amqp_message:announce(<<"it">>))),
    [begin
         Head = weft_amqp_message:sealed_head(?ID, 9, Content),
         ?assertEqual({lane, ?ID, {sealed, 9, Content, {Head, <<5:128>>, <<"cipher">>}}},
                      Decoded(weft_amqp_message:sealed(Head, <<5:128>>, <<"cipher">>)))
     end || Content <- [part, last, credit, close]].

%% The version and the known kinds in front, or not.
anything_is_decoded_without_an_exception_test_() ->
    Property = ?FORALL({Head, Rest}, {oneof([<<>>, <<1>>, <<1, 0>>, <<1, 1>>, <<1, 2>>, <<1, 3>>]),
                                      binary()},
                       case weft_amqp_message:decode(<<Head/binary, Rest/binary>>) of
                           error -> true;
                           {announce, _} -> true;
                           {lane, Id, _} -> byte_size(Id) =:= 16
                       end),
    {timeout, 60, fun() -> ?assert(proper:quickcheck(Property, [{numtests, 1000},
                                                                {to_file, user}])) end}.

other_versions_and_cut_messages_are_errors_test() ->
    [?assertEqual({Bad, error}, {Bad, weft_amqp_message:decode(Bad)})
     || Bad <- [<<>>, <<1>>, <<2, 0, ?ID/binary, "queue">>, <<1, 0, ?ID/binary>>,
                <<1, 1, ?ID/binary, 0:64>>, <<1, 2, ?ID/binary, 1:64, 9, 0:128>>,
                <<1, 2, ?ID/binary, 1:64, 1, 0:120>>, <<1, 7, ?ID/binary>>,
                <<1, 0, ?ID/binary, 0:2048>>, <<1, 3, 0:16384>>]].
