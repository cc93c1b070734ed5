%% SPDX-License-Identifier: Apache-2.0
%% @doc Beliefs about members merge in any order to the same, and old ones are forgotten.
-module(weft_swim_table_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SELF, 'self@host').

a_higher_incarnation_counts_more_than_any_status_test() ->
    Table = merge([{a, 1, alive}, {a, 1, left}, {a, 2, alive}], table()),
    ?assertEqual({2, alive}, weft_swim_table:get(a, Table)),
    ?assertEqual(stale, weft_swim_table:merge(dead, a, 1, 0, Table)).

the_worse_status_of_an_incarnation_counts_test() ->
    Table = merge([{a, 1, alive}, {a, 1, suspect}, {a, 1, dead}], table()),
    ?assertEqual({1, dead}, weft_swim_table:get(a, Table)),
    ?assertEqual(stale, weft_swim_table:merge(suspect, a, 1, 0, Table)),
    ?assertMatch({changed, {1, dead}, _}, weft_swim_table:merge(left, a, 1, 0, Table)).

the_death_of_a_stranger_is_no_news_test() ->
    ?assertEqual(stale, weft_swim_table:merge(dead, a, 1, 0, table())),
    ?assertEqual(stale, weft_swim_table:merge(left, a, 1, 0, table())).

a_full_table_takes_no_further_member_but_changes_of_known_ones_test() ->
    Table = merge([{a, 1, alive}], table(#{members_max => 2})),
    ?assertEqual(full, weft_swim_table:merge(alive, b, 1, 0, Table)),
    ?assertMatch({changed, _, _}, weft_swim_table:merge(dead, a, 1, 0, Table)).

the_dead_are_forgotten_in_time_and_beyond_a_number_test() ->
    Names = [a, b, c, d],
    Alive = merge([{Node, 1, alive} || Node <- Names], table(#{dead_ms => 1000, dead_max => 2})),
    {Dead, _} = lists:foldl(fun(Node, {Table0, AtMs}) ->
                                {changed, _, Table} = weft_swim_table:merge(dead, Node, 1, AtMs,
                                                                            Table0),
                                {Table, AtMs + 100}
                            end, {Alive, 0}, Names),
    {Beyond, Two} = weft_swim_table:expire(300, Dead),
    ?assertEqual([a, b], lists:sort(Beyond)),
    {Old, One} = weft_swim_table:expire(1250, Two),
    ?assertEqual([c], Old),
    ?assertEqual(unknown, weft_swim_table:get(c, One)),
    ?assertEqual({1, dead}, weft_swim_table:get(d, One)).

the_digest_does_not_mind_suspicions_and_the_dead_test() ->
    Table = merge([{a, 1, alive}, {b, 1, alive}], table()),
    Digest = weft_swim_table:digest(Table),
    ?assertEqual(Digest, weft_swim_table:digest(merge([{a, 1, suspect}], Table))),
    ?assertNotEqual(Digest, weft_swim_table:digest(merge([{a, 1, dead}], Table))),
    ?assertEqual(Digest, weft_swim_table:digest(merge([{c, 1, alive}, {c, 1, dead}], Table))),
    ?assertNotEqual(Digest, weft_swim_table:digest(merge([{a, 2, alive}], Table))).

what_a_range_lacks_is_what_would_change_the_other_table_test() ->
    Table = merge([{a, 1, alive}, {b, 2, alive}, {c, 1, alive}, {d, 1, alive}, {d, 1, dead}],
                  table()),
    Lacking = fun(Theirs, Range) -> weft_swim_table:newer_than(Theirs, Range, Table) end,
    ?assertEqual([{a, 1, alive}, {b, 2, alive}],
                 Lacking([{b, 1, alive}], {first, c})),
    ?assertEqual([{c, 1, alive}, {d, 1, dead}],
                 Lacking([{d, 1, alive}, {?SELF, 1, alive}], {c, last})),
    ?assertEqual([], Lacking([{c, 1, suspect}, {?SELF, 1, alive}], {c, last})).

the_order_of_news_makes_no_difference_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_order(), [{numtests, 1000}, {to_file, user}]))}.

%% Every member is known from the start: of strangers only the living are taken over.
prop_order() ->
    ?FORALL({News, Keys}, {list(entry()), vector(50, integer())},
            begin
                Start = merge([{Node, 0, alive} || Node <- [a, b, c]], table()),
                Shuffled = [Entry || {_, Entry} <- lists:sort(lists:zip(
                                                     lists:sublist(Keys, length(News)),
                                                     lists:sublist(News, 50)))],
                One = merge(lists:sublist(News, 50), Start),
                Other = merge(Shuffled ++ Shuffled, Start),
                Model = [lists:max([{0, 0} | [{I, rank(S)} || {N, I, S} <- Shuffled, N =:= Node]])
                         || Node <- [a, b, c]],
                weft_swim_table:entries(One) =:= weft_swim_table:entries(Other)
                    andalso weft_swim_table:digest(One) =:= weft_swim_table:digest(Other)
                    andalso Model =:= [begin
                                           {I, S} = weft_swim_table:get(Node, One),
                                           {I, rank(S)}
                                       end || Node <- [a, b, c]]
                    andalso weft_random_set:to_list(weft_swim_table:living(One))
                    =:= [Node || Node <- [a, b, c],
                                 rank(element(2, weft_swim_table:get(Node, One))) < 2]
                    andalso weft_random_set:to_list(weft_swim_table:dead(One))
                    =:= [Node || Node <- [a, b, c],
                                 element(2, weft_swim_table:get(Node, One)) =:= dead]
            end).

entry() ->
    {oneof([a, b, c]), integer(0, 3), oneof([alive, suspect, dead, left])}.

rank(Status) ->
    length(lists:takewhile(fun(S) -> S =/= Status end, [alive, suspect, dead, left])).

table() -> table(#{}).

table(Options) ->
    weft_swim_table:new(?SELF, 1, weft_swim_options:complete(Options)).

merge(Entries, Table) ->
    lists:foldl(fun({Node, Incarnation, Status}, T0) ->
                    case weft_swim_table:merge(Status, Node, Incarnation, 0, T0) of
                        {changed, _, T} -> T;
                        stale -> T0
                    end
                end, Table, Entries).
