%% SPDX-License-Identifier: Apache-2.0
%% @doc Whatever a function of weft is called with, no process of the node ends by it.
-module(weft_odd_arguments_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([no_process_ends_by_them/1]).

%% What the documentation shows, but for `weft_global' (a name in conflict ends its processes).
-define(MODULES, [weft, weft_channel, weft_broadcast, weft_names, weft_names_strong, weft_pg,
                  weft_singleton, weft_group, weft_place, weft_attributes, weft_overlay,
                  weft_discovery, weft_epmd, weft_transit, weft_partition, weft_status, weft_trace,
                  weft_doctor, weft_links, weft_sessions, weft_topology, weft_fault]).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [no_process_ends_by_them].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

no_process_ends_by_them(Config) ->
    Node = weft_test_nodes:start(odd, #{args => ["-weft", "channels", "#{atom=>#{}}"]},
                                 ?config(place, Config)),
    {ok, _} = weft_test_nodes:call(Node, application, ensure_all_started, [weft]),
    {ok, _} = weft_test_nodes:call(Node, weft_group, create, [group, [weft_test_nodes:name(Node)]]),
    ?assertEqual([], weft_test_nodes:call(Node, weft_odd_input, calls, [?MODULES], 120000)).
