%% SPDX-License-Identifier: Apache-2.0
%% @doc Counters of one channel on this node, for all its peers; and events for those that show a
%% problem.
%%
%% Events go to `telemetry' if the node has it: once a second, for what has been counted since,
%% `[weft, channel, Name]' with `#{count => N}' and `#{channel => Channel}'. So a flood of drops is
%% one event, and no sender pays for it.
-module(weft_channel_counters).

-export([new/0, add/3, add/2, read/1, tell/3, is_heard/0, names/0]).
-export_type([counters/0, name/0]).

-opaque counters() :: counters:counters_ref().
%% messages_out, bytes_out, batches_out: given to streams. messages_in, batches_in: taken from them.
%% dropped_newest, dropped_oldest, superseded (by a newer one), refused (policy error), blocked
%% (senders that waited), block_timeouts: what the policy did. lost: when a peer or a channel ended.
%% undeliverable: no such receiver. repeated: acknowledged before. causal_forced: out of order.
%% plain: sent by the distribution to a node without channels. paused: times a receiver was full.
-type name() :: messages_out | bytes_out | batches_out | messages_in | batches_in | dropped_newest
              | dropped_oldest | superseded | refused | blocked | block_timeouts | lost
              | undeliverable | repeated | causal_forced | plain | paused.

-spec names() -> [name()].
names() ->
    [messages_out, bytes_out, batches_out, messages_in, batches_in, dropped_newest, dropped_oldest,
     superseded, refused, blocked, block_timeouts, lost, undeliverable, repeated, causal_forced,
     plain, paused].

-spec new() -> counters().
new() -> counters:new(length(names()), [write_concurrency]).

-spec add(name(), counters()) -> ok.
add(Name, Counters) -> add(Name, 1, Counters).

-spec add(name(), non_neg_integer(), counters()) -> ok.
add(Name, Count, Counters) -> counters:add(Counters, index(Name), Count).

index(messages_out) -> 1;
index(bytes_out) -> 2;
index(batches_out) -> 3;
index(messages_in) -> 4;
index(batches_in) -> 5;
index(dropped_newest) -> 6;
index(dropped_oldest) -> 7;
index(superseded) -> 8;
index(refused) -> 9;
index(blocked) -> 10;
index(block_timeouts) -> 11;
index(lost) -> 12;
index(undeliverable) -> 13;
index(repeated) -> 14;
index(causal_forced) -> 15;
index(plain) -> 16;
index(paused) -> 17.

-spec read(counters()) -> #{name() => non_neg_integer()}.
read(Counters) ->
    maps:from_list([{Name, counters:get(Counters, index(Name))} || Name <- names()]).

%% @doc Sends events for what has been counted since Before was read. Returns what to pass the next
%% time.
-spec tell(atom(), counters(), Before :: #{name() => non_neg_integer()}) ->
          #{name() => non_neg_integer()}.
tell(Channel, Counters, Before) ->
    Now = read(Counters),
    _ = [tell(telemetry, [[weft, channel, Name], #{count => Count}, #{channel => Channel}])
         || Name <- pressure(),
            Count <- [maps:get(Name, Now) - maps:get(Name, Before, 0)], Count > 0],
    Now.

%% @doc Is there anybody who would get these events?
-spec is_heard() -> boolean().
is_heard() -> is_loaded(telemetry).

is_loaded(Telemetry) -> erlang:function_exported(Telemetry, execute, 3).

%% Called only if the library is loaded.
tell(Telemetry, Event) ->
    is_loaded(Telemetry) andalso apply(Telemetry, execute, Event).

pressure() ->
    names() -- [messages_out, bytes_out, batches_out, messages_in, batches_in].
