%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the services that run on ordinary distribution (`weft_node_links'): one child
%% each, independent of one another. Those that are started later come by `weft_services', which
%% also knows them when this supervisor is started again.
%%
%% A service of the whole cluster asks for a connection to every member when it is first used
%% (`weft_overlay_sup:reach_members/0'). If the topology is partial and circuits are made on demand,
%% they are made then and kept.
-module(weft_service_sup).
-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    ok = weft_suspension:new(),
    Children = children(),
    Ids = [Id || #{id := Id} <- Children],
    Added = [Child || #{id := Id} = Child <- weft_services:added(), not lists:member(Id, Ids)],
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10}, Children ++ Added}}.

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
