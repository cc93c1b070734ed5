%% SPDX-License-Identifier: Apache-2.0
%% @doc `make scale' in small: nodes that start all at once form a peer-to-peer cluster with few
%% connections, and those that live do not notice that others are killed. FULL=1 in the environment
%% has it run with a hundred.
-module(weft_scale_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([who_lives_talks_on_while_others_are_killed/1]).

%% At rest a node has its neighbours only; some ask it something while the cluster forms.
-define(ACTIVE, 5).
-define(ASKED, 3).

suite() -> [{timetrap, {minutes, 12}}].

all() -> [who_lives_talks_on_while_others_are_killed].

init_per_suite(Config) ->
    [{place, #{epmd => weft_test_nodes:start_epmd(), dir => ?config(priv_dir, Config)}} | Config].

end_per_suite(Config) ->
    #{epmd := Epmd} = ?config(place, Config),
    weft_test_nodes:stop_epmd(Epmd).

end_per_testcase(_Case, _Config) ->
    weft_test_nodes:stop_all().

who_lives_talks_on_while_others_are_killed(Config) ->
    {Count, Kills} = case os:getenv("FULL") of
                         "1" -> {100, 20};
                         _ -> {14, 3}
                     end,
    #{wrong := Wrong, formed := Formed, after_kills := Later, messages := Messages, news := News}
        = Result = weft_scale:run(#{nodes => Count, kills => Kills}, ?config(place, Config)),
    ct:pal("~p", [Result]),
    ?assertEqual([], Wrong),
    ?assert(Messages > Count),
    ?assert(News > Count),
    ?assertEqual({Count, Count - Kills}, {length(Formed), length(Later)}),
    ?assertEqual([], [N || #{connections := N} <- Later, N > ?ACTIVE + ?ASKED]).
