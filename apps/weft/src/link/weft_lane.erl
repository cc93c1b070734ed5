%% SPDX-License-Identifier: Apache-2.0
%% @doc Sending on one connection of a link, from any process.
%%
%% The common case is one system call in the sender's own process. When the socket is busy the
%% packet goes to the writer of the lane, a process whose only work is the waiting send
%% (`weft_lane_writer'). A sender that uses `send/4' with `notify' is told
%% {weft_lane, ready, Socket} when its packet is out and should not send before that; so each such
%% sender holds at most one packet here, and senders take turns. All else (relayed circuits, acks)
%% is bounded by credit and by `queued_bytes/1'. No sender ever waits.
%%
%% Packets of one process keep their order: once one waits in the writer, later ones queue behind.
-module(weft_lane).

-export([new/3, send/3, send/4, queued_bytes/1, socket/1, writer/1, key/1, class/1, index/1]).
-export([close/1, abort/1]).
-export_type([lane/0, key/0]).

%% Counted for all senders: bytes that wait in the writer, and how many the socket is known to take.
-define(WAITING, 1).
-define(ROOM, 2).

%% Whose lane: of the link itself (empty) or of the channel of that name; and which of them.
-type key() :: {Class :: binary(), Index :: non_neg_integer()}.
-record(lane, {socket :: weft_transport:socket(),
               key :: key(),
               writer :: pid(),
               queued :: atomics:atomics_ref()}).
-opaque lane() :: #lane{}.

%% @doc Starts the writer of a connected socket, linked to the caller. Peer is for `weft_fault'.
-spec new(weft_transport:socket(), key(), node()) -> lane().
new(Socket, Key, Peer) ->
    Queued = atomics:new(2, []),
    {ok, Writer} = weft_lane_writer:start_link(Socket, Peer, {Queued, ?WAITING}),
    #lane{socket = Socket, key = Key, writer = Writer, queued = Queued}.

%% @doc Sends a packet. `queued' means that the writer has it; it is on its way all the same.
-spec send(lane(), iodata(), non_neg_integer()) -> ok | queued | {error, term()}.
send(Lane, Packet, Bytes) ->
    send(Lane, Packet, Bytes, undefined).

%% @doc The same; with `notify' a packet that is queued is reported to the caller once it is out.
-spec send(lane(), iodata(), non_neg_integer(), notify | undefined) ->
          ok | queued | {error, term()}.
send(#lane{socket = Socket, queued = Queued} = Lane, Packet, Bytes, Notify) ->
    case atomics:get(Queued, ?WAITING) of
        0 ->
            case has_room(Bytes, Lane) andalso weft_transport:try_send(Socket, Packet) of
                Busy when Busy =:= false; Busy =:= busy -> enqueue(Lane, Packet, Bytes, Notify);
                Result -> Result
            end;
        _ ->
            enqueue(Lane, Packet, Bytes, Notify)
    end.

%% What is known to be free is used up before it is asked again. Taken and looked at in one step:
%% between two, somebody else may write what he was told.
has_room(Bytes, #lane{socket = Socket, queued = Queued}) ->
    atomics:sub_get(Queued, ?ROOM, Bytes) >= 0
        orelse asked_room(Bytes, Queued, weft_transport:room(Socket)).

asked_room(Bytes, Queued, {ok, Room}) ->
    atomics:put(Queued, ?ROOM, max(0, Room - Bytes)),
    Room >= Bytes;
%% The send will say so.
asked_room(_Bytes, _Queued, {error, closed}) ->
    true.

enqueue(#lane{writer = Writer, queued = Queued}, Packet, Bytes, Notify) ->
    From = case Notify of notify -> self(); undefined -> undefined end,
    atomics:add(Queued, ?WAITING, Bytes + 1),
    ok = weft_lane_writer:write(Writer, From, Packet, Bytes),
    queued.

%% @doc Bytes that wait in the writer.
-spec queued_bytes(lane()) -> non_neg_integer().
queued_bytes(#lane{queued = Queued}) -> atomics:get(Queued, ?WAITING).

-spec socket(lane()) -> weft_transport:socket().
socket(#lane{socket = Socket}) -> Socket.

%% @doc The process to which what the socket does not take goes.
-spec writer(lane()) -> pid().
writer(#lane{writer = Writer}) -> Writer.

-spec key(lane()) -> key().
key(#lane{key = Key}) -> Key.

-spec class(lane()) -> binary().
class(#lane{key = {Class, _}}) -> Class.

-spec index(lane()) -> non_neg_integer().
index(#lane{key = {_, Index}}) -> Index.

%% @doc Closes the socket, when what was sent is out, and stops the writer. Only the process that
%% made the lane may call this.
-spec close(lane()) -> ok.
close(#lane{socket = Socket} = Lane) ->
    stop_writer(Lane),
    weft_transport:close(Socket).

%% @doc The same at once: what is not out will be sent again by another lane.
-spec abort(lane()) -> ok.
abort(#lane{socket = Socket} = Lane) ->
    stop_writer(Lane),
    weft_transport:abort(Socket).

stop_writer(#lane{writer = Writer}) ->
    unlink(Writer),
    exit(Writer, kill).
