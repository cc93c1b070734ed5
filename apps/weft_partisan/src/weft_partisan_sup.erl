%% SPDX-License-Identifier: Apache-2.0
%% @doc Top supervisor of the application. It owns the table of functions that are called when nodes
%% come and go, so a restart of the process that calls them forgets none.
-module(weft_partisan_sup).
-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() -> weft_supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    ok = weft_partisan_watch:new_table(),
    {ok, {#{strategy => one_for_one, intensity => 5, period => 10},
          [#{id => weft_partisan_watch, start => {weft_partisan_watch, start_link, []}}]}}.
