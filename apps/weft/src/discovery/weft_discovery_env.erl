%% SPDX-License-Identifier: Apache-2.0
%% @doc Discovery by a variable of the environment: `{env, #{variable => "SEEDS"}}' with
%% `SEEDS="a@host b@host"'. Read anew each time (`os:putenv/2' may change it).
-module(weft_discovery_env).
-behaviour(weft_discovery).

-export([discover/1]).

%% @doc See `weft_discovery'. Error: the variable is not set.
-spec discover(#{variable := string(), _ => _}) -> {ok, [node()]} | {error, not_set}.
discover(#{variable := Variable}) ->
    case os:getenv(Variable) of
        false -> {error, not_set};
        Text -> {ok, weft_discovery_names:nodes(weft_discovery_names:words(Text))}
    end.
