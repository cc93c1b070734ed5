%% SPDX-License-Identifier: Apache-2.0
%% @doc What is compared instead of whole stores: fingerprints of ranges of keys.
%%
%% Each key has a place, its hash. A range is a half-open interval of places, and its fingerprint
%% the exclusive or of the hashes of the keys in it with their states. Two stores that differ in few
%% keys find these by comparing ever smaller ranges (range-based set reconciliation, Meyer 2023).
%% The sums of 4096 equal ranges are kept, so comparing the whole costs little.
-module(weft_crdt_ranges).

-export([new/0, put/3, whole/0, sum/2, keys/2, split/2, is_range/1]).
-export_type([ranges/0, range/0, sum/0]).

-define(PLACES, 16#100000000).
-define(BUCKET_BITS, 20).

-type range() :: {From :: non_neg_integer(), Until :: pos_integer()}.
-type hash() :: non_neg_integer().
-type sum() :: {Count :: non_neg_integer(), Fingerprint :: hash()}.
-type bucket() :: {sum(), #{Key :: term() => hash()}}.
-opaque ranges() :: #{non_neg_integer() => bucket()}.

%% @doc Without keys.
-spec new() -> ranges().
new() -> #{}.

%% @doc Gives a key the hash of what it has now; 64 bits of any term.
-spec put(Key :: term(), Content :: term(), ranges()) -> ranges().
put(Key, Content, Ranges) ->
    Hash = erlang:phash2({1, Key, Content}, ?PLACES) bsl 32
        bor erlang:phash2({2, Key, Content}, ?PLACES),
    Number = place(Key) bsr ?BUCKET_BITS,
    {{Count, Sum}, Keys} = maps:get(Number, Ranges, {{0, 0}, #{}}),
    New = case Keys of
              #{Key := Old} -> {Count, Sum bxor Old bxor Hash};
              #{} -> {Count + 1, Sum bxor Hash}
          end,
    Ranges#{Number => {New, Keys#{Key => Hash}}}.

place(Key) -> erlang:phash2(Key, ?PLACES).

%% @doc The range of all keys.
-spec whole() -> range().
whole() -> {0, ?PLACES}.

%% @doc Count and fingerprint of a range.
-spec sum(range(), ranges()) -> sum().
sum(Range, Ranges) ->
    lists:foldl(fun({Number, {Sum, Keys}}, Total) ->
                    case is_inside(Number, Range) of
                        true -> add(Sum, Total);
                        false -> lists:foldl(fun({_, Hash}, T) -> add({1, Hash}, T) end, Total,
                                             inside(Range, Keys))
                    end
                end, {0, 0}, buckets(Range, Ranges)).

add({CountA, A}, {CountB, B}) -> {CountA + CountB, A bxor B}.

is_inside(Number, {From, Until}) ->
    Number bsl ?BUCKET_BITS >= From andalso (Number + 1) bsl ?BUCKET_BITS =< Until.

inside({From, Until}, Keys) ->
    [Pair || {Key, _} = Pair <- maps:to_list(Keys), Place <- [place(Key)],
             Place >= From, Place < Until].

buckets({From, Until}, Ranges) ->
    First = From bsr ?BUCKET_BITS,
    Last = (Until - 1) bsr ?BUCKET_BITS,
    case Last - First < map_size(Ranges) of
        true -> [{N, map_get(N, Ranges)} || N <- lists:seq(First, Last), is_map_key(N, Ranges)];
        false -> [Pair || {N, _} = Pair <- maps:to_list(Ranges), N >= First, N =< Last]
    end.

%% @doc The keys of a range, with their hashes.
-spec keys(range(), ranges()) -> [{Key :: term(), hash()}].
keys(Range, Ranges) ->
    lists:append([inside(Range, Keys) || {_, {_, Keys}} <- buckets(Range, Ranges)]).

%% @doc A range in equal parts; one that is too small stays as it is.
-spec split(Parts :: pos_integer(), range()) -> [range()].
split(Parts, {From, Until}) when Until - From >= Parts ->
    Cuts = [From + (Until - From) * N div Parts || N <- lists:seq(0, Parts)],
    lists:zip(lists:droplast(Cuts), tl(Cuts));
split(_, Range) ->
    [Range].

%% @doc Whether two terms are the ends of a range.
-spec is_range(term()) -> boolean().
is_range({From, Until}) ->
    is_integer(From) andalso is_integer(Until) andalso From >= 0 andalso From < Until
        andalso Until =< ?PLACES;
is_range(_) -> false.
