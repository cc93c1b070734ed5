%% SPDX-License-Identifier: Apache-2.0
%% @doc The topology of this node: checked when the application starts, changed while it runs.
%%
%% A change replaces the core of the topology and nothing else. Router, links and sessions stay;
%% the new core is told of the links that are up. Links that only the topology before wanted are
%% given up some seconds later, when the new one has its own. In a partial topology the side that
%% dialled them closes them; their sessions go on over circuits, with nothing lost.
%%
%% Into a tunnel (`pubsub') links move one by one, as soon as both ends are there. Out of it all
%% move at once: they are closed and dialled over the network, and sessions resume.
%%
%% Nodes are changed one by one, in any order: each topology ignores the messages of others. Until
%% the last one is changed there are links of both.
-module(weft_topology_change).

-export([check/0, current/0, change/1, takes_part_again/0]).

%% In that time the router of an overlay that has just started again has its name.
-define(OPEN_MS, 2000).
-define(POLL_MS, 20).

%% @doc What the overlay is to be started with according to the configuration; `none' without a
%% topology.
-spec check() -> {ok, none | weft_overlay_sup:config()} | {error, iolist()}.
check() ->
    case {weft_config:get(topology), whereis(weft_carrier_sup)} of
        {undefined, _} -> without(weft_config:get(discovery));
        {_, undefined} -> {error, no_carrier(init:get_argument(proto_dist))};
        {Topology, _} -> check(Topology)
    end.

without([]) -> {ok, none};
without([_ | _]) ->
    {error, "discovery finds the nodes of a topology, and none is configured: add one, for example "
            "{topology, full_mesh}, or remove discovery"}.

%% The kernel takes its own carrier if the flag is there more than once.
no_carrier({ok, [_, _ | _] = Given}) ->
    io_lib:format("a topology needs the carrier: -proto_dist is given ~b times (vm.args, "
                  "ERL_FLAGS, arguments of erl), and the kernel then ignores it: give it once",
                  [length(Given)]);
no_carrier(_Given) ->
    "a topology needs the carrier: start the node with -proto_dist weft and a name (vm.args)".

check(Term) ->
    case weft_topology:parse(Term) of
        {ok, Module, Options} -> check(Module, Options);
        {error, Text} -> {error, Text}
    end.

check(Module, Options) ->
    Circuits = weft_config:get(circuits),
    case weft_topology_rules:first_error(
           [fun() -> weft_topology:validate(node(), Module, Options) end,
            fun() -> weft_overlay:boot_checks(Module, Options, Circuits) end]) of
        {error, Text} -> {error, Text};
        ok ->
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

%% @doc Changes the topology of this node, and discovery to what is configured now. The
%% configuration in memory is changed too, so that a restart of the application keeps it; the file
%% that the node is started from is not touched. The errors are those that would stop the
%% application from starting with that topology; after an error nothing has changed. A tunnel cannot
%% be exchanged for another one, nor can its options be changed.
-spec change(term()) -> ok | {error, string()}.
change(Term) -> weft_one_change:run(fun() -> change_now(Term) end).

change_now(Term) ->
    case {whereis(weft_overlay_sup), check(Term)} of
        {undefined, _} ->
            {error, "no topology runs on this node: configure one and start the application weft"};
        {_, {error, Text}} ->
            {error, unicode:characters_to_list(Text)};
        {_, {ok, Overlay}} ->
            change(Term, Overlay, weft_tunnel:provider())
    end.

change(Term, #{discovery := Discovery} = Overlay, Before) ->
    case moving(Before, Overlay) of
        {error, Text} ->
            {error, Text};
        {ok, First, Last} ->
            case weft_sup:change_discovery(Discovery) of
                ok -> First(), changed(Term, Overlay), Last();
                {error, Reason} -> {error, not_started(Reason)}
            end
    end.

changed(Term, #{topology := {Module, Options}, discovery := #{seeds := Seeds}}) ->
    Running = weft_overlay:topology(),
    ok = weft_overlay_sup:change(Module, Options),
    ok = not_alone(Running),
    ok = application:set_env(weft, topology, Term),
    weft_discovery_poller:changed(Seeds).

not_started(Reason) ->
    lists:flatten(io_lib:format("a source of discovery does not start: ~0tp", [Reason])).

%% A node that had left is a member again.
not_alone({weft_alone_core, _}) -> takes_part_again();
not_alone(_Running) -> ok.

%% @doc A node that had left has a topology with others again: it may be a gateway of theirs, and
%% keeps connections with them if it did so before.
-spec takes_part_again() -> ok.
takes_part_again() ->
    ok = opened(erlang:monotonic_time(millisecond) + ?OPEN_MS),
    weft_overlay_sup:reach_again().

opened(DeadlineMs) ->
    case weft_transit:open() =:= ok orelse erlang:monotonic_time(millisecond) >= DeadlineMs of
        true -> ok;
        false -> receive after ?POLL_MS -> opened(DeadlineMs) end
    end.

%% What to do before the topology is changed, and after.
moving(none, #{tunnel := {Provider, Options}}) ->
    {ok, fun() -> weft_sup:start_tunnel(Provider, Options) end, fun() -> ok end};
moving({ok, _Provider}, #{tunnel := _}) ->
    {error, "this node is at a broker already, and its options cannot be changed while it is: "
            "change to another topology first, or put the new one into the configuration and "
            "restart the application weft"};
moving({ok, Provider}, _Overlay) ->
    {ok, fun() -> weft_tunnel:release(Provider) end, fun() -> leave(Provider) end};
moving(none, _Overlay) ->
    {ok, fun() -> ok end, fun() -> ok end}.

%% The other nodes hear at once that the lanes end, since the provider still runs.
leave(Provider) ->
    ok = Provider:leave(),
    lists:foreach(fun({Node, _}) when is_atom(Node) -> weft_links:reroute(Node, network);
                     (_Anonymous) -> ok
                  end, weft_links:list()),
    weft_sup:stop_tunnel().
