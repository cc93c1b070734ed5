%% SPDX-License-Identifier: Apache-2.0
%% @doc The last messages, kept for nodes that missed them: bounded in time, number and bytes.
%%
%% Pure part of `weft_plumtree_core'.
-module(weft_message_cache).

-export([new/1, add/5, get/2, size/1, expire/2, summary/1, lacking/2]).
-export_type([cache/0, summary/0]).

-record(cache, {
    origins = #{} :: #{weft_delivered:origin() => #{pos_integer() => {Hops :: non_neg_integer(),
                                                                      binary()}}},
    %% Oldest first.
    order = queue:new() :: queue:queue({AddedMs :: integer(), weft_delivered:id()}),
    count = 0 :: non_neg_integer(),
    bytes = 0 :: non_neg_integer(),
    keep_ms :: pos_integer(),
    count_max :: pos_integer(),
    bytes_max :: pos_integer()}).

-opaque cache() :: #cache{}.
-type summary() :: [{weft_delivered:origin(), [weft_delivered:range()]}].

%% @doc An empty cache. Options: `cache_ms' (60000), `cache_max' (4096 messages), `cache_bytes'
%% (16777216).
-spec new(#{atom() => term()}) -> cache().
new(Options) ->
    #cache{keep_ms = maps:get(cache_ms, Options, 60000),
           count_max = maps:get(cache_max, Options, 4096),
           bytes_max = maps:get(cache_bytes, Options, 16777216)}.

%% @doc Keeps a message; the oldest ones make room for it. Hops: over how many links it came.
-spec add(weft_delivered:id(), Hops :: non_neg_integer(), binary(), NowMs :: integer(), cache()) ->
          cache().
add({Origin, Number} = Id, Hops, Payload, NowMs, #cache{origins = Origins} = Cache) ->
    Messages = maps:get(Origin, Origins, #{}),
    bound(Cache#cache{origins = Origins#{Origin => Messages#{Number => {Hops, Payload}}},
                      order = queue:in({NowMs, Id}, Cache#cache.order),
                      count = Cache#cache.count + 1,
                      bytes = Cache#cache.bytes + byte_size(Payload)}).

bound(#cache{count = Count, bytes = Bytes, count_max = CountMax, bytes_max = BytesMax} = Cache)
  when Count > CountMax; Bytes > BytesMax ->
    bound(drop_oldest(Cache));
bound(Cache) ->
    Cache.

drop_oldest(#cache{origins = Origins, order = Order0} = Cache) ->
    {{value, {_, {Origin, Number}}}, Order} = queue:out(Order0),
    #{Origin := #{Number := {_, Payload}} = Messages0} = Origins,
    Messages = maps:remove(Number, Messages0),
    Cache#cache{order = Order, count = Cache#cache.count - 1,
                bytes = Cache#cache.bytes - byte_size(Payload),
                origins = case map_size(Messages) of
                              0 -> maps:remove(Origin, Origins);
                              _ -> Origins#{Origin := Messages}
                          end}.

%% @doc The message and its hops, if it is still kept.
-spec get(weft_delivered:id(), cache()) -> {ok, Hops :: non_neg_integer(), binary()} | error.
get({Origin, Number}, #cache{origins = Origins}) ->
    case Origins of
        #{Origin := #{Number := {Hops, Payload}}} -> {ok, Hops, Payload};
        #{} -> error
    end.

%% @doc How many messages are kept.
-spec size(cache()) -> non_neg_integer().
size(#cache{count = Count}) ->
    Count.

%% @doc Drops what is too old.
-spec expire(NowMs :: integer(), cache()) -> cache().
expire(NowMs, #cache{order = Order, keep_ms = KeepMs} = Cache) ->
    case queue:peek(Order) of
        {value, {AddedMs, _}} when NowMs - AddedMs >= KeepMs -> expire(NowMs, drop_oldest(Cache));
        _ -> Cache
    end.

%% @doc What is kept, as ranges of numbers for each origin.
-spec summary(cache()) -> summary().
summary(#cache{origins = Origins}) ->
    [{Origin, weft_delivered:to_ranges(maps:keys(Messages))}
     || {Origin, Messages} <- lists:sort(maps:to_list(Origins))].

%% @doc What is kept here and not in the cache that gave the summary: identities and hops.
-spec lacking(summary(), cache()) -> [{weft_delivered:id(), Hops :: non_neg_integer()}].
lacking(Summary, #cache{origins = Origins}) ->
    Theirs = maps:from_list(Summary),
    [{{Origin, Number}, Hops}
     || {Origin, Messages} <- lists:sort(maps:to_list(Origins)),
        {Number, {Hops, _}} <- lists:sort(maps:to_list(Messages)),
        not weft_delivered:in_ranges(Number, maps:get(Origin, Theirs, []))].
