%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration that the carrier reads: keys, defaults and what values may be
%% (`weft_config').
-module(weft_carrier_keys).
-behaviour(weft_config).

-export([keys/0, tuning/0, relations/1]).

%% @doc Keys that are written directly in the configuration.
-spec keys() -> [weft_config:row()].
keys() ->
    [{channels, #{}, fun weft_value:is_any/1, "a map from names to maps of options"},
     {resume_timeout_ms, auto, weft_value:between_or(auto, 0, 86400000),
      "auto, or milliseconds, from 0 to 86400000"}].

%% @doc Keys that are written in the map `tuning'.
-spec tuning() -> [weft_config:row()].
tuning() ->
    [{window_bytes, 16777216, weft_value:between(65536, 1073741824),
      "bytes, from 65536 to 1073741824"},
     {queue_bytes, 134217728, weft_value:between(65536, 1 bsl 40), "bytes, from 65536"},
     {pins, #{}, fun weft_value:is_any/1, "a map from registered names to channels"},
     {stock_nodes, allow, weft_value:one_of([allow, deny]), "allow or deny"},
     {ports, #{}, fun is_ports/1, "a map from node name (a string, without host) to port, "
      "with the key default for all others"},
     {relay_circuits_max, 4096, weft_value:between(0, 1000000), "an integer from 0 to 1000000"},
     {relay_bytes_max, 67108864, weft_value:between(65536, 1 bsl 40), "bytes, from 65536"}].

%% @doc Channels and their options are checked together with the processes pinned to them.
-spec relations(weft_config:read()) -> [iolist()].
relations(Read) ->
    weft_channel_options:check(Read(channels), Read(pins)).

is_ports(Ports) when is_map(Ports) ->
    lists:all(fun({Name, Port}) ->
                      (Name =:= default orelse weft_value:is_text(Name))
                          andalso is_integer(Port) andalso Port > 0 andalso Port < 65536
              end, maps:to_list(Ports));
is_ports(_) ->
    false.
