%% SPDX-License-Identifier: Apache-2.0
%% @doc Merging tables of members: the order of news does not matter, and tables stay bounded.
-module(weft_member_table_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SELF, {'a@host', 1, member}).

merging_is_commutative_and_idempotent_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_merge(), [{numtests, 500}, quiet]))}.

prop_merge() ->
    ?FORALL({One, Other}, {list(entry()), list(entry())},
            begin
                Forth = merge(Other, merge(One, new())),
                Back = merge(One, merge(Other, new())),
                weft_member_table:entries(Forth) =:= weft_member_table:entries(Back)
                    andalso weft_member_table:digest(Forth) =:= weft_member_table:digest(Back)
                    andalso weft_member_table:entries(merge(One, Forth))
                        =:= weft_member_table:entries(Forth)
            end).

equal_digests_mean_equal_members_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_digest(), [{numtests, 500}, quiet]))}.

prop_digest() ->
    ?FORALL({One, Other}, {list(entry()), list(entry())},
            begin
                A = merge(One, new()),
                B = merge(Other, new()),
                (weft_member_table:digest(A) =:= weft_member_table:digest(B))
                    =:= (living(A) =:= living(B))
            end).

living(Table) ->
    [Entry || {_, _, Status} = Entry <- weft_member_table:entries(Table), Status =/= left].

entry() ->
    {oneof(['a@host', 'b@host', 'c@host', 'd@host']), integer(0, 4), oneof([member, left])}.

a_higher_incarnation_wins_and_left_beats_member_of_the_same_test() ->
    Table = merge([{'b@host', 2, member}, {'b@host', 1, left}, {'c@host', 1, left},
                   {'c@host', 1, member}, {'d@host', 1, left}, {'d@host', 2, member}], new()),
    ?assertEqual([?SELF, {'b@host', 2, member}, {'c@host', 1, left}, {'d@host', 2, member}],
                 weft_member_table:entries(Table)).

a_full_table_refuses_new_nodes_but_not_news_of_known_ones_test() ->
    Table0 = weft_member_table:new(?SELF, #{members_max => 2}),
    {[_], [], Table1} = weft_member_table:merge([{'b@host', 1, member}], 0, Table0),
    ?assertMatch({[], [{'c@host', 1, member}], _},
                 weft_member_table:merge([{'c@host', 1, member}], 0, Table1)),
    ?assertMatch({[{'b@host', 2, member}], [], _},
                 weft_member_table:merge([{'b@host', 2, member}], 0, Table1)).

tombstones_are_dropped_when_old_or_too_many_the_oldest_first_test() ->
    Table0 = weft_member_table:new(?SELF, #{tombstones_max => 2, tombstone_ms => 1000}),
    Table = lists:foldl(fun({Node, AtMs}, T0) ->
                            {_, _, T} = weft_member_table:merge([{Node, 1, left}], AtMs, T0), T
                        end, Table0, [{'b@host', 100}, {'c@host', 200}, {'d@host', 300}]),
    ?assertEqual([?SELF, {'c@host', 1, left}, {'d@host', 1, left}],
                 weft_member_table:entries(weft_member_table:expire(400, Table))),
    ?assertEqual([?SELF, {'d@host', 1, left}],
                 weft_member_table:entries(weft_member_table:expire(1201, Table))),
    ?assertEqual([?SELF], weft_member_table:entries(weft_member_table:expire(9999, Table))),
    ?assertEqual(weft_member_table:digest(Table0),
                 weft_member_table:digest(weft_member_table:expire(9999, Table))).

%% It is not passed on to nodes that do not know that node either.
a_tombstone_of_an_unknown_node_is_told_only_to_who_takes_it_for_a_member_test() ->
    Table = merge([{'c@host', 1, member}, {'b@host', 1, left}, {'c@host', 1, left}], new()),
    ?assertEqual([?SELF, {'c@host', 1, left}], weft_member_table:told(Table)),
    ?assertEqual([{'c@host', 1, left}], weft_member_table:newer_than([?SELF], Table)),
    ?assertEqual([{'b@host', 1, left}, {'c@host', 1, left}],
                 weft_member_table:newer_than([?SELF, {'b@host', 1, member}], Table)).

new() ->
    weft_member_table:new(?SELF, #{}).

merge(Entries, Table0) ->
    {_, _, Table} = weft_member_table:merge(Entries, 0, Table0),
    Table.
