%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: code sent to the other node, the loader's and tracer's work from afar.
-module(weft_conformance_code).

-include("weft_conformance.hrl").

-export([module_loaded_from_afar_is_called/1, module_replaced_from_afar/1,
         ets_table_read_by_erpc/1, persistent_term_and_env_by_erpc/1,
         application_started_from_afar/1, far_trace_messages_arrive/1]).

module_loaded_from_afar_is_called(#{b := B}) ->
    Module = module_name(),
    {badrpc, {'EXIT', {undef, _}}} = rpc:call(B, Module, value, []),
    ok = load(B, Module, 1),
    1 = rpc:call(B, Module, value, []),
    unload(B, Module).

module_replaced_from_afar(#{b := B}) ->
    Module = module_name(),
    ok = load(B, Module, 1),
    ok = load(B, Module, lists:duplicate(30_000, two)),
    30_000 = length(rpc:call(B, Module, value, [])),
    unload(B, Module).

ets_table_read_by_erpc(#{b := B}) ->
    Holder = weft_puppet:start(B),
    Table = weft_puppet:do(Holder, fun() -> ets:new(conformance, [public]) end),
    true = erpc:call(B, ets, insert, [Table, [{N, N * N} || N <- lists:seq(1, 1_000)]]),
    [{30, 900}] = erpc:call(B, ets, lookup, [Table, 30]),
    1_000 = length(erpc:call(B, ets, tab2list, [Table])).

persistent_term_and_env_by_erpc(#{b := B}) ->
    ok = erpc:call(B, persistent_term, put, [conformance, self()]),
    Near = self(),
    Near = erpc:call(B, persistent_term, get, [conformance]),
    true = erpc:call(B, persistent_term, erase, [conformance]),
    ok = erpc:call(B, application, set_env, [kernel, conformance, #{a => Near}]),
    {ok, #{a := Near}} = erpc:call(B, application, get_env, [kernel, conformance]).

application_started_from_afar(#{b := B}) ->
    {ok, _} = rpc:call(B, application, ensure_all_started, [runtime_tools]),
    Running = rpc:call(B, application, which_applications, []),
    true = lists:keymember(runtime_tools, 1, Running),
    ok = rpc:call(B, application, stop, [runtime_tools]).

far_trace_messages_arrive(#{b := B}) ->
    Tracer = weft_puppet:start(B),
    Traced = weft_puppet:start(B),
    Near = self(),
    1 = weft_puppet:do(Tracer, fun() -> erlang:trace(Traced, true, ['receive']) end),
    Traced ! traced_message,
    Got = weft_puppet:do(Tracer, fun() ->
        ?expect({trace, Traced, 'receive', traced_message}, Near ! {seen, node()})
    end),
    ?expect(Got).

load(Node, Module, Value) ->
    Forms = [{attribute, 1, module, Module}, {attribute, 2, export, [{value, 0}]},
             {function, 3, value, 0, [{clause, 3, [], [], [erl_parse:abstract(Value)]}]}],
    {ok, Module, Binary} = compile:forms(Forms),
    {module, Module} = rpc:call(Node, code, load_binary, [Module, "made_on_the_spot.beam", Binary]),
    _ = rpc:call(Node, code, purge, [Module]),
    ok.

unload(Node, Module) ->
    true = rpc:call(Node, code, delete, [Module]),
    _ = rpc:call(Node, code, purge, [Module]),
    ok.

module_name() ->
    list_to_atom("conformance_made_" ++ integer_to_list(erlang:unique_integer([positive]))).
