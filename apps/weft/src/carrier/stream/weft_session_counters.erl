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
-compile({inline, [total_in/2, total_out/2, count_own/2]}).

%% A number for each of these slots. Those of the process that sends are far from those of the one
%% that receives: each has cache lines of its own.
-define(PACKETS_IN, 1).
-define(BYTES_IN, 3).
-define(RECEIVED, 5).
-define(KEPT_ALIVE, 6).
%% A hash of the neighbour; 0 before there was a path.
-define(NEIGHBOUR, 7).
-define(REROUTES, 8).
-define(PACKETS_OUT, 25).
-define(BYTES_OUT, 26).
-define(SLOTS, 26).

%% What is read and written is added to the totals of the node, too, in these slots of theirs.
-record(counters, {own :: atomics:atomics_ref(),
                   totals :: weft_counters:totals() | none,
                   packets_in :: weft_counters:slot(), bytes_in :: weft_counters:slot(),
                   packets_out :: weft_counters:slot(), bytes_out :: weft_counters:slot()}).
%% A session that the version before began has those of the module `counters'.
-opaque counters() :: #counters{} | term().

-spec new() -> counters().
new() ->
    #counters{own = atomics:new(?SLOTS, []), totals = weft_counters:totals(),
              packets_in = weft_counters:slot(packets_in),
              bytes_in = weft_counters:slot(bytes_in),
              packets_out = weft_counters:slot(packets_out),
              bytes_out = weft_counters:slot(bytes_out)}.

-spec payload_in(counters(), Bytes :: non_neg_integer()) -> ok.
payload_in(#counters{own = Own} = Counters, Bytes) ->
    total_in(Bytes, Counters),
    count_own(payload_in, Own),
    atomics:add(Own, ?BYTES_IN, Bytes);
payload_in(Before, Bytes) ->
    packet_in(payload_in, Bytes, Before).

%% @doc First sent, or repeated.
-spec payload_out(counters(), Bytes :: non_neg_integer()) -> ok.
payload_out(#counters{own = Own} = Counters, Bytes) ->
    total_out(Bytes, Counters),
    count_own(payload_out, Own),
    atomics:add(Own, ?BYTES_OUT, Bytes);
payload_out(Before, Bytes) ->
    packet_out(payload_out, Bytes, Before).

-spec tick_in(counters(), Bytes :: non_neg_integer()) -> ok.
tick_in(Counters, Bytes) -> packet_in(tick_in, Bytes, Counters).

%% @doc A tick of the ticker.
-spec tick_out(counters(), Bytes :: non_neg_integer()) -> ok.
tick_out(Counters, Bytes) -> packet_out(tick_out, Bytes, Counters).

%% @doc The peer has opened or accepted a path: it is alive.
-spec path_in(counters()) -> ok.
path_in(Counters) -> count(path_in, Counters).

packet_in(Event, Bytes, Counters) ->
    weft_counters:add(packets_in, 1, bytes_in, Bytes),
    count(Event, Counters),
    add(?BYTES_IN, Bytes, Counters).

packet_out(Event, Bytes, Counters) ->
    weft_counters:add(packets_out, 1, bytes_out, Bytes),
    count(Event, Counters),
    add(?BYTES_OUT, Bytes, Counters).

total_in(_Bytes, #counters{totals = none}) ->
    ok;
total_in(Bytes, #counters{totals = Totals, packets_in = OfPackets, bytes_in = OfBytes}) ->
    counters:add(Totals, OfPackets, 1),
    counters:add(Totals, OfBytes, Bytes).

total_out(_Bytes, #counters{totals = none}) ->
    ok;
total_out(Bytes, #counters{totals = Totals, packets_out = OfPackets, bytes_out = OfBytes}) ->
    counters:add(Totals, OfPackets, 1),
    counters:add(Totals, OfBytes, Bytes).

count(Event, Counters) ->
    case weft_session_counts:as(Event) of
        read -> add(?PACKETS_IN, 1, Counters);
        written -> add(?PACKETS_OUT, 1, Counters);
        nothing -> ok
    end.

count_own(Event, Own) ->
    case weft_session_counts:as(Event) of
        read -> atomics:add(Own, ?PACKETS_IN, 1);
        written -> atomics:add(Own, ?PACKETS_OUT, 1);
        nothing -> ok
    end.

%% @doc How many packets were written.
-spec written(counters()) -> non_neg_integer().
written(Counters) -> get(?PACKETS_OUT, Counters).

%% @doc The number of the last payload given to the VM. A reader may see an older one; that only
%% makes the peer repeat more than needed.
-spec set_received(counters(), weft_wire:sequence()) -> ok.
set_received(#counters{own = Own}, Sequence) -> atomics:put(Own, ?RECEIVED, Sequence);
set_received(Before, Sequence) -> counters:put(Before, ?RECEIVED, Sequence).

-spec received(counters()) -> weft_wire:sequence().
received(Counters) -> get(?RECEIVED, Counters).

%% @doc While this is on, the kernel's ticker sees the peer as alive: `getstat/1' counts one more
%% packet each time it is asked. A timer of the session decides then when it has waited long enough,
%% not net_ticktime.
-spec keep_alive(counters(), boolean()) -> ok.
keep_alive(Counters, true) -> put(?KEPT_ALIVE, 1, Counters);
keep_alive(Counters, false) -> put(?KEPT_ALIVE, 0, Counters).

%% @doc The stream has a path by way of that neighbour. If it had one by way of another neighbour
%% before, this is counted.
-spec by_way_of(counters(), term()) -> ok.
by_way_of(Counters, Neighbour) ->
    Hash = 1 + erlang:phash2(Neighbour),
    case has_all(Counters) andalso get(?NEIGHBOUR, Counters) of
        false -> ok;
        Hash -> ok;
        0 -> put(?NEIGHBOUR, Hash, Counters);
        _Another ->
            weft_counters:add(reroutes),
            put(?NEIGHBOUR, Hash, Counters),
            add(?REROUTES, 1, Counters)
    end.

%% @doc What the ticker asks: {ok, Read, Written, Pending}.
-spec getstat(counters()) -> {ok, non_neg_integer(), non_neg_integer(), 0}.
getstat(Counters) ->
    count(case get(?KEPT_ALIVE, Counters) of
              0 -> asked;
              _ -> asked_while_kept_alive
          end, Counters),
    {ok, get(?PACKETS_IN, Counters), get(?PACKETS_OUT, Counters), 0}.

-spec read(counters()) -> #{atom() => non_neg_integer()}.
read(Counters) ->
    #{packets_in => get(?PACKETS_IN, Counters), packets_out => get(?PACKETS_OUT, Counters),
      bytes_in => get(?BYTES_IN, Counters), bytes_out => get(?BYTES_OUT, Counters),
      reroutes => case has_all(Counters) of
                      true -> get(?REROUTES, Counters);
                      false -> 0
                  end}.

%% --- where they are -----------------------------------------------------------------------------

add(Slot, Count, #counters{own = Own}) -> atomics:add(Own, Slot, Count);
add(Slot, Count, Before) -> counters:add(Before, before(Slot), Count).

put(Slot, Value, #counters{own = Own}) -> atomics:put(Own, Slot, Value);
put(Slot, Value, Before) -> counters:put(Before, before(Slot), Value).

get(Slot, #counters{own = Own}) -> atomics:get(Own, Slot);
get(Slot, Before) -> counters:get(Before, before(Slot)).

has_all(#counters{}) -> true;
has_all(Before) -> map_get(size, counters:info(Before)) >= ?REROUTES.

before(?PACKETS_OUT) -> 2;
before(?BYTES_OUT) -> 4;
before(Slot) -> Slot.
