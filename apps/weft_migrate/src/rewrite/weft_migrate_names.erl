%% SPDX-License-Identifier: Apache-2.0
%% @doc A name of `global' moves with all its places, or not at all: what is registered with weft is
%% not found by `global', and the other way round. So do its locks, which would exclude nobody who
%% asks elsewhere, the scopes of `pg', whose process is of one or of the other, and the groups of
%% `pg2', which have other members there. Pure.
%%
%% The places of all files are collected first. A place names an atom, or possibly any name: by a
%% variable, a macro of unknown value, a function that is passed on. A place that stays keeps its
%% name where it is. If one that may be of any name stays, or one that would be rewritten may be of
%% a name that stays, nobody knows which names are concerned, so all of them stay. So do scopes, if
%% one of them may be the default one, which has another name with weft. A name that is
%% only looked up stays, too: who registers it is not in these files; so does one that OTP itself
%% asks `global' for. Names, locks, scopes and groups have nothing to do with each other.
-module(weft_migrate_names).

-export([of_site/3, registers/1, of_unread/1, of_any/2, stay/1, decided/3]).
-export_type([kind/0, name/0, place/0, staying/0]).

-type kind() :: names | locks | scopes | groups.
%% `other': any scope but the default one of `pg'. `start': a start of that, which stays and keeps
%% nothing.
-type name() :: {name, atom()} | any | other | start.
%% `edited' is what would be, if all other places of the name are too; `registered', if it gives a
%% process that name.
-type place() :: {left | edited | registered, name(), file:filename_all(), Line :: pos_integer()}.
%% Literal names that stay, each with a place; and places that keep what is not literal, and all
%% other literal names. `unregistered': only looked up; `otp': OTP asks for it; `default': it may be
%% the default scope, of which there is this place.
-type keeper() :: place() | unregistered | otp | {default, place()} | none.
-type staying() :: #{kind() => #{literal := #{name() => keeper()}, any := keeper(),
                                 others := keeper()}}.

-define(OF_NAME, [register_name, re_register_name, unregister_name, whereis_name, send,
                  register_name_external, re_register_name_external, unregister_name_external]).
-define(OF_ALL_NAMES, [registered_names, sync]).
-define(OF_LOCK, [set_lock, del_lock, trans]).
%% Of pg2. What else it has, as starting it, is about all groups.
-define(OF_GROUP, [{create, 1}, {delete, 1}, {join, 2}, {leave, 2}, {get_members, 1},
                   {get_local_members, 1}, {get_closest_pid, 1}]).
%% Names of `global' that modules of OTP register or ask for: `i' (debugger), `et_collector',
%% `mnesia_event', `pool'.
-define(OF_OTP, [dbg_iserver, et_collector, mnesia_global_logger, pool_master]).
-define(REGISTERING, [register_name, re_register_name, register_name_external,
                      re_register_name_external]).

%% @doc What a site is about that a rule says something of. Known says which macros are which atoms
%% in its file.
-spec of_site(weft_migrate_rule:name(), weft_migrate_tree:site(), Known :: #{atom() => atom()}) ->
          [{kind(), name()}].
of_site(Rule, _Site, _Known) when Rule =/= global, Rule =/= pg, Rule =/= pg2 ->
    [];
of_site(Rule, #{node := Node, path := Path, program := Program} = Site, Known) ->
    case {Rule, called(Rule, Site), erl_syntax:type(Node)} of
        {global, {ok, #{function := Function, arguments := Arguments}}, _} ->
            of_call(of_function(Function), Arguments, Known);
        {global, error, tuple} ->
            [{names, named(lists:last(erl_syntax:tuple_elements(Node)), Known)}];
        {global, error, _} ->
            of_word(Node, Path);
        {pg, {ok, #{function := Function, arguments := Arguments}}, _} ->
            of_pg(Function, Arguments, {Known, Program});
        {pg, error, _} ->
            of_pg_word(Node, Path, {Known, Program});
        {pg2, {ok, #{function := Function, arguments := Arguments}}, _} ->
            of_pg2(Function, Arguments, Known);
        {pg2, error, _} ->
            [{groups, any}]
    end.

%% By its module or, if that is not written out, by its function.
called(Rule, #{node := Node} = Site) ->
    case {weft_migrate_tree:call(Node), weft_migrate_computed:call(Site)} of
        {{ok, #{module := Rule} = Call}, _} -> {ok, Call};
        {_, {ok, #{function := Function, arity := Arity} = Call}} ->
            case weft_migrate_old:has(Rule, Function, Arity) of
                true -> {ok, Call};
                false -> error
            end;
        _ -> error
    end.

of_call(first, [Name | _], Known) -> [{names, named(Name, Known)}];
of_call(lock, [Id | _], Known) ->
    case erl_syntax:type(Id) of
        tuple -> [{locks, named(hd(erl_syntax:tuple_elements(Id)), Known)}];
        _ -> [{locks, any}]
    end;
of_call(none, _, _) -> [];
of_call(lock, _, _) -> [{locks, any}];
of_call(_, _, _) -> [{names, any}].

of_pg(_Function, any, _Known) ->
    [{scopes, any}];
of_pg(Function, Arguments, Known) ->
    Scope = case weft_migrate_scope:of_function(Function, length(Arguments)) of
                first -> [scope(hd(Arguments), Known)];
                default -> [{name, pg}];
                none -> []
            end,
    case {Scope, weft_migrate_scope:is_start(Function)} of
        {[{name, pg}], true} -> [{scopes, start}];
        _ -> [{scopes, Name} || Name <- Scope]
    end.

%% A macro of other files is an atom, even if it is not known which.
scope(Tree, {Known, Program}) ->
    case {named(Tree, Known), weft_migrate_program:modules(Tree, Program)} of
        {any, {known, []}} -> other;
        {Name, _} -> Name
    end.

of_pg2(Function, [Group | _] = Arguments, Known) ->
    case lists:member({Function, length(Arguments)}, ?OF_GROUP) of
        true -> [{groups, named(Group, Known)}];
        false -> [{groups, any}]
    end;
of_pg2(_Function, _Arguments, _Known) ->
    [{groups, any}].

%% A call of pg that is written out for someone else, as {pg, start_link, [Scope]}. What else may be
%% the module may be about any scope.
of_pg_word(Node, [Parent | _], Known) ->
    Beside = case erl_syntax:type(Parent) of
                 tuple -> after_node(Node, erl_syntax:tuple_elements(Parent));
                 application -> after_node(Node, erl_syntax:application_arguments(Parent));
                 _ -> []
             end,
    case [weft_migrate_tree:atom(Function) || [Function, _ | _] <- [Beside]] of
        [{ok, Function}] -> of_list(Function, lists:nth(2, Beside), Known);
        _ -> [{scopes, any}]
    end;
of_pg_word(_, [], _) ->
    [{scopes, any}].

of_list(Function, Arguments, Known) ->
    case erl_syntax:is_proper_list(Arguments) of
        true -> of_pg(Function, erl_syntax:list_elements(Arguments), Known);
        false -> [{scopes, any}]
    end.

after_node(Node, [Node | Rest]) -> Rest;
after_node(Node, [_ | Rest]) -> after_node(Node, Rest);
after_node(_, []) -> [].

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
    case [What || {What, Functions} <- [{first, ?OF_NAME}, {all, ?OF_ALL_NAMES}, {lock, ?OF_LOCK}],
                  lists:member(Function, Functions)] of
        [What] -> What;
        [] -> none
    end.

named(Tree, Known) ->
    case {weft_migrate_tree:atom(Tree), macro(Tree)} of
        {{ok, Name}, _} -> {name, Name};
        {error, {ok, Macro}} when is_map_key(Macro, Known) -> {name, map_get(Macro, Known)};
        _ -> any
    end.

macro(Tree) ->
    case erl_syntax:type(Tree) =:= macro andalso erl_syntax:macro_arguments(Tree) of
        none ->
            Name = erl_syntax:macro_name(Tree),
            case erl_syntax:type(Name) of
                variable -> {ok, erl_syntax:variable_name(Name)};
                atom -> {ok, erl_syntax:atom_value(Name)}
            end;
        _ -> error
    end.

%% The word `global' alone: by the function beside it, if there is one, it is about names or not.
of_word(Node, [Parent | _]) ->
    case function_beside(Node, Parent) of
        {ok, Function} -> of_call(of_function(Function), [], #{});
        error -> [{names, any}, {locks, any}]
    end;
of_word(_, []) ->
    [{names, any}, {locks, any}].

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

next(Node, Trees) ->
    case after_node(Node, Trees) of
        [Next | _] -> weft_migrate_tree:atom(Next);
        [] -> error
    end.

%% @doc The lines of forms that could not be read and may be about some kind. Without tokens there
%% are only the bytes.
-spec of_unread(weft_migrate_source:source()) -> [{kind(), Line :: pos_integer()}].
of_unread(#{forms := Forms, bytes := Bytes, program := Program}) ->
    lists:append([case Form of
                      #{tokens := [], byte := Byte, size := Size} ->
                          [{Kind, Line} || {Kind, Word} <- [{names, <<"global">>},
                                                            {locks, <<"global">>},
                                                            {scopes, <<"pg:">>},
                                                            {groups, <<"pg2">>}],
                                           binary:match(binary:part(Bytes, Byte, Size), Word)
                                               =/= nomatch];
                      #{tokens := Tokens} ->
                          words(Tokens) ++ computed(Tokens, Program)
                  end || #{tree := {error, _}, at := {Line, _}} = Form <- Forms]).

words([{atom, global, {Line, _}, _, _}, {':', _, _, _, _}, {atom, Function, _, _, _} | Tokens]) ->
    [{Kind, Line} || {Kind, any} <- of_call(of_function(Function), [], #{})] ++ words(Tokens);
words([{atom, global, {Line, _}, _, _} | Tokens]) -> [{names, Line} | words(Tokens)];
words([{atom, pg, {Line, _}, _, _}, {':', _, _, _, _} | Tokens]) ->
    [{scopes, Line} | words(Tokens)];
words([{atom, pg2, {Line, _}, _, _}, {':', _, _, _, _} | Tokens]) ->
    [{groups, Line} | words(Tokens)];
words([_ | Tokens]) -> words(Tokens);
words([]) -> [].

%% Calls whose module is a macro or a variable.
computed([{'?', _, _, _, _}, {_, Macro, {Line, _}, _, _}, {':', _, _, _, _},
          {atom, Function, _, _, _} | Tokens], #{named := Named} = Program) ->
    Modules = case weft_migrate_program:modules(erl_syntax:macro(erl_syntax:atom(Macro)),
                                                Program) of
                  {known, Known} -> Known;
                  computed -> weft_migrate_computed:telling(Function, Named)
              end,
    kinds(Modules, Line) ++ computed(Tokens, Program);
computed([{var, _, {Line, _}, _, _}, {':', _, _, _, _}, {atom, Function, _, _, _} | Tokens],
         #{named := Named} = Program) ->
    kinds(weft_migrate_computed:telling(Function, Named), Line) ++ computed(Tokens, Program);
computed([_ | Tokens], Program) -> computed(Tokens, Program);
computed([], _Program) -> [].

kinds(Modules, Line) ->
    [{Kind, Line} || {Module, Kind} <- [{global, names}, {global, locks}, {pg, scopes},
                                        {pg2, groups}], lists:member(Module, Modules)].

%% @doc A place that may be of anything of these kinds.
-spec of_any([kind()], file:filename_all()) -> [{kind(), place()}].
of_any(Kinds, File) -> [{Kind, {left, any, File, 1}} || Kind <- Kinds].

%% @doc Which names stay, from the places of all files.
-spec stay([{kind(), place()}]) -> staying().
stay(Places) ->
    maps:from_list([{Kind, stay(Kind, [Place || {Of, Place} <- Places, Of =:= Kind])}
                    || Kind <- [names, locks, scopes, groups]]).

stay(Kind, Places) ->
    Left = [Place || {left, Name, _, _} = Place <- Places, Name =/= start],
    Literal = maps:from_list([{Name, Place} || {_, {name, _} = Name, _, _} = Place
                                                   <- lists:reverse(Left)]),
    {Any, Others} = case unwritten(Left) of
                        [Place | _] -> {Place, Place};
                        [] -> keepers(Left, unwritten(Places -- Left), defaults(Kind, Places))
                    end,
    Staying = #{literal => Literal, any => Any, others => Others},
    case Kind of
        names -> unregistered(Places, Staying#{literal := maps:merge(Literal, of_otp())});
        _ -> Staying
    end.

of_otp() -> maps:from_list([{{name, Name}, otp} || Name <- ?OF_OTP]).

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

unwritten(Places) ->
    [Place || {_, Name, _, _} = Place <- Places, lists:member(Name, [any, other])].

%% What keeps those that would be rewritten and are not written out? One that may be the default
%% scope does not move with places of that one: its value would still be `pg'.
keepers(_, [], _) ->
    {none, none};
keepers([First | _], [Unwritten | _], _) ->
    {First, Unwritten};
keepers([], Unwritten, Defaults) ->
    case {lists:keyfind(any, 2, Unwritten), Defaults} of
        {{_, _, _, _} = Any, [Default | _]} -> {{default, Default}, Any};
        _ -> {none, none}
    end.

defaults(scopes, Places) ->
    [Place || {_, Name, _, _} = Place <- Places, Name =:= start orelse Name =:= {name, pg}];
defaults(_, _) -> [].

%% @doc The answer of a rule for a site about something of a kind, as far as that may move.
-spec decided(weft_migrate_rule:result(), [{kind(), name()}], staying()) ->
          weft_migrate_rule:result() | {hold, Reason :: string()}.
decided({edit, _, _} = Edit, Of, Staying) ->
    case [{Kind, Name, Keeper} || {Kind, Name} <- Of,
                                  Keeper <- [keeping(Name, map_get(Kind, Staying))],
                                  Keeper =/= none] of
        [] -> Edit;
        [{_, _, otp} | _] ->
            {hold, "OTP itself asks global for this name"};
        [{_, _, unregistered} | _] ->
            {hold, "nothing in these files registers it, so who does may stay with global"};
        [{_, _, {default, {_, _, File, Line}}} | _] ->
            {hold, lists:flatten(io_lib:format("it may be the default scope, which is weft_pg with "
                                               "weft (~ts:~w)", [File, Line]))};
        [{Kind, {name, _} = Name, {_, Name, File, Line}} | _] ->
            held("of this ", Kind, File, Line);
        [{Kind, _, {_, _, File, Line}} | _] ->
            held("that may be of this ", Kind, File, Line)
    end;
decided(Answer, _, _) ->
    Answer.

keeping(any, #{any := Keeper}) -> Keeper;
keeping(other, #{any := {default, _}, others := Place}) -> Place;
keeping(other, #{any := Keeper}) -> Keeper;
keeping(Name, #{literal := Literal, others := Others}) -> maps:get(Name, Literal, Others).

held(What, Kind, File, Line) ->
    {hold, lists:flatten(io_lib:format("another place ~ts~ts (~ts:~w)",
                                       [What, stays(Kind), File, Line]))}.

stays(names) -> "name stays with global";
stays(locks) -> "lock stays with global";
stays(scopes) -> "scope stays with pg";
stays(groups) -> "group stays with pg2".
