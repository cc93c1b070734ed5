%% SPDX-License-Identifier: Apache-2.0
%% @doc Publishes numbered persistent messages to a quorum queue with publisher confirms, and
%% consumes them with acknowledgements, keeping account of every number.
%%
%% Publisher and consumer are clients of different brokers. The consumer subscribes again whenever
%% its subscription ends. The publisher does not repeat a message: whether one without a
%% confirm arrived is open, and a repeat would look like a double delivery.
%%
%% Compiled by the suite when it runs, since the headers come with RabbitMQ, which is optional.
-module(weft_rabbitmq_load).

-include_lib("amqp_client/include/amqp_client.hrl").

-export([declare/2, start/1, counts/1, publish_no_more/1, result/1, stop/1]).

%% messages: how many to publish; window: how many of them may be unconfirmed at a time.
-type options() :: #{publish_at := address(), consume_at := address(), queue := binary(),
                     messages := pos_integer() | infinity, window := pos_integer()}.
-type address() :: {string(), inet:port_number()}.
-type load() :: #{publisher := pid(), consumer := pid()}.
-type id() :: pos_integer().
%% rejected: answered by a nack. unconfirmed: not answered (yet).
%% doubled: numbers consumed more than once. unconsumed: numbers confirmed but not consumed (yet).
-type result() :: #{published := non_neg_integer(), confirmed := non_neg_integer(),
                    rejected := non_neg_integer(), unconfirmed := non_neg_integer(),
                    consumed := non_neg_integer(), doubled := [id()], unconsumed := [id()],
                    subscriptions := pos_integer(), publisher_failures := [term()]}.
-export_type([options/0, load/0, result/0]).

-define(PREFETCH, 200).
-define(ASK_MS, 30000).
-define(RESUBSCRIBE_AFTER_MS, 500).

-record(publisher, {connection :: pid(),
                    channel :: pid() | closed,
                    queue :: binary(),
                    left :: non_neg_integer() | infinity,
                    window :: pos_integer(),
                    next = 1 :: id(),
                    open = gb_sets:new() :: gb_sets:set(id()),
                    confirmed = #{} :: #{id() => []},
                    rejected = 0 :: non_neg_integer(),
                    failures = [] :: [term()]}).
-record(consumer, {address :: address(),
                   queue :: binary(),
                   connection :: {pid(), reference()} | none,
                   channel = none :: pid() | none,
                   seen = #{} :: #{id() => pos_integer()},
                   subscriptions = 0 :: non_neg_integer()}).

%% @doc Declares a durable quorum queue, led by the broker at Address.
-spec declare(address(), binary()) -> ok.
declare(Address, Queue) ->
    {Connection, Channel} = connect(Address),
    Arguments = [{<<"x-queue-type">>, longstr, <<"quorum">>},
                 {<<"x-queue-leader-locator">>, longstr, <<"client-local">>}],
    #'queue.declare_ok'{} = amqp_channel:call(Channel, #'queue.declare'{
        queue = Queue, durable = true, arguments = Arguments}),
    amqp_connection:close(Connection).

-spec start(options()) -> load().
start(Options) ->
    #{publisher => start_part(fun publisher/1, Options),
      consumer => start_part(fun consumer/1, Options)}.

start_part(Part, Options) ->
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        Loop = Part(Options),
        Self ! {self(), ready},
        Loop()
    end),
    receive
        {Pid, ready} -> demonitor(Monitor, [flush]), Pid;
        {'DOWN', Monitor, process, Pid, Reason} -> error(Reason)
    end.

%% @doc Progress: published, confirmed, consumed (different numbers).
-spec counts(load()) -> #{atom() => non_neg_integer()}.
counts(#{publisher := Publisher, consumer := Consumer}) ->
    maps:merge(ask(Publisher, counts), ask(Consumer, counts)).

-spec publish_no_more(load()) -> ok.
publish_no_more(#{publisher := Publisher}) ->
    ask(Publisher, publish_no_more).

-spec result(load()) -> result().
result(#{publisher := Publisher, consumer := Consumer}) ->
    {Published, Confirmed} = ask(Publisher, result),
    {Consumed, Seen} = ask(Consumer, result),
    maps:merge(maps:merge(Published, Consumed),
               #{doubled => lists:sort([Id || {Id, Times} <- maps:to_list(Seen), Times > 1]),
                 unconsumed => lists:sort(maps:keys(maps:without(maps:keys(Seen), Confirmed)))}).

%% @doc Closes the clients.
-spec stop(load()) -> ok.
stop(#{publisher := Publisher, consumer := Consumer}) ->
    ok = ask(Publisher, stop),
    ok = ask(Consumer, stop).

ask(Pid, Question) ->
    Monitor = monitor(process, Pid),
    Pid ! {ask, self(), Monitor, Question},
    receive
        {Monitor, Answer} -> demonitor(Monitor, [flush]), Answer;
        {'DOWN', Monitor, process, Pid, Reason} -> error({load_ended, Reason})
    after ?ASK_MS -> error({no_answer, Question})
    end.

connect({Host, Port}) ->
    {ok, Connection} = amqp_connection:start(#amqp_params_network{host = Host, port = Port}),
    {ok, Channel} = amqp_connection:open_channel(Connection),
    {Connection, Channel}.

%%% Publisher

publisher(#{publish_at := Address, queue := Queue, messages := Messages, window := Window}) ->
    {Connection, Channel} = connect(Address),
    #'confirm.select_ok'{} = amqp_channel:call(Channel, #'confirm.select'{}),
    ok = amqp_channel:register_confirm_handler(Channel, self()),
    monitor(process, Channel),
    State = #publisher{connection = Connection, channel = Channel, queue = Queue,
                       left = Messages, window = Window},
    fun() -> publish(State) end.

publish(#publisher{channel = Channel, left = Left, open = Open, next = Id} = State) ->
    case is_pid(Channel) andalso Left > 0 andalso gb_sets:size(Open) < State#publisher.window of
        true ->
            Message = #amqp_msg{props = #'P_basic'{delivery_mode = 2},
                                payload = integer_to_binary(Id)},
            Method = #'basic.publish'{routing_key = State#publisher.queue},
            ok = amqp_channel:cast(Channel, Method, Message),
            answered(0, State#publisher{next = Id + 1, left = fewer(Left),
                                        open = gb_sets:add(Id, Open)});
        false ->
            answered(infinity, State)
    end.

fewer(infinity) -> infinity;
fewer(Left) -> Left - 1.

answered(TimeoutMs, State) ->
    receive
        Message -> publish(published(Message, State))
    after TimeoutMs ->
        publish(State)
    end.

%% The number of a message is its delivery tag, both count from 1.
published(#'basic.ack'{delivery_tag = Tag, multiple = Multiple}, State) ->
    {Ids, Open} = take(Tag, Multiple, State#publisher.open),
    Confirmed = lists:foldl(fun(Id, C) -> C#{Id => []} end, State#publisher.confirmed, Ids),
    State#publisher{open = Open, confirmed = Confirmed};
published(#'basic.nack'{delivery_tag = Tag, multiple = Multiple}, State) ->
    {Ids, Open} = take(Tag, Multiple, State#publisher.open),
    State#publisher{open = Open, rejected = State#publisher.rejected + length(Ids)};
published({'DOWN', _, process, Channel, Reason}, #publisher{channel = Channel} = State) ->
    State#publisher{channel = closed, failures = [Reason | State#publisher.failures]};
published({ask, From, Tag, stop}, #publisher{connection = Connection}) ->
    close(Connection),
    From ! {Tag, ok},
    exit(normal);
published({ask, From, Tag, publish_no_more}, State) ->
    From ! {Tag, ok},
    State#publisher{left = 0};
published({ask, From, Tag, counts}, State) ->
    From ! {Tag, maps:with([published, confirmed, unconfirmed], account(State))},
    State;
published({ask, From, Tag, result}, State) ->
    From ! {Tag, {account(State), State#publisher.confirmed}},
    State.

account(#publisher{next = Next, confirmed = Confirmed, rejected = Rejected, open = Open} = State) ->
    #{published => Next - 1, confirmed => maps:size(Confirmed), rejected => Rejected,
      unconfirmed => gb_sets:size(Open), publisher_failures => State#publisher.failures}.

take(Tag, false, Open) ->
    {[Tag], gb_sets:delete(Tag, Open)};
take(Tag, true, Open) ->
    case gb_sets:is_empty(Open) orelse gb_sets:smallest(Open) > Tag of
        true ->
            {[], Open};
        false ->
            {Id, Rest} = gb_sets:take_smallest(Open),
            {Ids, Left} = take(Tag, true, Rest),
            {[Id | Ids], Left}
    end.

%%% Consumer

consumer(#{consume_at := Address, queue := Queue}) ->
    State = subscribe(#consumer{address = Address, queue = Queue, connection = none}),
    fun() -> consume(State) end.

subscribe(#consumer{address = Address, subscriptions = Subscriptions} = State) ->
    {Connection, Channel} = connect(Address),
    #'basic.qos_ok'{} = amqp_channel:call(Channel, #'basic.qos'{prefetch_count = ?PREFETCH}),
    #'basic.consume_ok'{} = amqp_channel:subscribe(
        Channel, #'basic.consume'{queue = State#consumer.queue}, self()),
    State#consumer{connection = {Connection, monitor(process, Channel)}, channel = Channel,
                   subscriptions = Subscriptions + 1}.

consume(State) ->
    receive
        Message -> consume(consumed(Message, State))
    end.

consumed({#'basic.deliver'{delivery_tag = Tag}, #amqp_msg{payload = Payload}}, State) ->
    ok = amqp_channel:cast(State#consumer.channel, #'basic.ack'{delivery_tag = Tag}),
    Id = binary_to_integer(Payload),
    Seen = maps:update_with(Id, fun(Times) -> Times + 1 end, 1, State#consumer.seen),
    State#consumer{seen = Seen};
consumed(#'basic.consume_ok'{}, State) ->
    State;
consumed(#'basic.cancel'{}, State) ->
    subscribe_again(State);
consumed({'DOWN', Monitor, process, _, _}, #consumer{connection = {_, Monitor}} = State) ->
    subscribe_again(State);
consumed(subscribe, #consumer{connection = none} = State) ->
    try subscribe(State) catch _:_ -> subscribe_again(State) end;
consumed({ask, From, Tag, stop}, #consumer{connection = Current}) ->
    _ = is_tuple(Current) andalso close(element(1, Current)),
    From ! {Tag, ok},
    exit(normal);
consumed({ask, From, Tag, counts}, State) ->
    From ! {Tag, #{consumed => maps:size(State#consumer.seen)}},
    State;
consumed({ask, From, Tag, result}, #consumer{seen = Seen} = State) ->
    Account = #{consumed => maps:size(Seen), subscriptions => State#consumer.subscriptions},
    From ! {Tag, {Account, Seen}},
    State.

subscribe_again(#consumer{connection = {Connection, Monitor}} = State) ->
    demonitor(Monitor, [flush]),
    close(Connection),
    forget_deliveries(),
    subscribe_again(State#consumer{connection = none, channel = none});
subscribe_again(#consumer{connection = none} = State) ->
    _ = erlang:send_after(?RESUBSCRIBE_AFTER_MS, self(), subscribe),
    State.

%% Not acknowledged, so they come again; their tags mean nothing to the next subscription.
forget_deliveries() ->
    receive
        {#'basic.deliver'{}, #amqp_msg{}} -> forget_deliveries();
        #'basic.cancel'{} -> forget_deliveries()
    after 0 ->
        ok
    end.

close(Connection) ->
    try amqp_connection:close(Connection) of
        _ -> ok
    catch
        exit:_ClosedAlready -> ok
    end.
