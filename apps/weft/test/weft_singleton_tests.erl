%% SPDX-License-Identifier: Apache-2.0
%% @doc When a node that competes for a singleton asks for the name. Here the replicas are a process
%% that says who has it.
-module(weft_singleton_tests).

-include_lib("eunit/include/eunit.hrl").

-export([start_child/0]).

-define(NAME, {singleton_tests, only}).
%% Not in the time of a test.
-define(RETRY_MS, 3600000).
-define(SHORT_MS, 100).
-define(QUIET_MS, 200).
-define(TOKEN, 7).

%% As after the crash of its node, while its lease goes on.
a_holder_that_can_not_be_reached_is_not_asked_for_again_and_again_test() ->
    competing(pid_of_another_node(), fun(_Pid) ->
        ?assertEqual(not_asked, asked(?QUIET_MS))
    end).

the_name_is_asked_for_at_once_when_its_holder_ends_test() ->
    Holder = holder(),
    competing(Holder, fun(_Pid) ->
        ?assertEqual(not_asked, asked(0)),
        Holder ! stop,
        ?assertEqual(asked, asked(5000))
    end).

%% Its node has still to give the name back.
a_holder_that_has_ended_is_not_asked_for_again_and_again_test() ->
    Holder = holder(),
    ended(Holder),
    competing(Holder, fun(_Pid) ->
        ?assertEqual(not_asked, asked(?QUIET_MS))
    end).

%% Its state when that code was replaced, and the message of its timer.
who_waits_since_earlier_code_asks_again_test() ->
    competing(holder(), fun(Pid) ->
        Before = sys:replace_state(Pid, fun({singleton, Name, Handle, Start, Options, waiting, none,
                                             none, {timer, _}, Holder}) ->
            {singleton, Name, Handle, Start, Options, waiting, none, none, none, Holder}
        end),
        Pid ! retry,
        ?assertEqual(asked, asked(5000)),
        until_waiting(Pid),
        ?assertEqual(tuple_size(Before), tuple_size(sys:get_state(Pid)))
    end).

%% However often it has asked meanwhile because a holder ended.
who_waits_asks_once_in_each_time_test() ->
    Holders = [holder() || _ <- lists:seq(1, 20)],
    competing(Holders, ?SHORT_MS, fun(Pid) ->
        [begin
             ended(Holder),
             ?assertEqual(asked, asked(5000)),
             until_waiting(Pid)
         end || Holder <- lists:droplast(Holders)],
        _ = questions(0),
        {Us, Questions} = timer:tc(fun() ->
            %% pacing: how often it asks in this time
            receive after 5 * ?SHORT_MS -> questions(0) end
        end),
        %% A pause is half of the time at least.
        ?assert(Questions =< 1 + Us div (500 * ?SHORT_MS))
    end).

%% The answer came too late for who had asked.
who_has_the_name_already_runs_test() ->
    Test = self(),
    Table = ets:new(weft_names_strong:handle(element(1, ?NAME)), [named_table, public]),
    Replicas = spawn_link(fun() -> registered_before(none, Test) end),
    true = register(Table, Replicas),
    {ok, Pid} = weft_singleton:start_link(?NAME, {?MODULE, start_child, []},
                                          #{retry_ms => ?SHORT_MS}),
    try
        %% It waits as long as the node does not have the name by a lease.
        [?assertEqual(asked, asked(5000)) || _ <- [1, 2]],
        ?assertMatch(#{state := State, child := none} when State =/= running,
                     weft_singleton:status(Pid)),
        true = ets:insert(Table, [{{name, element(2, ?NAME)}, own, Pid, ?TOKEN, none, 0, tell},
                                  {{lease, 0}, weft_suspension:now_ms() + 60000}]),
        Child = receive {handed_over, Started, ?TOKEN} -> Started
                after 2000 -> error(does_not_run)
                end,
        ok = weft_test_nodes:until(fun() -> map_get(state, weft_singleton:status(Pid)) =:= running
                                   end),
        ?assertEqual(Child, map_get(child, weft_singleton:status(Pid)))
    after
        [ended(One) || One <- [Pid, Replicas]],
        true = ets:delete(Table)
    end.

start_child() -> {ok, spawn_link(fun() -> receive stop -> ok end end)}.

%% Has registered the name for whoever asks for it first.
registered_before(Holder, Test) ->
    receive
        {'$gen_call', From, {command, {register, _, Pid, _, _, _}}} ->
            Known = case Holder of none -> Pid; _ -> Holder end,
            Test ! asked,
            gen_server:reply(From, {error, {taken, Known}}),
            registered_before(Known, Test);
        {'$gen_call', From, {command, {update, _, Token, Child, _, _, _}}} ->
            Test ! {handed_over, Child, Token},
            gen_server:reply(From, {ok, Token + 1}),
            registered_before(Holder, Test)
    end.

holder() -> spawn(fun() -> receive stop -> ok end end).

competing(Holder, Fun) -> competing([Holder], ?RETRY_MS, Fun).

%% Runs the function when the competitor has heard that a process has the name: the first one that
%% lives, or else the last one.
competing(Holders, RetryMs, Fun) ->
    Test = self(),
    Replicas = spawn_link(fun() -> taken(Holders, Test) end),
    true = register(weft_names_strong:handle(element(1, ?NAME)), Replicas),
    {ok, Pid} = weft_singleton:start_link(?NAME, {erlang, error, [is_not_to_run]},
                                          #{retry_ms => RetryMs}),
    try
        ?assertEqual(asked, asked(5000)),
        until_waiting(Pid),
        Fun(Pid)
    after
        [ended(One) || One <- [Pid, Replicas]]
    end.

taken([First | Others] = Holders, Test) ->
    receive
        {'$gen_call', From, {command, Register}} when element(1, Register) =:= register ->
            Left = case Others =:= [] orelse is_process_alive(First) of
                       true -> Holders;
                       false -> Others
                   end,
            Test ! asked,
            gen_server:reply(From, {error, {taken, hd(Left)}}),
            taken(Left, Test)
    end.

until_waiting(Pid) ->
    ok = weft_test_nodes:until(fun() ->
                                       map_get(state, weft_singleton:status(Pid)) =:= waiting
                               end).

asked(Ms) -> receive asked -> asked after Ms -> not_asked end.

%% How often it has asked.
questions(Count) ->
    case asked(0) of
        asked -> questions(Count + 1);
        not_asked -> Count
    end.

ended(Pid) ->
    true = unlink(Pid),
    Monitor = monitor(process, Pid),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end.

pid_of_another_node() ->
    Node = <<"b@nowhere">>,
    binary_to_term(<<131, 88, 119, (byte_size(Node)), Node/binary, 1:32, 0:32, 1:32>>).
