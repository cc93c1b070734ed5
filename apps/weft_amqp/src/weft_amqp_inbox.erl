%% SPDX-License-Identifier: Apache-2.0
%% @doc All that comes for this node: a connection to the broker that never publishes, and so is
%% never blocked, with the one queue that the others write to.
%%
%% The queue is exclusive: it ends with this connection, and others learn that when a message for it
%% comes back to them. Its name is new each time. Messages go on to their lanes at once; a new lane
%% gets a process that authenticates it, as many at a time as `pending_handshakes_max' of weft
%% allows. What is nothing of ours is counted and dropped. At most `?PREFETCH' messages come without
%% an acknowledgement; those go out in groups.
%%
%% Opens its connection after its start and tells the process that started it
%% `{weft_amqp_inbox, Pid, {up, Queue}}', and `{weft_amqp_inbox, Pid, {announced, Binary}}' for each
%% announcement. Ends with the connection.
-module(weft_amqp_inbox).
-behaviour(gen_server).

-include_lib("amqp_client/include/amqp_client.hrl").

-export([start_link/2]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(PREFETCH, 200).
-define(ACK_AFTER, 50).
%% Acknowledged when nothing has come for so long.
-define(ACK_MS, 10).
-define(CLOSE_MS, 1000).

-record(inbox, {
    starter :: pid(),
    exchange :: binary(),
    connection :: pid() | undefined,
    channel :: pid() | undefined,
    last_tag = 0 :: non_neg_integer(),
    unacked = 0 :: non_neg_integer(),
    %% Processes that authenticate new lanes.
    pending = #{} :: #{reference() => []}}).

%% @doc Exchange is where the nodes of the cluster announce themselves.
-spec start_link(weft_amqp_connection:params(), Exchange :: binary()) -> {ok, pid()}.
start_link(Params, Exchange) ->
    gen_server:start_link(?MODULE, {Params, Exchange, self()},
                          [{spawn_opt, [{message_queue_data, off_heap}, {fullsweep_after, 10}]}]).

%% @private
init({Params, Exchange, Starter}) ->
    process_flag(trap_exit, true),
    {ok, #inbox{starter = Starter, exchange = Exchange}, {continue, {open, Params}}}.

%% @private
handle_continue({open, Params}, #inbox{starter = Starter, exchange = Exchange} = Inbox) ->
    case weft_amqp_connection:open(Params, <<"weft consumer">>) of
        {ok, Connection, Channel} ->
            Opened = Inbox#inbox{connection = Connection, channel = Channel},
            try declare(Channel, Exchange) of
                Queue ->
                    Starter ! {weft_amqp_inbox, self(), {up, Queue}},
                    {noreply, Opened}
            catch
                exit:Reason -> {stop, {shutdown, refusal(Reason)}, Opened}
            end;
        {error, Reason} ->
            {stop, {shutdown, Reason}, Inbox}
    end.

refusal({Reason, {gen_server, call, _}}) -> weft_amqp_connection:reason(Reason).

declare(Channel, Exchange) ->
    #'exchange.declare_ok'{} = amqp_channel:call(
        Channel, #'exchange.declare'{exchange = Exchange, type = <<"fanout">>, durable = true}),
    #'queue.declare_ok'{queue = Queue} =
        amqp_channel:call(Channel, #'queue.declare'{exclusive = true, auto_delete = true}),
    #'queue.bind_ok'{} =
        amqp_channel:call(Channel, #'queue.bind'{queue = Queue, exchange = Exchange}),
    #'basic.qos_ok'{} = amqp_channel:call(Channel, #'basic.qos'{prefetch_count = ?PREFETCH}),
    #'basic.consume_ok'{} =
        amqp_channel:subscribe(Channel, #'basic.consume'{queue = Queue, exclusive = true}, self()),
    Queue.

%% @private
-spec handle_call(term(), gen_server:from(), #inbox{}) -> {reply, {error, term()}, #inbox{}}.
handle_call(Request, _From, Inbox) ->
    {reply, weft_stray:call(Request), Inbox}.

%% @private
-spec handle_cast(term(), #inbox{}) -> {noreply, #inbox{}}.
handle_cast(Request, Inbox) ->
    ok = weft_stray:message(Request),
    {noreply, Inbox}.

%% @private
-spec handle_info(term(), #inbox{}) ->
          {noreply, #inbox{}} | {noreply, #inbox{}, pos_integer()} | {stop, term(), #inbox{}}.
handle_info({#'basic.deliver'{delivery_tag = Tag}, #amqp_msg{payload = Message}},
            #inbox{unacked = Unacked} = Inbox0) ->
    Inbox = take(weft_amqp_message:decode(Message), Inbox0),
    due(Inbox#inbox{last_tag = Tag, unacked = Unacked + 1});
handle_info(timeout, Inbox) ->
    {noreply, ack(Inbox)};
handle_info({'DOWN', Monitor, process, _, _}, #inbox{pending = Pending} = Inbox)
  when is_map_key(Monitor, Pending) ->
    due(Inbox#inbox{pending = maps:remove(Monitor, Pending)});
handle_info({'DOWN', _, process, _Channel, Reason}, Inbox) ->
    {stop, {shutdown, weft_amqp_connection:reason(Reason)}, Inbox};
handle_info({'EXIT', _, Reason}, Inbox) ->
    {stop, {shutdown, weft_amqp_connection:reason(Reason)}, Inbox};
handle_info(#'basic.consume_ok'{}, Inbox) ->
    due(Inbox);
handle_info(#'basic.cancel'{}, Inbox) ->
    {stop, {shutdown, queue_deleted}, Inbox};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

%% @private
terminate(_Reason, #inbox{connection = Connection}) ->
    weft_amqp_connection:close(Connection, ?CLOSE_MS).

due(#inbox{unacked = 0} = Inbox) -> {noreply, Inbox};
due(#inbox{unacked = Unacked} = Inbox) when Unacked >= ?ACK_AFTER -> {noreply, ack(Inbox)};
due(Inbox) -> {noreply, Inbox, ?ACK_MS}.

ack(#inbox{channel = Channel, last_tag = Tag} = Inbox) ->
    ok = amqp_channel:cast(Channel, #'basic.ack'{delivery_tag = Tag, multiple = true}),
    Inbox#inbox{unacked = 0}.

take({lane, Id, Frame}, Inbox) ->
    case {weft_amqp_lanes:lookup(Id), Frame} of
        {{ok, Lane}, _} -> weft_amqp_lane:came(Lane, Frame), Inbox;
        {error, {open, Queue}} -> opened(Id, Queue, Inbox);
        {error, _OfALaneThatEnded} -> Inbox
    end;
take({announce, Announcement}, #inbox{starter = Starter} = Inbox) ->
    Starter ! {weft_amqp_inbox, self(), {announced, Announcement}},
    Inbox;
take(error, Inbox) ->
    weft_refusals:report(undefined, forged),
    Inbox.

%% The lane is in the table before its next message is looked at.
opened(Id, Queue, #inbox{pending = Pending} = Inbox) ->
    case {map_size(Pending) < weft_config:get(pending_handshakes_max), weft_amqp_lanes:own()} of
        {true, {up, Own}} ->
            answered(weft_amqp_lane:start(listener, Own#{id => Id, queue => Queue}), Inbox);
        {false, _} ->
            weft_refusals:report(undefined, overload),
            Inbox;
        {true, _} ->
            Inbox
    end.

answered({ok, Lane}, #inbox{pending = Pending} = Inbox) ->
    {Pid, Monitor} = spawn_monitor(
                       fun() ->
                               receive
                                   yours -> weft_listener:tunnelled(weft_amqp_lane:connection(Lane))
                               end
                       end),
    _ = weft_amqp_lane:controlling_process(Lane, Pid),
    Pid ! yours,
    Inbox#inbox{pending = Pending#{Monitor => []}};
answered({error, _NoRoom}, Inbox) ->
    Inbox.
