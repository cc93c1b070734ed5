%% SPDX-License-Identifier: Apache-2.0
%% @doc Counters of one session, shared by the process that sends, the one that receives and the
%% ticker of the kernel. One writer each, any reader.
-module(weft_session_counters).

-export([new/0, packet_in/2, packet_out/2, set_received/2, received/1, set_path/2, getstat/1,
         read/1]).
-export_type([counters/0]).

-opaque counters() :: counters:counters_ref().

-define(PACKETS_IN, 1).
-define(PACKETS_OUT, 2).
-define(BYTES_IN, 3).
-define(BYTES_OUT, 4).
-define(RECEIVED, 5).
-define(PATH_DOWN, 6).

-spec new() -> counters().
new() -> counters:new(6, [write_concurrency]).

-spec packet_in(counters(), non_neg_integer()) -> ok.
packet_in(Counters, Bytes) ->
    counters:add(Counters, ?PACKETS_IN, 1),
    counters:add(Counters, ?BYTES_IN, Bytes).

-spec packet_out(counters(), non_neg_integer()) -> ok.
packet_out(Counters, Bytes) ->
    counters:add(Counters, ?PACKETS_OUT, 1),
    counters:add(Counters, ?BYTES_OUT, Bytes).

%% @doc The number of the last payload given to the VM. A reader may see an older one; that only
%% makes the peer repeat more than needed.
-spec set_received(counters(), weft_wire:sequence()) -> ok.
set_received(Counters, Sequence) -> counters:put(Counters, ?RECEIVED, Sequence).

-spec received(counters()) -> weft_wire:sequence().
received(Counters) -> counters:get(Counters, ?RECEIVED).

-spec set_path(counters(), up | down) -> ok.
set_path(Counters, up) -> counters:put(Counters, ?PATH_DOWN, 0);
set_path(Counters, down) -> counters:put(Counters, ?PATH_DOWN, 1).

%% @doc What the ticker of `dist_util' asks: {ok, Received, Sent, Pending}. While a session looks
%% for a new path its life is `resume_timeout_ms', not net_ticktime, so it counts as heard.
-spec getstat(counters()) -> {ok, non_neg_integer(), non_neg_integer(), 0}.
getstat(Counters) ->
    case counters:get(Counters, ?PATH_DOWN) of
        0 -> ok;
        _ -> counters:add(Counters, ?PACKETS_IN, 1)
    end,
    {ok, counters:get(Counters, ?PACKETS_IN), counters:get(Counters, ?PACKETS_OUT), 0}.

-spec read(counters()) -> #{atom() => non_neg_integer()}.
read(Counters) ->
    #{packets_in => counters:get(Counters, ?PACKETS_IN),
      packets_out => counters:get(Counters, ?PACKETS_OUT),
      bytes_in => counters:get(Counters, ?BYTES_IN),
      bytes_out => counters:get(Counters, ?BYTES_OUT)}.
