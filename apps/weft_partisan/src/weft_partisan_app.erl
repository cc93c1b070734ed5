%% SPDX-License-Identifier: Apache-2.0
%% @doc The application `weft_partisan': the modules of Partisan, and the process that calls the
%% functions of `partisan_peer_service:on_up/2' and `on_down/2'.
-module(weft_partisan_app).
-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) -> weft_partisan_sup:start_link().

%% @private
-spec stop(term()) -> ok.
stop(_State) -> ok.
