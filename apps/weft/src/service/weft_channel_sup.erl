%% SPDX-License-Identifier: Apache-2.0
%% @doc The processes of channels, and the owner of their tables: the process that watches who is in
%% them, and below a supervisor of its own all that come and go with peers and labels. Those are not
%% restarted: who needs one starts it anew.
-module(weft_channel_sup).
-behaviour(supervisor).

-export([start_link/0, start_worker/2, worker/2]).
-export([init/1]).

-define(WORKERS, weft_channel_workers).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, channels).

%% @doc Starts Module:start_link(Args...) under supervision; `not_started' without the application.
-spec start_worker(module(), [term()]) -> {ok, pid()} | {error, term()}.
start_worker(Module, Args) ->
    try supervisor:start_child(?WORKERS, [Module, Args]) of
        {ok, Pid} -> {ok, Pid};
        {error, Reason} -> {error, Reason}
    catch
        exit:_NoSupervisor -> {error, not_started}
    end.

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
