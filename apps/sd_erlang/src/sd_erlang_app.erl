%% SPDX-License-Identifier: Apache-2.0
%% @doc The application `sd_erlang': reads the groups of the configuration of the kernel, and starts
%% the process `s_group'.
-module(sd_erlang_app).
-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case sd_erlang_config:groups() of
        {ok, Groups} -> sd_erlang_sup:start_link(Groups);
        {error, Text} -> {error, {sd_erlang, Text}}
    end.

%% @private
-spec stop(term()) -> ok.
stop(_State) -> ok.
