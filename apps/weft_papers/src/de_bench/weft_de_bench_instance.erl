%% SPDX-License-Identifier: Apache-2.0
%% @doc The instance of DE-Bench on its node: what its operations need there, and its load
%% (`weft_load_instance'), which does the rest.
-module(weft_de_bench_instance).

-export([ready/2]).

%% @doc Starts servers, scopes of names if the operations need them, waits until `global' is at
%% rest, and starts a load that is ready to begin. The error is a text.
-spec ready(weft_load_config:config(), weft_load_instance:options()) -> ok | {error, string()}.
ready(#{operations := Operations} = Config, Options) ->
    ok = weft_de_bench_server:start(),
    case [Text || {error, Text} <- [weft_de_bench_driver:prepare([Op || {_, Op, _} <- Operations]),
                                    synced()]] of
        [] -> weft_load_instance:ready(Config, Options);
        [Text | _] -> {error, Text}
    end.

%% Nodes that have just connected hold the lock of all names while they exchange those they have, on
%% a busy machine for seconds. That is no part of what is measured, also where no names are.
synced() ->
    case application:get_env(kernel, connect_all, true) andalso global:sync() of
        {error, Reason} -> {error, lists:flatten(io_lib:format("global:sync() on ~ts: ~0tp",
                                                               [node(), Reason]))};
        _SyncedOrNotConnected -> ok
    end.
