%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the services that run on ordinary distribution (`weft_node_links'): one child
%% each, independent of one another.
%%
%% A service of the whole cluster asks for a connection to every member
%% (`weft_overlay_sup:reach_members/0') when it is first used: where the topology is partial and
%% circuits are made on demand, they are made then and kept.
-module(weft_service_sup).
-behaviour(supervisor).

-export([start_link/0, start/1, stop/1, options/1]).
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @doc Options for `weft_driver:start_link/3', completed with what all services have in common.
-spec options(map()) -> map().
options(Options) ->
    maps:merge(#{link_module => weft_node_links, incarnation => erlang:system_time(microsecond)},
               Options).

%% @doc Starts a child, or finds it started. `not_started' if the application does not run.
-spec start(supervisor:child_spec()) -> {ok, pid()} | {error, term()}.
start(Child) ->
    try supervisor:start_child(?MODULE, Child) of
        {ok, Pid} -> {ok, Pid};
        {error, {already_started, Pid}} -> {ok, Pid};
        {error, Reason} -> {error, Reason}
    catch
        exit:_NoSupervisor -> {error, not_started}
    end.

%% @doc Ends a child that was started with start/1.
-spec stop(Id :: term()) -> ok.
stop(Id) ->
    try
        _ = supervisor:terminate_child(?MODULE, Id),
        _ = supervisor:delete_child(?MODULE, Id),
        ok
    catch
        exit:_NoSupervisor -> ok
    end.

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    ok = weft_suspension:new(),
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10}, children()}}.

%% One line for each service.
children() ->
    weft_names:children() ++
    [weft_pg:child_spec(weft_pg),
     weft_global:child_spec(),
     weft_global_late:child_spec(),
     weft_partition_applications:child_spec(),
     weft_partition:child_spec(),
     #{id => weft_attributes, start => {weft_attributes, start_link, []}},
     #{id => weft_group_sup, type => supervisor, start => {weft_group_sup, start_link, []}}].
