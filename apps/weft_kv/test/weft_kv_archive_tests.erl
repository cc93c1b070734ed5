%% SPDX-License-Identifier: Apache-2.0
%% @doc The format of exports: what was written is read again, in whatever pieces it comes, and what
%% is damaged or not whole is named.
-module(weft_kv_archive_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(ABOUT, #{created_ms => 1700000000000, node => <<"a@h1">>,
                 buckets => [{<<"carts">>, eventual}, {<<"accounts">>, strong}]}).

what_is_written_is_read_test_() ->
    {timeout, 60, fun() ->
         ?assert(proper:quickcheck(round_trips(), [{numtests, 200}, {to_file, user}]))
     end}.

round_trips() ->
    ?FORALL({Objects, Size}, {list({key(), object()}), integer(1, 70)},
            begin
                {ok, Items, Reader} = in_pieces(Size, archive(Objects, []),
                                                weft_kv_archive:reader()),
                ok =:= weft_kv_archive:finished(Reader)
                    andalso hd(Items) =:= {about, ?ABOUT}
                    andalso [weft_kv_archive:decode(Body) || {record, Body} <- Items]
                        =:= [{object, Key, Object} || {Key, Object} <- Objects]
            end).

key() -> ?SUCHTHAT(Key, binary(), Key =/= <<>>).

%% By some writes, of clients that have seen all or nothing.
object() ->
    ?LET(Writes, list({oneof([<<"a">>, <<"bb">>, <<>>]), boolean(), value()}),
         lists:foldl(fun({Actor, HasSeen, Value}, {Known, _} = Object) ->
                         Seen = case HasSeen of true -> Known; false -> #{} end,
                         weft_kv_object:put(Value, Seen, Actor, Object)
                     end, weft_kv_object:new(), Writes)).

value() ->
    ?LET({Value, Written, Expires, More},
         {oneof([deleted, binary()]), integer(), oneof([never, integer()]),
          sublist([{content_type, <<"text/plain">>}, {request, <<0:64>>}])},
         maps:merge(#{value => Value, written_ms => Written, expires_ms => Expires},
                    maps:from_list(More))).

sublist(List) -> ?LET(Is, vector(length(List), boolean()),
                      [Element || {Element, true} <- lists:zip(List, Is)]).

archive(Objects, Registers) ->
    {First, Writer0} = weft_kv_archive:writer(?ABOUT),
    {ok, Bytes, Writer} =
        weft_kv_archive:add([weft_kv_archive:bucket({<<"carts">>, eventual})
                             | [weft_kv_archive:object(Key, Object) || {Key, Object} <- Objects]]
                            ++ [weft_kv_archive:bucket({<<"accounts">>, strong})
                                | [weft_kv_archive:register(Key, Value)
                                   || {Key, Value} <- Registers]], Writer0),
    iolist_to_binary([First, Bytes, weft_kv_archive:close(Writer)]).

in_pieces(Size, Bytes, Reader0) when byte_size(Bytes) > Size ->
    <<Piece:Size/binary, Rest/binary>> = Bytes,
    case weft_kv_archive:read(Piece, Reader0) of
        {ok, Items, Reader} ->
            case in_pieces(Size, Rest, Reader) of
                {ok, More, Last} -> {ok, Items ++ More, Last};
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} -> {error, Reason}
    end;
in_pieces(_Size, Bytes, Reader) ->
    weft_kv_archive:read(Bytes, Reader).

small() -> archive([{<<"ann">>, written()}, {<<"ben">>, weft_kv_object:new()}],
                   [{<<"cy">>, <<"100">>}]).

written() ->
    Value = #{value => <<"bread">>, written_ms => 5, expires_ms => never},
    weft_kv_object:put(Value, #{}, <<"actor">>, weft_kv_object:new()).

%% --- damage -----------------------------------------------------------------------------------

each_cut_is_named_test() ->
    Bytes = small(),
    lists:foreach(fun(Size) ->
                      {ok, _, Reader} = weft_kv_archive:read(binary:part(Bytes, 0, Size),
                                                             weft_kv_archive:reader()),
                      Found = weft_kv_archive:finished(Reader),
                      Expected = case Size of 0 -> none; _ -> Size end,
                      ?assertEqual({Size, Expected}, {Size, at(Found)})
                  end, lists:seq(0, byte_size(Bytes) - 1)).

at({error, not_an_archive}) -> none;
at({error, {truncated, #{byte := Byte}}}) -> Byte.

each_changed_byte_is_found_test() ->
    Bytes = small(),
    lists:foreach(fun(At) ->
                      <<Before:At/binary, Byte, Behind/binary>> = Bytes,
                      Changed = <<Before/binary, (Byte bxor 16#41), Behind/binary>>,
                      ?assertMatch({At, {error, _}}, {At, read(Changed)})
                  end, lists:seq(0, byte_size(Bytes) - 1)).

read(Bytes) ->
    case weft_kv_archive:read(Bytes, weft_kv_archive:reader()) of
        {ok, Items, Reader} ->
            case weft_kv_archive:finished(Reader) of
                ok -> {ok, Items};
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} -> {error, Reason}
    end.

%% Each record is whole, and the sum of all says what is wrong.
a_record_too_many_too_few_or_in_another_place_is_found_test_() ->
    Whole = archive([{<<"a">>, written()}, {<<"b">>, written()}], []),
    One = record(<<"a">>), Two = record(<<"b">>),
    [First, Last] = binary:split(Whole, <<One/binary, Two/binary>>),
    [?_assertMatch({error, {damaged, #{byte := _, records := _}}},
                   read(iolist_to_binary([First, Records, Last])))
     || Records <- [[One], [One, Two, Two], [Two, One]]]
        ++ [?_assertMatch({error, {damaged, _}}, read(<<Whole/binary, One/binary>>)),
            ?_assertMatch({error, {damaged, _}}, read(<<Whole/binary, 0>>)),
            ?_assertMatch({ok, _}, read(iolist_to_binary([First, One, Two, Last])))].

record(Key) ->
    {_, Writer} = weft_kv_archive:writer(?ABOUT),
    {ok, Bytes, _} = weft_kv_archive:add([weft_kv_archive:object(Key, written())], Writer),
    iolist_to_binary(Bytes).

what_is_no_archive_is_refused_test_() ->
    [?_assertEqual({error, Reason}, read(Bytes))
     || {Reason, Bytes} <- [{not_an_archive, <<"PK", 3, 4>>}, {not_an_archive, <<>>},
                            {not_an_archive, <<"weft_kv archive 0\n">>},
                            {not_an_archive, <<"weft_kv 1\n">>},
                            {{later_version, 2}, <<"weft_kv archive 2\nwhatever">>},
                            {{later_version, 17}, <<"weft_kv archive 17\n">>}]].

%% Its checksum is right, and so much memory it shall not have.
an_absurd_size_is_refused_test() ->
    {First, _} = weft_kv_archive:writer(?ABOUT),
    Size = <<16#ffffffff:32>>,
    ?assertMatch({error, {too_large, _}},
                 read(iolist_to_binary([First, Size, <<(erlang:crc32(Size)):32, 0:32>>]))).

%% --- other versions ---------------------------------------------------------------------------

%% The file of the first version. It has to be read for ever: do not make it anew.
a_file_of_version_1_is_read_test() ->
    About = ?ABOUT,
    {ok, [{about, About}, {bucket, {<<"carts">>, eventual}}, {record, Ann}, {record, Ben},
          {bucket, {<<"accounts">>, strong}}, {record, Cy}]} = read(base64:decode(version_1())),
    ?assertEqual({object, <<"ann">>, written()}, weft_kv_archive:decode(Ann)),
    ?assertEqual({object, <<"ben">>, weft_kv_object:new()}, weft_kv_archive:decode(Ben)),
    ?assertEqual({register, <<"cy">>, <<"100">>}, weft_kv_archive:decode(Cy)).

version_1() ->
    "d2VmdF9rdiBhcmNoaXZlIDEKAAAAJB1HO82Tgu1uAQAAAYvP5WgAAARhQGgxAAIABWNhcnRzAAAIYWNj"
    "b3VudHMBAAAACViYZ7gmKbIoAgAFY2FydHMAAAAAQSCfrhok4NFgAwADYW5uAAAAAQAFYWN0b3IAAAAA"
    "AAAAAQAAAAEAAAAAAAAAAAAAAAECAQAAAAgAAAAAAAAABQMAAAAFYnJlYWQAAAAOxvzyG3GTNBcDAANi"
    "ZW4AAAAAAAAAAAAAAAwo8pM3GJ/07AIACGFjY291bnRzAQAAAAgvn1cuuDMb6wQAAmN5MTAwAAAADV/1"
    "o6ETiNfiBQAAAAAAAAAGBe7FKw==".

%% Of a value. What may be left out has a tag below 128.
fields_of_a_later_version_are_skipped_or_refused_test() ->
    Body = weft_kv_archive:object(<<"ann">>, written()),
    Fields = <<2, 1, 8:32, 5:64, 3, 5:32, "bread">>,
    [Before, <<>>] = binary:split(Body, Fields),
    Later = fun(Tag) ->
                <<Before/binary, 3, 1, 8:32, 5:64, 3, 5:32, "bread", Tag, 2:32, "xx">>
            end,
    ?assertEqual({object, <<"ann">>, written()}, weft_kv_archive:decode(Later(127))),
    ?assertEqual({error, bad_record}, weft_kv_archive:decode(Later(128))).

%% --- records that make no sense, though nothing is damaged -------------------------------------

nothing_else_is_taken_for_an_object_test() ->
    {Known, Values} = written(),
    Body = fun(Object) -> weft_kv_archive:decode(weft_kv_archive:object(<<"k">>, Object)) end,
    ?assertMatch({object, _, _}, Body({Known, Values})),
    %% A value that the context does not know.
    [?assertEqual({error, bad_record}, Body({#{<<"actor">> => Number}, #{}}))
     || Number <- [0, 1 bsl 56 + 1, 1 bsl 64 - 1]],
    [Value] = maps:values(Values),
    ?assertEqual({error, bad_record}, Body({Known, #{{<<"actor">>, 2} => Value}})),
    ?assertEqual({error, bad_record}, weft_kv_archive:decode(<<>>)),
    ?assertEqual({error, bad_record}, weft_kv_archive:decode(weft_kv_archive:register(<<>>, <<>>))),
    Whole = weft_kv_archive:object(<<"k">>, {Known, Values}),
    lists:foreach(fun(Size) ->
                      ?assertEqual({error, bad_record},
                                   weft_kv_archive:decode(binary:part(Whole, 0, Size)))
                  end, lists:seq(0, byte_size(Whole) - 1)).
