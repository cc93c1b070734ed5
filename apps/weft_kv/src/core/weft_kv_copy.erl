%% SPDX-License-Identifier: Apache-2.0
%% @doc Reads objects from one replica and merges them into another one, in batches. Pure, but for
%% the function that asks them.
%%
%% A batch is bounded: at most `KEYS_MAX' keys in a question, and objects of about 64 KB, or one
%% object, in an answer (`weft_kv_shown'). What there is no room for is asked again. The replica
%% that is given a batch merges each object with what it has then, so a write that came in between
%% is never overwritten, and a batch may come twice.
%%
%% A replica says that it knows batches where it is asked for its segments (`announced/1'). Replicas
%% of an earlier version do not say so, and would end with a command that they do not know; earlier
%% versions overlook what is said. So with these it is done key by key.
-module(weft_kv_copy).

-export([announced/1, way/1, read/4, write/4]).
-export_type([ask/0, way/0, item/0, segments/0]).

-type ask() :: fun((Partition :: non_neg_integer(), weft_kv_table:key(), Command :: term()) ->
                       {ok, Answer :: term()} | {error, term()}).
-type way() :: batches | keys.
-type item() :: {weft_kv_table:key(), {weft_kv_object:object(), weft_kv_table:kind()}}.
-type segments() :: [{Segment :: non_neg_integer(), Hash :: integer()} | tuple()].

-define(KEYS_MAX, 100).
-define(KNOWN, {knows, batches, 1}).

%% @doc What a replica of this version answers when it is asked for its segments.
-spec announced(segments()) -> segments().
announced(Segments) -> Segments ++ [?KNOWN].

%% @doc How the replica can be asked that has answered this.
-spec way(segments()) -> way().
way(Segments) ->
    case lists:member(?KNOWN, Segments) of
        true -> batches;
        false -> keys
    end.

%% @doc Objects of the first keys of these, and the keys that are left. What is not there any more
%% is left out.
-spec read(way(), Partition :: non_neg_integer(),
           [{weft_kv_table:key(), weft_kv_table:kind()}, ...], ask()) ->
          {ok, [item()], Left :: [{weft_kv_table:key(), weft_kv_table:kind()}]} | {error, term()}.
read(batches, Partition, Keys, Ask) ->
    First = [Key || {Key, _} <- lists:sublist(Keys, ?KEYS_MAX)],
    case answer(Ask(Partition, hd(First), {objects, First})) of
        {ok, Answers} ->
            {ok, [{Key, Found} || {Key, {_, _} = Found} <- Answers],
             lists:nthtail(length(Answers), Keys)};
        {error, Reason} -> {error, Reason}
    end;
read(keys, Partition, [{Key, Kind} | Left], Ask) ->
    case answer(Ask(Partition, Key, {read, Kind, primary})) of
        {ok, {ok, Object}} -> {ok, [{Key, {Object, Kind}}], Left};
        {error, Reason} -> {error, Reason}
    end.

%% @doc The replica has all of this now, and had not so many of them.
-spec write(way(), Partition :: non_neg_integer(), [item()], ask()) ->
          {ok, New :: non_neg_integer()} | {error, term()}.
write(_, _, [], _) ->
    {ok, 0};
write(batches, Partition, [{Key, _} | _] = Items, Ask) ->
    case answer(Ask(Partition, Key, {merge_all, Items})) of
        {ok, {ok, New}} -> {ok, New};
        {error, Reason} -> {error, Reason}
    end;
write(keys, Partition, [{Key, {Object, Kind}} | Items], Ask) ->
    case answer(Ask(Partition, Key, {{merge, Object}, Kind, primary})) of
        {ok, {ok, _}} ->
            case write(keys, Partition, Items, Ask) of
                {ok, New} -> {ok, New + 1};
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} -> {error, Reason}
    end.

answer({ok, {error, Reason}}) -> {error, Reason};
answer(Answer) -> Answer.
