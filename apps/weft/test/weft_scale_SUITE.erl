%% SPDX-License-Identifier: Apache-2.0
%% @doc `make scale' in small: nodes that start all at once form a peer-to-peer cluster with few
%% connections, full meshes form as well, and those that live do not notice that others are killed.
%% Usually seven nodes form a full mesh. With FULL=1 there are a hundred peers, and fifty nodes in
%% full meshes of both kinds.
-module(weft_scale_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([who_lives_talks_on_while_others_are_killed/1, a_full_mesh_may_start_all_at_once/1,
         a_full_mesh_with_swim_may_start_all_at_once/1]).

%% At rest a node has its neighbours only; some ask it something while the cluster forms.
-define(ACTIVE, 5).
-define(ASKED, 3).

suite() -> [{timetrap, {minutes, 12}}].

all() ->
    [a_full_mesh_may_start_all_at_once]
        ++ [Case || is_full(), Case <- [who_lives_talks_on_while_others_are_killed,
                                        a_full_mesh_with_swim_may_start_all_at_once]].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

who_lives_talks_on_while_others_are_killed(Config) ->
    {Count, Kills} = {100, 20},
    #{wrong := Wrong, formed := Formed, after_kills := Later, messages := Messages, news := News}
        = Result = weft_scale:run(#{nodes => Count, kills => Kills}, ?config(place, Config)),
    ct:pal("~p", [Result]),
    ?assertEqual([], Wrong),
    ?assert(Messages > Count),
    ?assert(News > Count),
    ?assertEqual({Count, Count - Kills}, {length(Formed), length(Later)}),
    ?assertEqual([], [N || #{connections := N} <- Later, N > ?ACTIVE + ?ASKED]).

a_full_mesh_may_start_all_at_once(Config) -> none_is_full(full_mesh, Config, 3).

a_full_mesh_with_swim_may_start_all_at_once(Config) -> none_is_full(swim, Config, 3).

%% Nobody had to wait in a queue that was full. The kernel counts such queues of all programs: that
%% of another one may have been full meanwhile, so this is tried again.
none_is_full(Topology, Config, Tries) ->
    case mesh(Topology, Config) of
        0 -> ok;
        unknown -> ok;
        _Overflows when Tries > 1 ->
            weft_test_nodes:stop_all(),
            none_is_full(Topology, Config, Tries - 1)
    end.

%% One connection for each pair. That each has a route to each is what the run waits for; calls that
%% crossed may still replace a connection then.
mesh(Topology, Config) ->
    Count = case is_full() of true -> 50; false -> 7 end,
    #{wrong := Wrong, formed := Formed, after_kills := Later, overflows := Overflows} = Result =
        weft_scale:run(#{nodes => Count, kills => 2, topology => Topology}, ?config(place, Config)),
    ct:pal("~p", [Result]),
    ?assertEqual([], Wrong),
    ?assertEqual(Count, length(Formed)),
    ?assertEqual([Count - 3], lists:usort([N || #{connections := N} <- Later])),
    Overflows.

is_full() -> os:getenv("FULL") =:= "1".
