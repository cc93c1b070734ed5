%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration as drivers of Basho Bench ask for it. One load runs at a time.
%% A persistent term: drivers ask for it in each operation. Not for anybody but drivers.
-module(basho_bench_config).

-export([load/1, get/1, get/2, set/2]).

%% @doc Makes these keys known; those of a former load are forgotten.
-spec load([{atom(), term()}]) -> ok.
load(Pairs) ->
    persistent_term:put(?MODULE, maps:from_list(lists:reverse(Pairs))).

%% @doc The value of a key; it is an error if there is none.
-spec get(atom()) -> term().
get(Key) ->
    case persistent_term:get(?MODULE, #{}) of
        #{Key := Value} -> Value;
        #{} -> erlang:error({missing_configuration_key, Key})
    end.

-spec get(atom(), Default :: term()) -> term().
get(Key, Default) ->
    maps:get(Key, persistent_term:get(?MODULE, #{}), Default).

-spec set(atom(), term()) -> ok.
set(Key, Value) ->
    persistent_term:put(?MODULE, (persistent_term:get(?MODULE, #{}))#{Key => Value}).
