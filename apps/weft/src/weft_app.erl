%% SPDX-License-Identifier: Apache-2.0
%% @doc The application `weft': checks the configuration and starts the overlay if there is a
%% topology. The carrier itself starts with the kernel (`-proto_dist weft'), without this.
-module(weft_app).
-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case check() of
        {ok, Overlay} -> weft_sup:start_link(Overlay);
        {error, Text} -> {error, {weft, unicode:characters_to_list(Text)}}
    end.

%% @private
-spec stop(term()) -> ok.
stop(_State) -> ok.

check() ->
    case {weft_config:check(), weft_config:get(topology), whereis(weft_carrier_sup)} of
        {{error, Text}, _, _} -> {error, Text};
        {ok, undefined, _} -> {ok, none};
        {ok, _, undefined} -> {error, "a topology needs the carrier: start the node with "
                                      "-proto_dist weft and a name (vm.args)"};
        {ok, Topology, _} -> check_topology(Topology)
    end.

check_topology(Term) ->
    case weft_topology:parse(Term) of
        {ok, Module, Options} -> check_node(Module, Options);
        {error, Text} -> {error, Text}
    end.

check_node(Module, Options) ->
    Circuits = weft_config:get(circuits),
    case {Module:validate(node(), Options),
          weft_overlay:boot_checks(Module, Options, Circuits)} of
        {{error, Text}, _} -> {error, Text};
        {ok, {error, Text}} -> {error, Text};
        {ok, ok} -> with_discovery(Module, Options, #{topology => {Module, Options},
                                                      circuits => Circuits})
    end.

with_discovery(Module, Options, Overlay) ->
    case {weft_discovery_options:parse(weft_config:get(discovery)),
          weft_topology:finds_members(Module), Options} of
        {{error, Text}, _, _} ->
            {error, Text};
        {{ok, [_ | _]}, false, _} ->
            {error, "discovery is for topologies that find their members (full_mesh, "
                    "client_server, peer_to_peer): remove it, or choose one of these"};
        {{ok, []}, _, #{servers := discovered}} ->
            {error, "servers of topology client_server are to be discovered, but no source is "
                    "configured: add discovery to the options of weft, or name the servers"};
        {{ok, Sources}, _, _} ->
            {ok, Overlay#{discovery => #{sources => Sources,
                                         seeds => weft_topology:seeds(Module, Options),
                                         interval_ms => weft_config:get(discovery_interval_ms)}}}
    end.
