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
        ?assertEqual({monitors, [{process, Process}]}, process_info(Pid, monitors)),
        ended(Process, normal),
        ?assertEqual({monitors, []}, process_info(Pid, monitors))
    end).

%% The end of a process has not been heard of yet, and another one has its name already. What is
%% sent then is not done by that one, as it counts as not done.
what_is_sent_is_for_the_process_that_is_watched_test() ->
    ok = weft_vnode_names:make([?MODULE]),
    {ok, Name} = weft_vnode_names:name(?MODULE, 0),
    Partition = fun() ->
                    true = register(Name, self()),
                    receive {'$gen_call', From, Command} ->
                        gen_server:reply(From, Command)
                    end
                end,
    watching(fun(Watching) ->
        {First, FirstRef} = spawn_monitor(Partition),
        until(fun() -> whereis(Name) =:= First end),
        ok = weft_vnode_watch:seen({Name, node()}),
        until(fun() -> weft_vnode_watch:find({Name, node()}) =/= unknown end),
        ok = sys:suspend(Watching),
        First ! {'$gen_call', {self(), first}, stop},
        receive {'DOWN', FirstRef, process, _, normal} -> ok end,
        {Second, SecondRef} = spawn_monitor(Partition),
        until(fun() -> whereis(Name) =:= Second end),
        {ok, Sent} = weft_vnode:send(?MODULE, {0, node(), primary}, key, add, tag),
        ok = sys:resume(Watching),
        until(fun() -> weft_vnode:lost(Sent) =/= false end),
        ?assertEqual({true, moved}, weft_vnode:lost(Sent)),
        %% It gets what is sent after this first.
        Second ! {'$gen_call', {self(), tag}, last},
        receive {'DOWN', SecondRef, process, _, normal} -> ok end,
        ?assertEqual([last], [Answer || {tag, Answer} <- messages()])
    end),
    weft_vnode_names:forget().

%% A command that gets to another node late may be carried out by a process that was started
%% meanwhile. So it is not sent before there is a process, and not twice.
another_node_is_asked_for_a_process_first_test() ->
    ok = weft_vnode_names:make([?MODULE]),
    {ok, Name} = weft_vnode_names:name(?MODULE, 0),
    watching(fun(_) ->
        ?assertEqual([{weft_vnodes, 'x@nowhere'}], called()),
        true = ets:insert(weft_vnode_watch, {{Name, 'x@nowhere'}, up, make_ref()}),
        ?assertEqual([{Name, 'x@nowhere'}], called())
    end),
    weft_vnode_names:forget().

%% By one command for a partition of a node that can not be reached.
called() ->
    Place = {0, 'x@nowhere', primary},
    {Asking, Ref} = spawn_monitor(fun() ->
                                      receive go -> ok end,
                                      {error, {unknown, _}} = ask(Place)
                                  end),
    1 = erlang:trace(Asking, true, [call]),
    1 = erlang:trace_pattern({gen_server, call, 3}, true, []),
    Asking ! go,
    receive {'DOWN', Ref, process, Asking, normal} -> ok end,
    _ = erlang:trace_pattern({gen_server, call, 3}, false, []),
    Delivered = erlang:trace_delivered(Asking),
    receive {trace_delivered, Asking, Delivered} -> ok end,
    [Server || {trace, _, call, {gen_server, call, [Server, _, _]}} <- messages()].

ask(Place) -> weft_vnode:ask(?MODULE, Place, key, add, 1000).

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

messages() -> receive Message -> [Message | messages()] after 0 -> [] end.

messages(Pid) ->
    {message_queue_len, Length} = process_info(Pid, message_queue_len),
    Length.

until(Condition) -> weft_test_nodes:until(Condition).
