%% SPDX-License-Identifier: Apache-2.0
%% @doc The scopes of `pg' in its calls. The default one is called `pg' there and `weft_pg' with
%% weft, so where it is written out this argument changes, too. A start of it stays, as the
%% application weft runs that of weft: OTP's scope then runs beside it, and has no members. Pure.
-module(weft_migrate_scope).

-export([of_function/2, is_start/1, edits/4]).

%% These have the scope as their first argument, or are about the default one.
-define(FIRST, [{start, 1}, {start_link, 1}, {join, 3}, {leave, 3}, {get_members, 2},
                {get_local_members, 2}, {which_groups, 1}, {which_local_groups, 1},
                {monitor_scope, 1}, {monitor, 2}, {demonitor, 2}]).
-define(DEFAULT, [{start_link, 0}, {join, 2}, {leave, 2}, {get_members, 1}, {get_local_members, 1},
                  {which_groups, 0}, {which_local_groups, 0}, {monitor_scope, 0}, {monitor, 1},
                  {demonitor, 1}]).

%% @doc Where a function of `pg' has its scope; `none' if it is about no scope.
-spec of_function(atom(), arity()) -> first | default | none.
of_function(Function, Arity) ->
    case {lists:member({Function, Arity}, ?FIRST), lists:member({Function, Arity}, ?DEFAULT)} of
        {true, _} -> first;
        {_, true} -> default;
        _ -> none
    end.

%% @doc Does a function of `pg' start a scope?
-spec is_start(atom()) -> boolean().
is_start(Function) -> lists:member(Function, [start, start_link]).

%% @doc What changes in the arguments of a call for which there is this rule, or why it stays.
-spec edits(weft_migrate_adaptor:rule(), Function :: atom(), [erl_syntax:syntaxTree()],
            weft_migrate_tree:site()) ->
          {ok, [weft_migrate_edit:edit()]} | {leave, Reason :: string()}.
edits(Rule, Function, Arguments, #{program := Program, form := Form}) ->
    case {weft_migrate_adaptor:body(Rule), of_function(Function, length(Arguments))} of
        {{call, weft_pg, _, _}, first} ->
            case may_be_default(hd(Arguments), Program) of
                true -> default(is_start(Function), hd(Arguments), Form);
                false -> {ok, []}
            end;
        _ -> {ok, []}
    end.

may_be_default(Scope, Program) ->
    case weft_migrate_program:modules(Scope, Program) of
        {known, Modules} -> lists:member(pg, Modules);
        computed -> false
    end.

default(true, _Scope, _Form) ->
    {leave, "the application weft runs the default scope"};
default(false, Scope, Form) ->
    case {erl_syntax:type(Scope),
          weft_migrate_range:word(Form, weft_migrate_tree:place(Scope))} of
        {atom, {ok, {Byte, Size}}} -> {ok, [{Byte, Size, <<"weft_pg">>}]};
        _ -> {leave, "its scope is a macro that may be the default one, which is weft_pg with weft"}
    end.
