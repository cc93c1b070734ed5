%% SPDX-License-Identifier: Apache-2.0
%% @doc The changes that wait for a neighbour are sent: one message at a time, again until it is
%% acknowledged, and later each time. A part of `weft_crdt_core'.
%%
%% A large state of one key is a large message. It is not repeated while it may still be on its way
%% over a slow link: copies would queue before the link, up to what a session holds.
%%
%% Options are those of the core: `message_bytes', and `resend_ms', which doubles with each
%% repetition, up to half a minute, and comes on top of the time that the message takes. What waits
%% is joined by `weft_crdt_buffer'; who gets it is said by `weft_crdt_peers'. When a neighbour is to
%% be compared, because something was dropped for it, is only told to the core here.
-module(weft_crdt_sending).

-export([next/3, acked/3, is_due/3, offer/4, heard/5, compared/2]).

-define(RESEND_MS_MAX, 30000).
%% A link of 10 Mbit/s has a little more.
-define(BYTES_PER_MS, 1000).

%% @doc The next message for a neighbour, if there is something and nothing is on its way; or that
%% it lacks what has had no room.
-spec next(node(), Options :: map(), weft_crdt_peers:peers()) ->
          {send, weft_core:effects(), weft_crdt_peers:peers()} | behind | nothing.
next(Node, #{message_bytes := Max, resend_ms := ResendMs}, Peers) ->
    {ok, Buffer0} = weft_crdt_peers:find(Node, Peers),
    case weft_crdt_buffer:next(Max, Buffer0) of
        {Seq, Shared, Own, Bytes, Buffer} ->
            Msg = {deltas, Seq, served(Shared, Node, Peers), Shared, Own},
            AfterMs = min(?RESEND_MS_MAX, ResendMs bsl weft_crdt_buffer:tries(Buffer))
                + Bytes div ?BYTES_PER_MS,
            {send, [{send, Node, Msg}, {after_ms, AfterMs, {resend, Node, Seq}}],
             weft_crdt_peers:update(Node, fun(_) -> Buffer end, Peers)};
        none ->
            case weft_crdt_buffer:is_behind(Buffer0) of
                true -> behind;
                false -> nothing
            end
    end.

%% Who gets the shared part from this node as well need not get it from the neighbour.
served([], _Node, _Peers) -> <<>>;
served(_Shared, Node, Peers) ->
    weft_crdt_peers:marks(weft_crdt_peers:served(Peers) -- [Node]).

%% @doc A neighbour has got a message.
-spec acked(node(), Seq :: term(), weft_crdt_peers:peers()) -> weft_crdt_peers:peers().
acked(Node, Seq, Peers) ->
    weft_crdt_peers:update(Node, fun(Buffer) -> weft_crdt_buffer:acked(Seq, Buffer) end, Peers).

%% @doc The time for an acknowledgement is over. If it is still missing, and the neighbour is one:
%% the message is the next one again.
-spec is_due(node(), Seq :: integer(), weft_crdt_peers:peers()) ->
          {true, weft_crdt_peers:peers()} | false.
is_due(Node, Seq, Peers) ->
    case weft_crdt_peers:find(Node, Peers) of
        {ok, Buffer0} ->
            case weft_crdt_buffer:resend(Seq, Buffer0) of
                no -> false;
                Buffer -> {true, weft_crdt_peers:update(Node, fun(_) -> Buffer end, Peers)}
            end;
        error -> false
    end.

%% @doc What only this neighbour is to get waits for it. Max: how many keys may wait.
-spec offer(node(), {Key :: term(), weft_crdt_type:name(), weft_crdt_type:state()},
            Max :: pos_integer(), weft_crdt_peers:peers()) -> weft_crdt_peers:peers().
offer(Node, {Key, Type, Delta}, Max, Peers) ->
    weft_crdt_peers:update(Node, fun(Buffer) ->
                                     weft_crdt_buffer:add(Key, Type, Delta, own, Max, Buffer)
                                 end, Peers).

%% @doc A neighbour has sent this, so it need not get it.
-spec heard(node(), Key :: term(), {weft_crdt_type:name(), weft_crdt_type:packed()},
            weft_crdt_retired:table(), weft_crdt_peers:peers()) -> weft_crdt_peers:peers().
heard(Node, Key, {Type, Packed}, Table, Peers) ->
    weft_crdt_peers:update(Node, fun(Buffer) ->
                                     weft_crdt_buffer:heard(Key, Type, Packed, Table, Buffer)
                                 end, Peers).

%% @doc A neighbour is compared with this node now.
-spec compared(node(), weft_crdt_peers:peers()) -> weft_crdt_peers:peers().
compared(Node, Peers) -> weft_crdt_peers:update(Node, fun weft_crdt_buffer:caught_up/1, Peers).
