%% SPDX-License-Identifier: Apache-2.0
%% @doc Counters of one session, shared by the process that sends, the one that receives and the
%% ticker of the kernel. Any process may read them.
%%
%% The ticker (`dist_util') asks what was read and written (`getstat/1'). `weft_session_counts' says
%% what counts as one or the other.
%%
%% They also know by way of which neighbour the stream goes, to count how often that changes.
-module(weft_session_counters).

-export([new/0, payload_in/2, tick_in/2, path_in/1, payload_out/2, tick_out/2, written/1,
         set_received/2, received/1, keep_alive/2, by_way_of/2, getstat/1, read/1]).
-export_type([counters/0]).

%% On the way of each message: not calls.
-compile({inline, [packet_in/3, packet_out/3, count/2]}).

-opaque counters() :: counters:counters_ref().

-define(PACKETS_IN, 1).
-define(PACKETS_OUT, 2).
-define(BYTES_IN, 3).
-define(BYTES_OUT, 4).
-define(RECEIVED, 5).
-define(KEPT_ALIVE, 6).
%% A hash of the neighbour; 0 before there was a path.
-define(NEIGHBOUR, 7).
-define(REROUTES, 8).
-define(SLOTS, 8).

-spec new() -> counters().
new() -> counters:new(?SLOTS, [write_concurrency]).

-spec payload_in(counters(), Bytes :: non_neg_integer()) -> ok.
payload_in(Counters, Bytes) -> packet_in(payload_in, Bytes, Counters).

-spec tick_in(counters(), Bytes :: non_neg_integer()) -> ok.
tick_in(Counters, Bytes) -> packet_in(tick_in, Bytes, Counters).

%% @doc The peer has opened or accepted a path: it is alive.
-spec path_in(counters()) -> ok.
path_in(Counters) -> count(path_in, Counters).

%% @doc First sent, or repeated.
-spec payload_out(counters(), Bytes :: non_neg_integer()) -> ok.
payload_out(Counters, Bytes) -> packet_out(payload_out, Bytes, Counters).

%% @doc A tick of the ticker.
-spec tick_out(counters(), Bytes :: non_neg_integer()) -> ok.
tick_out(Counters, Bytes) -> packet_out(tick_out, Bytes, Counters).

packet_in(Event, Bytes, Counters) ->
    weft_counters:add(packets_in, 1, bytes_in, Bytes),
    count(Event, Counters),
    counters:add(Counters, ?BYTES_IN, Bytes).

packet_out(Event, Bytes, Counters) ->
    weft_counters:add(packets_out, 1, bytes_out, Bytes),
    count(Event, Counters),
    counters:add(Counters, ?BYTES_OUT, Bytes).

count(Event, Counters) ->
    case weft_session_counts:as(Event) of
        read -> counters:add(Counters, ?PACKETS_IN, 1);
        written -> counters:add(Counters, ?PACKETS_OUT, 1);
        nothing -> ok
    end.

%% @doc How many packets were written.
-spec written(counters()) -> non_neg_integer().
written(Counters) -> counters:get(Counters, ?PACKETS_OUT).

%% @doc The number of the last payload given to the VM. A reader may see an older one; that only
%% makes the peer repeat more than needed.
-spec set_received(counters(), weft_wire:sequence()) -> ok.
set_received(Counters, Sequence) -> counters:put(Counters, ?RECEIVED, Sequence).

-spec received(counters()) -> weft_wire:sequence().
received(Counters) -> counters:get(Counters, ?RECEIVED).

%% @doc While this is on, the kernel's ticker sees the peer as alive: `getstat/1' counts one more
%% packet each time it is asked. A timer of the session decides then when it has waited long enough,
%% not net_ticktime.
-spec keep_alive(counters(), boolean()) -> ok.
keep_alive(Counters, true) -> counters:put(Counters, ?KEPT_ALIVE, 1);
keep_alive(Counters, false) -> counters:put(Counters, ?KEPT_ALIVE, 0).

%% @doc The stream has a path by way of that neighbour. If it had one by way of another neighbour
%% before, this is counted.
-spec by_way_of(counters(), term()) -> ok.
by_way_of(Counters, Neighbour) ->
    Hash = 1 + erlang:phash2(Neighbour),
    case has_all(Counters) andalso counters:get(Counters, ?NEIGHBOUR) of
        false -> ok;
        Hash -> ok;
        0 -> counters:put(Counters, ?NEIGHBOUR, Hash);
        _Another ->
            weft_counters:add(reroutes),
            counters:put(Counters, ?NEIGHBOUR, Hash),
            counters:add(Counters, ?REROUTES, 1)
    end.

%% A session that an earlier version began has fewer.
has_all(Counters) -> map_get(size, counters:info(Counters)) >= ?SLOTS.

%% @doc What the ticker asks: {ok, Read, Written, Pending}.
-spec getstat(counters()) -> {ok, non_neg_integer(), non_neg_integer(), 0}.
getstat(Counters) ->
    count(case counters:get(Counters, ?KEPT_ALIVE) of
              0 -> asked;
              _ -> asked_while_kept_alive
          end, Counters),
    {ok, counters:get(Counters, ?PACKETS_IN), counters:get(Counters, ?PACKETS_OUT), 0}.

-spec read(counters()) -> #{atom() => non_neg_integer()}.
read(Counters) ->
    #{packets_in => counters:get(Counters, ?PACKETS_IN),
      packets_out => counters:get(Counters, ?PACKETS_OUT),
      bytes_in => counters:get(Counters, ?BYTES_IN),
      bytes_out => counters:get(Counters, ?BYTES_OUT),
      reroutes => case has_all(Counters) of
                      true -> counters:get(Counters, ?REROUTES);
                      false -> 0
                  end}.
