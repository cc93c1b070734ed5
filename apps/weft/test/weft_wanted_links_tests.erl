%% SPDX-License-Identifier: Apache-2.0
%% @doc Wanted neighbours are dialled for ever, with backoff, and never twice at a time.
-module(weft_wanted_links_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(PEER, 'b@host').

the_first_dial_comes_within_retry_min_test() ->
    {_, [{after_ms, Ms, {dial, ?PEER, _}}]} = wanted(),
    ?assert(Ms >= 0 andalso Ms =< 100).

the_first_dials_of_a_large_cluster_are_spread_test() ->
    Names = [list_to_atom("n" ++ integer_to_list(N) ++ "@host") || N <- lists:seq(1, 1000)],
    {Delays, _} = lists:mapfoldl(fun(Name, Links0) ->
                                     {Links, [{after_ms, Ms, _}]} =
                                         weft_wanted_links:want(Name, Links0),
                                     {Ms, Links}
                                 end, weft_wanted_links:new('a@host', #{}), Names),
    Late = lists:nthtail(500, Delays),
    ?assert(lists:max(Delays) =< 2000),
    %% Of the second half about every tenth falls into the first 150 ms.
    ?assert(length([Ms || Ms <- Late, Ms =< 150]) < 100).

a_node_that_will_dial_itself_is_given_time_to_test() ->
    {Links, [{after_ms, Ms, {dial, ?PEER, _} = Dial}]} =
        weft_wanted_links:expect(?PEER, weft_wanted_links:new('a@host', #{})),
    ?assert(Ms >= 1000 andalso Ms =< 1100),
    ?assertMatch({_, [{connect, ?PEER}, _]}, weft_wanted_links:timer(Dial, Links)),
    Up = weft_wanted_links:up(?PEER, Links),
    ?assertMatch({_, []}, weft_wanted_links:timer(Dial, Up)),
    ?assertMatch({_, []}, weft_wanted_links:expect(?PEER, Links)),
    Unasked = weft_wanted_links:up(?PEER, weft_wanted_links:new('a@host', #{})),
    ?assertMatch({_, [{connect, ?PEER}]}, weft_wanted_links:expect(?PEER, Unasked)).

a_failed_dial_is_repeated_for_ever_with_growing_pauses_up_to_the_maximum_test() ->
    {Links, [{after_ms, _, Dial}]} = wanted(),
    Pauses = pauses(200, Dial, Links),
    lists:foreach(fun({Attempt, Ms}) ->
                      SpanMs = min(5000, 100 bsl Attempt),
                      ?assert(Ms >= SpanMs div 2 andalso Ms =< SpanMs)
                  end, lists:zip(lists:seq(1, 200), Pauses)).

pauses(0, _Dial, _Links) -> [];
pauses(Count, Dial, Links0) ->
    {Links1, [{connect, ?PEER}, {after_ms, 10000, _}]} = weft_wanted_links:timer(Dial, Links0),
    {Links2, [{after_ms, Ms, Next}]} = weft_wanted_links:down(?PEER, Links1),
    [Ms | pauses(Count - 1, Next, Links2)].

a_dial_without_answer_counts_as_failed_test() ->
    {Links0, [{after_ms, _, Dial}]} = wanted(),
    {Links1, [{connect, ?PEER}, {after_ms, 10000, Timeout}]} =
        weft_wanted_links:timer(Dial, Links0),
    ?assertMatch({_, [{after_ms, _, {dial, ?PEER, _}}]}, weft_wanted_links:timer(Timeout, Links1)).

timers_of_a_dial_that_succeeded_do_nothing_test() ->
    {Links0, [{after_ms, _, Dial}]} = wanted(),
    {Links1, [_, {after_ms, _, Timeout}]} = weft_wanted_links:timer(Dial, Links0),
    Links2 = weft_wanted_links:up(?PEER, Links1),
    ?assertEqual({Links2, []}, weft_wanted_links:timer(Timeout, Links2)),
    ?assertEqual({Links2, []}, weft_wanted_links:timer(Dial, Links2)).

a_link_that_is_up_already_is_claimed_without_a_timer_test() ->
    Links = weft_wanted_links:up(?PEER, weft_wanted_links:new('a@host', #{})),
    ?assertMatch({_, [{connect, ?PEER}]}, weft_wanted_links:want(?PEER, Links)).

a_node_no_longer_wanted_is_given_up_test() ->
    {Links0, [{after_ms, _, Dial}]} = wanted(),
    {Links1, [{disconnect, ?PEER}]} = weft_wanted_links:unwant(?PEER, Links0),
    ?assertEqual({Links1, []}, weft_wanted_links:timer(Dial, Links1)),
    ?assertEqual({Links1, []}, weft_wanted_links:down(?PEER, Links1)),
    ?assertEqual({Links1, []}, weft_wanted_links:unwant(?PEER, Links1)).

wanted() ->
    weft_wanted_links:want(?PEER, weft_wanted_links:new('a@host', #{seed => 1})).

%% Whatever happens in whatever order: a wanted node that is not up always has exactly one timer
%% that still counts, so it is never given up and never dialled twice at a time.
one_live_timer_per_wanted_node_that_is_down_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_one_live_timer(), [{numtests, 300}, quiet]))}.

prop_one_live_timer() ->
    ?FORALL({Seed, Events}, {integer(), list(oneof([want, unwant, up, down, fire]))},
            begin
                Start = {weft_wanted_links:new('a@host', #{seed => Seed}), []},
                {Links, Timers} = lists:foldl(fun step/2, Start, Events),
                IsWaiting = weft_wanted_links:wanted(Links) =:= [?PEER]
                    andalso not weft_wanted_links:is_linked(?PEER, Links),
                Live = [T || T <- Timers, weft_wanted_links:timer(T, Links) =/= {Links, []}],
                length(Live) =:= case IsWaiting of true -> 1; false -> 0 end
            end).

step(want, {Links, Timers}) -> gather(weft_wanted_links:want(?PEER, Links), Timers);
step(unwant, {Links, Timers}) -> gather(weft_wanted_links:unwant(?PEER, Links), Timers);
step(up, {Links, Timers}) -> {weft_wanted_links:up(?PEER, Links), Timers};
step(down, {Links, Timers}) -> gather(weft_wanted_links:down(?PEER, Links), Timers);
step(fire, {Links, []}) -> {Links, []};
step(fire, {Links, [Timer | Timers]}) -> gather(weft_wanted_links:timer(Timer, Links), Timers).

gather({Links, Effects}, Timers) ->
    {Links, Timers ++ [Timer || {after_ms, _, Timer} <- Effects]}.
