%% SPDX-License-Identifier: Apache-2.0
%% @doc Asks one source of discovery (`weft_discovery') for nodes. An exception in the source
%% becomes an error. This node is left out of the answer, and so are nodes beyond a limit.
-module(weft_discovery_source).

-export([discover/2]).

%% At most so many nodes of one answer are used.
-define(NODES_MAX, 1000).

%% @doc Asks one source. Answers in term order, without this node, under whatever name of its host.
%% An exception in the source becomes an error.
-spec discover(module(), Options :: map()) ->
          {ok, [node()]} | {ok, [node()], Wrong :: term()} | {error, term()}.
discover(Module, Options) ->
    try Module:discover(Options) of
        {ok, Nodes} -> {ok, others(Nodes)};
        {ok, Nodes, Wrong} -> {ok, others(Nodes), Wrong};
        {error, Reason} -> {error, Reason};
        Other -> {error, {no_answer, Other}}
    catch
        Class:Reason:Stack -> {error, {Class, Reason, hd(Stack)}}
    end.

others(Nodes) ->
    lists:sublist([Node || Node <- lists:usort(Nodes), not weft_own_address:is_own(Node)],
                  ?NODES_MAX).
