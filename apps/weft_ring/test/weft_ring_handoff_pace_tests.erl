%% SPDX-License-Identifier: Apache-2.0
%% @doc How fast a handoff is: by single acknowledgements, and with many handoffs at once that share
%% a processor with requests, in virtual time.
-module(weft_ring_handoff_pace_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(LEAST_MS, 10).
-define(SLOWEST_MS, 80).

%% --- rules ------------------------------------------------------------------------------------

it_begins_slowly_and_is_soon_as_fast_as_it_may_be_test() ->
    Pace = weft_ring_handoff_pace:new(?LEAST_MS),
    ?assertEqual(4 * ?LEAST_MS, weft_ring_handoff_pace:wait_ms(Pace)),
    ?assertEqual(?LEAST_MS, weft_ring_handoff_pace:wait_ms(after_delays([7, 7], Pace))).

%% What is far away is not late.
a_long_way_is_no_reason_to_be_slow_test() ->
    Pace = after_delays(lists:duplicate(20, 300), weft_ring_handoff_pace:new(?LEAST_MS)),
    ?assertEqual(?LEAST_MS, weft_ring_handoff_pace:wait_ms(Pace)).

late_is_more_than_twice_the_least_delay_and_two_ms_test() ->
    Fast = fast(1),
    ?assertEqual(?LEAST_MS, weft_ring_handoff_pace:wait_ms(after_delays([4], Fast))),
    ?assertEqual(2 * ?LEAST_MS, weft_ring_handoff_pace:wait_ms(after_delays([5], Fast))),
    Far = fast(100),
    ?assertEqual(?LEAST_MS, weft_ring_handoff_pace:wait_ms(after_delays([202], Far))),
    ?assertEqual(2 * ?LEAST_MS, weft_ring_handoff_pace:wait_ms(after_delays([203], Far))).

the_first_late_acknowledgement_ends_the_beginning_test() ->
    Late = after_delays([1, 50], weft_ring_handoff_pace:new(?LEAST_MS)),
    ?assertEqual(4 * ?LEAST_MS, weft_ring_handoff_pace:wait_ms(Late)),
    ?assert(weft_ring_handoff_pace:wait_ms(after_delays([1, 1], Late)) > 3 * ?LEAST_MS).

all_that_were_on_their_way_are_late_once_test() ->
    Sent = lists:foldl(fun(N, P) -> weft_ring_handoff_pace:sent(N, 1000, P) end, fast(1),
                       [101, 102, 103, 104]),
    Acknowledged = lists:foldl(fun(N, P) -> weft_ring_handoff_pace:acknowledged(N, 1100, P) end,
                               Sent, [101, 102, 103, 104]),
    ?assertEqual(2 * ?LEAST_MS, weft_ring_handoff_pace:wait_ms(Acknowledged)),
    Again = weft_ring_handoff_pace:acknowledged(
              105, 1300, weft_ring_handoff_pace:sent(105, 1200, Acknowledged)),
    ?assertEqual(4 * ?LEAST_MS, weft_ring_handoff_pace:wait_ms(Again)).

it_gets_faster_when_nothing_is_late_any_more_test() ->
    Slow = after_delays(lists:duplicate(10, 50), fast(1)),
    ?assertEqual(?SLOWEST_MS, weft_ring_handoff_pace:wait_ms(Slow)),
    Half = after_delays(lists:duplicate(45, 1), Slow),
    ?assert(abs(weft_ring_handoff_pace:wait_ms(Half) - ?SLOWEST_MS div 2) =< 2),
    ?assertEqual(?LEAST_MS,
                 weft_ring_handoff_pace:wait_ms(after_delays(lists:duplicate(100, 1), Half))).

%% A way that has become longer for good is late until it is known.
another_way_has_another_least_delay_test() ->
    Longer = after_delays(lists:duplicate(100, 60), fast(1)),
    ?assertEqual(?SLOWEST_MS, weft_ring_handoff_pace:wait_ms(Longer)),
    ?assertEqual(?LEAST_MS,
                 weft_ring_handoff_pace:wait_ms(after_delays(lists:duplicate(300, 60), Longer))).

%% The receiver was started again: what was on its way is not asked for any more.
after_another_beginning_numbers_begin_at_one_test() ->
    Sent = weft_ring_handoff_pace:sent(900, 1000, fast(1)),
    Again = weft_ring_handoff_pace:sent(1, 5000, weft_ring_handoff_pace:again(Sent)),
    ?assertEqual(2 * ?LEAST_MS, weft_ring_handoff_pace:wait_ms(
                                  weft_ring_handoff_pace:acknowledged(1, 5100, Again))).

without_a_pace_there_is_none_test() ->
    ?assertEqual(0, weft_ring_handoff_pace:wait_ms(
                      after_delays([1, 100, 1, 500], weft_ring_handoff_pace:new(0)))).

it_stays_between_its_limits_test() ->
    ?assert(proper:quickcheck(
              ?FORALL({Least, Delays}, {range(0, 100), list(range(0, 1000))},
                      begin
                          Ms = weft_ring_handoff_pace:wait_ms(
                                 after_delays(Delays, weft_ring_handoff_pace:new(Least))),
                          Ms >= Least andalso Ms =< 8 * Least
                      end), [{numtests, 300}, quiet])).

fast(DelayMs) -> after_delays([DelayMs, DelayMs], weft_ring_handoff_pace:new(?LEAST_MS)).

%% One batch after the other.
after_delays(DelaysMs, Pace) ->
    Numbered = lists:zip(lists:seq(1, length(DelaysMs)), DelaysMs),
    lists:foldl(fun({N, Ms}, P) ->
                    weft_ring_handoff_pace:acknowledged(
                      N, 1000 * N + Ms, weft_ring_handoff_pace:sent(N, 1000 * N, P))
                end, weft_ring_handoff_pace:again(Pace), Numbered).

%% --- many at once -----------------------------------------------------------------------------

-define(END_MS, 20000).
-define(BATCH_MS, 2).
-define(WINDOW, 4).

%% Sixteen handoffs, which at their full rate want three times what the processor can do. Without
%% giving way each request waits for a full window of all of them.
requests_wait_little_beside_many_handoffs_test() ->
    {Waits, Batches} = shared(16),
    ?assert(at(0.9, Waits) =< 10, at(0.9, Waits)),
    %% And they get on.
    ?assert(Batches >= 16 * (?END_MS div ?SLOWEST_MS) - 16, Batches).

%% Nothing else wants the processor: one handoff has its full rate.
alone_it_is_as_fast_as_it_may_be_test() ->
    {_, Batches} = shared(1),
    ?assert(Batches >= ?END_MS div (?LEAST_MS + 1), Batches).

%% A request every 7 ms takes 1 ms, a batch ?BATCH_MS, one after the other. How long requests waited
%% in the last three quarters of the time, and how many batches there were.
shared(Count) ->
    Handoffs = maps:from_list([{I, {weft_ring_handoff_pace:new(?LEAST_MS), I rem ?LEAST_MS, 0, 0}}
                               || I <- lists:seq(1, Count)]),
    run(0, Handoffs, [], 0, {[], 0}).

run(?END_MS, _Handoffs, _Queue, _FreeMs, Found) ->
    Found;
run(NowMs, Handoffs0, Queue0, FreeMs0, Found0) ->
    {Handoffs1, New} = begun(NowMs, Handoffs0),
    Queue1 = Queue0 ++ [{request, NowMs} || NowMs rem 7 =:= 0] ++ New,
    {Handoffs, Queue, FreeMs, Found} = served(NowMs, FreeMs0, Queue1, Handoffs1, Found0),
    run(NowMs + 1, Handoffs, Queue, FreeMs, Found).

begun(NowMs, Handoffs) ->
    Due = [I || {I, {_, DueMs, Sent, Acknowledged}} <- lists:sort(maps:to_list(Handoffs)),
                NowMs >= DueMs, Sent - Acknowledged < ?WINDOW],
    {lists:foldl(fun(I, All) ->
                     #{I := {Pace, _, Sent, Acknowledged}} = All,
                     All#{I := {weft_ring_handoff_pace:sent(Sent + 1, NowMs, Pace),
                                NowMs + weft_ring_handoff_pace:wait_ms(Pace), Sent + 1,
                                Acknowledged}}
                 end, Handoffs, Due),
     [{batch, I} || I <- Due]}.

served(NowMs, FreeMs, [{request, SinceMs} | Queue], Handoffs, {Waits, Batches})
  when FreeMs =< NowMs ->
    Waited = [NowMs - SinceMs || SinceMs > ?END_MS div 4],
    served(NowMs, NowMs + 1, Queue, Handoffs, {Waited ++ Waits, Batches});
served(NowMs, FreeMs, [{batch, I} | Queue], Handoffs, {Waits, Batches}) when FreeMs =< NowMs ->
    #{I := {Pace, DueMs, Sent, Acknowledged}} = Handoffs,
    DoneMs = NowMs + ?BATCH_MS,
    Told = weft_ring_handoff_pace:acknowledged(Acknowledged + 1, DoneMs, Pace),
    served(NowMs, DoneMs, Queue, Handoffs#{I := {Told, DueMs, Sent, Acknowledged + 1}},
           {Waits, Batches + 1});
served(_NowMs, FreeMs, Queue, Handoffs, Found) ->
    {Handoffs, Queue, FreeMs, Found}.

at(Part, Waits) -> lists:nth(ceil(Part * length(Waits)), lists:sort(Waits)).
