%% SPDX-License-Identifier: Apache-2.0
%% @doc The options of the topology `pubsub' as this application needs them.
%%
%% `broker': the URL of a broker, or of several of one cluster, tried in turn. Parameters of the
%% connection go into the URL, for example `?heartbeat=5' (seconds; 10 by default), and for `amqps'
%% `cacertfile', `certfile', `keyfile', `verify' (RabbitMQ, "URI query parameters").
%% `announce_ms' (5000): how often the node announces itself, less often among many.
%% `message_bytes' (1048576): larger packets are sent in parts.
-module(weft_amqp_options).

-export([parse/2]).
-export_type([options/0]).

-define(EXCHANGE_BYTES_MAX, 255).

-type options() :: #{brokers := [weft_amqp_connection:params(), ...], exchange := binary(),
                     announce_ms := pos_integer(), part_bytes := pos_integer()}.

%% @doc Options of which `weft_pubsub_core:validate/2' has checked the form. Cluster is its name.
-spec parse(Options :: map(), Cluster :: binary()) -> {ok, options()} | {error, iolist()}.
parse(#{broker := Broker} = Options, Cluster) ->
    Exchange = <<"weft.", Cluster/binary>>,
    case {brokers(urls(Broker), []), byte_size(Exchange) =< ?EXCHANGE_BYTES_MAX} of
        {{ok, Brokers}, true} ->
            {ok, #{brokers => Brokers, exchange => Exchange,
                   announce_ms => maps:get(announce_ms, Options, 5000),
                   part_bytes => maps:get(message_bytes, Options, 1048576)}};
        {{ok, _}, false} ->
            {error, "cluster_name is too long for the name of an exchange at the broker: at most "
                    "250 bytes"};
        {{error, Text}, _} ->
            {error, Text}
    end.

urls([First | _] = Url) when is_integer(First) -> [Url];
urls(Urls) -> Urls.

brokers([], Brokers) ->
    {ok, lists:reverse(Brokers)};
brokers([Url | Urls], Brokers) ->
    case weft_amqp_connection:params(Url) of
        {ok, Params} -> brokers(Urls, [Params | Brokers]);
        {error, Text} -> {error, Text}
    end.
