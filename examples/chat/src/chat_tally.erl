%% SPDX-License-Identifier: Apache-2.0
%% @doc What happened on this node so far, as plain counters that survive the crash of a user.
%%
%% sent: messages spoken by users here (to a room or to a person)
%% expected: copies those messages are due to cause anywhere (a room owes one to each member);
%%   counted for replayed conversations only, where the members are known beforehand
%% relayed: copies passed on by rooms here
%% delivered: copies received by users here, each counted once
%% duplicates, gaps, out_of_order: see chat_ledger; gaps falls when a late copy arrives
%% failed: direct messages that were not acknowledged
%% refused: messages to rooms here from processes which were not members (any more)
%% nodedowns: signals with the reason that a node was lost, seen by users, couriers and rooms here
%% rooms_lost, rejoins: rooms that users here lost for any reason, and joined again
%% departures: members lost by rooms here
-module(chat_tally).

-export([reset/0, add/1, add/2, read/0, keys/0]).

-type key() :: sent | expected | relayed | delivered | duplicates | gaps | out_of_order | failed
             | refused | nodedowns | rooms_lost | rejoins | departures.
-type tally() :: #{key() => integer()}.
-export_type([key/0, tally/0]).

-define(KEYS, #{sent => 1, expected => 2, relayed => 3, delivered => 4, duplicates => 5,
                gaps => 6, out_of_order => 7, failed => 8, refused => 9, nodedowns => 10,
                rooms_lost => 11, rejoins => 12, departures => 13}).

%% @doc All counters to zero. Called once, before any user or room runs.
-spec reset() -> ok.
reset() ->
    persistent_term:put(?MODULE, counters:new(maps:size(?KEYS), [write_concurrency])).

-spec add(key()) -> ok.
add(Key) ->
    add(Key, 1).

-spec add(key(), integer()) -> ok.
add(Key, Increment) ->
    counters:add(persistent_term:get(?MODULE), maps:get(Key, ?KEYS), Increment).

-spec read() -> tally().
read() ->
    Counters = persistent_term:get(?MODULE),
    maps:map(fun(_Key, Index) -> counters:get(Counters, Index) end, ?KEYS).

-spec keys() -> [key()].
keys() ->
    maps:keys(?KEYS).
