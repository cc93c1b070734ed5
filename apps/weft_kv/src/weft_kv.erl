%% SPDX-License-Identifier: Apache-2.0
%% @doc A store of keys and values in several copies on the nodes of a ring: a cache, or a store
%% that loses no write that it has acknowledged. The guide is `docs/guide/kv.md'.
-module(weft_kv).

-export([get/2, get/3, read/3, siblings/3, values/3, put/3, put/4, delete/2, delete/3, cas/4, cas/5,
         update/3, update/4, list/1, keys/3, fold/3, info/1, is_complete/0, export/2, import/2,
         backup/2]).
-export_type([bucket/0, key/0, context/0, options/0, sibling/0, error/0, input_error/0]).

-type bucket() :: atom().
-type key() :: binary().
-type context() :: weft_kv_object:context().
-type options() :: #{context => context(), r => weft_kv_bucket:quorum(),
                     w => weft_kv_bucket:quorum(), pr => weft_kv_bucket:quorum(),
                     pw => weft_kv_bucket:quorum(), nodes => weft_kv_bucket:quorum(),
                     ttl_ms => pos_integer() | infinity, timeout_ms => pos_integer(),
                     retries => non_neg_integer(), content_type => binary()}.
%% `content_type' is kept with a value for those who ask for it (`read/3'); not in strong buckets.
-type sibling() :: #{value := binary(), written_ms => integer(), expires_ms => integer() | never,
                     content_type => binary()}.
-type input_error() :: unknown_bucket | bad_key | bad_value | {too_large, Bytes :: pos_integer()}
                     | bad_context | {unknown_option | bad_option | only_with, term()}.
-type error() :: input_error()
               | no_ring | not_running | overload
               | weft_kv_coordinator_core:error() | {not_done | unknown, term()}.
%% The first ones are mistakes of the caller. After `overload', `no_ring', `not_running' and
%% `too_many_siblings' nothing was done, nor after `not_done' (of strong buckets only). After the
%% others a write may have reached some replicas, and may be found later.

-define(KEY_MAX, 4096).
%% What tells two writes of the same bytes at the same time from one that was asked for twice.
-define(REQUEST_BYTES, 8).

%% @doc As `get/3', with the options of the bucket.
-spec get(bucket(), key()) -> {ok, binary(), context()} | {siblings, [binary()], context()}
                            | {error, not_found | error()}.
get(Bucket, Key) -> get(Bucket, Key, #{}).

%% @doc The value of a key. If there were writes that did not know each other, there are several
%% values; write what they amount to with the context (`update/3' does both).
-spec get(bucket(), key(), options()) ->
          {ok, binary(), context()} | {siblings, [binary()], context()}
        | {error, not_found | error()}.
get(Bucket, Key, Given) ->
    case weft_kv_strong:is_strong(Bucket) of
        true -> counted(get, fun() -> weft_kv_strong:get(Bucket, Key, Given) end);
        false -> found(Bucket, Key, Given)
    end.

found(Bucket, Key, Given) ->
    case object(get, Bucket, Key, Given) of
        {ok, Object} ->
            case lists:usort(weft_kv_object:values(Object)) of
                [] -> {error, not_found};
                [Value] -> {ok, Value, weft_kv_object:context({Bucket, Key}, Object)};
                Values -> {siblings, Values, weft_kv_object:context({Bucket, Key}, Object)}
            end;
        {error, Reason} -> {error, Reason}
    end.

%% @doc As `get/3', with what is known of each value. Values that are alike in bytes and in content
%% type are shown as one.
-spec read(bucket(), key(), options()) ->
          {ok, [sibling(), ...], context()} | {error, not_found | error()}.
read(Bucket, Key, Given) ->
    case siblings(Bucket, Key, Given) of
        {ok, [], _} -> {error, not_found};
        Result -> Result
    end.

%% @doc As `read/3', with the context of what was found also where that is nothing. Values that are
%% over are replaced by a write with it, as deletions are.
-spec siblings(bucket(), key(), options()) -> {ok, [sibling()], context()} | {error, error()}.
siblings(Bucket, Key, Given) ->
    case weft_kv_strong:is_strong(Bucket) of
        true ->
            case get(Bucket, Key, Given) of
                {ok, Value, Context} -> {ok, [#{value => Value}], Context};
                {error, not_found} -> {ok, [], <<>>};
                {error, Reason} -> {error, Reason}
            end;
        false ->
            case object(get, Bucket, Key, Given) of
                {ok, Object} ->
                    Values = [maps:remove(request, Value)
                              || #{value := Bytes} = Value <- weft_kv_object:siblings(Object),
                                 Bytes =/= deleted],
                    {ok, distinct(Values), weft_kv_object:context({Bucket, Key}, Object)};
                {error, Reason} -> {error, Reason}
            end
    end.

distinct(Values) ->
    maps:values(maps:from_list([{maps:with([value, content_type], Value), Value}
                                || Value <- Values])).

%% @doc All values of a key, none, one or several, and the context of what was found, also where
%% that is nothing. Not in strong buckets.
-spec values(bucket(), key(), options()) -> {ok, [binary()], context()} | {error, error()}.
values(Bucket, Key, Given) ->
    case weft_kv_strong:is_strong(Bucket) of
        true -> {error, {only_with, {consistency, eventual}}};
        false ->
            Asked = maps:without([ttl_ms, context, content_type], Given),
            case object(get, Bucket, Key, Asked) of
                {ok, Object} ->
                    {ok, lists:usort(weft_kv_object:values(Object)),
                     weft_kv_object:context({Bucket, Key}, Object)};
                {error, Reason} -> {error, Reason}
            end
    end.

%% @doc As `put/4', with the options of the bucket.
-spec put(bucket(), key(), binary()) -> {ok, context()} | {error, error()}.
put(Bucket, Key, Value) -> put(Bucket, Key, Value, #{}).

%% @doc Writes a value. It replaces the values that were read with the context in the options, and
%% is a sibling of others, of which there may be `siblings_max' (`weft_kv_vnode'). (In a bucket
%% without siblings the last write stays.) The context that is returned covers these others, too: a
%% further write with it replaces them, read or not.
-spec put(bucket(), key(), binary(), options()) -> {ok, context()} | {error, error()}.
put(Bucket, Key, Value, Given) when is_binary(Value) ->
    case weft_kv_strong:is_strong(Bucket) of
        true -> counted(put, fun() -> weft_kv_strong:put(Bucket, Key, Value, Given) end);
        false -> write(Bucket, Key, Value, Given)
    end;
put(_Bucket, _Key, _Value, _Given) -> {error, bad_value}.

%% @doc As `delete/3', with the options of the bucket.
-spec delete(bucket(), key()) -> {ok, context()} | {error, error()}.
delete(Bucket, Key) -> delete(Bucket, Key, #{}).

%% @doc Deletes the values that were read with the context. Without one it reads first, and deletes
%% what it finds.
-spec delete(bucket(), key(), options()) -> {ok, context()} | {error, error()}.
delete(Bucket, Key, Given) ->
    case weft_kv_strong:is_strong(Bucket) of
        true -> counted(delete, fun() -> weft_kv_strong:delete(Bucket, Key, Given) end);
        false -> deleted(Bucket, Key, Given)
    end.

deleted(Bucket, Key, #{context := _} = Given) ->
    write(Bucket, Key, deleted, Given);
deleted(Bucket, Key, Given) ->
    SinceMs = now_ms(),
    case object(get, Bucket, Key, maps:without([ttl_ms], Given)) of
        {ok, Object} ->
            Context = weft_kv_object:context({Bucket, Key}, Object),
            write(Bucket, Key, deleted, (left(SinceMs, Bucket, Given))#{context => Context});
        {error, Reason} -> {error, Reason}
    end.

%% @doc As `cas/5', with the options of the bucket.
-spec cas(bucket(), key(), binary() | not_found, binary() | not_found) ->
          {ok, context()} | {error, {conflict, binary() | not_found} | error()}.
cas(Bucket, Key, Expected, New) -> cas(Bucket, Key, Expected, New, #{}).

%% @doc Writes a value if the key has the expected one (`not_found': none; as the new one it means
%% to delete). Otherwise the error has the one that is there. Only in strong buckets.
-spec cas(bucket(), key(), binary() | not_found, binary() | not_found, options()) ->
          {ok, context()} | {error, {conflict, binary() | not_found} | error()}.
cas(Bucket, Key, Expected, New, Given) ->
    case {weft_kv_app:bucket(Bucket), weft_kv_strong:is_strong(Bucket)} of
        {_, true} ->
            counted(put, fun() -> weft_kv_strong:cas(Bucket, Key, Expected, New, Given) end);
        {{ok, _}, false} -> {error, {only_with, {consistency, strong}}};
        {{error, Reason}, false} -> {error, Reason}
    end.

%% @doc As `update/4', with the options of the bucket.
-spec update(bucket(), key(), fun(([binary()]) -> binary())) ->
          {ok, context()} | {error, error()}.
update(Bucket, Key, Fun) -> update(Bucket, Key, Fun, #{}).

%% @doc Writes what the fun makes of the values that are there (none, one, or siblings). Two updates
%% at the same time may not see each other; then their values are siblings. In a strong bucket they
%% do, and the fun may be called several times.
-spec update(bucket(), key(), fun(([binary()]) -> binary()), options()) ->
          {ok, context()} | {error, error()}.
update(Bucket, Key, Fun, Given) ->
    case weft_kv_strong:is_strong(Bucket) of
        true -> weft_kv_strong:update(Bucket, Key, Fun, Given);
        false -> updated(Bucket, Key, Fun, Given)
    end.

updated(Bucket, Key, Fun, Given) ->
    SinceMs = now_ms(),
    case values(Bucket, Key, Given) of
        {ok, Values, Context} ->
            Value = Fun(Values),
            put(Bucket, Key, Value, (left(SinceMs, Bucket, Given))#{context => Context});
        {error, Reason} -> {error, Reason}
    end.

%% @doc All keys of a bucket, in no order that means anything.
-spec list(bucket()) -> {ok, [key()]} | {error, error()}.
list(Bucket) ->
    fold(Bucket, fun(Key, _Values, Keys) -> [Key | Keys] end, []).

%% @doc At most `Max' keys of a bucket, in no order that means anything, and where to go on with the
%% next call: `start' is the beginning, `done' the end. A page may have fewer keys, or none, though
%% others follow.
-spec keys(bucket(), weft_kv_keys:cursor() | start, Max :: pos_integer()) ->
          {ok, [key()], weft_kv_keys:cursor() | done} | {error, bad_cursor | error()}.
keys(Bucket, Cursor, Max) ->
    case weft_kv_app:bucket(Bucket) of
        {ok, #{consistency := strong}} -> {error, {only_with, {consistency, eventual}}};
        {ok, Options} -> weft_kv_keys:page(Bucket, Options, Cursor, Max);
        {error, Reason} -> {error, Reason}
    end.

%% @doc What was configured for a bucket, the ring, and what waits on this node.
-spec info(bucket()) -> {ok, #{bucket := map(),
                               ring := weft_ring:status() | {error, no_ring | not_running},
                               stats := map() | not_running}}
                      | {error, unknown_bucket | not_running}.
info(Bucket) ->
    case weft_kv_app:bucket(Bucket) of
        {ok, Options} ->
            {ok, #{bucket => Options, ring => weft_ring:status(), stats => weft_kv_stats:read()}};
        {error, Reason} -> {error, Reason}
    end.

%% @doc `Fun(Key, Values, Acc)' for each key of a bucket. It goes through the ring partition by
%% partition, and asks as many replicas as a read (`r', and `pr' of them as owners). If there are
%% not so many that count, that is the error of a read, too. Keys that change meanwhile are there as
%% before or after the change.
-spec fold(bucket(), fun((key(), [binary()], Acc) -> Acc), Acc) -> {ok, Acc} | {error, error()}.
fold(Bucket, Fun, Acc) ->
    case weft_kv_app:bucket(Bucket) of
        {ok, #{consistency := strong}} -> {error, {only_with, {consistency, eventual}}};
        {ok, Options} -> weft_kv_fold:fold(Bucket, Options, Fun, Acc);
        {error, Reason} -> {error, Reason}
    end.

%% @doc Writes what the buckets have to a file, with all siblings and their contexts, while the
%% store is used: see `weft_kv_archive'. The option `buckets' names those instead of all. The file
%% is there when all of it is on disk.
-spec export(file:filename(), #{buckets => [binary()]}) ->
          {ok, weft_kv_archive_file:report()} | {error, term()}.
export(File, Options) ->
    weft_kv_archive_file:export(File, Options, fun weft_kv_archive_file:here/3).

%% @doc Merges what is in such a file with what the store has. Of a file that is damaged or not
%% whole nothing is taken. Options: `buckets', those of the file; `into', the bucket where that one
%% is to go; `check', the file is only read; `overwrite', values of strong buckets replace others.
-spec import(file:filename(), weft_kv_archive_file:options()) ->
          {ok, weft_kv_archive_file:report()} | {error, term()}.
import(File, Options) ->
    weft_kv_archive_file:import(File, Options, fun weft_kv_archive_file:here/3).

%% @doc Do answers of this node count for all keys that it owns? Not while it may have forgotten
%% some of what it had (guide, "A node that has forgotten"); no other node should be stopped then.
%% Nor while the application is not running. Not seen is what a bucket had in memory before its
%% durability was changed.
-spec is_complete() -> boolean().
is_complete() ->
    case weft_kv_entropy:info() of
        #{incomplete := Count} -> Count =:= 0;
        {error, not_running} -> false
    end.

%% @doc All buckets in a new file of a directory, which is then read again. With `keep' only so many
%% stay there: this one, and the latest of those that are earlier. Others that have a later time, as
%% after a clock that was wrong, stay as well; the report has them as `later'.
-spec backup(file:filename(), #{keep => pos_integer()}) ->
          {ok, weft_kv_archive_file:report()} | {error, term()}.
backup(Dir, Options) -> weft_kv_archive_file:backup(Dir, Options).

%% --- requests ---------------------------------------------------------------------------------

object(Kind, Bucket, Key, Given) ->
    counted(Kind, fun() -> object(Bucket, Key, maps:remove(context, Given)) end).

object(Bucket, Key, Given) ->
    case prepared(Bucket, Key, Given) of
        {ok, Place, Options} ->
            case weft_kv_request:run(Place, read, Options, weft_kv_app:running()) of
                {ok, Object} ->
                    {ok, weft_kv_object:expire(erlang:system_time(millisecond), Object)};
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} -> {error, Reason}
    end.

%% With what is left since then of the time of a request, for its second half.
left(SinceMs, Bucket, Given) ->
    case weft_kv_app:bucket(Bucket) of
        {ok, #{timeout_ms := OfBucketMs}} ->
            TimeoutMs = maps:get(timeout_ms, Given, OfBucketMs),
            Given#{timeout_ms => max(1, SinceMs + TimeoutMs - now_ms())};
        %% It was stopped meanwhile, as the second half says.
        {error, _} -> Given
    end.

now_ms() -> erlang:monotonic_time(millisecond).

counted(Kind, Do) ->
    Since = erlang:monotonic_time(),
    Result = Do(),
    ok = weft_kv_stats:count(Kind, Since, Result),
    Result.

write(Bucket, Key, Value, Given) ->
    Kind = case Value of deleted -> delete; _ -> put end,
    counted(Kind, fun() -> written(Bucket, Key, Value, Given) end).

written(Bucket, Key, Value, #{content_type := Type} = Given) ->
    case weft_kv_object:is_content_type(Type) of
        true -> typed(Bucket, Key, Value, Given);
        false -> {error, {bad_option, {content_type, Type, weft_kv_object:content_types()}}}
    end;
written(Bucket, Key, Value, Given) ->
    typed(Bucket, Key, Value, Given).

typed(Bucket, Key, Value, Given) ->
    case {prepared(Bucket, Key, maps:without([context, content_type], Given)),
          weft_kv_object:decode({Bucket, Key}, maps:get(context, Given, none))} of
        {{ok, _, #{value_max := Max}}, _} when is_binary(Value), byte_size(Value) > Max ->
            {error, {too_large, Max}};
        {{ok, Place, Options}, {ok, Seen}} ->
            Typed = maps:merge(valued(Value, Options), maps:with([content_type], Given)),
            case seen(Place, {write, Typed, Seen}, Options) of
                {ok, Object} -> {ok, weft_kv_object:context({Bucket, Key}, Object)};
                {error, Reason} -> {error, Reason}
            end;
        {{error, Reason}, _} -> {error, Reason};
        {_, {error, Reason}} -> {error, Reason}
    end.

%% All that one write takes has the time of one.
seen(Place, Write, #{timeout_ms := TimeoutMs} = Options) ->
    DeadlineMs = now_ms() + TimeoutMs,
    asked(Place, Write, Options, DeadlineMs, weft_kv_seen:init(Write)).

asked(Place, Request, Options, DeadlineMs, State) ->
    LeftMs = max(1, DeadlineMs - now_ms()),
    Answer = weft_kv_request:run(Place, Request, Options#{timeout_ms := LeftMs},
                                 weft_kv_app:running()),
    case weft_kv_seen:handle(Answer, State) of
        {answer, Result} -> Result;
        {ask, Next, configured, Further} -> asked(Place, Next, Options, DeadlineMs, Further);
        {ask, Next, all, Further} ->
            asked(Place, Next, Options#{r := map_get(n, Options)}, DeadlineMs, Further)
    end.

valued(Value, #{ttl_ms := TtlMs}) ->
    NowMs = erlang:system_time(millisecond),
    #{value => Value, written_ms => NowMs, request => weft_random:bytes(?REQUEST_BYTES),
      expires_ms => case TtlMs of
                        _ when Value =:= deleted; TtlMs =:= infinity -> never;
                        _ -> NowMs + TtlMs
                    end}.

prepared(Bucket, Key, Given)
  when is_binary(Key), Key =/= <<>>, byte_size(Key) =< ?KEY_MAX ->
    case weft_kv_app:bucket(Bucket) of
        {ok, Configured} ->
            case {weft_kv_bucket:options(Given, Configured),
                  weft_ring:partition({atom_to_binary(Bucket), Key})} of
                {{error, Reason}, _} -> {error, Reason};
                {_, {error, Reason}} -> {error, Reason};
                {{ok, Options}, {ok, Partition}} -> {ok, {Partition, Bucket, Key}, Options}
            end;
        {error, Reason} -> {error, Reason}
    end;
prepared(_Bucket, _Key, _Given) -> {error, bad_key}.
