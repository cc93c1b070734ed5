%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of groups: the monitor of members, the driver of the core, and the processes that
%% make the topology follow the groups, start the scopes of names of groups, and keep the groups in
%% a file.
%%
%% The order matters: the monitor outlives the driver, so that subscribers need not subscribe again.
-module(weft_group_sup).
-behaviour(supervisor).

-export([start_link/0, start_driver/0]).
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => rest_for_one, intensity => 5, period => 10},
          [worker(weft_group_monitor),
           #{id => weft_groups, start => {?MODULE, start_driver, []},
             modules => [weft_driver, weft_group_gossip_core]},
           worker(weft_group_links), worker(weft_group_names)]
          ++ [worker(weft_group_file) || weft_config:get(groups_file) =/= undefined]}}.

worker(Module) ->
    #{id => Module, start => {Module, start_link, []}}.

%% @private The file is read again at each start, because it knows more than the configuration.
-spec start_driver() -> {ok, pid()} | {error, term()}.
start_driver() ->
    case weft_group_file:load(weft_config:get(groups_file)) of
        {ok, Table} ->
            Configured = maps:merge(weft_group_links:configured(), weft_config:get(groups)),
            weft_driver:start_link(weft_groups, weft_group_gossip_core,
                                   weft_services:options(#{groups => Configured,
                                                              table => Table}));
        {error, Text} ->
            {error, {weft, Text}}
    end.
