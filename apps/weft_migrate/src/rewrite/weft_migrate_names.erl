%% SPDX-License-Identifier: Apache-2.0
%% @doc A name of `global' moves with all its places, or not at all: what is registered with weft is
%% not found by `global', and the other way round. Pure.
%%
%% The places of all files are collected first. A place names an atom, or possibly any name: by a
%% variable, a macro, a function that is passed on. A place that stays keeps its name where it is.
%% If one that may be of any name stays, or one that would be rewritten may be of a name that stays,
%% nobody knows which names are concerned, so all of them stay. A name that is only looked up stays,
%% too: who registers it is not in these files. Locks are no names.
-module(weft_migrate_names).

-export([of_site/2, registers/1, of_unread/1, stay/1, decided/3]).
-export_type([name/0, place/0, staying/0]).

-type name() :: {name, atom()} | any.
%% `edited' is what would be, if all other places of the name are too; `registered', if it gives a
%% process that name.
-type place() :: {left | edited | registered, name(), file:filename_all(), Line :: pos_integer()}.
%% Literal names that stay, each with a place; and places that keep what is not literal, and all
%% other literal names. `unregistered': only looked up.
-type keeper() :: place() | unregistered | none.
-type staying() :: #{literal := #{name() => keeper()}, any := keeper(), others := keeper()}.

-define(OF_NAME, [register_name, re_register_name, unregister_name, whereis_name, send,
                  register_name_external, re_register_name_external, unregister_name_external]).
-define(OF_ALL_NAMES, [registered_names, sync]).
-define(REGISTERING, [register_name, re_register_name, register_name_external,
                      re_register_name_external]).

%% @doc What name a site is about that the rules of `global' say something of. Own is the module
%% that it is in, if that is known.
-spec of_site(weft_migrate_tree:site(), Own :: {ok, module()} | none) -> name() | none.
of_site(#{node := Node, path := Path}, Own) ->
    case {weft_migrate_tree:call(Node), erl_syntax:type(Node)} of
        {{ok, #{function := Function, arguments := Arguments}}, _} ->
            case {of_function(Function), Arguments} of
                {first, [Name | _]} -> named(Name, Own);
                {none, _} -> none;
                _ -> any
            end;
        {error, tuple} ->
            named(lists:last(erl_syntax:tuple_elements(Node)), Own);
        {error, _} ->
            of_word(Node, Path)
    end.

%% @doc Does a site give a process its name? So do the functions for it, and a start of a process
%% with `{global, Name}'.
-spec registers(weft_migrate_tree:site()) -> boolean().
registers(#{node := Node, path := Path}) ->
    case {weft_migrate_tree:call(Node), Path} of
        {{ok, #{function := Function}}, _} ->
            lists:member(Function, ?REGISTERING);
        {error, [Parent | _]} ->
            case weft_migrate_tree:call(Parent) of
                {ok, #{function := Function}} ->
                    Function =:= enter_loop orelse lists:prefix("start", atom_to_list(Function));
                error -> false
            end;
        _ -> false
    end.

of_function(Function) ->
    case {lists:member(Function, ?OF_NAME), lists:member(Function, ?OF_ALL_NAMES)} of
        {true, _} -> first;
        {_, true} -> all;
        _ -> none
    end.

named(Tree, Own) ->
    case {weft_migrate_tree:atom(Tree), is_own(Tree), Own} of
        {{ok, Name}, _, _} -> {name, Name};
        {error, true, {ok, Module}} -> {name, Module};
        _ -> any
    end.

is_own(Tree) ->
    erl_syntax:type(Tree) =:= macro andalso erl_syntax:macro_arguments(Tree) =:= none
        andalso erl_syntax:type(erl_syntax:macro_name(Tree)) =:= variable
        andalso erl_syntax:variable_name(erl_syntax:macro_name(Tree)) =:= 'MODULE'.

%% The word `global' alone: by the function beside it, if there is one, it is about names or not.
of_word(Node, [Parent | _]) ->
    case function_beside(Node, Parent) of
        {ok, Function} -> case of_function(Function) of none -> none; _ -> any end;
        error -> any
    end;
of_word(_, []) ->
    any.

function_beside(Node, Parent) ->
    case erl_syntax:type(Parent) of
        module_qualifier ->
            Body = erl_syntax:module_qualifier_body(Parent),
            case erl_syntax:type(Body) of
                arity_qualifier -> weft_migrate_tree:atom(erl_syntax:arity_qualifier_body(Body));
                _ -> weft_migrate_tree:atom(Body)
            end;
        application -> next(Node, erl_syntax:application_arguments(Parent));
        tuple -> next(Node, erl_syntax:tuple_elements(Parent));
        _ -> error
    end.

next(Node, [Node, Next | _]) -> weft_migrate_tree:atom(Next);
next(Node, [_ | Rest]) -> next(Node, Rest);
next(_, []) -> error.

%% @doc The lines of forms that could not be read and may be about names. Without tokens there are
%% only the bytes.
-spec of_unread(weft_migrate_source:source()) -> [Line :: pos_integer()].
of_unread(#{forms := Forms, bytes := Bytes}) ->
    lists:append([case Form of
                      #{tokens := [], byte := Byte, size := Size} ->
                          [Line || binary:match(binary:part(Bytes, Byte, Size), <<"global">>)
                                       =/= nomatch];
                      #{tokens := Tokens} ->
                          words(Tokens)
                  end || #{tree := {error, _}, at := {Line, _}} = Form <- Forms]).

words([{atom, global, {Line, _}, _, _}, {':', _, _, _, _}, {atom, Function, _, _, _} | Tokens]) ->
    [Line || of_function(Function) =/= none] ++ words(Tokens);
words([{atom, global, {Line, _}, _, _} | Tokens]) -> [Line | words(Tokens)];
words([_ | Tokens]) -> words(Tokens);
words([]) -> [].

%% @doc Which names stay, from the places of all files.
-spec stay([place()]) -> staying().
stay(Places) ->
    Left = [Place || {left, _, _, _} = Place <- Places],
    Literal = maps:from_list([{Name, Place} || {_, {name, _} = Name, _, _} = Place
                                                   <- lists:reverse(Left)]),
    {Any, Others} = unknown(Left, lists:keyfind(any, 2, Left),
                            lists:keyfind(any, 2, Places -- Left)),
    unregistered(Places, #{literal => Literal, any => Any, others => Others}).

%% A place that registers any name may register each of them.
unregistered(Places, #{literal := Literal, any := Any} = Staying) ->
    Registered = lists:usort([Name || {registered, Name, _, _} <- Places]),
    Missing = [Name || {edited, {name, _} = Name, _, _} <- Places,
                       not lists:member(Name, Registered), not lists:member(any, Registered)],
    Staying#{literal := maps:merge(maps:from_list([{Name, unregistered} || Name <- Missing]),
                                   Literal),
             any := case {Any, Places, Registered} of
                        {none, [_ | _], []} -> unregistered;
                        _ -> Any
                    end}.

unknown([], _, _) -> {none, none};
unknown(_, {left, _, _, _} = Any, _) -> {Any, Any};
unknown([First | _], false, {_, _, _, _} = Any) -> {First, Any};
unknown(_, false, false) -> {none, none}.

%% @doc The answer of a rule of `global' for a site about a name, as far as that may move.
-spec decided(weft_migrate_rule:result(), name() | none, staying()) ->
          weft_migrate_rule:result() | {hold, Reason :: string()}.
decided({edit, _, _} = Edit, Name, Staying) ->
    case keeping(Name, Staying) of
        none -> Edit;
        unregistered ->
            {hold, "nothing in these files registers it, so who does may stay with global"};
        {_, Name, File, Line} when Name =/= any -> held("of this name stays", File, Line);
        {_, _, File, Line} -> held("that may be of this name stays", File, Line)
    end;
decided(Answer, _, _) ->
    Answer.

keeping(none, _) -> none;
keeping(any, #{any := Place}) -> Place;
keeping(Name, #{literal := Literal, others := Others}) -> maps:get(Name, Literal, Others).

held(What, File, Line) ->
    {hold, lists:flatten(io_lib:format("another place ~ts with global (~ts:~w)",
                                       [What, File, Line]))}.
