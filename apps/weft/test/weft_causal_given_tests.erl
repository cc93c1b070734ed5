%% SPDX-License-Identifier: Apache-2.0
%% @doc What a queue of a channel has been given under a label is known when it ends.
-module(weft_causal_given_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(G, weft_causal_given).
-define(B, 1).
-define(C, 2).

properties_test_() ->
    [{Name, {timeout, 60, ?_assert(proper:quickcheck(Property, [{numtests, 200}, quiet]))}}
     || {Name, Property} <- [{"nothing is forgotten", prop_all()},
                             {"exact while it is recent", prop_recent()},
                             {"what is left out", prop_except()}]].

%% Those that are sent again come in any order. There are more runs than are kept.
prop_all() ->
    ?FORALL(Numbers, resize(300, list(range(1, 1000))),
            begin
                Runs = runs(Numbers),
                length(Runs) =< 64 andalso lists:usort(Numbers) -- listed(Runs) =:= []
            end).

%% The newest 32 runs, at least, have what was given and nothing else.
prop_recent() ->
    ?FORALL(Steps, resize(300, list(range(1, 3))),
            begin
                Numbers = numbers(Steps),
                Recent = lists:sublist(runs(Numbers), 32),
                listed(Recent) -- Numbers =:= []
            end).

prop_except() ->
    ?FORALL({Numbers, Out}, {list(range(1, 60)), list(range(1, 60))},
            begin
                Runs = runs(Numbers),
                lists:usort(listed(?G:except(Out, Runs))) =:= lists:usort(listed(Runs)) -- Out
            end).

numbers(Steps) ->
    {Numbers, _} = lists:mapfoldl(fun(Step, N) -> {N + Step, N + Step} end, 0, Steps),
    Numbers.

runs([]) ->
    [];
runs(Numbers) ->
    Queue = whereis(init),
    {[{?B, Runs}], _} = ?G:ended(Queue, given(Queue, ?B, Numbers, ?G:new())),
    Runs.

listed(Runs) -> [N || {First, Last} <- Runs, N <- lists:seq(First, Last)].

given(Queue, To, Numbers, Given) ->
    lists:foldl(fun(Number, Acc) -> ?G:add(Queue, To, Number, Acc) end, Given, Numbers).

%% Older runs become one, over the numbers between them.
more_runs_than_are_kept_forget_nothing_test() ->
    Numbers = lists:seq(2, 400, 2),
    Runs = runs(Numbers),
    ?assert(length(Runs) =< 64),
    ?assertEqual([], Numbers -- listed(Runs)).

one_queue_has_one_run_test() ->
    ?assertEqual([{1, 1000}], runs(lists:seq(1, 1000))).

each_queue_is_watched_once_and_known_until_it_ends_test() ->
    [One, Other] = Queues = [spawn(fun() -> receive never -> ok end end) || _ <- [1, 2]],
    Given = given(Other, ?B, [3, 5], given(One, ?C, [1], given(One, ?B, [1, 2, 4], ?G:new()))),
    ?assertEqual([1, 1], [monitors(Queue) || Queue <- Queues]),
    exit(One, kill),
    receive {weft_queue_ended, _, process, One, killed} -> ok end,
    {Had, Left} = ?G:ended(One, Given),
    ?assertEqual([{?B, [{4, 4}, {1, 2}]}, {?C, [{1, 1}]}], lists:sort(Had)),
    ?assertEqual({false, true}, {?G:is_open(One, Left), ?G:is_open(Other, Left)}),
    exit(Other, kill).

%% The end of one that had ended before comes, too: nobody else says that it has lost the message.
a_queue_that_has_ended_is_noticed_test() ->
    {Queue, Ref} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Ref, process, Queue, _} -> ok end,
    Given = ?G:add(Queue, ?B, 1, ?G:new()),
    receive {weft_queue_ended, _, process, Queue, noproc} -> ok end,
    ?assertMatch({[{?B, [{1, 1}]}], _}, ?G:ended(Queue, Given)).

who_has_ended_is_forgotten_test() ->
    Queue = whereis(init),
    Given = ?G:forget(?B, given(Queue, ?C, [1], given(Queue, ?B, [1], ?G:new()))),
    ?assertMatch({[{?C, [{1, 1}]}], _}, ?G:ended(Queue, Given)).

monitors(Pid) ->
    {monitors, All} = process_info(self(), monitors),
    length([P || {process, P} <- All, P =:= Pid]).
