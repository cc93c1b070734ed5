%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the application weft_dashboard. Its only child keeps the supervisor of its
%% process (`weft_dashboard_parts_sup'), however often that ends (`weft_ops_keeper').
-module(weft_dashboard_sup).
-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-define(PAUSE_MS, 10000).

-spec start_link(weft_dashboard_config:config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, Config).

%% @private
-spec init(weft_dashboard_config:config()) ->
          {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Config) ->
    Parts = {weft_dashboard_parts_sup, start_link, [Config]},
    {ok, {#{strategy => one_for_one, intensity => 5, period => 60},
          [#{id => weft_ops_keeper,
             start => {weft_ops_keeper, start_link, [weft_dashboard, Parts, ?PAUSE_MS]},
             type => supervisor, shutdown => infinity}]}}.
