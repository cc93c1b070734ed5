%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the overlay. Its children are a watch that has all others started again when
%% the links were, the drivers of router, topology and obituaries, and with visible circuits the
%% process that connects to every member.
%%
%% The order matters: a driver asks for its links when it starts, and a child that depends on
%% another comes after it.
-module(weft_overlay_sup).
-behaviour(supervisor).

-export([start_link/1, start_topology/1, change/2, reach_members/0, unreach_members/0,
         reach_again/0]).
-export([init/1, start_router/1]).
-export_type([config/0]).

-define(AGAIN_MS, 5000).
-define(POLL_MS, 10).

-type config() :: #{topology => {module(), map()},
                    circuits => hidden | visible,
                    discovery => map(),
                    tunnel => {module(), map()},
                    router => map(),
                    obituaries_to => [atom()],
                    link_module => module()}.
%% `topology': as `weft_topology:parse/1' gives it, unless it is in the view. `circuits' (hidden):
%% whether to connect to all members. `discovery' is for `weft_discovery_sup', `tunnel' for
%% `weft_sup'. `router': options of `weft_router_core:init/2'; its `hop_limit' comes from the
%% configuration. `obituaries_to' ([]): names of processes that get the notices of
%% `weft_obituary_core'. `link_module': see `weft_driver'.

%% @doc Starts the overlay of this node.
-spec start_link(config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, Config).

%% @private What ran before, if it is started again: the topology may have been changed, or the node
%% may have left.
-spec init(config()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Config) ->
    ok = weft_view:new(),
    {Topology, TopologyOptions} = case weft_view:lookup(topology) of
                                      undefined -> map_get(topology, Config);
                                      Before -> Before
                                  end,
    ok = set(Topology, TopologyOptions),
    Links = maps:with([link_module], Config),
    %% A route that is longer than a circuit may be is of no use.
    RouterOptions = maps:merge(#{hop_limit => weft_config:get(hop_limit)},
                               maps:get(router, Config, #{})),
    {ok, {#{strategy => rest_for_one, intensity => 5, period => 10},
          [weft_links_watch:child_spec(weft_overlay_watch),
           #{id => weft_router,
             start => {?MODULE, start_router, [maps:merge(RouterOptions, Links)]},
            modules => [weft_driver, weft_router_core]},
           #{id => weft_topology, start => {?MODULE, start_topology, [Links]},
             modules => [weft_driver]},
           driver(weft_obituary, weft_obituary_core,
                  Links#{tells => maps:get(obituaries_to, Config, [])})
           | visible(case weft_view:lookup(reaches_members) of
                         true -> visible;
                         undefined -> maps:get(circuits, Config, hidden)
                     end)]}}.

%% Writes what runs now, for a driver that is started again.
set(Topology, Options) ->
    ok = weft_view:put(?MODULE, has_asked, false),
    ok = weft_view:put(?MODULE, partial, Topology:partial(node(), Options)),
    ok = weft_view:put(?MODULE, topology, {Topology, Options}),
    ok = weft_view:put(?MODULE, topology_since_ms, erlang:monotonic_time(millisecond)),
    weft_view:put(?MODULE, lists_members, not weft_topology:decides_neighbours(Topology)).

decide(Topology, Links) ->
    Links:admitting(case weft_topology:decides_neighbours(Topology) of
                        true -> weft_topology;
                        false -> none
                    end).

%% @private What `weft_transit' has closed stays so.
-spec start_router(map()) -> {ok, pid()} | {error, term()}.
start_router(Options) ->
    IsClosed = weft_view:lookup(transit) =:= closed,
    weft_driver:start_link(weft_router, weft_router_core,
                           maps:merge(Options, maps:from_list([{relay, false} || IsClosed]))).

%% @private
-spec start_topology(map()) -> {ok, pid()} | {error, term()}.
start_topology(Links) ->
    {Topology, Options} = weft_view:lookup(topology),
    case decide(Topology, maps:get(link_module, Links, weft_links)) of
        ok -> {Core, CoreOptions} = weft_topology:core(Topology, Options),
              Asked = #{asked => weft_links:all_wanted()},
              has_asked(weft_driver:start_link(weft_topology, Core,
                                               maps:merge(CoreOptions, maps:merge(Asked, Links))));
        {error, Reason} -> {error, Reason}
    end.

has_asked({error, _} = Error) ->
    Error;
has_asked(Began) ->
    ok = weft_view:put(?MODULE, has_asked, true),
    Began.

%% @doc Changes the topology that runs. It starts with the members known so far. A node that has
%% left, and gets a topology again, is another member than it was. A core that does not answer,
%% which may be one of the user's, is ended, and the new one starts without those members.
-spec change(Topology :: module(), Options :: map()) -> ok.
change(Topology, Options0) ->
    Options = case weft_overlay:topology() of
                  {weft_alone_core, _} -> Options0#{incarnation => weft_random:distinct()};
                  _ -> Options0
              end,
    Known = weft_overlay:members() -- [node()],
    ok = set(Topology, Options),
    ok = decide(Topology, weft_links),
    {Core, CoreOptions} = weft_topology:core(Topology, Options),
    try has_asked(weft_driver:change(weft_topology, Core, CoreOptions#{known => Known}))
    catch exit:_NoAnswer -> ended(whereis(weft_topology))
    end.

ended(undefined) ->
    ok;
ended(Driver) ->
    true = exit(Driver, kill),
    again(Driver, erlang:monotonic_time(millisecond) + ?AGAIN_MS).

%% Its supervisor does it; what is written is what starts.
again(Before, Deadline) ->
    case {whereis(weft_topology), erlang:monotonic_time(millisecond) < Deadline} of
        {Now, _} when is_pid(Now), Now =/= Before -> ok;
        {_, false} -> ok;
        {_, true} -> receive after ?POLL_MS -> again(Before, Deadline) end
    end.

%% @doc From now on keeps a distribution connection to every member, as with visible circuits.
%% Services of the whole cluster need it. Does nothing without an overlay, or in a full mesh. While
%% the overlay starts again it is done by that.
-spec reach_members() -> ok.
reach_members() ->
    case whereis(weft_visible) =:= undefined andalso weft_overlay:is_partial() of
        true ->
            ok = weft_view:put(?MODULE, reaches_members, true),
            [Child] = visible(visible),
            _ = try supervisor:start_child(?MODULE, Child) catch exit:_NoOverlay -> ok end,
            ok;
        false ->
            ok
    end.

%% @doc No longer does so for now.
-spec unreach_members() -> ok.
unreach_members() ->
    _ = supervisor:terminate_child(?MODULE, weft_visible),
    ok.

%% @doc Does so again, if it did before `unreach_members/0'.
-spec reach_again() -> ok.
reach_again() ->
    _ = supervisor:restart_child(?MODULE, weft_visible),
    ok.

driver(Name, Core, Options) ->
    #{id => Name, start => {weft_driver, start_link, [Name, Core, Options]},
      modules => [weft_driver, Core]}.

visible(hidden) ->
    [];
visible(visible) ->
    [#{id => weft_visible, start => {weft_visible, start_link, [#{}]}}].
