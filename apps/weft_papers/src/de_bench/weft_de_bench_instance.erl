%% SPDX-License-Identifier: Apache-2.0
%% @doc The instance of DE-Bench on its node: what its operations need there, and its load
%% (`weft_load_instance'), which does the rest.
-module(weft_de_bench_instance).

-export([ready/2]).

%% @doc Starts servers, scopes of names if the operations need them, and a load that is ready to
%% begin. The error is a text.
-spec ready(weft_load_config:config(), weft_load_instance:options()) -> ok | {error, string()}.
ready(#{operations := Operations} = Config, Options) ->
    ok = weft_de_bench_server:start(),
    case weft_de_bench_driver:prepare([Op || {_, Op, _} <- Operations]) of
        ok -> weft_load_instance:ready(Config, Options);
        {error, Text} -> {error, Text}
    end.
