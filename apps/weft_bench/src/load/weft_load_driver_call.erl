%% SPDX-License-Identifier: Apache-2.0
%% @doc A driver that calls functions on other nodes, each time on one by chance of those that the
%% key `nodes' lists; with `bin/bench load --cluster' these are the nodes of the deployment.
%%
%% An operation is `{Module, Function, Arguments}'; the atoms `key' and `value' among the arguments
%% stand for a key and a value of the generators. What returns an error, raises an exception or is
%% not back within `call_timeout_ms' (5000) has failed.
-module(weft_load_driver_call).

-export([new/1, run/4]).

-type state() :: {tuple(), TimeoutMs :: pos_integer()}.

%% @doc Connects to all nodes, so that the first operations do not wait for that.
-spec new(pos_integer()) -> {ok, state()} | {error, term()}.
new(_Id) ->
    Nodes = basho_bench_config:get(nodes, []),
    case [Node || Node <- Nodes, net_kernel:connect_node(Node) =/= true] of
        [] when Nodes =/= [] ->
            {ok, {list_to_tuple(Nodes), basho_bench_config:get(call_timeout_ms, 5000)}};
        [] -> {error, no_nodes};
        Unreachable -> {error, {no_connection_to, Unreachable}}
    end.

-spec run({module(), atom(), [term()]}, fun(() -> term()), fun(() -> term()), state()) ->
          {ok, state()} | {error, term(), state()}.
run({Module, Function, Arguments}, Key, Value, {Nodes, TimeoutMs} = State) ->
    Node = element(rand:uniform(tuple_size(Nodes)), Nodes),
    Drawn = [drawn(Argument, Key, Value) || Argument <- Arguments],
    try erpc:call(Node, Module, Function, Drawn, TimeoutMs) of
        {error, Reason} -> {error, Reason, State};
        error -> {error, error, State};
        _ -> {ok, State}
    catch
        error:{exception, Reason, _Stack} -> {error, Reason, State};
        _Class:Reason -> {error, Reason, State}
    end.

drawn(key, Key, _Value) -> Key();
drawn(value, _Key, Value) -> Value();
drawn(Argument, _Key, _Value) -> Argument.
