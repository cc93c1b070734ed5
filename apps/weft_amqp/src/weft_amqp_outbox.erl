%% SPDX-License-Identifier: Apache-2.0
%% @doc All that this node publishes: one connection to the broker for that alone, since a broker
%% that is short of memory reads nothing more from connections that publish.
%%
%% Messages are mandatory and confirmed. At most `?MESSAGES' or `?BYTES' are published and not
%% confirmed yet; the others wait here, bounded by the windows of the lanes, as they do while the
%% broker says that it is blocked. A message that comes back, because its queue is no more, or that
%% the broker could not keep, ends the lane it belongs to.
%%
%% Announcements are short and few, and belong to no lane: they do not wait for room, so that a node
%% that stops can say so however much its lanes have sent. While the broker is blocked they are the
%% first of those that wait.
%%
%% Opens its connection after its start and tells the process that started it
%% `{weft_amqp_outbox, Pid, up}', later `blocked' or `unblocked'. Ends with the connection.
-module(weft_amqp_outbox).
-behaviour(gen_server).

-include_lib("amqp_client/include/amqp_client.hrl").

-export([start_link/2, publish/4, counts/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([target/0, counters/0]).

-define(MESSAGES, 1000).
-define(BYTES, 16777216).
-define(UNCONFIRMED, 1).
-define(WAITING, 2).
-define(CLOSE_MS, 2000).

-type target() :: {queue, binary()} | {exchange, binary()}.
-type counters() :: counters:counters_ref().
%% The lane that a message belongs to, if any.
-type owner() :: weft_amqp_message:id() | none.

-record(outbox, {
    starter :: pid(),
    counters :: counters(),
    connection :: pid() | undefined,
    channel :: pid() | undefined,
    is_blocked = false :: boolean(),
    waiting = queue:new() :: queue:queue({target(), owner(), binary()}),
    next = 1 :: pos_integer(),
    unconfirmed = gb_trees:empty() :: gb_trees:tree(pos_integer(), {owner(), pos_integer()}),
    unconfirmed_bytes = 0 :: non_neg_integer()}).

%% @doc Counters as made by `counters:new(2, [])'; they can be read by `counts/1'.
-spec start_link(weft_amqp_connection:params(), counters()) -> {ok, pid()}.
start_link(Params, Counters) ->
    gen_server:start_link(?MODULE, {Params, Counters, self()},
                          [{spawn_opt, [{message_queue_data, off_heap}, {fullsweep_after, 10}]}]).

%% @doc Does not wait. Owner is the lane that is to hear if the message is lost; of an announcement
%% it is `none'.
-spec publish(pid(), target(), owner(), iodata()) -> ok.
publish(Outbox, Target, Owner, Message) ->
    gen_server:cast(Outbox, {publish, Target, Owner, Message}).

%% @doc Messages that are not confirmed yet, and those not even published.
-spec counts(counters()) -> #{unconfirmed := non_neg_integer(), waiting := non_neg_integer()}.
counts(Counters) ->
    #{unconfirmed => counters:get(Counters, ?UNCONFIRMED),
      waiting => counters:get(Counters, ?WAITING)}.

%% @private
init({Params, Counters, Starter}) ->
    process_flag(trap_exit, true),
    counters:put(Counters, ?UNCONFIRMED, 0),
    counters:put(Counters, ?WAITING, 0),
    {ok, #outbox{starter = Starter, counters = Counters}, {continue, {open, Params}}}.

%% @private
handle_continue({open, Params}, #outbox{starter = Starter} = Outbox) ->
    case weft_amqp_connection:open(Params, <<"weft publisher">>) of
        {ok, Connection, Channel} ->
            #'confirm.select_ok'{} = amqp_channel:call(Channel, #'confirm.select'{}),
            ok = amqp_channel:register_confirm_handler(Channel, self()),
            ok = amqp_channel:register_return_handler(Channel, self()),
            ok = amqp_connection:register_blocked_handler(Connection, self()),
            Starter ! {weft_amqp_outbox, self(), up},
            {noreply, Outbox#outbox{connection = Connection, channel = Channel}};
        {error, Reason} ->
            {stop, {shutdown, Reason}, Outbox}
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #outbox{}) -> {reply, {error, term()}, #outbox{}}.
handle_call(Request, _From, Outbox) ->
    {reply, weft_stray:call(Request), Outbox}.

%% @private
-spec handle_cast(term(), #outbox{}) -> {noreply, #outbox{}}.
handle_cast({publish, Target, Owner, Message}, Outbox) ->
    {noreply, entered({Target, Owner, iolist_to_binary(Message)}, Outbox)};
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #outbox{}) -> {noreply, #outbox{}} | {stop, term(), #outbox{}}.
handle_info(#'basic.ack'{delivery_tag = Tag, multiple = Multiple}, Outbox) ->
    {noreply, flush(confirmed(Tag, Multiple, fun(_Owner) -> ok end, Outbox))};
handle_info(#'basic.nack'{delivery_tag = Tag, multiple = Multiple}, Outbox) ->
    {noreply, flush(confirmed(Tag, Multiple, fun(Owner) -> lost(Owner, broker_lost_it) end,
                              Outbox))};
handle_info({#'basic.return'{}, #amqp_msg{payload = Message}}, Outbox) ->
    returned(weft_amqp_message:decode(Message)),
    {noreply, Outbox};
handle_info(#'connection.blocked'{reason = Reason}, #outbox{starter = Starter} = Outbox) ->
    Starter ! {weft_amqp_outbox, self(), {blocked, Reason}},
    {noreply, Outbox#outbox{is_blocked = true}};
handle_info(#'connection.unblocked'{}, #outbox{starter = Starter} = Outbox) ->
    Starter ! {weft_amqp_outbox, self(), unblocked},
    {noreply, flush(Outbox#outbox{is_blocked = false})};
handle_info({'DOWN', _, process, _Channel, Reason}, Outbox) ->
    {stop, {shutdown, weft_amqp_connection:reason(Reason)}, Outbox};
handle_info({'EXIT', _, Reason}, Outbox) ->
    {stop, {shutdown, weft_amqp_connection:reason(Reason)}, Outbox};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

%% @private
terminate(_Reason, #outbox{connection = Connection}) ->
    weft_amqp_connection:close(Connection, ?CLOSE_MS).

entered({_, none, _} = Announcement, #outbox{is_blocked = false} = Outbox) ->
    counted(publish(Announcement, Outbox));
entered({_, none, _} = Announcement, #outbox{waiting = Waiting} = Outbox) ->
    counted(Outbox#outbox{waiting = queue:in_r(Announcement, Waiting)});
entered(Entry, #outbox{waiting = Waiting} = Outbox) ->
    flush(Outbox#outbox{waiting = queue:in(Entry, Waiting)}).

flush(#outbox{is_blocked = true} = Outbox) ->
    counted(Outbox);
flush(#outbox{waiting = Waiting, unconfirmed = Unconfirmed, unconfirmed_bytes = Bytes} = Outbox) ->
    case queue:out(Waiting) of
        {{value, Entry}, Rest} when Bytes < ?BYTES ->
            case gb_trees:size(Unconfirmed) < ?MESSAGES of
                true -> flush(publish(Entry, Outbox#outbox{waiting = Rest}));
                false -> counted(Outbox)
            end;
        _ ->
            counted(Outbox)
    end.

publish({Target, Owner, Message}, #outbox{channel = Channel, next = Next, unconfirmed = Unconfirmed,
                                          unconfirmed_bytes = Bytes} = Outbox) ->
    ok = amqp_channel:cast(Channel, method(Target), #amqp_msg{payload = Message}),
    Size = byte_size(Message),
    Outbox#outbox{next = Next + 1, unconfirmed_bytes = Bytes + Size,
                  unconfirmed = gb_trees:insert(Next, {Owner, Size}, Unconfirmed)}.

method({queue, Queue}) -> #'basic.publish'{routing_key = Queue, mandatory = true};
method({exchange, Exchange}) -> #'basic.publish'{exchange = Exchange}.

confirmed(Tag, false, Then, #outbox{unconfirmed = Unconfirmed} = Outbox) ->
    case gb_trees:take_any(Tag, Unconfirmed) of
        {Entry, Rest} -> confirmed(Entry, Then, Outbox#outbox{unconfirmed = Rest});
        error -> Outbox
    end;
confirmed(Tag, true, Then, #outbox{unconfirmed = Unconfirmed} = Outbox) ->
    case not gb_trees:is_empty(Unconfirmed) andalso gb_trees:take_smallest(Unconfirmed) of
        {Number, Entry, Rest} when Number =< Tag; Tag =:= 0 ->
            confirmed(Tag, true, Then, confirmed(Entry, Then, Outbox#outbox{unconfirmed = Rest}));
        _ ->
            Outbox
    end.

confirmed({Owner, Size}, Then, #outbox{unconfirmed_bytes = Bytes} = Outbox) ->
    Then(Owner),
    Outbox#outbox{unconfirmed_bytes = Bytes - Size}.

returned({lane, Id, _}) -> lost(Id, no_queue);
returned(_Announcement) -> ok.

lost(none, _Reason) ->
    ok;
lost(Id, Reason) ->
    case weft_amqp_lanes:lookup(Id) of
        {ok, Lane} -> weft_amqp_lane:lost(Lane, Reason);
        error -> ok
    end.

counted(#outbox{counters = Counters, waiting = Waiting, unconfirmed = Unconfirmed} = Outbox) ->
    counters:put(Counters, ?UNCONFIRMED, gb_trees:size(Unconfirmed)),
    counters:put(Counters, ?WAITING, queue:len(Waiting)),
    Outbox.
