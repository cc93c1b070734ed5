%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration that services read: keys, defaults and what values may be
%% (`weft_config').
-module(weft_service_keys).
-behaviour(weft_config).

-export([keys/0, tuning/0, relations/1]).

%% @doc Keys that are written directly in the configuration.
-spec keys() -> [weft_config:row()].
keys() ->
    [{scopes, #{}, fun is_map/1, "a map from scopes of names to maps of options"},
     {groups, #{}, fun is_groups/1, "a map from group names (but undefined, no_group, all, cluster "
      "and weft_bridge) to lists of nodes"}].

%% @doc Keys that are written in the map `tuning'.
-spec tuning() -> [weft_config:row()].
tuning() ->
    [{broadcast, #{}, fun weft_value:is_any/1, "a map of options"},
     {groups_file, undefined, fun is_path/1, "the path of a file"},
     {group_names, #{}, fun is_map/1, "a map of options of a scope of names"},
     {attributes, #{}, fun is_map/1, "a map from names of attributes to what they are"},
     {partition_policy, stay, fun is_partition_policy/1,
      "stay, pause_minority or {callback, {Module, Function}}"},
     {partition_nodes, [], fun weft_value:is_atoms/1, "a list of nodes"},
     {partition_grace_ms, 1000, weft_value:between(0, 3600000), "milliseconds, from 0 to 3600000"},
     {pause_applications, [], fun weft_value:is_atoms/1, "a list of applications"}].

%% @doc Checks the options of broadcast, and the attributes that are lists.
-spec relations(weft_config:read()) -> [iolist()].
relations(Read) ->
    weft_broadcast_options:check(Read(broadcast)) ++ lists_of(Read(attributes)).

lists_of(Attributes) ->
    [io_lib:format("weft: ~s in attributes is ~0tp: write a list, as ~s", [Name, Spec, Example])
     || is_map(Attributes), {Name, Example} <- [{roles, "[db, web]"}, {zone, "[europe, dc1]"}],
        #{Name := Spec} <- [Attributes], not is_list_spec(Spec)].

%% What a function returns is seen when it is called.
is_list_spec({Kind, _Function}) -> Kind =:= automatic orelse Kind =:= dynamic;
is_list_spec(List) when length(List) >= 0 -> true;
is_list_spec(_) -> false.

is_groups(Groups) ->
    is_map(Groups)
        andalso maps:with([undefined, no_group, all, cluster, weft_bridge], Groups) =:= #{}
        andalso lists:all(fun weft_value:is_atoms/1, maps:values(Groups)).

is_path(Path) -> Path =:= undefined orelse weft_value:is_text(Path).

is_partition_policy({callback, {Module, Function}}) -> is_atom(Module) andalso is_atom(Function);
is_partition_policy(Policy) -> Policy =:= stay orelse Policy =:= pause_minority.
