%% SPDX-License-Identifier: Apache-2.0
%% @doc Arguments of erl for nodes of a store in tests.
-module(weft_kv_test_args).

-export([args/2]).

%% @doc The code of the store and of Suite, and these keys of applications.
-spec args(Suite :: module(), [{App :: atom(), Key :: atom(), Value :: term()}]) -> [string()].
args(Suite, Keys) ->
    lists:append([["-pa", weft_test_nodes:ebin(Module)] || Module <- [Suite, weft_ring, weft_kv]])
        ++ ["-kernel", "prevent_overlapping_partitions", "false"]
        ++ lists:append([["-" ++ atom_to_list(App), atom_to_list(Key),
                          lists:flatten(io_lib:format("~0p", [Value]))]
                         || {App, Key, Value} <- Keys]).
