%% SPDX-License-Identifier: Apache-2.0
%% @doc Ranges of keys and their fingerprints, at their edges, and how much one message may cause.
-module(weft_crdt_compare_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PLACES, 16#100000000).

a_range_has_its_first_place_and_not_its_last_test() ->
    Ranges = ranges(100),
    [begin
         Place = erlang:phash2(N, ?PLACES),
         Has = fun(Range) -> lists:keymember(N, 1, weft_crdt_ranges:keys(Range, Ranges)) end,
         ?assertEqual([true, false, false, true],
                      [Has(Range) || Range <- [{Place, Place + 1}, {Place + 1, ?PLACES},
                                               {0, Place}, {0, Place + 1}]])
     end || N <- lists:seq(1, 100)].

%% Whatever the parts: large ones are summed from sums, small ones from keys.
the_parts_of_a_range_are_all_of_it_test() ->
    Ranges = ranges(300),
    [begin
         Parts = weft_crdt_ranges:split(Count, Range),
         ?assertEqual(Range, {element(1, hd(Parts)), element(2, lists:last(Parts))}),
         ?assertEqual([], [Pair || {{_, End}, {Start, _}} = Pair <- lists:zip(lists:droplast(Parts),
                                                                            tl(Parts)),
                                   End =/= Start]),
         Sum = lists:foldl(fun(Part, {Counts, Prints}) ->
                               {More, Print} = weft_crdt_ranges:sum(Part, Ranges),
                               {Counts + More, Prints bxor Print}
                           end, {0, 0}, Parts),
         ?assertEqual(weft_crdt_ranges:sum(Range, Ranges), Sum)
     end || Range <- [weft_crdt_ranges:whole(), {12345, 3000000007}], Count <- [1, 2, 7, 16, 1000]].

a_key_that_has_changed_counts_once_and_as_it_is_test() ->
    Changed = weft_crdt_ranges:put(7, new, ranges(20)),
    Fresh = lists:foldl(fun(7, R) -> weft_crdt_ranges:put(7, new, R);
                           (N, R) -> weft_crdt_ranges:put(N, content, R)
                        end, weft_crdt_ranges:new(), lists:seq(1, 20)),
    Whole = weft_crdt_ranges:whole(),
    ?assertEqual(weft_crdt_ranges:sum(Whole, Fresh), weft_crdt_ranges:sum(Whole, Changed)).

many_keys_are_not_listed_test() ->
    Root = weft_crdt_compare:root(weft_crdt_ranges:put(7, new, ranges(1000))),
    {ranges, Given} = Root,
    ?assertMatch({ok, [{ranges, [_ | _]}], []}, weft_crdt_compare:ranges(Given, ranges(1000))).

%% The rest is compared the next time.
of_too_many_ranges_some_are_answered_test() ->
    Given = [{N, N + 1, 1, 1} || N <- lists:seq(1, 3000)],
    {ok, [{items, Items}], []} = weft_crdt_compare:ranges(Given, ranges(10)),
    ?assertEqual(2048, length(Items)).

ranges(Count) ->
    lists:foldl(fun(N, Ranges) -> weft_crdt_ranges:put(N, content, Ranges) end,
                weft_crdt_ranges:new(), lists:seq(1, Count)).
