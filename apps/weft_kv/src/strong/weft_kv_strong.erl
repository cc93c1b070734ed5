%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests to strong buckets, as `weft_kv' has them: linearizable for each key, one after the
%% other. Why it is built so is in `docs/decisions/0027-strong-buckets-have-a-register-per-key.md'.
-module(weft_kv_strong).

-export([is_strong/1, get/3, put/4, delete/3, cas/5, update/4]).
-export_type([error/0]).

-type error() :: weft_kv:input_error() | overload | not_running
               | {not_done | unknown, term()}.
%% `not_done': it did not happen and will not. `unknown': it may have happened, or may happen later.

-define(KEY_MAX, 4096).
%% There is nothing that a client would have to give back.
-define(CONTEXT, <<>>).

%% @doc Was this bucket configured with `consistency => strong'?
-spec is_strong(atom()) -> boolean().
is_strong(Bucket) ->
    case weft_kv_app:bucket(Bucket) of
        {ok, #{consistency := strong}} -> true;
        _ -> false
    end.

%% @doc See `weft_kv:get/3'.
-spec get(atom(), term(), map()) -> {ok, binary(), <<>>} | {error, not_found | error()}.
get(Bucket, Key, Given) ->
    case run(Bucket, Key, get, Given) of
        {ok, not_found} -> {error, not_found};
        {ok, Value} -> {ok, Value, ?CONTEXT};
        {error, Reason} -> {error, Reason}
    end.

%% @doc See `weft_kv:put/4'.
-spec put(atom(), term(), term(), map()) -> {ok, <<>>} | {error, error()}.
put(Bucket, Key, Value, Given) when is_binary(Value) ->
    written(run(Bucket, Key, {put, Value}, Given));
put(_Bucket, _Key, _Value, _Given) -> {error, bad_value}.

%% @doc See `weft_kv:delete/3'.
-spec delete(atom(), term(), map()) -> {ok, <<>>} | {error, error()}.
delete(Bucket, Key, Given) ->
    written(run(Bucket, Key, {put, not_found}, Given)).

%% @doc See `weft_kv:cas/5'.
-spec cas(atom(), term(), term(), term(), map()) ->
          {ok, <<>>} | {error, {conflict, binary() | not_found} | error()}.
cas(Bucket, Key, Expected, New, Given) ->
    case is_value(Expected) andalso is_value(New) of
        true -> written(run(Bucket, Key, {cas, Expected, New}, Given));
        false -> {error, bad_value}
    end.

is_value(Value) -> is_binary(Value) orelse Value =:= not_found.

%% @doc See `weft_kv:update/4'. It is tried again for as long as the time of the bucket.
-spec update(atom(), term(), fun(([binary()]) -> binary()), map()) ->
          {ok, <<>>} | {error, error()}.
update(Bucket, Key, Fun, Given) ->
    case prepared(Bucket, Key, get, Given) of
        {ok, #{timeout_ms := Ms}} -> update_until(now_ms() + Ms, Bucket, Key, Fun);
        {error, Reason} -> {error, Reason}
    end.

update_until(DeadlineMs, Bucket, Key, Fun) ->
    case run(Bucket, Key, get, left(DeadlineMs)) of
        {ok, Value} ->
            New = Fun([Value || Value =/= not_found]),
            #{timeout_ms := LeftMs} = Left = left(DeadlineMs),
            case is_binary(New) andalso cas(Bucket, Key, Value, New, Left) of
                false -> {error, bad_value};
                {error, {conflict, _}} when LeftMs =:= 1 -> {error, {not_done, contention}};
                {error, {conflict, _}} -> update_until(DeadlineMs, Bucket, Key, Fun);
                Result -> Result
            end;
        {error, Reason} -> {error, Reason}
    end.

left(DeadlineMs) -> #{timeout_ms => max(1, DeadlineMs - now_ms())}.

now_ms() -> erlang:monotonic_time(millisecond).

written(ok) -> {ok, ?CONTEXT};
written({error, Reason}) -> {error, Reason}.

run(Bucket, Key, Request, Given) ->
    case prepared(Bucket, Key, Request, Given) of
        {ok, Options} ->
            weft_kv_strong_request:run(Bucket, Key, Request, Options, weft_kv_app:running());
        {error, Reason} -> {error, Reason}
    end.

prepared(Bucket, Key, Request, Given)
  when is_binary(Key), Key =/= <<>>, byte_size(Key) =< ?KEY_MAX ->
    case weft_kv_app:bucket(Bucket) of
        {ok, #{value_max := Max} = Configured} ->
            case Request of
                {put, Value} when is_binary(Value), byte_size(Value) > Max ->
                    {error, {too_large, Max}};
                {cas, _, Value} when is_binary(Value), byte_size(Value) > Max ->
                    {error, {too_large, Max}};
                _ -> weft_kv_strong_bucket:options(Given, Configured)
            end;
        {error, Reason} -> {error, Reason}
    end;
prepared(_Bucket, _Key, _Request, _Given) -> {error, bad_key}.
