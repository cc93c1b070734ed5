%% SPDX-License-Identifier: Apache-2.0
%% @doc Brings records of `weft_kv_archive' into a store that may be in use. Objects merge with what
%% is there: what the store has seen replaced stays so, what it did not know becomes a sibling, and
%% what is there already changes nothing. So it may be done again after an error.
%%
%% An actor numbers what it writes in all buckets of its partition together. So an object of another
%% bucket seems to know of writes to this one, which it has never seen, or those of this one seem to
%% know of it. In this bucket its actors have other names, with that of the bucket it comes from. In
%% a bucket without siblings the later value stays; a deletion that comes of another bucket is none
%% of this one, and is left out there, as is a value whose time is over.
%%
%% Values of strong buckets have no history that could be merged. They are written where the key has
%% no value; where it has another one, that stays, unless `overwrite' is given.
%%
%% Not here: files (`weft_kv_archive_file').
-module(weft_kv_import).

-export([records/3]).
-export_type([counts/0]).

-type counts() :: #{records := non_neg_integer(), kept := non_neg_integer()}.
%% `kept': keys of a strong bucket that have another value here, which stayed.

-define(AGAIN_MS, 20000).
-define(PAUSE_MS, 100).
-define(RETRIES, 10).

%% @doc All of these records are in the store. After an error some of them are. `from': the name of
%% their bucket, which earlier versions do not say.
-spec records(atom(), [binary()], #{overwrite := boolean(), from => binary()}) ->
          {ok, counts()} | {error, unknown_bucket | not_running | {key, binary(), term()}
                                 | bad_record}.
records(Bucket, Bodies, Given) ->
    case weft_kv_app:bucket(Bucket) of
        {ok, Options} ->
            weft_redact:run(fun() -> brought(Bucket, Bodies, Options, Given) end);
        {error, Reason} -> {error, Reason}
    end.

brought(Bucket, Bodies, Options, Given) ->
    DeadlineMs = erlang:monotonic_time(millisecond) + ?AGAIN_MS,
    Done = weft_kv_crew:map(fun(Body) -> one(Bucket, Body, Options, Given, DeadlineMs) end,
                            Bodies),
    case [Reason || {error, Reason} <- Done] of
        [] -> {ok, #{records => length(Done), kept => length([kept || kept <- Done])}};
        [Reason | _] -> {error, Reason}
    end.

one(Bucket, Body, #{value_max := Max} = Options, Given, DeadlineMs) ->
    Kind = maps:get(consistency, Options, eventual),
    case {weft_kv_archive:decode(Body), Kind} of
        {{object, Key, Object}, eventual} ->
            case lists:max([0 | [byte_size(Value) || Value <- weft_kv_object:values(Object)]]) of
                Bytes when Bytes > Max -> {error, {key, Key, {too_large, Max}}};
                _ ->
                    case named(Bucket, Object, Given, Options) of
                        nothing -> nothing;
                        Own ->
                            again(Key, DeadlineMs,
                                  fun() -> merged(Bucket, Key, Own, Options) end)
                    end
            end;
        {{register, Key, Value}, strong} ->
            again(Key, DeadlineMs, fun() -> registered(Bucket, Key, Value, Given) end);
        {{error, Reason}, _} -> {error, Reason};
        {_, _} -> {error, bad_record}
    end.

named(Bucket, Object, #{from := From}, Options) ->
    case atom_to_binary(Bucket) of
        From -> Object;
        _ -> of_another(From, Object, Options)
    end;
named(_Bucket, Object, _Given, _Options) ->
    Object.

%% A second import has to find the same names.
of_another(From, Object, #{siblings := Siblings}) ->
    Own = weft_kv_object:rename(fun(Actor) -> <<Actor/binary, "@", From/binary>> end, Object),
    Left = weft_kv_object:living(erlang:system_time(millisecond), Own),
    case weft_kv_object:count(Left) of
        _ when Siblings -> Own;
        0 -> nothing;
        _ -> Left
    end.

again(Key, DeadlineMs, Once) ->
    case Once() of
        {error, Reason} ->
            case is_passing(Reason) andalso erlang:monotonic_time(millisecond) < DeadlineMs of
                true -> receive after ?PAUSE_MS -> again(Key, DeadlineMs, Once) end;
                false -> {error, {key, Key, Reason}}
            end;
        Result -> Result
    end.

%% All of this may be repeated, as it comes to the same.
is_passing({too_large, _}) -> false;
is_passing(Reason) -> not lists:member(Reason, [no_ring, not_running, bad_key, bad_value]).

merged(Bucket, Key, Object, Options) ->
    case weft_ring:partition({atom_to_binary(Bucket), Key}) of
        {ok, Partition} ->
            case weft_kv_request:run({Partition, Bucket, Key}, {merge, Object},
                                     Options#{retries := ?RETRIES}, weft_kv_app:running()) of
                {ok, _} -> merged;
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} -> {error, Reason}
    end.

registered(Bucket, Key, Value, #{overwrite := true}) ->
    case weft_kv:put(Bucket, Key, Value) of
        {ok, _} -> written;
        {error, Reason} -> {error, Reason}
    end;
registered(Bucket, Key, Value, _Given) ->
    case weft_kv:cas(Bucket, Key, not_found, Value) of
        {ok, _} -> written;
        {error, {conflict, Value}} -> written;
        {error, {conflict, _Another}} -> kept;
        {error, Reason} -> {error, Reason}
    end.
