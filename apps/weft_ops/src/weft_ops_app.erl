%% SPDX-License-Identifier: Apache-2.0
%% @doc The application weft_ops: while it runs, weft's collectors are in the default registry of
%% prometheus.erl, in place of its own one for distribution, and the listener is open if there is
%% one in the configuration.
%%
%% The collector of prometheus.erl finds nothing where a link has several sockets, and takes the
%% socket of the first hop for that of each node behind it. It is put back at the end if it was
%% there.
-module(weft_ops_app).
-behaviour(application).

-export([start/2, prep_stop/1, stop/1]).

-define(FORMER, prometheus_vm_dist_collector).
-define(OWN, [weft_ops_collector, weft_ops_dist_collector]).

%% Collectors that were replaced.
-type state() :: [module()].

%% @private
-spec start(application:start_type(), term()) -> {ok, pid(), state()} | {error, term()}.
start(_Type, _Args) ->
    case weft_ops_config:read() of
        {ok, Config} -> listen(Config);
        {error, Text} -> {error, {weft_ops, Text}}
    end.

listen(#{http := Http} = Config) ->
    case weft_ops_http:start(Http) of
        ok -> supervise(Config);
        {error, Text} -> {error, {weft_ops, Text}}
    end.

supervise(Config) ->
    case weft_ops_sup:start_link(Config) of
        {ok, Supervisor} ->
            {ok, Supervisor, register_collectors()};
        {error, Reason} ->
            ok = weft_ops_http:stop(),
            {error, Reason}
    end.

%% @private
-spec prep_stop(state()) -> state().
prep_stop(Former) ->
    ok = withdraw(Former),
    Former.

%% @private Does it again: nobody has called prep_stop if the supervisor has ended by itself.
-spec stop(state()) -> ok.
stop(Former) ->
    withdraw(Former).

withdraw(Former) ->
    ok = weft_ops_http:stop(),
    ok = weft_ops_webhook:close(),
    deregister_collectors(Former).

register_collectors() ->
    Former = [?FORMER || prometheus_registry:collector_registeredp(?FORMER)],
    lists:foreach(fun prometheus_registry:deregister_collector/1, Former),
    ok = weft_ops_detailed:register_collector(weft_ops_collector),
    _ = prometheus_registry:register_collectors(?OWN),
    Former.

%% Without the table of its registry prometheus.erl has been stopped before.
deregister_collectors(Former) ->
    try
        lists:foreach(fun prometheus_registry:deregister_collector/1, ?OWN),
        ok = weft_ops_detailed:deregister_collector(weft_ops_collector),
        _ = prometheus_registry:register_collectors(Former),
        ok
    catch
        error:badarg -> ok
    end.
