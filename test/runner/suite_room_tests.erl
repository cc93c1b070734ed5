%% SPDX-License-Identifier: Apache-2.0
-module(suite_room_tests).

-include_lib("eunit/include/eunit.hrl").

some_always_may_test() ->
    Room = suite_room:new(2, 4),
    [?assertMatch({true, _}, suite_room:has_room(Running, Sample, Room))
     || Running <- [0, 1], Sample <- [none, {0, 0, 0}, {0, 9, 10}]].

where_nothing_is_told_there_are_no_more_test() ->
    ?assertMatch({false, _}, suite_room:has_room(2, none, suite_room:new(2, 4))).

%% The processors were idle for half of the time, then for a tenth, and then for all of it.
more_may_while_processors_are_idle_test() ->
    {true, Room} = suite_room:has_room(1, {0, 1000, 2000}, suite_room:new(2, 4)),
    {true, Next} = suite_room:has_room(2, {2000, 1200, 2400}, Room),
    {false, Busy} = suite_room:has_room(3, {4000, 1240, 2800}, Next),
    {true, Last} = suite_room:has_room(3, {6000, 1640, 3200}, Busy),
    ?assertMatch({false, _}, suite_room:has_room(4, {8000, 2040, 3600}, Last)).

%% The one before does not compute yet.
what_has_just_begun_is_waited_for_test() ->
    {true, Room} = suite_room:has_room(1, {0, 1000, 2000}, suite_room:new(2, 4)),
    {false, Same} = suite_room:has_room(2, {1999, 1400, 2400}, Room),
    ?assertMatch({true, _}, suite_room:has_room(2, {2000, 1400, 2400}, Same)).

one_at_a_time_is_one_test() ->
    {true, Room} = suite_room:has_room(0, {0, 0, 0}, suite_room:new(1, 1)),
    ?assertMatch({false, _}, suite_room:has_room(1, {9000, 1000, 1000}, Room)).

what_this_machine_tells_test() ->
    case {suite_room:sample(), os:type()} of
        {{_, Idle, All}, _} -> ?assert(Idle > 0 andalso All > Idle);
        {none, Type} -> ?assertNotEqual({unix, linux}, Type)
    end.
