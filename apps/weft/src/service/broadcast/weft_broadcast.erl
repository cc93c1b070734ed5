%% SPDX-License-Identifier: Apache-2.0
%% @doc Broadcast: a message for the subscribers of a scope on all nodes. What callers use.
%%
%% A scope is any term. A message is encoded once, by the sender, and travels from neighbour to
%% neighbour of the overlay as a binary (`weft_plumtree_core', run by the driver registered under
%% the name of this module). Without an overlay it travels from node to connected node. On each node
%% `weft_broadcast_inbox' decodes it, if a process there has subscribed, and delivers it.
%%
%% Guarantee: each subscriber on each node that is connected, over any number of neighbours, gets
%% each message once, whichever nodes fail on the way. A node that is cut off for less than
%% `keep_ms' gets what it missed when it is back. There is no order among messages. Bounds:
%% `message_bytes'; what is kept; what waits for a neighbour, for this node's broadcaster and inbox,
%% and in the mailbox of a subscriber. A sender that is too fast waits, then gets `busy'.
-module(weft_broadcast).

-export([broadcast/2, subscribe/1, subscribe/2, unsubscribe/1, unsubscribe/2, info/0]).
-export_type([scope/0, message/0, result/0]).

-type scope() :: term().

%% What a subscriber gets. `From': the node of the sender. `missed': Count messages of this scope
%% were dropped because the subscriber's mailbox was full, or that of this node's inbox, or Count
%% messages of a node, of whatever scope, were lost.
-type message() :: {weft_broadcast, scope(), From :: node(), Message :: term()}
                 | {weft_broadcast_missed, scope(), mailbox_full | node(), Count :: pos_integer()}.

-type result() :: ok | {error, {too_large, Bytes :: pos_integer(), MaxBytes :: pos_integer()}
                             | busy | not_running}.

%% A message was accepted if it is on its way within this time.
-define(BUSY_MS, 5000).
-define(LOOK_MS, 5).

%% @doc Sends a message to the subscribers of the scope on all nodes, this one included. `ok': it is
%% on its way. `busy': for 5 seconds there was no room for it.
-spec broadcast(scope(), Message :: term()) -> result().
broadcast(Scope, Message) ->
    Payload = encode(Scope, Message),
    #{message_bytes := Max} = weft_broadcast_options:all(weft_config:get(broadcast)),
    case {byte_size(Payload), whereis(?MODULE)} of
        {Bytes, _} when Bytes > Max -> {error, {too_large, Bytes, Max}};
        {_, undefined} -> {error, not_running};
        {_, Broadcaster} -> send(Payload, Broadcaster, now_ms() + ?BUSY_MS)
    end.

%% The scope has a length of its own, so that a node without subscribers need not decode the rest.
encode(Scope, Message) ->
    Encoded = term_to_binary(Scope),
    <<(byte_size(Encoded)):32, Encoded/binary, (term_to_binary(Message))/binary>>.

%% The sender is slowed by this node's broadcaster and inbox: the messages of all nodes pass them.
send(Payload, Broadcaster, Deadline) ->
    case weft_broadcast_links:is_busy(Broadcaster, byte_size(Payload)) of
        false ->
            command(Payload);
        true ->
            case now_ms() < Deadline of
                true -> receive after ?LOOK_MS -> send(Payload, Broadcaster, Deadline) end;
                false -> {error, busy}
            end
    end.

command(Payload) ->
    try weft_driver:command(?MODULE, {broadcast, Payload}) of
        {ok, _Id} -> ok
    catch
        exit:{timeout, _} -> {error, busy};
        exit:_Ended -> {error, not_running}
    end.

%% @doc The calling process gets the messages of the scope from now on, as `message()'.
-spec subscribe(scope()) -> ok | {error, not_running}.
subscribe(Scope) -> subscribe(Scope, self()).

%% @doc The same for another process of this node. It is subscribed once, however often this is
%% called, until it ends or unsubscribes.
-spec subscribe(scope(), pid()) -> ok | {error, not_running}.
subscribe(Scope, Pid) when is_pid(Pid), node(Pid) =:= node() ->
    weft_broadcast_inbox:subscribe(Scope, Pid).

%% @doc The calling process gets no more messages of the scope, except those in its mailbox.
-spec unsubscribe(scope()) -> ok.
unsubscribe(Scope) -> unsubscribe(Scope, self()).

%% @doc The same for another process.
-spec unsubscribe(scope(), pid()) -> ok.
unsubscribe(Scope, Pid) -> weft_broadcast_inbox:unsubscribe(Scope, Pid).

%% @doc Figures of this node's broadcaster: see `weft_broadcast_inbox:info/0'; `mailbox_drops':
%% messages of neighbours that came too fast; `tree': see `weft_plumtree_core:info()'. Empty when it
%% does not run.
-spec info() -> #{atom() => term()}.
info() ->
    try (weft_broadcast_inbox:info())#{mailbox_drops => weft_driver:drops(?MODULE),
                                       tree => weft_driver:command(?MODULE, info)}
    catch exit:_NotRunning -> #{}
    end.

now_ms() -> erlang:monotonic_time(millisecond).
