%% SPDX-License-Identifier: Apache-2.0
%% @doc The keys of a bucket, so many at a time, for callers who come back for the rest: where they
%% have to go on is told them as bytes that mean nothing to them. Nothing is kept between two pages.
%% Keys that are written meanwhile are there or not; a key that stays is there once.
-module(weft_kv_keys).

-export([page/4]).
-export_type([cursor/0]).

-type cursor() :: binary().

-define(VERSION, 1).

%% @doc At most `Max' keys behind a cursor, in `timeout_ms' of the bucket. There may be fewer,
%% though others follow, if more are not found in that time or it fails to find more.
-spec page(atom(), weft_kv_bucket:options(), cursor() | start, Max :: pos_integer()) ->
          {ok, [binary()], cursor() | done} | {error, term()}.
page(Bucket, #{timeout_ms := TimeoutMs} = Options, Cursor, Max) ->
    case decode(Cursor) of
        {ok, From} ->
            UntilMs = erlang:monotonic_time(millisecond) + TimeoutMs,
            pages({Bucket, Options, UntilMs}, From, Max, []);
        {error, Reason} -> {error, Reason}
    end.

pages({Bucket, Options, UntilMs} = Context, {Partition, _} = From, Left, Found) ->
    LeftMs = UntilMs - erlang:monotonic_time(millisecond),
    case weft_kv_fold:page(Bucket, Options#{timeout_ms := max(1, LeftMs)}, From) of
        {error, Reason} when Found =:= [] -> {error, Reason};
        %% Who comes for the rest gets that error, if there still is one.
        {error, _Reason} -> {ok, together(Found), encode(From)};
        {ok, Objects, Next} ->
            Keys = [Key || {Key, Object} <- Objects, weft_kv_fold:live(Object) =/= []],
            IsLate = erlang:monotonic_time(millisecond) >= UntilMs,
            case length(Keys) of
                Count when Count > Left ->
                    Some = lists:sublist(Keys, Left),
                    {ok, together([Some | Found]), encode({Partition, lists:last(Some)})};
                Count when Next =:= done; Count =:= Left; IsLate ->
                    {ok, together([Keys | Found]), encode(Next)};
                Count ->
                    pages(Context, Next, Left - Count, [Keys | Found])
            end
    end.

together(Pages) -> lists:append(lists:reverse(Pages)).

encode(done) -> done;
encode({Partition, After}) -> <<?VERSION, Partition:32, After/binary>>.

%% It comes back from outside. Any partition and any key may be in it: it only says where to look.
decode(start) -> {ok, {0, <<>>}};
decode(<<?VERSION, Partition:32, After/binary>>) -> {ok, {Partition, After}};
decode(_) -> {error, bad_cursor}.
