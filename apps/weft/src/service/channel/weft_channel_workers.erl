%% SPDX-License-Identifier: Apache-2.0
%% @doc Starts the processes of channels that come and go with peers and labels, below a supervisor
%% of this name (`weft_channel_sup' has it started). They are not restarted.
-module(weft_channel_workers).

-export([start/2]).

%% @doc Starts Module:start_link(Args...) under supervision; `not_started' without the application.
-spec start(module(), [term()]) -> {ok, pid()} | {error, term()}.
start(Module, Args) ->
    try supervisor:start_child(?MODULE, [Module, Args]) of
        {ok, Pid} -> {ok, Pid};
        {error, Reason} -> {error, Reason}
    catch
        exit:_NoSupervisor -> {error, not_started}
    end.
