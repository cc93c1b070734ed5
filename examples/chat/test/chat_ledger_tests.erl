%% SPDX-License-Identifier: Apache-2.0
-module(chat_ledger_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(FROM, {{ada, 'n1@h'}, 100}).

enter(Seqs, Ledger) ->
    lists:mapfoldl(fun(Seq, L) -> chat_ledger:receive_one(?FROM, direct, Seq, L) end, Ledger, Seqs).

verdicts_test() ->
    {Verdicts, Ledger} = enter([1, 2, 5, 4, 4, 1, 6, 3], chat_ledger:new()),
    ?assertEqual([in_order, in_order, {gap, 2}, late, duplicate, duplicate, in_order, late],
                 Verdicts),
    ?assertEqual(0, chat_ledger:gaps(Ledger)).

open_gap_test() ->
    {[{gap, 3}, late], Ledger} = enter([4, 2], chat_ledger:new()),
    ?assertEqual(2, chat_ledger:gaps(Ledger)).

missing_is_per_sender_and_place_test() ->
    {Sender, _Epoch} = ?FROM,
    {_, Ledger} = enter([1, 4], chat_ledger:new()),
    {_, Both} = chat_ledger:receive_one(?FROM, {room, market}, 1, Ledger),
    ?assertEqual(2, chat_ledger:missing(Sender, direct, Both)),
    ?assertEqual(0, chat_ledger:missing(Sender, {room, market}, Both)),
    ?assertEqual(0, chat_ledger:missing({ben, 'n1@h'}, direct, Both)).

restarted_sender_begins_anew_test() ->
    {_, Ledger} = enter([1, 2, 3], chat_ledger:new()),
    {Sender, Epoch} = ?FROM,
    ?assertMatch({in_order, _}, chat_ledger:receive_one({Sender, Epoch + 1}, direct, 1, Ledger)).

places_are_apart_test() ->
    {_, Ledger} = enter([1, 2], chat_ledger:new()),
    ?assertMatch({in_order, _}, chat_ledger:receive_one(?FROM, {room, market}, 1, Ledger)).

first_join_begins_at_the_mark_test() ->
    {0, Ledger} = chat_ledger:joined(?FROM, {room, market}, 7, chat_ledger:new()),
    ?assertMatch({in_order, _}, chat_ledger:receive_one(?FROM, {room, market}, 8, Ledger)).

rejoin_counts_what_was_missed_test() ->
    {_, Ledger} = enter([1, 2], chat_ledger:new()),
    {3, Rejoined} = chat_ledger:joined(?FROM, direct, 5, Ledger),
    ?assertEqual(3, chat_ledger:gaps(Rejoined)),
    ?assertMatch({in_order, _}, chat_ledger:receive_one(?FROM, direct, 6, Rejoined)),
    ?assertMatch({0, Rejoined}, chat_ledger:joined(?FROM, direct, 5, Rejoined)).

property_test_() ->
    {timeout, 60, fun() ->
        ?assert(proper:quickcheck(any_arrival(), [{numtests, 300}, {to_file, user}]))
    end}.

%% Against plain sets: each number is counted once, and what is missing is what is missing.
any_arrival() ->
    ?FORALL(Seqs, list(range(1, 30)),
            begin
                {Verdicts, Ledger} = enter(Seqs, chat_ledger:new()),
                Distinct = lists:usort(Seqs),
                Duplicates = length([V || V <- Verdicts, V =:= duplicate]),
                Highest = lists:max([0 | Seqs]),
                Duplicates =:= length(Seqs) - length(Distinct)
                    andalso chat_ledger:gaps(Ledger) =:= Highest - length(Distinct)
                    andalso chat_ledger:next({ada, 'n1@h'}, direct, Ledger) =:= Highest + 1
            end).
