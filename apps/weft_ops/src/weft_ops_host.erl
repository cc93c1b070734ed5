%% SPDX-License-Identifier: Apache-2.0
%% @doc Refuses requests to the listener for metrics that do not name this machine
%% (`weft_http_host').
-module(weft_ops_host).
-behaviour(cowboy_middleware).

-export([execute/2]).

%% @doc The names are those in `hosts' of the environment. Others are answered with 403, in words.
-spec execute(cowboy_req:req(), cowboy_middleware:env()) ->
          {ok, cowboy_req:req(), cowboy_middleware:env()} | {stop, cowboy_req:req()}.
execute(Request, #{hosts := Names} = Env) ->
    case weft_http_host:is_known(cowboy_req:host(Request), Names) of
        true ->
            {ok, Request, Env};
        false ->
            Headers = #{<<"content-type">> => <<"text/plain; charset=utf-8">>},
            {stop, cowboy_req:reply(403, Headers, <<"This is no name of this machine. Use an "
                                                    "address, or name it in `hosts' of the key "
                                                    "http of weft_ops.\n">>, Request)}
    end.
