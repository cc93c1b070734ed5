%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of discovery: the processes that sources need, and the poller that asks them.
%% It runs with every overlay, because the poller also watches configured seeds.
-module(weft_discovery_sup).
-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

%% @doc Starts discovery.
-spec start_link(weft_discovery_poller:config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, Config).

%% @private
-spec init(weft_discovery_poller:config()) ->
          {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(#{sources := Sources} = Config) ->
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10},
          [#{id => {Module, Options}, start => {Module, start_link, [Options]}}
           || {_Name, Module, Options} <- Sources, has_process(Module)]
          ++ [#{id => weft_discovery_poller,
                start => {weft_discovery_poller, start_link, [Config]}}]}}.

has_process(Module) ->
    {module, Module} = code:ensure_loaded(Module),
    erlang:function_exported(Module, start_link, 1).
