%% SPDX-License-Identifier: Apache-2.0
%% @doc The HTTP listener for scrapers: GET /metrics, and GET /metrics/detailed?family=link with one
%% or more families. Anything else is refused in words.
%%
%% How many are answered at once is bounded by the connections that are accepted, each with one
%% request at a time. There is no authentication: it listens on 127.0.0.1 unless told otherwise.
%% Each request passes `weft_ops_host' first.
-module(weft_ops_http).
-behaviour(cowboy_handler).

-export([start/1, stop/0, port/0]).
-export([init/2]).

-define(CONNECTIONS_MAX, 32).
-define(TEXT, <<"text/plain; charset=utf-8">>).

%% @doc Begins to listen, if there is a configuration. The text of an error says what to do.
-spec start(weft_ops_config:http() | none) -> ok | {error, Text :: string()}.
start(none) ->
    ok;
start(#{port := Port, ip := Ip, hosts := Hosts}) ->
    Place = #{ip => Ip, port => Port, what => "listener for metrics (key http of weft_ops)"},
    Dispatch = cowboy_router:compile([{'_', [{"/metrics", ?MODULE, metrics},
                                             {"/metrics/detailed", ?MODULE, detailed},
                                             {'_', ?MODULE, nothing}]}]),
    Names = weft_http_host:own() ++ [unicode:characters_to_binary(string:lowercase(Host))
                                     || Host <- Hosts],
    Protocol = #{env => #{dispatch => Dispatch, hosts => Names}, max_concurrent_streams => 1,
                 middlewares => [weft_ops_host, cowboy_router, cowboy_handler]},
    weft_http_listener:start(?MODULE, Place, #{max_connections => ?CONNECTIONS_MAX}, Protocol).

%% @doc Closes the listener and its connections.
-spec stop() -> ok.
stop() -> weft_http_listener:stop(?MODULE).

%% @doc The port it listens on, for one that was given as 0.
-spec port() -> inet:port_number().
port() -> weft_http_listener:port(?MODULE).

%% @private
-spec init(cowboy_req:req(), metrics | detailed | nothing) -> {ok, cowboy_req:req(), term()}.
init(Request, Page) ->
    {Status, Headers, Body} = answer(cowboy_req:method(Request), Page, Request),
    {ok, cowboy_req:reply(Status, Headers, Body, Request), Page}.

answer(_Method, nothing, _Request) ->
    {404, text(), <<"Here are /metrics and /metrics/detailed?family=NAME.\n">>};
answer(<<"GET">>, metrics, _Request) ->
    {200, content(), prometheus_text_format:format(default)};
answer(<<"GET">>, detailed, Request) ->
    detailed([Value || {<<"family">>, Value} <- cowboy_req:parse_qs(Request)]);
answer(_Method, _Page, _Request) ->
    {405, (text())#{<<"allow">> => <<"GET">>}, <<"Only GET.\n">>}.

detailed(Names) ->
    Known = [{atom_to_binary(Name), Name} || Name <- weft_ops_detailed:requests()],
    case [Name || Name <- Names, not lists:keymember(Name, 1, Known)] of
        [] when Names =/= [] ->
            {200, content(), [prometheus_text_format:format(weft_ops_detailed:registry(Request))
                              || {Name, Request} <- Known, lists:member(Name, Names)]};
        _ ->
            {400, text(), ["Say family=NAME, once or more. Names: ",
                           lists:join(<<", ">>, [Name || {Name, _} <- Known]), ".\n"]}
    end.

content() -> #{<<"content-type">> => iolist_to_binary(prometheus_text_format:content_type())}.

text() -> #{<<"content-type">> => ?TEXT}.
