%% SPDX-License-Identifier: Apache-2.0
%% @doc The registered names of partitions, so that any process of the cluster can send to them.
%% Names are made once, when the application starts, for as many partitions as a ring can have.
-module(weft_vnode_names).

-export([make/1, forget/0, name/2, modules/0]).

-define(PARTITIONS_MAX, 1024).

%% @doc From now on there are names for the partitions of these modules, and for no others.
-spec make([module()]) -> ok.
make(Modules) ->
    persistent_term:put(?MODULE, maps:from_list([{Module, names(Module)} || Module <- Modules])).

names(Module) ->
    list_to_tuple([list_to_atom(lists:concat(["weft_vnode_", Module, "_", Partition]))
                   || Partition <- lists:seq(0, ?PARTITIONS_MAX - 1)]).

-spec forget() -> ok.
forget() ->
    _ = persistent_term:erase(?MODULE),
    ok.

%% @doc The name of a partition on whichever node.
-spec name(module(), non_neg_integer()) -> {ok, atom()} | {error, no_vnode}.
name(Module, Partition) ->
    case persistent_term:get(?MODULE, #{}) of
        #{Module := Names} when Partition >= 0, Partition < ?PARTITIONS_MAX ->
            {ok, element(Partition + 1, Names)};
        #{} -> {error, no_vnode}
    end.

%% @doc The modules that have partitions on this node.
-spec modules() -> [module()].
modules() ->
    lists:sort(maps:keys(persistent_term:get(?MODULE, #{}))).
