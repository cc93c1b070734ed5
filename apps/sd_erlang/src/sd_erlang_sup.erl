%% SPDX-License-Identifier: Apache-2.0
%% @doc Top supervisor of the application: of the process `s_group', which gets the configured
%% groups. All that lasts is in weft, so a restart loses nothing but who called
%% `s_group:monitor_nodes/1'.
-module(sd_erlang_sup).
-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-spec start_link(#{term() => [node()]}) -> {ok, pid()} | {error, term()}.
start_link(Groups) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, Groups).

%% @private
-spec init(#{term() => [node()]}) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Groups) ->
    {ok, {#{strategy => one_for_one, intensity => 5, period => 10},
          [#{id => sd_erlang_server, start => {sd_erlang_server, start_link, [Groups]}}]}}.
