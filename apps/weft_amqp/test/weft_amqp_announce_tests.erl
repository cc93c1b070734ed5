%% SPDX-License-Identifier: Apache-2.0
-module(weft_amqp_announce_tests).

-include_lib("eunit/include/eunit.hrl").

announcement(What) ->
    #{what => What, name => <<"a@host">>, incarnation => 5, stamp => 7, interval_ms => 5000,
      queue => <<"amq.gen-1">>}.

key() -> weft_amqp_announce:key(<<"cookie">>, <<"cluster">>).

encoded(What) -> iolist_to_binary(weft_amqp_announce:encode(key(), announcement(What))).

what_is_encoded_is_decoded_test() ->
    [?assertEqual({ok, announcement(What)}, weft_amqp_announce:decode(key(), encoded(What)))
     || What <- [here, hello, bye]].

every_flipped_bit_is_found_test() ->
    Encoded = encoded(here),
    [begin
         Flipped = crypto:exor(Encoded, <<0:At, 1:1, 0:(bit_size(Encoded) - At - 1)>>),
         ?assertEqual({error, forged}, weft_amqp_announce:decode(key(), Flipped))
     end || At <- lists:seq(0, bit_size(Encoded) - 1)].

what_cannot_be_a_name_is_forged_test() ->
    [?assertEqual({error, forged},
                  weft_amqp_announce:decode(key(), iolist_to_binary(weft_amqp_announce:encode(
                      key(), (announcement(here))#{name := Name}))))
     || Name <- [<<255, 254>>, binary:copy(<<"a">>, 256)]].

%% What is longer is refused before anybody looks for its key.
the_longest_one_is_read_test() ->
    Name = unicode:characters_to_binary(lists:duplicate(255, 16#1F600)),
    Longest = (announcement(here))#{name := Name, queue := binary:copy(<<"q">>, 255)},
    Message = iolist_to_binary(weft_amqp_message:announce(
                                 weft_amqp_announce:encode(key(), Longest))),
    {announce, Encoded} = weft_amqp_message:decode(Message),
    ?assertEqual({ok, Longest}, weft_amqp_announce:decode(key(), Encoded)).

cut_ones_and_those_of_others_are_forged_test() ->
    Encoded = encoded(here),
    [?assertEqual({error, forged}, weft_amqp_announce:decode(key(), binary:part(Encoded, 0, Size)))
     || Size <- lists:seq(0, byte_size(Encoded) - 1)],
    [?assertEqual({error, forged}, weft_amqp_announce:decode(Key, Encoded))
     || Key <- [weft_amqp_announce:key(<<"other">>, <<"cluster">>),
                weft_amqp_announce:key(<<"cookie">>, <<"other">>)]].
