%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the processes of the application weft_ops. One gathers what a scrape reports,
%% one is the agent of other nodes, one tells the agents of this node; one may tell a webhook of
%% alarms, one the library telemetry, and one may record. A listener belongs to ranch.
-module(weft_ops_parts_sup).
-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

%% The recorder may wait ten seconds for silent agents before it writes what it has.
-define(RECORDER_ENDS_MS, 15000).

-spec start_link(weft_ops_config:config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, Config).

%% @private
-spec init(weft_ops_config:config()) ->
          {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Config) ->
    {ok, {#{strategy => one_for_one, intensity => 5, period => 60},
          [#{id => weft_ops_snapshot,
             start => {weft_ops_snapshot, start_link, [Config, fun weft_status:status/1]}},
           #{id => weft_ops_webhook, start => {weft_ops_webhook, start_link, []}},
           #{id => weft_ops_telemetry, start => {weft_ops_telemetry, start_link, []}},
           #{id => weft_ops_agent, start => {weft_ops_agent, start_link, [Config]}},
           #{id => weft_ops_sampler, start => {weft_ops_sampler, start_link, [Config]}},
           #{id => weft_ops_recorder, start => {weft_ops_recorder, start_link, [Config]},
             shutdown => ?RECORDER_ENDS_MS}]}}.
