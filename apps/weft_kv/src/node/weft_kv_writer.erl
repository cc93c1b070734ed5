%% SPDX-License-Identifier: Apache-2.0
%% @doc Under which name a partition writes, and the last number that it has given out. A value.
%%
%% What was written is known by both (`weft_kv_object'): whoever knows a number knows all that were
%% given out before it under that name. So a name is given up where that can not be relied on any
%% more: each run of the process has another one, since what the last run has written may be lost.
-module(weft_kv_writer).

-export([new/1, last/1, stored/2, forgot/2]).
-export_type([writer/0]).

-record(writer, {partition :: non_neg_integer(),
                 actor :: weft_kv_object:actor(),
                 %% That this actor has used for any key.
                 last = 0 :: non_neg_integer()}).
-opaque writer() :: #writer{}.

%% @doc With a name that nobody has had.
-spec new(Partition :: non_neg_integer()) -> writer().
new(Partition) -> #writer{partition = Partition, actor = actor(Partition)}.

actor(Partition) ->
    iolist_to_binary([atom_to_binary(node()), $/, integer_to_binary(Partition), $/,
                      integer_to_binary(erlang:system_time(microsecond), 36), $.,
                      integer_to_binary(erlang:unique_integer([positive]), 36)]).

%% @doc The name and the last number, after which the next write has its own.
-spec last(writer()) -> weft_kv_object:writer().
last(#writer{actor = Actor, last = Last}) -> {Actor, Last}.

%% @doc An object is stored. If this writer has written it, it has the number after the last one. An
%% object that names a higher one, as of a file that somebody has made, knows of writes that were
%% never done, and would take later ones for them. With another name there are no such writes.
-spec stored(weft_kv_object:object(), writer()) -> writer().
stored(Object, #writer{actor = Actor, last = Last, partition = Partition} = Writer) ->
    case weft_kv_object:last(Actor, Object) of
        Number when Number =< Last + 1 -> Writer#writer{last = max(Last, Number)};
        _NeverGivenOut -> new(Partition)
    end.

%% @doc These were forgotten here, and others still have them. By the next number this writer would
%% say of what it has written of them that it was replaced. (That is so of what was over or
%% evicted.)
-spec forgot([weft_kv_object:object()], writer()) -> writer().
forgot(Objects, #writer{actor = Actor, partition = Partition} = Writer) ->
    case lists:any(fun(Object) -> weft_kv_object:last(Actor, Object) > 0 end, Objects) of
        true -> new(Partition);
        false -> Writer
    end.
