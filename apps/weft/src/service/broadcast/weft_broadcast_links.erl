%% SPDX-License-Identifier: Apache-2.0
%% @doc The links that broadcasts travel on, for `weft_driver', and how much may wait for them.
%%
%% With an overlay these are its links (`weft_links'). While too much waits for a slow neighbour it
%% gets no more; it asks other neighbours for what it lacks, or gets it by the exchange later. So a
%% slow link costs this node a bounded amount of memory, and is not closed. Without an overlay the
%% links are the connections to other nodes (`weft_own_links', with bounds of their own), and
%% `send/3' is not used.
-module(weft_broadcast_links).

-export([subscribe/2, send/3, unknown/2, connect/1, disconnect/1, break/1, is_busy/2]).

%% What may wait for a neighbour before it gets no more, or before the messages of this node wait.
-define(NEIGHBOUR_BYTES, 8388608).
-define(SENDER_BYTES, 2097152).
%% What may wait for the broadcaster, or for the inbox, before the messages of this node wait. How
%% large those in the inbox are is not known: they are taken to be as large as the one to be sent.
-define(SENDER_MESSAGES, 1000).
-define(INBOX_BYTES, 33554432).

%% @doc See `weft_links'.
-spec subscribe(weft_links:core(), pid()) -> ok.
subscribe(Core, Pid) -> (links()):subscribe(Core, Pid).

%% @doc See `weft_links'. If too much waits the message is not sent, and the result is `ok'.
-spec send(node(), weft_links:core(), term()) -> ok | {error, not_connected}.
send(Node, Core, Message) ->
    case weft_links:queued_bytes(Node) > ?NEIGHBOUR_BYTES of
        true -> ok;
        false -> (links()):send(Node, Core, Message)
    end.

%% @doc See `weft_node_links'.
-spec unknown(atom(), Data :: tuple()) -> ok.
unknown(Name, Data) -> weft_node_links:unknown(Name, Data).

%% @doc See `weft_links'.
-spec connect(node()) -> ok.
connect(Node) -> (links()):connect(Node).

%% @doc See `weft_links'.
-spec disconnect(node()) -> ok.
disconnect(Node) -> (links()):disconnect(Node).

%% @doc See `weft_links'.
-spec break(node()) -> ok.
break(Node) -> (links()):break(Node).

%% @doc Is the broadcaster, or the inbox, or are all neighbours, so far behind that this node should
%% not send a message of its own of that size?
-spec is_busy(Broadcaster :: pid(), Bytes :: non_neg_integer()) -> boolean().
is_busy(Broadcaster, Bytes) ->
    InInbox = waiting(whereis(weft_broadcast_inbox)),
    waiting(Broadcaster) > ?SENDER_MESSAGES
        orelse InInbox > ?SENDER_MESSAGES orelse InInbox * Bytes > ?INBOX_BYTES
        orelse are_busy([Node || {Node, _Cost} <- weft_overlay:neighbours()]).

waiting(undefined) ->
    0;
waiting(Pid) ->
    case process_info(Pid, message_queue_len) of
        {message_queue_len, Waiting} -> Waiting;
        undefined -> 0
    end.

are_busy([]) -> false;
are_busy(Nodes) -> lists:all(fun(N) -> weft_links:queued_bytes(N) > ?SENDER_BYTES end, Nodes).

links() ->
    case weft_config:get(topology) of
        undefined -> weft_own_links;
        _ -> weft_links
    end.
