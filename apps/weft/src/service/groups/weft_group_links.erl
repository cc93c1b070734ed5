%% SPDX-License-Identifier: Apache-2.0
%% @doc Makes the links of this node follow the groups, if the topology of the node is `groups':
%% whatever changes the groups changes the topology (`weft_group_topology'), within a moment, or as
%% soon as another change of the topology is over.
%%
%% It also tells the driver of the groups at intervals which nodes are neighbours in the overlay, so
%% that news gets to all parts of the cluster. With another topology that is all it does.
-module(weft_group_links).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, configured/0]).
-export([follow/0, tell_neighbours/0]).

-define(NEIGHBOURS_MS, 5000).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    weft_group_changes:start_link(
      ?MODULE, #{changed => fun ?MODULE:follow/0,
                 at_intervals => {?NEIGHBOURS_MS, fun ?MODULE:tell_neighbours/0}}).

%% @doc The groups of the configured topology, if it has any.
-spec configured() -> #{weft_group_table:name() => [node()]}.
configured() ->
    case weft_config:get(topology) of
        {groups, Groups} -> weft_group_topology:without_bridge(Groups);
        _ -> #{}
    end.

%% @private
-spec tell_neighbours() -> ok.
tell_neighbours() ->
    weft_driver:notice(weft_groups,
                       {neighbours, [Node || {Node, _} <- weft_overlay:neighbours()]}).

%% @private
-spec follow() -> ok.
follow() -> follow(weft_config:get(topology)).

%% Groups of a topology that was set by hand are groups like others from now on.
follow({groups, Now0}) ->
    Now = with_sorted(Now0),
    ok = weft_driver:command(weft_groups, {configure, weft_group_topology:without_bridge(Now)}),
    case wanted(Now) of
        Now -> ok;
        _ -> one_at_a_time()
    end;
follow(_AnotherTopology) ->
    ok.

%% Meanwhile the topology may have become another one. A change that takes long is waited for.
one_at_a_time() ->
    case weft_one_change:run(fun() -> change(weft_config:get(topology)) end) of
        ok -> ok;
        {error, _StillUnderWay} -> follow()
    end.

change({groups, Now0}) ->
    Now = with_sorted(Now0),
    case wanted(Now) of
        Now -> ok;
        Groups -> checked(Groups)
    end;
change(_AnotherTopology) ->
    ok.

with_sorted(Groups) -> maps:map(fun(_, Nodes) -> lists:usort(Nodes) end, Groups).

wanted(Now) ->
    Known = [node() | weft_overlay:members()] ++ lists:append(maps:values(Now)),
    weft_group_topology:topology(maps:from_list(weft_view:all(group)), Known).

%% The same checks as when the application starts.
checked(Groups) ->
    Options = #{groups => Groups},
    case {weft_groups_core:validate(node(), Options),
          weft_overlay:boot_checks(weft_groups_core, Options, weft_config:get(circuits))} of
        {ok, ok} ->
            ok = weft_overlay_sup:change(weft_groups_core, Options),
            application:set_env(weft, topology, {groups, Groups});
        {{error, Text}, _} -> keep(Text);
        {ok, {error, Text}} -> keep(Text)
    end.

keep(Text) ->
    ?LOG_WARNING("weft: the links do not follow the groups: ~ts", [Text]).
