%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the broker's process and owner of the table of lanes; itself a child of
%% weft's.
-module(weft_amqp_sup).
-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-spec start_link(weft_amqp_options:options()) -> {ok, pid()} | {error, term()}.
start_link(Options) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, Options).

%% @private
-spec init(weft_amqp_options:options()) ->
          {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Options) ->
    ok = weft_amqp_lanes:new(),
    {ok, {#{strategy => one_for_one, intensity => 5, period => 60},
          [#{id => weft_amqp_presence, start => {weft_amqp_presence, start_link, [Options]},
             shutdown => 15000}]}}.
