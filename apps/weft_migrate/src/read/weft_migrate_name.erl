%% SPDX-License-Identifier: Apache-2.0
%% @doc Tuples by which a process is named: `{global, Name}' and `{via, Module, Name}'. The first
%% may be something else, an option or the key of a table.
-module(weft_migrate_name).

-export([of_site/1, is_likely/2]).

%% What may be a name, if nobody says that it is one.
-define(TYPES, [binary, macro, record_access, string, tuple, variable]).

%% @doc A tuple that names a process by `global', or may: the module is written out, a macro that is
%% `global' in this program, or computed. Patterns name nothing.
-spec of_site(weft_migrate_tree:site()) ->
          {pair | via, written | macro | computed, Module :: erl_syntax:syntaxTree(),
           Name :: erl_syntax:syntaxTree()} | none.
of_site(#{node := Node} = Site) ->
    case erl_syntax:type(Node) =:= tuple andalso not weft_migrate_tree:is_pattern(Site)
             andalso erl_syntax:tuple_elements(Node) of
        [Module, Name] -> pair(is_global(Module, Site), Module, Name);
        [Via, Module, Name] ->
            case weft_migrate_tree:atom(Via) of
                {ok, via} -> via(is_global(Module, Site), Module, Name);
                _ -> none
            end;
        _ -> none
    end.

pair(How, Module, Name) when How =:= written; How =:= macro -> {pair, How, Module, Name};
pair(_, _, _) -> none.

via(none, _, _) -> none;
via(How, Module, Name) -> {via, How, Module, Name}.

is_global(Module, #{path := Path, program := #{named := Named} = Program}) ->
    case {weft_migrate_program:modules(Module, Program), erl_syntax:type(Module)} of
        {computed, _} ->
            case weft_migrate_computed:is_told(Module, Path) of
                false -> case lists:member(global, Named) of true -> computed; false -> none end;
                true -> none
            end;
        {{known, Modules}, Type} ->
            case {lists:member(global, Modules), Type} of
                {true, atom} -> written;
                {true, macro} -> macro;
                {false, _} -> none
            end
    end.

%% @doc May this be a name, in a file whose tables have these words as keys?
-spec is_likely(Name :: erl_syntax:syntaxTree(), Keys :: [atom()]) -> boolean().
is_likely(Name, Keys) ->
    case {weft_migrate_tree:atom(Name), erl_syntax:type(Name)} of
        {{ok, Word}, _} -> not lists:member(Word, [true, false, undefined | Keys]);
        {error, infix_expr} ->
            erl_syntax:operator_name(erl_syntax:infix_expr_operator(Name)) =:= '++';
        {error, application} -> not is_self(weft_migrate_tree:call(Name));
        {error, Type} -> lists:member(Type, ?TYPES)
    end.

%% {global, self()} is a lock.
is_self({ok, #{module := Module, function := self, arguments := []}}) ->
    Module =:= '' orelse Module =:= erlang;
is_self(_) -> false.
