%% SPDX-License-Identifier: Apache-2.0
%% @doc Each neighbour is told what it may use of our routes, and what it may not use any more.
%%
%% The node is a@host, its neighbours b@host and c@host; z@host is somewhere behind them.
-module(weft_router_announcements_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ANNOUNCEMENTS, weft_router_announcements).
-define(TABLE, weft_router_table).
-define(A, a@host).
-define(B, b@host).
-define(C, c@host).
-define(Z, z@host).
-define(RULES, #{self => ?A, relay => true, hop_limit => 4}).

%% --- a new link -------------------------------------------------------------------------------

a_new_neighbour_is_told_all_but_what_leads_through_it_test() ->
    {_, Announced, Table} = changes([?Z], selected(?B, 100, table())),
    ?assertMatch({[{last, [{?A, 5, 0, 0}]}], _}, ?ANNOUNCEMENTS:all(?B, 9, Announced, Table)),
    ?assertMatch({[{last, [{?A, 5, 0, 0}, {?Z, 1, 1100, 2}]}], _},
                 ?ANNOUNCEMENTS:all(?C, 9, Announced, Table)),
    ?assertMatch({[{last, [{?A, 5, 0, 0}]}], _}, ?ANNOUNCEMENTS:all(?Z, 9, Announced, Table)).

only_the_last_part_says_that_it_is_the_last_test() ->
    {_, Announced, Table} = changes([?Z], selected(?B, 100, table())),
    ?assertMatch({[{more, [{?A, 5, 0, 0}]}, {last, [{?Z, 1, 1100, 2}]}], _},
                 ?ANNOUNCEMENTS:all(?C, 1, Announced, Table)),
    ?assertMatch({[{last, []}], _}, ?ANNOUNCEMENTS:all(?C, 1, #{}, Table)).

what_is_told_counts_for_feasibility_test() ->
    {_, Announced, Table} = changes([?Z], selected(?B, 100, table())),
    ?assertEqual({1, 1100}, ?TABLE:distance(?Z, Table)),
    ?assertEqual(none, ?TABLE:distance(?A, Table)),
    {_, Told} = ?ANNOUNCEMENTS:all(?C, 9, Announced, Table),
    ?assertEqual({5, 0}, ?TABLE:distance(?A, Told)).

%% --- changes ----------------------------------------------------------------------------------

a_new_route_goes_to_all_but_its_next_hop_and_its_destination_test() ->
    {Changes, Announced, _} = changes([?Z], selected(?B, 100, table())),
    ?assertEqual([{?B, []}, {?C, [{update, [{?Z, 1, 1100, 2}], []}]}, {?Z, []}],
                 told([?B, ?C, ?Z], Changes)),
    ?assertEqual({ok, ?B}, ?ANNOUNCEMENTS:next_hop(?Z, Announced)).

a_neighbour_that_has_become_the_next_hop_gets_a_retraction_test() ->
    {_, Announced, Table} = changes([?Z], selected(?B, 100, table())),
    {Changes, _, _} = changes([?Z], Announced, selected(?C, 50, Table)),
    ?assertEqual([{?B, [{update, [{?Z, 1, 1050, 2}], []}]}, {?C, [{update, [], [?Z]}]}],
                 told([?B, ?C], Changes)).

a_lost_route_is_retracted_where_it_was_told_test() ->
    {_, Announced, Table} = changes([?Z], selected(?B, 100, table())),
    {_, Without} = ?TABLE:neighbour_down(?B, Table),
    {_, none, _, Lost} = ?TABLE:reselect(?Z, Without),
    {Changes, Left, _} = changes([?Z], Announced, Lost),
    ?assertEqual([{?B, []}, {?C, [{update, [], [?Z]}]}, {?Z, []}], told([?B, ?C, ?Z], Changes)),
    ?assertEqual(error, ?ANNOUNCEMENTS:next_hop(?Z, Left)),
    ?assertEqual({[], Left, Lost}, changes([?Z], Left, Lost)).

who_does_not_relay_tells_of_itself_only_test() ->
    Rules = ?RULES#{relay := false},
    Table = selected(?B, 100, table()),
    ?assertMatch({[{route, ?A, _, ?A, ?A}], _, _},
                 ?ANNOUNCEMENTS:changes([?A, ?Z], Rules, ?ANNOUNCEMENTS:new(?A), Table)),
    %% It relayed before.
    ?assertMatch({[{retracted, ?Z, ?B}], _, _},
                 ?ANNOUNCEMENTS:changes([?Z], Rules, #{?A => ?A, ?Z => ?B}, Table)).

a_route_that_would_be_too_long_is_told_to_nobody_test() ->
    [?assertMatch({Count, {Changes, _, _}} when length(Changes) =:= Count,
                  {Count, changes([?Z], selected(?B, 100, Hops, table()))})
     || {Hops, Count} <- [{2, 1}, {3, 0}]].

many_changes_are_told_in_parts_retractions_first_test() ->
    Changes = [{route, 'y@host', {'y@host', 1, 10, 1}, ?B, none}, {retracted, 'w@host', ?B},
               {route, 'x@host', {'x@host', 1, 10, 1}, ?B, none}, {retracted, 'v@host', ?B}],
    ?assertEqual([{update, [{'y@host', 1, 10, 1}, {'x@host', 1, 10, 1}], ['w@host', 'v@host']}],
                 ?ANNOUNCEMENTS:updates(?C, Changes, 4)),
    ?assertEqual([{update, [], ['w@host']}, {update, [], ['v@host']},
                  {update, [{'y@host', 1, 10, 1}], []}, {update, [{'x@host', 1, 10, 1}], []}],
                 ?ANNOUNCEMENTS:updates(?C, Changes, 1)).

%% --- parts ------------------------------------------------------------------------------------

changes(Dests, Table) -> changes(Dests, ?ANNOUNCEMENTS:new(?A), Table).

changes(Dests, Announced, Table) -> ?ANNOUNCEMENTS:changes(Dests, ?RULES, Announced, Table).

told(Nodes, Changes) -> [{Node, ?ANNOUNCEMENTS:updates(Node, Changes, 9)} || Node <- Nodes].

%% Links cost 1000.
table() ->
    lists:foldl(fun(Node, Table) -> ?TABLE:neighbour_up(Node, 1000, Table) end, ?TABLE:new(?A, 5),
                [?B, ?C]).

%% Node announces z@host with that metric.
selected(Node, Metric, Table) -> selected(Node, Metric, 1, Table).

selected(Node, Metric, Hops, Table) ->
    Heard = ?TABLE:put_heard(Node, ?Z, {1, Metric, Hops}, Table),
    {_, _, _, Selected} = ?TABLE:reselect(?Z, Heard),
    Selected.
