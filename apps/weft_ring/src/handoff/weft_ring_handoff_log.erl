%% SPDX-License-Identifier: Apache-2.0
%% @doc The updates of a handoff that the next owner has not acknowledged, in their order. Pure. It
%% knows how many there are and how large they are, as both are limited by who keeps it: updates of
%% small counters are many, and some hundred values of a megabyte are much.
-module(weft_ring_handoff_log).

-export([new/1, add/2, acknowledged/2, entries/1, count/1, bytes/1]).
-export_type([log/0, entry/0]).

-type entry() :: {Number :: pos_integer(), Key :: term(), Op :: term()}.
-record(log, {entries = queue:new() :: queue:queue({Bytes :: pos_integer(), entry()}),
              count = 0 :: non_neg_integer(),
              bytes = 0 :: non_neg_integer()}).
%% Earlier code kept the entries only.
-type log() :: #log{} | [entry()].

%% @doc With these, the first one first.
-spec new([entry()]) -> log().
new(Entries) -> lists:foldl(fun add/2, #log{}, Entries).

%% @doc With one more at the end.
-spec add(entry(), log()) -> log().
add({_, _, _} = Entry, #log{entries = Entries, count = Count, bytes = Sum}) ->
    Bytes = erlang:external_size(Entry),
    #log{entries = queue:in({Bytes, Entry}, Entries), count = Count + 1, bytes = Sum + Bytes};
add(Entry, Entries) ->
    add(Entry, new(Entries)).

%% @doc Without those up to this number.
-spec acknowledged(Number :: non_neg_integer(), log()) -> log().
acknowledged(Number, #log{entries = Entries, count = Count, bytes = Sum} = Log) ->
    case queue:peek(Entries) of
        {value, {Bytes, {First, _, _}}} when First =< Number ->
            acknowledged(Number, #log{entries = queue:drop(Entries), count = Count - 1,
                                      bytes = Sum - Bytes});
        _ -> Log
    end;
acknowledged(Number, Entries) ->
    acknowledged(Number, new(Entries)).

%% @doc All of them.
-spec entries(log()) -> [entry()].
entries(#log{entries = Entries}) -> [Entry || {_, Entry} <- queue:to_list(Entries)];
entries(Entries) -> Entries.

-spec count(log()) -> non_neg_integer().
count(#log{count = Count}) -> Count;
count(Entries) -> length(Entries).

%% @doc About how much they take.
-spec bytes(log()) -> non_neg_integer().
bytes(#log{bytes = Bytes}) -> Bytes;
bytes(Entries) -> bytes(new(Entries)).
