%% SPDX-License-Identifier: Apache-2.0
%% @doc Sending on one connection of a link, from any process.
%%
%% The common case is one system call in the sender's own process. When the socket is busy the
%% packet goes to the writer of the lane, a process whose only work is the waiting send. A sender
%% that uses `send/4' with `notify' is told {weft_lane, ready, Socket} when its packet is out and
%% should not send before that; so each such sender holds at most one packet here, and senders
%% take turns. All else (relayed circuits, acks) is bounded by credit and by `queued_bytes/1'.
%% No sender ever waits.
%%
%% Packets of one process keep their order: once one waits in the writer, later ones queue behind.
-module(weft_lane).

-export([new/3, send/3, send/4, queued_bytes/1, socket/1, key/1, class/1, index/1]).
-export([close/1, abort/1, faults_changed/1]).
-export([writer/4]).
-export_type([lane/0, key/0]).

%% Counted for all senders: bytes that wait in the writer, and how many the socket is known to take.
-define(WAITING, 1).
-define(ROOM, 2).
%% What a late lane holds as if it were under way. More than that waits, as before a socket whose
%% buffers are full (4 MiB is what Linux lets a connection have, tcp(7)).
-define(LATE_BYTES, 4194304).

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
    %% The first packet is subject to the faults that there are.
    IsLate = weft_fault:lateness(Peer) =/= none,
    _ = IsLate andalso mark(Queued),
    Writer = spawn_opt(?MODULE, writer, [Socket, Queued, Peer, IsLate],
                       [link, {priority, weft_turn:priority(data)},
                        {message_queue_data, off_heap}, {fullsweep_after, 10}]),
    #lane{socket = Socket, key = Key, writer = Writer, queued = Queued}.

%% A late lane looks busy all the time, so that every packet passes the writer.
mark(Queued) -> atomics:add(Queued, ?WAITING, 1).
unmark(Queued) -> atomics:sub(Queued, ?WAITING, 1).

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
    Writer ! {write, From, Packet, Bytes},
    queued.

%% @doc Bytes that wait in the writer.
-spec queued_bytes(lane()) -> non_neg_integer().
queued_bytes(#lane{queued = Queued}) -> atomics:get(Queued, ?WAITING).

-spec socket(lane()) -> weft_transport:socket().
socket(#lane{socket = Socket}) -> Socket.

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

%% @doc Has the lanes that Owner made look at `weft_fault' again.
-spec faults_changed(Owner :: pid()) -> ok.
faults_changed(Owner) ->
    Linked = case process_info(Owner, links) of {links, All} -> All; undefined -> [] end,
    lists:foreach(fun(Writer) -> Writer ! faults_changed end,
                  [Pid || Pid <- Linked, is_pid(Pid), is_writer(process_info(Pid, initial_call))]).

is_writer({initial_call, {Module, Function, _}}) -> {Module, Function} =:= {?MODULE, writer};
is_writer(undefined) -> false.

%% @private
-spec writer(weft_transport:socket(), atomics:atomics_ref(), node(), IsLate :: boolean()) ->
          no_return().
writer(Socket, Queued, Peer, IsLate) ->
    %% What changed before the owner was linked to this process was told to nobody.
    self() ! faults_changed,
    case IsLate of
        true -> late(late_lane(Socket, Queued, Peer));
        false -> prompt(Socket, Queued, Peer)
    end.

prompt(Socket, Queued, Peer) ->
    receive
        {write, From, Packet, Bytes} ->
            %% A failed send is seen by the reader of the socket, which ends the lane.
            _ = weft_transport:send(Socket, Packet),
            taken(Socket, Queued, From, Bytes),
            prompt(Socket, Queued, Peer);
        faults_changed ->
            case weft_fault:lateness(Peer) of
                none -> prompt(Socket, Queued, Peer);
                _ -> mark(Queued), late(late_lane(Socket, Queued, Peer))
            end
    end.

taken(Socket, Queued, From, Bytes) ->
    atomics:sub(Queued, ?WAITING, Bytes + 1),
    _ = is_pid(From) andalso (From ! {weft_lane, ready, Socket}),
    ok.

%% --- late by a fault ------------------------------------------------------------------------

%% Each packet is sent when it is due and not before the one ahead of it; until then it is under
%% way, and its sender may go on. So it is late, but not slow.
-record(late, {socket :: weft_transport:socket(),
               queued :: atomics:atomics_ref(),
               peer :: node(),
               lateness :: weft_fault:lateness(),
               %% Those with a sender still have to be taken from him.
               held = queue:new() :: queue:queue({DueUs :: integer(), Packet :: iodata(),
                                                  Bytes :: non_neg_integer(),
                                                  under_way | {waits, pid() | undefined}}),
               held_bytes = 0 :: non_neg_integer(),
               last_due_us = undefined :: integer() | undefined}).

late_lane(Socket, Queued, Peer) ->
    #late{socket = Socket, queued = Queued, peer = Peer, lateness = weft_fault:lateness(Peer)}.

late(#late{held = Held, lateness = Lateness} = Late) ->
    case {queue:peek(Held), Lateness} of
        {empty, none} -> #late{socket = Socket, queued = Queued, peer = Peer} = Late,
                         unmark(Queued), prompt(Socket, Queued, Peer);
        {empty, _} -> hear(infinity, Late);
        {_, stopped} -> hear(infinity, Late);
        {{value, {DueUs, _, _, _}}, _} ->
            case DueUs - now_us() of
                LeftUs when LeftUs > 0 -> hear((LeftUs + 999) div 1000, Late);
                _ -> late(send_first(Late))
            end
    end.

hear(ForMs, #late{peer = Peer} = Late) ->
    receive
        {write, From, Packet, Bytes} -> late(hold(From, Packet, Bytes, Late));
        faults_changed -> late(Late#late{lateness = weft_fault:lateness(Peer)})
    after ForMs -> late(Late)
    end.

hold(From, Packet, Bytes, #late{held = Held, held_bytes = HeldBytes, lateness = Lateness,
                                last_due_us = LastUs} = Late) ->
    DueUs = due_us(LastUs, now_us() + late_by_ms(Lateness) * 1000),
    Taken = case HeldBytes < ?LATE_BYTES of
                true -> taken(Late#late.socket, Late#late.queued, From, Bytes), under_way;
                false -> {waits, From}
            end,
    Late#late{held = queue:in({DueUs, Packet, Bytes, Taken}, Held), held_bytes = HeldBytes + Bytes,
              last_due_us = DueUs}.

due_us(undefined, Us) -> Us;
due_us(LastUs, Us) -> max(LastUs, Us).

late_by_ms({MinMs, MaxMs, Percent}) ->
    RepeatMs = case rand:uniform() * 100 < Percent of
                   true -> weft_fault:repeat_ms();
                   false -> 0
               end,
    MinMs + rand:uniform(MaxMs - MinMs + 1) - 1 + RepeatMs;
late_by_ms(_NoneOrStopped) ->
    0.

send_first(#late{socket = Socket, queued = Queued, held = Held0, held_bytes = HeldBytes} = Late) ->
    {{value, {_, Packet, Bytes, Taken}}, Held} = queue:out(Held0),
    _ = weft_transport:send(Socket, Packet),
    ok = case Taken of
             under_way -> ok;
             {waits, From} -> taken(Socket, Queued, From, Bytes)
         end,
    Late#late{held = Held, held_bytes = HeldBytes - Bytes}.

now_us() -> erlang:monotonic_time(microsecond).
