%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration that links read: keys, defaults and what values may be
%% (`weft_config').
-module(weft_link_keys).
-behaviour(weft_config).

-export([keys/0, tuning/0, relations/1, idle_keepalive_ms/0]).

%% Times keepalive_ms. With defaults, a lane is pinged as often as the kernel ticks a connection. A
%% broker tells that a peer is gone only if a message is sent to it.
-define(IDLE_KEEPALIVES, 15).
-define(BROKER_IDLE_KEEPALIVES, 5).

%% @doc Keys that are written directly in the configuration.
-spec keys() -> [weft_config:row()].
keys() ->
    [{cluster_name, "default", fun weft_value:is_text/1, "a string of 1 to 255 bytes"},
     {transport, tcp, weft_value:one_of([tcp, tls]), "tcp or tls"},
     {tls_options, [], fun is_list/1, "a list of ssl options"},
     {lanes, 1, weft_value:between(1, 64), "an integer from 1 to 64"}].

%% @doc Keys that are written in the map `tuning'.
-spec tuning() -> [weft_config:row()].
tuning() ->
    [{family, inet, weft_value:one_of([inet, inet6]), "inet or inet6"},
     {keepalive_ms, 1000, weft_value:between(50, 600000), "milliseconds, from 50 to 600000"},
     {idle_keepalive_ms, auto, weft_value:between_or(auto, 0, 3600000),
      "auto, or milliseconds, from 0 to 3600000"},
     {link_timeout_ms, 5000, weft_value:between(100, 3600000),
      "milliseconds, from 100 to 3600000, and more than keepalive_ms"},
     {link_idle_ms, 60000, weft_value:between(100, 86400000), "milliseconds, from 100 to 86400000"},
     {handshake_timeout_ms, 5000, weft_value:between(100, 60000),
      "milliseconds, from 100 to 60000"},
     {pending_handshakes_max, 1024, weft_value:between(1, 65536), "an integer from 1 to 65536"},
     {faults, false, fun is_boolean/1, "true or false"}].

%% @doc The timeout must leave a link time to get an answer.
-spec relations(weft_config:read()) -> [iolist()].
relations(Read) ->
    Keepalive = Read(keepalive_ms),
    Timeout = Read(link_timeout_ms),
    case is_integer(Keepalive) andalso is_integer(Timeout) andalso Timeout =< Keepalive of
        true -> [io_lib:format("weft: link_timeout_ms (~b) must be more than keepalive_ms (~b)",
                               [Timeout, Keepalive])];
        false -> []
    end.

%% @doc How often a lane is pinged on which nothing else is sent, if that is less often than
%% keepalive_ms.
-spec idle_keepalive_ms() -> non_neg_integer().
idle_keepalive_ms() ->
    KeepaliveMs = weft_config:get(keepalive_ms),
    case {weft_config:get(idle_keepalive_ms), weft_config:get(topology)} of
        {auto, {pubsub, _}} -> ?BROKER_IDLE_KEEPALIVES * KeepaliveMs;
        {auto, _} -> ?IDLE_KEEPALIVES * KeepaliveMs;
        {Ms, _} -> Ms
    end.
