%% SPDX-License-Identifier: Apache-2.0
%% @doc The pings of a lane, their answers, and the round trip that they measure. `weft_lane_watch'
%% says when to ping.
-module(weft_lane_ping).

-export([send/1, send_unless_busy/1, is_busy/1, answer/2, round_trip_us/2]).

%% Of a ping and of its answer, which has the time of the ping.
-define(BYTES, 9).
%% A lane on which more than that waits is not silent; a ping would wait, too.
-define(BUSY_BYTES, 65536).

-spec send(weft_lane:lane()) -> ok.
send(Lane) ->
    _ = weft_lane:send(Lane, weft_wire:ping(now_us()), ?BYTES),
    ok.

%% @doc The same, but not where much waits already.
-spec send_unless_busy(weft_lane:lane()) -> ok.
send_unless_busy(Lane) ->
    case is_busy(Lane) of
        true -> ok;
        false -> send(Lane)
    end.

%% @doc Does so much wait that a ping would, too?
-spec is_busy(weft_lane:lane()) -> boolean().
is_busy(Lane) -> weft_lane:queued_bytes(Lane) >= ?BUSY_BYTES.

%% @doc A ping with that time came.
-spec answer(TimeUs :: integer(), weft_lane:lane()) -> ok.
answer(TimeUs, Lane) ->
    _ = weft_lane:send(Lane, weft_wire:pong(TimeUs), ?BYTES),
    ok.

%% @doc The answer to the ping with that time came: the round trip, which was taken to be Before.
%% It follows a shorter time at once and a longer one slowly, because a pong is mostly not delayed
%% by the network.
-spec round_trip_us(TimeUs :: integer(), Before :: pos_integer() | undefined) -> pos_integer().
round_trip_us(TimeUs, Before) -> smoothed(Before, max(1, now_us() - TimeUs)).

smoothed(undefined, SampleUs) -> SampleUs;
smoothed(RttUs, SampleUs) -> min(SampleUs, (7 * RttUs + SampleUs) div 8).

now_us() -> erlang:monotonic_time(microsecond).
