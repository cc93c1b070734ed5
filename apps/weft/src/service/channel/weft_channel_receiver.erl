%% SPDX-License-Identifier: Apache-2.0
%% @doc Takes what a peer sends on one partition of a channel, and delivers it.
%%
%% It owns the receiving end of the stream. Payloads come from the process of the link; each is
%% decoded, its messages go to their processes, and only then it counts as received. So what a peer
%% can have on its way here is bounded by its window. If a receiver may have `mailbox_max' messages
%% in its mailbox, payloads for one that has more wait, and the peer waits too.
%% Chunks of large messages come on partitions of their own, whose processes pass them to the one
%% that has the announcement (`weft_channel_inbox').
%%
%% A malformed payload ends the process, and the peer's process too: it is no network error.
-module(weft_channel_receiver).
-behaviour(gen_server).

-export([accept/5, start_link/5]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, code_change/3]).

-define(PACED_MS, 5).

-record(receiver, {peer :: binary(),
                   channel :: weft_channels:channel(),
                   name :: binary(),
                   partition :: weft_channels:partition(),
                   stream :: weft_stream:stream(),
                   counters :: weft_session_counters:counters(),
                   inbound :: weft_inbound_core:state(),
                   inbox :: weft_channel_inbox:inbox(),
                   paused = false :: boolean(),
                   waiting = queue:new() :: queue:queue(tuple())}).

%% @doc Called for the switch, for a stream that a peer opens.
-spec accept(weft_sessions:id(), Peer :: binary(), weft_stream:path(), Channel :: binary(),
             weft_channels:partition()) -> {ok, pid()} | {error, {shutdown, taken} | refused}.
accept(Id, Peer, Path, Channel, Partition) ->
    Args = [Id, Peer, Path, Channel, Partition],
    case weft_channel_workers:start(?MODULE, Args) of
        {ok, Pid} -> {ok, Pid};
        {error, {shutdown, taken}} -> {error, {shutdown, taken}};
        {error, _} -> {error, refused}
    end.

-spec start_link(weft_sessions:id(), binary(), weft_stream:path(), binary(),
                 weft_channels:partition()) -> {ok, pid()} | {error, term()}.
start_link(Id, Peer, Path, Channel, Partition) ->
    Options = [{spawn_opt, [{message_queue_data, off_heap}, {fullsweep_after, 10}]}],
    gen_server:start_link(?MODULE, {Id, Peer, Path, Channel, Partition}, Options).

%% @private
init({Id, Peer, Path, Name, Partition}) ->
    Counters = weft_session_counters:new(),
    case weft_stream:acceptor({channel, Name, Partition}, Id, Peer, Path, Counters, self()) of
        {ok, Stream} ->
            true = weft_channels:add_receiver(Peer, Name, Partition, self()),
            ok = weft_circuit:join(Path, {channel, Name, Partition}, Peer, self(), Counters),
            {ok, new(Peer, Name, Partition, weft_stream:say_accepted(Stream), Counters)};
        {error, taken} ->
            {stop, {shutdown, taken}}
    end.

new(Peer, Name, Partition, Stream, Counters) ->
    BytesMax = 4 * weft_config:get(window_bytes) + weft_wire:packet_bytes_max(),
    #receiver{peer = Peer, channel = channel(Name), name = Name, partition = Partition,
              stream = Stream, counters = Counters, inbound = weft_inbound_core:new(BytesMax),
              inbox = weft_channel_inbox:new(channel(Name))}.

%% The options matter at the sender; a channel that only the peer knows is handled as `default'.
channel(Name) ->
    try weft_channels:find(binary_to_existing_atom(Name)) of
        undefined -> weft_channels:find(default);
        Channel -> Channel
    catch
        error:badarg -> weft_channels:find(default)
    end.

%% @private
handle_call(info, _From, #receiver{stream = Stream, inbox = Inbox} = Receiver) ->
    Info = weft_stream:info(Stream),
    {reply, Info#{kind => channel, name => Receiver#receiver.name, node => undefined,
                  peer => Receiver#receiver.peer, partition => Receiver#receiver.partition,
                  held_bytes => weft_channel_inbox:held_bytes(Inbox),
                  paused => Receiver#receiver.paused,
                  waiting => queue:len(Receiver#receiver.waiting)}, Receiver};
handle_call(Request, _From, Receiver) ->
    {reply, weft_stray:call(Request), Receiver}.

%% @private
handle_cast(Request, Receiver) ->
    ok = weft_stray:message(Request),
    {noreply, Receiver}.

%% @private
code_change(_Version, #receiver{stream = Stream} = Receiver, _Extra) ->
    {ok, Receiver#receiver{stream = weft_stream:code_change(Stream)}}.

%% @private
-spec handle_info(term(), #receiver{}) -> {noreply, #receiver{}} | {stop, term(), #receiver{}}.
handle_info({weft_packet, _, _, _, _, {data, _, _, _, _}} = Data,
            #receiver{paused = true, waiting = Waiting} = Receiver) ->
    {noreply, Receiver#receiver{waiting = queue:in(Data, Waiting)}};
handle_info({weft_packet, _, _, _, _, {data, _, _, _, _}} = Data, Receiver) ->
    data(Data, Receiver);
handle_info({weft_packet, _, _Link, Lane, Label, {tick, _}}, Receiver) ->
    {noreply, acknowledge(Lane, Label, Receiver)};
handle_info({weft_packet, _, _Link, Lane, Label, {times, _}},
            #receiver{inbound = Inbound} = Receiver) ->
    {noreply, Receiver#receiver{inbound = weft_inbound_core:times(Lane, Label, Inbound)}};
handle_info({weft_packet, _, Link, _Lane, Label, {close, _, Reason}}, Receiver) ->
    stream({weft_path, closed, Link, Label, Reason}, Receiver);
handle_info({weft_chunk, Id, Index, Chunk}, #receiver{inbox = Inbox} = Receiver) ->
    delivered(weft_channel_inbox:chunk(Id, Index, Chunk, Inbox), Receiver);
handle_info(go_on, #receiver{paused = true} = Receiver) ->
    go_on(Receiver#receiver{paused = false});
handle_info(Message, Receiver) ->
    stream(Message, Receiver).

stream(Message, #receiver{stream = Stream0} = Receiver) ->
    case weft_stream:handle(Message, Stream0) of
        {ok, Stream} -> {noreply, Receiver#receiver{stream = Stream}};
        {_EndedOrLost, Stream} -> ended(Receiver#receiver{stream = Stream});
        unknown -> {noreply, Receiver}
    end.

%% Payloads that came before the end are delivered, however full the mailboxes.
ended(#receiver{waiting = Waiting} = Receiver) ->
    _ = lists:foldl(fun(Data, {noreply, R}) -> taken(Data, R);
                       (_Data, Stopped) -> Stopped
                    end, {noreply, Receiver#receiver{waiting = queue:new()}},
                    queue:to_list(Waiting)),
    {stop, normal, Receiver}.

%% --- payloads ---------------------------------------------------------------------------------

data(Data, #receiver{inbox = Inbox} = Receiver) ->
    case weft_channel_inbox:is_full(Inbox) of
        true -> {noreply, pause(Data, Receiver)};
        false -> taken(Data, Receiver)
    end.

taken({weft_packet, _, Link, Lane, Label, {data, _, Sequence, Kind, Payload}},
      #receiver{counters = Counters, inbound = Inbound0} = Receiver) ->
    weft_session_counters:payload_in(Counters, byte_size(Payload)),
    case weft_inbound_core:accept(Sequence, Kind, Payload, Inbound0) of
        {Payloads, Ack, Inbound} ->
            received(Payloads, Ack, Lane, Label, Receiver#receiver{inbound = Inbound});
        overflow ->
            %% The peer hears of it, and repeats on another path.
            ok = weft_link_handler:tell(Link, {drop, Label}),
            stream({weft_path, closed, Link, Label, overload}, Receiver)
    end.

received(Payloads, Ack, Lane, Label, Receiver0) ->
    case deliver(Payloads, Receiver0) of
        {ok, #receiver{inbound = Inbound, counters = Counters} = Receiver} ->
            weft_session_counters:set_received(Counters, weft_inbound_core:received(Inbound)),
            {noreply, case Ack of
                          true -> acknowledge(Lane, Label, Receiver);
                          false -> Receiver
                      end};
        {malformed, Receiver} ->
            malformed(Receiver)
    end.

acknowledge(Lane, Label, #receiver{inbound = Inbound} = Receiver) ->
    Packet = weft_inbound_core:answer(Lane, Label, erlang:monotonic_time(microsecond), Inbound),
    _ = weft_lane:send(Lane, Packet, iolist_size(Packet)),
    Receiver.

deliver([], Receiver) ->
    {ok, Receiver};
deliver([{_Kind, Payload} | Rest], #receiver{inbox = Inbox0, partition = Partition,
                                             channel = #{counters := Counters}} = Receiver) ->
    weft_channel_counters:add(batches_in, Counters),
    case {weft_channel_wire:decode(Payload), weft_channels:is_stripe(Partition)} of
        {{chunk, AnnouncedOn, Id, Index, Chunk}, true} ->
            pass(AnnouncedOn, {weft_chunk, Id, Index, Chunk}, Receiver),
            deliver(Rest, Receiver);
        {malformed, _} ->
            {malformed, Receiver};
        {Decoded, false} when element(1, Decoded) =/= chunk ->
            case weft_channel_inbox:take(Decoded, Inbox0) of
                {ok, Inbox} -> deliver(Rest, Receiver#receiver{inbox = Inbox});
                malformed -> {malformed, Receiver}
            end;
        {_Misplaced, _} ->
            {malformed, Receiver}
    end.

%% Its stream existed before the peer sent the chunk, so the process is there, or it has ended.
pass(Partition, Message, #receiver{peer = Peer, name = Name}) ->
    case weft_channels:receiver(Peer, Name, Partition) of
        none -> ok;
        Pid -> Pid ! Message, ok
    end.

delivered({ok, Inbox}, Receiver) ->
    {noreply, Receiver#receiver{inbox = Inbox}};
delivered(malformed, Receiver) ->
    malformed(Receiver).

malformed(#receiver{peer = Peer, name = Name} = Receiver) ->
    weft_refusals:report(undefined, {malformed_channel, Peer, Name}),
    {stop, {shutdown, malformed}, Receiver}.

%% --- full mailboxes ---------------------------------------------------------------------------

%% Tried again at intervals, because the VM does not tell when a mailbox has become shorter.
pause(Data, #receiver{waiting = Waiting, channel = #{counters := Counters}} = Receiver) ->
    weft_channel_counters:add(paused, Counters),
    _ = erlang:send_after(?PACED_MS, self(), go_on),
    Receiver#receiver{paused = true, waiting = queue:in_r(Data, Waiting)}.

go_on(#receiver{paused = true} = Receiver) ->
    {noreply, Receiver};
go_on(#receiver{waiting = Waiting} = Receiver) ->
    case queue:out(Waiting) of
        {empty, _} ->
            {noreply, Receiver};
        {{value, Data}, Rest} ->
            case data(Data, Receiver#receiver{waiting = Rest}) of
                {noreply, Next} -> go_on(Next);
                Stop -> Stop
            end
    end.
