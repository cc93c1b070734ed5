%% SPDX-License-Identifier: Apache-2.0
%% @doc What subscribers hear of the members of groups. The driver of the groups is one that says
%% what the test wants.
-module(weft_group_monitor_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MONITOR, weft_group_monitor).
-define(B, 'b@host').
-define(C, 'c@host').

%% They are told what has changed meanwhile, once.
subscribers_outlive_the_process_test_() ->
    {spawn, fun() -> with_driver(#{g => [?B]}, fun subscribers_outlive_the_process/1) end}.

subscribers_outlive_the_process(Driver) ->
    ok = started(),
    [?assertEqual({ok, [?B]}, ?MONITOR:subscribe(Name, self())) || Name <- [g, all]],
    ok = killed(),
    Driver ! {fellows, #{g => [?C]}},
    ok = started(),
    ?assertEqual([{g, {down, ?B}}, {g, {up, ?C}}], told()),
    %% And so are later changes.
    ?MONITOR ! {weft_notice, weft_groups, {group, g, {down, ?C}}},
    ?assertEqual([{g, {down, ?C}}], told()),
    ?assertEqual({ok, []}, ?MONITOR:subscribe(g, self())).

who_has_gone_is_forgotten_test_() ->
    {spawn, fun() -> with_driver(#{g => [?B]}, fun who_has_gone_is_forgotten/1) end}.

who_has_gone_is_forgotten(Driver) ->
    ok = started(),
    {_, Ended} = spawn_monitor(fun() -> {ok, _} = ?MONITOR:subscribe(g, self()) end),
    receive {'DOWN', Ended, process, _, normal} -> ok end,
    [{ok, _} = ?MONITOR:subscribe(Name, self()) || Name <- [g, all]],
    [ok = ?MONITOR:unsubscribe(Name, self()) || Name <- [g, all]],
    ok = killed(),
    Driver ! {fellows, #{}},
    ok = started(),
    ?assertEqual([], told()),
    %% That there is a group is no row, either.
    weft_test_nodes:until(fun() -> weft_view:keys(?MONITOR) =:= [] end).

%% What it has told when it has listened to the driver.
told() ->
    _ = sys:get_state(?MONITOR),
    received().

received() ->
    receive {weft_group, Name, Change} -> [{Name, Change} | received()]
    after 0 -> []
    end.

with_driver(Fellows, Test) ->
    ok = weft_view:new(),
    Driver = spawn_link(fun() -> driver(Fellows) end),
    true = register(weft_groups, Driver),
    try Test(Driver)
    after
        ok = killed(),
        ok = weft_view:clear(?MONITOR),
        true = unlink(Driver),
        Ended = monitor(process, Driver),
        exit(Driver, kill),
        receive {'DOWN', Ended, process, Driver, _} -> ok end
    end.

driver(Fellows) ->
    receive
        {'$gen_call', From, {subscribe, _}} -> gen_server:reply(From, ok), driver(Fellows);
        {'$gen_call', From, {command, fellows}} -> gen_server:reply(From, Fellows), driver(Fellows);
        {fellows, Now} -> driver(Now)
    end.

started() ->
    {ok, Pid} = ?MONITOR:start_link(),
    true = unlink(Pid),
    ok.

killed() ->
    Monitor = monitor(process, ?MONITOR),
    exit(whereis(?MONITOR), kill),
    receive {'DOWN', Monitor, process, _, _} -> ok end.
