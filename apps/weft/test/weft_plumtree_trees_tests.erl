%% SPDX-License-Identifier: Apache-2.0
%% @doc Which links are eager, and who shapes the tree.
-module(weft_plumtree_trees_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TREES, weft_plumtree_trees).
-define(NEIGHBOURS, #{a@host => [], b@host => [], c@host => []}).

at_first_all_links_are_eager_test() ->
    ?assertEqual({[a@host, b@host, c@host], []}, split(none, all, ?TREES:new())).

who_brought_a_message_does_not_get_it_test() ->
    ?assertEqual({[a@host], [b@host]}, split(c@host, all, lazy(b@host, all, ?TREES:new()))).

a_link_is_lazy_in_one_tree_test() ->
    Trees = lazy(b@host, x@host, ?TREES:new()),
    ?assertEqual({[a@host, c@host], [b@host]}, split(none, x@host, Trees)),
    ?assertEqual({[a@host, b@host, c@host], []}, split(none, y@host, Trees)),
    ?assertEqual({[a@host, b@host, c@host], []},
                 split(none, x@host, ?TREES:set(eager, b@host, x@host, 2, Trees))).

%% Not that which has just changed.
too_many_trees_are_forgotten_test() ->
    Trees = lists:foldl(fun(Tree, Trees) -> lazy(b@host, Tree, Trees) end, ?TREES:new(),
                        [x@host, z@host, y@host]),
    ?assertEqual([[], [b@host], [b@host]],
                 [element(2, split(none, Tree, Trees)) || Tree <- [x@host, y@host, z@host]]),
    ?assertEqual([[b@host], [], [b@host]],
                 [element(2, split(none, Tree, lazy(b@host, x@host, Trees)))
                  || Tree <- [x@host, y@host, z@host]]).

a_neighbour_that_comes_back_is_eager_test() ->
    Trees = ?TREES:lost(b@host, lazy(b@host, y@host, lazy(b@host, x@host, ?TREES:new()))),
    ?assertEqual([[], []], [element(2, split(none, Tree, Trees)) || Tree <- [x@host, y@host]]).

links_are_counted_test() ->
    ?assertEqual(#{trees => 1, eager => 3, lazy => 0}, ?TREES:figures(?NEIGHBOURS, ?TREES:new())),
    Trees = lazy(b@host, y@host, lazy(b@host, x@host, lazy(a@host, x@host, ?TREES:new()))),
    ?assertEqual(#{trees => 2, eager => 3, lazy => 3}, ?TREES:figures(?NEIGHBOURS, Trees)).

the_least_of_those_heard_lately_shapes_the_tree_test() ->
    ?assertEqual({b@host, 0}, ?TREES:shaper(b@host, 0, 100, none)),
    ?assertEqual({b@host, 50}, ?TREES:shaper(b@host, 50, 100, {b@host, 0})),
    ?assertEqual({a@host, 50}, ?TREES:shaper(a@host, 50, 100, {b@host, 0})),
    ?assertEqual({b@host, 0}, ?TREES:shaper(c@host, 99, 100, {b@host, 0})),
    ?assertEqual({c@host, 100}, ?TREES:shaper(c@host, 100, 100, {b@host, 0})).

split(From, Tree, Trees) -> ?TREES:split(From, Tree, ?NEIGHBOURS, Trees).

lazy(Node, Tree, Trees) -> ?TREES:set(lazy, Node, Tree, 2, Trees).
