%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: beside senders without end, a small message of another sender takes no longer
%% than what may be under way before it takes on the slowest lane: the window, what others may go
%% beyond it, and a buffer; and the session goes on after faults, or it would take longer. While the
%% window is small for a probe of the round trip, little leaves before an acknowledgement is back,
%% and that waits behind the window of the other direction.
%%
%% Options: `nodes', the ends; `bytes_per_ms' of the slowest lane; `beyond', what may go beyond the
%% window: `express' payloads, or `bypass' payloads of pinned senders, too.
-module(weft_sim_starvation_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% Where a window that adapts begins.
-define(WINDOW_BYTES, 1048576).
-define(BEYOND_BYTES, 1048576).
-define(BYPASS_BEYOND_BYTES, 2097152).
%% Round trips; and the window is larger than that where these, or pauses of a lane, are long.
-define(ROUND_TRIPS_MS, 2000).

%% @doc Compares the slowest timed message with the limit.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, #{nodes := Nodes, bytes_per_ms := BytesPerMs, beyond := Beyond}) ->
    LimitMs = (2 * ?WINDOW_BYTES + bytes(Beyond)) div BytesPerMs + ?ROUND_TRIPS_MS,
    case [{Node, Ms} || Node <- Nodes,
                        #{slowest_ms := Ms} <- [weft_sim_session_core:info_of(Node, World)],
                        Ms > LimitMs] of
        [] -> ok;
        Slow -> {violation, io_lib:format("small messages to these took longer than ~b ms: ~0p",
                                          [LimitMs, Slow])}
    end.

bytes(express) -> ?BEYOND_BYTES;
bytes(bypass) -> ?BYPASS_BEYOND_BYTES.
