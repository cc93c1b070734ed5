%% SPDX-License-Identifier: Apache-2.0
%% @doc How many ask other nodes at once, and how many look at a node.
-module(weft_dashboard_turns_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ASKERS, [list_to_atom("weft_dashboard_asker_" ++ integer_to_list(I))
                 || I <- lists:seq(1, 8)]).

more_than_may_ask_at_once_wait_and_get_their_answers_test_() ->
    {timeout, 60, fun more_than_may_ask_at_once_wait_and_get_their_answers/0}.

more_than_may_ask_at_once_wait_and_get_their_answers() ->
    Busy = [busy(Name) || Name <- ?ASKERS],
    Asked = [spawn_monitor(fun() -> exit(weft_dashboard_stores:ask([])) end) || _ <- [1, 2, 3]],
    weft_test_nodes:until(fun() -> waiting() =:= 3 end),
    ended(Busy),
    ?assertEqual([200, 200, 200], [status(One) || One <- Asked]).

%% How many wait for the end of the first one.
waiting() ->
    {monitored_by, All} = process_info(whereis(hd(?ASKERS)), monitored_by),
    length([Pid || Pid <- All, is_pid(Pid),
                   process_info(Pid, current_function)
                       =:= {current_function, {weft_dashboard_turns, in_turn, 2}}]).

status({Pid, Monitor}) ->
    receive {'DOWN', Monitor, process, Pid, {Status, _}} -> Status end.

whose_turn_does_not_come_in_time_is_told_test() ->
    Busy = [busy(Name) || Name <- ?ASKERS],
    ?assertMatch({504, #{error := _}}, weft_dashboard_look:in_time(50, fun() -> {200, #{}} end)),
    ended(Busy).

%% Its processes are looked through twice, whoever asks for that.
one_at_a_time_looks_at_a_node_test() ->
    Other = busy(weft_dashboard_node),
    ?assertEqual(busy, weft_dashboard_node:look(#{migrations => false})),
    ended([Other]).

busy(Name) ->
    Pid = spawn(fun() -> receive after infinity -> ok end end),
    true = register(Name, Pid),
    Pid.

%% Then their names are free.
ended(Pids) ->
    lists:foreach(fun(Pid) -> exit(Pid, kill) end, Pids),
    weft_test_nodes:until(fun() -> not lists:any(fun is_process_alive/1, Pids) end).
