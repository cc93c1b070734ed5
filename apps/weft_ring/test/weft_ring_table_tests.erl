%% SPDX-License-Identifier: Apache-2.0
%% @doc What the table of a ring says of nodes that are not in it.
-module(weft_ring_table_tests).

-include_lib("eunit/include/eunit.hrl").

%% Whatever an old ring has planned.
who_is_not_in_the_ring_is_given_nothing_test() ->
    Ring = weft_ring_table:set_plan({2, a}, [], lists:duplicate(8, b),
                                    weft_ring_table:create({a, 1}, here, 8, 3)),
    Given = fun(Status) ->
                weft_ring_table:transfers(a, weft_ring_table:set_member(
                                               b, Status, {{location, here}, {2, a}}, Ring))
            end,
    ?assertEqual({[], 8, []}, {weft_ring_table:transfers(a, Ring), length(Given(member)),
                               Given(gone)}).

%% It has taken it from another one while it was cut off, came back when the ring had forgotten it,
%% and ended before it had handed it on.
what_a_node_owns_that_is_not_in_the_ring_is_seized_test() ->
    Own = weft_ring_table:create({a, 1}, here, 8, 3),
    {Baton, a} = weft_ring_table:holder(0, Own),
    Ring = weft_ring_table:give(0, Baton, c, Own),
    ?assertEqual({[0], [a]}, {weft_ring_table:orphans(Ring), weft_ring_table:menders(Ring)}),
    ?assertEqual(lists:seq(0, 7), weft_ring_table:owned(a, weft_ring_plan:mend(a, Ring))),
    In = fun(Status) ->
             weft_ring_table:set_member(c, Status, {{location, here}, {2, a}}, Ring)
         end,
    ?assertEqual([[], [], [0]],
                 [weft_ring_table:orphans(In(Status)) || Status <- [member, leaving, gone]]).
