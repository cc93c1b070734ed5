%% SPDX-License-Identifier: Apache-2.0
%% @doc What was named and has not come is asked for, at one node after the other.
-module(weft_plumtree_missing_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MISSING, weft_plumtree_missing).
-define(ID(Number), {{origin@host, 1}, Number}).
-define(NEIGHBOURS, #{a@host => [], b@host => []}).

the_first_to_name_it_is_asked_in_time_test() ->
    Missing = named([{1, a@host}]),
    ?assertEqual({[], Missing}, ?MISSING:due(99, 150, ?NEIGHBOURS, Missing)),
    ?assertMatch({[{?ID(1), a@host}], _}, ?MISSING:due(100, 150, ?NEIGHBOURS, Missing)).

the_others_have_their_turns_one_after_the_other_test() ->
    Missing = named([{1, b@host}, {1, a@host}]),
    ?assertEqual([{b@host, 1}, {a@host, 1}], ?MISSING:announcers(?ID(1), Missing)),
    {[{?ID(1), b@host}], Second} = ?MISSING:due(100, 150, ?NEIGHBOURS, Missing),
    ?assertEqual({[], Second}, ?MISSING:due(149, 200, ?NEIGHBOURS, Second)),
    {[{?ID(1), a@host}], Third} = ?MISSING:due(150, 200, ?NEIGHBOURS, Second),
    ?assert(?MISSING:is_missing(?ID(1), Third)),
    ?assertEqual({[], ?MISSING:new()}, ?MISSING:due(200, 250, ?NEIGHBOURS, Third)).

who_is_no_neighbour_any_more_is_left_out_test() ->
    Missing = named([{1, gone@host}, {1, b@host}, {2, gone@host}]),
    {[{?ID(1), b@host}], Left} = ?MISSING:due(100, 150, ?NEIGHBOURS, Missing),
    ?assertEqual([true, false], [?MISSING:is_missing(?ID(Number), Left) || Number <- [1, 2]]).

what_has_come_is_not_asked_for_test() ->
    Missing = ?MISSING:arrived(?ID(1), named([{1, a@host}, {2, b@host}])),
    ?assertEqual({1, []}, {?MISSING:count(Missing), ?MISSING:announcers(?ID(1), Missing)}),
    ?assertMatch({[{?ID(2), b@host}], _}, ?MISSING:due(100, 150, ?NEIGHBOURS, Missing)).

they_are_bounded_in_number_test() ->
    Two = named([{1, a@host}, {2, a@host}]),
    ?assertEqual({full, Two}, ?MISSING:named(?ID(3), {a@host, 1}, 100, 2, Two)),
    ?assertMatch({again, _}, ?MISSING:named(?ID(2), {b@host, 1}, 100, 2, Two)).

the_next_one_that_is_due_is_known_test() ->
    {first, Missing} = ?MISSING:named(?ID(2), {b@host, 1}, 90, 9, named([{1, a@host}])),
    ?assertEqual(90, ?MISSING:next_due_ms(Missing)),
    {_, Left} = ?MISSING:due(90, 300, ?NEIGHBOURS, Missing),
    ?assertEqual([100, none], [?MISSING:next_due_ms(M) || M <- [Left, ?MISSING:new()]]).

%% Asked for at 100.
named(Names) ->
    lists:foldl(fun({Number, Node}, Missing0) ->
                    {_, Missing} = ?MISSING:named(?ID(Number), {Node, 1}, 100, 9, Missing0),
                    Missing
                end, ?MISSING:new(), Names).
