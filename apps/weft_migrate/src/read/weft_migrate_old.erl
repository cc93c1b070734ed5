%% SPDX-License-Identifier: Apache-2.0
%% @doc The modules that programs are brought away from, and the functions that they have: those of
%% OTP 17 to 29, and of SD Erlang. `global' and `pg' are ordinary words, too; beside the name of a
%% function and a list they mean the module only if it has that function.
-module(weft_migrate_old).

-export([modules/0, is_function/3, has/3, functions/0, functions_of/1]).

-spec modules() -> [module()].
modules() -> [global, pg, pg2, global_group, s_group].

%% @doc Does a module have a function that takes the elements of this list, as far as one sees how
%% many these are? A module that is none of these may have any.
-spec is_function(module(), Function :: atom(), List :: erl_syntax:syntaxTree()) -> boolean().
is_function(Module, Function, List) ->
    case {lists:member(Module, modules()), erl_syntax:is_proper_list(List)} of
        {false, _} ->
            true;
        {true, true} ->
            has(Module, Function, erl_syntax:list_length(List));
        {true, false} ->
            lists:keymember(Function, 1, functions(Module))
    end.

%% @doc Does one of these modules have this function?
-spec has(module(), Function :: atom(), arity()) -> boolean().
has(Module, Function, Arity) ->
    lists:any(fun({Name, Arities}) -> Name =:= Function andalso lists:member(Arity, Arities) end,
              functions(Module)).

%% @doc The names of their functions.
-spec functions() -> [atom()].
functions() ->
    lists:usort(lists:append([functions_of(Module) || Module <- modules()])).

%% @doc The names of the functions of one of them.
-spec functions_of(module()) -> [atom()].
functions_of(Module) -> [Name || {Name, _Arities} <- functions(Module)].

functions(global) ->
    [{register_name, [2, 3]}, {re_register_name, [2, 3]}, {unregister_name, [1]},
     {register_name_external, [2, 3]}, {re_register_name_external, [2, 3]},
     {unregister_name_external, [1]}, {whereis_name, [1]}, {safe_whereis_name, [1]}, {send, [2]},
     {registered_names, [0]}, {sync, [0]}, {set_lock, [1, 2, 3]}, {del_lock, [1, 2]},
     {trans, [2, 3, 4]}, {disconnect, [0]}, {info, [0]}, {random_exit_name, [3]},
     {random_notify_name, [3]}, {notify_all_name, [3]} | started([0])];
functions(pg) ->
    [{join, [2, 3]}, {leave, [2, 3]}, {get_members, [1, 2]}, {get_local_members, [1, 2]},
     {which_groups, [0, 1]}, {which_local_groups, [0, 1]}, {monitor_scope, [0, 1]},
     {monitor, [1, 2]}, {demonitor, [1, 2]} | started([0, 1])];
functions(pg2) ->
    [{create, [1]}, {delete, [1]}, {join, [2]}, {leave, [2]}, {get_members, [1]},
     {get_local_members, [1]}, {get_closest_pid, [1]}, {which_groups, [0]} | started([0])];
functions(global_group) ->
    [{global_groups, [0]}, {monitor_nodes, [1]}, {own_nodes, [0]}, {registered_names, [1]},
     {send, [2, 3]}, {whereis_name, [1, 2]}, {sync, [0]}, {info, [0]} | started([0])];
functions(s_group) ->
    [{new_s_group, [1, 2]}, {delete_s_group, [1]}, {add_nodes, [2]}, {remove_nodes, [2]},
     {s_groups, [0]}, {own_s_groups, [0]}, {own_nodes, [0, 1]}, {monitor_nodes, [1]},
     {register_name, [3]}, {register_name_external, [3]}, {re_register_name, [3]},
     {unregister_name, [2]}, {unregister_name_external, [2]}, {registered_names, [1]},
     {whereis_name, [2, 3]}, {send, [3, 4]}, {sync, [0]}, {info, [0]}, {add_attributes, [1, 2]},
     {remove_attributes, [1, 2]}, {registered_attributes, [0]}, {choose_nodes, [1]}
     | started([0])].

started(Arities) -> [{start, Arities}, {start_link, Arities}, {stop, [0]}].
