%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: sending to pids, names and aliases, and the options of sending.
-module(weft_conformance_send).

-include("weft_conformance.hrl").

-export([message_to_a_pid/1, message_back_from_a_pid/1, message_to_a_registered_name/1,
         message_to_an_unregistered_name_is_dropped/1, message_to_a_dead_process_is_dropped/1,
         message_to_a_reregistered_name_reaches_the_new_process/1, message_to_an_alias/1,
         message_to_an_unaliased_alias_is_dropped/1, reply_alias_takes_one_message/1,
         monitor_alias_ends_with_demonitor/1, monitor_alias_ends_with_the_process/1,
         reply_demonitor_alias_removes_the_monitor/1, send_nosuspend_delivers/1,
         send_noconnect_delivers_when_connected/1,
         send_noconnect_to_an_unconnected_node_says_so/1,
         message_to_an_unknown_node_is_dropped/1, timers_take_no_remote_pids/1,
         timers_take_no_remote_names/1, local_timer_may_send_over_nodes_by_a_process/1,
         seq_trace_token_travels_with_a_message/1, group_leader_may_be_set_from_afar/1,
         message_to_self_by_name_and_node/1]).

-define(NOBODY, 'nobody@127.0.0.1').

message_to_a_pid(#{b := B}) ->
    Far = weft_puppet:start(B),
    Far ! {hello, self()},
    [{hello, _}] = weft_puppet:mailbox(Far).

message_back_from_a_pid(#{b := B}) ->
    Near = self(),
    spawn(B, fun() -> Near ! {from, node(), self()} end),
    Sender = ?expect({from, B, Pid}, Pid),
    B = node(Sender).

message_to_a_registered_name(#{b := B}) ->
    Far = named(B, conformance_receiver),
    {conformance_receiver, B} ! one,
    erlang:send({conformance_receiver, B}, two),
    [one, two] = weft_puppet:mailbox(Far).

message_to_an_unregistered_name_is_dropped(#{b := B}) ->
    lost = ({conformance_nobody_has_this_name, B} ! lost),
    ok = weft_puppet:sync(weft_puppet:start(B)).

message_to_a_dead_process_is_dropped(#{b := B}) ->
    {Far, Monitor} = spawn_monitor(B, fun() -> ok end),
    ?expect({'DOWN', Monitor, process, Far, normal}),
    lost = (Far ! lost),
    ok = weft_puppet:sync(weft_puppet:start(B)).

message_to_a_reregistered_name_reaches_the_new_process(#{b := B}) ->
    First = named(B, conformance_post),
    {conformance_post, B} ! for_first,
    [for_first] = weft_puppet:mailbox(First),
    weft_puppet:do(First, fun() -> unregister(conformance_post) end),
    Second = named(B, conformance_post),
    {conformance_post, B} ! for_second,
    [for_second] = weft_puppet:mailbox(Second),
    [for_first] = weft_puppet:mailbox(First).

message_to_an_alias(#{b := B}) ->
    Far = weft_puppet:start(B),
    Alias = weft_puppet:do(Far, fun() -> alias() end),
    Alias ! one,
    erlang:send(Alias, two),
    [one, two] = weft_puppet:mailbox(Far).

message_to_an_unaliased_alias_is_dropped(#{b := B}) ->
    Far = weft_puppet:start(B),
    Alias = weft_puppet:do(Far, fun() -> alias() end),
    true = weft_puppet:do(Far, fun() -> unalias(Alias) end),
    Alias ! lost,
    Far ! kept,
    [kept] = weft_puppet:mailbox(Far).

reply_alias_takes_one_message(#{b := B}) ->
    Far = weft_puppet:start(B),
    Alias = weft_puppet:do(Far, fun() -> alias([reply]) end),
    Alias ! first,
    Alias ! second,
    Far ! by_pid,
    [first, by_pid] = weft_puppet:mailbox(Far).

monitor_alias_ends_with_demonitor(#{b := B}) ->
    Far = weft_puppet:start(B),
    Alias = monitor(process, Far, [{alias, demonitor}]),
    ok = weft_puppet:do(Far, fun() -> Alias ! {kept, Alias}, ok end),
    ?expect({kept, Alias}),
    true = demonitor(Alias),
    ok = weft_puppet:do(Far, fun() -> Alias ! {lost, Alias}, ok end),
    ?refute({lost, Alias}).

monitor_alias_ends_with_the_process(#{b := B}) ->
    Far = weft_puppet:start(B),
    Other = weft_puppet:start(B),
    Alias = monitor(process, Far, [{alias, demonitor}]),
    weft_puppet:tell(Far, fun() -> exit(over) end),
    ?expect({'DOWN', Alias, process, Far, over}),
    ok = weft_puppet:do(Other, fun() -> Alias ! {lost, Alias}, ok end),
    ?refute({lost, Alias}).

reply_demonitor_alias_removes_the_monitor(#{b := B}) ->
    Far = weft_puppet:start(B),
    Other = weft_puppet:start(B),
    Alias = monitor(process, Far, [{alias, reply_demonitor}]),
    ok = weft_puppet:do(Far, fun() -> Alias ! {reply, Alias}, Alias ! {lost, Alias}, ok end),
    ?expect({reply, Alias}),
    Watch = weft_puppet:do(Other, fun() -> monitor(process, Far) end),
    weft_puppet:tell(Far, fun() -> exit(over) end),
    over = weft_puppet:do(Other, fun() -> ?expect({'DOWN', Watch, _, _, Why}, Why) end),
    Again = monitor(process, Far),
    ?expect({'DOWN', Again, process, Far, noproc}),
    ?refute({'DOWN', Alias, _, _, _}),
    ?refute({lost, Alias}).

send_nosuspend_delivers(#{b := B}) ->
    Far = weft_puppet:start(B),
    ok = erlang:send(Far, one, [nosuspend]),
    true = erlang:send_nosuspend(Far, two),
    true = erlang:send_nosuspend(Far, three, [noconnect]),
    [one, two, three] = weft_puppet:mailbox(Far).

send_noconnect_delivers_when_connected(#{b := B}) ->
    Far = weft_puppet:start(B),
    ok = erlang:send(Far, one, [noconnect]),
    [one] = weft_puppet:mailbox(Far).

send_noconnect_to_an_unconnected_node_says_so(_) ->
    noconnect = erlang:send({any_name, ?NOBODY}, lost, [noconnect]),
    noconnect = erlang:send({any_name, ?NOBODY}, lost, [noconnect, nosuspend]).

message_to_an_unknown_node_is_dropped(#{b := B}) ->
    lost = ({any_name, ?NOBODY} ! lost),
    ok = weft_puppet:sync(weft_puppet:start(B)).

timers_take_no_remote_pids(#{b := B}) ->
    Far = weft_puppet:start(B),
    ?raises(error, badarg, erlang:send_after(0, Far, tick)),
    ?raises(error, badarg, erlang:start_timer(0, Far, tick)),
    {error, badarg} = timer_result(fun() -> erlang:send_after(1, Far, tick, [{abs, true}]) end).

timers_take_no_remote_names(#{b := B}) ->
    ?raises(error, badarg, erlang:send_after(0, {any_name, B}, tick)).

local_timer_may_send_over_nodes_by_a_process(#{b := B}) ->
    Far = weft_puppet:start(B),
    Near = self(),
    weft_puppet:do(Far, fun() -> erlang:send_after(1, self(), {forward, Near}) end),
    weft_puppet:do(Far, fun() -> ?expect({forward, To}, To ! forwarded) end),
    ?expect(forwarded).

seq_trace_token_travels_with_a_message(#{b := B}) ->
    Far = weft_puppet:start(B),
    seq_trace:set_token(label, {conformance, 17}),
    Label = weft_puppet:do(Far, fun() -> seq_trace:get_token(label) end),
    seq_trace:set_token([]),
    {label, {conformance, 17}} = Label.

group_leader_may_be_set_from_afar(#{b := B}) ->
    Far = weft_puppet:start(B),
    true = group_leader(self(), Far),
    Near = self(),
    Near = weft_puppet:do(Far, fun() -> group_leader() end).

message_to_self_by_name_and_node(#{a := A}) ->
    register(conformance_self, self()),
    {conformance_self, A} ! to_myself,
    ?expect(to_myself).

named(Node, Name) ->
    Far = weft_puppet:start(Node),
    true = weft_puppet:do(Far, fun() -> register(Name, self()) end),
    Far.

timer_result(Fun) ->
    try Fun() of
        Value -> {returned, Value}
    catch
        Class:Reason -> {Class, Reason}
    end.
