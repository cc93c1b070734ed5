%% SPDX-License-Identifier: Apache-2.0
%% @doc Top supervisor of the application: the overlay and discovery, if a topology is configured,
%% channels and broadcast, and services. It owns the tables of views and of outlets.
%% The carrier is not here; it lives under the kernel's network supervisor (`weft_carrier_sup').
-module(weft_sup).
-behaviour(supervisor).

-export([start_link/1, start_tunnel/2, stop_tunnel/0, change_discovery/1]).
-export([init/1]).

-define(TUNNEL, weft_tunnel).

-spec start_link(none | weft_overlay_sup:config()) -> {ok, pid()} | {error, term()}.
start_link(Overlay) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, Overlay).

%% @private
-spec init(none | weft_overlay_sup:config()) ->
          {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Overlay) ->
    ok = weft_view:new(),
    ok = weft_node_outlet:new_table(),
    Children = tunnel(Overlay)
        ++ [supervised(weft_overlay_sup, [overlay(Overlay)])
            || Overlay =/= none]
        ++ [discovery(map_get(discovery, Overlay)) || Overlay =/= none]
        ++ [supervised(weft_channel_sup, []) || whereis(weft_carrier_sup) =/= undefined]
        ++ [supervised(weft_broadcast_sup, []), supervised(weft_service_sup, [])],
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10}, Children}}.

%% Reports show with what a child is started, and in the options of a topology may be a password.
%% So the overlay finds them where it finds them after a change.
overlay(#{topology := Topology} = Overlay) ->
    ok = weft_view:put(?MODULE, topology, Topology),
    (maps:without([topology, tunnel], Overlay))#{obituaries_to => [weft_sessions]}.

%% First to start and last to stop, because connections of the others may go through it.
tunnel(#{tunnel := {Provider, Options}}) -> [tunnel(Provider, Options)];
tunnel(_) -> [].

tunnel(Provider, Options) ->
    (Provider:child_spec(Options))#{id => ?TUNNEL}.

%% @doc Starts a provider of tunnels while the application runs.
-spec start_tunnel(Provider :: module(), Options :: map()) -> ok.
start_tunnel(Provider, Options) ->
    {ok, _} = supervisor:start_child(?MODULE, tunnel(Provider, Options)),
    ok.

%% @doc Stops the provider of tunnels that runs.
-spec stop_tunnel() -> ok.
stop_tunnel() ->
    ok = supervisor:terminate_child(?MODULE, ?TUNNEL),
    ok = supervisor:delete_child(?MODULE, ?TUNNEL).

discovery(Config) ->
    supervised(weft_discovery_sup, [Config]).

%% @doc From now on these sources are asked, at this interval. What other processes have named stays
%% a seed. If one of their processes does not start, those of before go on; if these do not start,
%% either, there are none until the next change.
-spec change_discovery(weft_discovery_poller:config()) -> ok | {error, term()}.
change_discovery(Config) ->
    {ok, #{start := {_, _, [Before]}}} = supervisor:get_childspec(?MODULE, weft_discovery_sup),
    case maps:remove(seeds, Before) =:= maps:remove(seeds, Config) of
        true -> ok;
        false -> replace_discovery(Config, Before, weft_discovery_poller:added())
    end.

replace_discovery(Config, Before, Added) ->
    ok = supervisor:terminate_child(?MODULE, weft_discovery_sup),
    ok = supervisor:delete_child(?MODULE, weft_discovery_sup),
    case supervisor:start_child(?MODULE, discovery(Config)) of
        {ok, _} ->
            lists:foreach(fun weft_discovery_poller:add/1, Added);
        {error, Reason} ->
            ok = discovery_again(Before),
            lists:foreach(fun weft_discovery_poller:add/1, Added),
            {error, Reason}
    end.

discovery_again(Before) ->
    case supervisor:start_child(?MODULE, discovery(Before)) of
        {ok, _} ->
            ok;
        {error, _} ->
            {ok, _} = supervisor:start_child(?MODULE, discovery(Before#{sources := []})),
            ok
    end.

supervised(Module, Args) ->
    #{id => Module, type => supervisor, start => {Module, start_link, Args}}.
