%% SPDX-License-Identifier: Apache-2.0
%% @doc The window on model paths: it fills them, and keeps what waits on them short.
-module(weft_window_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(MIB, 1048576).

properties_test_() ->
    [{Name, {timeout, 120, ?_assert(proper:quickcheck(Property, [{numtests, Count}, quiet]))}}
     || {Name, Count, Property} <- [{"fills the path", 15, prop_fills_the_path()},
                                    {"within its bounds", 1000, prop_bounds()}]].

%% From 12 MB/s at 100 us to 600 MB/s at 50 ms: eight tenths of the rate and more, once it is
%% learned (probes of the round trip cost a part of so short a time); and small messages do not wait
%% for much more than round trips, the first window, and two payloads.
prop_fills_the_path() ->
    ?FORALL({Rate, DelayUs}, {range(12, 600), range(50, 25000)},
            begin
                UntilUs = 200000 + 80 * DelayUs,
                Learn = #{rate => float(Rate), delay_us => DelayUs, until_us => UntilUs},
                #{carried := First} = weft_path_model:run(Learn),
                #{carried := Both, small_us := Small} =
                    weft_path_model:run(Learn#{until_us => 2 * UntilUs}),
                Worst = lists:max(Small),
                Limit = 4.5 * DelayUs + 3000 + (2 * ?MIB + 4 * 131072) / Rate,
                ?WHENFAIL(io:format("~p of ~p, worst ~p of ~p~n",
                                    [Both - First, Rate * UntilUs, Worst, Limit]),
                          Both - First > 0.8 * Rate * UntilUs andalso Worst < Limit)
            end).

%% Whatever is acknowledged when, the window stays in its bounds, but for a probe (64 KiB).
prop_bounds() ->
    ?FORALL(Acks, list({{range(0, 1000000), range(0, 2000000)},
                        oneof([undefined, range(0, 1000000)]), range(0, 500000),
                        oneof([undefined, integer(), range(-1 bsl 63, 1 bsl 63 - 1)])}),
            begin
                {_, _, Sizes} =
                    lists:foldl(fun({Acked, RoundTripUs, LaterUs, PeerUs}, {W0, BeforeUs, Sizes}) ->
                                        W = weft_window_core:limited(W0),
                                        NowUs = BeforeUs + LaterUs,
                                        W1 = weft_window_core:acked(Acked, RoundTripUs,
                                                                    {NowUs, PeerUs}, W),
                                        {W1, NowUs, [weft_window_core:bytes(W1) | Sizes]}
                                end, {weft_window_core:new(100000, 3000000), 0, []}, Acks),
                lists:all(fun(Size) -> Size >= 65536 andalso Size =< 3000000 end, Sizes)
            end).

%% A quarter of the bulk window of stock distribution on such a link is 5 s of waiting; here a small
%% message beside bulk takes milliseconds.
a_call_beside_bulk_on_a_slow_link_test() ->
    #{carried := Carried, small_us := Small} =
        weft_path_model:run(#{rate => 100.0, delay_us => 500, until_us => 4000000}),
    ?assert(Carried > 0.97 * 4000000 * 100),
    ?assert(length(Small) > 500),
    ?assert(lists:nth(ceil(0.99 * length(Small)), Small) < 7000),
    %% Before anything is learned.
    ?assert(lists:last(Small) < 15000).

%% Acknowledgements wait behind what the other end sends. Neither end starves, and each carries
%% seven tenths of what its link could (in this model windows that never change carry as much).
%% Where the peer does not say when it acknowledges both together carry less.
both_ways_test_() ->
    [{lists:concat([Rate, " MB/s, ", DelayUs, " us"]),
      {timeout, 60, fun() -> both_ways(#{rate => Rate, delay_us => DelayUs}) end}}
     || {Rate, DelayUs} <- [{12.5, 10000}, {50.0, 10000}, {50.0, 500}, {50.0, 40000}]].

both_ways(Path) ->
    Both = fun(Timed, Seed) ->
               weft_two_way_model:run(Path#{timed => Timed, seed => Seed, from_us => 6000000,
                                            until_us => 25000000, begin_us => {0, 5000000}})
           end,
    Seeds = lists:seq(1, 4),
    Timed = [Both(true, Seed) || Seed <- Seeds],
    Untimed = [Both(false, Seed) || Seed <- Seeds],
    Sum = fun(Runs) -> lists:sum([A + B || {A, B} <- Runs]) / length(Runs) end,
    [?assert(min(A, B) > 0.68) || {A, B} <- Timed],
    [?assert(abs(A - B) < 0.1) || {A, B} <- Timed],
    ?assert(Sum(Timed) > 1.03 * Sum(Untimed)).

%% Round trips of three times the shortest. What waits on its way there waits behind the window;
%% what waits on its way back does not.
only_acknowledgements_that_wait_widen_the_window_test() ->
    Bytes = fun(ThereUs, BackUs) ->
                Ack = fun({RoundTripUs, AtUs, PeerUs}, W) ->
                          weft_window_core:acked({500000, 10 * ?MIB}, RoundTripUs, {AtUs, PeerUs},
                                                 weft_window_core:limited(W))
                      end,
                Shortest = [{20000, AtUs, AtUs - 10000} || AtUs <- lists:seq(0, 500000, 10000)],
                Longer = [{20000 + ThereUs + BackUs, AtUs, AtUs - 10000 - BackUs}
                          || AtUs <- lists:seq(510000, 2000000, 10000)],
                weft_window_core:bytes(lists:foldl(Ack, weft_window_core:new(262144, 64 * ?MIB),
                                                   Shortest ++ Longer))
            end,
    Free = Bytes(0, 0),
    ?assertEqual(Free, Bytes(40000, 0)),
    ?assert(Bytes(0, 40000) > 1.5 * Free),
    %% Not without end.
    ?assertEqual(Bytes(0, 40000), Bytes(0, 400000)).

%% Its clock may have been put back or stand still, as after a pause of its host: then it counts as
%% if it said nothing.
a_peer_whose_clock_stands_still_test() ->
    Bytes = fun(Peer) ->
                Ack = fun(AtUs, W) ->
                          weft_window_core:acked({500000, 10 * ?MIB}, 20000, {AtUs, Peer(AtUs)},
                                                 weft_window_core:limited(W))
                      end,
                weft_window_core:bytes(lists:foldl(Ack, weft_window_core:new(262144, 64 * ?MIB),
                                                   lists:seq(0, 2000000, 10000)))
            end,
    Silent = Bytes(fun(_) -> undefined end),
    ?assertEqual(Silent, Bytes(fun(AtUs) -> -AtUs end)),
    ?assertEqual(Silent, Bytes(fun(AtUs) -> 5000000000 + AtUs end)).

%% Once for all lanes of a path, and not where a round trip is short.
times_are_asked_for_once_where_the_way_is_long_test() ->
    Acked = fun(RoundTripUs, W) -> weft_window_core:acked({1000, 0}, RoundTripUs, {0, undefined}, W)
            end,
    New = weft_window_core:new(262144, 64 * ?MIB),
    Long = Acked(5000, New),
    Asked = weft_window_core:times_asked(Long),
    ?assertEqual([false, false, true, false, true, true],
                 [weft_window_core:wants_times(W)
                  || W <- [New, Acked(500, New), Long, Acked(5000, Asked),
                           weft_window_core:lanes(2, Asked),
                           Acked(5000, weft_window_core:restart(Asked))]]).

the_state_of_the_version_before_is_read_test() ->
    New = weft_window_core:new(262144, 64 * ?MIB),
    Before = list_to_tuple(lists:sublist(tuple_to_list(New), tuple_size(New) - 4)),
    ?assertEqual(New, weft_window_core:code_change(Before)).

%% The same path becomes slower: what is under way shrinks with it.
it_shrinks_with_the_rate_test() ->
    #{windows := Windows, small_us := Small} =
        weft_path_model:run(#{rate => 1000.0, delay_us => 2000, until_us => 3000000,
                              changes => [{1000000, 50.0, 2000}]}),
    Largest = lists:max(Windows),
    Last = lists:last(Windows),
    ?assert(Largest > 4 * ?MIB),
    ?assert(Last < 2 * 262144),
    ?assert(hd(Small) < 20000).

%% It grows again with the rate at once, and with the delay when it probes again after 10 s.
it_grows_with_the_path_test_() ->
    {timeout, 60, fun it_grows_with_the_path/0}.

it_grows_with_the_path() ->
    #{windows := Faster} = weft_path_model:run(#{rate => 50.0, delay_us => 2000,
                                                 until_us => 2000000,
                                                 changes => [{1000000, 1000.0, 2000}]}),
    ?assert(lists:last(Faster) > 4 * ?MIB),
    #{carried := Carried} = weft_path_model:run(#{rate => 200.0, delay_us => 1000,
                                                  until_us => 40000000,
                                                  changes => [{1000000, 200.0, 20000}]}),
    ?assert(Carried > 0.7 * 40000000 * 200).

%% A sender with little to say teaches nothing about the path.
without_a_limit_nothing_is_learned_test() ->
    Ack = fun(N, W) -> weft_window_core:acked({1000, 0}, 100, {N * 5000, undefined}, W) end,
    Window = lists:foldl(Ack, weft_window_core:new(262144, 64 * ?MIB), lists:seq(1, 1000)),
    ?assertEqual(?MIB, weft_window_core:bytes(Window)).

%% One of several lanes stands still for a while: the others need room to go on.
pauses_of_one_lane_among_many_widen_the_window_test() ->
    Ack = fun({Bytes, AtUs}, W) ->
                  weft_window_core:losses(unknown, weft_window_core:acked(
                                                     {Bytes, 10 * ?MIB}, 20000, {AtUs, undefined},
                                                     weft_window_core:limited(W)))
          end,
    Paused = [{100000, AtUs} || AtUs <- lists:seq(0, 1000000, 5000)]
        ++ [{4000000, 1200000}]
        ++ [{100000, AtUs} || AtUs <- lists:seq(1205000, 1500000, 5000)],
    New = weft_window_core:new(262144, 64 * ?MIB),
    One = weft_window_core:bytes(lists:foldl(Ack, New, Paused)),
    Many = weft_window_core:bytes(lists:foldl(Ack, weft_window_core:lanes(8, New), Paused)),
    ?assert(Many > 3 * One).

%% A machine that is busy for ten milliseconds has lost no packet, on a path of a tenth of one.
pauses_of_a_busy_machine_do_not_test() ->
    Acks = [{10000000, AtUs} || AtUs <- lists:seq(0, 1000000, 10000)],
    ?assert(widest(unknown, Acks) < 2 * ?MIB).

%% Of a longer pause the kernel knows whether TCP had to send something again.
pauses_of_a_busy_receiver_do_not_test_() ->
    Acks = [{10000000, AtUs} || AtUs <- lists:seq(0, 1000000, 10000)]
        ++ [{10000000, 1200000}, {10000000, 1210000}],
    [?_assert(widest(Losses, Acks) > 32 * ?MIB) || Losses <- [1, 17, unknown]]
        ++ [?_assert(widest(0, Acks) < 2 * ?MIB),
            %% Behind a gateway it does not.
            ?_assert(widest(0, weft_window_core:relayed(true, several()), Acks) > 32 * ?MIB),
            %% What was lost before the pause was no reason for it.
            ?_test(begin
                       Again = Acks
                           ++ [{10000000, AtUs} || AtUs <- lists:seq(1220000, 6000000, 10000)]
                           ++ [{10000000, 6200000}, {10000000, 6210000}],
                       ?assert(widest(3, Again) < 2 * ?MIB)
                   end)].

widest(Losses, Acks) -> widest(Losses, several(), Acks).

several() -> weft_window_core:lanes(8, weft_window_core:new(262144, 64 * ?MIB)).

%% The kernel always says that so many were lost until now.
widest(Losses, New, Acks) ->
    Ack = fun({Bytes, AtUs}, W0) ->
                  W = weft_window_core:acked({Bytes, 10 * ?MIB}, 100, {AtUs, undefined},
                                             weft_window_core:limited(W0)),
                  case weft_window_core:is_in_doubt(W) of
                      true -> weft_window_core:losses(Losses, W);
                      false -> W
                  end
          end,
    weft_window_core:bytes(lists:foldl(Ack, New, Acks)).

a_fixed_window_stays_test() ->
    Window = weft_window_core:acked({1000000, 0}, 1000, {5000, undefined},
                                    weft_window_core:new(3000, 3000)),
    ?assertEqual(3000, weft_window_core:bytes(Window)).

%% Half a mebibyte on each of two links, before a gateway and behind it.
a_short_path_over_a_gateway_has_twice_as_much_test() ->
    Ack = fun(AtUs, W) -> weft_window_core:acked({30000000, 10 * ?MIB}, 50, {AtUs, undefined},
                                                 weft_window_core:limited(W)) end,
    Bytes = fun(Window) ->
                weft_window_core:bytes(lists:foldl(Ack, Window, lists:seq(0, 1000000, 10000)))
            end,
    New = weft_window_core:new(262144, 64 * ?MIB),
    Relayed = weft_window_core:relayed(true, New),
    ?assertEqual({?MIB div 2, ?MIB}, {Bytes(weft_window_core:relayed(false, Relayed)),
                                      Bytes(Relayed)}),
    ?assertEqual(?MIB, Bytes(weft_window_core:restart(Relayed))).

%% What was learned of one path does not hold for another.
a_new_path_is_learned_anew_test() ->
    Ack = fun(AtUs, W) -> weft_window_core:acked({9000000, 0}, 20000, {AtUs, undefined},
                                                 weft_window_core:limited(W)) end,
    Wide = lists:foldl(Ack, weft_window_core:new(262144, 64 * ?MIB),
                       lists:seq(0, 1000000, 10000)),
    ?assert(weft_window_core:bytes(Wide) > 8 * ?MIB),
    ?assertEqual(?MIB, weft_window_core:bytes(weft_window_core:restart(Wide))).
