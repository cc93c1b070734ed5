%% SPDX-License-Identifier: Apache-2.0
%% A server that was written for Partisan.
-module(partisan_functions_server).
-behaviour(partisan_gen_server).

-export([init/1, handle_call/3, handle_cast/2]).

init(State) -> {ok, State}.

handle_call(get, _From, State) -> {reply, State, State}.

handle_cast(_Request, State) -> {noreply, State}.
