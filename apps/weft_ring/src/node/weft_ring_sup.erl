%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the application weft_ring: the locks of its directories, and behind them what
%% uses these, under a supervisor of its own: the partitions of this node, what starts them, and the
%% process that runs the ring. If that ends, keys are looked up in the last ring until it is back.
%% What it keeps without a directory is in a table of this supervisor.
%%
%% If a lock ends, another node may have had the directory meanwhile. Then all that is behind the
%% locks starts again, and reads its files again.
-module(weft_ring_sup).
-behaviour(supervisor).

-export([start_link/1, start_behind/1]).
-export([init/1]).

-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, {locks, Config}).

%% @private
-spec start_behind(map()) -> {ok, pid()} | {error, term()}.
start_behind(Config) ->
    weft_supervisor:start_link({local, weft_ring_locked_sup}, ?MODULE, {behind, Config}).

%% @private
-spec init({locks | behind, map()}) ->
          {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({locks, Config}) ->
    ok = weft_ring_file:in_memory(),
    {ok, {#{strategy => rest_for_one, intensity => 5, period => 60},
          [#{id => {lock, Purpose}, start => {weft_directory_lock, start_link, [Dir, Purpose]}}
           || {Purpose, Dir} <- directories(Config)] ++
          [#{id => behind, start => {?MODULE, start_behind, [Config]}, type => supervisor}]}};
init({behind, Config}) ->
    {ok, {#{strategy => one_for_one, intensity => 5, period => 60},
          [#{id => weft_vnode_sup, start => {weft_vnode_sup, start_link, []}, type => supervisor},
           #{id => weft_vnode_stalled, start => {weft_vnode_stalled, start_link, [Config]}},
           #{id => weft_vnode_watch, start => {weft_vnode_watch, start_link, []}},
           #{id => weft_vnodes, start => {weft_vnodes, start_link, [Config]}},
           #{id => weft_ring_server, start => {weft_ring_server, start_link, [Config]}}]}}.

%% What belongs to this node alone.
directories(#{dir := Dir, vnodes := Vnodes}) ->
    [{Purpose, Own} || {Purpose, Own} <- [{weft_ring, Dir}
                                          | [{Module, weft_vnode:directory(Module, Options)}
                                             || {Module, Options} <- Vnodes]],
                       Own =/= none].
