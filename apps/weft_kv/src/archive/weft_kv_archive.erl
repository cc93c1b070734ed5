%% SPDX-License-Identifier: Apache-2.0
%% @doc The format of exports and backups: what a store has, as bytes of a file. Pure.
%%
%% The file is `weft_kv archive 1' and a newline, and then records. A record is its size (32 bits,
%% big-endian, as all numbers here), a CRC-32 of these four bytes, a CRC-32 of its body, and the
%% body. The first byte of a body says what it is:
%% <ul>
%% <li>1: what the file is of: when it was begun (ms, 64 bits), the node (text), how many buckets
%%     (16), and for each its name (text) and 0, or 1 if it is strong. The first record.</li>
%% <li>2: what follows belongs to the bucket with this name (text), 0 or 1 as before.</li>
%% <li>3: a key (text) of a bucket that is not strong, with the context of all its siblings: how
%%     many actors (32), for each its id (text) and number (64). Then how many values (32), for each
%%     its dot as the index of the actor (32, from 0) and number (64), and how many fields (8).</li>
%% <li>4: a key (text) of a strong bucket, and its value (all that is left).</li>
%% <li>5: the end: how many records were before (64), and a CRC-32 of all bytes before. Nothing
%%     follows. A file without it is not whole.</li>
%% </ul>
%% A text is its size (16) and its bytes. A field of a value is a tag (8), its size (32) and its
%% bytes: 1 when it was written (ms, 64 signed), 2 when its time is over (the same; without it
%% never), 3 the value (without it this is a deletion), 4 its content type, 5 what tells its request
%% from others. A reader skips tags below 128 that it does not know, and refuses others.
%%
%% A later version of weft reads what an earlier one has written. A number behind `archive' that is
%% higher than the reader's is refused.
%%
%% Not here: files (`weft_kv_archive_file'), and what is asked of a store.
-module(weft_kv_archive).

-export([writer/1, bucket/1, object/2, register/2, add/2, close/1]).
-export([reader/0, wanted/1, read/2, finished/1, decode/1]).
-export_type([writer/0, reader/0, about/0, kind/0, item/0, error/0]).

-type kind() :: eventual | strong.
-type about() :: #{created_ms := integer(), node := binary(), buckets := [{binary(), kind()}]}.
-type item() :: {about, about()} | {bucket, {binary(), kind()}} | {record, Body :: binary()}.
-type error() :: not_an_archive | {later_version, pos_integer()}
               | {damaged | truncated, #{byte := non_neg_integer(), records := non_neg_integer()}}
               | {too_large, pos_integer()}.
%% Where in the file, and how many whole records are before that.

-record(writer, {records = 0 :: non_neg_integer(), sum :: non_neg_integer()}).
-opaque writer() :: #writer{}.

-record(reader, {rest = <<>> :: binary(),
                 %% Where in the file that is.
                 at = 0 :: non_neg_integer(),
                 wanted = 0 :: non_neg_integer(),
                 records = 0 :: non_neg_integer(),
                 sum = 0 :: non_neg_integer(),
                 next = magic :: magic | about | bucket | any | nothing}).
-opaque reader() :: #reader{}.

-define(MAGIC, "weft_kv archive ").
-define(FIRST, <<?MAGIC "1\n">>).
-define(HEAD_BYTES, 12).
%% A size above is refused, whatever its checksum: so much would be read into memory.
-define(BODY_MAX, 268435456).
-define(KEY_MAX, 4096).
-define(MUST_BE_KNOWN, 128).

-define(ABOUT, 1).
-define(BUCKET, 2).
-define(OBJECT, 3).
-define(REGISTER, 4).
-define(END, 5).

%% --- writing ----------------------------------------------------------------------------------

%% @doc The first bytes of a file.
-spec writer(about()) -> {iodata(), writer()}.
writer(#{created_ms := Ms, node := Node, buckets := Buckets}) ->
    Body = iolist_to_binary([<<?ABOUT, Ms:64>>, text(Node), <<(length(Buckets)):16>>,
                             [[text(Name), flag(Kind)] || {Name, Kind} <- Buckets]]),
    {ok, Bytes, Writer} = add([Body], #writer{sum = erlang:crc32(?FIRST)}),
    {[?FIRST | Bytes], Writer}.

%% @doc The body of a record that begins a bucket.
-spec bucket({binary(), kind()}) -> binary().
bucket({Name, Kind}) -> iolist_to_binary([<<?BUCKET>>, text(Name), flag(Kind)]).

%% @doc That of a key with all its siblings and deletions.
-spec object(binary(), weft_kv_object:object()) -> binary().
object(Key, {Known, Values}) ->
    Actors = lists:sort(maps:keys(Known)),
    Index = maps:from_list(lists:zip(Actors, lists:seq(0, length(Actors) - 1))),
    iolist_to_binary(
      [<<?OBJECT>>, text(Key), <<(length(Actors)):32>>,
       [[text(Actor), <<(map_get(Actor, Known)):64>>] || Actor <- Actors],
       <<(map_size(Values)):32>>,
       [[<<(map_get(Actor, Index)):32, Number:64>>, fields(Value)]
        || {{Actor, Number}, Value} <- lists:sort(maps:to_list(Values))]]).

fields(#{written_ms := WrittenMs, expires_ms := ExpiresMs, value := Value} = All) ->
    Fields = [field(1, <<WrittenMs:64>>)]
        ++ [field(2, <<ExpiresMs:64>>) || ExpiresMs =/= never]
        ++ [field(3, Value) || Value =/= deleted]
        ++ [field(4, Type) || #{content_type := Type} <- [All]]
        ++ [field(5, Request) || #{request := Request} <- [All]],
    [length(Fields) | Fields].

field(Tag, Bytes) -> [<<Tag, (byte_size(Bytes)):32>>, Bytes].

%% @doc That of a key of a strong bucket.
-spec register(binary(), binary()) -> binary().
register(Key, Value) -> iolist_to_binary([<<?REGISTER>>, text(Key), Value]).

text(Bytes) -> [<<(byte_size(Bytes)):16>>, Bytes].

flag(eventual) -> 0;
flag(strong) -> 1.

%% @doc The bytes of records.
-spec add([binary()], writer()) -> {ok, iodata(), writer()} | {error, {too_large, pos_integer()}}.
add(Bodies, Writer) ->
    case [Body || Body <- Bodies, byte_size(Body) > ?BODY_MAX] of
        [_ | _] -> {error, {too_large, ?BODY_MAX}};
        [] ->
            Bytes = [framed(Body) || Body <- Bodies],
            #writer{records = Records, sum = Sum} = Writer,
            {ok, Bytes, Writer#writer{records = Records + length(Bodies),
                                      sum = erlang:crc32(Sum, Bytes)}}
    end.

framed(Body) ->
    Size = <<(byte_size(Body)):32>>,
    [Size, <<(erlang:crc32(Size)):32, (erlang:crc32(Body)):32>>, Body].

%% @doc The last bytes of a file.
-spec close(writer()) -> iodata().
close(#writer{records = Records, sum = Sum}) ->
    framed(<<?END, Records:64, Sum:32>>).

%% --- reading ----------------------------------------------------------------------------------

%% @doc Before the first byte.
-spec reader() -> reader().
reader() -> #reader{}.

%% @doc So many bytes are missing of the next record, at least.
-spec wanted(reader()) -> non_neg_integer().
wanted(#reader{wanted = Wanted, rest = Rest}) -> max(0, Wanted - byte_size(Rest)).

%% @doc What is in these bytes and those that were left before. All of it was as it was written.
-spec read(binary(), reader()) -> {ok, [item()], reader()} | {error, error()}.
read(Bytes, #reader{rest = Rest} = Reader) ->
    items(Reader#reader{rest = <<Rest/binary, Bytes/binary>>}, []).

items(#reader{next = magic, rest = Bytes} = Reader, []) ->
    Size = byte_size(?FIRST),
    case {Bytes, binary:longest_common_prefix([Bytes, ?FIRST])} of
        {<<_:Size/binary, Rest/binary>>, Size} ->
            items(Reader#reader{next = about, rest = Rest, at = Size, sum = erlang:crc32(?FIRST)},
                  []);
        {_, Common} when Common =:= byte_size(Bytes) -> {ok, [], Reader#reader{wanted = Size}};
        _ -> {error, other(Bytes)}
    end;
items(#reader{rest = <<>>} = Reader, Items) ->
    {ok, lists:reverse(Items), Reader#reader{wanted = ?HEAD_BYTES}};
items(#reader{next = nothing} = Reader, _Items) ->
    damaged(Reader);
items(#reader{rest = <<Size:32, SizeSum:32, Sum:32, Rest/binary>>} = Reader, Items) ->
    case {erlang:crc32(<<Size:32>>), Rest} of
        {SizeSum, _} when Size > ?BODY_MAX -> {error, {too_large, ?BODY_MAX}};
        {SizeSum, <<Body:Size/binary, Further/binary>>} ->
            case erlang:crc32(Body) of
                Sum -> item(Body, Further, Reader, Items);
                _ -> damaged(Reader)
            end;
        {SizeSum, _} -> {ok, lists:reverse(Items), Reader#reader{wanted = ?HEAD_BYTES + Size}};
        _ -> damaged(Reader)
    end;
items(Reader, Items) ->
    {ok, lists:reverse(Items), Reader#reader{wanted = ?HEAD_BYTES}}.

%% That of a later version has a higher number in its place.
other(Bytes) ->
    case re:run(Bytes, "^" ?MAGIC "([1-9][0-9]{0,8})\n", [{capture, [1], list}]) of
        {match, [Version]} -> {later_version, list_to_integer(Version)};
        nomatch -> not_an_archive
    end.

item(<<?END, Count:64, All:32>>, Rest, #reader{next = Next, records = Count, sum = All} = Reader,
     Items) when Next =/= about ->
    items(passed(Rest, Reader#reader{next = nothing}), Items);
item(Body, Rest, #reader{next = Next} = Reader, Items) ->
    case {Next, told(Body)} of
        {about, {about, _} = About} ->
            items(passed(Rest, Reader#reader{next = bucket}), [About | Items]);
        {Before, {bucket, _} = Bucket} when Before =/= about ->
            items(passed(Rest, Reader#reader{next = any}), [Bucket | Items]);
        {any, {record, _} = Record} -> items(passed(Rest, Reader), [Record | Items]);
        _ -> damaged(Reader)
    end.

passed(Rest, #reader{rest = Bytes, at = At, records = Records, sum = Sum} = Reader) ->
    Size = byte_size(Bytes) - byte_size(Rest),
    Reader#reader{rest = Rest, at = At + Size, records = Records + 1,
                  sum = erlang:crc32(Sum, binary:part(Bytes, 0, Size))}.

told(<<?ABOUT, Ms:64, Size:16, Node:Size/binary, Count:16, Rest/binary>>) ->
    case buckets(Count, Rest) of
        error -> error;
        Buckets -> {about, #{created_ms => Ms, node => Node, buckets => Buckets}}
    end;
told(<<?BUCKET, Size:16, Name:Size/binary, Flag>>) when Flag =< 1 -> {bucket, {Name, kind(Flag)}};
told(<<Type, _/binary>> = Body) when Type =:= ?OBJECT; Type =:= ?REGISTER -> {record, Body};
told(_) -> error.

buckets(0, <<>>) ->
    [];
buckets(Count, <<Size:16, Name:Size/binary, Flag, Rest/binary>>) when Count > 0, Flag =< 1 ->
    case buckets(Count - 1, Rest) of
        error -> error;
        Buckets -> [{Name, kind(Flag)} | Buckets]
    end;
buckets(_, _) ->
    error.

kind(0) -> eventual;
kind(1) -> strong.

damaged(#reader{at = At, records = Records}) ->
    {error, {damaged, #{byte => At, records => Records}}}.

%% @doc There are no more bytes. Was that all?
-spec finished(reader()) -> ok | {error, error()}.
finished(#reader{next = nothing}) -> ok;
finished(#reader{next = magic, rest = <<>>}) -> {error, not_an_archive};
finished(#reader{at = At, rest = Rest, records = Records}) ->
    {error, {truncated, #{byte => At + byte_size(Rest), records => Records}}}.

%% @doc The key of a record and what is there of it.
-spec decode(binary()) -> {object, binary(), weft_kv_object:object()}
                        | {register, binary(), binary()} | {error, bad_record}.
decode(<<?REGISTER, Size:16, Key:Size/binary, Value/binary>>) when Size > 0, Size =< ?KEY_MAX ->
    {register, Key, Value};
decode(<<?OBJECT, Size:16, Key:Size/binary, Count:32, Rest/binary>>)
  when Size > 0, Size =< ?KEY_MAX ->
    try
        {Known, <<Values:32, Further/binary>>} = known(Count, Rest, []),
        Actors = list_to_tuple([Actor || {Actor, _} <- Known]),
        Vector = maps:from_list(Known),
        Count = map_size(Vector),
        {object, Key, {Vector, values(Values, Further, Actors, Vector, #{})}}
    catch
        error:_NotAsWritten -> {error, bad_record}
    end;
decode(_) ->
    {error, bad_record}.

known(0, Rest, Known) ->
    {lists:reverse(Known), Rest};
known(Count, <<Size:16, Actor:Size/binary, Number:64, Rest/binary>>, Known) when Number > 0 ->
    true = Number =< weft_kv_object:number_max(),
    known(Count - 1, Rest, [{Actor, Number} | Known]).

%% A write that nobody knows of there is none.
values(0, <<>>, _Actors, _Vector, Values) ->
    Values;
values(Count, <<Index:32, Number:64, Fields, Rest/binary>>, Actors, Vector, Values)
  when Number > 0 ->
    Actor = element(Index + 1, Actors),
    true = Number =< map_get(Actor, Vector),
    {Value, Further} = fields(Fields, Rest, #{value => deleted, expires_ms => never}),
    #{written_ms := _} = Value,
    values(Count - 1, Further, Actors, Vector, Values#{{Actor, Number} => Value}).

fields(0, Rest, Value) ->
    {Value, Rest};
fields(Count, <<Tag, Size:32, Bytes:Size/binary, Rest/binary>>, Value) ->
    fields(Count - 1, Rest, field(Tag, Bytes, Value)).

field(1, <<Ms:64/signed>>, Value) -> Value#{written_ms => Ms};
field(2, <<Ms:64/signed>>, Value) -> Value#{expires_ms := Ms};
field(3, Bytes, Value) -> Value#{value := Bytes};
field(4, Type, Value) -> Value#{content_type => Type};
field(5, Request, Value) -> Value#{request => Request};
field(Tag, _Later, Value) when Tag > 5, Tag < ?MUST_BE_KNOWN -> Value.
