%% SPDX-License-Identifier: Apache-2.0
%% @doc What a process had a stamp for, and has not sent, is known when it ends.
-module(weft_causal_open_tests).

-include_lib("eunit/include/eunit.hrl").

-define(OPEN, weft_causal_open).
-define(B, 'b@host').
-define(C, 'c@host').
-define(STAMP(N), {self(), N, #{}}).

what_a_killed_process_has_not_sent_is_known_test() ->
    Pid = waiting(),
    Open = open(Pid, [{?C, 1}, {?B, 1}, {?B, 2}, {?B, 3}]),
    Sent = ?OPEN:settled(Pid, ?B, 2, Open),
    ok = killed(Pid),
    {Unsent, Left} = ?OPEN:ended(Pid, Sent),
    ?assertEqual([{?B, ?STAMP(1)}, {?B, ?STAMP(3)}, {?C, ?STAMP(1)}], Unsent),
    ?assertEqual({[], ?OPEN:new()}, ?OPEN:ended(Pid, Left)).

who_has_sent_all_is_not_watched_test() ->
    Pid = waiting(),
    Open = open(Pid, [{?B, 1}, {?B, 2}]),
    ?assertEqual(1, monitors(Pid)),
    Settled = lists:foldl(fun(N, O) -> ?OPEN:settled(Pid, ?B, N, O) end, Open, [2, 1, 1]),
    ?assertEqual({?OPEN:new(), 0}, {Settled, monitors(Pid)}),
    exit(Pid, kill).

%% The end of one that was killed while it waited for the stamp comes, too.
who_has_ended_before_is_noticed_test() ->
    Pid = waiting(),
    Ref = monitor(process, Pid),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    Open = open(Pid, [{?B, 1}]),
    receive {weft_sender_ended, _, process, Pid, noproc} -> ok end,
    ?assertMatch({[{?B, _}], _}, ?OPEN:ended(Pid, Open)).

open(Pid, Messages) ->
    lists:foldl(fun({Node, N}, Open) -> ?OPEN:opened(Pid, Node, ?STAMP(N), Open) end, ?OPEN:new(),
                Messages).

waiting() -> spawn(fun() -> receive never -> ok end end).

killed(Pid) ->
    exit(Pid, kill),
    receive {weft_sender_ended, _, process, Pid, killed} -> ok end.

monitors(Pid) ->
    {monitors, All} = process_info(self(), monitors),
    length([P || {process, P} <- All, P =:= Pid]).
