%% SPDX-License-Identifier: Apache-2.0
%% @doc Payloads of channels: any term survives, large binaries follow the term uncopied, and no
%% bytes make the decoder fail or take memory that they do not hold.
-module(weft_channel_wire_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(W, weft_channel_wire).

properties_test_() ->
    [{Name, {timeout, 60, ?_assert(proper:quickcheck(Property, [{numtests, 300}, quiet]))}}
     || {Name, Property} <- [{"batches", prop_batch()}, {"groups", prop_groups()},
                            {"large items", prop_with_binaries()},
                             {"any bytes", prop_garbage()}, {"changed bytes", prop_mutation()}]].

prop_batch() ->
    ?FORALL({Messages, Level, Cost}, {non_empty(list(any())), range(0, 9), oneof([1, 1 bsl 20])},
            begin
                Items = [[self() | M] || M <- Messages] ++ [{many, [a, self()], <<131, 97, 1>>}],
                {Payload, Bytes} = ?W:batch(Items, Cost, Level),
                Bytes =:= iolist_size(Payload)
                    andalso {items, Items} =:= ?W:decode(iolist_to_binary(Payload))
            end).

%% Plain messages are grouped: each receiver is named once and gets its messages in order.
prop_groups() ->
    Item = ?LET({To, Message}, {oneof([a, b, self()]), any()}, [To | Message]),
    ?FORALL(Items, ?LET({First, Others}, {Item, non_empty(list(Item))}, [First | Others]),
            begin
                {Payload, _} = ?W:batch(Items, 1, 0),
                {groups, Groups} = ?W:decode(iolist_to_binary(Payload)),
                lists:sort(Groups) =:= [[To | [M || [T | M] <- Items, T =:= To]]
                                        || To <- lists:usort([T || [T | _] <- Items])]
            end).

%% It may come in chunks, and these are put together to an item.
one_message_is_an_item_test() ->
    [?assertEqual({items, [[a | message]]}, ?W:decode(iolist_to_binary(Payload)))
     || Level <- [0, 6], {Payload, _} <- [?W:batch([[a | message]], 1, Level)]].

%% Terms with large binaries at random places, deeper than the encoder looks, too.
prop_with_binaries() ->
    Large = ?LET({Size, Byte}, {range(16000, 17000), byte()}, binary:copy(<<Byte>>, Size)),
    Term = ?SIZED(Size, term(min(Size, 10), Large)),
    ?FORALL(Message, Term,
            begin
                Item = [self() | Message],
                {Body, Bytes} = ?W:with_binaries(Item),
                Bytes =:= iolist_size(Body)
                    andalso {items, [Item]} =:= ?W:decode(iolist_to_binary(Body))
            end).

term(0, Large) -> oneof([Large, integer(), atom(), binary()]);
term(Size, Large) ->
    Smaller = ?LAZY(term(Size div 3, Large)),
    frequency([{1, Large}, {1, []}, {2, [Smaller, Smaller]}, {2, {Smaller, Smaller, ok}},
               {1, ?LET({A, B}, {Smaller, Smaller}, [A | B])},
               {1, ?LET(A, Smaller, #{key => A})}]).

large_binaries_are_not_copied_test() ->
    Binary = binary:copy(<<1>>, 1 bsl 20),
    Call = {'$gen_call', {self(), make_ref()}, {write, key, Binary}},
    {Body, _} = ?W:with_binaries([self() | Call]),
    ?assert(lists:any(fun(Part) -> Part =:= Binary end, Body)),
    Payload = iolist_to_binary(Body),
    {items, [[_ | {_, _, {write, key, Received}}]]} = ?W:decode(Payload),
    ?assertEqual(byte_size(Payload), binary:referenced_byte_size(Received)).

compression_is_only_used_where_it_helps_test() ->
    Zeros = [[a | binary:copy(<<0>>, 10000)]],
    Noise = [[a | rand:bytes(10000)]],
    {_, Small} = ?W:batch(Zeros, 10000, 6),
    {_, Same} = ?W:batch(Noise, 10000, 6),
    {_, Plain} = ?W:batch(Noise, 10000, 0),
    ?assert(Small < 200),
    ?assertEqual(Plain, Same).

announcements_and_chunks_test() ->
    ?assertEqual({announced, #{id => 7, bytes => 300000, count => 3, from => self(),
                               to => [a]}},
                 ?W:decode(?W:announcement(7, 300000, 3, self(), [a]))),
    ?assertEqual({chunk, 2, 7, 1, <<"abc">>},
                 ?W:decode(iolist_to_binary(?W:chunk(2, 7, 1, [<<"ab">>, <<"c">>])))),
    ?assertEqual(malformed, ?W:decode(?W:announcement(7, 300000, 0, self(), [a]))).

prop_garbage() ->
    ?FORALL({Type, Bytes}, {range(0, 6), binary()}, is_answer(?W:decode(<<Type, Bytes/binary>>))).

prop_mutation() ->
    ?FORALL({Place, Bit, Cut}, {integer(0, 20200), range(0, 255), integer(0, 100)},
            begin
                {Body, _} = ?W:with_binaries([x | {a, binary:copy(<<5>>, 20000)}]),
                Payload = iolist_to_binary(Body),
                At = Place rem (byte_size(Payload) - 1),
                <<Head:At/binary, _, Tail/binary>> = Payload,
                Shorter = binary:part(Payload, 0, byte_size(Payload) - Cut),
                is_answer(?W:decode(<<Head/binary, Bit, Tail/binary>>))
                    andalso (Cut =:= 0 orelse ?W:decode(Shorter) =:= malformed)
            end).

is_answer(malformed) -> true;
is_answer({Kind, Items}) when Kind =:= items; Kind =:= groups -> is_list(Items);
is_answer({announced, #{to := To}}) -> is_list(To);
is_answer({chunk, _, _, _, Chunk}) -> is_binary(Chunk).

%% A batch that claims to inflate to more than the limit.
a_bomb_is_malformed_test() ->
    <<131, 80, _:32, Deflated/binary>> =
        term_to_binary([binary:copy(<<0>>, 100000)], [compressed]),
    ?assertEqual(malformed, ?W:decode(<<1, 131, 80, 16#7fffffff:32, Deflated/binary>>)).
