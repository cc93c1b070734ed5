%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the application weft_ring: the partitions of this node, what starts them, and
%% the process that runs the ring. If that ends, keys are looked up in the last ring until it is
%% back.
-module(weft_ring_sup).
-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, Config).

%% @private
-spec init(map()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Config) ->
    {ok, {#{strategy => one_for_one, intensity => 5, period => 60},
          [#{id => weft_vnode_sup, start => {weft_vnode_sup, start_link, []}, type => supervisor},
           #{id => weft_vnodes, start => {weft_vnodes, start_link, [Config]}},
           #{id => weft_ring_server, start => {weft_ring_server, start_link, [Config]}}]}}.
