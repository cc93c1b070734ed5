%% SPDX-License-Identifier: Apache-2.0
%% @doc The overlay as a whole on fake links, and the checks of the flags of the VM.
-module(weft_overlay_tests).

-include_lib("eunit/include/eunit.hrl").

-define(B, 'b@host').
-define(C, 'c@host').

without_an_overlay_there_is_nobody_and_no_error_test() ->
    ?assertEqual([], weft_overlay:members()),
    ?assertEqual([], weft_overlay:failed()),
    ?assertEqual([], weft_overlay:neighbours()),
    ?assertEqual([], weft_overlay:routes()),
    ?assertEqual({error, no_route}, weft_overlay:route(?B)),
    ?assertNot(weft_overlay:is_settling(?B, 1000)),
    ?assertNot(weft_overlay:is_foreign(?B)).

%% The longest time in which a topology may answer is known before.
a_topology_that_may_take_long_to_leave_is_waited_for_test() ->
    {ok, Module, Options} = weft_topology:parse({full_mesh, #{detector => swim,
                                                              leave_timeout_ms => 600000}}),
    ?assertEqual(ok, Module:validate(?B, Options)),
    ?assert(weft_overlay:leave_ms({Module, Options}) > 600000),
    ?assertEqual(10000, weft_overlay:leave_ms({weft_full_mesh_core, #{}})).

%% One that has failed may be back. In a topology that lists nobody it may just have no route.
who_is_foreign_test_() ->
    Rows = [{{member, ?B}, 1}, {{failed, ?C}, 1}],
    [{Text, fun() -> ?assertEqual(Expected, is_foreign(Node, Listed)) end}
     || {Text, Node, Listed, Expected} <-
            [{"a member", ?B, [{lists_members, true} | Rows], false},
             {"failed", ?C, [{lists_members, true} | Rows], false},
             {"neither", 'd@host', [{lists_members, true} | Rows], true},
             {"no list", 'd@host', [{lists_members, false} | Rows], false},
             {"no member yet", 'd@host', [{lists_members, true}], false}]].

is_foreign(Node, Rows) ->
    ok = weft_view:new(),
    [ok = weft_view:put(?MODULE, Key, Value) || {Key, Value} <- Rows],
    try weft_overlay:is_foreign(Node) after ets:delete(weft_view) end.

%% A process that registers a name just then is not ended by that.
what_asks_for_all_members_outlives_an_overlay_that_starts_again_test() ->
    ok = weft_view:new(),
    ok = weft_view:put(?MODULE, partial, true),
    try
        ?assertEqual(ok, weft_overlay_sup:reach_members()),
        ?assertEqual(true, weft_view:lookup(reaches_members))
    after
        ets:delete(weft_view)
    end.

%% Of somebody whom nobody has named only where circuits are visible, and not for ever.
a_route_may_turn_up_after_changes_test_() ->
    Now = erlang:monotonic_time(millisecond),
    [{Text, fun() -> ?assertEqual(Expected, is_settling(Circuits, Rows)) end}
     || {Text, Circuits, Rows, Expected} <-
            [{"lost just now", hidden, [{{lost, ?B}, Now}], true},
             {"lost long ago", hidden, [{{lost, ?B}, Now - 120000}], false},
             {"member, and a new link", hidden, [{{member, ?B}, 1}, {link_up_ms, Now}], true},
             {"member, and a new topology", hidden,
              [{{member, ?B}, 1}, {topology_since_ms, Now}], true},
             {"member, and nothing new", hidden,
              [{{member, ?B}, 1}, {link_up_ms, Now - 120000}], false},
             {"no member, and a new link", hidden, [{link_up_ms, Now}], false},
             {"no member yet, and a new link", visible, [{link_up_ms, Now}], true},
             {"no member yet, and nothing new", visible, [{link_up_ms, Now - 120000}], false}]].

%% The carrier of a gateway runs before its overlay does, which knows the routes.
a_route_may_turn_up_when_a_neighbour_has_an_overlay_test_() ->
    Up = #{lane => lane, wanted => true},
    [{Text, fun() -> ?assertEqual(Expected, is_settling(Circuits, Rows, Link)) end}
     || {Text, Circuits, Rows, Link, Expected} <-
            [{"its link is up", visible, [], Up, true},
             {"circuits are hidden", hidden, [], Up, false},
             {"it has one", visible, [{{neighbour, ?C}, 1000}], Up, false},
             {"its link is down", visible, [], maps:remove(lane, Up), false},
             {"it is no neighbour", visible, [], Up#{wanted := false}, false}]].

is_settling(Circuits, Rows, Link) ->
    ok = weft_link_table:new(),
    ok = weft_link_table:enter(?C, self()),
    ok = weft_link_table:publish(?C, Link),
    try is_settling(Circuits, Rows) after ets:delete(weft_links) end.

%% The table goes as well: what an overlay says of itself later would stay in it.
is_settling(Circuits, Rows) ->
    ok = application:set_env(weft, circuits, Circuits),
    ok = weft_view:new(),
    [ok = weft_view:put(?MODULE, Key, Value) || {Key, Value} <- Rows],
    try weft_overlay:is_settling(?B, 60000)
    after
        ets:delete(weft_view),
        application:unset_env(weft, circuits)
    end.

the_overlay_shows_members_neighbours_and_routes_test() ->
    Pid = start(),
    try whole() after stop(Pid) end.

start() ->
    true = register(weft_fake_links_owner, self()),
    ok = weft_identity:init(true),
    Links = [{node(), ?B}, {?B, ?C}],
    {ok, Module, Options} = weft_topology:parse({static, #{links => Links}}),
    {ok, Pid} = weft_overlay_sup:start_link(#{topology => {Module, Options},
                                              router => #{incarnation => 1},
                                              link_module => weft_fake_links}),
    unlink(Pid),
    Pid.

stop(Pid) ->
    Ref = monitor(process, Pid),
    exit(Pid, shutdown),
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    unregister(weft_fake_links_owner).

whole() ->
    ?assertEqual(lists:sort([node(), ?B, ?C]), weft_overlay:members()),
    tell({weft_link, up, ?B, #{}}),
    expect_full(?B, [{node(), 1, 0, 0}]),
    weft_router ! {weft_link, message, ?B, {1, {full, 7, last, [{?B, 1, 0, 0}, {?C, 1, 1000, 1}]}}},
    wait_until(fun() -> weft_overlay:route(?C) =:= {ok, ?B} end),
    ?assertEqual([{?B, 1000}], weft_overlay:neighbours()),
    ?assertEqual([{?B, {?B, 1000, 1}}, {?C, {?B, 2000, 2}}], weft_overlay:routes()),
    tell({weft_link, down, ?B, timeout}),
    wait_until(fun() -> weft_overlay:route(?C) =:= {error, no_route} end),
    expect({connect, ?B}),
    ?assertEqual(ok, weft_overlay:leave()),
    expect({disconnect, ?B}).

tell(News) ->
    weft_router ! News,
    weft_topology ! News.

a_partial_topology_needs_the_right_flags_test_() ->
    {setup, fun flags/0, fun restore/1,
     [{lists:flatten(io_lib:format("~p", [Case])), fun() -> boot_check(Case) end}
      || Case <- [{true, true, hidden, ["prevent_overlapping_partitions false", "vm.args",
                                        "sys.config"]},
                  {true, undefined, hidden, ["prevent_overlapping_partitions false"]},
                  {true, true, visible, ["prevent_overlapping_partitions false"]},
                  {true, false, hidden, ["-connect_all false", "sys.config", "visible"]},
                  {true, false, visible, ok},
                  {false, true, hidden, ok},
                  {false, false, hidden, ok}]]}.

boot_check({ConnectAll, Prevent, Circuits, Expected}) ->
    put_flag(connect_all, ConnectAll),
    put_flag(prevent_overlapping_partitions, Prevent),
    Partial = #{links => [{node(), ?B}, {?B, ?C}]},
    case {Expected, weft_overlay:boot_checks(weft_static_core, Partial, Circuits)} of
        {ok, Verdict} -> ?assertEqual(ok, Verdict);
        {Words, {error, Text}} ->
            [?assert(string:find(lists:flatten(Text), Word) =/= nomatch, Word) || Word <- Words]
    end,
    Whole = #{links => [{node(), ?B}]},
    ?assertEqual(ok, weft_overlay:boot_checks(weft_static_core, Whole, Circuits)).

flags() ->
    [{Key, application:get_env(kernel, Key)}
     || Key <- [connect_all, prevent_overlapping_partitions]].

restore(Flags) ->
    [put_flag(Key, case Value of {ok, V} -> V; undefined -> undefined end)
     || {Key, Value} <- Flags].

put_flag(Key, undefined) -> application:unset_env(kernel, Key);
put_flag(Key, Value) -> application:set_env(kernel, Key, Value).

expect_full(To, Routes) ->
    receive {sent, To, weft_router, {1, {full, _Start, last, Routes}}} -> ok
    after 5000 -> error({missing, full, process_info(self(), messages)})
    end.

expect(Message) ->
    receive Message -> ok
    after 5000 -> error({missing, Message, process_info(self(), messages)})
    end.

%% Views change when the driver gets to it; a call to it comes after.
wait_until(Condition) ->
    _ = sys:get_state(weft_router),
    ?assert(Condition()).
