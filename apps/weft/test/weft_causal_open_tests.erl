%% SPDX-License-Identifier: Apache-2.0
%% @doc What a process may still send again is known, and when it ends that it will not.
-module(weft_causal_open_tests).

-include_lib("eunit/include/eunit.hrl").

-define(OPEN, weft_causal_open).
-define(B, 1).
-define(C, 2).

what_a_killed_process_does_not_send_again_is_known_test() ->
    Pid = waiting(),
    Open = open(Pid, [{?C, 1}, {?B, 1}, {?B, 2}, {?B, 3}]),
    {queue, Left} = ?OPEN:settled(Pid, {?B, 2}, Open),
    Again = ?OPEN:opened(Pid, {?B, 3}, next_queue, Left),
    ok = killed(Pid),
    {Places, None} = ?OPEN:ended(Pid, Again),
    ?assertEqual([{{?B, 1}, queue}, {{?B, 3}, next_queue}, {{?C, 1}, queue}],
                 lists:sort(Places)),
    ?assertEqual({[], ?OPEN:new()}, ?OPEN:ended(Pid, None)).

who_has_done_with_all_is_not_watched_test() ->
    Pid = waiting(),
    Open = open(Pid, [{?B, 1}, {?B, 2}]),
    ?assertEqual(1, monitors(Pid)),
    {queue, One} = ?OPEN:settled(Pid, {?B, 2}, Open),
    ?assertEqual({none, One}, ?OPEN:settled(Pid, {?B, 2}, One)),
    ?assertEqual({{queue, ?OPEN:new()}, 0}, {?OPEN:settled(Pid, {?B, 1}, One), monitors(Pid)}),
    exit(Pid, kill).

%% The end of one that was killed while it waited for its place comes, too.
who_has_ended_before_is_noticed_test() ->
    Pid = waiting(),
    Ref = monitor(process, Pid),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    Open = open(Pid, [{?B, 1}]),
    receive {weft_sender_ended, _, process, Pid, noproc} -> ok end,
    ?assertMatch({[{{?B, 1}, queue}], _}, ?OPEN:ended(Pid, Open)).

the_numbers_of_all_who_send_to_one_test() ->
    Pids = [waiting(), waiting()],
    Open = lists:foldl(fun({Pid, N}, Acc) ->
                               ?OPEN:opened(Pid, {?C, N}, queue,
                                            ?OPEN:opened(Pid, {?B, N}, queue, Acc))
                       end, ?OPEN:new(), lists:zip(Pids, [3, 5])),
    ?assertEqual([3, 5], lists:sort(?OPEN:numbers(?B, Open))),
    [exit(Pid, kill) || Pid <- Pids].

open(Pid, Places) ->
    lists:foldl(fun(Place, Open) -> ?OPEN:opened(Pid, Place, queue, Open) end, ?OPEN:new(),
                Places).

waiting() -> spawn(fun() -> receive never -> ok end end).

killed(Pid) ->
    exit(Pid, kill),
    receive {weft_sender_ended, _, process, Pid, killed} -> ok end.

monitors(Pid) ->
    {monitors, All} = process_info(self(), monitors),
    length([P || {process, P} <- All, P =:= Pid]).
