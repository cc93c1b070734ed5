%% SPDX-License-Identifier: Apache-2.0
%% @doc How calls of one module are written with another one, from an adaptor: a module that has the
%% functions of the old one, in terms of the new (Li and Thompson, Automated API migration in a
%% user-extensible refactoring tool for Erlang programs, ASE 2012).
%%
%% The adaptor says `-migrates(old).' A function of it that is one clause without a guard, whose
%% arguments are different variables and whose body is one expression, is a rule. Others are not,
%% and neither is what the adaptor leaves out. A body that is a case whose clauses answer terms
%% without calls is a mapping of results: where the caller takes the result apart at once, its
%% patterns can be changed in place of the result.
-module(weft_migrate_adaptor).

-export([of_module/1, of_file/1, text/3, later/2, variables/1, body/1]).
-export_type([adaptor/0, rule/0]).

%% Stands for `erlang' in a call while it is printed: erl_pp leaves that out, and the module that is
%% rewritten may have a function of that name.
-define(ERLANG, "ERLANGMODULE").

-type rule() :: #{parameters := [atom()], body := erl_parse:abstract_expr()}.
-type adaptor() :: #{old := module(),
                     rules := #{{Function :: atom(), arity()} => rule()}}.

%% @doc A compiled adaptor, with debug information.
-spec of_module(module()) -> adaptor().
of_module(Module) ->
    {Module, Beam, _} = code:get_object_code(Module),
    {ok, {Module, [{abstract_code, {raw_abstract_v1, Forms}}]}} =
        beam_lib:chunks(Beam, [abstract_code]),
    {ok, Adaptor} = of_forms(Forms),
    Adaptor.

%% @doc An adaptor in a file.
-spec of_file(file:filename()) -> {ok, adaptor()} | {error, string()}.
of_file(File) ->
    case epp:parse_file(File, []) of
        {ok, Forms} ->
            case [{Line, Module:format_error(Descriptor)}
                  || {error, {Line, Module, Descriptor}} <- Forms] of
                [] -> of_forms(Forms);
                [{Line, Reason} | _] -> {error, lists:flatten(io_lib:format("~0p: ~ts",
                                                                            [Line, Reason]))}
            end;
        {error, Reason} ->
            {error, file:format_error(Reason)}
    end.

of_forms(Forms) ->
    case [Old || {attribute, _, migrates, Old} <- Forms, is_atom(Old)] of
        [Old] ->
            {ok, #{old => Old, rules => maps:from_list(lists:append([rule(Form)
                                                                     || Form <- Forms]))}};
        _ -> {error, "it needs one -migrates(module)."}
    end.

rule({function, _, Name, Arity, [{clause, _, Heads, [], [Body]}]}) ->
    Parameters = [Variable || {var, _, Variable} <- Heads],
    IsPlain = length(lists:usort(Parameters)) =:= Arity andalso not lists:member('_', Parameters),
    [{{Name, Arity}, #{parameters => Parameters, body => Body}} || IsPlain];
rule(_) ->
    [].

%% @doc What the body is: a call, a call and what its results mean, or any expression.
-spec body(rule()) ->
          {call, module(), atom(), [atom()]} | expression
        | {mapping, erl_parse:abstract_expr(),
           [{Pattern :: erl_parse:abstract_expr(), Result :: erl_parse:abstract_expr()}]}.
body(#{body := {call, _, {remote, _, {atom, _, Module}, {atom, _, Function}}, Arguments}}) ->
    case [Name || {var, _, Name} <- Arguments] of
        Names when length(Names) =:= length(Arguments) -> {call, Module, Function, Names};
        _ -> expression
    end;
body(#{body := {'case', _, New, Clauses}}) ->
    Pairs = [{Pattern, Result} || {clause, _, [Pattern], [], [Result]} <- Clauses, is_data(Result)],
    case length(Pairs) =:= length(Clauses) of
        true -> {mapping, New, Pairs};
        false -> expression
    end;
body(_) ->
    expression.

is_data({atom, _, _}) -> true;
is_data({var, _, _}) -> true;
is_data({tuple, _, Elements}) -> lists:all(fun is_data/1, Elements);
is_data(_) -> false.

%% @doc An expression as text, in one line. Variables are replaced by what the fun says of them: by
%% another name, or by an argument. The pieces of text and the numbers of arguments, in their order.
-spec text(erl_parse:abstract_expr(), [atom()], fun((atom()) -> atom())) ->
          [binary() | {argument, pos_integer()}].
text(Expression, Parameters, Name) ->
    Numbers = maps:from_list(lists:zip(Parameters, lists:seq(1, length(Parameters)))),
    Printed = unicode:characters_to_binary(erl_pp:expr(renamed(Expression, Numbers, Name))),
    Line = re:replace(Printed, "\\s*\\n\\s*", " ", [global, {return, binary}]),
    Whole = binary:replace(Line, <<?ERLANG>>, <<"erlang">>, [global]),
    pieces(re:split(Whole, "ARGUMENT(\\d+)ARGUMENT", [{return, binary}])).

renamed({var, Anno, '_'}, _, _) -> {var, Anno, '_'};
renamed({remote, Anno, {atom, At, erlang}, Function}, Numbers, Name) ->
    {remote, Anno, {var, At, list_to_atom(?ERLANG)}, renamed(Function, Numbers, Name)};
renamed({var, Anno, Variable}, Numbers, Name) ->
    case Numbers of
        #{Variable := Number} ->
            {var, Anno, list_to_atom(lists:concat(["ARGUMENT", Number, "ARGUMENT"]))};
        #{} -> {var, Anno, Name(Variable)}
    end;
renamed(Tuple, Numbers, Name) when is_tuple(Tuple) ->
    list_to_tuple([renamed(Element, Numbers, Name) || Element <- tuple_to_list(Tuple)]);
renamed(List, Numbers, Name) when is_list(List) ->
    [renamed(Element, Numbers, Name) || Element <- List];
renamed(Other, _, _) ->
    Other.

%% @doc The numbers of the parameters that are not evaluated once for certain, or not before all
%% else: those in clauses, in funs and in comprehensions.
-spec later(erl_parse:abstract_expr(), [atom()]) -> [pos_integer()].
later(Expression, Parameters) ->
    Numbers = maps:from_list(lists:zip(Parameters, lists:seq(1, length(Parameters)))),
    lists:usort([Number || Name <- in_later(Expression), #{Name := Number} <- [Numbers]]).

in_later({call, _, Function, Arguments}) -> in_later(Function) ++ in_later(Arguments);
in_later({remote, _, Module, Function}) -> in_later(Module) ++ in_later(Function);
in_later({'case', _, Of, Clauses}) -> in_later(Of) ++ variables(Clauses);
in_later({block, _, Expressions}) -> in_later(Expressions);
in_later({match, _, Pattern, Expression}) -> variables(Pattern) ++ in_later(Expression);
in_later({tuple, _, Elements}) -> in_later(Elements);
in_later({cons, _, Head, Tail}) -> in_later(Head) ++ in_later(Tail);
in_later({map, _, Fields}) -> in_later(Fields);
in_later({map_field_assoc, _, Key, Value}) -> in_later(Key) ++ in_later(Value);
in_later({var, _, _}) -> [];
in_later(List) when is_list(List) -> lists:append([in_later(Element) || Element <- List]);
in_later(Other) -> variables(Other).

%% @doc The variables in an expression.
-spec variables(term()) -> [atom()].
variables({var, _, Name}) -> [Name];
variables(Tuple) when is_tuple(Tuple) -> variables(tuple_to_list(Tuple));
variables(List) when is_list(List) -> lists:append([variables(Element) || Element <- List]);
variables(_) -> [].

pieces([Text, Number | Rest]) -> [Text, {argument, binary_to_integer(Number)} | pieces(Rest)];
pieces([Text]) -> [Text].
