%% SPDX-License-Identifier: Apache-2.0
-module(weft_obituary_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, 'a@host').
-define(B, 'b@host').
-define(C, 'c@host').
-define(DIED, {died, 'x@host', 7}).
-define(DEPARTED, {departed, 'x@host', 7, {'a@host', 1}}).

news_of_the_own_link_layer_are_shown_and_told_to_all_neighbours_test() ->
    {_, Effects} = handle({notice, ?DIED}, 5, linked([?B, ?C])),
    ?assertEqual([{view, ?DIED, 5}, {notice, ?DIED}, {send, ?B, {1, {news, [{?DIED, 0}]}}},
                  {send, ?C, {1, {news, [{?DIED, 0}]}}}], without_timers(Effects)).

news_are_passed_on_once_and_not_to_where_they_came_from_test() ->
    {S1, Effects} = handle(from(?B, [{?DIED, 3}]), 5, linked([?B, ?C])),
    ?assertEqual([{view, ?DIED, 2}, {notice, ?DIED}, {send, ?C, {1, {news, [{?DIED, 3}]}}}],
                 without_timers(Effects)),
    ?assertEqual({S1, []}, handle(from(?C, [{?DIED, 4}]), 6, S1)),
    ?assertEqual({S1, []}, handle({notice, ?DIED}, 7, S1)).

what_comes_soon_after_other_news_is_told_together_test() ->
    {S1, First} = handle({notice, ?DIED}, 5, linked([?B, ?C])),
    ?assertMatch([{after_ms, 10, flush}], [Effect || {after_ms, _, flush} = Effect <- First]),
    Y = {departed, y, 1, ?B},
    {S2, Second} = handle(from(?B, [{Y, 1}]), 7, S1),
    {S3, Third} = handle({notice, ?DEPARTED}, 8, S2),
    ?assertEqual([{notice, Y}, {notice, ?DEPARTED}], Second ++ Third),
    {S4, Told} = handle({timer, flush}, 15, S3),
    ?assertEqual([{send, ?B, {1, {news, [{?DEPARTED, 7}]}}},
                  {send, ?C, {1, {news, [{?DEPARTED, 7}, {Y, 9}]}}}, {after_ms, 10, flush}], Told),
    {S5, []} = handle({timer, flush}, 25, S4),
    {_, At} = handle({notice, {died, z, 1}}, 26, S5),
    ?assertMatch([_, _, {send, ?B, _}, {send, ?C, _}], without_timers(At)).

what_is_forgotten_before_it_was_told_is_not_told_test() ->
    {S1, _} = handle({notice, ?DIED}, 5, linked([?B], #{kept_max => 1})),
    {S2, _} = handle({notice, {died, y, 1}}, 6, S1),
    {S3, _} = handle({notice, {died, z, 1}}, 7, S2),
    {_, Told} = handle({timer, flush}, 15, S3),
    ?assertEqual([{send, ?B, {1, {news, [{{died, z, 1}, 8}]}}}], without_timers(Told)).

another_incarnation_of_the_node_is_other_news_test() ->
    {S1, _} = handle({notice, ?DIED}, 5, linked([])),
    ?assertMatch({_, [{view, {died, 'x@host', 8}, 6}, {notice, _}]},
                 handle({notice, {died, 'x@host', 8}}, 6, S1)).

who_left_may_be_elsewhere_so_nothing_of_it_is_shown_test() ->
    {_, Effects} = handle({notice, ?DEPARTED}, 5, linked([?B])),
    ?assertEqual([{notice, ?DEPARTED}, {send, ?B, {1, {news, [{?DEPARTED, 0}]}}}],
                 without_timers(Effects)).

who_comes_is_told_what_is_kept_with_its_age_test() ->
    {S1, _} = handle({notice, ?DIED}, 5, linked([?B])),
    ?assertMatch({_, [{send, ?C, {1, {news, [{?DIED, 20}]}}}]}, handle({neighbour_up, ?C}, 25, S1)),
    {S2, []} = handle({neighbour_down, ?B, broken}, 30, S1),
    {_, Effects} = handle({notice, ?DEPARTED}, 31, S2),
    ?assertEqual([{notice, ?DEPARTED}], without_timers(Effects)).

news_are_forgotten_after_their_time_and_refused_when_they_come_late_test() ->
    {S1, [_, _, {after_ms, 25, expire}]} = handle({notice, ?DIED}, 5, start()),
    {S2, [{after_ms, 25, expire}]} = handle({timer, expire}, 104, S1),
    {S3, Forgotten} = handle({timer, expire}, 105, S2),
    ?assertEqual([{view, ?DIED, delete}], Forgotten),
    ?assertEqual({S3, []}, handle(from(?B, [{?DIED, 100}]), 106, S3)).

of_too_many_news_the_oldest_are_forgotten_test() ->
    {S1, _} = handle({notice, ?DIED}, 5, start(#{kept_max => 2})),
    {S2, _} = handle({notice, {died, y, 1}}, 6, S1),
    {_, Effects} = handle({notice, {died, z, 1}}, 7, S2),
    ?assertEqual([{view, {died, z, 1}, 7}, {notice, {died, z, 1}}, {view, ?DIED, delete}],
                 Effects).

a_node_does_not_believe_that_it_is_dead_test() ->
    State = linked([?B]),
    ?assertEqual({State, []}, handle(from(?B, [{{died, ?A, 1}, 0}]), 5, State)).

messages_of_unknown_versions_are_ignored_test() ->
    State = linked([?B]),
    ?assertEqual({State, []}, handle({message, ?B, {2, whatever}}, 5, State)).

%% --- parts ------------------------------------------------------------------------------------

start() -> start(#{}).

start(Options) ->
    {State, []} = weft_obituary_core:init(?A, maps:merge(#{keep_ms => 100}, Options)),
    State.

linked(Nodes) -> linked(Nodes, #{}).

linked(Nodes, Options) ->
    lists:foldl(fun(Node, S0) -> {S, []} = handle({neighbour_up, Node}, 0, S0), S end,
                start(Options), Nodes).

handle(Event, NowMs, State) -> weft_obituary_core:handle(Event, NowMs, State).

from(Node, Aged) -> {message, Node, {1, {news, Aged}}}.

without_timers(Effects) -> [Effect || Effect <- Effects, element(1, Effect) =/= after_ms].
