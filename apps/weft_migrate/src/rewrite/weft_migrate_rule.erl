%% SPDX-License-Identifier: Apache-2.0
%% @doc What a rule is: it looks at one node of a source. It says how it is written on weft, or why
%% it is left as it is, or that it is not its business.
%%
%% Rules are modules, or adaptors: modules that have the functions of an old interface in terms of a
%% new one, from which rules are derived (Li, Thompson 2012). Here is which there are.
-module(weft_migrate_rule).

-export([names/0, rules/2, look/3]).
-export_type([name/0, result/0, context/0]).

-type name() :: atom().
-type result() :: none | {edit, [weft_migrate_edit:edit()], NewVariables :: [atom()]}
                | {leave, Reason :: string()}.
-type context() :: weft_migrate_use:context().
%% A module with look/2, one with look/3 and what it is told, or an adaptor.
-type rule() :: module() | {weft_migrate_channel, atom()} | weft_migrate_adaptor:adaptor().
-export_type([rule/0]).

-callback look(weft_migrate_tree:site(), context()) -> result().

-define(RULES, [{global, [weft_migrate_via], [weft_migrate_global]},
                {pg, [], [weft_migrate_pg]},
                {pg2, [], [weft_migrate_pg2]},
                {s_group, [], [weft_migrate_s_group]},
                {global_group, [], [weft_migrate_global_group]},
                {multicall, [weft_migrate_multicall], []}]).

%% @doc The names by which rules are chosen.
-spec names() -> [name()].
names() -> [Name || {Name, _, _} <- ?RULES].

%% @doc The rules of some names, and those of the options: adaptors in files, and the channel that
%% messages are to take.
-spec rules([name()], #{adaptors => [file:filename()], channel => atom()}) ->
          {ok, [{name(), rule()}]} | {error, string()}.
rules(Chosen, Options) ->
    Channel = [{channel, {weft_migrate_channel, Name}} || #{channel := Name} <- [Options]],
    case adaptors(maps:get(adaptors, Options, [])) of
        {ok, Adaptors} -> {ok, built_in(Chosen) ++ Channel ++ Adaptors};
        Error -> Error
    end.

adaptors(Files) ->
    Read = [{File, weft_migrate_adaptor:of_file(File)} || File <- Files],
    case [[File, ": ", Reason] || {File, {error, Reason}} <- Read] of
        [] -> {ok, [{adaptor, Adaptor} || {_, {ok, Adaptor}} <- Read]};
        [Error | _] -> {error, lists:flatten(Error)}
    end.

built_in(Chosen) ->
    lists:append([[{Name, Module} || Module <- Modules]
                  ++ [{Name, weft_migrate_adaptor:of_module(Adaptor)} || Adaptor <- Adaptors]
                  || {Name, Modules, Adaptors} <- ?RULES, lists:member(Name, Chosen)]).

%% @doc The answer of one rule for one node.
-spec look(rule(), weft_migrate_tree:site(), context()) -> result().
look(Module, Site, Context) when is_atom(Module) -> Module:look(Site, Context);
look({Module, Told}, Site, Context) -> Module:look(Told, Site, Context);
look(Adaptor, Site, Context) -> weft_migrate_api:look(Adaptor, Site, Context).
