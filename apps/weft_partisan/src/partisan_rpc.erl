%% SPDX-License-Identifier: Apache-2.0
%% @doc The module `partisan_rpc' of Partisan: `rpc', which runs on any topology here. It has the
%% functions that programs call; its requests take no channel.
-module(partisan_rpc).

-export([call/4, call/5, cast/4, multicall/4, multicall/5]).

-spec call(node(), module(), atom(), [term()]) -> term() | {badrpc, term()}.
call(Node, Module, Function, Args) -> rpc:call(Node, Module, Function, Args).

%% @doc The last argument is the time in milliseconds, or options. Of these only the timeout counts:
%% a call goes by the distribution.
-spec call(node(), module(), atom(), [term()], timeout() | weft_partisan_options:options()) ->
          term() | {badrpc, term()}.
call(Node, Module, Function, Args, TimeoutOrOptions) ->
    {TimeoutMs, _Options} = weft_partisan_options:call(TimeoutOrOptions),
    rpc:call(Node, Module, Function, Args, TimeoutMs).

-spec cast(node(), module(), atom(), [term()]) -> true.
cast(Node, Module, Function, Args) -> rpc:cast(Node, Module, Function, Args).

-spec multicall([node()], module(), atom(), [term()]) -> {[term()], [node()]}.
multicall(Nodes, Module, Function, Args) -> rpc:multicall(Nodes, Module, Function, Args).

-spec multicall([node()], module(), atom(), [term()], timeout()) -> {[term()], [node()]}.
multicall(Nodes, Module, Function, Args, TimeoutMs) ->
    rpc:multicall(Nodes, Module, Function, Args, TimeoutMs).
