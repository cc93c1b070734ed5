%% SPDX-License-Identifier: Apache-2.0
-module(weft_ops_webhook_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(CORE, weft_ops_webhook_core).
-define(OPTIONS, #{queue_max => 3, tries_max => 3, retry_ms => 10, retry_max_ms => 40}).

one_at_a_time_and_in_order_test() ->
    {send, a, One} = ?CORE:next(0, with([a, b])),
    ?assertEqual(nothing, ?CORE:next(0, One)),
    {sent, Two} = ?CORE:done({status, 204}, 0, One),
    ?assertMatch({send, b, _}, ?CORE:next(0, Two)).

a_failed_one_is_tried_again_first_and_later_each_time_test() ->
    {send, a, S0} = ?CORE:next(0, with([a, b])),
    {retry, S1} = ?CORE:done({status, 500}, 0, S0),
    ?assertEqual({wait, 10}, ?CORE:next(0, S1)),
    {send, a, S2} = ?CORE:next(10, S1),
    {retry, S3} = ?CORE:done(late, 10, S2),
    ?assertEqual({wait, 20}, ?CORE:next(10, S3)),
    {send, a, S4} = ?CORE:next(30, S3),
    ?assertMatch({given_up, _}, ?CORE:done({status, 503}, 30, S4)).

%% It is not the fault of the event.
who_is_absent_is_tried_until_it_is_there_test() ->
    Last = lists:foldl(fun(N, State0) ->
                           {send, a, State1} = ?CORE:next(N * 100, State0),
                           {retry, State} = ?CORE:done(absent, N * 100, State1),
                           State
                       end, with([a]), lists:seq(1, 20)),
    ?assertEqual({wait, 40}, ?CORE:next(2000, Last)),
    {send, a, There} = ?CORE:next(2040, Last),
    ?assertMatch({sent, _}, ?CORE:done({status, 200}, 2040, There)).

%% After a success the next failure is a first one.
pauses_begin_anew_test() ->
    {send, a, S0} = ?CORE:next(0, with([a, b])),
    {retry, S1} = ?CORE:done(absent, 0, S0),
    {send, a, S2} = ?CORE:next(10, S1),
    {sent, S3} = ?CORE:done({status, 200}, 10, S2),
    {send, b, S4} = ?CORE:next(10, S3),
    {retry, S5} = ?CORE:done(absent, 10, S4),
    ?assertEqual({wait, 10}, ?CORE:next(10, S5)).

a_refusal_is_final_test_() ->
    [?_assertMatch({Verdict, _}, ?CORE:done({status, Status}, 0, sending()))
     || {Status, Verdict} <- [{400, refused}, {404, refused}, {408, retry}, {429, retry},
                              {301, retry}, {199, retry}, {200, sent}, {299, sent}]].

sending() ->
    {send, a, State} = ?CORE:next(0, with([a])),
    State.

the_oldest_is_dropped_test() ->
    {1, Full} = ?CORE:add(d, with([a, b, c])),
    {send, b, _} = ?CORE:next(0, Full),
    %% What is under way is not, unless it comes back.
    {send, a, One} = ?CORE:next(0, with([a, b, c])),
    {0, Two} = ?CORE:add(d, One),
    ?assertEqual(4, ?CORE:size(Two)),
    {overflow, Three} = ?CORE:done(absent, 0, Two),
    ?assertMatch({send, b, _}, ?CORE:next(10, Three)).

%% Nothing is lost without being counted, told twice after it was accepted, or told out of order.
each_event_is_told_or_counted_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_conserved(), [{numtests, 500},
                                                                {to_file, user}]))}.

prop_conserved() ->
    ?FORALL(Steps, list(oneof([add, {status, 200}, {status, 500}, {status, 404}, late, absent])),
            begin
                {State, Added, Told, Lost, _} =
                    lists:foldl(fun step/2, {?CORE:new(?OPTIONS), 0, [], 0, 0}, Steps),
                Told =:= lists:reverse(lists:usort(Told))
                    andalso Added =:= length(Told) + Lost + ?CORE:size(State)
                    andalso ?CORE:size(State) =< 4
            end).

step(add, {State0, Added, Told, Lost, NowMs}) ->
    {Dropped, State} = ?CORE:add(Added, State0),
    {State, Added + 1, Told, Lost + Dropped, NowMs};
step(Outcome, {State0, Added, Told, Lost, NowMs0}) ->
    NowMs = NowMs0 + 40,
    case ?CORE:next(NowMs, State0) of
        {send, Event, Sending} ->
            case ?CORE:done(Outcome, NowMs, Sending) of
                {sent, State} -> {State, Added, [Event | Told], Lost, NowMs};
                {retry, State} -> {State, Added, Told, Lost, NowMs};
                {_Dropped, State} -> {State, Added, Told, Lost + 1, NowMs}
            end;
        nothing ->
            {State0, Added, Told, Lost, NowMs}
    end.

with(Events) ->
    lists:foldl(fun(Event, State0) -> {0, State} = ?CORE:add(Event, State0), State end,
                ?CORE:new(?OPTIONS), Events).
