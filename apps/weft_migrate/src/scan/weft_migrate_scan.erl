%% SPDX-License-Identifier: Apache-2.0
%% @doc What in a source does not scale: looks at each node of its trees. What is meant by a finding
%% is in `weft_migrate_catalogue'. Pure.
-module(weft_migrate_scan).

-export([findings/1]).
-export_type([finding/0]).

-type finding() :: #{id := weft_migrate_catalogue:id(), file := file:filename_all(),
                     line := pos_integer(), column := pos_integer(), inside := string(),
                     text := binary(), note => string()}.

-define(LOCKS, [set_lock, del_lock, trans]).
%% Functions whose first argument may be the name of a process.
-define(SERVERS, [gen_server, gen_statem, gen_fsm, gen_event, supervisor, sys]).

-spec findings(weft_migrate_source:source()) -> [finding()].
findings(#{file := File} = Source) ->
    Sites = weft_migrate_tree:sites(Source),
    Known = #{keys => weft_migrate_keys:of_tables(Sites),
              ordinary => weft_migrate_computed:ordinary(Sites)},
    Found = lists:append([[{Id, At, Inside, ""} || {Id, {_, _} = At} <- of_site(Site, Known)]
                          || #{inside := Inside} = Site <- Sites]),
    Unread = lists:append([unread(Form) || Form <- maps:get(forms, Source)]),
    [finding(File, Source, One) || One <- lists:usort(fun in_order/2, Found ++ Unread)].

in_order({Id1, At1, _, _}, {Id2, At2, _, _}) -> {At1, Id1} =< {At2, Id2}.

finding(File, Source, {Id, {Line, Column}, Inside, Note}) ->
    Finding = #{id => Id, file => File, line => Line, column => Column, inside => Inside,
                text => weft_migrate_source:line(Source, Line)},
    case Note of "" -> Finding; _ -> Finding#{note => Note} end.

%% A form without structure still has words.
unread(#{tree := {ok, _}}) ->
    [];
unread(#{tree := {error, Reason}, at := At, tokens := Tokens}) ->
    [{unread, At, "", Reason} | words(Tokens)].

words([{atom, Module, At, _, _}, {':', _, _, _, _}, {atom, Function, _, _, _} | Tokens]) ->
    [{Id, At, "", "in a form that was not read"} || Id <- of_call(Module, Function, [])]
        ++ words(Tokens);
words([_ | Tokens]) -> words(Tokens);
words([]) -> [].

%% --- one node ----------------------------------------------------------------------------------

of_site(#{inside := "-import", node := Node}, _Known) ->
    case {weft_migrate_tree:atom(Node), weft_migrate_tree:place(Node)} of
        {{ok, Module}, At} -> [{dynamic(Module), At}
                               || lists:member(Module, weft_migrate_old:modules())];
        {error, _} -> []
    end;
of_site(#{node := Node} = Site, Known) ->
    case erl_syntax:type(Node) of
        application ->
            application(Site, weft_migrate_tree:call(Node)) ++ mfa(Site) ++ computed(Site, Known);
        tuple -> tuple(Site, Known) ++ mfa(Site) ++ computed(Site, Known);
        implicit_fun -> captured(Node) ++ computed(Site, Known);
        infix_expr -> sent(Node);
        match_expr -> kept(erl_syntax:match_expr_body(Node));
        atom -> argument(Site);
        _ -> []
    end.

application(_Site, error) ->
    [];
application(Site, {ok, #{module := Module, function := nodes, at := At}})
  when Module =:= ''; Module =:= erlang ->
    [{use_of_list(Site), At} || is_of_mesh(Site)];
application(_Site, {ok, #{module := Module, function := Function, arguments := Arguments,
                          at := At}}) ->
    [{Id, At} || Id <- of_call(Module, Function, Arguments)].

of_call(global, Function, Arguments) ->
    [case lists:member(Function, ?LOCKS) of
         true -> lock(Function, Arguments);
         false -> global_names
     end];
of_call(Module, _, _) when Module =:= pg; Module =:= pg2; Module =:= global_group;
                           Module =:= s_group ->
    [Module];
of_call(rpc, Function, Arguments) ->
    case {Function, Arguments} of
        {multicall, [_, _, _]} -> [call_all];
        {multicall, [First, _, _, _]} -> [case weft_migrate_tree:atom(First) of
                                              {ok, _} -> call_all;
                                              error -> of_nodes(First)
                                          end];
        {multicall, [Nodes | _]} -> [of_nodes(Nodes)];
        %% Of a form that was not read, there are only the words.
        {multicall, []} -> [call_many];
        {eval_everywhere, [_, _, _]} -> [call_all];
        {_, [Nodes | _]} when Function =:= eval_everywhere; Function =:= abcast;
                              Function =:= sbcast; Function =:= multi_server_call ->
            [case Arguments of [_, _] -> call_all; _ -> of_nodes(Nodes) end];
        _ -> large(Function, Arguments)
    end;
of_call(erpc, Function, [Nodes | _]) when Function =:= multicall; Function =:= multicast ->
    [of_nodes(Nodes)];
of_call(erpc, Function, Arguments) ->
    large(Function, Arguments);
of_call(gen_server, Function, [_, _]) when Function =:= multi_call; Function =:= abcast ->
    [call_all];
of_call(gen_server, Function, [Nodes | _]) when Function =:= multi_call; Function =:= abcast ->
    [of_nodes(Nodes)];
of_call(gen_server, Function, [_, Message | _]) when Function =:= call; Function =:= cast;
                                                     Function =:= reply ->
    [large_message || is_large(Message)];
of_call(net_kernel, monitor_nodes, _) -> [monitor_nodes];
of_call(net_adm, Function, _) when Function =:= world; Function =:= world_list -> [world];
of_call(_, _, _) -> [].

%% Whose list of nodes is that of all?
lock(trans, [_, _, Nodes | _]) -> lock(Nodes);
lock(Function, [_, Nodes | _]) when Function =/= trans -> lock(Nodes);
lock(_, _) -> global_locks.

lock(Nodes) ->
    case of_nodes(Nodes) of
        call_all -> global_locks;
        call_many -> global_locks_some
    end.

%% All nodes, or a list of which nothing is known?
of_nodes(Tree) ->
    case lists:any(fun is_nodes/1, weft_migrate_tree:all(Tree)) of
        true -> call_all;
        false -> call_many
    end.

is_nodes(Tree) ->
    case weft_migrate_tree:call(Tree) of
        {ok, #{module := Module, function := nodes}} -> Module =:= '' orelse Module =:= erlang;
        _ -> false
    end.

%% --- nodes() -----------------------------------------------------------------------------------

%% nodes(Node) of a process is node/1's, and hidden or known nodes are not what this is about.
is_of_mesh(#{node := Node}) ->
    case erl_syntax:application_arguments(Node) of
        [] -> true;
        [Kind] -> lists:member(weft_migrate_tree:atom(Kind), [{ok, connected}, {ok, visible}]);
        _ -> false
    end.

use_of_list(#{node := Node, path := Path}) -> use_of_list(Node, Path).

%% The expression that the list is used in: [node() | nodes()] and the like are lists too.
use_of_list(Node, [Parent | Path]) ->
    case erl_syntax:type(Parent) of
        Type when Type =:= list; Type =:= infix_expr; Type =:= parentheses ->
            use_of_list(Parent, Path);
        generator -> nodes_loop;
        application -> case is_loop(weft_migrate_tree:call(Parent), Node) of
                           true -> nodes_loop;
                           false -> nodes_membership
                       end;
        _ -> nodes_membership
    end;
use_of_list(_Node, []) ->
    nodes_membership.

is_loop({ok, #{module := lists, function := Function, arguments := Arguments}}, Node) ->
    lists:member(Function, [foreach, map, flatmap, filtermap, foldl, foldr, mapfoldl, zip, filter])
        andalso lists:last(Arguments) =:= Node;
is_loop(_, _) ->
    false.

%% --- other uses --------------------------------------------------------------------------------

tuple(#{node := Node, path := Path} = Site, #{keys := Keys}) ->
    case weft_migrate_name:of_site(Site) of
        {pair, _, _, Name} ->
            [{global_via, weft_migrate_tree:place(Node)}
             || is_server(Path) orelse weft_migrate_name:is_likely(Name, Keys)];
        {via, computed, _, _} -> [{global_dynamic, weft_migrate_tree:place(Node)}];
        {via, _, _, _} -> [{global_via, weft_migrate_tree:place(Node)}];
        none -> []
    end.

is_server([Parent | _]) ->
    case weft_migrate_tree:call(Parent) of
        {ok, #{module := Module}} -> lists:member(Module, ?SERVERS);
        error -> false
    end;
is_server([]) ->
    false.

%% The module is not written out. One place is of one module at most: pg2 is named where it alone
%% has the function.
computed(Site, #{ordinary := Ordinary}) ->
    case weft_migrate_computed:of_site(Site, Ordinary) of
        {macro, [Module | _], #{function := Function, arguments := Arguments, at := At}}
          when is_list(Arguments) -> [{Id, At} || Id <- of_call(Module, Function, Arguments)];
        {_, [Module | _], #{at := At}} -> [{dynamic(Module), At}];
        none -> []
    end.

%% Module, function and arguments in a row: apply, spawn, rpc, the start of a child. Only where
%% something is applied for certain, the last two may be variables, and the function any.
mfa(#{node := Node} = Site) ->
    case {erl_syntax:type(Node), weft_migrate_tree:is_pattern(Site)} of
        {_, true} -> [];
        {tuple, false} -> mfa_in(erl_syntax:tuple_elements(Node), false);
        {application, false} -> mfa_in(erl_syntax:application_arguments(Node),
                                       weft_migrate_tree:is_applying(weft_migrate_tree:call(Node)))
    end.

mfa_in([Module, Function, Arguments | Rest], IsApplying) ->
    Found = case weft_migrate_tree:atom(Module) of
                {ok, Name} -> [{dynamic(Name), weft_migrate_tree:place(Module)}
                               || lists:member(Name, weft_migrate_old:modules()),
                                  is_called(Name, Function, Arguments, IsApplying)];
                error -> []
            end,
    Found ++ mfa_in([Function, Arguments | Rest], IsApplying);
mfa_in(_, _) ->
    [].

is_called(Module, Function, Arguments, IsApplying) ->
    case {erl_syntax:type(Function), erl_syntax:type(Arguments)} of
        {Word, List} when IsApplying, Word =:= atom orelse Word =:= variable orelse Word =:= macro,
                          List =:= list orelse List =:= nil orelse List =:= variable -> true;
        {atom, List} when List =:= list; List =:= nil ->
            weft_migrate_old:is_function(Module, erl_syntax:atom_value(Function), Arguments);
        _ -> false
    end.

captured(Node) ->
    Name = erl_syntax:implicit_fun_name(Node),
    case erl_syntax:type(Name) of
        module_qualifier ->
            Module = erl_syntax:module_qualifier_argument(Name),
            case weft_migrate_tree:atom(Module) of
                {ok, Atom} -> [{dynamic(Atom), weft_migrate_tree:place(Module)}
                               || lists:member(Atom, weft_migrate_old:modules())];
                error -> []
            end;
        _ -> []
    end.

%% A module that is kept in a variable.
kept(Body) ->
    case weft_migrate_tree:atom(Body) of
        {ok, Atom} -> [{dynamic(Atom), weft_migrate_tree:place(Body)}
                       || lists:member(Atom, [pg2, global_group, s_group])];
        error -> []
    end.

%% A module that is an argument: start_child(Id, pg, [Scope]). `global' is an ordinary word, too.
argument(#{node := Node, path := [Parent | _] = Path}) ->
    Atom = erl_syntax:atom_value(Node),
    Is = lists:member(Atom, [pg, pg2, global_group, s_group])
        andalso erl_syntax:type(Parent) =:= application
        andalso not is_server(Path)
        andalso lists:member(Node, erl_syntax:application_arguments(Parent)),
    [{dynamic(Atom), weft_migrate_tree:place(Node)} || Is];
argument(_) ->
    [].

dynamic(global) -> global_dynamic;
dynamic(pg) -> pg_dynamic;
dynamic(Module) -> Module.

sent(Node) ->
    case erl_syntax:operator_name(erl_syntax:infix_expr_operator(Node)) of
        '!' -> [{large_message, weft_migrate_tree:place(Node)}
                || is_large(erl_syntax:infix_expr_right(Node))];
        _ -> []
    end.

is_large(Message) ->
    lists:any(fun(Tree) -> is_whole(weft_migrate_tree:call(Tree)) end,
              weft_migrate_tree:all(Message)).

is_whole({ok, #{module := ets, function := tab2list}}) -> true;
is_whole({ok, #{module := file, function := read_file}}) -> true;
is_whole({ok, #{module := mnesia, function := dirty_match_object}}) -> true;
is_whole(_) -> false.

%% rpc:call(Node, ets, tab2list, [Table])
large(call, [_Node, Module, Function | _]) ->
    [large_message || {weft_migrate_tree:atom(Module), weft_migrate_tree:atom(Function)}
                          =:= {{ok, ets}, {ok, tab2list}}];
large(_, _) ->
    [].
