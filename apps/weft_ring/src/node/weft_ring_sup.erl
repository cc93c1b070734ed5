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
          [#{id => {lock, Purpose}, start => {weft_directory_lock, start_link, [Dir, Purpose]}}
           || {Purpose, Dir} <- directories(Config)] ++
          [#{id => weft_vnode_sup, start => {weft_vnode_sup, start_link, []}, type => supervisor},
           #{id => weft_vnode_watch, start => {weft_vnode_watch, start_link, []}},
           #{id => weft_vnodes, start => {weft_vnodes, start_link, [Config]}},
           #{id => weft_ring_server, start => {weft_ring_server, start_link, [Config]}}]}}.

%% What belongs to this node alone.
directories(#{dir := Dir, vnodes := Vnodes}) ->
    [{Purpose, Own} || {Purpose, Own} <- [{weft_ring, Dir}
                                          | [{Module, weft_vnode:directory(Module, Options)}
                                             || {Module, Options} <- Vnodes]],
                       Own =/= none].
