%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the application weft_kv: what compares replicas, what drops those that are too
%% many, and the replicas of strong buckets, with what sees whether they stand still. The partitions
%% of other buckets are not below it: they belong to the ring, and hand their data over also while
%% this application is not started.
-module(weft_kv_sup).
-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, Config).

%% @private
-spec init(map()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(#{coordinators := How} = Config) ->
    ok = weft_kv_stats:new(),
    ok = weft_kv_hints_turns:new(),
    {ok, {#{strategy => one_for_one, intensity => 5, period => 60},
          [#{id => weft_kv_request_sup, type => supervisor,
             start => {weft_kv_request_sup, start_link, []}} || How =:= one_supervisor]
          ++ [#{id => weft_kv_entropy, start => {weft_kv_entropy, start_link, [Config]}},
              #{id => weft_kv_left_over, start => {weft_kv_left_over, start_link, [Config]}},
              %% Before the replicas: a disk may hang while they open their files.
              #{id => weft_kv_strong_stalled,
                start => {weft_kv_strong_stalled, start_link, [map_get(buckets, Config)]}},
              #{id => weft_kv_strong_sup, type => supervisor,
                start => {weft_kv_strong_sup, start_link, [map_get(buckets, Config)]}}]}}.
