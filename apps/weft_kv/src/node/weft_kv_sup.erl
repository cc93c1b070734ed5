%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the application weft_kv. The partitions are not below it: they belong to the
%% ring, and hand their data over also while this application is not started.
-module(weft_kv_sup).
-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => one_for_one, intensity => 5, period => 60}, []}}.
