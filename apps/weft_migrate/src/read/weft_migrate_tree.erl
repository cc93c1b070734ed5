%% SPDX-License-Identifier: Apache-2.0
%% @doc The nodes of the trees of a source, each with its ancestors: what it is, where it is, and
%% what is done with its value.
-module(weft_migrate_tree).

-export([sites/1, all/1, call/1, is_applying/1]).
-export([atom/1, macro_of/1, place/1, is_pattern/1, is_ignored/1, is_unused/1, is_macro/1]).
-export_type([site/0, call/0]).

%% Path: the ancestors, the nearest first. Inside: the function, attribute or macro it is in.
%% Macros: the names of those that the file defines. Program: what others say.
-type site() :: #{node := erl_syntax:syntaxTree(), path := [erl_syntax:syntaxTree()],
                  form := weft_migrate_source:form(), inside := string(), macros := [string()],
                  program := weft_migrate_program:program()}.
%% At: where the word of the module begins, or that of the function if it is a local call.
-type call() :: #{module := atom(), function := atom(), arguments := [erl_syntax:syntaxTree()],
                  at := {pos_integer(), pos_integer()}}.

%% @doc All nodes of all forms that could be read, in the order of the text. Types are left out:
%% nothing of them runs. So are attributes, but not the defaults of records.
-spec sites(weft_migrate_source:source()) -> [site()].
sites(#{forms := Forms, program := Program}) ->
    Read = [{Tree, Form} || #{tree := {ok, Tree}} = Form <- Forms],
    Macros = lists:append([defined(Tree) || {Tree, _Form} <- Read]),
    lists:append([of_form(Tree, Form, {Macros, Program}) || {Tree, Form} <- Read]).

of_form(Tree, Form, Known) ->
    case inside(Tree) of
        type -> [];
        Inside -> lists:reverse(walk(Tree, [], {Form, Inside, Known}, []))
    end.

%% The name of the macro that a form defines.
defined(Tree) ->
    case erl_syntax:type(Tree) =:= attribute andalso inside(Tree) of
        "-define" ->
            [Defined | _] = erl_syntax:attribute_arguments(Tree),
            [macro_name(Name) || Name <- [head(Defined)],
                                 lists:member(erl_syntax:type(Name), [atom, variable])];
        _ ->
            []
    end.

head(Defined) ->
    case erl_syntax:type(Defined) of
        application -> erl_syntax:application_operator(Defined);
        _ -> Defined
    end.

inside(Tree) ->
    case erl_syntax:type(Tree) of
        function ->
            Name = erl_syntax:function_name(Tree),
            lists:concat([printed(Name), "/", erl_syntax:function_arity(Tree)]);
        attribute ->
            case atom(erl_syntax:attribute_name(Tree)) of
                {ok, define} -> "-define";
                {ok, import} -> "-import";
                {ok, record} -> "-record";
                _ -> type
            end;
        _ ->
            ""
    end.

printed(Name) ->
    case atom(Name) of
        {ok, Atom} -> atom_to_list(Atom);
        error -> "?"
    end.

walk(Node, Path, {Form, Inside, {Macros, Program}} = Context, Sites) ->
    Site = #{node => Node, path => Path, form => Form, inside => Inside, macros => Macros,
             program => Program},
    lists:foldl(fun(Child, Found) -> walk(Child, [Node | Path], Context, Found) end,
                [Site | Sites], running(Node)).

%% Of the field of a record its default runs, and its type does not.
running(Node) ->
    case erl_syntax:type(Node) of
        typed_record_field -> [erl_syntax:typed_record_field_body(Node)];
        _ -> lists:append(erl_syntax:subtrees(Node))
    end.

%% @doc The call that a node is, if module and function are written out.
-spec call(erl_syntax:syntaxTree()) -> {ok, call()} | error.
call(Node) ->
    case erl_syntax:type(Node) of
        application ->
            Arguments = erl_syntax:application_arguments(Node),
            called(erl_syntax:application_operator(Node), Arguments);
        _ ->
            error
    end.

called(Operator, Arguments) ->
    case erl_syntax:type(Operator) of
        module_qualifier ->
            Module = erl_syntax:module_qualifier_argument(Operator),
            case {atom(Module), atom(erl_syntax:module_qualifier_body(Operator))} of
                {{ok, M}, {ok, F}} ->
                    {ok, #{module => M, function => F, arguments => Arguments,
                           at => place(Module)}};
                _ ->
                    error
            end;
        atom ->
            {ok, #{module => '', function => erl_syntax:atom_value(Operator),
                   arguments => Arguments, at => place(Operator)}};
        _ ->
            error
    end.

%% @doc Does a call apply functions that are its arguments?
-spec is_applying({ok, call()} | error) -> boolean().
is_applying({ok, #{module := Module, function := Function}}) ->
    lists:member(Module, [rpc, erpc, peer, proc_lib, timer])
        orelse lists:member(Module, ['', erlang])
            andalso lists:member(Function, [apply, spawn, spawn_link, spawn_monitor, spawn_opt]);
is_applying(error) ->
    false.

%% @doc The atom that a node is.
-spec atom(erl_syntax:syntaxTree() | none) -> {ok, atom()} | error.
atom(none) ->
    error;
atom(Node) ->
    case erl_syntax:type(Node) of
        atom -> {ok, erl_syntax:atom_value(Node)};
        _ -> error
    end.

%% @doc The name of a macro without parameters.
-spec macro_of(erl_syntax:syntaxTree()) -> {ok, string()} | error.
macro_of(Node) ->
    case erl_syntax:type(Node) =:= macro andalso erl_syntax:macro_arguments(Node) of
        none -> {ok, macro_name(erl_syntax:macro_name(Node))};
        _ -> error
    end.

%% @doc Where a node begins.
-spec place(erl_syntax:syntaxTree()) -> {pos_integer(), pos_integer()} | none.
place(Node) ->
    case [At || Leaf <- all(Node), {_, _} = At <- [position(Leaf)]] of
        [] -> none;
        Found -> lists:min(Found)
    end.

%% @doc A node and all below it.
-spec all(erl_syntax:syntaxTree()) -> [erl_syntax:syntaxTree()].
all(Node) ->
    [Node | lists:append([all(Child) || Child <- lists:append(erl_syntax:subtrees(Node))])].

position(Node) ->
    case erl_anno:location(erl_syntax:get_pos(Node)) of
        {Line, Column} when Line > 0 -> {Line, Column};
        _ -> none
    end.

%% @doc Is it in a pattern or a guard, where nothing is called?
-spec is_pattern(site()) -> boolean().
is_pattern(#{node := Node, path := Path}) ->
    is_pattern(Node, Path).

is_pattern(_Node, []) ->
    false;
is_pattern(Node, [Parent | Path]) ->
    Patterns = case erl_syntax:type(Parent) of
                   clause -> [erl_syntax:clause_guard(Parent) | erl_syntax:clause_patterns(Parent)];
                   match_expr -> [erl_syntax:match_expr_pattern(Parent)];
                   generator -> [erl_syntax:generator_pattern(Parent)];
                   _ -> []
               end,
    lists:member(Node, Patterns) orelse is_pattern(Parent, Path).

%% @doc Does nobody see the value? So it is if another expression follows in the same body.
-spec is_ignored(site()) -> boolean().
is_ignored(#{node := Node, path := Path}) ->
    is_ignored(Node, Path).

is_ignored(Node, [Parent | Path]) ->
    case erl_syntax:type(Parent) of
        clause -> is_before_last(Node, erl_syntax:clause_body(Parent));
        block_expr -> is_before_last(Node, erl_syntax:block_expr_body(Parent));
        try_expr -> lists:member(Node, erl_syntax:try_expr_after(Parent))
                        orelse is_before_last(Node, erl_syntax:try_expr_body(Parent));
        match_expr -> erl_syntax:type(erl_syntax:match_expr_pattern(Parent)) =:= underscore
                          andalso is_ignored(Parent, Path);
        _ -> false
    end;
is_ignored(_Node, []) ->
    false.

is_before_last(Node, Body) ->
    lists:member(Node, Body) andalso lists:last(Body) =/= Node.

%% @doc Does nobody use the value? Besides those above, the last one of the fun of a new process.
-spec is_unused(site()) -> boolean().
is_unused(#{node := Node, path := Path} = Site) ->
    is_ignored(Site) orelse ends_process(Node, Path).

ends_process(Node, [Clause, Fun, Call | _]) ->
    case {erl_syntax:type(Clause), erl_syntax:type(Fun), call(Call)} of
        {clause, fun_expr, {ok, #{module := Module, function := Function}}}
          when Module =:= ''; Module =:= erlang ->
            lists:member(Function, [spawn, spawn_link, spawn_monitor, spawn_opt])
                andalso lists:last(erl_syntax:clause_body(Clause)) =:= Node;
        _ -> false
    end;
ends_process(_, _) ->
    false.

%% @doc Is it in the definition of a macro, or in the arguments of one? Nobody knows what a macro
%% makes of it. But those of stdlib's assert.hrl evaluate the arguments that they do not take for
%% patterns, unless the file has a macro of its own by that name.
-spec is_macro(site()) -> boolean().
is_macro(#{node := Node, path := Path, inside := Inside, macros := Macros}) ->
    Inside =:= "-define" orelse is_hidden(Node, Path, Macros).

is_hidden(_Node, [], _Macros) ->
    false;
is_hidden(Node, [Parent | Path], Macros) ->
    erl_syntax:type(Parent) =:= macro andalso not is_evaluated(Node, Parent, Macros)
        orelse is_hidden(Parent, Path, Macros).

is_evaluated(Node, Macro, Own) ->
    Name = macro_name(erl_syntax:macro_name(Macro)),
    Arguments = case erl_syntax:macro_arguments(Macro) of
                    none -> [];
                    List -> List
                end,
    Evaluated = [lists:nth(Place, Arguments) || Place <- evaluated(string:trim(Name, leading, "_")),
                                                Place =< length(Arguments)],
    not lists:member(Name, Own) andalso lists:member(Node, Evaluated).

macro_name(Tree) ->
    case erl_syntax:type(Tree) of
        variable -> erl_syntax:variable_literal(Tree);
        _ -> erl_syntax:atom_name(Tree)
    end.

evaluated("assert") -> [1];
evaluated("assertNot") -> [1];
evaluated("assertEqual") -> [1, 2];
evaluated("assertNotEqual") -> [1, 2];
evaluated("assertMatch") -> [2];
evaluated("assertNotMatch") -> [2];
evaluated("assertError") -> [2];
evaluated("assertExit") -> [2];
evaluated("assertThrow") -> [2];
evaluated("assertException") -> [3];
evaluated("assertNotException") -> [3];
evaluated(_) -> [].
