%% SPDX-License-Identifier: Apache-2.0
%% @doc Delivers the broadcasts that reach this node to its subscribers, outside of the driver.
%%
%% Each message is decoded once, and only if there is a subscriber. How much may wait in the mailbox
%% of a subscriber is bounded (`weft_backlog_core'). A subscriber that is behind gets nothing until
%% it has worked off half of it; then it is told how many messages it missed. While too much waits
%% for this process (`weft_broadcast_load') messages are left out: none is decoded, and when half of
%% it is left their subscribers are told how many they missed. Subscriptions are rows of a table
%% that outlives this process.
-module(weft_broadcast_inbox).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([new_table/0, start_link/2, subscribe/2, unsubscribe/2, info/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, code_change/3]).

%% How often the mailboxes of subscribers that are behind are examined.
-define(LOOK_MS, 100).

-record(subscriber, {
    monitor :: reference(),
    backlog :: weft_backlog_core:backlog(),
    is_warned = false :: boolean(),
    %% How many messages it did not get since it is behind.
    scopes = #{} :: #{weft_broadcast:scope() => Dropped :: non_neg_integer()}}).

-record(inbox, {
    scopes = #{} :: #{weft_broadcast:scope() => #{pid() => []}},
    subscribers = #{} :: #{pid() => #subscriber{}},
    limits :: weft_backlog_core:limits(),
    is_looking = false :: boolean(),
    counts = #{sent => 0, received => 0, received_bytes => 0, delivered => 0, missed => 0,
               dropped => 0, malformed => 0} :: #{atom() => non_neg_integer()},
    load = weft_broadcast_load:new() :: weft_broadcast_load:load(),
    %% How many messages its subscribers were not offered, and have not been told of yet.
    left_out = #{} :: #{weft_broadcast:scope() => pos_integer()},
    has_left_out = false :: boolean()}).

%% @doc The table of subscriptions, owned by the calling process.
-spec new_table() -> ok.
new_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, set]),
    ok.

%% @doc Starts the inbox of the driver of that name. Limits are those of a mailbox.
-spec start_link(Driver :: atom(), weft_backlog_core:limits()) -> {ok, pid()} | {error, term()}.
start_link(Driver, Limits) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, {Driver, Limits}, []).

%% @doc See `weft_broadcast:subscribe/2'.
-spec subscribe(weft_broadcast:scope(), pid()) -> ok | {error, not_running}.
subscribe(Scope, Pid) ->
    try gen_server:call(?MODULE, {subscribe, Scope, Pid}, infinity)
    catch exit:_NotRunning -> {error, not_running}
    end.

%% @doc See `weft_broadcast:unsubscribe/2'.
-spec unsubscribe(weft_broadcast:scope(), pid()) -> ok.
unsubscribe(Scope, Pid) ->
    try gen_server:call(?MODULE, {unsubscribe, Scope, Pid}, infinity)
    catch exit:_NotRunning -> ok
    end.

%% @doc `sent' by this node, `received' (own ones included), `received_bytes', `delivered' to
%% subscribers, `dropped' (their mailboxes, or that of the inbox, were full), `missed' (gone for
%% good), `malformed', and the number of `subscribers' of each scope.
-spec info() -> #{atom() => term()}.
info() ->
    gen_server:call(?MODULE, info).

%% @private
-spec init({atom(), weft_backlog_core:limits()}) -> {ok, #inbox{}}.
init({Driver, Limits}) ->
    ok = weft_driver:subscribe(Driver, self()),
    {ok, lists:foldl(fun({{Scope, Pid}}, Inbox) -> add(Scope, Pid, Inbox) end,
                     #inbox{limits = Limits}, ets:tab2list(?MODULE))}.

%% @private
-spec handle_call(term(), gen_server:from(), #inbox{}) -> {reply, term(), #inbox{}}.
handle_call({subscribe, Scope, Pid}, _From, Inbox) ->
    true = ets:insert(?MODULE, {{Scope, Pid}}),
    {reply, ok, add(Scope, Pid, Inbox)};
handle_call({unsubscribe, Scope, Pid}, _From, Inbox) ->
    true = ets:delete(?MODULE, {Scope, Pid}),
    {reply, ok, remove(Scope, Pid, Inbox)};
handle_call(info, _From, #inbox{counts = Counts, scopes = Scopes} = Inbox) ->
    {reply, Counts#{subscribers => maps:map(fun(_, Pids) -> map_size(Pids) end, Scopes)}, Inbox};
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
-spec handle_cast(term(), #inbox{}) -> {noreply, #inbox{}}.
handle_cast(Request, Inbox) ->
    ok = weft_stray:message(Request),
    {noreply, Inbox}.

%% @private
-spec handle_info(term(), #inbox{}) -> {noreply, #inbox{}}.
handle_info({weft_notice, _, {deliver, {{From, _Incarnation}, _}, _Hops, Payload}}, Inbox) ->
    Sent = case From =:= node() of true -> 1; false -> 0 end,
    {noreply, came(From, Payload, count(#{sent => Sent, received => 1,
                                          received_bytes => byte_size(Payload)}, Inbox))};
handle_info({weft_notice, _, {missed, From, Count}}, Inbox) ->
    {noreply, missed(From, Count, Inbox)};
handle_info(look, Inbox) ->
    {noreply, look(looked(Inbox#inbox{is_looking = false}))};
handle_info({'DOWN', _Ref, process, Pid, _Reason}, #inbox{subscribers = Subscribers} = Inbox)
  when is_map_key(Pid, Subscribers) ->
    #{Pid := #subscriber{scopes = Scopes}} = Subscribers,
    true = ets:match_delete(?MODULE, {{'_', Pid}}),
    {noreply, lists:foldl(fun(Scope, I) -> remove(Scope, Pid, I) end, Inbox, maps:keys(Scopes))};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

%% @private
code_change(_Version, {inbox, Scopes, Subscribers, Limits, IsLooking, Counts}, _Extra) ->
    {ok, #inbox{scopes = Scopes, subscribers = Subscribers, limits = Limits,
                is_looking = IsLooking, counts = Counts}};
code_change(_Version, #inbox{} = Inbox, _Extra) ->
    {ok, Inbox}.

%% --- subscriptions ----------------------------------------------------------------------------

add(Scope, Pid, #inbox{scopes = Scopes, subscribers = Subscribers, limits = Limits} = Inbox) ->
    Subscriber = case Subscribers of
                     #{Pid := Known} -> Known;
                     #{} -> #subscriber{monitor = monitor(process, Pid),
                                        backlog = weft_backlog_core:new(Limits)}
                 end,
    Of = Subscriber#subscriber.scopes,
    Inbox#inbox{scopes = Scopes#{Scope => (maps:get(Scope, Scopes, #{}))#{Pid => []}},
                subscribers = Subscribers#{Pid => Subscriber#subscriber{
                                                    scopes = maps:merge(#{Scope => 0}, Of)}}}.

remove(Scope, Pid, #inbox{scopes = Scopes, subscribers = Subscribers} = Inbox) ->
    case Subscribers of
        #{Pid := #subscriber{scopes = #{Scope := _} = Of} = Subscriber} ->
            Pids = maps:remove(Pid, map_get(Scope, Scopes)),
            Inbox#inbox{scopes = put_unless_empty(Scope, Pids, Scopes),
                        subscribers = keep(Pid, Subscriber#subscriber{
                                                  scopes = maps:remove(Scope, Of)}, Subscribers)};
        #{} ->
            Inbox
    end.

put_unless_empty(Scope, Pids, Scopes) when map_size(Pids) =:= 0 -> maps:remove(Scope, Scopes);
put_unless_empty(Scope, Pids, Scopes) -> Scopes#{Scope => Pids}.

keep(Pid, #subscriber{scopes = Of, monitor = Monitor}, Subscribers) when map_size(Of) =:= 0 ->
    demonitor(Monitor, [flush]),
    maps:remove(Pid, Subscribers);
keep(Pid, Subscriber, Subscribers) ->
    Subscribers#{Pid => Subscriber}.

%% --- delivery ---------------------------------------------------------------------------------

came(From, Payload, #inbox{load = Load0} = Inbox0) ->
    {IsOver, Load} = weft_broadcast_load:came(byte_size(Payload), waiting(self()), Load0),
    Inbox = Inbox0#inbox{load = Load},
    case IsOver of
        true -> with_scope(fun(Scope, _) -> leave_out(Scope, Inbox) end, From, Payload, Inbox);
        false -> arrived(From, Payload, told(Inbox))
    end.

arrived(From, Payload, Inbox) ->
    with_scope(fun(Scope, Rest) -> deliver(Scope, From, Rest, byte_size(Payload), Inbox) end,
               From, Payload, Inbox).

%% Neighbours are authenticated, and trusted as the distribution trusts them. But they may run
%% another version.
with_scope(Do, From, <<Size:32, Encoded:Size/binary, Rest/binary>>, Inbox) ->
    try Do(binary_to_term(Encoded), Rest)
    catch error:badarg -> malformed(From, Inbox)
    end;
with_scope(_Do, From, _Payload, Inbox) ->
    malformed(From, Inbox).

deliver(Scope, From, Encoded, Bytes, #inbox{scopes = Scopes} = Inbox) ->
    case Scopes of
        #{Scope := Pids} ->
            Message = {weft_broadcast, Scope, From, binary_to_term(Encoded)},
            lists:foldl(fun(Pid, I) -> offer(Pid, Message, Bytes, I) end, Inbox, maps:keys(Pids));
        #{} ->
            Inbox
    end.

offer(Pid, {_, Scope, _, _} = Message, Bytes, #inbox{subscribers = Subscribers} = Inbox) ->
    #{Pid := #subscriber{backlog = Backlog0} = Subscriber} = Subscribers,
    {Result, Backlog} = offer_or_look(Pid, Bytes, Backlog0),
    Offered = Subscriber#subscriber{backlog = Backlog},
    case Result of
        send ->
            Pid ! Message,
            count(#{delivered => 1}, put_subscriber(Pid, Offered, Inbox));
        behind ->
            Warned = warn(Pid, Scope, Offered),
            look_later(count(#{dropped => 1}, put_subscriber(Pid, drop(Scope, 1, Warned), Inbox)))
    end.

offer_or_look(Pid, Bytes, Backlog) ->
    case weft_backlog_core:offer(Bytes, Backlog) of
        look -> weft_backlog_core:looked(waiting(Pid), Bytes, Backlog);
        Result -> Result
    end.

%% Once for each subscriber, although it may miss messages of several scopes.
warn(Pid, Scope, #subscriber{is_warned = false} = Subscriber) ->
    ?LOG_WARNING(#{weft => broadcast, subscriber => Pid, scope => Scope,
                   problem => "its mailbox is full; broadcasts are dropped until half of it is "
                              "worked off"}),
    Subscriber#subscriber{is_warned = true};
warn(_Pid, _Scope, Subscriber) ->
    Subscriber.

waiting(Pid) ->
    case process_info(Pid, message_queue_len) of
        {message_queue_len, Count} -> Count;
        undefined -> 0
    end.

drop(Scope, Count, #subscriber{scopes = Of} = Subscriber) ->
    Subscriber#subscriber{scopes = maps:update_with(Scope, fun(N) -> N + Count end, Of)}.

put_subscriber(Pid, Subscriber, #inbox{subscribers = Subscribers} = Inbox) ->
    Inbox#inbox{subscribers = Subscribers#{Pid := Subscriber}}.

%% --- messages that are left out ---------------------------------------------------------------

leave_out(Scope, #inbox{scopes = Scopes, left_out = LeftOut, has_left_out = HasBefore} = Inbox) ->
    case Scopes of
        #{Scope := Pids} ->
            _ = HasBefore orelse
                ?LOG_WARNING(#{weft => broadcast, scope => Scope,
                               problem => "broadcasts come faster than they are delivered here; "
                                          "some are left out"}),
            Count = maps:get(Scope, LeftOut, 0) + 1,
            look_later(count(#{dropped => map_size(Pids)},
                             Inbox#inbox{left_out = LeftOut#{Scope => Count},
                                         has_left_out = true}));
        #{} ->
            Inbox
    end.

%% Perhaps no message comes any more.
looked(#inbox{load = Load0} = Inbox) ->
    case weft_broadcast_load:looked(waiting(self()), Load0) of
        {true, Load} -> Inbox#inbox{load = Load};
        {false, Load} -> told(Inbox#inbox{load = Load})
    end.

%% Before they get more. Those that are behind are told with what they missed for that reason.
told(#inbox{left_out = LeftOut} = Inbox) when map_size(LeftOut) =:= 0 ->
    Inbox;
told(#inbox{left_out = LeftOut, scopes = Scopes} = Inbox) ->
    lists:foldl(fun({Scope, Pid, Count}, I) -> tell(Scope, Pid, Count, I) end,
                Inbox#inbox{left_out = #{}},
                [{Scope, Pid, Count} || {Scope, Count} <- maps:to_list(LeftOut),
                                        Pid <- maps:keys(maps:get(Scope, Scopes, #{}))]).

tell(Scope, Pid, Count, #inbox{subscribers = Subscribers} = Inbox) ->
    #{Pid := Subscriber} = Subscribers,
    case is_behind(Subscriber) of
        true -> put_subscriber(Pid, drop(Scope, Count, Subscriber), Inbox);
        false -> Pid ! {weft_broadcast_missed, Scope, mailbox_full, Count}, Inbox
    end.

%% --- those that are behind --------------------------------------------------------------------

look_later(#inbox{is_looking = true} = Inbox) ->
    Inbox;
look_later(Inbox) ->
    _ = erlang:send_after(?LOOK_MS, self(), look),
    Inbox#inbox{is_looking = true}.

look(#inbox{subscribers = Subscribers0, left_out = LeftOut} = Inbox) ->
    Subscribers = maps:map(fun look/2, Subscribers0),
    case map_size(LeftOut) > 0 orelse lists:any(fun is_behind/1, maps:values(Subscribers)) of
        true -> look_later(Inbox#inbox{subscribers = Subscribers});
        false -> Inbox#inbox{subscribers = Subscribers}
    end.

look(Pid, #subscriber{backlog = Backlog0, scopes = Of} = Subscriber) ->
    case is_behind(Subscriber) andalso weft_backlog_core:catches_up(waiting(Pid), Backlog0) of
        false ->
            Subscriber;
        {false, Backlog} ->
            Subscriber#subscriber{backlog = Backlog};
        {true, Backlog} ->
            _ = [Pid ! {weft_broadcast_missed, Scope, mailbox_full, Dropped}
                 || {Scope, Dropped} <- maps:to_list(Of), Dropped > 0],
            Subscriber#subscriber{backlog = Backlog, scopes = maps:map(fun(_, _) -> 0 end, Of)}
    end.

is_behind(#subscriber{backlog = Backlog}) ->
    weft_backlog_core:is_behind(Backlog).

%% It is not known of which scopes they were, so subscribers of all scopes are told.
missed(From, Missed, #inbox{scopes = Scopes} = Inbox) ->
    _ = [Pid ! {weft_broadcast_missed, Scope, From, Missed}
         || {Scope, Pids} <- maps:to_list(Scopes), Pid <- maps:keys(Pids)],
    count(#{missed => Missed}, Inbox).

%% Only the first one is logged; a neighbour of another version sends many.
malformed(From, #inbox{counts = #{malformed := Before}} = Inbox) ->
    _ = [?LOG_WARNING(#{weft => broadcast, from => From,
                        problem => "a message is not what this version sends"}) || Before =:= 0],
    count(#{malformed => 1}, Inbox).

count(More, #inbox{counts = Counts} = Inbox) ->
    Inbox#inbox{counts = maps:fold(fun(Key, N, Acc) -> Acc#{Key := map_get(Key, Acc) + N} end,
                                   Counts, More)}.
