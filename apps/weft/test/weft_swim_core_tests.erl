%% SPDX-License-Identifier: Apache-2.0
%% @doc SWIM with Lifeguard, event by event. Whole clusters are in the simulator's tests.
-module(weft_swim_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(A, 'a@host').
-define(B, 'b@host').
-define(C, 'c@host').
-define(D, 'd@host').
-define(E, 'e@host').

%%% Joining

a_node_alone_pulls_from_its_seeds_until_it_knows_somebody_test() ->
    {State0, Effects} = weft_swim_core:init(?A, #{seeds => [?B, ?A], incarnation => 1,
                                                  links => false}),
    ?assertEqual([{?B, {pull, {first, last}, [{?A, 1, alive}]}, []}], sent(Effects)),
    ?assertEqual([{member, ?A}], [Key || {view, Key, 1} <- Effects]),
    {State1, Again} = handle({timer, join}, State0),
    ?assertMatch([{?B, {pull, _, _}, []}], sent(Again)),
    {State, _} = handle(from(?B, {push, [{?B, 1, alive}]}), State1),
    ?assertMatch({_, []}, handle({timer, join}, State)).

a_link_that_comes_up_introduces_the_node_test() ->
    {State, Alone} = handle({neighbour_up, ?B}, start()),
    ?assertEqual([{?B, {pull, {first, last}, [{?A, 1, alive}]}, []}], sent(Alone)),
    {_, Known} = handle({neighbour_up, ?C}, member(?B, State)),
    ?assertMatch([{?C, {digest, 1, {2, _}}, _}], sent(Known)).

whoever_pulls_gets_what_it_lacks_and_becomes_a_member_test() ->
    {_, Effects} = handle(from(?C, {pull, {first, last}, [{?C, 5, alive}]}), cluster([?B])),
    ?assertMatch([{?C, {push, [{?A, 1, alive}, {?B, 1, alive}]}, _}], sent(Effects)),
    ?assertEqual([{?C, joined}], changes(Effects)),
    ?assertEqual([{{member, ?C}, 5}], views(Effects)).

a_large_table_goes_in_parts_whose_ranges_leave_no_gap_test() ->
    {State, _} = weft_swim_core:init(?A, #{sync_entries => 2, incarnation => 1, links => false}),
    Four = lists:foldl(fun member/2, State, [?B, ?C, ?D]),
    {_, Effects} = handle(from(?E, {digest, 1, {1, 0}}), Four),
    ?assertMatch([{?E, {pull, {first, ?C}, [{?A, _, _}, {?B, _, _}]}, _},
                  {?E, {pull, {?C, ?E}, [{?C, _, _}, {?D, _, _}]}, _},
                  {?E, {pull, {?E, last}, [{?E, _, _}]}, _}], sent(Effects)).

equal_tables_are_not_exchanged_and_different_ones_not_too_often_test() ->
    State0 = cluster([?B, ?C]),
    {_, [{send, _, {1, {digest, 1, Digest}, _}} | _]} = handle({neighbour_up, ?D}, State0),
    ?assertMatch({_, []}, handle(from(?B, {digest, 1, Digest}), State0)),
    {State1, Effects} = handle(from(?B, {digest, 1, {9, 9}}), State0),
    ?assertMatch([{?B, {pull, _, _}, _}], sent(Effects)),
    ?assertMatch({_, []}, handle(from(?C, {digest, 1, {9, 9}}), 999, State1)),
    {_, Later} = handle(from(?C, {digest, 1, {9, 9}}), 1000, State1),
    ?assertMatch([{?C, {pull, _, _}, _}], sent(Later)).

%%% Probing

a_member_that_answers_is_not_suspected_test() ->
    {Sequence, State0} = probed(?B, cluster([?B, ?C])),
    {State1, []} = handle(from(?B, {ack, Sequence}), State0),
    ?assertMatch({_, []}, handle({timer, {indirect, Sequence}}, State1)),
    {_, Effects} = handle({timer, {round, Sequence}}, 1000, State1),
    ?assertEqual([], changes(Effects)).

a_silent_member_is_asked_for_through_others_and_then_suspected_test() ->
    {Sequence, State0} = probed(?B, cluster([?B, ?C, ?D, ?E])),
    {State1, Indirect} = handle({timer, {indirect, Sequence}}, State0),
    ?assertEqual([{?C, {ping_req, Sequence, ?B}}, {?D, {ping_req, Sequence, ?B}},
                  {?E, {ping_req, Sequence, ?B}}],
                 lists:sort([{To, What} || {To, What, _} <- sent(Indirect)])),
    {_, Effects} = handle({timer, {round, Sequence}}, 1000, State1),
    ?assertEqual([{?B, suspected}], changes(Effects)),
    %% One accuser, five members: the longest time.
    ?assertMatch([{24000, {suspicion, ?B, _}}],
                 [T || {_, {suspicion, _, _}} = T <- timers(Effects)]).

an_answer_through_a_relay_counts_test() ->
    {Sequence, State0} = probed(?B, cluster([?B, ?C, ?D, ?E])),
    {State1, _} = handle({timer, {indirect, Sequence}}, State0),
    {State2, _} = handle(from(?C, {ack, Sequence}), State1),
    {_, Effects} = handle({timer, {round, Sequence}}, 1000, State2),
    ?assertEqual([], changes(Effects)).

a_relay_pings_and_passes_on_the_answer_or_says_that_there_is_none_test() ->
    {State0, Asked} = handle(from(?B, {ping_req, 77, ?C}), cluster([?B, ?C])),
    [{?C, {ping, Own}, _}] = sent(Asked),
    [{400, {relay, Own} = Relay}] = timers(Asked),
    Timer = {timer, Relay},
    {State1, Answered} = handle(from(?C, {ack, Own}), State0),
    ?assertMatch([{?B, {ack, 77}, _}], sent(Answered)),
    ?assertMatch({_, []}, handle(Timer, State1)),
    {State2, None} = handle(Timer, State0),
    ?assertMatch([{?B, {nack, 77}, _}], sent(None)),
    ?assertMatch({_, []}, handle(from(?C, {ack, Own}), State2)).

a_stranger_can_not_answer_for_the_target_of_a_relayed_probe_test() ->
    {State, Asked} = handle(from(?B, {ping_req, 77, ?C}), cluster([?B, ?C, ?D])),
    [{?C, {ping, Own}, _}] = sent(Asked),
    ?assertMatch({_, []}, handle(from(?D, {ack, Own}), State)).

a_relay_without_a_link_says_so_and_another_is_asked_test() ->
    {_, Unlinked} = handle(from(?B, {ping_req, 77, 'f@host'}), cluster([?B, ?C])),
    ?assertMatch([{?B, {no_link, 77}, _}], sent(Unlinked)),
    {Sequence, State0} = probed(?B, cluster([?B, ?C, ?D, ?E], #{indirect_probes => 1})),
    {State1, First} = handle({timer, {indirect, Sequence}}, State0),
    [{One, {ping_req, Sequence, ?B}, _}] = sent(First),
    {State2, Second} = handle(from(One, {no_link, Sequence}), State1),
    [{Two, {ping_req, Sequence, ?B}, _}] = sent(Second),
    {State3, Third} = handle(from(Two, {no_link, Sequence}), State2),
    [{Three, {ping_req, Sequence, ?B}, _}] = sent(Third),
    ?assertEqual([?C, ?D, ?E], lists:sort([One, Two, Three])),
    {State, Last} = handle(from(Three, {no_link, Sequence}), State3),
    ?assertEqual([], sent(Last)),
    {Accusing, _} = handle({timer, {round, Sequence}}, 1000, State),
    ?assertEqual(0, weft_swim_core:health(Accusing)).

too_many_relayed_probes_are_refused_test() ->
    {State0, _} = weft_swim_core:init(?A, #{relays_max => 1, links => false}),
    {State, _} = handle(from(?B, {ping_req, 1, ?C}), State0),
    {_, Effects} = handle(from(?B, {ping_req, 2, ?C}), State),
    ?assertMatch([{?B, {nack, 2}, _}], sent(Effects)).

every_member_is_probed_once_before_one_is_probed_twice_test() ->
    Members = [?B, ?C, ?D, ?E],
    {Targets, _} = lists:mapfoldl(fun(_, S0) ->
                                      {Target, Sequence, S1} = next_round(S0),
                                      {S, _} = handle(from(Target, {ack, Sequence}), S1),
                                      {Target, S}
                                  end, cluster(Members), lists:seq(1, 12)),
    [?assertEqual(Members, lists:sort(Turn)) || Turn <- thirds(Targets)].

a_member_whose_link_broke_is_asked_for_through_others_next_test() ->
    {State0, _} = handle({neighbour_down, ?D, timeout}, cluster([?B, ?C, ?D, ?E])),
    {_, Effects} = handle({timer, {round, token(State0)}}, State0),
    ?assertMatch([{_, {ping_req, _, ?D}, _}, {_, {ping_req, _, ?D}, _}, {_, {ping_req, _, ?D}, _}],
                 sent(Effects)).

%%% Suspicion

a_suspect_that_does_not_refute_is_dead_when_its_time_is_over_test() ->
    {State0, Effects0} = handle(gossip(?C, {suspect, ?B, 1, ?C}), cluster([?B, ?C])),
    [{DueMs, {suspicion, ?B, _} = Timer}] = [T || {_, {suspicion, _, _}} = T <- timers(Effects0)],
    ?assertMatch({_, []}, handle({timer, Timer}, DueMs - 1, State0)),
    {State, Effects} = handle({timer, Timer}, DueMs, State0),
    ?assertEqual([{?B, failed}], changes(Effects)),
    ?assertEqual([{{failed, ?B}, 1}, {{member, ?B}, delete}], lists:sort(views(Effects))),
    ?assertEqual([?C], weft_swim_core:living(State)).

a_higher_incarnation_clears_a_suspect_test() ->
    {State0, Effects0} = handle(gossip(?C, {suspect, ?B, 1, ?C}), cluster([?B, ?C])),
    [{DueMs, Timer}] = [T || {_, {suspicion, _, _}} = T <- timers(Effects0)],
    {State, Effects} = handle(gossip(?C, {alive, ?B, 2}), State0),
    ?assertEqual([{?B, cleared}], changes(Effects)),
    ?assertMatch({_, []}, handle({timer, Timer}, DueMs, State)).

further_accusers_shorten_the_time_and_are_passed_on_test() ->
    Members = [?B, ?C, ?D, ?E],
    {State0, _} = handle(gossip(?C, {suspect, ?B, 1, ?C}), cluster(Members)),
    {State1, Effects1} = handle(gossip(?D, {suspect, ?B, 1, ?D}), State0),
    {_, Effects2} = handle(gossip(?E, {suspect, ?B, 1, ?E}), State1),
    %% From 24 s: two confirmations are wanted, and lead to 4 s.
    ?assertMatch([{11381, {suspicion, ?B, _}}], timers(Effects1)),
    ?assertMatch([{4000, {suspicion, ?B, _}}], timers(Effects2)),
    {_, Pong} = handle(from(?C, {ping, 1}), State1),
    ?assertMatch([{?C, {ack, 1}, [{suspect, ?B, 1, ?D} | _]}], sent(Pong)).

in_plain_swim_the_time_is_fixed_test() ->
    State0 = cluster([?B, ?C, ?D, ?E], #{lifeguard => []}),
    {State1, Effects} = handle(gossip(?C, {suspect, ?B, 1, ?C}), State0),
    ?assertMatch([{4000, {suspicion, ?B, _}} | _], lists:reverse(lists:sort(timers(Effects)))),
    ?assertMatch({_, []}, handle(gossip(?D, {suspect, ?B, 1, ?D}), State1)).

a_suspected_node_refutes_and_minds_its_health_test() ->
    {State, Effects} = handle(gossip(?B, {suspect, ?A, 1, ?B}), cluster([?B, ?C])),
    ?assertEqual([{{member, ?A}, 2}], views(Effects)),
    ?assertEqual(1, weft_swim_core:health(State)),
    {_, Pong} = handle(from(?B, {ping, 1}), State),
    ?assertMatch([{?B, {ack, 1}, [{alive, ?A, 2} | _]}], sent(Pong)),
    ?assertMatch({_, []}, handle(gossip(?C, {suspect, ?A, 1, ?C}), State)).

a_node_whose_clock_went_back_takes_an_incarnation_above_its_former_one_test() ->
    {State, Effects} = handle(gossip(?B, {alive, ?A, 9}), cluster([?B])),
    ?assertEqual([{{member, ?A}, 10}], views(Effects)),
    ?assertEqual(0, weft_swim_core:health(State)).

a_ping_to_a_suspect_tells_it_test() ->
    {State0, _} = handle(gossip(?C, {suspect, ?B, 1, ?C}), cluster([?B])),
    {?B, _, _, News} = next_ping(State0),
    ?assertEqual([{suspect, ?B, 1, ?A}], [Update || {suspect, ?B, 1, ?A} = Update <- News]),
    {Plain, _} = handle(gossip(?C, {suspect, ?B, 1, ?C}), cluster([?B], #{lifeguard => []})),
    {?B, _, _, PlainNews} = next_ping(Plain),
    ?assertEqual([], [Update || {suspect, ?B, 1, ?A} = Update <- PlainNews]).

a_dead_node_that_speaks_is_told_that_it_is_dead_test() ->
    {State, _} = handle(gossip(?C, {dead, ?B, 1}), cluster([?B, ?C])),
    {_, Pong} = handle(from(?B, {ping, 1}), State),
    ?assertMatch([{?B, {ack, 1}, [{dead, ?B, 1} | _]}], sent(Pong)),
    {Back, Effects} = handle(gossip(?B, {alive, ?B, 2}), State),
    ?assertEqual([{?B, joined}], changes(Effects)),
    ?assertEqual([?B, ?C], weft_swim_core:living(Back)).

%% Also when that is no news for anybody else any more.
a_dead_node_that_speaks_late_is_told_all_the_same_test() ->
    {State, _} = handle(gossip(?C, {dead, ?B, 1}), cluster([?B, ?C])),
    Told = lists:foldl(fun(_, S) -> element(1, handle({timer, gossip}, S)) end, State,
                       lists:seq(1, 100)),
    {_, Pong} = handle(from(?B, {ping, 1}), Told),
    ?assertEqual([{?B, {ack, 1}, [{dead, ?B, 1}]}], sent(Pong)).

the_dead_are_asked_now_and_then_so_that_halves_of_a_cluster_meet_again_test() ->
    {State0, _} = handle(gossip(?C, {dead, ?B, 1}), cluster([?B, ?C])),
    {State, _} = handle({neighbour_down, ?B, timeout}, State0),
    {_, Effects} = handle({timer, sync}, State),
    ?assertMatch([{?B, {digest, 1, _}, [{dead, ?B, 1}]}, {?C, {digest, 1, _}, _}],
                 lists:sort(sent(Effects))).

%%% Local health

silent_relays_are_a_sign_against_oneself_and_slow_down_the_probes_test() ->
    {Sequence, State0} = probed(?B, cluster([?B, ?C, ?D, ?E])),
    {State1, _} = handle({timer, {indirect, Sequence}}, State0),
    {State2, _} = handle(from(?C, {nack, Sequence}), State1),
    {State3, Effects} = handle({timer, {round, Sequence}}, 1000, State2),
    ?assertEqual(2, weft_swim_core:health(State3)),
    ?assertMatch([{3000, {round, _}}], [T || {_, {round, _}} = T <- timers(Effects)]),
    ?assertMatch([{1500, {indirect, _}}], [T || {_, {indirect, _}} = T <- timers(Effects)]),
    [{To, {ping, Next}, _} | _] = sent(Effects),
    {State4, _} = handle(from(To, {ack, Next}), State3),
    {State, _} = handle({timer, {round, Next}}, 4000, State4),
    ?assertEqual(1, weft_swim_core:health(State)).

a_node_that_was_stopped_accuses_nobody_test() ->
    {Sequence, State0} = probed(?B, cluster([?B, ?C, ?D, ?E])),
    {State1, _} = handle({timer, {indirect, Sequence}}, 60000, State0),
    {State2, Effects} = handle({timer, {round, Sequence}}, 60000, State1),
    ?assertEqual([], changes(Effects)),
    ?assertEqual(1, weft_swim_core:health(State2)),
    {State3, Suspected} = handle(gossip(?C, {suspect, ?D, 1, ?C}), 60000, State2),
    [{Ms, Timer}] = [T || {_, {suspicion, _, _}} = T <- timers(Suspected)],
    {_, Late} = handle({timer, Timer}, 60000 + Ms + 60000, State3),
    ?assertEqual([], changes(Late)),
    ?assertMatch([{4000, Timer}], timers(Late)).

in_plain_swim_a_node_that_was_stopped_accuses_test() ->
    {Sequence, State0} = probed(?B, cluster([?B, ?C, ?D, ?E], #{lifeguard => []})),
    {State, Effects} = handle({timer, {round, Sequence}}, 60000, State0),
    ?assertEqual([{?B, suspected}], changes(Effects)),
    ?assertEqual(0, weft_swim_core:health(State)).

%%% Gossip

news_goes_to_a_few_neighbours_until_each_piece_was_sent_often_enough_test() ->
    {State, Effects} = handle(gossip(?B, {alive, ?E, 7}), cluster([?B, ?C, ?D])),
    [{Ms, gossip}] = [T || {_, gossip} = T <- timers(Effects)],
    ?assert(Ms =< 200),
    {Sent, Left} = gossip_until_quiet(State, 0),
    %% Five members: 4 * ceil(log10(6)) transmissions.
    ?assertEqual(4, Sent),
    ?assertMatch({_, []}, handle({timer, gossip}, Left)).

gossip_until_quiet(State0, Sent) ->
    {State, Effects} = handle({timer, gossip}, State0),
    More = Sent + length([1 || {_, gossip, News} <- sent(Effects), {alive, ?E, 7} <- News]),
    case timers(Effects) of
        [{200, gossip}] -> gossip_until_quiet(State, More);
        [] -> {More, State}
    end.

%%% Leaving

leaving_tells_others_and_then_is_silent_test() ->
    {State0, Effects} = handle({command, ref, leave}, cluster([?B, ?C])),
    ?assertEqual([], [R || {reply, _, R} <- Effects]),
    ?assertMatch({_, []}, handle(gossip(?B, {alive, ?E, 1}), State0)),
    {State, Told} = leave_until_answered(State0, []),
    %% Three members: 4 * ceil(log10(4)) transmissions.
    ?assertEqual(4, length([1 || {_, gossip, News} <- sent(Told), {left, ?A, 1} <- News])),
    ?assert(lists:member({view, {member, ?A}, delete}, Told)),
    ?assertMatch({_, []}, handle(from(?B, {ping, 1}), State)),
    ?assertMatch({_, [{reply, again, ok}]}, handle({command, again, leave}, State)).

leave_until_answered(State0, Effects0) ->
    {State, Effects} = handle({timer, gossip}, State0),
    case lists:member({reply, ref, ok}, Effects) of
        true -> {State, Effects0 ++ Effects};
        false -> leave_until_answered(State, Effects0 ++ Effects)
    end.

leaving_ends_in_time_when_nobody_can_be_told_test() ->
    {State, Effects} = handle({command, ref, leave}, cluster([?B])),
    ?assertEqual([{5000, leave}], [T || {_, leave} = T <- timers(Effects)]),
    {_, Done} = handle({timer, leave}, 5000, State),
    ?assert(lists:member({reply, ref, ok}, Done)),
    {_, Alone} = handle({command, ref, leave}, start()),
    ?assert(lists:member({reply, ref, ok}, Alone)).

a_member_that_left_is_not_revived_by_old_news_test() ->
    {State, Effects} = handle(gossip(?B, {left, ?C, 1}), cluster([?B, ?C])),
    ?assertEqual([{?C, left}], changes(Effects)),
    ?assertMatch({_, []}, handle(gossip(?B, {alive, ?C, 1}), State)),
    ?assertMatch({_, []}, handle(gossip(?B, {suspect, ?C, 1, ?B}), State)).

a_member_that_will_not_come_back_can_be_forgotten_test() ->
    {State, Effects} = handle({command, ref, {forget, ?C}}, cluster([?B, ?C])),
    ?assertEqual([{?C, left}], changes(Effects)),
    ?assert(lists:member({reply, ref, ok}, Effects)),
    ?assertMatch({_, [{reply, ref, {error, unknown_member}}]},
                 handle({command, ref, {forget, ?C}}, State)),
    ?assertMatch({_, [{reply, ref, {error, self}}]}, handle({command, ref, {forget, ?A}}, State)).

the_dead_are_forgotten_after_a_time_test() ->
    {State0, _} = handle(gossip(?B, {dead, ?C, 1}), cluster([?B, ?C])),
    {_, Effects} = handle({timer, sync}, 86400001, State0),
    ?assertEqual([{?C, forgotten}], changes(Effects)),
    ?assertEqual([{{failed, ?C}, delete}], views(Effects)).

%%% Bounds and bad input

a_full_table_is_told_once_test() ->
    {State0, _} = weft_swim_core:init(?A, #{members_max => 2}),
    State1 = member(?B, State0),
    {State, Effects} = handle(gossip(?B, {alive, ?C, 1}), State1),
    ?assertEqual([{notice, {warning, {members_full, ?C}}}], Effects),
    ?assertMatch({_, []}, handle(gossip(?B, {alive, ?D, 1}), State)).

messages_of_an_unknown_version_are_ignored_and_unknown_commands_crash_test() ->
    State = cluster([?B]),
    ?assertEqual({State, []}, handle({message, ?B, {2, anything}}, State)),
    ?assertError(function_clause, handle({command, ref, levae}, State)).

options_are_checked_test() ->
    Error = fun(Options) ->
                {error, Text} = weft_swim_options:check(Options),
                lists:flatten(Text)
            end,
    ?assertEqual(ok, weft_swim_options:check(#{})),
    ?assertEqual("gossip_nodes is 0: write an integer from 1 to 100", Error(#{gossip_nodes => 0})),
    ?assertMatch("probe_timeout_ms (500) must be less than probe_interval_ms (300)" ++ _,
                 Error(#{probe_interval_ms => 300})),
    ?assertMatch("lifeguard has no part budy" ++ _, Error(#{lifeguard => [budy]})),
    ?assertMatch("lifeguard is true" ++ _, Error(#{lifeguard => true})).

%%% A property

%% Whatever it hears: a node is a member of its own table, its incarnation only grows, and each
%% suspect has a timer that counts.
it_stays_sound_whatever_it_hears_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_sound(), [{numtests, 500}, {to_file, user}]))}.

prop_sound() ->
    ?FORALL(Events, list(event()),
            begin
                {State, Timers, IsSound} = lists:foldl(fun step/2, {cluster([?B, ?C]), [], true},
                                                       Events),
                IsSound andalso lists:all(fun(Node) -> has_timer(Node, Timers, State) end,
                                          [?B, ?C, ?D])
            end).

step(Event, {State0, Timers, IsSound}) ->
    {State, Effects} = handle(Event, State0),
    {Before, alive} = weft_swim_core:status(?A, State0),
    {After, Status} = weft_swim_core:status(?A, State),
    {State, [T || {_, T} <- timers(Effects)] ++ Timers,
     IsSound andalso Status =:= alive andalso After >= Before
         andalso not lists:member(?A, weft_swim_core:living(State))
         andalso lists:usort(weft_swim_core:living(State)) =:= weft_swim_core:living(State)}.

%% Long after, one of its timers makes it dead.
has_timer(Node, Timers, State) ->
    case weft_swim_core:status(Node, State) of
        {_, suspect} ->
            lists:any(fun(Timer) ->
                          {Plain, Effects} = handle({timer, Timer}, 1000000, State),
                          %% A late timer gives it its time again.
                          weft_swim_core:status(Node, Plain) =:= weft_swim_core:status(Node, State)
                              andalso lists:keymember(Timer, 2, timers(Effects))
                      end, [T || {suspicion, N, _} = T <- Timers, N =:= Node]);
        _ -> true
    end.

event() ->
    Node = oneof([?A, ?B, ?C, ?D]),
    Update = oneof([{alive, Node, integer(0, 5)}, {dead, Node, integer(0, 5)},
                    {left, Node, integer(0, 5)}, {suspect, Node, integer(0, 5), Node}]),
    Sender = oneof([?B, ?C, ?D]),
    oneof([?LET({From, News}, {Sender, list(Update)}, {message, From, {1, gossip, News}}),
           ?LET({From, N}, {Sender, integer(1, 5)}, {message, From, {1, {ping, N}, []}}),
           ?LET({From, N}, {Sender, integer(1, 5)}, {message, From, {1, {ack, N}, []}}),
           ?LET({From, N, To}, {Sender, integer(1, 5), Node},
                {message, From, {1, {ping_req, N, To}, []}}),
           ?LET(From, Sender, {message, From, {1, {digest, 1, {1, 1}}, []}}),
           ?LET(N, Sender, {neighbour_up, N}), ?LET(N, Sender, {neighbour_down, N, timeout}),
           {timer, gossip}, {timer, sync}, ?LET(N, integer(0, 3), {timer, {round, N}})]).

%%% Parts

start() ->
    {State, _} = weft_swim_core:init(?A, #{incarnation => 1}),
    State.

cluster(Nodes) -> cluster(Nodes, #{}).

%% A member of a quiet cluster with links to all.
cluster(Nodes, Options) ->
    {State, _} = weft_swim_core:init(?A, Options#{incarnation => 1}),
    Linked = lists:foldl(fun(Node, S) -> element(1, handle({neighbour_up, Node}, S)) end,
                         State, Nodes),
    %% Known from one table, so that there is no news on its way.
    {Told, _} = handle(from(?B, {push, [{Node, 1, alive} || Node <- Nodes]}), Linked),
    {Quiet, []} = handle({timer, gossip}, Told),
    Quiet.

member(Node, State) ->
    element(1, handle(from(Node, {push, [{Node, 1, alive}]}), State)).

%% Rounds with answers until it is the turn of Node, whose ping stays without one.
probed(Node, State0) ->
    case next_round(State0) of
        {Node, Sequence, State} -> {Sequence, State};
        {Other, Sequence, State} ->
            probed(Node, element(1, handle(from(Other, {ack, Sequence}), State)))
    end.

next_round(State) ->
    {Target, Sequence, Next, _News} = next_ping(State),
    {Target, Sequence, Next}.

next_ping(State0) ->
    {State, Effects} = handle({timer, {round, token(State0)}}, State0),
    [{Target, {ping, Sequence}, News}] = [Ping || {_, {ping, _}, _} = Ping <- sent(Effects)],
    {Target, Sequence, State, News}.

%% The token of the round under way: the one whose timer does something.
token(State) ->
    hd([Token || Token <- lists:seq(0, 100),
                 element(2, handle({timer, {round, Token}}, State)) =/= []]).

thirds(List) ->
    {One, Rest} = lists:split(length(List) div 3, List),
    {Two, Three} = lists:split(length(List) div 3, Rest),
    [One, Two, Three].

handle(Event, State) -> handle(Event, 0, State).

handle(Event, NowMs, State) -> weft_swim_core:handle(Event, NowMs, State).

from(Node, What) -> {message, Node, {1, What, []}}.

gossip(From, Update) -> {message, From, {1, gossip, [Update]}}.

sent(Effects) -> [{To, What, News} || {send, To, {1, What, News}} <- Effects].

timers(Effects) -> [{Ms, Timer} || {after_ms, Ms, Timer} <- Effects].

views(Effects) -> [{Key, Value} || {view, Key, Value} <- Effects].

changes(Effects) -> [{Node, Change} || {notice, {member, Node, Change}} <- Effects].
