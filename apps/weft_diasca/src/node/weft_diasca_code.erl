%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether the nodes of a run have the same code: that of the engine, of the workload, and of
%% the actors that are there in the beginning. Another version may do the same until it does not,
%% and then the result is wrong without a word.
%%
%% Compared is what is loaded, or would be, by the MD5 that the compiler has put into it. Modules
%% that the workload calls, and those of actors that are made later, are not known here.
-module(weft_diasca_code).

-export([modules/2, md5s/1, differences/3]).
-export_type([md5s/0]).

%% `none': there is no such module.
-type md5s() :: [{module(), binary() | none}].

%% @doc The modules that all nodes need.
-spec modules(About :: map(), {actors, list()} | {checkpoint, map()}) -> [module(), ...].
modules(#{workload := Workload}, Begin) ->
    lists:usort([Workload | engine()] ++ actors(Begin)).

actors({actors, Actors}) -> [Module || {Module, _, _} <- Actors];
actors({checkpoint, #{actors := Actors}}) -> [Module || #{module := Module} <- Actors].

%% Who has no description of the application has at least what runs here.
engine() ->
    _ = application:load(weft_diasca),
    case application:get_key(weft_diasca, modules) of
        {ok, Modules} -> Modules;
        undefined -> [Module || {Module, _} <- code:all_loaded(),
                                lists:prefix("weft_diasca", atom_to_list(Module))]
    end.

%% @doc What this node has of them.
-spec md5s([module()]) -> md5s().
md5s(Modules) -> [{Module, md5(Module)} || Module <- Modules].

md5(Module) ->
    case code:ensure_loaded(Module) of
        {module, Module} -> Module:module_info(md5);
        {error, _} -> none
    end.

%% @doc What differs between a node and this one, which were asked for the same modules.
-spec differences(node(), There :: md5s(), Here :: md5s()) ->
          [{no_module, node(), module()} | {other_code, node(), module(), Than :: node()}].
differences(Node, There, Here) ->
    [case {Md5, Own} of
         {none, _} -> {no_module, Node, Module};
         {_, none} -> {no_module, node(), Module};
         _ -> {other_code, Node, Module, node()}
     end || {{Module, Md5}, {Module, Own}} <- lists:zip(There, Here), Md5 =/= Own].
