%% SPDX-License-Identifier: Apache-2.0
%% @doc The changes that wait for a neighbour are sent: one message at a time, until that is
%% acknowledged. A part of `weft_crdt_core'.
%%
%% A large state of one key is a large message, which may take minutes on a slow link. So when time
%% is over the message is not repeated: copies would queue before the link, up to what a session
%% holds. A message without content follows it, as a question. What a neighbour is sent arrives in
%% order, so if it acknowledges that one only, the first one was lost, as where its store was busy,
%% and is sent again. Each version answers that.
%%
%% Options are those of the core: `message_bytes', and `resend_ms', which doubles with each
%% question, up to half a minute. What waits is joined by `weft_crdt_buffer'; who gets it is said by
%% `weft_crdt_peers'. When a neighbour is to be compared, because something was dropped for it, is
%% only told to the core here.
-module(weft_crdt_sending).

-export([next/3, acked/3, late/4, offer/4, heard/5, compared/2]).

-define(RESEND_MS_MAX, 30000).

%% @doc The next message for a neighbour, if there is something and nothing is on its way; or that
%% it lacks what has had no room.
-spec next(node(), Options :: map(), weft_crdt_peers:peers()) ->
          {send, weft_core:effects(), weft_crdt_peers:peers()} | behind | nothing.
next(Node, #{message_bytes := Max} = Options, Peers) ->
    {ok, Buffer0} = weft_crdt_peers:find(Node, Peers),
    case weft_crdt_buffer:next(Max, Buffer0) of
        {Seq, Shared, Own, Buffer} ->
            Msg = {deltas, Seq, served(Shared, Node, Peers), Shared, Own},
            {send, [{send, Node, Msg}, timer(Node, Seq, Options, Buffer)],
             weft_crdt_peers:update(Node, fun(_) -> Buffer end, Peers)};
        none ->
            case weft_crdt_buffer:is_behind(Buffer0) of
                true -> behind;
                false -> nothing
            end
    end.

timer(Node, Seq, #{resend_ms := ResendMs}, Buffer) ->
    AfterMs = min(?RESEND_MS_MAX, ResendMs bsl weft_crdt_buffer:tries(Buffer)),
    {after_ms, AfterMs, {resend, Node, Seq}}.

%% Who gets the shared part from this node as well need not get it from the neighbour.
served([], _Node, _Peers) -> <<>>;
served(_Shared, Node, Peers) ->
    weft_crdt_peers:marks(weft_crdt_peers:served(Peers) -- [Node]).

%% @doc A neighbour has got a message. If that was a question, nothing is on its way to it.
-spec acked(node(), Seq :: term(), weft_crdt_peers:peers()) -> weft_crdt_peers:peers().
acked(Node, Seq, Peers) ->
    weft_crdt_peers:update(Node, fun(Buffer) -> weft_crdt_buffer:acked(Seq, Buffer) end, Peers).

%% @doc The time for an acknowledgement is over. If it is still missing, and the neighbour is one,
%% that is asked; or what waits for it is given up, and it has to be compared.
-spec late(node(), Seq :: integer(), Options :: map(), weft_crdt_peers:peers()) ->
          {ask, weft_core:effects(), weft_crdt_peers:peers()} | {given_up, weft_crdt_peers:peers()}
        | nothing.
late(Node, Seq, Options, Peers) ->
    case weft_crdt_peers:find(Node, Peers) of
        {ok, Buffer0} ->
            Updated = fun(Buffer) -> weft_crdt_peers:update(Node, fun(_) -> Buffer end, Peers) end,
            case weft_crdt_buffer:late(Seq, Buffer0) of
                {ask, Question, Buffer} ->
                    {ask, [{send, Node, {deltas, Question, <<>>, [], []}},
                           timer(Node, Seq, Options, Buffer)], Updated(Buffer)};
                {given_up, Buffer} -> {given_up, Updated(Buffer)};
                no -> nothing
            end;
        error -> nothing
    end.

%% @doc What only this neighbour is to get waits for it. Max: how many keys may wait.
-spec offer(node(), {Key :: term(), weft_crdt_type:name(), weft_crdt_type:state()},
            Max :: pos_integer(), weft_crdt_peers:peers()) -> weft_crdt_peers:peers().
offer(Node, {Key, Type, Delta}, Max, Peers) ->
    weft_crdt_peers:update(Node, fun(Buffer) ->
                                     weft_crdt_buffer:offer(Key, Type, Delta, Max, Buffer)
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
