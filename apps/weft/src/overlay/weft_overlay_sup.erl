%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the overlay: owner of the view table, driver of the topology, driver of the
%% router, and with visible circuits the process that connects to every member.
%%
%% The order matters: a driver asks for its links when it starts, and what depends on another comes
%% after it. The table lives as long as this supervisor.
-module(weft_overlay_sup).
-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).
-export_type([config/0]).

-type config() :: #{topology := {module(), map()},
                    circuits => hidden | visible,
                    discovery => map(),
                    router => map(),
                    link_module => module()}.
%% `topology': as `weft_topology:parse/1' gives it. `circuits' (hidden): whether to connect to all
%% members. `discovery' is for `weft_discovery_sup'. `router': options of `weft_router_core:init/2';
%% `hop_limit' is that of the configuration. `link_module': see `weft_driver'.

%% @doc Starts the overlay of this node.
-spec start_link(config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    case supervisor:start_link({local, ?MODULE}, ?MODULE, Config) of
        {ok, Pid} -> {ok, Pid};
        {error, Reason} -> {error, Reason};
        ignore -> {error, ignore}
    end.

%% @private
-spec init(config()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(#{topology := {Topology, TopologyOptions}} = Config) ->
    ok = weft_view:new(),
    ok = weft_view:put(?MODULE, partial, Topology:partial(node(), TopologyOptions)),
    Links = maps:with([link_module], Config),
    %% Routes that no circuit may follow to their end are of no use.
    RouterOptions = maps:merge(#{hop_limit => weft_config:get(hop_limit)},
                               maps:get(router, Config, #{})),
    {ok, {#{strategy => rest_for_one, intensity => 5, period => 10},
          [driver(weft_router, weft_router_core, maps:merge(RouterOptions, Links)),
           driver(weft_topology, Topology, maps:merge(TopologyOptions, Links))
           | visible(maps:get(circuits, Config, hidden))]}}.

driver(Name, Core, Options) ->
    #{id => Name, start => {weft_driver, start_link, [Name, Core, Options]},
      modules => [weft_driver, Core]}.

visible(hidden) ->
    [];
visible(visible) ->
    [#{id => weft_visible, start => {weft_visible, start_link, [#{}]}}].
