%% SPDX-License-Identifier: Apache-2.0
%% @doc Links through a RabbitMQ broker: the provider behind the topology `pubsub' of weft.
%%
%% ```
%%  weft_link ── weft_amqp_lane ─┐                               ┌─ weft_amqp_lane ── weft_link
%%  weft_link ── weft_amqp_lane ─┤                               │
%%                               ├─ weft_amqp_outbox ══ queue of ══ weft_amqp_inbox
%%          weft_amqp_presence ──┘   (confirms)         the peer  └─ weft_amqp_presence
%% '''
%% Each lane of a link is a pair of numbered, sealed streams of messages, one to the queue of each
%% end. Everything above links, so authentication, sessions, channels and routes, is that of weft;
%% when a lane is lost, sessions go on with the next one. Nothing is persistent at the broker, and
%% nothing but the broker has to be reachable.
%%
%% The configuration is that of weft alone: `{weft, [{topology, {pubsub, #{broker => Url}}}]}'; weft
%% starts what is here when it starts. Connections between nodes therefore begin with the
%% application `weft', and not as the kernel starts.
-module(weft_amqp).
-behaviour(weft_tunnel).

-export([check/1, child_spec/1, status/0, leave/0, connect/1, send/2, try_send/2, room/1, recv/3,
         secure/3, activate/3, more/2, close/1, controlling_process/2, sent_packets/1]).

%% @doc Errors: no client library, an URL that cannot be read.
-spec check(Options :: map()) -> ok | {error, iolist()}.
check(Options) ->
    case application:ensure_all_started(amqp_client) of
        {ok, _} ->
            case weft_amqp_options:parse(Options, weft_identity:cluster()) of
                {ok, _} -> ok;
                {error, Text} -> {error, Text}
            end;
        {error, {App, Reason}} ->
            {error, io_lib:format("topology pubsub needs RabbitMQ's client amqp_client, but the "
                                  "application ~s does not start (~0p): add it to the release, "
                                  "or its directory to the code path", [App, Reason])}
    end.

%% @doc Options for which `check/1' is `ok'.
-spec child_spec(Options :: map()) -> supervisor:child_spec().
child_spec(Options) ->
    {ok, Parsed} = weft_amqp_options:parse(Options, weft_identity:cluster()),
    #{id => weft_amqp_sup, type => supervisor, start => {weft_amqp_sup, start_link, [Parsed]}}.

%% @doc state (connecting, up, blocked, waiting), broker, last_error, nodes, lanes, and messages
%% that are unconfirmed or waiting.
-spec status() -> map().
status() ->
    weft_amqp_presence:status().

%% @doc See `weft_tunnel'.
-spec leave() -> ok.
leave() ->
    weft_amqp_presence:leave().

%% @doc A lane to a node, not authenticated yet. Errors: broker_down, broker_blocked, not_at_broker
%% (the node has not announced itself, or no longer does), no_such_node (it has said that it stops).
-spec connect(node()) -> {ok, weft_tunnel:connection()} | {error, term()}.
connect(Node) ->
    case {weft_amqp_lanes:own(), weft_amqp_lanes:queue(Node)} of
        {{up, _}, {ok, gone}} -> {error, no_such_node};
        {{up, _}, error} -> {error, not_at_broker};
        {{up, Own}, {ok, Queue}} ->
            Id = weft_random:bytes(16),
            case weft_amqp_lane:start(dialer, Own#{id => Id, queue => Queue}) of
                {ok, Lane} -> {ok, weft_amqp_lane:connection(Lane)};
                {error, Reason} -> {error, Reason}
            end;
        {{blocked, _}, _} -> {error, broker_blocked};
        {down, _} -> {error, broker_down}
    end.

-spec send(weft_amqp_lane:ref(), iodata()) -> ok | {error, closed}.
send(Lane, Data) -> weft_amqp_lane:send(Lane, Data).

-spec try_send(weft_amqp_lane:ref(), iodata()) -> ok.
try_send(Lane, Data) -> weft_amqp_lane:try_send(Lane, Data).

-spec room(weft_amqp_lane:ref()) -> {ok, non_neg_integer()}.
room(Lane) -> weft_amqp_lane:room(Lane).

-spec recv(weft_amqp_lane:ref(), non_neg_integer(), timeout()) ->
          {ok, binary()} | {error, closed | timeout}.
recv(Lane, Size, TimeoutMs) -> weft_amqp_lane:recv(Lane, Size, TimeoutMs).

-spec secure(weft_amqp_lane:ref(), dialer | listener, binary()) -> ok.
secure(Lane, Role, Secret) -> weft_amqp_lane:secure(Lane, Role, Secret).

-spec activate(weft_amqp_lane:ref(), pos_integer(), pos_integer()) -> ok | {error, closed}.
activate(Lane, Packets, BytesMax) -> weft_amqp_lane:activate(Lane, Packets, BytesMax).

-spec more(weft_amqp_lane:ref(), pos_integer()) -> ok.
more(Lane, Packets) -> weft_amqp_lane:more(Lane, Packets).

-spec close(weft_amqp_lane:ref()) -> ok.
close(Lane) -> weft_amqp_lane:close(Lane).

-spec controlling_process(weft_amqp_lane:ref(), pid()) -> ok | {error, closed}.
controlling_process(Lane, Pid) -> weft_amqp_lane:controlling_process(Lane, Pid).

-spec sent_packets(weft_amqp_lane:ref()) -> non_neg_integer().
sent_packets(Lane) -> weft_amqp_lane:sent_packets(Lane).
