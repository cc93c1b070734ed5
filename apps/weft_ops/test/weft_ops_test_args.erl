%% SPDX-License-Identifier: Apache-2.0
%% @doc Arguments of erl for nodes that run weft_ops in tests.
-module(weft_ops_test_args).

-export([args/1, paths/1]).

-define(LIBRARIES, [prometheus, quantile_estimator, ddskerl, cowboy, cowlib, ranch]).

%% @doc The code of weft_ops, of what it needs and of these modules, and what makes prometheus.erl
%% start quickly: otherwise it loads all modules of all applications to find its collectors, which
%% takes a second.
-spec args([module()]) -> [string()].
args(Modules) ->
    ["-prometheus", "collectors", "[default]", "-prometheus", "instrumenters", "[]"]
        ++ paths(Modules).

%% @doc Only the code.
-spec paths([module()]) -> [string()].
paths(Modules) ->
    Own = [weft_test_nodes:ebin(Module)
           || Module <- [weft_ops_app, weft_http_host, weft_json | Modules]],
    Libraries = [filename:join(Dir, "ebin") || App <- ?LIBRARIES, Dir <- [code:lib_dir(App)],
                                               is_list(Dir)],
    lists:append([["-pa", Dir] || Dir <- Own ++ Libraries]).
