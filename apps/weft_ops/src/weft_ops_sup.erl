%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the application weft_ops. Its only child keeps the supervisor of all other
%% processes (`weft_ops_parts_sup'), however often these end.
-module(weft_ops_sup).
-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-define(PAUSE_MS, 10000).

-spec start_link(weft_ops_config:config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, Config).

%% @private
-spec init(weft_ops_config:config()) ->
          {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(WithSecrets) ->
    %% What a supervisor starts is in its reports.
    Config = maps:remove(webhook, WithSecrets),
    Parts = {weft_ops_parts_sup, start_link, [Config]},
    {ok, {#{strategy => one_for_one, intensity => 5, period => 60},
          [#{id => weft_ops_keeper,
             start => {weft_ops_keeper, start_link, [weft_ops, Parts, ?PAUSE_MS]},
             type => supervisor, shutdown => infinity}]}}.
