%% SPDX-License-Identifier: Apache-2.0
%% @doc One root per part of the cluster; a root that is gone does not come back by old news.
-module(weft_peer_component_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TIMEOUT_MS, 1000).

new(Self) ->
    weft_peer_component:new(Self, #{incarnation => 7, timeout_ms => ?TIMEOUT_MS}).

heard(Beat, NowMs, Component0) ->
    {News, Component} = weft_peer_component:heard(Beat, NowMs, Component0),
    {News, weft_peer_component:current(Component), Component}.

a_node_alone_claims_to_be_the_root_and_counts_up_test() ->
    {rootless, C0} = weft_peer_component:tick(0, new(b)),
    {{beat, {b, {7, 1}}}, C1} = weft_peer_component:claim(1, C0),
    {{beat, {b, {7, 2}}}, _} = weft_peer_component:tick(2, C1),
    ?assertMatch({quiet, _}, weft_peer_component:claim(3, C1)).

the_least_root_wins_and_only_newer_beats_are_news_test() ->
    {{beat, _}, Root} = weft_peer_component:claim(0, new(b)),
    ?assertMatch({old, {b, {7, 1}}, _}, heard({c, {9, 9}}, 1, Root)),
    {news, {a, {1, 1}}, Follower} = heard({a, {1, 1}}, 1, Root),
    ?assertMatch({old, _, _}, heard({a, {1, 1}}, 2, Follower)),
    ?assertMatch({news, {a, {1, 2}}, _}, heard({a, {1, 2}}, 2, Follower)),
    ?assertMatch({news, {a, {2, 0}}, _}, heard({a, {2, 0}}, 2, Follower)),
    ?assertMatch({quiet, _}, weft_peer_component:tick(3, Follower)).

a_root_that_is_gone_does_not_come_back_by_old_news_test() ->
    {news, _, C0} = heard({a, {1, 5}}, 0, new(b)),
    {quiet, C1} = weft_peer_component:tick(?TIMEOUT_MS, C0),
    {rootless, C2} = weft_peer_component:tick(?TIMEOUT_MS + 1, C1),
    ?assertMatch({old, none, _}, heard({a, {1, 5}}, ?TIMEOUT_MS + 2, C2)),
    ?assertMatch({news, {a, {1, 6}}, _}, heard({a, {1, 6}}, ?TIMEOUT_MS + 2, C2)).

%% As after a start with a clock that was set back.
a_root_that_is_gone_comes_back_in_a_lower_incarnation_test() ->
    {news, _, C0} = heard({a, {3, 5}}, 0, new(b)),
    ?assertMatch({old, {a, {3, 5}}, _}, heard({a, {2, 1}}, 1, C0)),
    {rootless, C1} = weft_peer_component:tick(?TIMEOUT_MS + 1, C0),
    {news, {a, {2, 1}}, C2} = heard({a, {2, 1}}, ?TIMEOUT_MS + 2, C1),
    {rootless, C3} = weft_peer_component:tick(2 * ?TIMEOUT_MS + 3, C2),
    [?assertMatch({old, none, _}, heard({a, Number}, 2 * ?TIMEOUT_MS + 4, C3))
     || Number <- [{2, 1}, {3, 5}]].

a_former_incarnation_of_ours_is_no_root_test() ->
    ?assertMatch({old, none, _}, heard({b, {3, 5}}, 0, new(b))).

parts_differ_if_both_have_a_root_and_not_the_same_test() ->
    {{beat, Beat}, C} = weft_peer_component:claim(0, new(b)),
    ?assert(weft_peer_component:differs({a, {1, 1}}, C)),
    ?assertNot(weft_peer_component:differs(Beat, C)),
    ?assertNot(weft_peer_component:differs(none, C)),
    ?assertNot(weft_peer_component:differs(Beat, new(c))).
