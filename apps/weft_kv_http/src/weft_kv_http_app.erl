%% SPDX-License-Identifier: Apache-2.0
%% @doc The application weft_kv_http: while it runs, and if a port is configured, the store of this
%% node answers HTTP. Without a port nothing listens.
-module(weft_kv_http_app).
-behaviour(application).

-export([start/2, prep_stop/1, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case weft_kv_http_config:read() of
        {error, Text} -> {error, {weft_kv_http, Text}};
        {ok, Config} ->
            case weft_kv_http_listener:start(Config) of
                ok -> weft_kv_http_sup:start_link();
                {error, Text} -> {error, {weft_kv_http, Text}}
            end
    end.

%% @private
-spec prep_stop(term()) -> term().
prep_stop(State) ->
    ok = weft_kv_http_listener:stop(),
    State.

%% @private Does it again: nobody has called prep_stop if the supervisor has ended by itself.
-spec stop(term()) -> ok.
stop(_State) ->
    weft_kv_http_listener:stop().
