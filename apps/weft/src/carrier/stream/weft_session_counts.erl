%% SPDX-License-Identifier: Apache-2.0
%% @doc What of a session counts as read and as written for the ticker of the kernel; pure.
%%
%% The ticker (`dist_util') is a peer of the session. Four times in net_ticktime it asks what was
%% read and written. It sends a tick when nothing was written since it last asked, and ends the
%% connection when nothing was read for a whole net_ticktime. So whatever one end counts as written,
%% the other end must count as read when it comes, or silence would look like death:
%%
%%   written   payloads, first sent and repeated; and every tick of the ticker, also one that finds
%%             no path (the ticker takes it for sent, and would let the next one out otherwise)
%%   read      payloads and ticks; and that the peer has opened or accepted a path
%%
%% An accept is read but not written: it makes no tick superfluous. An acknowledgement is neither:
%% the link of a node whose ticker has stopped still acknowledges (docs/decisions/0020).
%%
%% Each payload that is written and each packet that comes for the session is an event of its own
%% name. What else counts is said by `weft_stream_core', among what is to be done.
%% `weft_session_counters' counts for real sessions, the simulator for simulated ones.
-module(weft_session_counts).

-export([as/1]).
-export_type([event/0]).

%% path: the peer has opened or accepted one. tick_out: one of the ticker, with or without a path.
%% asked: by the ticker; kept alive while a timer of the session decides how long to wait, not
%% net_ticktime.
-type event() :: payload_in | tick_in | path_in | payload_out | tick_out
               | asked | asked_while_kept_alive.

-spec as(event()) -> read | written | nothing.
as(payload_in) -> read;
as(tick_in) -> read;
as(path_in) -> read;
as(payload_out) -> written;
as(tick_out) -> written;
as(asked) -> nothing;
as(asked_while_kept_alive) -> read.
