%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the process with the model. The listener, and a process for each browser,
%% belong to ranch.
-module(weft_dashboard_parts_sup).
-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-spec start_link(weft_dashboard_config:config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, Config).

%% @private
-spec init(weft_dashboard_config:config()) ->
          {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Config) ->
    {ok, {#{strategy => one_for_one, intensity => 5, period => 60},
          [#{id => weft_dashboard_model, start => {weft_dashboard_model, start_link, [Config]}}]}}.
