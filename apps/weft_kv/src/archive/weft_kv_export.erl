%% SPDX-License-Identifier: Apache-2.0
%% @doc What a bucket has, a page at a time, as records of `weft_kv_archive'. Whoever asks holds the
%% place between two pages; here nothing is kept.
%%
%% A page of a bucket is what all replicas that answer have together, deletions too. There have to
%% be so many owners among them that each acknowledged write is there, or what has replaced it. Of a
%% strong bucket a page is the keys that a majority of the replicas of a partition has, each read as
%% any reader does. So there is an order for each key, and none for the bucket.
%%
%% Not here: files (`weft_kv_archive_file').
-module(weft_kv_export).

-export([page/2]).
-export_type([cursor/0]).

-type cursor() :: start | weft_kv_fold:cursor().

%% A partition that moves, or whose owner has just died, is asked again for so long.
-define(AGAIN_MS, 20000).
-define(PAUSE_MS, 200).
-define(KEYS, 200).
%% Of a strong bucket; values have up to value_max bytes each.
-define(KEYS_AT_A_TIME, 8).
-define(BYTES, 1000000).

%% @doc The records of a page, and where the next one begins.
-spec page(atom(), cursor()) ->
          {ok, [binary()], cursor() | done} | {error, weft_kv:error()}.
page(Bucket, start) -> page(Bucket, {0, <<>>});
page(Bucket, {_, _} = Cursor) ->
    case weft_kv_app:bucket(Bucket) of
        {ok, Options} ->
            weft_redact:run(fun() ->
                                until(erlang:monotonic_time(millisecond) + ?AGAIN_MS,
                                      fun() -> once(Bucket, Options, Cursor) end)
                            end);
        {error, Reason} -> {error, Reason}
    end.

until(DeadlineMs, Once) ->
    case {Once(), erlang:monotonic_time(millisecond) < DeadlineMs} of
        {{error, Reason}, true} when Reason =/= no_ring, Reason =/= not_running ->
            receive after ?PAUSE_MS -> until(DeadlineMs, Once) end;
        {Result, _} -> Result
    end.

once(Bucket, #{consistency := strong, partitions := Count} = Options, {Partition, After})
  when Partition < Count ->
    case keys(Bucket, Options, Partition, After) of
        {ok, Keys, Next} -> values(Bucket, Partition, Keys, Next, {[], 0});
        {error, Reason} -> {error, Reason}
    end;
once(_Bucket, #{consistency := strong}, _Cursor) ->
    {ok, [], done};
once(Bucket, Options, Cursor) ->
    case weft_kv_fold:complete(Bucket, Options, Cursor) of
        {ok, Objects, Next} ->
            {ok, [weft_kv_archive:object(Key, Object) || {Key, Object} <- Objects], Next};
        {error, Reason} -> {error, Reason}
    end.

%% --- strong buckets ---------------------------------------------------------------------------

keys(Bucket, #{n := N, timeout_ms := Ms} = Options, Partition, After) ->
    Members = weft_kv_strong_known:members(Bucket, Partition),
    Asked = weft_kv_crew:map(fun(Node) ->
                                 {Node, weft_kv_strong_request:ask(
                                          Node, Bucket, Partition, Options,
                                          {Members, {keys, After, ?KEYS}}, Ms)}
                             end, weft_kv_strong_bucket:replicas(Partition, Options)),
    %% They are asked at the next try.
    _ = [ok = weft_kv_strong_known:learned(Bucket, Partition, Others)
         || {_, {error, {members, Others}}} <- Asked],
    Pages = [{Keys, IsLast} || {_, {keys, Keys, IsLast}} <- Asked],
    case length(Pages) > N div 2 of
        true ->
            Until = until(Pages),
            All = lists:usort(lists:append([Keys || {Keys, _} <- Pages])),
            {ok, [Key || Key <- All, Until =:= all orelse Key =< Until],
             case Until of all -> {Partition + 1, <<>>}; _ -> {Partition, Until} end};
        false ->
            {error, {not_done, {no_quorum, #{needed => N div 2 + 1, answered => length(Pages),
                                             failed => [{Node, Reason}
                                                        || {Node, {error, Reason}} <- Asked]}}}}
    end.

%% Up to here all pages go.
until(Pages) ->
    case [lists:last(Keys) || {Keys, false} <- Pages] of
        [] -> all;
        Lasts -> lists:min(Lasts)
    end.

%% Some are read at a time. When there are enough bytes the next page begins behind them.
values(_Bucket, _Partition, [], Next, {Found, _}) ->
    {ok, lists:append(lists:reverse(Found)), Next};
values(Bucket, Partition, Keys, Next, {Found, Bytes}) ->
    {Now, Later} = lists:split(min(?KEYS_AT_A_TIME, length(Keys)), Keys),
    Read = weft_kv_crew:map(fun(Key) -> {Key, weft_kv:get(Bucket, Key)} end, Now),
    case [Reason || {_, {error, Reason}} <- Read, Reason =/= not_found] of
        [] ->
            Records = [weft_kv_archive:register(Key, Value) || {Key, {ok, Value, _}} <- Read],
            case Bytes + iolist_size(Records) of
                Enough when Enough >= ?BYTES, Later =/= [] ->
                    values(Bucket, Partition, [], {Partition, lists:last(Now)},
                           {[Records | Found], Enough});
                More -> values(Bucket, Partition, Later, Next, {[Records | Found], More})
            end;
        [Reason | _] -> {error, Reason}
    end.
