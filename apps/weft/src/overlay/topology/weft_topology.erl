%% SPDX-License-Identifier: Apache-2.0
%% @doc A topology says which nodes should be neighbours of this one now. It is a core (`weft_core')
%% that asks for links by `connect' and `disconnect', and shows the members of the cluster as views
%% `{member, Node}'. Everything else (routes, circuits, services) follows from the links that are
%% up.
%%
%% In the configuration a topology is a term, the same on every node (except for the role of a
%% node):
%% ```
%% full_mesh
%% {full_mesh, #{seeds => [node()], detector => ticks | swim}}
%% {static, #{links => [{NodeA, NodeB}, ...]}}
%% {groups, #{GroupName => [node()], ...}}
%% {client_server, #{role => client | server, servers => [node()], links => 1..16}}
%% {peer_to_peer, #{seeds => [node()], active => 2..100, passive => active..10000,
%%                   optimise => none | rtt}}
%% {pubsub, #{broker => "amqp://user:password@host:port/vhost" | [URL, ...]}}
%% {Module, #{...}}
%% '''
%% The last one is a module that is not part of weft, with this behaviour and that of `weft_core';
%% `weft_own_topology_core' runs it. What its author may rely on is in docs/guide/topologies.md.
-module(weft_topology).

-export([parse/1, core/2, validate/2, validate/3, finds_members/1, decides_neighbours/1, seeds/2,
         tunnel/1, without_secrets/1]).

%% The options are well formed and make sense on node Self.
-callback validate(Self :: weft_core:node_id(), Options :: map()) -> ok | {error, iolist()}.
%% Whether some members are not neighbours of each other, so that circuits are needed.
-callback partial(Self :: weft_core:node_id(), Options :: map()) -> boolean().
%% The nodes that the core in this state wants to be linked to.
-callback neighbours(State :: term()) -> [weft_core:node_id()].
%% The nodes in the options that are dialled first. Only for topologies that find their members.
%% These take the notice `{seeds, [node()]}', the list of further seeds. It replaces the list
%% before; a seed that is missing in it and has become a member stays one.
-callback seeds(Options :: map()) -> [weft_core:node_id()].
%% The provider of the tunnel that all links go through (`weft_tunnel'); it gets the options too.
-callback tunnel() -> module().
%% Whether some links are not to be used by other cores; the effect `neighbour' says which may be.
%% Such a topology shows no views of members except itself: the nodes with a route are the members.
-callback decides_neighbours() -> boolean().
-optional_callbacks([decides_neighbours/0, seeds/1, tunnel/0]).

%% @doc Turns the configured term into the core that runs it and the options of that core. Only the
%% outer form is checked; `validate/2' checks the rest.
-spec parse(term()) -> {ok, module(), map()} | {error, iolist()}.
parse(full_mesh) ->
    {ok, weft_full_mesh_core, #{}};
parse({full_mesh, #{detector := swim} = Options}) ->
    {ok, weft_swim_mesh_core, Options};
parse({full_mesh, Options}) when is_map(Options) ->
    {ok, weft_full_mesh_core, Options};
parse({static, Options}) when is_map(Options) ->
    {ok, weft_static_core, Options};
parse({groups, Groups}) when is_map(Groups) ->
    {ok, weft_groups_core, #{groups => Groups}};
parse({client_server, Options}) when is_map(Options) ->
    {ok, weft_client_server_core, Options};
parse({peer_to_peer, Options}) when is_map(Options) ->
    {ok, weft_peer_to_peer_core, Options};
parse({pubsub, Options}) when is_map(Options) ->
    {ok, weft_pubsub_core, Options};
parse({Module, Options}) when is_atom(Module), is_map(Options), Module =/= weft_alone_core ->
    own(Module, Options);
parse(Other) ->
    {error, no_topology(without_secrets(Other), is_tuple(Other) andalso tuple_size(Other) =:= 2
                                   andalso lists:keyfind(element(1, Other), 1, forms()))}.

own(Module, Options) ->
    case code:ensure_loaded(Module) of
        {module, Module} ->
            case [io_lib:format("~0tp/~b", [Function, Arity])
                  || {Function, Arity} <- [{init, 2}, {handle, 3}, {validate, 2}, {partial, 2},
                                           {neighbours, 1}],
                     not erlang:function_exported(Module, Function, Arity)] of
                [] ->
                    {ok, Module, Options};
                Missing ->
                    {error, io_lib:format("module ~0tp is no topology: it has to export ~ts (see "
                                          "the behaviours weft_core and weft_topology)",
                                          [Module, lists:join(", ", Missing)])}
            end;
        {error, _} ->
            {error, [no_topology(Module, false),
                     io_lib:format(" or {Module, #{...}}; there is no module ~0tp on the code path",
                                   [Module])]}
    end.

no_topology({Name, Options}, {Name, Form}) ->
    io_lib:format("options of topology ~0tp are ~0tp: write ~ts", [Name, Options, Form]);
no_topology(Other, false) ->
    io_lib:format("~0tp is no topology: write full_mesh or ~ts",
                  [Other, lists:join(" or ", [Form || {_, Form} <- forms()])]).

%% @doc Parses and validates in one step, for a check of the configuration on node Self.
-spec validate(weft_core:node_id(), term()) -> ok | {error, iolist()}.
validate(Self, Term) ->
    case parse(Term) of
        {ok, Module, Options} -> validate(Self, Module, Options);
        {error, _} = Error -> Error
    end.

%% @doc The same for a topology that was parsed.
-spec validate(weft_core:node_id(), module(), Options :: map()) -> ok | {error, iolist()}.
validate(Self, Module, Options) ->
    case is_own(Module) of
        true -> weft_own_topology_core:check(Self, Module, Options);
        false -> Module:validate(Self, Options)
    end.

%% @doc What `weft_driver' runs for a topology that was parsed. One that is not part of weft is run
%% by another core.
-spec core(module(), Options :: map()) -> {module(), map()}.
core(Module, Options) ->
    case is_own(Module) of
        true -> {weft_own_topology_core, (maps:with([incarnation], Options))#{
                    own => {Module, maps:remove(incarnation, Options)}}};
        false -> {Module, Options}
    end.

is_own(Module) ->
    not lists:member(Module, [weft_full_mesh_core, weft_swim_mesh_core, weft_static_core,
                              weft_groups_core, weft_client_server_core, weft_peer_to_peer_core,
                              weft_pubsub_core, weft_alone_core]).

%% @doc Whether a topology finds its members by seeds, and not in a written list.
-spec finds_members(module()) -> boolean().
finds_members(Module) ->
    has(seeds, 1, Module).

has(Function, Arity, Module) ->
    {module, Module} = code:ensure_loaded(Module),
    erlang:function_exported(Module, Function, Arity).

%% @doc The provider of the tunnel that all links of the topology go through.
-spec tunnel(module()) -> {ok, module()} | none.
tunnel(Module) ->
    case has(tunnel, 0, Module) of
        true -> {ok, Module:tunnel()};
        false -> none
    end.

%% @doc The configured term as it may be shown: without the URL of a broker, which contains a
%% password.
-spec without_secrets(term()) -> term().
without_secrets({pubsub, #{broker := _} = Options}) ->
    {pubsub, Options#{broker := "..."}};
without_secrets({pubsub, Other}) when not is_map(Other) ->
    {pubsub, "..."};
without_secrets(Term) ->
    Term.

%% @doc Whether the topology says of each link if other cores are to use it.
-spec decides_neighbours(module()) -> boolean().
decides_neighbours(Module) ->
    {module, Module} = code:ensure_loaded(Module),
    erlang:function_exported(Module, decides_neighbours, 0) andalso Module:decides_neighbours().

%% @doc The nodes that are dialled first; none if the topology is a written list.
-spec seeds(module(), Options :: map()) -> [weft_core:node_id()].
seeds(Module, Options) ->
    case finds_members(Module) of
        true -> Module:seeds(Options);
        false -> []
    end.

forms() ->
    [{full_mesh, "{full_mesh, #{seeds => ['name@host', ...]}}"},
     {static, "{static, #{links => [{'name1@host', 'name2@host'}, ...]}}"},
     {groups, "{groups, #{GroupName => ['name@host', ...]}}"},
     {client_server, "{client_server, #{role => client, servers => ['name@host', ...]}}"},
     {peer_to_peer, "{peer_to_peer, #{seeds => ['name@host', ...]}}"},
     {pubsub, "{pubsub, #{broker => \"amqp://user:password@host:5672/vhost\"}}"}].
