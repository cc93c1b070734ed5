%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether more broadcasts wait for the inbox of this node than it should keep.
%%
%% Pure part of `weft_broadcast_inbox', which delivers more slowly than messages come in if it has
%% thousands of subscribers. The VM tells how many messages wait in a mailbox, and not how large
%% they are; so they are taken to be as large as the last ones were on average. Once it is too much,
%% it is until no more than half of it is left.
-module(weft_broadcast_load).

-export([new/0, came/3, looked/2]).
-export_type([load/0]).

-define(MESSAGES_MAX, 20000).
-define(BYTES_MAX, 67108864).
%% How many of the last messages make the average, about.
-define(LAST, 16).

-record(load, {average_bytes = 0 :: non_neg_integer(), is_over = false :: boolean()}).
-opaque load() :: #load{}.

-spec new() -> load().
new() -> #load{}.

%% @doc A message of that size has come, and so many wait after it. Is that too much?
-spec came(Bytes :: non_neg_integer(), Waiting :: non_neg_integer(), load()) -> {boolean(), load()}.
came(Bytes, Waiting, #load{average_bytes = Average} = Load) ->
    looked(Waiting, Load#load{average_bytes = ((?LAST - 1) * Average + Bytes) div ?LAST}).

%% @doc So many messages wait. Is that too much?
-spec looked(Waiting :: non_neg_integer(), load()) -> {boolean(), load()}.
looked(Waiting, #load{average_bytes = Average, is_over = WasOver} = Load) ->
    Times = case WasOver of true -> 2; false -> 1 end,
    IsOver = Times * Waiting > ?MESSAGES_MAX orelse Times * Waiting * Average > ?BYTES_MAX,
    {IsOver, Load#load{is_over = IsOver}}.
