%% SPDX-License-Identifier: Apache-2.0
%% @doc One key of a strong bucket as an object for `weft_sim_linearizability': a value, or none
%% (`not_found'). An operation of which nobody knows whether it happened has the return `never', and
%% says what would have been.
-module(weft_sim_register_model).
-behaviour(weft_sim_linearizability).

-export([step/2, kind/1, entry/4]).
-export_type([operation/0]).

-type value() :: term() | not_found.
-type operation() :: {get, value()} | {put, value()} | {cas, Expected :: value(), value()}
                   | {differs, Expected :: value(), Found :: value()}.

%% @doc What the operation makes of the value, if it can have had its answer.
-spec step(operation(), value()) -> {ok, value()} | impossible.
step({get, Value}, Value) -> {ok, Value};
step({put, New}, _Value) -> {ok, New};
step({cas, Value, New}, Value) -> {ok, New};
step({differs, Expected, Value}, Value) when Expected =/= Value -> {ok, Value};
step(_Operation, _Value) -> impossible.

%% @private
-spec kind(operation()) -> reads | changes.
kind({get, _}) -> reads;
kind({differs, _, _}) -> reads;
kind(_Operation) -> changes.

%% @doc The entry in a history of a request with its result; none if it did not happen. `never' as a
%% result: there was no answer.
-spec entry(weft_kv_strong_proposer_core:request(), Call :: number(), Return :: number() | never,
            weft_kv_strong_proposer_core:result() | never) ->
          [weft_sim_linearizability:entry()].
entry(get, Call, Return, {ok, Value}) -> [{Call, Return, {get, Value}}];
entry(get, _Call, _Return, _NoAnswer) -> [];
entry(_Write, _Call, _Return, {error, {not_done, _}}) -> [];
entry({cas, Expected, _}, Call, Return, {error, {conflict, Found}}) ->
    [{Call, Return, {differs, Expected, Found}}];
entry(Write, Call, Return, ok) -> [{Call, Return, Write}];
entry(Write, Call, _Return, {error, {unknown, _}}) -> [{Call, never, Write}];
entry(Write, Call, _Return, never) -> [{Call, never, Write}].
