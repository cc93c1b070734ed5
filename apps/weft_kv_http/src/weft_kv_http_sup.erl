%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the application weft_kv_http. It has no children: the listener and a process
%% for each connection belong to ranch, and nothing is kept between two requests.
-module(weft_kv_http_sup).
-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, none).

%% @private
-spec init(none) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(none) ->
    {ok, {#{strategy => one_for_one, intensity => 1, period => 60}, []}}.
