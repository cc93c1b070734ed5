%% SPDX-License-Identifier: Apache-2.0
%% @doc This node's place at the broker: keeps inbox and outbox up, announces the node, and knows
%% who else is there.
%%
%% When either connection is lost both are given up; the lanes end, and sessions wait. The next
%% attempt comes after `?RETRY_MIN_MS', later ones after twice as long up to `?RETRY_MAX_MS', at the
%% next broker of the list; after an error that will stay (a wrong password) after
%% `?RETRY_LASTING_MS'. Each kind of trouble with a broker is logged once, and shown by `status/0'
%% while it lasts.
%%
%% Other nodes become seeds of the topology as soon as they announce themselves.
-module(weft_amqp_presence).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/1, status/0, leave/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2, code_change/3]).
-export([format/1]).

-define(RETRY_MIN_MS, 200).
-define(RETRY_MAX_MS, 5000).
-define(RETRY_LASTING_MS, 15000).
-define(STATUS_MS, 2000).
-define(STOP_MS, 5000).
-define(TOLD_MAX, 20).

-record(broker, {
    brokers :: [weft_amqp_connection:params(), ...],
    exchange :: binary(),
    part_bytes :: pos_integer(),
    announce_ms :: pos_integer(),
    presence :: weft_amqp_presence_core:presence(),
    state = connecting :: connecting | up | blocked | waiting,
    inbox :: pid() | undefined,
    outbox :: pid() | undefined,
    queue :: binary() | undefined,
    is_outbox_up = false :: boolean(),
    counters :: weft_amqp_outbox:counters(),
    retry_ms = ?RETRY_MIN_MS :: pos_integer(),
    last_error :: term(),
    %% What was logged since it was last different.
    told = [] :: [term()],
    %% Links go another way: the others are not told that this node stops.
    is_leaving = false :: boolean(),
    stamp = 0 :: non_neg_integer(),
    ups = 0 :: non_neg_integer()}).

%% @doc Options as in the topology, checked by `weft_amqp_options'.
-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Options) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

%% @doc How things are, for people.
-spec status() -> map().
status() ->
    try gen_server:call(?MODULE, status, ?STATUS_MS)
    catch exit:_ -> #{state => not_running}
    end.

%% @doc From now on nobody is dialled by way of the broker, and the end of this process is not that
%% of the node.
-spec leave() -> ok.
leave() ->
    gen_server:call(?MODULE, leave).

%% @private
init(#{brokers := Brokers, exchange := Exchange, part_bytes := PartBytes,
       announce_ms := AnnounceMs}) ->
    process_flag(trap_exit, true),
    weft_amqp_lanes:set_own(down),
    weft_tunnel:use(weft_amqp),
    Presence = weft_amqp_presence_core:new(own_name(), weft_identity:incarnation()),
    {ok, connect(#broker{brokers = Brokers, exchange = Exchange, part_bytes = PartBytes,
                         announce_ms = AnnounceMs, presence = Presence,
                         counters = counters:new(2, [])})}.

%% @private
handle_call(status, _From, Broker) ->
    {reply, info(Broker), Broker};
handle_call(leave, _From, Broker) ->
    weft_amqp_lanes:set_own(down),
    {reply, ok, Broker#broker{is_leaving = true}};
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
handle_cast(Request, Broker) ->
    ok = weft_stray:message(Request),
    {noreply, Broker}.

%% @private
-spec handle_info(term(), #broker{}) -> {noreply, #broker{}}.
handle_info({weft_amqp_inbox, Inbox, {up, Queue}}, #broker{inbox = Inbox} = Broker) ->
    {noreply, is_up(Broker#broker{queue = Queue})};
handle_info({weft_amqp_outbox, Outbox, up}, #broker{outbox = Outbox} = Broker) ->
    {noreply, is_up(Broker#broker{is_outbox_up = true})};
handle_info({weft_amqp_inbox, Inbox, {announced, Announcement}}, #broker{inbox = Inbox} = Broker) ->
    {noreply, announced(Announcement, Broker)};
handle_info({weft_amqp_outbox, Outbox, {blocked, Reason}},
            #broker{outbox = Outbox, state = up} = Broker) ->
    {noreply, set_own(tell({blocked, Reason}, Broker#broker{state = blocked}))};
handle_info({weft_amqp_outbox, Outbox, unblocked},
            #broker{outbox = Outbox, state = blocked, presence = Presence} = Broker) ->
    {noreply, announce(hello, set_own(tell(unblocked, Broker#broker{
        state = up, presence = weft_amqp_presence_core:restart(now_ms(), Presence)})))};
handle_info({'EXIT', Pid, Reason}, #broker{inbox = Inbox, outbox = Outbox} = Broker)
  when Pid =:= Inbox; Pid =:= Outbox ->
    {noreply, lost(weft_amqp_connection:reason(Reason), Broker)};
handle_info({timeout, _, connect}, #broker{state = waiting} = Broker) ->
    {noreply, connect(Broker)};
handle_info({timeout, Timer, {announce, Inbox}}, #broker{inbox = Inbox} = Broker)
  when is_reference(Timer) ->
    {noreply, announce_later(tell_overlay(expire(announce(here, Broker))))};
handle_info(_OfAFormerConnection, Broker) ->
    {noreply, Broker}.

%% @private After an orderly end the others need not wait for this node. After a crash it is back at
%% once, and they are not to take it for ended.
terminate(Reason, #broker{state = State, is_leaving = IsLeaving} = Broker) ->
    weft_tunnel:release(weft_amqp),
    _ = State =:= up andalso not IsLeaving andalso is_orderly(Reason)
        andalso announce(bye, Broker),
    weft_amqp_lanes:set_own(down),
    %% What was published goes out first.
    lists:foreach(fun stop/1, connections(Broker)).

%% @private A process of the version before knew only what was logged last.
-spec code_change(term(), #broker{}, term()) -> {ok, #broker{}}.
code_change(_Version, #broker{told = Told} = Broker, _Extra) when is_list(Told) -> {ok, Broker};
code_change(_Version, Broker, _Extra) -> {ok, Broker#broker{told = []}}.

is_orderly(normal) -> true;
is_orderly(shutdown) -> true;
is_orderly({shutdown, _}) -> true;
is_orderly(_Crash) -> false.

%% --- up and down ------------------------------------------------------------------------------

connect(#broker{brokers = [Params | _], exchange = Exchange, counters = Counters} = Broker) ->
    {ok, Inbox} = weft_amqp_inbox:start_link(Params, Exchange),
    {ok, Outbox} = weft_amqp_outbox:start_link(Params, Counters),
    Broker#broker{state = connecting, inbox = Inbox, outbox = Outbox, queue = undefined,
                  is_outbox_up = false}.

is_up(#broker{queue = Queue, is_outbox_up = true, presence = Presence, ups = Ups} = Broker)
  when is_binary(Queue) ->
    announce_later(announce(hello, set_own(tell(up, Broker#broker{
        state = up, ups = Ups + 1, retry_ms = ?RETRY_MIN_MS, last_error = undefined,
        presence = weft_amqp_presence_core:restart(now_ms(), Presence)}))));
is_up(Broker) ->
    Broker.

%% Dialling is refused at once while nothing would get out.
set_own(#broker{is_leaving = true} = Broker) ->
    Broker;
set_own(#broker{state = State, queue = Queue, outbox = Outbox, part_bytes = PartBytes} = Broker) ->
    weft_amqp_lanes:set_own({State, #{own_queue => Queue, outbox => Outbox,
                                      part_bytes => PartBytes}}),
    Broker.

lost(Reason, #broker{retry_ms = RetryMs, brokers = [First | Rest]} = Broker) ->
    weft_amqp_lanes:set_own(down),
    lists:foreach(fun abandon/1, connections(Broker)),
    PauseMs = case weft_amqp_connection:is_lasting(Reason) of
                  true -> ?RETRY_LASTING_MS;
                  false -> RetryMs div 2 + rand:uniform(RetryMs)
              end,
    _ = erlang:start_timer(PauseMs, self(), connect),
    tell({lost, Reason}, Broker#broker{
        state = waiting, inbox = undefined, outbox = undefined, last_error = Reason,
        brokers = Rest ++ [First], retry_ms = min(?RETRY_MAX_MS, 2 * RetryMs)}).

connections(#broker{inbox = Inbox, outbox = Outbox}) ->
    [Pid || Pid <- [Outbox, Inbox], is_pid(Pid)].

%% One that is still opening its connection hears of it later; nobody waits.
abandon(Pid) ->
    unlink(Pid),
    exit(Pid, shutdown).

stop(Pid) ->
    unlink(Pid),
    try gen_server:stop(Pid, shutdown, ?STOP_MS)
    catch exit:_ -> exit(Pid, kill)
    end.

%% --- who is there -----------------------------------------------------------------------------

announced(_Announcement, #broker{is_leaving = true} = Broker) ->
    Broker;
announced(Announcement, #broker{queue = OwnQueue, presence = Presence0} = Broker) ->
    case weft_amqp_announce:decode(key(), Announcement) of
        {ok, #{queue := OwnQueue}} ->
            Broker;
        {ok, Heard} ->
            Presence = weft_amqp_presence_core:own(own_name(), weft_identity:incarnation(),
                                                   Presence0),
            present(weft_amqp_presence_core:heard(Heard, now_ms(), Presence), Broker);
        {error, forged} ->
            weft_refusals:report(undefined, forged),
            Broker
    end.

expire(#broker{state = up, presence = Presence} = Broker) ->
    present(weft_amqp_presence_core:expire(now_ms(), Presence), Broker);
expire(Broker) ->
    Broker.

present({Effects, Presence}, Broker0) ->
    Broker = lists:foldl(fun effect/2, Broker0#broker{presence = Presence}, Effects),
    case Effects of
        [] -> Broker;
        _ -> tell_overlay(Broker)
    end.

%% Now and then without need, since it may have started later, or again.
tell_overlay(Broker) ->
    weft_overlay:seed(others(Broker)),
    Broker.

others(#broker{presence = Presence}) ->
    [binary_to_atom(Name) || Name <- weft_amqp_presence_core:nodes(Presence)].

%% The name is of a node that knows the cookie.
effect({moved, Name, Queue}, Broker) ->
    Node = binary_to_atom(Name),
    weft_amqp_lanes:set_queue(Node, Queue),
    %% It may have been linked over the network, before it came to the broker.
    weft_links:reroute(Node, tunnel),
    Broker;
effect({gone, Name}, Broker) ->
    Node = binary_to_atom(Name),
    weft_amqp_lanes:set_queue(Node, gone),
    weft_links:break(Node),
    Broker;
effect({lost, Name}, Broker) ->
    weft_amqp_lanes:delete_queue(binary_to_atom(Name)),
    Broker;
effect({hello, Queue}, Broker) ->
    say(here, {queue, Queue}, Broker);
effect(older, Broker) ->
    tell(older, Broker);
effect(superseded, #broker{state = State} = Broker) when State =:= up; State =:= blocked ->
    lost({superseded, atom_to_list(node())}, Broker);
effect(superseded, Broker) ->
    Broker.

announce(What, #broker{exchange = Exchange} = Broker) ->
    say(What, {exchange, Exchange}, Broker).

say(What, Target, #broker{state = up, outbox = Outbox, queue = Queue} = Broker) ->
    Stamp = max(Broker#broker.stamp + 1, erlang:system_time(microsecond)),
    Announcement = weft_amqp_announce:encode(
                     key(), #{what => What, name => own_name(), queue => Queue,
                              incarnation => weft_identity:incarnation(), stamp => Stamp,
                              interval_ms => interval_ms(Broker)}),
    weft_amqp_outbox:publish(Outbox, Target, none, weft_amqp_message:announce(Announcement)),
    Broker#broker{stamp = Stamp};
say(_What, _Target, Broker) ->
    Broker.

announce_later(#broker{inbox = Inbox} = Broker) ->
    _ = erlang:start_timer(interval_ms(Broker), self(), {announce, Inbox}),
    Broker.

interval_ms(#broker{announce_ms = AnnounceMs, presence = Presence}) ->
    weft_amqp_presence_core:interval_ms(AnnounceMs, Presence).

own_name() -> atom_to_binary(node()).

key() ->
    weft_amqp_announce:key(atom_to_binary(erlang:get_cookie()), weft_identity:cluster()).

%% --- what people see --------------------------------------------------------------------------

info(#broker{brokers = [Params | _], state = State, last_error = LastError,
             counters = Counters, ups = Ups} = Broker) ->
    maps:merge(#{state => State, broker => weft_amqp_connection:place(Params), ups => Ups,
                 last_error => error_text(LastError), lanes => weft_amqp_lanes:count(),
                 announce_ms => interval_ms(Broker), nodes => others(Broker)},
               weft_amqp_outbox:counts(Counters)).

error_text(undefined) -> "none";
error_text(Reason) -> lists:flatten(io_lib:format("~ts", [weft_amqp_connection:explain(Reason)])).

%% Once for each broker, until the node is there.
tell(What, #broker{brokers = [Params | _], told = Told} = Broker) ->
    Place = weft_amqp_connection:place(Params),
    case lists:member({What, Place}, Told) of
        true ->
            Broker;
        false ->
            log(What, Place),
            Broker#broker{told = [{What, Place} | lists:sublist(still_told(What, Told), ?TOLD_MAX)]}
    end.

still_told({lost, _}, Told) -> [Lost || {{lost, _}, _} = Lost <- Told];
still_told(older, Told) -> Told;
still_told(_UpOrBlocked, _Told) -> [].

log(What, Place) ->
    Report = #{weft_amqp => What, broker => Place},
    Meta = #{report_cb => fun ?MODULE:format/1},
    case What of
        _ when What =:= up; What =:= unblocked -> ?LOG_NOTICE(Report, Meta);
        {lost, {superseded, _}} -> ?LOG_ERROR(Report, Meta);
        _ -> ?LOG_WARNING(Report, Meta)
    end.

%% @private
-spec format(map()) -> {io:format(), [term()]}.
format(#{weft_amqp := up, broker := Broker}) ->
    {"weft is at the broker ~ts", [Broker]};
format(#{weft_amqp := {blocked, Reason}, broker := Broker}) ->
    {"the broker ~ts takes no messages for now (~ts): senders wait", [Broker, Reason]};
format(#{weft_amqp := unblocked, broker := Broker}) ->
    {"the broker ~ts takes messages again", [Broker]};
format(#{weft_amqp := older, broker := Broker}) ->
    {"at the broker ~ts is another, older node called ~ts: it should give way now; give each a "
     "name of its own", [Broker, node()]};
format(#{weft_amqp := {lost, Reason}, broker := Broker}) ->
    {"weft is not at the broker ~ts, and will try again: ~ts",
     [Broker, weft_amqp_connection:explain(Reason)]}.

now_ms() -> erlang:monotonic_time(millisecond).
