%% SPDX-License-Identifier: Apache-2.0
%% @doc The partition policy on a node that nobody is connected to: sides, messages, applications.
-module(weft_partition_tests).

-behaviour(application).

-include_lib("eunit/include/eunit.hrl").

%% An application that takes its time to stop, and may not start.
-export([start/2, prep_stop/1, stop/1]).

policy_test_() ->
    {foreach, fun prepared/0, fun cleared/1,
     [fun nobody_counts/1, fun alone_among_three/1, fun who_has_a_route_is_reached/1,
      fun a_route_that_comes_in_time_counts/1, fun subscribers_outlive_the_process/1,
      fun applications_are_paused/1,
      fun what_was_paused_is_remembered/1, fun a_short_split_leaves_applications_running/1,
      fun what_is_started_in_the_minority_is_paused/1, fun what_does_not_start_is_tried_again/1,
      fun an_application_is_what_it_was/1, fun what_is_needed_is_what_it_was/1,
      fun what_was_paused_by_an_earlier_version_is_resumed/1,
      fun what_is_never_started_is_given_up_for_now/1]}.

prepared() ->
    ok = weft_view:new(),
    ok = started(weft_partition_applications),
    %% It begins with what a process before it has left, after start_link has returned.
    _ = sys:get_state(weft_partition_applications),
    [ok = application:set_env(weft, Key, Value)
     || {Key, Value} <- [{partition_grace_ms, 0}, {partition_policy, stay}, {partition_nodes, []},
                         {pause_applications, []}]],
    ok.

cleared(_) ->
    ok = killed(weft_partition),
    ok = killed(weft_partition_applications),
    [ok = weft_view:clear(Owner) || Owner <- [?MODULE, weft_partition,
                                              weft_partition_applications]],
    [begin _ = application:stop(App), _ = application:unload(App) end
     || App <- [weft_user, weft_slow]],
    [application:unset_env(weft, Key)
     || Key <- [partition_grace_ms, partition_policy, partition_nodes, pause_applications]].

nobody_counts(_) ->
    ?_test(begin
               {ok, _} = weft_partition:start_link(),
               ?assertEqual(unknown, weft_partition:side()),
               ?assertEqual(#{policy => stay, side => unknown, reachable => [], unreachable => [],
                              paused => []}, weft_partition:status())
           end).

alone_among_three(_) ->
    {timeout, 60, ?_test(begin
        {ok, _} = weft_partition:start_link(),
        ok = weft_partition:subscribe(),
        Three = [node(), 'b@nowhere', 'c@nowhere'],
        ok = application:set_env(weft, partition_nodes, Three),
        ?assertEqual({minority, #{reachable => [node()],
                                  unreachable => ['b@nowhere', 'c@nowhere']}}, told()),
        ?assertEqual(minority, weft_partition:side()),
        ok = voters([node()]),
        ?assertMatch({majority, _}, told())
    end)}.

%% Where circuits are hidden there is no connection with him before somebody talks with him.
who_has_a_route_is_reached(_) ->
    {timeout, 60, ?_test(begin
        {ok, _} = weft_partition:start_link(),
        ok = weft_partition:subscribe(),
        ok = has_route('b@nowhere'),
        ok = voters([node(), 'b@nowhere', 'c@nowhere']),
        ?assertEqual({majority, #{reachable => lists:sort([node(), 'b@nowhere']),
                                  unreachable => ['c@nowhere']}}, told())
    end)}.

%% Nobody tells the process of a route. The times are over when the test says so.
a_route_that_comes_in_time_counts(_) ->
    {timeout, 60, ?_test(begin
        ok = application:set_env(weft, partition_grace_ms, 60000),
        {ok, Pid} = weft_partition:start_link(),
        ok = weft_partition:subscribe(),
        ok = voters([node(), 'b@nowhere', 'c@nowhere']),
        {minority, Ref} = next(),
        ok = has_route('b@nowhere'),
        Pid ! {lasted, Ref},
        {majority, Later} = next(),
        Pid ! {lasted, Later},
        ?assertMatch({majority, _}, told())
    end)}.

has_route(Node) -> weft_view:put(?MODULE, {route, Node}, {Node, 1000, 1}).

next() ->
    {partition, _Side, Next, _Subscribers} = sys:get_state(weft_partition),
    Next.

%% One that has ended is forgotten, one that subscribes again is told once.
subscribers_outlive_the_process(_) ->
    {timeout, 60, ?_test(begin
        ok = started(weft_partition),
        [ok = weft_partition:subscribe() || _ <- [1, 2]],
        {_, Ended} = spawn_monitor(weft_partition, subscribe, []),
        receive {'DOWN', Ended, process, _, normal} -> ok end,
        ok = killed(weft_partition),
        ok = started(weft_partition),
        ok = voters([node(), 'b@nowhere', 'c@nowhere']),
        ?assertMatch({minority, _}, told()),
        _ = sys:get_state(weft_partition),
        ?assertEqual(nothing, told(0)),
        Row = {weft_partition, subscribers},
        ok = weft_test_nodes:until(fun() -> weft_view:lookup(Row) =:= [self()] end)
    end)}.

applications_are_paused(_) ->
    {timeout, 30, ?_test(begin
        _ = application:ensure_all_started(sasl),
        ok = application:set_env(weft, partition_policy, pause_minority),
        ok = application:set_env(weft, pause_applications, [sasl, not_running]),
        {ok, _} = weft_partition:start_link(),
        ok = weft_partition:subscribe(),
        ok = voters([node(), 'b@nowhere', 'c@nowhere']),
        ?assertMatch({minority, _}, told()),
        ok = weft_test_nodes:until(fun() -> not is_running(sasl) end),
        ?assertMatch(#{paused := [sasl]}, weft_partition:status()),
        ok = voters([node()]),
        ?assertMatch({majority, _}, told()),
        ok = weft_test_nodes:until(fun() -> [] =:= map_get(paused, weft_partition:status()) end),
        ok = weft_test_nodes:until(fun() -> is_running(sasl) end),
        ok = application:stop(sasl)
    end)}.

%% It looks again after some seconds, or when a node comes or goes.
voters(Nodes) ->
    ok = application:set_env(weft, partition_nodes, Nodes),
    weft_partition ! {nodeup, node(), []},
    ok.

%% Both processes may be new ones when the split is over.
what_was_paused_is_remembered(_) ->
    {timeout, 60, ?_test(begin
        _ = application:ensure_all_started(sasl),
        ok = paused_alone([sasl]),
        ok = killed(weft_partition),
        ok = killed(weft_partition_applications),
        ok = started(weft_partition_applications),
        ok = started(weft_partition),
        ?assertMatch(#{paused := [sasl]}, weft_partition:status()),
        ok = voters([node()]),
        ok = weft_test_nodes:until(fun() -> is_running(sasl) end),
        ok = application:stop(sasl)
    end)}.

%% The end of the split comes while the application, which takes its time, is being stopped.
a_short_split_leaves_applications_running(_) ->
    {timeout, 60, ?_test(begin
        true = register(weft_slow_tests, self()),
        ok = slow_started(),
        ok = weft_partition_applications:pause([weft_slow]),
        Stopping = receive {stopping, Pid} -> Pid end,
        ok = weft_partition_applications:resume(),
        true = unregister(weft_slow_tests),
        Stopping ! go_on,
        ok = weft_test_nodes:until(fun() -> weft_partition_applications:paused() =:= [] end),
        ?assert(is_running(weft_slow)),
        ok = application:stop(weft_slow),
        ok = application:unload(weft_slow)
    end)}.

%% It looks again after some seconds; here we make it look.
what_is_started_in_the_minority_is_paused(_) ->
    {timeout, 60, ?_test(begin
        ok = paused_alone([sasl]),
        ok = weft_test_nodes:until(fun() -> weft_partition:side() =:= minority end),
        %% Both have done what follows from that.
        _ = [sys:get_state(Name) || Name <- [weft_partition, weft_partition_applications]],
        {ok, _} = application:ensure_all_started(sasl),
        weft_partition ! look,
        ok = weft_test_nodes:until(fun() -> not is_running(sasl) end),
        ?assertMatch(#{paused := [sasl]}, weft_partition:status()),
        ok = voters([node()]),
        ok = weft_test_nodes:until(fun() -> is_running(sasl) end),
        ok = application:stop(sasl)
    end)}.

what_does_not_start_is_tried_again(_) ->
    {timeout, 60, ?_test(begin
        ok = slow_started(),
        ok = weft_partition_applications:pause([weft_slow]),
        ok = weft_test_nodes:until(fun() -> not is_running(weft_slow) end),
        true = register(weft_slow_tests, self()),
        ok = application:set_env(weft_slow, fails, true),
        ok = weft_partition_applications:resume(),
        ok = receive tried -> ok after 20000 -> not_tried end,
        ok = weft_test_nodes:until(fun() -> {resume, [weft_slow]} =:= wanted() end),
        ok = application:set_env(weft_slow, fails, false),
        true = unregister(weft_slow_tests),
        weft_partition_applications ! again,
        ok = weft_test_nodes:until(fun() -> is_running(weft_slow) end),
        ok = weft_test_nodes:until(fun() -> weft_partition_applications:paused() =:= [] end),
        ok = application:stop(weft_slow),
        ok = application:unload(weft_slow)
    end)}.

%% A permanent application that fails ends the node, before a split and after it.
an_application_is_what_it_was(_) ->
    {timeout, 60, ?_test([begin
        ok = slow_started(Type),
        ok = paused_and_resumed([weft_slow], fun ok/0),
        ?assertEqual(Type, type(weft_slow)),
        ok = application:stop(weft_slow),
        ok = application:unload(weft_slow)
    end || Type <- [permanent, transient, temporary]])}.

%% The order is the wrong one: who needs the other is started first. Meanwhile the process is
%% another one, and what is paused is told to it again.
what_is_needed_is_what_it_was(_) ->
    {timeout, 60, ?_test(begin
        ok = slow_started(permanent),
        ok = loaded(weft_user, [weft_slow]),
        ok = application:start(weft_user, transient),
        Both = [weft_slow, weft_user],
        ok = paused_and_resumed(Both, fun() ->
            ok = killed(weft_partition_applications),
            ok = started(weft_partition_applications),
            weft_partition_applications:pause(Both)
        end),
        ?assertEqual([permanent, transient], [type(App) || App <- Both]),
        %% That row is deleted after the one that says what is paused.
        _ = sys:get_state(weft_partition_applications),
        ?assertEqual(undefined, weft_view:lookup({weft_partition_applications, types}))
    end)}.

%% It has written no types.
what_was_paused_by_an_earlier_version_is_resumed(_) ->
    {timeout, 60, ?_test(begin
        ok = loaded(weft_slow, []),
        ok = weft_view:put(weft_partition_applications, weft_partition_applications,
                           {pause, [weft_slow]}),
        ok = weft_partition_applications:resume(),
        ok = weft_test_nodes:until(fun() -> is_running(weft_slow) end),
        ?assertEqual(temporary, type(weft_slow))
    end)}.

%% Each of the two needs the other: no way to start them is looked for without an end.
what_is_never_started_is_given_up_for_now(_) ->
    {timeout, 60, ?_test(begin
        ok = loaded(weft_slow, [weft_user]),
        ok = loaded(weft_user, [weft_slow]),
        ok = weft_view:put(weft_partition_applications, weft_partition_applications,
                           {pause, [weft_slow, not_there]}),
        ok = weft_partition_applications:resume(),
        _ = sys:get_state(weft_partition_applications, 20000),
        ?assertEqual({resume, [weft_slow, not_there]}, wanted())
    end)}.

ok() -> ok.

paused_and_resumed(Applications, Meanwhile) ->
    ok = weft_partition_applications:pause(Applications),
    ok = weft_test_nodes:until(fun() -> not lists:any(fun is_running/1, Applications) end),
    ok = Meanwhile(),
    ok = weft_partition_applications:resume(),
    weft_test_nodes:until(fun() -> weft_partition_applications:paused() =:= [] end).

type(Application) ->
    proplists:get_value(Application, proplists:get_value(started, application:info())).

wanted() -> weft_view:lookup(weft_partition_applications).

slow_started() -> slow_started(temporary).

slow_started(Type) ->
    ok = loaded(weft_slow, []),
    application:start(weft_slow, Type).

loaded(Application, Needed) ->
    application:load({application, Application, [{mod, {?MODULE, []}}, {modules, []},
                                                 {applications, Needed}, {registered, []}]}).

paused_alone(Applications) ->
    ok = application:set_env(weft, partition_policy, pause_minority),
    ok = application:set_env(weft, pause_applications, Applications),
    ok = started(weft_partition),
    ok = voters([node(), 'b@nowhere', 'c@nowhere']),
    weft_test_nodes:until(fun() -> not lists:any(fun is_running/1, Applications) end).

started(Module) ->
    {ok, Pid} = Module:start_link(),
    true = unlink(Pid),
    ok.

killed(Name) ->
    case whereis(Name) of
        undefined -> ok;
        Pid ->
            true = unlink(Pid),
            Monitor = monitor(process, Pid),
            exit(Pid, kill),
            receive {'DOWN', Monitor, _, _, _} -> ok end
    end.

start(_Type, []) ->
    case application:get_env(weft_slow, fails, false) of
        true ->
            weft_slow_tests ! tried,
            {error, not_yet};
        false ->
            {ok, spawn_link(fun() -> receive after infinity -> ok end end)}
    end.

prep_stop(State) ->
    case whereis(weft_slow_tests) of
        undefined -> State;
        Tests ->
            Tests ! {stopping, self()},
            receive go_on -> State end
    end.

stop(_State) -> ok.

told() -> told(20000).

told(WaitMs) ->
    receive {weft_partition, Side, Info} -> {Side, Info} after WaitMs -> nothing end.

is_running(App) -> lists:keymember(App, 1, application:which_applications()).
