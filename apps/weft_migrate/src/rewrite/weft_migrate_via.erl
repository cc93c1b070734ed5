%% SPDX-License-Identifier: Apache-2.0
%% @doc `{global, Name}' as the name of a process becomes `{via, weft_global, Name}' where it is the
%% first argument of a function that takes such names. Elsewhere nobody knows what it is for.
-module(weft_migrate_via).
-behaviour(weft_migrate_rule).

-export([look/2]).

-define(MODULES, [gen_server, gen_statem, gen_fsm, gen_event, supervisor, sys]).

-spec look(weft_migrate_tree:site(), weft_migrate_rule:context()) -> weft_migrate_rule:result().
look(#{node := Node} = Site, Context) ->
    case erl_syntax:type(Node) of
        tuple -> tuple(Site, erl_syntax:tuple_elements(Node), Context);
        _ -> none
    end.

tuple(#{node := Node, path := Path, form := Form} = Site, [First, Name], #{keys := Keys}) ->
    case {weft_migrate_tree:atom(First), weft_migrate_tree:is_pattern(Site)} of
        {{ok, global}, false} ->
            case {is_first(Node, Path), weft_migrate_tree:is_macro(Site),
                  weft_migrate_range:word(Form, weft_migrate_tree:place(First))} of
                {true, false, {ok, {Byte, Size}}} ->
                    {edit, [{Byte, Size, <<"via, weft_global">>}], []};
                {true, true, _} -> {leave, "it is in a macro"};
                _ -> elsewhere(Name, Keys)
            end;
        _ ->
            none
    end;
tuple(_, _, _) ->
    none.

is_first(Node, [Parent | _]) ->
    case weft_migrate_tree:call(Parent) of
        {ok, #{module := Module, arguments := [Node | _]}} -> lists:member(Module, ?MODULES);
        _ -> false
    end;
is_first(_, []) ->
    false.

elsewhere(Name, Keys) ->
    case {erl_syntax:type(Name), weft_migrate_tree:atom(Name)} of
        {_, {ok, Atom}} when Atom =:= true; Atom =:= false; Atom =:= undefined -> none;
        {atom, {ok, Atom}} ->
            case lists:member(Atom, Keys) of
                true -> none;
                false -> {leave, "if it names a process: {via, weft_global, Name}"}
            end;
        {Type, _} when Type =:= macro; Type =:= tuple; Type =:= variable; Type =:= string;
                         Type =:= application ->
            {leave, "if it names a process: {via, weft_global, Name}"};
        _ -> none
    end.
