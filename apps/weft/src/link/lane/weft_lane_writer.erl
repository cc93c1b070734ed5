%% SPDX-License-Identifier: Apache-2.0
%% @doc The writer of a lane: sends packets that found the socket busy, in the order in which they
%% came.
%%
%% A lane may be late (`weft_fault'): the function LateBy says how late packets are now. It is
%% called when the writer starts, and again when the writer is told to (`look_again/1'). All packets
%% of a late lane pass here. Each is sent when it is due, and not before the one ahead of it; until
%% then it counts as under way, and its sender may go on. So the lane is late, but not slow. A late
%% lane looks busy all the time, because one byte is counted as waiting.
-module(weft_lane_writer).
-behaviour(gen_server).

-export([start_link/3, write/4, woken/1, settle/2, look_again/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, code_change/3]).
-export_type([waiting/0, lateness/0, late_by/0]).

%% So much a late lane holds as if it were under way. More than that waits, as before a socket whose
%% buffers are full (4 MiB is what Linux lets a connection have, tcp(7)).
-define(LATE_BYTES, 4194304).
%% The time that TCP takes to repeat a packet that was lost.
-define(REPEAT_MS, 200).

%% For so long, and so often in a row, bytes must have been counted that are not here, before they
%% are taken for those of a sender that was killed. One that waits for its turn beside ten thousands
%% of processes is there earlier; after a stop of the whole node time alone proves nothing.
-define(SETTLE_MS, 60000).
-define(SETTLE_TIMES, 3).

%% What packets have to wait for: a random time, and with this percentage a repetition.
-type lateness() :: none | stopped
                  | {MinMs :: non_neg_integer(), MaxMs :: non_neg_integer(), Percent :: number()}.
%% A function that returns it.
-type late_by() :: {module(), Function :: atom(), Args :: [term()]}.

%% The counter, shared by all senders, of the bytes that wait, and of one more for each packet.
-type waiting() :: {atomics:atomics_ref(), Index :: pos_integer()}.

-record(writer, {socket :: weft_transport:socket(),
                 %% The peer: in a state of the version before.
                 late_by :: late_by() | (Peer :: node()),
                 waiting :: waiting(),
                 is_late = false :: boolean(),
                 lateness = none :: lateness(),
                 %% For a late lane. `waits': its bytes still count as waiting, and its sender was
                 %% not told yet.
                 held = queue:new() :: queue:queue({DueUs :: integer(), Packet :: iodata(),
                                                    Bytes :: non_neg_integer(),
                                                    under_way | {waits, pid() | undefined}}),
                 held_bytes = 0 :: non_neg_integer(),
                 last_due_us = undefined :: integer() | undefined,
                 %% What was counted and is not here, at the least, how often in a row, since when.
                 missing = none :: none | {Bytes :: integer(), Times :: pos_integer(),
                                           SinceMs :: integer()}}).

%% @doc Starts the writer of a connected socket, linked to the caller.
-spec start_link(weft_transport:socket(), late_by(), waiting()) -> {ok, pid()}.
start_link(Socket, LateBy, Waiting) ->
    gen_server:start_link(?MODULE, {Socket, LateBy, Waiting},
                          [{spawn_opt, [{priority, weft_turn:priority(data)},
                                        {message_queue_data, off_heap}, {fullsweep_after, 10}]}]).

%% @doc Sends a packet of so many bytes, which are counted as waiting; the process From is told when
%% it is out.
-spec write(pid(), From :: pid() | undefined, iodata(), non_neg_integer()) -> ok.
write(Writer, From, Packet, Bytes) ->
    Writer ! {write, From, Packet, Bytes},
    ok.

%% @doc Has the process that started the writer told that its lane is in use again.
-spec woken(pid()) -> ok.
woken(Writer) ->
    Writer ! woken,
    ok.

%% @doc Compares what is counted as waiting with what is here.
-spec settle(NowMs :: integer(), pid()) -> ok.
settle(NowMs, Writer) ->
    Writer ! {settle, NowMs},
    ok.

%% @doc Makes the writers that Owner started ask again how late they are.
-spec look_again(Owner :: pid()) -> ok.
look_again(Owner) ->
    Linked = case process_info(Owner, links) of {links, All} -> All; undefined -> [] end,
    lists:foreach(fun(Writer) -> Writer ! faults_changed end,
                  [Pid || Pid <- Linked, is_pid(Pid),
                          proc_lib:translate_initial_call(Pid) =:= {?MODULE, init, 1}]).

%% @private
init({Socket, LateBy, Waiting}) ->
    %% The first packet may be late already.
    {ok, look(#writer{socket = Socket, late_by = LateBy, waiting = Waiting})}.

%% @private
handle_call(Request, From, Writer) ->
    gen_server:reply(From, weft_stray:call(Request)),
    next(Writer).

%% @private
handle_cast(Request, Writer) ->
    ok = weft_stray:message(Request),
    next(Writer).

%% @private
handle_info({write, From, Packet, Bytes}, #writer{is_late = false} = Writer) ->
    %% The reader of the socket notices if a send has failed, and ends the lane.
    _ = weft_transport:send(Writer#writer.socket, Packet),
    taken(From, Bytes, Writer),
    {noreply, Writer};
handle_info({write, From, Packet, Bytes}, Writer) ->
    next(hold(From, Packet, Bytes, Writer));
handle_info(faults_changed, Writer) ->
    next(look(Writer));
handle_info(woken, #writer{socket = Socket} = Writer) ->
    [Owner | _] = get('$ancestors'),
    Owner ! {weft_lane, used, Socket},
    next(Writer);
handle_info({settle, NowMs}, Writer) ->
    next(settled(NowMs, Writer));
handle_info(timeout, Writer) ->
    next(Writer);
handle_info(Message, Writer) ->
    ok = weft_stray:message(Message),
    next(Writer).

%% @private Before, a state did not have what is missing. Before that, one field was the peer, and
%% its faults were asked for.
code_change(Version, Before, Extra) when tuple_size(Before) =:= 9 ->
    code_change(Version, erlang:append_element(Before, none), Extra);
code_change(_Version, #writer{late_by = Peer} = Writer, _Extra) when is_atom(Peer) ->
    {ok, Writer#writer{late_by = {weft_fault_table, lateness, [Peer]}}};
code_change(_Version, Writer, _Extra) ->
    {ok, Writer}.

taken(From, Bytes, #writer{socket = Socket, waiting = Waiting}) ->
    count(-(Bytes + 1), Waiting),
    _ = is_pid(From) andalso (From ! {weft_lane, ready, Socket}),
    ok.

%% While messages wait, what is counted may be theirs. A late lane holds packets that count.
settled(_NowMs, #writer{is_late = true} = Writer) ->
    Writer#writer{missing = none};
settled(NowMs, #writer{waiting = {Counters, Index} = Waiting, missing = Before} = Writer) ->
    case process_info(self(), message_queue_len) of
        {_, 0} ->
            case missing(atomics:get(Counters, Index), NowMs, Before) of
                {Bytes, Times, SinceMs}
                  when Times >= ?SETTLE_TIMES, NowMs - SinceMs >= ?SETTLE_MS ->
                    count(-Bytes, Waiting),
                    Writer#writer{missing = none};
                Missing ->
                    Writer#writer{missing = Missing}
            end;
        _ ->
            Writer
    end.

%% A sender that was slow, and taken for killed, takes from the count what was put right before.
missing(0, _NowMs, _Before) ->
    none;
missing(Bytes, _NowMs, {Least, Times, SinceMs}) when Bytes > 0, Least > 0 ->
    {min(Bytes, Least), Times + 1, SinceMs};
missing(Bytes, _NowMs, {Least, Times, SinceMs}) when Bytes < 0, Least < 0 ->
    {max(Bytes, Least), Times + 1, SinceMs};
missing(Bytes, NowMs, _Before) ->
    {Bytes, 1, NowMs}.

count(Bytes, {Counters, Index}) -> atomics:add(Counters, Index, Bytes).

%% --- late ------------------------------------------------------------------------

look(#writer{late_by = {Module, Function, Args}, is_late = IsLate, waiting = Waiting} = Writer) ->
    case apply(Module, Function, Args) of
        none when not IsLate ->
            Writer;
        Lateness ->
            IsLate orelse count(1, Waiting),
            Writer#writer{lateness = Lateness, is_late = true}
    end.

%% Sends packets that are due, and waits for those that are not.
next(#writer{is_late = false} = Writer) ->
    {noreply, Writer};
next(#writer{held = Held, lateness = Lateness} = Writer) ->
    case {queue:peek(Held), Lateness} of
        {empty, none} ->
            count(-1, Writer#writer.waiting),
            {noreply, Writer#writer{is_late = false}};
        {empty, _} -> {noreply, Writer};
        {_, stopped} -> {noreply, Writer};
        {{value, {DueUs, _, _, _}}, _} ->
            case DueUs - now_us() of
                LeftUs when LeftUs > 0 -> {noreply, Writer, (LeftUs + 999) div 1000};
                _ -> next(send_first(Writer))
            end
    end.

hold(From, Packet, Bytes, #writer{held = Held, held_bytes = HeldBytes, lateness = Lateness,
                                  last_due_us = LastUs} = Writer) ->
    DueUs = due_us(LastUs, now_us() + late_by_ms(Lateness) * 1000),
    Taken = case HeldBytes < ?LATE_BYTES of
                true -> taken(From, Bytes, Writer), under_way;
                false -> {waits, From}
            end,
    Writer#writer{held = queue:in({DueUs, Packet, Bytes, Taken}, Held),
                  held_bytes = HeldBytes + Bytes, last_due_us = DueUs}.

due_us(undefined, Us) -> Us;
due_us(LastUs, Us) -> max(LastUs, Us).

late_by_ms({MinMs, MaxMs, Percent}) ->
    RepeatMs = case rand:uniform() * 100 < Percent of
                   true -> ?REPEAT_MS;
                   false -> 0
               end,
    MinMs + rand:uniform(MaxMs - MinMs + 1) - 1 + RepeatMs;
late_by_ms(_NoneOrStopped) ->
    0.

send_first(#writer{socket = Socket, held = Held0, held_bytes = HeldBytes} = Writer) ->
    {{value, {_, Packet, Bytes, Taken}}, Held} = queue:out(Held0),
    _ = weft_transport:send(Socket, Packet),
    ok = case Taken of
             under_way -> ok;
             {waits, From} -> taken(From, Bytes, Writer)
         end,
    Writer#writer{held = Held, held_bytes = HeldBytes - Bytes}.

now_us() -> erlang:monotonic_time(microsecond).
