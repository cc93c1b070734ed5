%% SPDX-License-Identifier: Apache-2.0
%% @doc What was delivered, against a plain set of numbers.
-module(weft_delivered_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(ORIGIN, {'a@host', 1}).

it_is_a_set_of_messages_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_set(), [{numtests, 1000}, {to_file, user}]))}.

prop_set() ->
    ?FORALL(Numbers, list(integer(1, 40)),
            begin
                Delivered = add_all(Numbers, new(#{})),
                lists:all(fun(N) -> is_new(N, Delivered) =/= lists:member(N, Numbers) end,
                          lists:seq(1, 42))
            end).

ranges_are_the_set_again_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_ranges(), [{numtests, 1000}, {to_file, user}]))}.

prop_ranges() ->
    ?FORALL(Numbers, list(integer(1, 40)),
            begin
                Ranges = weft_delivered:to_ranges(Numbers),
                lists:usort(Numbers) =:= lists:append([lists:seq(From, To)
                                                       || {From, To} <- lists:reverse(Ranges)])
                    andalso [N || N <- lists:seq(1, 41), weft_delivered:in_ranges(N, Ranges)]
                                =:= lists:usort(Numbers)
                    %% They do not touch.
                    andalso [] =:= [N || {_, N} <- Ranges, {M, _} <- Ranges, M =:= N + 1]
            end).

of_too_many_gaps_the_lowest_is_closed_and_told_test() ->
    Delivered0 = add_all([1, 4, 6, 8, 10], new(#{ranges_max => 3})),
    ?assertEqual([false, false, false, true, true],
                 [is_new(N, Delivered0) || N <- [2, 3, 5, 7, 9]]),
    {[{?ORIGIN, 3}], Delivered1} = weft_delivered:give_up(1, Delivered0),
    %% Once.
    ?assertMatch({[], _}, weft_delivered:give_up(2, Delivered1)).

an_old_gap_is_told_and_closed_and_what_lies_before_our_time_is_not_test() ->
    First = weft_delivered:add({?ORIGIN, 5}, 0, new(#{})),
    Delivered0 = weft_delivered:add({?ORIGIN, 8}, 100, First),
    ?assertMatch({[], _}, weft_delivered:give_up(1099, Delivered0)),
    {[{?ORIGIN, 2}], Delivered1} = weft_delivered:give_up(1100, Delivered0),
    ?assertEqual([true, false, false], [is_new(N, Delivered1) || N <- [4, 6, 7]]),
    ?assertMatch({[], _}, weft_delivered:give_up(2200, Delivered1)).

%% What is lacking there may be on its way: above, and below the first one heard.
a_new_gap_is_not_closed_with_an_old_one_test() ->
    Old = add_all([5, 8], new(#{})),
    New = add_all([11, 3], 999, Old),
    {[{?ORIGIN, 2}], Delivered} = weft_delivered:give_up(1000, New),
    ?assertEqual([false, false, true, true, true],
                 [is_new(N, Delivered) || N <- [6, 7, 4, 9, 10]]),
    %% They are told in their turn, and only what has not come by then.
    Filled = add_all([9], 1500, Delivered),
    ?assertMatch({[], _}, weft_delivered:give_up(1999, Filled)),
    {[{?ORIGIN, 2}], Closed} = weft_delivered:give_up(2000, Filled),
    ?assertMatch({[], _}, weft_delivered:give_up(9000, Closed)).

a_gap_that_was_filled_is_not_told_test() ->
    Filled = add_all([5, 8, 6, 7], new(#{})),
    ?assertMatch({[], _}, weft_delivered:give_up(5000, Filled)).

a_silent_origin_is_forgotten_test() ->
    {[], Delivered} = weft_delivered:give_up(10000, add_all([1], new(#{forget_ms => 10000}))),
    ?assert(is_new(1, Delivered)).

a_silent_origin_is_forgotten_after_its_gaps_were_told_test() ->
    {[], Delivered0} = weft_delivered:give_up(999, add_all([1, 3], new(#{forget_ms => 500}))),
    {[{?ORIGIN, 1}], Delivered} = weft_delivered:give_up(1000, Delivered0),
    ?assert(is_new(1, Delivered)).

of_too_many_origins_the_one_silent_for_longest_is_forgotten_test() ->
    Delivered = lists:foldl(fun({Node, Ms}, D) -> weft_delivered:add({{Node, 1}, 1}, Ms, D) end,
                            new(#{origins_max => 2}), [{a, 1}, {b, 2}, {c, 3}]),
    ?assertEqual([true, false, false],
                 [weft_delivered:is_new({{Node, 1}, 1}, Delivered) || Node <- [a, b, c]]).

%% A state may have them when the code is loaded.
entries_of_earlier_code_are_read_test() ->
    Gap = earlier({[{8, 8}, {1, 5}], 100, 100}),
    ?assertEqual([false, true, false], [is_new(N, Gap) || N <- [5, 6, 8]]),
    ?assertMatch({[{?ORIGIN, 2}], _}, weft_delivered:give_up(1100, Gap)),
    ?assertMatch({[], _}, weft_delivered:give_up(9000, add_all([6, 7], 200, Gap))),
    Whole = earlier({[{1, 5}], 100, none}),
    Later = weft_delivered:add({{'b@host', 1}, 1}, 200, Whole),
    ?assertEqual([true, true], [is_new(N, Later) || N <- [5, 6]]),
    ?assertMatch({[], _}, weft_delivered:give_up(9000, Whole)).

%% With room for one origin.
earlier(Entry) ->
    {delivered, _, RangesMax, OriginsMax, GiveUpMs, ForgetMs} = new(#{origins_max => 1}),
    {delivered, #{?ORIGIN => Entry}, RangesMax, OriginsMax, GiveUpMs, ForgetMs}.

new(Options) ->
    weft_delivered:new(maps:merge(#{give_up_ms => 1000, forget_ms => 600000}, Options)).

add_all(Numbers, Delivered) ->
    add_all(Numbers, 0, Delivered).

add_all(Numbers, NowMs, Delivered) ->
    lists:foldl(fun(N, D) -> weft_delivered:add({?ORIGIN, N}, NowMs, D) end, Delivered, Numbers).

is_new(N, Delivered) ->
    weft_delivered:is_new({?ORIGIN, N}, Delivered).
