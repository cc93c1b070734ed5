%% SPDX-License-Identifier: Apache-2.0
%% @doc `rpc:multicall' becomes `erpc:multicall' where nobody looks at its results, which have
%% another shape there.
-module(weft_migrate_multicall).
-behaviour(weft_migrate_rule).

-export([look/2]).

%% `erlang:' is written out, as a module that is rewritten may have a nodes/0 of its own.
-define(ALL_NODES, <<"[erlang:node() | erlang:nodes()], ">>).

-spec look(weft_migrate_tree:site(), weft_migrate_rule:context()) -> weft_migrate_rule:result().
look(#{node := Node} = Site, _Context) ->
    case weft_migrate_tree:call(Node) of
        {ok, #{module := rpc, function := multicall, arguments := Arguments} = Call} ->
            case {weft_migrate_tree:is_macro(Site), weft_migrate_tree:is_unused(Site)} of
                {true, _} -> {leave, "it is in a macro"};
                {false, true} -> edit(Site, Call, list_of(Arguments));
                {false, false} -> {leave, "erpc:multicall answers {ok, Result} or the error of "
                                   "each node, rpc:multicall {Results, BadNodes}"}
            end;
        _ ->
            none
    end.

%% Are there nodes among the arguments?
list_of([_, _, _]) -> none;
list_of([First, _, Third, _]) ->
    case {weft_migrate_tree:atom(First), weft_migrate_tree:atom(Third)} of
        {{ok, _}, _} -> none;
        {_, {ok, _}} -> some;
        _ -> unknown
    end;
list_of([_, _, _, _, _]) -> some;
list_of(_) -> unknown.

edit(_Site, _Call, unknown) ->
    {leave, "it is not written out whether it has a list of nodes"};
edit(#{form := Form}, Call, Nodes) ->
    case weft_migrate_range:call(Form, Call) of
        {ok, #{module := {Byte, Size}, arguments := [{First, _} | _]}} ->
            {edit, [{Byte, Size, <<"erpc">>}
                    | [{First, 0, ?ALL_NODES} || Nodes =:= none]], []};
        _ ->
            {leave, "its arguments are not understood"}
    end.
