%% SPDX-License-Identifier: Apache-2.0
%% @doc What you call on a node to see what weft does there: for a shell, a script or a monitor.
%%
%% Ordinary code needs none of it: it goes on using `!', `gen_server:call', `link' and the like.
%% This module has no logic; the data come from `weft_status' and `weft_trace'.
-module(weft).

-export([send/3, cast/3, call/4, pin/1, pin/2, unpin/0, unpin/1]).
-export([broadcast/2, subscribe/1, unsubscribe/1]).
-export([join/1, leave/0, leave/1]).
-export([status/0, why/1, trace/1, members/0, neighbours/0, topology/0, topology/1]).

%% @doc This node's links, sessions and routes, as one map. Costs one call per link and session.
-spec status() -> weft_status:status().
status() -> weft_status:status().

%% @doc Prints why Node is reachable from here or not: the path, its link and lanes, the session,
%% what waits in its queue and the last error. `weft_status:why/1' returns the same as data.
-spec why(node()) -> ok.
why(Node) ->
    #{text := Lines} = weft_status:why(Node),
    io:put_chars([[Line, $\n] || Line <- Lines]).

%% @doc The way from here to Node, link by link, with the round trip of each. See
%% `weft_trace:walk/3' for the result; the nodes on the way are asked by `erpc'.
-spec trace(node()) -> weft_trace:result().
trace(Node) -> weft_trace:walk(node(), Node, fun weft_trace:ask/1).

%% @doc All nodes known to belong to the cluster, this one included; [] without a topology.
-spec members() -> [node()].
members() -> weft_overlay:members().

%% @doc The topology that is configured now; `undefined' without one.
-spec topology() -> term().
topology() -> weft_topology_change:current().

%% @doc Changes the topology of this node while it runs; sessions go on. The text of an error says
%% what is wrong with the new topology; the old one stays then.
-spec topology(term()) -> ok | {error, string()}.
topology(Topology) -> weft_topology_change:change(Topology).

%% @doc The nodes that this node has a link to, with the cost of the link in microseconds.
-spec neighbours() -> [{node(), pos_integer()}].
neighbours() -> weft_overlay:neighbours().

%% --- membership (docs/guide/topologies.md) ----------------------------------------------------

%% @doc This node joins the cluster of Node, with the topology that it is configured with. Returns
%% when Node is a member with a route, which may be so already; after ten seconds at most. The text
%% of an error says why it is not: no such node, another cookie or cluster, another program, another
%% topology, a topology whose members are written in the configuration.
-spec join(node()) -> ok | {error, string()}.
join(Node) -> weft_membership_change:join(Node).

%% @doc The same as `leave(#{})'.
-spec leave() -> ok | {error, string()}.
leave() -> leave(#{}).

%% @doc With options: this node leaves its cluster and goes on alone. The others forget it; what its
%% processes have sent is delivered first, which takes `drain_ms' (5000) at most. All connections
%% with members end then. It joins again by `join/1', or when the application is started again.
%%
%% With a node: that member is gone for good, or has left and could not tell it, and no node tries
%% to reach it any more. If it is alive and has not left it comes back by itself, as a new member;
%% one that is connected is not forgotten, then.
-spec leave(weft_membership_change:leave_options() | node()) -> ok | {error, string()}.
leave(Options) when is_map(Options) -> weft_membership_change:leave(Options);
leave(Node) when Node =:= node() -> leave(#{});
leave(Node) when is_atom(Node) -> weft_membership_change:forget(Node).

%% --- channels (docs/guide/channels.md) --------------------------------------------------------

%% @doc Sends a message over a channel, in order for this process, the receiver and the channel.
%% Options: the name of a channel, or a map of channel, key (messages with the same key keep their
%% order even if they go to different receivers), ack (true, or a map of retries and timeout_ms:
%% `ok' then means that the message is in the receiver's mailbox), and label (causal order). Raises
%% an error that names an unknown channel or option. To a node without channels the message goes by
%% the distribution.
-spec send(weft_channel:dest(), term(), weft_channel:options()) -> weft_channel:result().
send(Dest, Message, Options) -> weft_channel:send(Dest, Message, Options).

%% @doc `gen_server:cast/2' over a channel.
-spec cast(weft_channel:dest(), term(), weft_channel:options()) -> weft_channel:result().
cast(Dest, Request, Options) -> weft_channel:send(Dest, {'$gen_cast', Request}, Options).

%% @doc `gen_server:call/3' over a channel; the reply comes by the distribution.
-spec call(pid() | atom() | {atom(), node()}, term(), timeout(), weft_channel:options()) -> term().
call(Dest, Request, TimeoutMs, Options) ->
    weft_channel:call(Dest, Request, TimeoutMs, Options).

%% @doc Gives all ordinary messages of the calling process the priority class of a channel.
-spec pin(Channel :: atom()) -> ok.
pin(Channel) -> pin(self(), Channel).

%% @doc The same for another process of this node, until it ends. Its code need not change. From now
%% on its messages are sent with the weight of that class. An unknown channel is an error that names
%% it.
-spec pin(pid(), Channel :: atom()) -> ok.
pin(Pid, Channel) ->
    case weft_pins:pin(Pid, Channel) of
        ok -> ok;
        {error, Reason} -> error(Reason)
    end.

-spec unpin() -> ok.
unpin() -> unpin(self()).

%% @doc Ends what `pin/2' began.
-spec unpin(pid()) -> ok.
unpin(Pid) -> weft_pins:unpin(Pid).

%% --- broadcast (docs/guide/broadcast.md) ------------------------------------------------------

%% @doc Sends a message to the subscribers of a scope, which is any term, on all nodes.
-spec broadcast(Scope :: term(), Message :: term()) -> weft_broadcast:result().
broadcast(Scope, Message) -> weft_broadcast:broadcast(Scope, Message).

%% @doc From now on the calling process gets `{weft_broadcast, Scope, FromNode, Message}' for each
%% message of the scope, and `{weft_broadcast_missed, Scope, mailbox_full | FromNode, Count}' for
%% messages that it missed.
-spec subscribe(Scope :: term()) -> ok | {error, not_running}.
subscribe(Scope) -> weft_broadcast:subscribe(Scope).

-spec unsubscribe(Scope :: term()) -> ok.
unsubscribe(Scope) -> weft_broadcast:unsubscribe(Scope).
