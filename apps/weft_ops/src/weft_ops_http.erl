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
-define(ACCEPTORS, 2).
-define(TEXT, <<"text/plain; charset=utf-8">>).

%% @doc Begins to listen, if there is a configuration. The text of an error says what to do.
-spec start(weft_ops_config:http() | none) -> ok | {error, Text :: string()}.
start(none) ->
    ok;
start(#{port := Port, ip := Ip, hosts := Hosts}) ->
    Transport = #{max_connections => ?CONNECTIONS_MAX, num_acceptors => ?ACCEPTORS,
                  socket_opts => [{port, Port}, {ip, Ip}]},
    Dispatch = cowboy_router:compile([{'_', [{"/metrics", ?MODULE, metrics},
                                             {"/metrics/detailed", ?MODULE, detailed},
                                             {'_', ?MODULE, nothing}]}]),
    Names = weft_ops_host:own() ++ [unicode:characters_to_binary(string:lowercase(Host))
                                    || Host <- Hosts],
    Protocol = #{env => #{dispatch => Dispatch, hosts => Names}, max_concurrent_streams => 1,
                 middlewares => [weft_ops_host, cowboy_router, cowboy_handler]},
    case cowboy:start_clear(?MODULE, Transport, Protocol) of
        {ok, _Listener} -> ok;
        {error, Reason} -> {error, refused(Reason, Ip, Port)}
    end.

refused(Reason, Ip, Port) ->
    Text = io_lib:format("no listener for metrics on ~ts port ~b: ~ts. Set another port or ip in "
                         "the key http of weft_ops, or stop what listens there.",
                         [inet:ntoa(Ip), Port, explained(Reason)]),
    lists:flatten(Text).

explained(Reason) when is_atom(Reason) -> inet:format_error(Reason);
explained(Reason) -> io_lib:format("~0tp", [Reason]).

%% @doc Closes the listener and its connections, if it is open. Not every release of ranch answers
%% `not_found' if it is not.
-spec stop() -> ok.
stop() ->
    try cowboy:stop_listener(?MODULE) of
        ok -> ok;
        {error, not_found} -> ok
    catch
        error:badarg -> ok
    end.

%% @doc The port it listens on, for one that was given as 0.
-spec port() -> inet:port_number().
port() -> ranch:get_port(?MODULE).

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
