%% SPDX-License-Identifier: Apache-2.0
%% @doc Which sessions are remembered when they have ended, and who is told of them; pure.
%%
%% The close of a circuit is written once. A peer that can not be reached at that moment does not
%% hear of it, and if it has not begun the session it asks for no path by which it would find out.
%% So a session is remembered if this node has ended it and the peer may not know:
%% <ul>
%% <li>the kernel's ticks have ended it: the peer was stopped, or cut off;</li>
%% <li>it was disconnected here: the link may have no lane, or lose it;</li>
%% <li>its stream has ended without a word of the peer: because something on this node is gone, by
%% news of an end of the peer's node that may be wrong, or as no path was found in time.</li>
%% </ul>
%% The peer is told of all of these when a link to it comes up, and when it asks for one of them.
%% Only the last ones are remembered. A stream of a channel is not: its sender asks for a path.
%%
%% Sessions that end for other reasons are not remembered: the peer, or its node, has ended.
-module(weft_ended_sessions).

-export([new/1, how/1, ended/3, told/2]).
-export_type([ended/0, row/0, how/0]).

%% So many are remembered.
-define(REMEMBERED_MAX, 1000).

%% closed: as the peer, or its host, has said. lost: the peer may not know of it.
-type how() :: net_tick_timeout | closed | lost.
%% What is remembered of a session with the node of that name. disconnected: by this node, in
%% whatever way.
-type row() :: {weft_sessions:id(), timed_out | disconnected, Peer :: binary()}.
%% Of those that are remembered, oldest first, but for those of before a restart.
-opaque ended() :: queue:queue(weft_sessions:id()).

%% @doc These are remembered so far, of which it is not known in which order they have ended.
-spec new([row()]) -> ended().
new(Rows) -> queue:from_list([Id || {Id, _How, _Peer} <- Rows]).

%% @doc How a session ends whose stream has ended, given why.
-spec how(Why :: term()) -> how().
how(timed_out) -> net_tick_timeout;
how(Why) when Why =:= ended; Why =:= gone -> closed;
how(_Why) -> lost.

%% @doc That session with the node of that name has ended like that, or has exited with that
%% reason: what is to be remembered now, and what is not any more.
-spec ended(how() | ExitReason :: term(),
            {weft_sessions:id(), weft_wire:stream_kind(), Peer :: binary()}, ended()) ->
          {[row()], [weft_sessions:id()], ended()}.
ended(net_tick_timeout, {Id, distribution, Peer}, Ended) ->
    remembered({Id, timed_out, Peer}, Ended);
ended(How, {Id, distribution, Peer}, Ended) when How =:= disconnect; How =:= lost ->
    remembered({Id, disconnected, Peer}, Ended);
ended(_How, _Session, Ended) ->
    {[], [], Ended}.

remembered({Id, _How, _Peer} = Row, Ended0) ->
    Ended = queue:in(Id, Ended0),
    case queue:len(Ended) > ?REMEMBERED_MAX of
        true -> {[Row], [queue:get(Ended)], queue:drop(Ended)};
        false -> {[Row], [], Ended}
    end.

%% @doc Of which of these the node of that name is told when a link to it comes up.
-spec told(Peer :: binary(), [row()]) -> [weft_sessions:id()].
told(Peer, Rows) -> [Id || {Id, _How, Of} <- Rows, Of =:= Peer].
