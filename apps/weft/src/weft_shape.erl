%% SPDX-License-Identifier: Apache-2.0
%% @doc The topology of this node: checked when the application starts, changed while it runs.
%%
%% A change replaces the core of the topology and nothing else. Router, links and sessions stay;
%% the new core is told of the links that are up. Links that only the former topology wanted are
%% given up some seconds later, when the new one has its own, and in a partial topology the side
%% that dialled them closes them: their sessions go on over circuits, with nothing lost.
%%
%% Nodes are changed one by one, in any order: each topology ignores what others say. Until the
%% last one is changed there are links of both.
-module(weft_shape).

-export([check/0, current/0, change/1]).

%% @doc What the overlay is to be started with, by the configuration; `none' without a topology.
-spec check() -> {ok, none | weft_overlay_sup:config()} | {error, iolist()}.
check() ->
    case {weft_config:get(topology), whereis(weft_carrier_sup)} of
        {undefined, _} -> {ok, none};
        {_, undefined} -> {error, "a topology needs the carrier: start the node with "
                                  "-proto_dist weft and a name (vm.args)"};
        {Topology, _} -> check(Topology)
    end.

check(Term) ->
    case weft_topology:parse(Term) of
        {ok, Module, Options} -> check(Module, Options);
        {error, Text} -> {error, Text}
    end.

check(Module, Options) ->
    Circuits = weft_config:get(circuits),
    case {Module:validate(node(), Options),
          weft_overlay:boot_checks(Module, Options, Circuits)} of
        {{error, Text}, _} -> {error, Text};
        {ok, {error, Text}} -> {error, Text};
        {ok, ok} ->
            Overlay = #{topology => {Module, Options}, circuits => Circuits},
            with_tunnel(weft_topology:tunnel(Module), Module, Options, Overlay)
    end.

with_tunnel(none, Module, Options, Overlay) ->
    with_discovery(Module, Options, Overlay);
with_tunnel({ok, Provider}, Module, Options, Overlay) ->
    case code:ensure_loaded(Provider) of
        {module, Provider} ->
            case Provider:check(Options) of
                ok -> with_discovery(Module, Options, Overlay#{tunnel => {Provider, Options}});
                {error, Text} -> {error, Text}
            end;
        {error, _} ->
            {error, io_lib:format("the topology needs the application ~s, which is not on the "
                                  "code path: add it to the release", [Provider])}
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
        {{ok, []}, _, #{seeds := discovered}} ->
            {error, "seeds of the topology are to be discovered, but no source is configured: add "
                    "discovery to the options of weft, or name the seeds"};
        {{ok, Sources}, _, _} ->
            {ok, Overlay#{discovery => #{sources => Sources,
                                         seeds => weft_topology:seeds(Module, Options),
                                         interval_ms => weft_config:get(discovery_interval_ms)}}}
    end.

%% @doc The topology as it is configured now; `undefined' without one.
-spec current() -> term().
current() ->
    weft_config:get(topology).

%% @doc Changes the topology of this node. The configuration in memory follows, so that a restart of
%% the application keeps it; the file that the node is started from is not touched. Errors are
%% those that would stop the application from starting with that topology; nothing has changed then.
%% Links cannot move into a tunnel or out of it: to and from `pubsub' the application must be
%% started again.
-spec change(term()) -> ok | {error, string()}.
change(Term) ->
    case {whereis(weft_overlay_sup), check(Term)} of
        {undefined, _} ->
            {error, "no topology runs on this node: configure one and start the application weft"};
        {_, {error, Text}} ->
            {error, unicode:characters_to_list(Text)};
        {_, {ok, Overlay}} ->
            change(Term, Overlay, weft_tunnel:provider())
    end.

change(Term, #{topology := {Module, Options}, discovery := #{seeds := Seeds}} = Overlay, none)
  when not is_map_key(tunnel, Overlay) ->
    ok = weft_overlay_sup:change(Module, Options),
    ok = application:set_env(weft, topology, Term),
    weft_discovery_poller:changed(Seeds);
change(_Term, _Overlay, _Provider) ->
    {error, "links cannot move to a broker or away from it while they are up: put the new topology "
            "into the configuration and restart the application weft"}.
