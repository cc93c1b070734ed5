%% SPDX-License-Identifier: Apache-2.0
%% @doc The objects of one partition, in memory: by key, with a count of their bytes, the order in
%% which those that may be dropped were used, and hashes of all others, for each segment of their
%% keys. Not here: what objects mean.
-module(weft_kv_table).

-export([new/0, read/2, use/2, store/4, remove/2, clear/1, count/1, ending/1, bytes/1, bytes/2,
         is_smaller/3, evict/2, page/3, batch/3, keys/2, some/3, ns/1, segments/3, segment/4,
         entries/5, recall/1, recall/2, filed/1, filed/2]).

-export_type([table/0, key/0, kind/0]).

-type key() :: {KeyPartition :: non_neg_integer(), Bucket :: atom(), Key :: binary()}.
-type kind() :: #{n := pos_integer(), evict := boolean(), siblings := boolean(),
                  durability => synced}.
%% `evict': the object may be dropped when there is no room. `durability' is there only on the way
%% to a partition that is to sync the object, whatever its bucket asks for.

-record(table, {objects :: ets:tid(), used :: ets:tid(), hashes :: ets:tid(),
                counts :: counters:counters_ref()}).
-opaque table() :: #table{}.

-define(BYTES, 1).
-define(CLOCK, 2).
-define(SEGMENTS, 64).
%% How many objects can end is in the table of the hashes. One that earlier code has made lacks it.
-define(ENDING, ending).
%% So is what may have been forgotten, and whether the file says that there is something.
-define(RECALL, recall).
-define(FILED, filed).

-spec new() -> table().
new() ->
    Hashes = ets:new(?MODULE, [ordered_set]),
    true = ets:insert(Hashes, [{?ENDING, 0}, {?RECALL, weft_kv_recall:none()}]),
    #table{objects = ets:new(?MODULE, [ordered_set]), used = ets:new(?MODULE, [ordered_set]),
           hashes = Hashes, counts = counters:new(2, [])}.

%% @doc The object of a key.
-spec read(key(), table()) -> {weft_kv_object:object(), kind()} | none.
read(Key, #table{objects = Objects}) ->
    case ets:lookup(Objects, Key) of
        [{_, Object, Kind, _, _, _}] -> {Object, Kind};
        [] -> none
    end.

%% @doc The same for somebody who uses it: it is dropped later than those that were used before.
-spec use(key(), table()) -> {weft_kv_object:object(), kind()} | none.
use(Key, #table{objects = Objects, used = Used} = Table) ->
    case ets:lookup(Objects, Key) of
        [{_, Object, #{evict := true} = Kind, _, Before, _}] ->
            Now = clock(Table),
            true = ets:delete(Used, Before),
            true = ets:insert(Used, {Now, Key}),
            true = ets:update_element(Objects, Key, {5, Now}),
            {Object, Kind};
        [{_, Object, Kind, _, _, _}] -> {Object, Kind};
        [] -> none
    end.

%% @doc The object is this from now on.
-spec store(key(), weft_kv_object:object(), kind(), table()) -> ok.
store(Key, Object, #{evict := Evict} = Kind, #table{objects = Objects, used = Used} = Table) ->
    ok = remove(Key, Table),
    Bytes = size(Key, Object),
    Now = clock(Table),
    Hash = hash(Key, Object),
    true = ets:insert(Objects, {Key, Object, Kind, Bytes, Now, Hash}),
    ok = hashed(Key, Kind, Hash, Table),
    ok = ending(Object, 1, Table),
    true = not Evict orelse ets:insert(Used, {Now, Key}),
    counters:add(Table#table.counts, ?BYTES, Bytes).

-spec remove(key(), table()) -> ok.
remove(Key, #table{objects = Objects, used = Used, counts = Counts} = Table) ->
    case ets:take(Objects, Key) of
        [{_, Object, Kind, Bytes, Before, Hash}] ->
            true = ets:delete(Used, Before),
            ok = hashed(Key, Kind, Hash, Table),
            ok = ending(Object, -1, Table),
            counters:sub(Counts, ?BYTES, Bytes);
        [] -> ok
    end.

%% @doc Removes all. Whoever waits for the process of a table does not wait for each object.
-spec clear(table()) -> ok.
clear(#table{objects = Objects, used = Used, hashes = Hashes, counts = Counts}) ->
    _ = [true = ets:delete_all_objects(Table) || Table <- [Objects, Used, Hashes]],
    true = ets:insert(Hashes, [{?ENDING, 0}, {?RECALL, weft_kv_recall:none()}]),
    counters:put(Counts, ?BYTES, 0).

%% @doc How many objects there are, those of deleted keys among them.
-spec count(table()) -> non_neg_integer().
count(#table{objects = Objects}) -> ets:info(Objects, size).

%% @doc How many of them can be forgotten at some time, if nobody writes them again.
-spec ending(table()) -> non_neg_integer() | unknown.
ending(#table{hashes = Hashes}) ->
    case ets:lookup(Hashes, ?ENDING) of
        [{_, Count}] -> Count;
        [] -> unknown
    end.

ending(Object, More, #table{hashes = Hashes}) ->
    _ = weft_kv_replica:can_end(Object) andalso ets:member(Hashes, ?ENDING)
        andalso ets:update_counter(Hashes, ?ENDING, More),
    ok.

%% @doc How much memory the objects take, about.
-spec bytes(table()) -> non_neg_integer().
bytes(#table{counts = Counts}) -> counters:get(Counts, ?BYTES).

%% @doc The same of these buckets only. It looks at all objects.
-spec bytes([Bucket :: atom()], table()) -> non_neg_integer().
bytes([], _) ->
    0;
bytes(Buckets, #table{objects = Objects}) ->
    lists:sum(ets:select(Objects, [{{{'_', '$1', '_'}, '_', '_', '$2', '_', '_'},
                                    [{'=:=', '$1', {const, Bucket}}], ['$2']}
                                   || Bucket <- Buckets])).

%% @doc Does this object take less than what is there of the key now?
-spec is_smaller(key(), weft_kv_object:object(), table()) -> boolean().
is_smaller(Key, Object, #table{objects = Objects}) ->
    case ets:lookup(Objects, Key) of
        [{_, _, _, Bytes, _, _}] -> size(Key, Object) < Bytes;
        [] -> false
    end.

%% @doc Drops what was used longest ago, until there is room or nothing more may be dropped.
-spec evict(BytesMax :: pos_integer() | infinity, table()) -> [key()].
evict(Max, #table{used = Used} = Table) ->
    case bytes(Table) > Max andalso ets:first(Used) of
        false -> [];
        '$end_of_table' -> [];
        First ->
            [{_, Key}] = ets:lookup(Used, First),
            ok = remove(Key, Table),
            [Key | evict(Max, Table)]
    end.

%% @doc Objects behind a cursor, in the order of their keys: at most so many, and not much more than
%% so many bytes.
-spec page(weft_vnode:cursor(),
           {Max :: pos_integer() | infinity, BytesMax :: pos_integer() | infinity}, table()) ->
          {[{key(), {weft_kv_object:object(), kind()}}], weft_vnode:cursor()}.
page(start, Limits, #table{objects = Objects} = Table) ->
    page(ets:first(Objects), Limits, [], Table);
page({'after', Key}, Limits, #table{objects = Objects} = Table) ->
    page(ets:next(Objects, Key), Limits, [], Table).

page('$end_of_table', _, Found, _) ->
    {lists:reverse(Found), done};
page(_, {Max, BytesMax}, [{Last, _} | _] = Found, _) when Max =:= 0; BytesMax =< 0 ->
    {lists:reverse(Found), {'after', Last}};
page(Key, {Max, BytesMax}, Found, #table{objects = Objects} = Table) ->
    [{_, Object, Kind, Bytes, _, _}] = ets:lookup(Objects, Key),
    page(ets:next(Objects, Key), {less(Max, 1), less(BytesMax, Bytes)},
         [{Key, {Object, Kind}} | Found], Table).

less(infinity, _) -> infinity;
less(Max, Used) -> Max - Used.

%% @doc The objects of the first ones of these keys: of as many as have not much more than so many
%% bytes together, and of one at least.
-spec batch([key()], BytesMax :: non_neg_integer(), table()) ->
          [{key(), {weft_kv_object:object(), kind()} | none}].
batch([], _, _) -> [];
batch([Key | Keys], Left, #table{objects = Objects} = Table) ->
    case ets:lookup(Objects, Key) of
        [] -> [{Key, none} | batch(Keys, Left, Table)];
        [{_, Object, Kind, Bytes, _, _}] when Bytes < Left ->
            [{Key, {Object, Kind}} | batch(Keys, Left - Bytes, Table)];
        [{_, Object, Kind, _, _, _}] -> [{Key, {Object, Kind}}]
    end.

%% @doc All keys for which the fun says so.
-spec keys(fun((key()) -> boolean()), table()) -> [key()].
keys(Which, #table{objects = Objects}) ->
    ets:foldr(fun({Key, _, _, _, _, _}, Keys) ->
                  case Which(Key) of true -> [Key | Keys]; false -> Keys end
              end, [], Objects).

%% @doc At most so many keys of one of these: of the first one of which there are any.
-spec some([{KeyPartition :: non_neg_integer(), Bucket :: atom()}], pos_integer(), table()) ->
          [key()].
some([], _, _) ->
    [];
some([{KeyPartition, Bucket} | Others], Max, Table) ->
    case following({KeyPartition, Bucket, <<>>}, Max, Table) of
        [] -> some(Others, Max, Table);
        Keys -> Keys
    end.

following(_, 0, _) ->
    [];
following({KeyPartition, Bucket, _} = Last, Max, #table{objects = Objects} = Table) ->
    case ets:next(Objects, Last) of
        {KeyPartition, Bucket, _} = Key -> [Key | following(Key, Max - 1, Table)];
        _ -> []
    end.

%% --- what may be lacking ----------------------------------------------------------------------

%% @doc What may have been here once, and is not any more.
-spec recall(table()) -> weft_kv_recall:recall().
recall(#table{hashes = Hashes}) ->
    case ets:lookup(Hashes, ?RECALL) of
        [{_, Recall}] -> Recall;
        [] -> weft_kv_recall:all()
    end.

-spec recall(weft_kv_recall:recall(), table()) -> ok.
recall(Recall, #table{hashes = Hashes}) ->
    true = ets:insert(Hashes, {?RECALL, Recall}),
    ok.

%% @doc What the file says, or will with what waits to be written there.
-spec filed(table()) -> whole | lacking.
filed(#table{hashes = Hashes}) ->
    case ets:lookup(Hashes, ?FILED) of
        [{_, Says}] -> Says;
        [] -> whole
    end.

-spec filed(whole | lacking, table()) -> ok.
filed(Says, #table{hashes = Hashes}) ->
    true = ets:insert(Hashes, {?FILED, Says}),
    ok.

%% --- hashes -----------------------------------------------------------------------------------

%% @doc Of how many replicas objects are here that others have to have, too: those that may be
%% dropped do not count, nor those with one replica.
-spec ns(table()) -> [pos_integer()].
ns(Table) -> ns(1, Table).

ns(Above, #table{hashes = Hashes} = Table) ->
    %% All of one number are before this.
    case ets:next(Hashes, {Above, none, none}) of
        {N, _, _} -> [N | ns(N, Table)];
        '$end_of_table' -> []
    end.

%% @doc The hashes of the segments of a partition's keys, in buckets with `N' replicas. A segment
%% without objects is not there.
-spec segments(pos_integer(), non_neg_integer(), table()) -> [{non_neg_integer(), integer()}].
segments(N, KeyPartition, #table{hashes = Hashes}) ->
    [{Segment, Hash} || Segment <- lists:seq(0, ?SEGMENTS - 1),
                        {_, Hash} <- ets:lookup(Hashes, {N, KeyPartition, Segment})].

%% @doc The keys of a segment, and the hashes of their objects.
-spec segment(pos_integer(), non_neg_integer(), non_neg_integer(), table()) ->
          [{key(), Hash :: integer(), kind()}].
segment(N, KeyPartition, Segment, #table{objects = Objects}) ->
    Pattern = {{KeyPartition, '$1', '$2'}, '_', '$3', '_', '_', '$4'},
    [{Key, Hash, Kind}
     || {Bucket, Name, #{n := ItsN, evict := false} = Kind, Hash}
            <- ets:select(Objects, [{Pattern, [], [{{'$1', '$2', '$3', '$4'}}]}]),
        Key <- [{KeyPartition, Bucket, Name}], ItsN =:= N, segment_of(Key) =:= Segment].

%% @doc The same for several segments and a page of the keys: behind a cursor, in the order of the
%% keys. It looks at no more than so many objects, and names not many more than so many bytes.
-spec entries(pos_integer(), non_neg_integer(), [non_neg_integer()],
              {weft_vnode:cursor(), {Max :: pos_integer(), BytesMax :: pos_integer()}}, table()) ->
          {[{key(), Hash :: integer(), kind()}], weft_vnode:cursor()}.
entries(N, KeyPartition, Segments, {Cursor, Limits}, Table) ->
    Last = case Cursor of
               start -> {KeyPartition, '', <<>>};
               {'after', Key} -> Key
           end,
    listed(Last, Limits, [], {N, KeyPartition, maps:from_keys(Segments, true)}, Table).

listed(Last, {Max, BytesMax}, Found, _, _) when Max =:= 0; BytesMax =< 0 ->
    {lists:reverse(Found), {'after', Last}};
listed(Last, {Max, BytesMax}, Found, {N, KeyPartition, Segments} = Wanted,
       #table{objects = Objects} = Table) ->
    case ets:next(Objects, Last) of
        {KeyPartition, _, Name} = Key ->
            [{_, _, #{n := ItsN, evict := Evict} = Kind, _, _, Hash}] = ets:lookup(Objects, Key),
            case not Evict andalso ItsN =:= N andalso is_map_key(segment_of(Key), Segments) of
                true -> listed(Key, {Max - 1, BytesMax - byte_size(Name)},
                               [{Key, Hash, Kind} | Found], Wanted, Table);
                false -> listed(Key, {Max - 1, BytesMax}, Found, Wanted, Table)
            end;
        _ -> {lists:reverse(Found), done}
    end.

%% What is in twice is out again.
hashed(_Key, #{evict := true}, _Hash, _Table) ->
    ok;
hashed({KeyPartition, _, _} = Key, #{n := N}, Hash, #table{hashes = Hashes}) ->
    At = {N, KeyPartition, segment_of(Key)},
    true = case ets:lookup(Hashes, At) of
               [{_, Hash}] -> ets:delete(Hashes, At);
               [{_, Others}] -> ets:insert(Hashes, {At, Others bxor Hash});
               [] -> ets:insert(Hashes, {At, Hash})
           end,
    ok.

segment_of(Key) -> erlang:phash2(Key, ?SEGMENTS).

%% The same on all nodes, of whatever release.
hash(Key, Object) ->
    (erlang:phash2({1, Key, Object}, 1 bsl 32) bsl 32) bor erlang:phash2({2, Key, Object},
                                                                        1 bsl 32).

clock(#table{counts = Counts}) ->
    ok = counters:add(Counts, ?CLOCK, 1),
    counters:get(Counts, ?CLOCK).

%% The parts that grow; the rest is about the same for each.
size({_, _, Key}, {Known, _} = Object) ->
    200 + byte_size(Key) + 64 * map_size(Known)
        + lists:sum([case Value of deleted -> 64; _ -> 128 + byte_size(Value) end
                     || #{value := Value} <- weft_kv_object:siblings(Object)]).
