%% SPDX-License-Identifier: Apache-2.0
%% @doc Topology `pubsub': every node is a neighbour of every other, but all links go through a
%% message broker. It is for nodes that cannot dial each other.
%%
%% This module has only the part that the overlay sees: the full mesh of `weft_full_mesh_core',
%% whose seeds are the nodes that have announced themselves at the broker (notice `{seeds, Nodes}').
%% The provider (`weft_tunnel'; application `weft_amqp') makes the lanes and finds the nodes.
-module(weft_pubsub_core).
-behaviour(weft_core).
-behaviour(weft_topology).

-export([init/2, handle/3, validate/2, partial/2, neighbours/1, tunnel/0]).

-define(ANNOUNCE_MS_MIN, 100).
-define(ANNOUNCE_MS_MAX, 600000).
-define(MESSAGE_BYTES_MIN, 1024).
-define(MESSAGE_BYTES_MAX, 16777216).
-define(BROKERS_MAX, 16).

%% @doc See `weft_core'. Options: `broker' (an URL or a list of them), `announce_ms' and
%% `message_bytes', which are for the provider, and those of `weft_full_mesh_core:init/2'.
-spec init(weft_core:node_id(), weft_core:options()) -> {State :: term(), weft_core:effects()}.
init(Self, Options) ->
    weft_full_mesh_core:init(Self, Options).

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), State) -> {State, weft_core:effects()}.
handle(Event, NowMs, State) ->
    weft_full_mesh_core:handle(Event, NowMs, State).

%% @doc See `weft_topology'.
-spec neighbours(State :: term()) -> [weft_core:node_id()].
neighbours(State) ->
    weft_full_mesh_core:neighbours(State).

%% @doc See `weft_topology'. Errors: unknown option, no broker, a broker that is no URL, a value out
%% of its range. No error text contains an URL, because there is a password in it.
-spec validate(weft_core:node_id(), map()) -> ok | {error, iolist()}.
validate(_Self, Options) ->
    weft_topology_rules:first_error(
      [fun() -> weft_topology_rules:known_keys("pubsub", maps:without([broker], Options),
                                               [announce_ms, message_bytes]) end,
       fun() -> brokers(Options) end,
       fun() -> between(announce_ms, ?ANNOUNCE_MS_MIN, ?ANNOUNCE_MS_MAX, Options) end,
       fun() -> between(message_bytes, ?MESSAGE_BYTES_MIN, ?MESSAGE_BYTES_MAX, Options) end]).

brokers(#{broker := Broker}) ->
    case is_url(Broker) orelse are_urls(Broker) of
        true -> ok;
        false -> {error, ["broker of topology pubsub is no URL (and no list of up to ",
                          integer_to_list(?BROKERS_MAX), ") of a message broker: " | form()]}
    end;
brokers(_) ->
    {error, ["topology pubsub needs the URL of a message broker: " | form()]}.

form() ->
    "write broker => \"amqp://user:password@host:5672/vhost\", or amqps://".

is_url("amqp://" ++ Rest) -> io_lib:printable_unicode_list(Rest);
is_url("amqps://" ++ Rest) -> io_lib:printable_unicode_list(Rest);
is_url(_) -> false.

are_urls(Brokers) when length(Brokers) >= 1, length(Brokers) =< ?BROKERS_MAX ->
    lists:all(fun is_url/1, Brokers);
are_urls(_) ->
    false.

between(Key, Min, Max, Options) ->
    case Options of
        #{Key := Value} when not is_integer(Value); Value < Min; Value > Max ->
            {error, io_lib:format("~p of topology pubsub is ~0tp: write a number from ~b to ~b",
                                  [Key, Value, Min, Max])};
        #{} ->
            ok
    end.

%% @doc See `weft_topology'. Never partial.
-spec partial(weft_core:node_id(), map()) -> boolean().
partial(_Self, _Options) ->
    false.

%% @doc See `weft_topology'.
-spec tunnel() -> module().
tunnel() ->
    weft_amqp.
