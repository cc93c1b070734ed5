%% SPDX-License-Identifier: Apache-2.0
%% @doc What was written is read, and what was not written here is refused.
-module(weft_ops_chunk_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(BUDGET, 100).

%% --- terms --------------------------------------------------------------------------------------

any_term_comes_back_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_terms(), [{numtests, 150}, quiet]))}.

prop_terms() ->
    ?FORALL(Term, data(),
            begin
                {Shape, Integers} = weft_ops_terms:shape(Term),
                {ok, Tree, ?BUDGET} = weft_ops_terms:parse(Shape, ?BUDGET),
                {Count, _Terms} = weft_ops_terms:count(Shape),
                Count =:= length(Integers)
                    andalso weft_ops_terms:fill(Tree, Integers) =:= Term
            end).

data() ->
    ?SIZED(Size, data(Size)).

data(0) ->
    oneof([integer(), integer(1 bsl 58, 1 bsl 62), elements([a, none, 'n@h', '']), float(),
           binary(), ascii_string()]);
data(Size) ->
    ?LAZY(oneof([data(0), list(data(Size div 4)), data_map(Size div 4),
                 ?LET(List, list(data(Size div 4)), list_to_tuple(List))])).

data_map(Size) ->
    ?LET(Pairs, list({data(Size), data(Size)}), maps:from_list(Pairs)).

ascii_string() -> list(integer(32, 126)).

%% A fun would be code, and a reference means nothing elsewhere.
what_is_not_data_is_written_as_text_test() ->
    {Shape, []} = weft_ops_terms:shape({self(), [1 | 2]}),
    {ok, Tree, _} = weft_ops_terms:parse(Shape, 0),
    ?assertEqual({list_to_binary(pid_to_list(self())), <<"[1|2]">>}, weft_ops_terms:fill(Tree, [])).

%% A reader makes no number of more digits, and reads nothing of what such a one is in.
a_longer_number_than_is_read_is_written_as_text_test() ->
    [Read, AsText] = [binary_to_integer(binary:copy(<<"7">>, Digits)) || Digits <- [1024, 1025]],
    {Shape, []} = weft_ops_terms:shape({Read, AsText}),
    {ok, Tree, _} = weft_ops_terms:parse(Shape, 0),
    ?assertEqual({Read, integer_to_binary(AsText)}, weft_ops_terms:fill(Tree, [])).

%% Each element of a list or tuple, each key and each value, and these themselves.
terms_are_counted_with_those_in_them_test_() ->
    [?_assertEqual(Counted, weft_ops_terms:count(element(1, weft_ops_terms:shape(Term))))
     || {Term, Counted} <- [{7, {1, 1}}, {a, {0, 1}}, {"nine chars", {0, 1}}, {[], {0, 1}},
                            {{a, 1.5, 1 bsl 70}, {0, 4}}, {#{a => 1, <<"b">> => [2, x]}, {2, 7}}]].

only_so_many_atoms_are_made_test() ->
    New = list_to_binary("weft_ops_no_such_" ++ integer_to_list(erlang:unique_integer([positive]))),
    Shape = <<$a, (byte_size(New)):32, New/binary>>,
    ?assertEqual({error, "it has too many names"}, weft_ops_terms:parse(Shape, 0)),
    ?assertError(badarg, binary_to_existing_atom(New, utf8)),
    ?assertMatch({ok, {is, _}, 0}, weft_ops_terms:parse(Shape, 1)),
    %% It exists from now on.
    ?assertMatch({ok, {is, _}, 0}, weft_ops_terms:parse(Shape, 0)).

a_hostile_shape_is_refused_test_() ->
    [?_assertMatch({error, _}, weft_ops_terms:parse(Shape, ?BUDGET))
     || Shape <- [<<>>, <<"x">>, <<$l, 16#FFFFFFFF:32>>, <<$m, 1:32, $i>>, <<"ii">>,
                  <<$b, 5:32, "abc">>, <<$n, 3:32, "abc">>, <<$a, 300:32, 0:2400>>]].

%% --- chunks -------------------------------------------------------------------------------------

rows_come_back_in_their_order_test() ->
    Rows = [{1000, {sample, #{node => a, bytes => 5}}}, {1000, {sample, #{node => b, bytes => 9}}},
            {3000, {sample, #{node => a, bytes => -7}}}, {3000, {silent, b}},
            {5000, {sample, #{node => a, bytes => 1 bsl 50}}}],
    ?assertEqual({ok, Rows, ?BUDGET}, decoded(encoded(Rows))).

%% Of a large cluster the first picture alone takes more than all that follows may. If each look
%% wrote that again, an hour would be minutes.
a_large_picture_does_not_fill_a_chunk_test() ->
    Megabytes = fun(AtMs, Count, Chunk) ->
                        {ok, Next} = weft_ops_chunk:add([{AtMs, rand:bytes(1048576)}
                                                         || _ <- lists:seq(1, Count)], Chunk),
                        Next
                end,
    Picture = Megabytes(1000, 20, weft_ops_chunk:new()),
    Later = Megabytes(3000, 7, Picture),
    ?assertEqual([false, false, true],
                 [weft_ops_chunk:is_full(Chunk)
                  || Chunk <- [Picture, Later, Megabytes(5000, 1, Later)]]),
    ?assert(weft_ops_chunk:is_full(Megabytes(1000, 48, weft_ops_chunk:new()))).

only_those_of_a_kind_are_read_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_kinds(), [{numtests, 150}, quiet]))}.

prop_kinds() ->
    ?FORALL(Rows, resize(12, non_empty(list({elements([event, sample, evening]),
                                             resize(4, data())}))),
            begin
                Bytes = encoded([{AtMs, Row} || {AtMs, Row} <- lists:enumerate(Rows)]),
                {ok, All, _} = decoded(Bytes),
                {ok, Events, ?BUDGET} = decoded(Bytes, event),
                Events =:= [Entry || {_, {event, _}} = Entry <- All]
            end).

%% Not even the names of others are made, so nothing is.
others_are_passed_over_test() ->
    New = list_to_binary("weft_ops_no_such_" ++ integer_to_list(erlang:unique_integer([positive]))),
    Sample = pair("sample", [<<$t, 3:32, $a, (byte_size(New)):32>>, New, $i, <<$f, 1.5/float>>]),
    Event = pair("event", [$i]),
    Bytes = forged(zlib:compress([0, byte_size(Sample), Sample, 0, 128, 1,
                                  1, byte_size(Event), Event, 3, 14, 0, 0, 129, 2, 1, 2, 2])),
    ?assertEqual({ok, [{4, {event, 7}}, {6, {event, 8}}], ?BUDGET}, decoded(Bytes, event)),
    ?assertError(badarg, binary_to_existing_atom(New, utf8)),
    {ok, [{1, {sample, {_, 64, 1.5}}}, _, {4, {sample, {_, -65, 1.5}}}, _], Left} = decoded(Bytes),
    ?assertEqual(?BUDGET - 1, Left).

pair(Tag, Second) ->
    iolist_to_binary([<<$t, 2:32, $a, (length(Tag)):32>>, Tag, Second]).

time_does_not_go_back_test() ->
    ?assertMatch({ok, [{1000, a}, {1000, b}], _}, decoded(encoded([{1000, a}, {900, b}]))).

a_row_that_did_not_change_takes_three_bytes_test() ->
    Row = {sample, #{node => a, list => lists:seq(1, 1)}},
    {ok, One} = weft_ops_chunk:add([{1, Row}], weft_ops_chunk:new()),
    {ok, Two} = weft_ops_chunk:add([{2, Row}], One),
    ?assertEqual(3, weft_ops_chunk:size_bytes(Two) - weft_ops_chunk:size_bytes(One)).

%% Each byte of a chunk is covered by a check.
a_changed_byte_is_found_test() ->
    Chunk = encoded([{1000, {silent, a}}, {2000, {silent, b}}]),
    [?assertMatch({error, _}, decoded(flipped(Chunk, At)))
     || At <- lists:seq(0, byte_size(Chunk) - 1)].

flipped(Bytes, At) ->
    <<Before:At/binary, Byte, After/binary>> = Bytes,
    <<Before/binary, (Byte bxor 1), After/binary>>.

%% A checksum that fits says nothing of who wrote it.
rows_of_others_are_refused_test_() ->
    [?_assertMatch({error, _}, decoded(forged(Packed)))
     || Packed <- [<<>>, <<"not compressed">>,
                   zlib:compress(<<5>>),
                   zlib:compress(<<0, 1, $x, 0>>),
                   zlib:compress(binary:copy(<<255>>, 100)),
                   zlib:compress([<<0, 1, $i, 0>> | binary:copy(<<255>>, 100)]),
                   zlib:compress(<<0, 100, $i, 0, 0>>),
                   %% Sixty-five megabytes of nothing.
                   zlib:compress(binary:copy(<<0>>, 68157440))]].

%% Two bytes a row, and a hundred thousand terms: what it would be takes 32 GB.
rows_that_are_much_larger_in_memory_are_refused_test_() ->
    {timeout, 60, fun rows_that_are_much_larger_in_memory_are_refused/0}.

rows_that_are_much_larger_in_memory_are_refused() ->
    Shape = [<<$l, 100000:32>>, binary:copy(<<$b, 0:32>>, 100000)],
    Rows = [0, number(iolist_size(Shape)), Shape, 0, binary:copy(<<0, 0>>, 20000)],
    Bytes = forged(zlib:compress(Rows)),
    {_, Ref} = spawn_opt(fun() -> exit(decoded(Bytes)) end,
                         [monitor, {max_heap_size, #{size => 100_000_000, kill => true,
                                                     error_logger => false}}]),
    receive
        {'DOWN', Ref, process, _, Read} ->
            ?assertEqual({error, "its rows are larger than what is written"}, Read)
    end.

%% A row of two bytes repeats a list of ten thousand names. A chunk of too many of them could not be
%% read.
no_more_terms_are_written_than_are_read_test_() ->
    {timeout, 60, fun no_more_terms_are_written_than_are_read/0}.

no_more_terms_are_written_than_are_read() ->
    Row = {1, lists:duplicate(10000, [])},
    {Rows, Chunk} = until_full(Row, weft_ops_chunk:new(), 0),
    ?assertMatch({true, _}, {Rows > 200, Rows}),
    {ok, Read, _} = decoded(weft_ops_chunk:encode(Chunk)),
    ?assertEqual(Rows, length(Read)),
    %% What does not fit as a whole is not added in part.
    ?assertEqual(full, weft_ops_chunk:add([{1, small}, Row], Chunk)),
    ?assertMatch({ok, _}, weft_ops_chunk:add([{1, small}], Chunk)),
    {[First, Last], 0} = weft_ops_chunk:several(lists:duplicate(Rows + 7, Row)),
    ?assertEqual([Rows, 7], [begin
                                 {ok, Part, _} = decoded(weft_ops_chunk:encode(One)),
                                 length(Part)
                             end || One <- [First, Last]]).

until_full(Row, Chunk, Rows) when Rows < 500 ->
    case weft_ops_chunk:add([Row], Chunk) of
        {ok, Next} -> until_full(Row, Next, Rows + 1);
        full -> {Rows, Chunk}
    end;
until_full(_Row, Chunk, Rows) ->
    {Rows, Chunk}.

%% The large one is as large as it may be, with eleven bytes around it.
what_is_too_large_for_any_chunk_is_left_out_and_counted_test_() ->
    {timeout, 60, fun what_is_too_large_for_any_chunk_is_left_out_and_counted/0}.

what_is_too_large_for_any_chunk_is_left_out_and_counted() ->
    [Large, TooLarge] = [{1, <<0:Bytes/unit:8>>} || Bytes <- [67108853, 67108854]],
    {[Small, Alone], 1} = weft_ops_chunk:several([{1, small}, TooLarge, {1, other}, Large]),
    ?assertMatch({ok, [{1, small}, {1, other}], _}, decoded(weft_ops_chunk:encode(Small))),
    {ok, [Read], _} = decoded(weft_ops_chunk:encode(Alone)),
    ?assert(Read =:= Large),
    ?assertEqual(full, weft_ops_chunk:add([TooLarge], weft_ops_chunk:new())).

%% Of how many terms it is made it does not say.
a_chunk_of_earlier_code_takes_no_more_test() ->
    {ok, Chunk} = weft_ops_chunk:add([{1, a}, {2, b}], weft_ops_chunk:new()),
    Earlier = list_to_tuple(lists:droplast(tuple_to_list(Chunk))),
    Upgraded = weft_ops_chunk:upgrade(Earlier),
    ?assertEqual(full, weft_ops_chunk:add([{3, a}], Upgraded)),
    ?assertMatch({ok, [{1, a}, {2, b}], _}, decoded(weft_ops_chunk:encode(Upgraded))),
    ?assertEqual(Chunk, weft_ops_chunk:upgrade(Chunk)).

forged(Packed) ->
    Times = <<1:64, 2:64>>,
    <<"WREC", 1, Times/binary, (byte_size(Packed)):32, (erlang:crc32([Times, Packed])):32,
      Packed/binary>>.

number(Integer) when Integer < 128 -> Integer;
number(Integer) -> [128 bor (Integer band 127), number(Integer bsr 7)].

another_version_is_named_test() ->
    <<Mark:4/binary, _, Rest/binary>> = encoded([{1, a}]),
    ?assertEqual({error, "it was written by another version of weft: format 2, and this one "
                         "reads 1"}, decoded(<<Mark/binary, 2, Rest/binary>>)).

encoded(Rows) ->
    {ok, Chunk} = weft_ops_chunk:add(Rows, weft_ops_chunk:new()),
    weft_ops_chunk:encode(Chunk).

decoded(Bytes) -> decoded(Bytes, all).

decoded(Bytes, Tag) ->
    HeaderBytes = weft_ops_chunk:header_bytes(),
    <<HeaderPart:HeaderBytes/binary, Packed/binary>> = Bytes,
    case weft_ops_chunk:header(HeaderPart) of
        {ok, #{size_bytes := Size} = Header} when Size =:= byte_size(Packed) ->
            case weft_ops_chunk:decode(Header, Packed, Tag, ?BUDGET) of
                {error, Text, Left} when Left =< ?BUDGET -> {error, Text};
                Read -> Read
            end;
        {ok, _} ->
            {error, "another size"};
        Error ->
            Error
    end.
