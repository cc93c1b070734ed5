%% SPDX-License-Identifier: Apache-2.0
%% @doc Who is watched, and when that ends, with a process that stands for one of a partition.
-module(weft_vnode_watch_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NAME, weft_vnode_watch_tests_partition).
-define(PLACE, {?NAME, node()}).

who_answered_is_found_until_it_ends_test() ->
    watching(fun(_) ->
        ?assertEqual(unknown, weft_vnode_watch:find(?PLACE)),
        First = begun(),
        Watch = found(),
        ?assertEqual(false, weft_vnode_watch:lost(?PLACE, Watch)),
        ended(First, moved_on),
        ?assertEqual({true, moved_on}, weft_vnode_watch:lost(?PLACE, Watch)),
        %% Another process of that name is not the one that was found.
        Second = begun(),
        Other = found(),
        ?assertEqual({true, noproc}, weft_vnode_watch:lost(?PLACE, Watch)),
        ?assertEqual(false, weft_vnode_watch:lost(?PLACE, Other)),
        ended(Second, normal),
        ?assertEqual({true, normal}, weft_vnode_watch:lost(?PLACE, Other))
    end).

who_is_not_there_is_not_found_test() ->
    watching(fun(Pid) ->
        ok = weft_vnode_watch:seen(?PLACE),
        until(fun() -> messages(Pid) =:= 0 andalso weft_vnode_watch:find(?PLACE) =:= unknown end)
    end).

seen_often_is_watched_once_test() ->
    watching(fun(Pid) ->
        Process = begun(),
        ok = sys:suspend(Pid),
        _ = [ok = weft_vnode_watch:seen(?PLACE) || _ <- lists:seq(1, 100)],
        ?assertEqual(1, messages(Pid)),
        ok = sys:resume(Pid),
        Watch = found(),
        %% As by two at the same time.
        ok = gen_server:cast(Pid, {watch, ?PLACE}),
        _ = sys:get_state(Pid),
        ?assertEqual(Watch, found()),
        ?assertEqual({monitors, [{process, ?PLACE}]}, process_info(Pid, monitors)),
        ended(Process, normal),
        ?assertEqual({monitors, []}, process_info(Pid, monitors))
    end).

%% What it has said before does not hold any more.
another_process_knows_nothing_test() ->
    Process = begun(),
    Watch = watching(fun(_) -> found() end),
    ?assertEqual(unknown, weft_vnode_watch:find(?PLACE)),
    ?assertEqual({true, noproc}, weft_vnode_watch:lost(?PLACE, Watch)),
    ok = weft_vnode_watch:seen(?PLACE),
    watching(fun(_) ->
        ?assertEqual({true, noproc}, weft_vnode_watch:lost(?PLACE, Watch)),
        ?assertEqual(false, weft_vnode_watch:lost(?PLACE, found()))
    end),
    exit(Process, kill).

stray_messages_end_nothing_test() ->
    watching(fun(Pid) ->
        #{level := Level} = logger:get_primary_config(),
        ok = logger:set_primary_config(level, critical),
        Pid ! what,
        ok = gen_server:cast(Pid, what),
        ?assertMatch({error, _}, gen_server:call(Pid, what)),
        ok = logger:set_primary_config(level, Level)
    end).

watching(Fun) ->
    {ok, Pid} = weft_vnode_watch:start_link(),
    try Fun(Pid) after gen_server:stop(Pid) end.

begun() ->
    Pid = spawn(fun() -> receive {stop, Reason} -> exit(Reason) end end),
    true = register(?NAME, Pid),
    Pid.

found() ->
    ok = weft_vnode_watch:seen(?PLACE),
    until(fun() -> weft_vnode_watch:find(?PLACE) =/= unknown end),
    {ok, Watch} = weft_vnode_watch:find(?PLACE),
    Watch.

ended(Pid, Reason) ->
    Pid ! {stop, Reason},
    until(fun() -> weft_vnode_watch:find(?PLACE) =:= unknown end).

messages(Pid) ->
    {message_queue_len, Length} = process_info(Pid, message_queue_len),
    Length.

until(Condition) -> weft_test_nodes:until(Condition).
