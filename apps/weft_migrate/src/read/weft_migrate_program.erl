%% SPDX-License-Identifier: Apache-2.0
%% @doc What a file alone does not say: what the macros are that other files define, and which of
%% the old modules the program names at all.
%%
%% Definitions are looked for in the bytes, so one in a comment counts, too. A name that several
%% files define may be any of these, but in a file that defines it, it is what that file says.
-module(weft_migrate_program).

-export([of_files/1, of_all/1, of_bytes/1, beside/2, may_concern/2, modules/2]).
-export_type([program/0]).

%% Macros without parameters: the atoms that they may be, `unknown' if one is something else.
-type program() :: #{macros := #{Name :: string() => [atom() | unknown, ...]},
                     named := [module()]}.

%% The name in quotes or without, and its value if that is an atom.
-define(DEFINED, "^[ \\t]*-[ \\t]*define[ \\t]*\\([ \\t]*'?(\\w+)'?\\s*,\\s*"
                 "(?:'?([a-z][\\w@]*)'?\\s*\\))?").

%% @doc Files that cannot be read have nothing.
-spec of_files([file:filename_all()]) -> program().
of_files(Files) ->
    lists:foldl(fun(File, Program) -> both(of_bytes(read(File)), Program) end,
                of_bytes(<<>>), Files).

%% @doc The same of files that have been read.
-spec of_all([binary()]) -> program().
of_all(Texts) ->
    lists:foldl(fun(Bytes, Program) -> both(of_bytes(Bytes), Program) end, of_bytes(<<>>), Texts).

read(File) ->
    case file:read_file(File) of
        {ok, Bytes} -> Bytes;
        {error, _} -> <<>>
    end.

both(#{macros := New, named := Also}, #{macros := Macros, named := Named}) ->
    #{macros => maps:merge_with(fun(_, One, Other) -> lists:usort(One ++ Other) end, New, Macros),
      named => lists:usort(Also ++ Named)}.

%% @doc The same of one file.
-spec of_bytes(binary()) -> program().
of_bytes(Bytes) ->
    Defined = case re:run(Bytes, ?DEFINED, [global, multiline, {capture, all_but_first, list}]) of
                  {match, Found} -> Found;
                  nomatch -> []
              end,
    #{macros => lists:foldl(fun defined/2, #{}, Defined),
      named => [Module || Module <- weft_migrate_old:modules(),
                          re:run(Bytes, ["\\b", atom_to_list(Module), "\\b"]) =/= nomatch]}.

defined([Name | Value], Macros) ->
    Macros#{Name => lists:usort(value(Value) ++ maps:get(Name, Macros, []))}.

value([Word]) ->
    case [Module || Module <- weft_migrate_old:modules(), atom_to_list(Module) =:= Word] of
        [Module] -> [Module];
        [] -> [other]
    end;
value([]) -> [unknown].

%% @doc What is known in one file of a program.
-spec beside(OfFile :: program(), program()) -> program().
beside(#{macros := Own, named := Named}, #{macros := Macros, named := Also}) ->
    #{macros => maps:merge(Macros, Own), named => lists:usort(Named ++ Also)}.

%% @doc Can a file have a place of an old module? Otherwise it need not be read.
-spec may_concern(binary(), program()) -> boolean().
may_concern(Bytes, #{macros := Macros}) ->
    Words = [<<"via">> | [atom_to_binary(Word) || Word <- weft_migrate_old:modules()
                                                      ++ weft_migrate_computed:telling()]]
        ++ [list_to_binary(Name) || {Name, Values} <- maps:to_list(Macros), old(Values) =/= []],
    binary:match(Bytes, Words) =/= nomatch.

%% @doc The old modules that an expression is by its text, if it is an atom or a macro of which all
%% definitions are known to be atoms, or one is known to be an old module.
-spec modules(erl_syntax:syntaxTree(), program()) -> {known, [module()]} | computed.
modules(Tree, #{macros := Macros}) ->
    case erl_syntax:type(Tree) of
        atom -> {known, old([erl_syntax:atom_value(Tree)])};
        macro -> of_macro(weft_migrate_tree:macro_of(Tree), Macros);
        _ -> computed
    end.

of_macro({ok, "MODULE"}, _Macros) ->
    {known, []};
of_macro({ok, Name}, Macros) ->
    Values = maps:get(Name, Macros, [unknown]),
    case {old(Values), lists:member(unknown, Values)} of
        {[], true} -> computed;
        {Old, _} -> {known, Old}
    end;
of_macro(error, _Macros) ->
    computed.

old(Values) -> [Value || Value <- Values, lists:member(Value, weft_migrate_old:modules())].
