%% SPDX-License-Identifier: Apache-2.0
%% @doc The rules of an adaptor: calls of the old module become what the adaptor says. All other
%% ways in which the old module is used are left, and told.
-module(weft_migrate_api).

-export([look/3, says_meaning/2]).

%% Locks have nothing to do with names.
-define(LOCKS, [set_lock, del_lock, trans]).

-spec look(weft_migrate_adaptor:adaptor(), weft_migrate_tree:site(),
           weft_migrate_rule:context()) -> weft_migrate_rule:result().
look(#{old := Old} = Adaptor, #{node := Node} = Site, Context) ->
    case weft_migrate_tree:call(Node) of
        {ok, #{module := Old} = Call} ->
            called(Adaptor, Site, Call, Context);
        _ ->
            case erl_syntax:type(Node) of
                atom -> mentioned(Adaptor, Site);
                macro -> macro(Adaptor, Site);
                _ -> computed(Adaptor, Site, Context)
            end
    end.

computed(#{old := Old}, Site, #{ordinary := Ordinary}) ->
    case weft_migrate_computed:of_site(Site, Ordinary) of
        {How, Modules, _} -> leave_if(lists:member(Old, Modules), reason(How));
        none -> none
    end.

reason(macro) -> "the name of the module is a macro";
reason(computed) -> "the name of the module is computed".

called(#{rules := Rules} = Adaptor, Site, #{function := Function, arguments := Arguments},
       Context) ->
    Key = {Function, length(Arguments)},
    case {weft_migrate_tree:is_macro(Site), is_kept(Adaptor, Site, Function, Context), Rules} of
        {true, _, _} -> {leave, "it is in a macro"};
        {false, true, _} -> {leave, "this file says what names of the old module mean"};
        {false, false, #{Key := Rule}} ->
            Scope = weft_migrate_scope:edits(Rule, Function, Arguments, Site),
            in_scope(Scope, Site, Rule, Context);
        {false, false, _} -> {leave, lists:flatten(io_lib:format("nothing means the same as ~ts/~w",
                                                          [Function, length(Arguments)]))}
    end.

in_scope({ok, OfScope}, Site, Rule, Context) ->
    case weft_migrate_use:edits(Site, Rule, Context) of
        {edit, Edits, Names} -> {edit, OfScope ++ Edits, Names};
        Leave -> Leave
    end;
in_scope(Leave, _, _, _) ->
    Leave.

is_kept(#{old := Old} = Adaptor, Site, Function, #{meanings := Meanings}) ->
    not lists:member(Function, ?LOCKS)
        andalso (lists:member(Old, Meanings) orelse is_meaning(Adaptor, Site)).

%% @doc Does a source answer those who ask with names of the old module, as in
%% `where({global, Name}) -> global:whereis_name(Name)'? Then all its names stay.
-spec says_meaning(weft_migrate_adaptor:adaptor(), weft_migrate_tree:site()) -> boolean().
says_meaning(#{old := Old} = Adaptor, #{node := Node} = Site) ->
    case weft_migrate_tree:call(Node) of
        {ok, #{module := Old}} -> is_meaning(Adaptor, Site);
        _ -> false
    end.

is_meaning(#{old := Old}, #{path := Path}) ->
    lists:any(fun(Tree) -> is_name(Old, Tree) end,
              [Inner || Clause <- Path, erl_syntax:type(Clause) =:= clause,
                        Pattern <- erl_syntax:clause_patterns(Clause),
                        Inner <- weft_migrate_tree:all(Pattern)]).

is_name(Old, Tree) ->
    case erl_syntax:type(Tree) =:= tuple andalso erl_syntax:tuple_elements(Tree) of
        [First, _] -> weft_migrate_tree:atom(First) =:= {ok, Old};
        [Via, Module, _] -> {weft_migrate_tree:atom(Via), weft_migrate_tree:atom(Module)}
                                =:= {{ok, via}, {ok, Old}};
        _ -> false
    end.

%% The word alone: a call by way of a value, or only an atom of this name.
mentioned(#{old := Old} = Adaptor, #{node := Node, path := Path} = Site) ->
    case erl_syntax:atom_value(Node) of
        Old -> in(Adaptor, Site, Path);
        _ -> none
    end.

%% A macro that is the name of the module, where that would be told of the name. Calls by way of it
%% are told as such.
macro(#{old := Old} = Adaptor, #{node := Node, path := [Parent | _] = Path,
                                 program := Program} = Site) ->
    IsCall = weft_migrate_computed:call(Site#{node := Parent, path := tl(Path)}) =/= error,
    case {weft_migrate_program:modules(Node, Program), erl_syntax:type(Parent)} of
        {{known, Modules}, Type} when not IsCall, Type =:= application orelse Type =:= match_expr ->
            leave_if(lists:member(Old, Modules) andalso in(Adaptor, Site, Path) =/= none,
                     reason(macro));
        _ -> none
    end;
macro(_Adaptor, _Site) ->
    none.

in(_Adaptor, #{inside := "-import"}, _Path) ->
    {leave, "its functions are imported"};
in(Adaptor, Site, [Parent | Above]) ->
    case erl_syntax:type(Parent) of
        tuple ->
            start(Adaptor, Site, Parent, Above);
        module_qualifier ->
            case erl_syntax:type(hd(Above)) of
                application ->
                    case weft_migrate_tree:call(hd(Above)) of
                        {ok, _} -> none;
                        error -> {leave, "the name of the function is computed"}
                    end;
                _ -> {leave, "it is a fun for later"}
            end;
        application ->
            applied(Adaptor, Site, Parent);
        match_expr ->
            kept(Adaptor, Parent, Site);
        _ ->
            none
    end;
in(_, _, []) ->
    none.

leave_if(true, Reason) -> {leave, Reason};
leave_if(false, _Reason) -> none.

%% What the old module itself is called with is a name, a scope or a group, even if it is its word.
applied(#{old := Old} = Adaptor, Site, Application) ->
    case weft_migrate_tree:call(Application) of
        {ok, #{module := Old}} -> none;
        _ -> passed(Adaptor, Site, Application)
    end.

%% rpc:call(Node, pg, join, [Group, Pid]) is a call if all of it is written out. That of `global'
%% may be about a name, and then it would have to move with all places of it.
passed(#{old := Old, rules := Rules}, #{node := Node} = Site, Application) when Old =/= global ->
    case rule(to_be_called(Node, Application), Rules) of
        {Function, Arguments, Rule} ->
            case weft_migrate_tree:is_macro(Site)
                     orelse started(Site, Function, Arguments, Rule) of
                {edit, _, _} = Edit -> Edit;
                _ -> argument(Old, Node, Application)
            end;
        none -> argument(Old, Node, Application)
    end;
passed(#{old := Old}, #{node := Node}, Application) ->
    argument(Old, Node, Application).

to_be_called(Node, Application) ->
    Arguments = erl_syntax:application_arguments(Application),
    case {weft_migrate_tree:is_applying(weft_migrate_tree:call(Application)),
          lists:dropwhile(fun(Argument) -> Argument =/= Node end, Arguments)} of
        {true, [Node, Function, List | _]} -> written(Function, List);
        _ -> none
    end.

%% A function and its arguments, if both are written out.
written(Function, Arguments) ->
    case {weft_migrate_tree:atom(Function), erl_syntax:is_proper_list(Arguments)} of
        {{ok, Name}, true} -> {Name, erl_syntax:list_elements(Arguments)};
        _ -> none
    end.

rule({Function, Arguments}, Rules) ->
    case maps:find({Function, length(Arguments)}, Rules) of
        {ok, Rule} -> {Function, Arguments, Rule};
        error -> none
    end;
rule(none, _Rules) ->
    none.

%% `global' is an ordinary word, too: as an argument it is a module only where something is called.
argument(Old, Node, Application) ->
    Arguments = erl_syntax:application_arguments(Application),
    IsApplying = weft_migrate_tree:is_applying(weft_migrate_tree:call(Application)),
    case {Old, is_called(Old, Node, Arguments, IsApplying)} of
        {_, true} -> {leave, "it is called by way of apply or the like"};
        {global, false} -> none;
        {_, false} -> leave_if(lists:member(Node, Arguments), "it may be the name of the module")
    end.

is_called(Old, Node, [Node, Function, Arguments | _], IsApplying) ->
    case {erl_syntax:type(Function), erl_syntax:type(Arguments)} of
        {Type, _} when IsApplying, Type =:= atom orelse Type =:= variable orelse Type =:= macro ->
            true;
        {atom, Type} when Type =:= list; Type =:= nil ->
            weft_migrate_old:is_function(Old, erl_syntax:atom_value(Function), Arguments);
        _ -> false
    end;
is_called(Old, Node, [_ | Rest], IsApplying) -> is_called(Old, Node, Rest, IsApplying);
is_called(_, _, [], _) -> false.

%% Module = pg, and Module:join(...) somewhere in the same form.
kept(#{old := Old}, Match, #{node := Node, form := #{tokens := Tokens}}) ->
    Pattern = erl_syntax:match_expr_pattern(Match),
    case {erl_syntax:match_expr_body(Match), erl_syntax:type(Pattern)} of
        {Node, variable} ->
            Name = erl_syntax:variable_name(Pattern),
            leave_if(Old =/= global orelse is_module(Name, Tokens),
                     "the name of the module is kept in a variable");
        _ ->
            none
    end.

is_module(Name, [{var, Name, _, _, _}, {':', _, _, _, _} | _]) -> true;
is_module(Name, [_ | Tokens]) -> is_module(Name, Tokens);
is_module(_, []) -> false.

%% {Module, Function, [...]} that is surely the start of a child of a supervisor is a call; what
%% else looks like that is left.
start(#{old := Old, rules := Rules}, #{node := Node} = Site, Tuple, Above) ->
    case erl_syntax:tuple_elements(Tuple) of
        [Node, Function, List] ->
            Written = written(Function, List),
            IsSure = is_start(Tuple, Above) andalso not weft_migrate_tree:is_macro(Site),
            case {Written, rule(Written, Rules)} of
                {none, _} -> none;
                {_, {Name, Arguments, Rule}} when IsSure -> started(Site, Name, Arguments, Rule);
                {{Name, _}, _} ->
                    leave_if(weft_migrate_old:is_function(Old, Name, List)
                                 andalso not weft_migrate_tree:is_pattern(Site),
                             "it is a function to be called by someone else")
            end;
        _ ->
            none
    end.

started(#{node := Node, form := Form} = Site, Function, Arguments,
        #{parameters := Parameters} = Rule) ->
    case {weft_migrate_adaptor:body(Rule),
          weft_migrate_scope:edits(Rule, Function, Arguments, Site),
          weft_migrate_range:word(Form, weft_migrate_tree:place(Node))} of
        {{call, Module, Function, Parameters}, {ok, OfScope}, {ok, {Byte, Size}}} ->
            {edit, [{Byte, Size, atom_to_binary(Module)} | OfScope], []};
        {_, {leave, _} = Leave, _} ->
            Leave;
        _ ->
            {leave, "it is a function to be called by someone else"}
    end.

%% #{start => {M, F, A}}, or {Id, {M, F, A}, Restart, Shutdown, Type, Modules}.
is_start(Tuple, [Parent | _]) ->
    case erl_syntax:type(Parent) of
        map_field_assoc ->
            weft_migrate_tree:atom(erl_syntax:map_field_assoc_name(Parent)) =:= {ok, start};
        tuple ->
            case erl_syntax:tuple_elements(Parent) of
                [_, Tuple, _, _, _, _] -> true;
                _ -> false
            end;
        _ ->
            false
    end;
is_start(_, []) ->
    false.
