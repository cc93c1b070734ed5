%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node of the store does for a client on another node (`weft_kv_client'). Whether a
%% write may be done a second time is decided here, where the bucket is configured.
%%
%% It may be where both are kept if somebody has written in between: in buckets with siblings, with
%% the context that it had the first time. Elsewhere the second one would win over that write.
-module(weft_kv_served).

-export([run/2]).
-export_type([request/0]).

-type request() :: {get | read | values | delete, weft_kv:bucket(), weft_kv:key(),
                    weft_kv:options()}
                 | {put, weft_kv:bucket(), weft_kv:key(), binary(), weft_kv:options()}
                 | {cas, weft_kv:bucket(), weft_kv:key(), Expected :: binary() | not_found,
                    New :: binary() | not_found, weft_kv:options()}
                 | {ring, Version :: none | non_neg_integer()}.

%% @doc The answer of the store. `again': a node was asked before, and may have done it. A write
%% that must not be done twice is then not done (`not_repeated'). `{ok, Values, strong}': the bucket
%% has no contexts, but compare-and-set. `{ring, Version}': who has which replicas, if that is not
%% what this version says.
-spec run(request() | term(), first | again) -> term().
run({get, Bucket, Key, Options}, _) -> weft_kv:get(Bucket, Key, Options);
run({read, Bucket, Key, Options}, _) -> weft_kv:read(Bucket, Key, Options);
run({values, Bucket, Key, Options}, _) -> values(Bucket, Key, Options);
run({put, Bucket, Key, Value, Options}, Try) ->
    once(Bucket, Try, fun() -> weft_kv:put(Bucket, Key, Value, Options) end);
run({delete, Bucket, Key, Options}, Try) ->
    once(Bucket, Try, fun() -> weft_kv:delete(Bucket, Key, Options) end);
run({cas, Bucket, Key, Expected, New, Options}, Try) ->
    once(Bucket, Try, fun() -> weft_kv:cas(Bucket, Key, Expected, New, Options) end);
run({ring, Version}, _) -> ring(Version);
run(_OfALaterVersion, _) ->
    {error, unknown_command}.

%% The version is a number that is the same on nodes that say the same.
ring(Known) ->
    case {weft_ring_lookup:owners(weft_ring), weft_kv_app:buckets()} of
        {{error, Reason}, _} -> {error, Reason};
        {_, {error, Reason}} -> {error, Reason};
        {{ok, Places}, {ok, Buckets}} ->
            Owners = [Node || {_, Node, _} <- Places],
            case lists:member(none, Owners) of
                true -> {error, no_ring};
                false -> told(#{owners => Owners, copies => copies(Buckets)}, Known)
            end
    end.

told(Told, Known) ->
    case erlang:phash2(Told, 1 bsl 32) of
        Known -> {ok, Known};
        Version -> {ok, Version, Told}
    end.

%% Replicas of strong buckets are not on the ring.
copies(Buckets) ->
    maps:from_list([{atom_to_binary(Bucket), N}
                    || {Bucket, #{n := N} = Options} <- maps:to_list(Buckets),
                       maps:get(consistency, Options, eventual) =:= eventual]).

values(Bucket, Key, Options) ->
    case weft_kv_strong:is_strong(Bucket) of
        false -> weft_kv:values(Bucket, Key, Options);
        true ->
            case weft_kv:get(Bucket, Key, maps:with([timeout_ms], Options)) of
                {ok, Value, _} -> {ok, [Value], strong};
                {error, not_found} -> {ok, [], strong};
                {error, Reason} -> {error, Reason}
            end
    end.

once(_Bucket, first, Do) ->
    Do();
once(Bucket, again, Do) ->
    case weft_kv_app:bucket(Bucket) of
        {ok, #{siblings := true}} -> Do();
        {ok, _} -> {error, not_repeated};
        {error, Reason} -> {error, Reason}
    end.
