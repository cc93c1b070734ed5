%% SPDX-License-Identifier: Apache-2.0
%% @doc Calls whose function is written out and whose module is not: `Module:whereis_name(Name)',
%% `apply(Module, join, [Group, Pid])', `{Module, which_groups, []}', `fun Module:send/2'. The
%% module is a variable, a macro or a call. Which old modules may be meant?
%%
%% A macro is what the program defines it to be. Otherwise a function counts that has its name from
%% an old module, as `whereis_name' or `get_members'. Many modules have a `send' or a `join'; these
%% count only in a file that has the name of the old module as a value, or such a call of the first
%% kind. What starts and stops processes never counts. Nothing counts if no file of the program
%% names the old module, or where the module is said by whoever calls, in `{via, Module, Name}'.
-module(weft_migrate_computed).

-export([call/1, of_site/2, is_told/2, ordinary/1, telling/0, telling/2]).
-export_type([call/0]).

%% Arguments: `any' if only their number is written out.
-type call() :: #{module := erl_syntax:syntaxTree(), function := atom(), arity := arity(),
                  arguments := [erl_syntax:syntaxTree()] | any,
                  at := {pos_integer(), pos_integer()}}.

-define(ORDINARY, [send, sync, trans, disconnect, join, leave, monitor, demonitor, create, delete]).
-define(NEVER, [start, start_link, stop, info, own_nodes, monitor_nodes]).
%% Modules whose functions take the word `global' as an option.
-define(OPTIONS, [re, binary, string]).

%% @doc The call that a site is.
-spec call(weft_migrate_tree:site()) -> {ok, call()} | error.
call(#{node := Node} = Site) ->
    case erl_syntax:type(Node) of
        application -> applied(Node);
        tuple -> not_in_pattern(Site, beside(erl_syntax:tuple_elements(Node)));
        implicit_fun -> captured(erl_syntax:implicit_fun_name(Node));
        _ -> error
    end.

applied(Node) ->
    Operator = erl_syntax:application_operator(Node),
    Arguments = erl_syntax:application_arguments(Node),
    case {erl_syntax:type(Operator),
          weft_migrate_tree:is_applying(weft_migrate_tree:call(Node))} of
        {module_qualifier, false} ->
            found(erl_syntax:module_qualifier_argument(Operator),
                  erl_syntax:module_qualifier_body(Operator), Arguments);
        {_, true} -> beside(Arguments);
        _ -> error
    end.

%% Module, function and arguments in a row.
beside([Module, Function, List | Rest]) ->
    case erl_syntax:is_proper_list(List)
             andalso found(Module, Function, erl_syntax:list_elements(List)) of
        {ok, _} = Found -> Found;
        _ -> beside([Function, List | Rest])
    end;
beside(_) ->
    error.

captured(Name) ->
    case erl_syntax:type(Name) of
        module_qualifier ->
            Body = erl_syntax:module_qualifier_body(Name),
            case erl_syntax:type(Body) =:= arity_qualifier
                     andalso erl_syntax:type(erl_syntax:arity_qualifier_argument(Body)) of
                integer ->
                    Arity = erl_syntax:integer_value(erl_syntax:arity_qualifier_argument(Body)),
                    found(erl_syntax:module_qualifier_argument(Name),
                          erl_syntax:arity_qualifier_body(Body), Arity);
                _ -> error
            end;
        _ -> error
    end.

found(Module, Function, Arguments) ->
    case {weft_migrate_tree:atom(Module), weft_migrate_tree:atom(Function),
          weft_migrate_tree:place(Module)} of
        {error, {ok, Name}, {_, _} = At} when is_list(Arguments) ->
            {ok, #{module => Module, function => Name, arity => length(Arguments),
                   arguments => Arguments, at => At}};
        {error, {ok, Name}, {_, _} = At} ->
            {ok, #{module => Module, function => Name, arity => Arguments, arguments => any,
                   at => At}};
        _ -> error
    end.

not_in_pattern(Site, {ok, _} = Found) ->
    case weft_migrate_tree:is_pattern(Site) of true -> error; false -> Found end;
not_in_pattern(_Site, error) ->
    error.

%% @doc The old modules that the call of a site may be of; `macro' if a macro of the program is one
%% of them. Ordinary: those whose ordinary functions count in this file.
-spec of_site(weft_migrate_tree:site(), Ordinary :: [module()]) ->
          {macro | computed, [module()], call()} | none.
of_site(#{path := Path, program := #{named := Named} = Program} = Site, Ordinary) ->
    case call(Site) of
        {ok, #{module := Module, function := Function, arity := Arity} = Call} ->
            Having = [Old || Old <- weft_migrate_old:modules(),
                             weft_migrate_old:has(Old, Function, Arity)],
            case Having =/= [] andalso weft_migrate_program:modules(Module, Program) of
                false -> none;
                {known, Known} ->
                    some(macro, [Old || Old <- Known, lists:member(Old, Having)], Call);
                computed ->
                    some(computed,
                         [Old || Old <- Having, lists:member(Old, Named),
                                 counts(Function, lists:member(Old, Ordinary)),
                                 not is_told(Module, Path)], Call)
            end;
        error ->
            none
    end.

some(_How, [], _Call) -> none;
some(How, Old, Call) -> {How, Old, Call}.

counts(Function, IsOrdinaryToo) ->
    not lists:member(Function, ?NEVER)
        andalso (IsOrdinaryToo orelse not lists:member(Function, ?ORDINARY)).

%% @doc The names of functions by which an old module is known.
-spec telling() -> [atom()].
telling() -> weft_migrate_old:functions() -- (?ORDINARY ++ ?NEVER).

%% @doc The modules among these that are known by the name of this function.
-spec telling(Function :: atom(), [module()]) -> [module()].
telling(Function, Modules) ->
    [Module || Module <- Modules, lists:member(Function, telling()),
               lists:member(Function, weft_migrate_old:functions_of(Module))].

%% @doc Is a module a variable that whoever calls has said, in `{via, Module, Name}'?
-spec is_told(erl_syntax:syntaxTree(), Path :: [erl_syntax:syntaxTree()]) -> boolean().
is_told(Module, Path) ->
    erl_syntax:type(Module) =:= variable
        andalso lists:any(fun(Tree) -> is_via(erl_syntax:variable_name(Module), Tree) end,
                          [Inner || Pattern <- patterns(Path),
                                    Inner <- weft_migrate_tree:all(Pattern)]).

patterns(Path) ->
    lists:append([case erl_syntax:type(Tree) of
                      clause -> erl_syntax:clause_patterns(Tree);
                      _ -> []
                  end || Tree <- Path])
        ++ [erl_syntax:match_expr_pattern(Tree)
            || Path =/= [], Tree <- weft_migrate_tree:all(lists:last(Path)),
               erl_syntax:type(Tree) =:= match_expr].

is_via(Name, Tree) ->
    case erl_syntax:type(Tree) =:= tuple andalso erl_syntax:tuple_elements(Tree) of
        [Via, Module, _] ->
            weft_migrate_tree:atom(Via) =:= {ok, via} andalso erl_syntax:type(Module) =:= variable
                andalso erl_syntax:variable_name(Module) =:= Name;
        _ -> false
    end.

%% @doc The old modules whose ordinary functions count in a file.
-spec ordinary([weft_migrate_tree:site()]) -> [module()].
ordinary(Sites) ->
    lists:usort(lists:append([case of_site(Site, []) of
                                  {_, Old, _} -> Old;
                                  none -> value(Site)
                              end || Site <- Sites])).

%% A word that is passed, kept or returned, not one that is called or the name of an option.
value(#{node := Node, path := [Parent | _] = Path, inside := Inside} = Site) ->
    case weft_migrate_tree:atom(Node) of
        {ok, Old} ->
            [Old || lists:member(Old, weft_migrate_old:modules()),
                    is_value(Node, erl_syntax:type(Parent), Parent, Inside),
                    not weft_migrate_tree:is_pattern(Site), not is_option(Path)];
        _ -> []
    end;
value(_Site) ->
    [].

is_value(Node, tuple, Parent, _) -> lists:last(erl_syntax:tuple_elements(Parent)) =:= Node;
is_value(Node, application, Parent, _) ->
    lists:member(Node, erl_syntax:application_arguments(Parent));
is_value(Node, record_field, Parent, _) -> erl_syntax:record_field_value(Parent) =:= Node;
is_value(Node, map_field_assoc, Parent, _) -> erl_syntax:map_field_assoc_value(Parent) =:= Node;
is_value(Node, map_field_exact, Parent, _) -> erl_syntax:map_field_exact_value(Parent) =:= Node;
is_value(_, attribute, _, Inside) -> Inside =:= "-define";
is_value(_, Type, _, _) -> lists:member(Type, [clause, match_expr, list, block_expr, parentheses]).

is_option(Path) ->
    lists:any(fun(Tree) ->
                      case weft_migrate_tree:call(Tree) of
                          {ok, #{module := Module}} -> lists:member(Module, ?OPTIONS);
                          error -> false
                      end
              end, Path).
