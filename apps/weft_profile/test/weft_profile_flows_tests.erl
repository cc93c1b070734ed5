%% SPDX-License-Identifier: Apache-2.0
%% @doc Which arrival belongs to which sending.
-module(weft_profile_flows_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(P, list_to_pid("<0.101.0>")).
-define(Q, list_to_pid("<0.102.0>")).

%% Names are a way to be on another node here.
pair(Sent, Received) -> pair(Sent, Received, #{?Q => <<"q">>}).

pair(Sent, Received, Names) ->
    weft_profile_flows:pair([#{node => a, error => 5, names => #{}, events => Sent},
                             #{node => b, error => 5, names => Names, events => Received}], 1000).

send(Ns, Key) -> {Ns, send, ?P, 1, {q, b}, Key, hello}.
arrive(Ns, Key) -> {Ns, 'receive', ?Q, 1, Key, hello}.

times({Flows, _Counts}) -> [{Sent, Received} || #{sent := Sent, received := Received} <- Flows].

equal_messages_keep_their_order_test() ->
    ?assertEqual([{1, 10}, {2, 20}, {3, 30}],
                 times(pair([send(1, x), send(2, x), send(3, x)],
                            [arrive(10, x), arrive(20, x), arrive(30, x)]))).

other_messages_may_come_in_between_test() ->
    ?assertEqual([{2, 10}, {1, 20}],
                 times(pair([send(1, x), send(2, y)], [arrive(10, y), arrive(20, x)]))).

what_has_no_other_end_is_counted_test() ->
    {Flows, Counts} = pair([send(1, x), send(2, y)], [arrive(10, z), arrive(20, x)]),
    ?assertMatch([#{id := 1, from_node := a, to_node := b, kind := hello}], Flows),
    ?assertEqual(#{paired => 1, not_received => 1, not_sent => 1}, Counts).

nothing_arrives_before_it_is_sent_test() ->
    ?assertEqual([], times(pair([send(100, x)], [arrive(89, x)]))),
    ?assertEqual([{100, 90}], times(pair([send(100, x)], [arrive(90, x)]))).

a_name_is_that_of_the_receiver_test() ->
    ?assertEqual([], times(pair([send(1, x)], [arrive(10, x)], #{?Q => <<"r">>}))).

messages_to_other_nodes_are_not_counted_test() ->
    ?assertMatch({[], #{not_received := 0}}, pair([{1, send, ?P, 1, {q, c}, x, hello}], [])).

pids_and_aliases_are_addresses_too_test() ->
    Sides = fun(To) ->
                    [#{node => node(), error => 0, names => #{},
                       events => [{1, send, ?P, 1, To, x, k}, {5, 'receive', ?Q, 1, x, k}]}]
            end,
    [?assertMatch({[#{sent := 1, received := 5}], _}, weft_profile_flows:pair(Sides(To), 10))
     || To <- [?Q, make_ref()]].

no_more_than_so_many_test() ->
    Many = lists:seq(1, 20),
    {Flows, #{paired := 5, not_received := 15, not_sent := 0}} =
        weft_profile_flows:pair([#{node => a, error => 0, names => #{},
                                   events => [send(N, N) || N <- Many]},
                                 #{node => b, error => 0, names => #{?Q => <<"q">>},
                                   events => [arrive(N + 50, N) || N <- Many]}], 5),
    ?assertEqual([1, 2, 3, 4, 5], [Id || #{id := Id} <- Flows]).

with_any_clocks_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_ends_have_begun(), [{to_file, user}, quiet,
                                                                      {numtests, 200}]))}.

%% Whatever the clocks are: each end has its begin, and no arrow goes back by more than the errors
%% of the two clocks.
prop_ends_have_begun() ->
    ?FORALL(Seed, proper_types:integer(),
            begin
                Parts = weft_profile_sample:parts(Seed),
                #{flows := Flows, nodes := Sides} = weft_profile_recording:profile(Parts),
                Errors = maps:from_list([{Node, Error} || #{node := Node, error := Error}
                                                              <- Sides]),
                length(Flows) > 0
                    andalso lists:all(fun(#{from_node := From, to_node := To, sent := Sent,
                                            received := Received}) ->
                                              Received - Sent >= -map_get(From, Errors)
                                                  - map_get(To, Errors)
                                      end, Flows)
            end).
