%% SPDX-License-Identifier: Apache-2.0
%% @doc When a node that competes for a singleton asks for the name. Here the replicas are a process
%% that says who has it.
-module(weft_singleton_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NAME, {singleton_tests, only}).
%% Not in the time of a test.
-define(RETRY_MS, 3600000).
-define(QUIET_MS, 200).

%% As after the crash of its node, while its lease goes on.
a_holder_that_can_not_be_reached_is_not_asked_for_again_and_again_test() ->
    competing(pid_of_another_node(), fun() ->
        ?assertEqual(not_asked, asked(?QUIET_MS))
    end).

the_name_is_asked_for_at_once_when_its_holder_ends_test() ->
    Holder = spawn(fun() -> receive stop -> ok end end),
    competing(Holder, fun() ->
        ?assertEqual(not_asked, asked(0)),
        Holder ! stop,
        ?assertEqual(asked, asked(5000))
    end).

%% Runs the function when the competitor has heard that Holder has the name.
competing(Holder, Fun) ->
    Test = self(),
    Replicas = spawn_link(fun() -> taken(Holder, Test) end),
    true = register(weft_names_strong:handle(element(1, ?NAME)), Replicas),
    {ok, Pid} = weft_singleton:start_link(?NAME, {erlang, error, [is_not_to_run]},
                                          #{retry_ms => ?RETRY_MS}),
    try
        ?assertEqual(asked, asked(5000)),
        ok = weft_test_nodes:until(fun() ->
                                           map_get(state, weft_singleton:status(Pid)) =:= waiting
                                   end),
        Fun()
    after
        [ended(One) || One <- [Pid, Replicas]]
    end.

taken(Holder, Test) ->
    receive
        {'$gen_call', From, {command, Register}} when element(1, Register) =:= register ->
            Test ! asked,
            gen_server:reply(From, {error, {taken, Holder}}),
            taken(Holder, Test)
    end.

asked(Ms) -> receive asked -> asked after Ms -> not_asked end.

ended(Pid) ->
    true = unlink(Pid),
    Monitor = monitor(process, Pid),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end.

pid_of_another_node() ->
    Node = <<"b@nowhere">>,
    binary_to_term(<<131, 88, 119, (byte_size(Node)), Node/binary, 1:32, 0:32, 1:32>>).
