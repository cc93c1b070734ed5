%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: what a session holds is bounded, whatever the paths do. It queues at most
%% `queue_bytes' and what was fetched before one payload was sent; it keeps at most `window_bytes',
%% what may go beyond, and a payload; and what arrives early never is over its bound, so
%% that no path is broken for that. In the end nothing waits or is kept but what nobody has asked to
%% acknowledge: less than a quarter of the window.
%%
%% Options: `nodes', the ends; `queue_bytes', `window_bytes'.
-module(weft_sim_session_memory_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

-define(FETCH_BYTES, 2097152).
-define(BEYOND_BYTES, 2097152).
%% Two fragments of 64 KiB less a byte, and one more; a small payload before it.
-define(PAYLOAD_BYTES, 262144).

%% @doc Compares the maxima of the whole run, and what is left.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, #{nodes := Nodes, queue_bytes := QueueBytes, window_bytes := WindowBytes}) ->
    Bounds = [{queued_max, QueueBytes + ?FETCH_BYTES + ?PAYLOAD_BYTES},
              {kept_max, WindowBytes + ?BEYOND_BYTES + ?PAYLOAD_BYTES},
              {overflows, 0}, {queued_bytes, 0}, {suspended, 0},
              {unacked_bytes, WindowBytes div 4}],
    Over = [{Node, Key, Value, Bound}
            || Node <- Nodes, Info <- [weft_sim_session_core:info_of(Node, World)],
               {Key, Bound} <- Bounds, #{Key := Value} <- [Info], Value > Bound],
    case Over of
        [] -> ok;
        _ -> {violation, io_lib:format("beyond its bound (node, what, value, bound): ~0p", [Over])}
    end.
