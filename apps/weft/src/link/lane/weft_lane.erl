%% SPDX-License-Identifier: Apache-2.0
%% @doc Sending on one connection of a link, from any process.
%%
%% In the common case this is one system call in the sender's own process. If the socket is busy the
%% packet goes to the writer of the lane, a process whose only work is to send and wait
%% (`weft_lane_writer'). A sender that uses `send/4' with `notify' gets
%% {weft_lane, ready, Socket} when its packet is out, and should not send before that. So each such
%% sender has at most one packet here, and senders take turns. Other packets (relayed circuits,
%% acks) are bounded by credit and by `queued_bytes/1'. No sender ever waits.
%%
%% Packets of one process keep their order: while one waits in the writer, later ones queue behind.
%% A sender that is killed after it has counted its packet, and before the writer has it, leaves the
%% lane busy. The owner of the lane has this put right (`settle/2').
%%
%% A lane may be at rest: the process that made it does not watch it then. With the first packet
%% that is sent on it that process gets {weft_lane, used, Socket}, but not with `answer/3'.
-module(weft_lane).

-export([new/3, send/3, send/4, queued_bytes/1, socket/1, writer/1, key/1, class/1, index/1,
         losses/1]).
-export([rest/1, answer/3, answers/1, settle/2, close/1, abort/1]).
-export_type([lane/0, key/0]).

%% On the way of each message: not calls.
-compile({inline, [has_room/2]}).

%% Counters shared by all senders: bytes that wait in the writer, and how many the socket is known
%% to take.
-define(WAITING, 1).
-define(ROOM, 2).
%% As if the socket had no room: the next sender sees that the lane was at rest, and others pay
%% nothing for it. Several may take bytes from this number before one of them puts it right; until
%% then answers are added.
-define(AT_REST, -(1 bsl 50)).

%% The owner of the lane: the link itself (empty) or the channel of that name; and its index.
-type key() :: {Class :: binary(), Index :: non_neg_integer()}.
-record(lane, {socket :: weft_transport:socket(),
               key :: key(),
               writer :: pid(),
               queued :: atomics:atomics_ref()}).
-opaque lane() :: #lane{}.

%% @doc Starts the writer of a connected socket, linked to the caller. LateBy says how late packets
%% are (see `weft_lane_writer').
-spec new(weft_transport:socket(), key(), weft_lane_writer:late_by()) -> lane().
new(Socket, Key, LateBy) ->
    Queued = atomics:new(2, []),
    {ok, Writer} = weft_lane_writer:start_link(Socket, LateBy, {Queued, ?WAITING}),
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

%% Room that is known is used up before the socket is asked again. It is taken and checked in one
%% step: between two steps another process might use the same room.
has_room(Bytes, #lane{socket = Socket, queued = Queued} = Lane) ->
    atomics:add_get(Queued, ?ROOM, -Bytes) >= 0
        orelse asked_room(Bytes, Lane, weft_transport:room(Socket)).

asked_room(Bytes, Lane, {ok, Room}) ->
    ok = know_room(max(0, Room - Bytes), Lane),
    Room >= Bytes;
%% The send will report it.
asked_room(_Bytes, Lane, {error, closed}) ->
    ok = know_room(0, Lane),
    true.

%% The lane may have come to rest after this process began to send: who takes the mark away tells.
know_room(Room, #lane{writer = Writer, queued = Queued}) ->
    case atomics:exchange(Queued, ?ROOM, Room) of
        AtRest when AtRest < ?AT_REST div 2 -> weft_lane_writer:woken(Writer);
        _Before -> ok
    end.

%% A lane that comes to rest meanwhile is seen here, or the packet is seen by `rest/1' and what its
%% caller looks at.
enqueue(#lane{writer = Writer, queued = Queued} = Lane, Packet, Bytes, Notify) ->
    From = case Notify of notify -> self(); undefined -> undefined end,
    atomics:add(Queued, ?WAITING, Bytes + 1),
    ok = weft_lane_writer:write(Writer, From, Packet, Bytes),
    _ = is_at_rest(Lane) andalso know_room(0, Lane),
    queued.

%% @doc The lane is at rest from now on, unless something is being sent at this moment.
-spec rest(lane()) -> ok.
rest(#lane{queued = Queued}) -> atomics:put(Queued, ?ROOM, ?AT_REST).

is_at_rest(#lane{queued = Queued}) -> atomics:get(Queued, ?ROOM) < ?AT_REST div 2.

%% @doc As `send/3', for what nobody waits for: an acknowledgement, or a tick of the kernel.
-spec answer(lane(), iodata(), non_neg_integer()) -> ok | queued | {error, term()}.
answer(#lane{socket = Socket, queued = Queued} = Lane, Packet, Bytes) ->
    CanRest = is_at_rest(Lane) andalso queued_bytes(Lane) =:= 0,
    case CanRest andalso weft_transport:room(Socket) of
        {ok, Room} when Room >= Bytes ->
            ok = atomics:add(Queued, ?ROOM, 1),
            case weft_transport:try_send(Socket, Packet) of
                busy -> send(Lane, Packet, Bytes);
                Result -> Result
            end;
        _ ->
            send(Lane, Packet, Bytes)
    end.

%% @doc How many answers were sent since the lane is at rest; 0 if it is not.
-spec answers(lane()) -> non_neg_integer().
answers(#lane{queued = Queued} = Lane) ->
    case is_at_rest(Lane) of
        true -> max(0, atomics:get(Queued, ?ROOM) - ?AT_REST);
        false -> 0
    end.

%% @doc Bytes that wait in the writer. (For a moment less than none, if its sender was taken for
%% killed, and was only slow.)
-spec queued_bytes(lane()) -> integer().
queued_bytes(#lane{queued = Queued}) -> atomics:get(Queued, ?WAITING).

%% @doc To be called at intervals, by one process: if bytes wait that the writer never gets, they do
%% not count any more after a minute.
-spec settle(NowMs :: integer(), lane()) -> ok.
settle(NowMs, #lane{writer = Writer} = Lane) ->
    case queued_bytes(Lane) of
        0 -> ok;
        _ -> weft_lane_writer:settle(NowMs, Writer)
    end.

-spec socket(lane()) -> weft_transport:socket().
socket(#lane{socket = Socket}) -> Socket.

%% @doc The process that gets the packets that the socket does not take.
-spec writer(lane()) -> pid().
writer(#lane{writer = Writer}) -> Writer.

-spec key(lane()) -> key().
key(#lane{key = Key}) -> Key.

-spec class(lane()) -> binary().
class(#lane{key = {Class, _}}) -> Class.

-spec index(lane()) -> non_neg_integer().
index(#lane{key = {_, Index}}) -> Index.

%% @doc How many segments were lost on all of them, if the kernel says so.
-spec losses([lane()]) -> integer() | unknown.
losses(Lanes) ->
    Counts = [weft_transport:losses(Socket) || #lane{socket = Socket} <- Lanes],
    case lists:member(unknown, Counts) of
        true -> unknown;
        false -> lists:sum(Counts)
    end.

%% @doc Stops the writer, and closes the socket when what that has taken is out. Only the process
%% that made the lane may call this.
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
