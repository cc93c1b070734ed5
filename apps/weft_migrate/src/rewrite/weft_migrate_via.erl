%% SPDX-License-Identifier: Apache-2.0
%% @doc `{global, Name}' and `{via, global, Name}' as the name of a process become
%% `{via, weft_global, Name}' where they are the first argument of a function that takes such names.
%% Elsewhere nobody knows what they are for.
-module(weft_migrate_via).
-behaviour(weft_migrate_rule).

-export([look/2]).

-define(MODULES, [gen_server, gen_statem, gen_fsm, gen_event, supervisor, sys]).

-spec look(weft_migrate_tree:site(), weft_migrate_rule:context()) -> weft_migrate_rule:result().
look(Site, #{keys := Keys}) ->
    case weft_migrate_name:of_site(Site) of
        {pair, How, Module, Name} ->
            case {is_first(Site), weft_migrate_name:is_likely(Name, Keys)} of
                {false, false} -> none;
                {IsFirst, _} -> named(How, IsFirst, Module, Site, <<"via, weft_global">>)
            end;
        {via, How, Module, _} -> named(How, is_first(Site), Module, Site, <<"weft_global">>);
        none -> none
    end.

named(written, true, Module, #{form := Form} = Site, New) ->
    case {weft_migrate_tree:is_macro(Site),
          weft_migrate_range:word(Form, weft_migrate_tree:place(Module))} of
        {false, {ok, {Byte, Size}}} -> {edit, [{Byte, Size, New}], []};
        _ -> {leave, "it is in a macro"}
    end;
named(written, false, _, _, _) -> {leave, "if it names a process: {via, weft_global, Name}"};
named(macro, _, _, _, _) -> {leave, "the name of the module is a macro"};
named(computed, _, _, _, _) -> {leave, "the name of the module is computed"}.

is_first(#{node := Node, path := [Parent | _]}) ->
    case weft_migrate_tree:call(Parent) of
        {ok, #{module := Module, arguments := [Node | _]}} -> lists:member(Module, ?MODULES);
        _ -> false
    end;
is_first(_) ->
    false.
