%% SPDX-License-Identifier: Apache-2.0
%% @doc What a link does with packets that are not its own: a value kept by the link process.
%%
%% The link handles lanes, authentication and keepalive. Circuits and sessions are above it and use
%% this behaviour (`weft_switch'). Callbacks run in the link process and must not wait.
-module(weft_link_handler).

-export([tell/2]).
-export_type([state/0, down_reason/0]).

-type state() :: term().
%% broken: may come back. gone: the peer's node is known to be stopped. restarted: that
%% incarnation of the node answers now, which is another one. departed: the peer's host has closed
%% the link, and the peer, which can not be dialled, did not come back.
-type down_reason() :: broken | gone | {restarted, Now :: non_neg_integer()} | departed.

-callback init(Peer :: node(), Name :: binary()) -> state().
-callback lane_up(weft_lane:lane(), state()) -> state().
%% A lane is lost while others are up.
-callback lane_down(weft_lane:lane(), state()) -> state().
%% All lanes are lost.
-callback link_down(down_reason(), state()) -> state().
%% What the link knows of the end of the peer's node in this incarnation, to be told to other
%% nodes.
-callback peer_ended(died | departed, weft_links:key(), Incarnation :: non_neg_integer()) -> ok.
%% An attempt to bring the link up failed.
-callback dial_failed(Reason :: term(), state()) -> state().
-callback packet(weft_wire:packet(), Raw :: binary(), weft_lane:lane(), state()) -> state().
-callback message(term(), state()) -> state().
%% Does anything above the link need it to be up?
-callback wants_link(state()) -> boolean().
%% Does anything above the link depend on the link process?
-callback is_in_use(state()) -> boolean().
%% Can all that uses the link go another way, if the overlay does not want the link?
-callback can_spare_link(state()) -> boolean().
%% Lanes beyond those of the link itself that something above it would use.
-callback wants_lanes(state()) -> [weft_lane:key()].
-callback info(state()) -> #{atom() => term()}.

%% @doc A message for the handler of that link: its callback `message' gets it.
-spec tell(Link :: pid(), term()) -> ok.
tell(Link, Message) ->
    Link ! {weft_handler, Message},
    ok.
