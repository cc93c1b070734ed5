%% SPDX-License-Identifier: Apache-2.0
%% @doc The edits that put what an adaptor says in place of one call.
%%
%% Arguments stay where they are, byte for byte; what is between them is replaced. Where the result
%% is not looked at, only the new call is needed. Where it is taken apart by a match or a case, the
%% patterns are changed. Otherwise what the results mean is written around the new call.
-module(weft_migrate_use).

-export([edits/3]).
-export_type([context/0]).

%% The bytes of the file and their encoding, the variables that stand for results of other calls in
%% this form, the old modules of which the file says what their names mean, the words that are keys
%% of its tables, and the old modules whose ordinary functions count (`weft_migrate_computed').
-type context() :: #{bytes := binary(), encoding := weft_migrate_tokens:encoding(),
                     taken := [atom()], meanings := [module()],
                     keys := [atom()], ordinary := [module()]}.
-type result() :: {edit, [weft_migrate_edit:edit()], NewVariables :: [atom()]}
                | {leave, string()}.

-spec edits(weft_migrate_tree:site(), weft_migrate_adaptor:rule(), context()) -> result().
edits(#{node := Node, form := Form} = Site, Rule, Context) ->
    {ok, Call} = weft_migrate_tree:call(Node),
    case {weft_migrate_range:call(Form, Call), weft_migrate_adaptor:body(Rule)} of
        {error, _} ->
            {leave, "its arguments are not understood"};
        {{ok, Range}, {call, Module, Function, Names}} ->
            renamed(Call, Range, Rule, {Module, Function, Names}, Context);
        {{ok, Range}, {mapping, New, Pairs}} ->
            #{parameters := Parameters} = Rule,
            #{arguments := Trees} = Call,
            Given = maps:from_list(lists:zip(Parameters, Trees)),
            case patterns(Site, Given, Pairs, Context) of
                {ok, Edits} ->
                    with(Edits, replaced(Range, template(New, Rule, fun same/1), [], Context));
                error ->
                    whole(Site, Range, Rule, Context)
            end;
        {{ok, Range}, expression} ->
            whole(Site, Range, Rule, Context)
    end.

same(Name) -> Name.

with(More, {edit, Edits, Names}) -> {edit, More ++ Edits, Names};
with(_, Leave) -> Leave.

%% The same arguments in the same order: only the words in front of them.
renamed(#{function := Old}, #{module := {From, Size}, function := {Byte, FunctionSize}},
        #{parameters := Names}, {Module, Function, Names}, _Context) ->
    {edit, [{From, Size, atom_to_binary(Module)}
            | [{Byte, FunctionSize, atom_to_binary(Function)} || Old =/= Function]], []};
renamed(_, Range, #{body := Body} = Rule, _, Context) ->
    replaced(Range, template(Body, Rule, fun same/1), [], Context).

template(Expression, #{parameters := Parameters}, Name) ->
    {weft_migrate_adaptor:text(Expression, Parameters, Name),
     weft_migrate_adaptor:later(Expression, Parameters)}.

%% The edits of the patterns that take the result apart, if it is used for nothing else.
patterns(#{node := Node, path := [Parent | Above], form := Form} = Site, Given, Pairs, Context) ->
    case {weft_migrate_tree:is_unused(Site), erl_syntax:type(Parent)} of
        {true, _} ->
            {ok, []};
        {false, match_expr} ->
            case weft_migrate_tree:is_unused(Site#{node := Parent, path := Above}) of
                true -> changed([erl_syntax:match_expr_pattern(Parent)], ['='], Form,
                                {Given, Pairs}, Context);
                false -> error
            end;
        {false, case_expr} ->
            case erl_syntax:case_expr_argument(Parent) of
                Node -> changed([Pattern || Clause <- erl_syntax:case_expr_clauses(Parent),
                                            Pattern <- erl_syntax:clause_patterns(Clause),
                                            erl_syntax:type(Pattern) =/= underscore],
                                ['->', 'when'], Form, {Given, Pairs}, Context);
                _ -> error
            end;
        _ ->
            error
    end.

%% In the encoding of the file. A comment in a pattern would be lost.
changed(Patterns, Words, Form, {Given, Pairs}, #{bytes := Bytes, encoding := Encoding}) ->
    Edits = [{Byte, Size, unicode:characters_to_binary(Text, utf8, Encoding)}
             || Pattern <- Patterns,
                {ok, Text} <- [new_pattern(Pattern, Given, Pairs)],
                {ok, {Byte, Size}} <-
                    [weft_migrate_range:until(Form, weft_migrate_tree:place(Pattern), Words)],
                not has_comment(binary:part(Bytes, Byte, Size))],
    case length(Edits) =:= length(Patterns) of
        true -> {ok, Edits};
        false -> error
    end.

%% The pattern of the new result that is meant by one of the old result, if it is exactly one.
new_pattern(Pattern, Given, Pairs) ->
    case [{New, Bound} || {New, Old} <- Pairs, {ok, Bound} <- [unify(Old, Pattern, Given, #{})]] of
        [{New, Bound}] -> {ok, iolist_to_binary(printed(New, Bound))};
        _ -> error
    end.

unify(Old, Pattern, Given, Bound) ->
    case {Old, erl_syntax:type(Pattern)} of
        {{var, _, Name}, Type} when is_map_key(Name, Given) ->
            is_given(Type, Pattern, maps:get(Name, Given), Bound);
        {{var, _, Name}, _} when not is_map_key(Name, Bound) ->
            {ok, Bound#{Name => text(Pattern)}};
        {_, underscore} ->
            {ok, Bound};
        {{atom, _, Atom}, atom} ->
            case erl_syntax:atom_value(Pattern) of Atom -> {ok, Bound}; _ -> error end;
        {{tuple, _, Olds}, tuple} ->
            all(Olds, erl_syntax:tuple_elements(Pattern), Given, Bound);
        _ ->
            error
    end.

all([], [], _, Bound) ->
    {ok, Bound};
all([Old | Olds], [Pattern | Patterns], Given, Bound0) ->
    case unify(Old, Pattern, Given, Bound0) of
        {ok, Bound} -> all(Olds, Patterns, Given, Bound);
        error -> error
    end;
all(_, _, _, _) ->
    error.

%% The old result has the argument in it: the pattern has to be the same variable or atom.
is_given(underscore, _, _, Bound) -> {ok, Bound};
is_given(Type, Pattern, Argument, Bound) when Type =:= variable; Type =:= atom ->
    case text(Pattern) =:= text(Argument) of
        true -> {ok, Bound};
        false -> error
    end;
is_given(_, _, _, _) -> error.

text(Tree) -> unicode:characters_to_binary(erl_prettypr:format(Tree)).

%% Variables that the old pattern does not name are of no interest to it.
printed(New, Bound) ->
    Parts = weft_migrate_adaptor:text(New, maps:keys(Bound), fun(_) -> '_' end),
    Texts = [maps:get(Name, Bound) || Name <- maps:keys(Bound)],
    [case Part of {argument, Number} -> lists:nth(Number, Texts); _ -> Part end || Part <- Parts].

%% --- the whole body in place of the call --------------------------------------------------------

whole(#{form := Form}, Range, #{body := Body} = Rule, #{taken := Taken} = Context) ->
    Used = weft_migrate_range:names(Form) ++ Taken,
    Names = maps:from_list([{Name, fresh(Name, Used, 1)} || Name <- variables(Body, Rule)]),
    replaced(Range, template(Body, Rule, fun(Name) -> maps:get(Name, Names) end),
             maps:values(Names), Context).

variables(Body, #{parameters := Parameters}) ->
    lists:usort(weft_migrate_adaptor:variables(Body)) -- ['_' | Parameters].

fresh(Name, Used, Count) ->
    Fresh = case Count of 1 -> Name; _ -> list_to_atom(lists:concat([Name, Count])) end,
    case lists:member(Fresh, Used) of
        true -> fresh(Name, Used, Count + 1);
        false -> Fresh
    end.

%% --- text around the arguments -----------------------------------------------------------------

%% Each argument once and in its order: only what is between them is replaced. Words (a variable,
%% an atom, a number) may be anywhere and several times; what else is an argument is evaluated once
%% and in its order, as before.
replaced(#{arguments := Arguments, from := From, to := To} = Range, {Parts, Later}, Names,
         #{bytes := Bytes}) ->
    Numbers = [Number || {argument, Number} <- Parts],
    Edits = case Numbers =:= lists:seq(1, length(Arguments)) of
                true -> between(Parts, Arguments, From, To);
                false -> [{From, To - From, filled(Parts, Arguments, Bytes)}]
            end,
    case {is_evaluated_as_before(Range, Numbers, Later),
          [Byte || {Byte, Size, _} <- Edits, has_comment(binary:part(Bytes, Byte, Size))]} of
        {true, []} -> {edit, [Edit || Edit <- Edits, not is_as_before(Edit, Bytes)], Names};
        {true, _} -> {leave, "there is a comment between its arguments"};
        {false, _} -> {leave, "its arguments would be evaluated in another order"}
    end.

is_evaluated_as_before(#{tokens := Tokens}, Numbers, Later) ->
    Others = [Number || {Number, Count} <- lists:zip(lists:seq(1, length(Tokens)), Tokens),
                        Count > 1],
    [Number || Number <- Numbers, lists:member(Number, Others)] =:= Others
        andalso not lists:any(fun(Number) -> lists:member(Number, Later) end, Others).

between([Text], [], From, To) ->
    [{From, To - From, Text}];
between([Text, {argument, _} | Parts], [{Byte, Size} | Arguments], From, To) ->
    [{From, Byte - From, Text} | between(Parts, Arguments, Byte + Size, To)].

filled(Parts, Arguments, Bytes) ->
    iolist_to_binary([case Part of
                          {argument, Number} ->
                              {Byte, Size} = lists:nth(Number, Arguments),
                              binary:part(Bytes, Byte, Size);
                          _ -> Part
                      end || Part <- Parts]).

has_comment(Text) -> binary:match(Text, <<"%">>) =/= nomatch.

%% Only other white space.
is_as_before({Byte, Size, New}, Bytes) ->
    re:replace(binary:part(Bytes, Byte, Size), "\\s", "", [global, {return, binary}])
        =:= re:replace(New, "\\s", "", [global, {return, binary}]).
