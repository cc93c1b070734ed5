%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether the nodes of a run have the same code: that of the engine, of the workload, and of
%% the actors that are there in the beginning. Another version may do the same until it does not,
%% and then the result is wrong without a word.
%%
%% Compared is what is loaded, or would be, by the MD5 that the compiler has put into it. Modules
%% that the workload calls, and those of actors that are made later, are not known here.
%%
%% The nodes are compared with the first of them. The node of the run may be none of them: it has no
%% actors then, and needs no code of theirs, but the engine works there, too.
-module(weft_diasca_code).

-export([modules/2, engine/0, md5s/1, differences/2]).
-export_type([md5s/0]).

%% An error: why it can not be loaded.
-type md5s() :: [{module(), binary() | {error, term()}}].
-type difference() :: {no_module, node(), module(), Why :: term()}
                    | {other_code, node(), module(), Than :: node()}.

%% @doc The modules that all nodes need.
-spec modules(About :: map(), {actors, list()} | {checkpoint, map()}) -> [module(), ...].
modules(#{workload := Workload}, Begin) ->
    lists:usort([Workload | engine()] ++ actors(Begin)).

actors({actors, Actors}) -> [Module || {Module, _, _} <- Actors];
actors({checkpoint, #{actors := Actors}}) -> [Module || #{module := Module} <- Actors].

%% @doc Those of the application: the engine, and the workloads that come with it. Who has no
%% description of the application has at least what runs here.
-spec engine() -> [module()].
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
        {error, Why} -> {error, Why}
    end.

%% @doc What a run on these nodes lacks. The node of the run was asked for the engine only.
-spec differences([{node(), md5s()}, ...], OfTheRun :: {node(), md5s()}) -> [difference()].
differences([{First, Has} | _] = Nodes, {Root, _} = OfTheRun) ->
    Reference = maps:from_list(Has),
    All = Nodes ++ [OfTheRun || not lists:keymember(Root, 1, Nodes)],
    [difference(Node, Module, Md5, First)
     || {Node, Md5s} <- All, {Module, Md5} <- Md5s, differs(Md5, map_get(Module, Reference))].

%% What the first node does not have is told of that one, and not of those that have it.
differs({error, _}, _OfFirst) -> true;
differs(_Md5, {error, _}) -> false;
differs(Md5, OfFirst) -> Md5 =/= OfFirst.

difference(Node, Module, {error, Why}, _First) -> {no_module, Node, Module, Why};
difference(Node, Module, _Md5, First) -> {other_code, Node, Module, First}.
