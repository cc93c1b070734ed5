%% SPDX-License-Identifier: Apache-2.0
%% @doc Sends to one node on one partition of a channel.
%%
%% Started by the first message (`weft_channel'). It moves items from its mailbox into the queue of
%% the channel. While the stream has room it encodes them in batches, once, and pushes these. It
%% never waits for a socket, so what waits is in the queue, which is bounded: the bytes of all items
%% that are not in the stream yet are in a counter, which callers read and add to before they send;
%% who of those that wait may go on is decided in weft_channel_waiters. Large messages are announced
%% here, and go in chunks over partitions of their own, whose processes are of this module too.
%%
%% To a node without channels (no weft, or not the application) it sends by the distribution, in the
%% same order. As long as it is used it asks there now and then whether there are channels: the
%% carrier of a node that starts takes connections before the application takes streams. The answer
%% comes after all that was sent by the distribution has arrived, and nothing is sent until then.
%%
%% It ends when the node is down, with all that waits, and when idle for a while. The counter of a
%% process that ends says so, so no message can be put in its mailbox unnoticed.
-module(weft_channel_sender).
-behaviour(gen_server).

-export([start_link/3]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, code_change/3]).

%% A batch is closed at this cost.
-define(BATCH_BYTES, 65536).
%% So many items are taken from the mailbox before the next batch is sent.
-define(DRAIN_MESSAGES, 1024).
-define(CLOSED, -(1 bsl 60)).
-define(LOOK_MS, 10000).
%% Checks in a row without anything sent, before it ends.
-define(IDLE_LOOKS, 6).
-define(RETRY_MS, 100).
%% How long to wait at the end for messages of callers that have already added their bytes.
-define(LAST_MS, 200).

%% What waits lives long: with room for it there are few garbage collections, and those are small.
-define(HEAP_WORDS, 100000).
-define(BINARY_WORDS, 2000000).

-record(sender, {key :: {node(), atom(), weft_channels:partition()},
                 channel :: weft_channels:channel(),
                 bytes :: atomics:atomics_ref(),
                 queue :: weft_channel_queue_core:queue(),
                 stream :: weft_stream:stream() | undefined,
                 state = connecting :: connecting | up | plain
                                     | {asking, Request :: gen_server:request_id()},
                 waiters :: weft_channel_waiters:waiters(),
                 large :: weft_channel_large:large(),
                 timer = none :: reference() | none,
                 sent = 0 :: non_neg_integer(),
                 %% At the last look: what was sent, and bytes in the counter of nothing that waits.
                 looked = {0, 0} :: {Sent :: non_neg_integer(), Unclaimed :: non_neg_integer()},
                 idle_looks = 0 :: non_neg_integer()}).

%% @doc For a node, a channel and a partition.
-spec start_link(node(), weft_channels:channel(), weft_channels:partition()) ->
          {ok, pid()} | {error, term()}.
start_link(Node, Channel, Partition) ->
    Options = [{spawn_opt, [{message_queue_data, off_heap}, {min_heap_size, ?HEAP_WORDS},
                            {min_bin_vheap_size, ?BINARY_WORDS}]}],
    case gen_server:start_link(?MODULE, {Node, Channel, Partition}, Options) of
        ignore -> {error, already_started};
        Result -> Result
    end.

%% @private
init({Node, #{name := Name} = Channel, Partition}) ->
    Bytes = atomics:new(1, [{signed, true}]),
    case weft_channels:add_sender(Node, Name, Partition, Bytes) of
        true ->
            _ = erlang:send_after(?LOOK_MS, self(), idle),
            {ok, #sender{key = {Node, Name, Partition}, channel = Channel, bytes = Bytes,
                         waiters = weft_channel_waiters:new(Bytes, Channel),
                         queue = weft_channel_queue_core:new(options(Partition, Channel)),
                         large = weft_channel_large:new(Node, Channel, Partition)},
             {continue, connect}};
        false ->
            ignore
    end.

%% Chunks are never dropped.
options(Partition, Channel) ->
    case weft_channels:is_stripe(Partition) of
        true -> Channel#{policy := block, monotonic := undefined};
        false -> Channel
    end.

%% As with `!', the first message connects the nodes.
%% @private
handle_continue(connect, #sender{key = {Node, _, _}} = Sender) ->
    case net_kernel:connect_node(Node) of
        true ->
            true = erlang:monitor_node(Node, true),
            case has_session(Node) of
                true -> begin_stream(Sender);
                false -> next(Sender#sender{state = plain})
            end;
        _ ->
            ended(nodedown, Sender)
    end.

begin_stream(#sender{key = {Node, Name, Partition}} = Sender) ->
    Stream = weft_stream:initiator({channel, atom_to_binary(Name), Partition}, Node,
                                   weft_session_counters:new(), self()),
    next(Sender#sender{state = connecting, stream = weft_stream:connect(Stream)}).

has_session(Node) ->
    whereis(weft_carrier_sup) =/= undefined andalso weft_sessions:with(atom_to_binary(Node)) =/= [].

%% @private
handle_call(info, _From, #sender{key = {Node, Name, Partition}} = Sender) ->
    Path = case Sender#sender.stream of
               undefined -> #{};
               Stream -> weft_stream:info(Stream)
           end,
    {reply, Path#{kind => channel, name => Name, partition => Partition, peer => Node,
                  node => undefined, state => state(Sender),
                  queued_bytes => weft_channel_queue_core:bytes(Sender#sender.queue)}, Sender};
handle_call(Request, _From, Sender) ->
    {reply, weft_stray:call(Request), Sender}.

state(#sender{state = {asking, _}}) -> connecting;
state(#sender{state = State}) -> State.

%% @private
handle_cast(Request, Sender) ->
    ok = weft_stray:message(Request),
    {noreply, Sender}.

%% @private
%% The callers that wait were in this state itself.
code_change(Version, {sender, Key, Channel, Bytes, _Limit, Queue, Stream, State, Waiters, Waking,
                      Large, Timer, Sent, SentThen, IdleLooks}, Extra) ->
    Sender = #sender{key = Key, channel = Channel, bytes = Bytes, queue = Queue, stream = Stream,
                     state = State, large = Large, timer = Timer, sent = Sent,
                     looked = {SentThen, 0}, idle_looks = IdleLooks,
                     waiters = weft_channel_waiters:of_former_shape(Bytes, Channel, Waiters,
                                                                    Waking)},
    code_change(Version, Sender, Extra);
code_change(_Version, #sender{stream = undefined} = Sender, _Extra) ->
    {ok, Sender};
code_change(_Version, #sender{stream = Stream} = Sender, _Extra) ->
    {ok, Sender#sender{stream = weft_stream:code_change(Stream)}}.

%% --- messages ---------------------------------------------------------------------------------

%% @private
-spec handle_info(term(), #sender{}) ->
          {noreply, #sender{}} | {noreply, #sender{}, 0} | {stop, term(), #sender{}}.
handle_info(Message, #sender{state = {asking, Request}} = Sender) ->
    case gen_server:check_response(Message, Request) of
        no_reply -> message(Message, Sender);
        {reply, _} -> begin_stream(Sender);
        {error, _NoChannels} -> next(Sender#sender{state = plain})
    end;
handle_info(Message, Sender) ->
    message(Message, Sender).

message(timeout, Sender) ->
    next(pump(Sender));
message({weft_item, Cost, Item}, Sender) ->
    next(pump(drain(?DRAIN_MESSAGES, put_in(none, Cost, Item, Sender))));
message({weft_slot, Slot, Cost, Item}, Sender) ->
    next(pump(drain(?DRAIN_MESSAGES, put_in(Slot, Cost, Item, Sender))));
message({weft_wait, Ref, Cost}, #sender{waiters = Waiters} = Sender) ->
    next(Sender#sender{waiters = weft_channel_waiters:in(Ref, Cost, Waiters)});
message({weft_wait_no_more, Ref}, #sender{waiters = Waiters} = Sender) ->
    next(Sender#sender{waiters = weft_channel_waiters:out(Ref, Waiters)});
message(wake_more, #sender{waiters = Waiters} = Sender) ->
    next(Sender#sender{waiters = weft_channel_waiters:wake_more(Waiters)});
message({weft_packet, _, Link, _Lane, Label, {close, _, Reason}}, Sender) ->
    stream({weft_path, closed, Link, Label, Reason}, Sender);
message({weft_large, arrived, Id}, #sender{large = Large} = Sender) ->
    next(Sender#sender{large = weft_channel_large:arrived(Id, Large)});
message({nodedown, Node}, #sender{key = {Node, _, _}} = Sender) ->
    ended(nodedown, Sender);
message({'DOWN', _, process, Pid, Reason} = Down, #sender{large = Large0} = Sender) ->
    case weft_channel_large:down(Pid, Reason, Large0) of
        {ok, Large} -> next(Sender#sender{large = Large});
        lost -> ended(nodedown, Sender);
        unknown -> stream(Down, Sender)
    end;
message(due, Sender) ->
    next(Sender#sender{timer = none});
message(connect_again, #sender{stream = Stream, state = connecting} = Sender) ->
    next(Sender#sender{stream = weft_stream:connect(Stream)});
message(idle, Sender) ->
    idle(Sender);
message(Message, Sender) ->
    stream(Message, Sender).

stream(_Message, #sender{stream = undefined} = Sender) ->
    next(Sender);
stream(Message, #sender{stream = Stream0} = Sender) ->
    case weft_stream:handle(Message, Stream0) of
        {Outcome, Stream} -> outcome(Outcome, Sender#sender{stream = Stream});
        unknown -> next(Sender)
    end.

outcome(ok, Sender) ->
    next(Sender);
outcome(connected, Sender) ->
    next(Sender#sender{state = up});
%% Chunks can not go by the distribution. Whoever has announced their message begins anew.
outcome({failed, refused}, #sender{stream = Stream, key = {_, _, Partition}} = Sender) ->
    case weft_channels:is_stripe(Partition) of
        true -> ended(nodedown, Sender);
        false -> next(Sender#sender{state = plain, stream = weft_stream:close(Stream)})
    end;
outcome({failed, _Reason}, Sender) ->
    _ = erlang:send_after(?RETRY_MS, self(), connect_again),
    next(Sender);
outcome(EndedOrLost, Sender) when EndedOrLost =:= ended; EndedOrLost =:= lost ->
    ended(nodedown, Sender).

%% --- the queue --------------------------------------------------------------------------------

drain(0, Sender) ->
    Sender;
drain(Left, Sender) ->
    receive
        {weft_item, Cost, Item} -> drain(Left - 1, put_in(none, Cost, Item, Sender));
        {weft_slot, Slot, Cost, Item} -> drain(Left - 1, put_in(Slot, Cost, Item, Sender))
    after 0 -> Sender
    end.

put_in(Slot, Cost, Item, #sender{queue = Queue0} = Sender) ->
    case weft_channel_queue_core:in(Slot, Cost, Item, Queue0) of
        {[], Queue} -> Sender#sender{queue = Queue};
        {Dropped, Queue} -> dropped(Dropped, Sender#sender{queue = Queue})
    end.

dropped(Dropped, #sender{channel = #{counters := Counters, monotonic := Window}} = Sender) ->
    Why = case Window of undefined -> dropped_oldest; _ -> superseded end,
    weft_channel_counters:add(Why, length(Dropped), Counters),
    lists:foreach(fun({_, Item}) -> tell_failed(Item, dropped) end, Dropped),
    release(lists:sum([Cost || {Cost, _} <- Dropped]), Sender).

tell_failed({_Extra, _, _, {Ref, _}, _}, Reason) -> Ref ! {Ref, Reason}, ok;
tell_failed(_Item, _Reason) -> ok.

release(Cost, #sender{waiters = Waiters} = Sender) ->
    Sender#sender{waiters = weft_channel_waiters:freed(Cost, Waiters)}.

%% --- sending ----------------------------------------------------------------------------------

next(Sender0) ->
    Sender = cool(Sender0),
    case is_ready(Sender) of
        true -> {noreply, Sender, 0};
        false -> {noreply, Sender}
    end.

%% Slots of a monotonic channel: wakes those whose time has come, and sets a timer for the next.
cool(#sender{queue = Queue, timer = Timer} = Sender) ->
    case weft_channel_queue_core:due_ms(Queue) of
        never ->
            Sender;
        DueMs ->
            NowMs = now_ms(),
            case DueMs =< NowMs of
                true -> cool(Sender#sender{queue = weft_channel_queue_core:wake(NowMs, Queue)});
                false when Timer =:= none -> set_timer(DueMs, Sender);
                false -> Sender
            end
    end.

set_timer(DueMs, Sender) ->
    Sender#sender{timer = erlang:send_after(DueMs, self(), due, [{abs, true}])}.

is_ready(#sender{state = connecting}) ->
    false;
is_ready(#sender{state = {asking, _}}) ->
    false;
is_ready(#sender{state = plain, queue = Queue}) ->
    weft_channel_queue_core:is_ready(Queue);
is_ready(#sender{stream = Stream, queue = Queue, large = Large}) ->
    weft_stream:can_send(Stream)
        andalso (weft_stream:to_flush(Stream)
                 orelse (weft_channel_queue_core:is_ready(Queue) andalso weft_stream:room(Stream)
                         andalso weft_channel_large:has_room(Large))).

pump(Sender) ->
    case is_ready(Sender) of
        true -> send(Sender);
        false -> Sender
    end.

send(#sender{state = up, stream = Stream0} = Sender) ->
    case weft_stream:flush(Stream0) of
        {ok, Stream} -> Sender#sender{stream = Stream};
        none -> send_batch(Sender)
    end;
send(#sender{state = plain} = Sender) ->
    {Items, Cost, Sender1} = batch(Sender),
    {Node, _, _} = Sender1#sender.key,
    lists:foreach(fun(Item) -> send_plain(Node, Item) end, Items),
    #sender{channel = #{counters := Counters}} = Sender1,
    weft_channel_counters:add(plain, length(Items), Counters),
    release(Cost, Sender1).

send_plain(Node, [To | Message]) -> to(Node, To) ! Message, ok;
send_plain(Node, {many, Tos, Encoded}) ->
    Message = binary_to_term(Encoded),
    lists:foreach(fun(To) -> to(Node, To) ! Message end, Tos);
send_plain(_Node, {_Extra, _, _, _, _} = Item) -> tell_failed(Item, no_channels).

to(_Node, Pid) when is_pid(Pid) -> Pid;
to(Node, Name) -> {Name, Node}.

batch(#sender{queue = Queue0, channel = #{monotonic := Window}, sent = Sent} = Sender) ->
    NowMs = case Window of undefined -> 0; _ -> now_ms() end,
    {Items, Cost, Queue} = weft_channel_queue_core:batch(
                             ?BATCH_BYTES, weft_channel_wire:large_bytes(), NowMs, Queue0),
    {Items, Cost, Sender#sender{queue = Queue, sent = Sent + 1}}.

send_batch(Sender0) ->
    {Items, Cost, #sender{channel = #{counters := Counters} = Channel, stream = Stream} = Sender} =
        batch(Sender0),
    {Payload, Bytes, Large} = encode(Items, Cost, Channel, Sender#sender.large),
    weft_channel_counters:add(messages_out, messages(Items), Counters),
    weft_channel_counters:add(batches_out, Counters),
    weft_channel_counters:add(bytes_out, Bytes, Counters),
    release(Cost, Sender#sender{stream = weft_stream:push(frames, Payload, Bytes, Stream),
                                large = Large}).

messages([{chunk, _, _}]) -> 0;
messages(Items) -> length(Items).

encode([{chunk, Payload, Bytes}], _Cost, _Channel, Large) ->
    {Payload, Bytes, Large};
encode([Item], Cost, #{compression := Level}, Large0) ->
    case Level > 0 andalso weft_channel_wire:is_compressible(Cost) of
        true ->
            {Payload, Bytes} = weft_channel_wire:batch([Item], Cost, Level),
            weft_channel_large:payload(Item, Payload, Bytes, Large0);
        false ->
            as_it_is(Item, Cost, Large0)
    end;
encode(Items, Cost, #{compression := Level}, Large) ->
    {Payload, Bytes} = weft_channel_wire:batch(Items, Cost, Level),
    {Payload, Bytes, Large}.

as_it_is(Item, Cost, Large) ->
    case Cost >= weft_channel_wire:large_bytes() of
        true ->
            {Body, Bytes} = weft_channel_wire:with_binaries(Item),
            weft_channel_large:payload(Item, Body, Bytes, Large);
        false ->
            {Payload, Bytes} = weft_channel_wire:batch([Item], Cost, 0),
            {Payload, Bytes, Large}
    end.

%% --- the end ----------------------------------------------------------------------------------

%% Nothing was sent for a while: once the peer has acknowledged all, the stream is not needed.
idle(#sender{sent = Sent, looked = {Sent, UnclaimedBytes}} = Sender) ->
    rests(unclaimed(UnclaimedBytes, Sender));
idle(Sender) ->
    next(asked(look((unclaimed(0, Sender))#sender{idle_looks = 0}))).

rests(#sender{idle_looks = Looks} = Sender) when Looks >= ?IDLE_LOOKS ->
    case is_acknowledged(Sender) andalso close(Sender) of
        true -> {stop, normal, Sender};
        false -> next(look(Sender))
    end;
rests(#sender{idle_looks = Looks} = Sender) ->
    next(look(Sender#sender{idle_looks = Looks + 1})).

unclaimed(Then, #sender{sent = Sent, queue = Queue, waiters = Waiters0} = Sender) ->
    case weft_channel_queue_core:bytes(Queue) of
        0 ->
            {Now, Waiters} = weft_channel_waiters:unclaimed(Then, Waiters0),
            Sender#sender{waiters = Waiters, looked = {Sent, Now}};
        _ ->
            Sender#sender{looked = {Sent, 0}}
    end.

%% Only over a session of weft there can be a stream.
asked(#sender{state = plain, stream = Stream, key = {Node, _, _}} = Sender)
  when Stream =/= undefined ->
    Sender#sender{state = {asking, gen_server:send_request({weft_channels, Node}, is_here)}};
asked(Sender) ->
    Sender.

%% Of a large message the announcement is, long before the chunks, which others send.
is_acknowledged(#sender{queue = Queue, stream = Stream, large = Large}) ->
    weft_channel_queue_core:is_empty(Queue) andalso not weft_channel_large:is_under_way(Large)
        andalso (Stream =:= undefined
                 orelse maps:get(unacked_bytes, weft_stream:info(Stream)) =:= 0).

close(#sender{key = Key, bytes = Bytes}) ->
    case atomics:compare_exchange(Bytes, 1, 0, ?CLOSED) of
        ok -> weft_channels:drop_sender(Key, Bytes);
        _InUse -> false
    end.

%% A tick is answered by an acknowledgement, which frees what is kept for the last of them. Who was
%% asked for channels, and has not answered since the last look, is taken to have none.
look(#sender{state = {asking, _}} = Sender) ->
    look(Sender#sender{state = plain});
look(#sender{stream = Stream} = Sender) ->
    _ = erlang:send_after(?LOOK_MS, self(), idle),
    case Stream of
        undefined -> Sender;
        _ -> Sender#sender{stream = weft_stream:tick(Stream)}
    end.

%% All that waits is lost. It is counted, and callers that wait for an acknowledgement are told.
%% Participants of labels notice that it has ended.
ended(Reason, #sender{bytes = Bytes, queue = Queue, key = Key,
                      channel = #{counters := Counters}} = Sender) ->
    Reserved = atomics:exchange(Bytes, 1, ?CLOSED),
    weft_channels:drop_sender(Key, Bytes),
    Queued = weft_channel_queue_core:all(Queue),
    Lost = Queued ++ last(Reserved - weft_channel_queue_core:bytes(Queue)),
    lists:foreach(fun({_, Item}) -> ok = tell_failed(Item, Reason) end, Lost),
    weft_channel_counters:add(lost, length(Lost), Counters),
    {stop, {shutdown, Reason}, Sender}.

last(Bytes) when Bytes =< 0 ->
    [];
last(Bytes) ->
    receive
        {weft_item, Cost, Item} -> [{Cost, Item} | last(Bytes - Cost)];
        {weft_slot, _Slot, Cost, Item} -> [{Cost, Item} | last(Bytes - Cost)]
    after ?LAST_MS -> []
    end.

now_ms() -> erlang:monotonic_time(millisecond).
