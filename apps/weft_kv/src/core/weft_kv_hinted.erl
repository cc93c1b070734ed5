%% SPDX-License-Identifier: Apache-2.0
%% @doc The keys of those objects that a partition keeps for its owner. They can be gone through
%% from anywhere, a few at a time, while others are added and removed. That takes as long as there
%% are keys in the step, however many there are. Their order is that of hashes, so that anywhere is
%% as likely at each of them. Pure, but for the random place.
-module(weft_kv_hinted).

-export([new/0, from_keys/1, add/2, remove/2, has/2, count/1, next/3]).
-export_type([hinted/0, cursor/0]).

-define(HASHES, 1 bsl 27).

-opaque hinted() :: gb_sets:set({Hash :: non_neg_integer(), weft_kv_table:key()}).
-type cursor() :: start | anywhere | {'after', weft_kv_table:key()} | done.

%% @doc None.
-spec new() -> hinted().
new() -> gb_sets:new().

%% @doc These.
-spec from_keys([weft_kv_table:key()]) -> hinted().
from_keys(Keys) -> gb_sets:from_list([place(Key) || Key <- Keys]).

%% @doc With this one.
-spec add(weft_kv_table:key(), hinted()) -> hinted().
add(Key, Hinted) -> gb_sets:add_element(place(Key), Hinted).

%% @doc Without this one, if it is there.
-spec remove(weft_kv_table:key(), hinted()) -> hinted().
remove(Key, Hinted) -> gb_sets:del_element(place(Key), Hinted).

%% @doc Is this one there?
-spec has(weft_kv_table:key(), hinted()) -> boolean().
has(Key, Hinted) -> gb_sets:is_element(place(Key), Hinted).

%% @doc How many there are. That takes no time.
-spec count(hinted()) -> non_neg_integer().
count(Hinted) -> gb_sets:size(Hinted).

%% @doc At most so many keys from there on, and where to go on: `done' is the end. Those that begin
%% `anywhere' go on with the first ones after the end, so that none is met less often than others.
-spec next(cursor(), Max :: pos_integer(), hinted()) -> {[weft_kv_table:key()], cursor()}.
next(done, _Max, _Hinted) ->
    {[], done};
next(start, Max, Hinted) ->
    met(behind({0, 0}, Max, Hinted), Max);
next({'after', Key}, Max, Hinted) ->
    met(lists:sublist(behind(place(Key), Max + 1, Hinted) -- [Key], Max), Max);
next(anywhere, Max, Hinted) ->
    Place = {rand:uniform(?HASHES) - 1, 0},
    Keys = behind(Place, Max, Hinted),
    First = [Key || Key <- behind({0, 0}, Max - length(Keys), Hinted), place(Key) < Place],
    met(Keys ++ First, Max).

met(Keys, Max) ->
    {Keys, case length(Keys) of
               Max -> {'after', lists:last(Keys)};
               _ -> done
           end}.

%% From this place on. A number is less than a key.
behind(Place, Max, Hinted) -> taken(Max, gb_sets:iterator_from(Place, Hinted)).

taken(0, _) -> [];
taken(Max, Iterator) ->
    case gb_sets:next(Iterator) of
        {{_, Key}, Others} -> [Key | taken(Max - 1, Others)];
        none -> []
    end.

place(Key) -> {erlang:phash2(Key, ?HASHES), Key}.
