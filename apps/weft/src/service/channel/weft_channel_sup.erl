%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the processes of channels, and owner of their tables. Its children are the
%% process that removes rows of ended processes from the tables, and a supervisor for processes that
%% come and go with peers and labels. Those are not restarted: a caller that needs one starts it
%% anew.
-module(weft_channel_sup).
-behaviour(supervisor).

-export([start_link/0, worker/2]).
-export([init/1]).

-define(WORKERS, weft_channel_workers).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, channels).

%% @private
-spec worker(module(), [term()]) -> {ok, pid()} | ignore | {error, term()}.
worker(Module, Args) -> apply(Module, start_link, Args).

%% @private
init(channels) ->
    ok = weft_channels:new_tables(),
    Workers = #{id => ?WORKERS, type => supervisor,
                start => {weft_supervisor, start_link, [{local, ?WORKERS}, ?MODULE, workers]}},
    Watch = #{id => weft_channels, start => {weft_channels, start_link, []}},
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10}, [Watch, Workers]}};
init(workers) ->
    Worker = #{id => worker, restart => temporary, shutdown => 2000,
               start => {?MODULE, worker, []}},
    {ok, {#{strategy => simple_one_for_one}, [Worker]}}.
