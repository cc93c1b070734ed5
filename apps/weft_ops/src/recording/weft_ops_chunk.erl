%% SPDX-License-Identifier: Apache-2.0
%% @doc A piece of a recording, of about a minute, that is read without what was before it. Pure but
%% for the atoms that `weft_ops_terms' makes.
%%
%% It has a header (a mark, the version, the time of the first and of the last entry, the size and a
%% checksum of these and of what follows) and compressed rows. A row is the number of its shape, the
%% milliseconds since the row before, and its integers; a shape is written where it is used first.
%% Integers are differences to the row before of the same shape. As the name of a node is part of
%% the shape, this is the sample before of the same node. Numbers are written in groups of seven
%% bits.
%%
%% What may be read is bounded, and nothing more is written. So a picture of the cluster may take
%% several chunks: all of them begin at its time.
-module(weft_ops_chunk).

-export([new/0, add/2, several/1, size_bytes/1, is_full/1, first_ms/1, encode/1, upgrade/1]).
-export([header_bytes/0, header/1, decode/4]).
-export_type([chunk/0, header/0, entry/0]).

-define(MARK, "WREC").
-define(VERSION, 1).
-define(HEADER_BYTES, 29).
%% When a chunk is full, in bytes of rows that are not compressed: beyond those of its first
%% millisecond, which in a large cluster is long; and of all.
-define(LATER_BYTES, 8388608).
-define(FULL_BYTES, 50331648).
%% There are no more bytes of rows. What can not be compressed is a little longer then.
-define(ROWS_BYTES_MAX, 67108864).
-define(PACKED_BYTES_MAX, 67174400).
%% Nor are there more terms, those in terms included: so many for each byte of the rows, as rows
%% repeat names and lists without writing them, and a picture or two besides.
-define(TERMS_PER_BYTE, 8).
-define(TERMS_MIN, 2097152).
-define(TERMS_MAX, 33554432).
%% Longer numbers are no numbers of seven bit groups.
-define(NUMBER_BITS_MAX, 77).

-type entry() :: {AtMs :: integer(), term()}.
-type header() :: #{from_ms := integer(), to_ms := integer(), size_bytes := non_neg_integer(),
                    checksum := non_neg_integer()}.

-record(chunk, {from_ms = none :: none | integer(),
                to_ms = 0 :: integer(),
                %% The number of each shape, and the integers of its last row.
                shapes = #{} :: #{weft_ops_terms:shape() => {non_neg_integer(), [integer()]}},
                rows = [] :: iodata(),
                size_bytes = 0 :: non_neg_integer(),
                %% Of the rows of the first millisecond.
                first_bytes = 0 :: non_neg_integer(),
                %% Of which the rows are made.
                terms = 0 :: non_neg_integer()}).
-opaque chunk() :: #chunk{}.

-spec new() -> chunk().
new() -> #chunk{}.

%% @doc Adds rows, all or none: it is `full' if these would be more than may be read. Time does not
%% go back within a chunk: what is earlier is given the time before.
-spec add([entry()], chunk()) -> {ok, chunk()} | full.
add([Row | Rows], Chunk) ->
    case one_more(Row, Chunk) of
        {ok, Next} -> add(Rows, Next);
        full -> full
    end;
add([], Chunk) ->
    {ok, Chunk}.

%% @doc As few chunks of rows of one time as these take. The last one takes further rows. Rows that
%% are too large for any chunk are left out, and counted.
-spec several([entry()]) -> {[chunk(), ...], LeftOut :: non_neg_integer()}.
several(Rows) ->
    {Last, Full, LeftOut} = lists:foldl(fun several/2, {new(), [], 0}, Rows),
    {lists:reverse(Full, [Last]), LeftOut}.

several(Row, {Chunk, Full, LeftOut}) ->
    case one_more(Row, Chunk) of
        {ok, Next} -> {Next, Full, LeftOut};
        full -> alone(Row, {Chunk, Full, LeftOut})
    end.

alone(Row, {Chunk, Full, LeftOut}) ->
    case one_more(Row, new()) of
        {ok, Next} -> {Next, [Chunk | Full], LeftOut};
        full -> {Chunk, Full, LeftOut + 1}
    end.

one_more({AtMs, _Term} = Row, #chunk{from_ms = none} = Chunk) ->
    one_more(Row, Chunk#chunk{from_ms = AtMs, to_ms = AtMs});
one_more({AtMs, Term}, #chunk{from_ms = FromMs, to_ms = ToMs, shapes = Shapes, rows = Rows,
                              size_bytes = Size, first_bytes = FirstBytes,
                              terms = Terms} = Chunk) ->
    {Shape, Integers} = weft_ops_terms:shape(Term),
    {Number, New, Before} = case Shapes of
                                #{Shape := {Known, Last}} ->
                                    {Known, [], Last};
                                #{} ->
                                    {map_size(Shapes), [number(byte_size(Shape)), Shape],
                                     [0 || _ <- Integers]}
                            end,
    Row = iolist_to_binary([number(Number), New, number(max(0, AtMs - ToMs))
                            | differences(Integers, Before)]),
    Bytes = Size + byte_size(Row),
    {_, More} = weft_ops_terms:count(Shape),
    case fits(Bytes, Terms + More) of
        true ->
            {ok, Chunk#chunk{to_ms = max(AtMs, ToMs), terms = Terms + More, size_bytes = Bytes,
                             shapes = Shapes#{Shape => {Number, Integers}}, rows = [Rows, Row],
                             first_bytes = case AtMs =< FromMs of
                                               true -> Bytes;
                                               false -> FirstBytes
                                           end}};
        false ->
            full
    end.

%% Whether a chunk may have so many bytes of rows, made of so many terms: one that is written as
%% well as one that is read.
fits(Bytes, Terms) ->
    Bytes =< ?ROWS_BYTES_MAX
        andalso Terms =< min(?TERMS_MAX, ?TERMS_MIN + ?TERMS_PER_BYTE * Bytes).

differences([Integer | Integers], [Before | Others]) ->
    [number(signed(Integer - Before)) | differences(Integers, Others)];
differences([], []) ->
    [].

signed(Integer) when Integer >= 0 -> Integer * 2;
signed(Integer) -> -Integer * 2 - 1.

number(Integer) when Integer < 128 -> [Integer];
number(Integer) -> [128 bor (Integer band 127) | number(Integer bsr 7)].

%% @doc Bytes of its rows, before they are compressed.
-spec size_bytes(chunk()) -> non_neg_integer().
size_bytes(#chunk{size_bytes = Size}) -> Size.

%% @doc Is there so much in it that the next entry belongs into another one? That one begins with a
%% whole picture of the cluster, so a chunk has more than that.
-spec is_full(chunk()) -> boolean().
is_full(#chunk{size_bytes = Size, first_bytes = FirstBytes}) ->
    Size - FirstBytes >= ?LATER_BYTES orelse Size >= ?FULL_BYTES.

%% @doc When it begins.
-spec first_ms(chunk()) -> integer() | none.
first_ms(#chunk{from_ms = FromMs}) -> FromMs.

%% @doc The bytes of a chunk that has a row.
-spec encode(chunk()) -> binary().
encode(#chunk{from_ms = FromMs, to_ms = ToMs, rows = Rows}) when FromMs =/= none ->
    Packed = zlib:compress(Rows),
    Times = <<FromMs:64/signed, ToMs:64/signed>>,
    <<?MARK, ?VERSION, Times/binary, (byte_size(Packed)):32, (checksum(Times, Packed)):32,
      Packed/binary>>.

checksum(Times, Packed) -> erlang:crc32([Times, Packed]).

%% @doc A chunk that earlier code has begun: of how many terms it is made is not known, so it takes
%% no more.
-spec upgrade(chunk() | Before :: tuple()) -> chunk().
upgrade(#chunk{} = Chunk) ->
    Chunk;
upgrade(WithoutTerms) ->
    (erlang:append_element(WithoutTerms, 0))#chunk{terms = ?TERMS_MAX}.

%% --- reading ----------------------------------------------------------------------------------

%% @doc So long is what `header/1' reads.
-spec header_bytes() -> pos_integer().
header_bytes() -> ?HEADER_BYTES.

-spec header(binary()) -> {ok, header()} | {error, Text :: string()}.
header(<<?MARK, ?VERSION, FromMs:64/signed, ToMs:64/signed, Size:32, Checksum:32>>)
  when FromMs =< ToMs, Size =< ?PACKED_BYTES_MAX ->
    {ok, #{from_ms => FromMs, to_ms => ToMs, size_bytes => Size, checksum => Checksum}};
header(<<?MARK, Version, _/binary>>) when Version =/= ?VERSION ->
    {error, lists:flatten(io_lib:format("it was written by another version of weft: format ~b, "
                                        "and this one reads ~b", [Version, ?VERSION]))};
header(_Bytes) ->
    {error, "this is no part of a recording"}.

%% @doc The entries of a chunk: what followed its header. With a Tag only those that are `{Tag, _}':
%% others are passed over, which takes a small part of the time. See `weft_ops_terms:parse/2' for
%% Budget. What is left of it is returned, also with an error.
-spec decode(header(), binary(), all | (Tag :: atom()), Budget :: non_neg_integer()) ->
          {ok, [entry()], Left :: non_neg_integer()}
          | {error, Text :: string(), Left :: non_neg_integer()}.
decode(#{from_ms := FromMs, to_ms := ToMs, checksum := Checksum}, Packed, Tag, Budget) ->
    case checksum(<<FromMs:64/signed, ToMs:64/signed>>, Packed) of
        Checksum -> unpacked(inflate(Packed), FromMs, Tag, Budget);
        _ -> {error, "its checksum is wrong", Budget}
    end.

%% Rows that have the right checksum and can not be read were made by somebody else. How many atoms
%% they have cost is not known: there are no more for the next ones.
unpacked({ok, <<>>}, _FromMs, _Tag, Budget) ->
    {error, "it has no rows", Budget};
unpacked({ok, Rows}, FromMs, Tag, Budget) ->
    try rows(Rows, FromMs, Tag, #{}, {Budget, byte_size(Rows), 0}, [])
    catch
        throw:Text -> {error, Text, 0};
        error:_ -> {error, "its rows can not be read", 0}
    end;
unpacked({error, Text}, _FromMs, _Tag, Budget) ->
    {error, Text, Budget}.

inflate(Packed) ->
    Zlib = zlib:open(),
    try
        ok = zlib:inflateInit(Zlib),
        inflate(Zlib, zlib:safeInflate(Zlib, Packed), [], 0)
    catch
        error:_ -> {error, "it can not be uncompressed"}
    after
        zlib:close(Zlib)
    end.

inflate(Zlib, {More, Part}, Parts, Size) ->
    Sum = Size + iolist_size(Part),
    case fits(Sum, 0) of
        true when More =:= finished -> {ok, iolist_to_binary([Parts | Part])};
        true -> inflate(Zlib, zlib:safeInflate(Zlib, []), [Parts | Part], Sum);
        false -> {error, "it is larger than what is written"}
    end.

%% Shapes: by number, the tree, how many terms and integers it has, and those of its last row; or
%% how many integers a row has that is passed over. Bytes: of all rows; Made: the terms so far.
rows(<<>>, _AtMs, _Tag, _Shapes, {Budget, _Bytes, _Made}, Entries) ->
    {ok, lists:reverse(Entries), Budget};
rows(Rows, BeforeMs, Tag, Shapes, {Budget, Bytes, Made}, Entries) ->
    {Number, Rest0} = take(Rows, 0, 0),
    {Shape, Rest1, Left} = shape(Number, Rest0, Tag, Shapes, Budget),
    {AfterMs, Rest2} = take(Rest1, 0, 0),
    AtMs = BeforeMs + AfterMs,
    case Shape of
        {passed, Count} ->
            rows(passed(Count, Rest2), AtMs, Tag, Shapes#{Number => Shape}, {Left, Bytes, Made},
                 Entries);
        {Tree, Terms, Count, Last} ->
            _ = fits(Bytes, Made + Terms) orelse throw("its rows are larger than what is written"),
            {Integers, Rest} = integers(Count, Last, Rest2, []),
            rows(Rest, AtMs, Tag, Shapes#{Number => {Tree, Terms, Count, Integers}},
                 {Left, Bytes, Made + Terms},
                 [{AtMs, weft_ops_terms:fill(Tree, Integers)} | Entries])
    end.

shape(Number, Rows, _Tag, Shapes, Budget) when is_map_key(Number, Shapes) ->
    {maps:get(Number, Shapes), Rows, Budget};
shape(Number, Rows, Tag, Shapes, Budget) when Number =:= map_size(Shapes) ->
    {Size, Rest0} = take(Rows, 0, 0),
    <<Shape:Size/binary, Rest/binary>> = Rest0,
    case Tag =:= all orelse weft_ops_terms:is_tagged(Shape, Tag) of
        true ->
            {Tree, Left} = parsed(weft_ops_terms:parse(Shape, Budget)),
            {Count, Terms} = weft_ops_terms:count(Shape),
            {{Tree, Terms, Count, lists:duplicate(Count, 0)}, Rest, Left};
        false ->
            {Count, _Terms} = weft_ops_terms:count(Shape),
            {{passed, Count}, Rest, Budget}
    end.

parsed({ok, Tree, Left}) -> {Tree, Left};
parsed({error, Text}) -> throw(Text).

integers(0, [], Rows, Integers) ->
    {lists:reverse(Integers), Rows};
integers(Count, [Before | Others], Rows, Integers) ->
    {Difference, Rest} = take(Rows, 0, 0),
    integers(Count - 1, Others, Rest, [Before + unsigned(Difference) | Integers]).

%% Without making numbers of them.
passed(0, Rows) -> Rows;
passed(Count, <<1:1, _:7, Rest/binary>>) -> passed(Count, Rest);
passed(Count, <<0:1, _:7, Rest/binary>>) -> passed(Count - 1, Rest).

unsigned(Number) when Number band 1 =:= 0 -> Number bsr 1;
unsigned(Number) -> -(Number bsr 1) - 1.

take(<<1:1, Bits:7, Rest/binary>>, Shift, Sum) when Shift < ?NUMBER_BITS_MAX ->
    take(Rest, Shift + 7, Sum bor (Bits bsl Shift));
take(<<0:1, Bits:7, Rest/binary>>, Shift, Sum) ->
    {Sum bor (Bits bsl Shift), Rest}.
