%% SPDX-License-Identifier: Apache-2.0
%% @doc The ring in a small world (`weft_ring_world').
%%
%% At every step no partition has two nodes that take themselves for its owner, and who does has its
%% data. In the end, when all links are up, all nodes have the same ring, each partition has an
%% owner, and it is the one that the plan wants.
-module(weft_ring_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(weft_ring_world, [world/1, started/2, nodes_of/1, cut/2, heal/1, crash/2, restart/2,
                          forget/2, event/3, command/3, reply/3, deliver/2, deliver_all/1,
                          handoff/2, done/2, look/2, ring/2, mine/2, waves/2, rounds/2, quiet/1,
                          quiet/2, handed/2, joined/2, joined_at_once/2, full/1, full/2, commit/3,
                          checked/1, wrong_in_the_end/2]).

-define(SYNC, {timer, sync}).

%% --- rules ------------------------------------------------------------------------------------

merging_is_commutative_associative_and_idempotent_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_merge(), [{numtests, 100}, quiet]))}.

an_old_ring_brings_nobody_back_and_what_is_new_holds_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_forget(), [{numtests, 200}, quiet]))}.

a_plan_is_shown_before_it_is_committed_test() ->
    World0 = joined([a, b], world([a, b])),
    {ok, #{moves := Moves, before := Before, 'after' := After, token := Token}} =
        reply(plan, a, World1 = command(a, {stage, b, join}, World0)),
    ?assertEqual(#{{a, b} => 8}, Moves),
    ?assertEqual({#{a => 16}, #{a => 8, b => 8}}, {Before, After}),
    ?assertEqual({error, changed}, reply({commit, Token + 1}, a, World1)),
    ?assertEqual({error, nothing_staged}, reply({commit, Token}, b, World1)),
    World = quiet(command(a, {commit, Token}, World1)),
    ?assertEqual([8, 8], [length(mine(Node, World)) || Node <- [a, b]]).

a_plan_that_was_overtaken_is_not_committed_test() ->
    World0 = command(a, {stage, b, join}, joined([a, b, c], world([a, b, c]))),
    {ok, #{token := Token}} = reply(plan, a, World0),
    World = deliver_all(commit(c, [{c, join}], World0)),
    ?assertEqual({error, changed}, reply({commit, Token}, a, World)).

the_last_member_can_not_leave_test() ->
    World = command(a, {stage, a, leave}, joined([a], world([a]))),
    ?assertEqual({error, no_members}, reply(plan, a, World)).

what_can_not_be_staged_is_said_test() ->
    World = joined([a, b], world([a, b])),
    ?assertEqual({error, {b, joining}}, reply({stage, b, leave}, a, World)),
    ?assertEqual({error, {z, none}}, reply({stage, z, remove}, a, World)),
    ?assertEqual({error, has_ring}, reply(create, b, World)).

what_is_no_command_is_said_test() ->
    World = joined([a, b], world([a, b])),
    ?assertEqual({error, unknown_command}, reply({later, 1}, a, World)).

two_handoffs_at_a_time_test() ->
    World = commit(a, [{b, join}], joined([a, b], world([a, b]))),
    ?assertEqual(2, length(map_get(running, World))).

a_handoff_that_ends_after_the_plan_has_changed_gives_nothing_away_test() ->
    World0 = commit(a, [{c, join}], rounds(1, command(c, {join, a}, started(c, full([a, b]))))),
    [{From, {P, _, _} = Transfer} | _] = map_get(running, World0),
    World = command(From, {handoff, done, Transfer}, commit(From, [{c, leave}], World0)),
    ?assert(lists:member(P, mine(From, World))).

%% Here c has planned for d, and does not know that it leaves; its plan is the later one.
a_node_that_leaves_by_another_commit_is_given_nothing_test() ->
    World0 = rounds(1, command(e, {join, a}, started(e, full([a, b, c, d],
                                                      #{settle => true})))),
    World1 = quiet(commit(a, [{d, leave}], cut([{a, c}, {b, c}, {c, d}, {c, e}], World0))),
    World2 = deliver_all(heal(commit(c, [{e, join}], World1))),
    ?assertEqual({leaving, []}, {weft_ring_table:member(d, ring(c, World2)),
                                 [T || {_, {_, _, d}} = T <- map_get(running, World2)]}),
    World = quiet(World2),
    ?assertEqual({gone, []}, {weft_ring_table:member(d, ring(a, World)),
                              wrong_in_the_end([a, b, c, e], World)}).

%% It had everything of it, and its owner had not given it away yet.
a_node_leaves_when_nothing_may_be_given_to_it_any_more_test() ->
    World0 = full([a, b], #{settle => true}),
    World1 = commit(a, [{c, join}], rounds(1, command(c, {join, a}, started(c, World0)))),
    World2 = handoff(0, deliver_all(World1)),
    [{From, {P, Baton, c} = Transfer}] = map_get(copied, World2),
    Asked = deliver_all(command(c, {promised, Transfer}, World2)),
    ?assertEqual({Baton, From}, weft_ring_table:holder(P, ring(From, Asked))),
    %% The owner ends before it hears of that, and when it is back there is another plan.
    World3 = deliver_all(commit(hd([a, b] -- [From]), [{c, leave}], crash(From, World2))),
    World4 = look(c, rounds(2, World3)),
    ?assertEqual([{c, Transfer}], map_get(whole, World4)),
    ?assertEqual({leaving, []}, {weft_ring_table:member(c, ring(c, World4)), mine(c, World4)}),
    World = quiet(restart(From, World4)),
    ?assertEqual({gone, []}, {weft_ring_table:member(c, ring(a, World)), map_get(whole, World)}),
    ?assertMatch({{Later, From}, true} when Later > Baton,
                 {weft_ring_table:holder(P, ring(a, World)), lists:member(P, mine(From, World))}),
    ?assertEqual([], wrong_in_the_end([a, b], World)).

%% What waits there for other owners would be lost with it.
a_node_leaves_when_nothing_waits_there_test() ->
    World0 = full([a, b]),
    {Core0, _} = weft_ring_core:init(b, #{ring => ring(b, World0), settle => true}),
    {Core, _} = weft_ring_core:handle({neighbour_up, a}, 0, Core0),
    World1 = quiet(commit(a, [{b, leave}],
                          World0#{cores := (map_get(cores, World0))#{b := Core}})),
    ?assertEqual({[], leaving}, {mine(b, World1), weft_ring_table:member(b, ring(a, World1))}),
    ?assertEqual(1, length([b || leave <- map_get(warnings, World1)])),
    World = quiet(command(b, {leave, ready}, World1)),
    ?assertEqual(gone, weft_ring_table:member(b, ring(a, World))).

%% Each node looks at its ring every few seconds, and not once for each other member.
a_look_is_cheap_with_many_members_test() ->
    [Few, Many] = [reductions_of_a_look(Count) || Count <- [4, 64]],
    ?assertEqual({Few, Many, true}, {Few, Many, Many < 6 * Few}).

reductions_of_a_look(Count) ->
    Members = [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, Count)],
    Ring = lists:foldl(fun(Node, Ring0) ->
                           weft_ring_table:set_member(Node, member, {{location, here}, {2, a}},
                                                      Ring0)
                       end, weft_ring_table:create({n1, 1}, here, 64, 3), Members),
    Owners = lists:duplicate(64, n1),
    Planned = weft_ring_table:set_plan({3, a}, weft_ring_table:members([member], Ring), Owners,
                                       Ring),
    {Core, _} = weft_ring_core:init(n1, #{ring => Planned}),
    {reductions, Before} = process_info(self(), reductions),
    {_, [{after_ms, _, sync}]} = weft_ring_core:handle(?SYNC, 0, Core),
    {reductions, After} = process_info(self(), reductions),
    After - Before.

rings_created_apart_do_not_merge_test() ->
    World0 = full([a, b]),
    World = rounds(3, command(b, create, restart(b, forget(b, crash(b, World0))))),
    ?assertMatch([{other_ring, _, _} | _], map_get(warnings, World)),
    ?assertEqual([8, 16], [length(mine(Node, World)) || Node <- [a, b]]).

%% Of a name that nobody has, for example. Who asks whom he has asked before hears no more of it.
a_join_that_nobody_answers_is_said_once_and_then_seldom_test() ->
    Said = fun(World) -> [Via || {unanswered, Via} <- map_get(warnings, World)] end,
    Asked = command(a, {join, typo}, started(a, world([]))),
    ?assertEqual([], Said(rounds(1, Asked))),
    World0 = command(a, {join, typo}, rounds(2, Asked)),
    ?assertEqual([typo], Said(World0)),
    ?assertEqual([typo], Said(rounds(100, World0))),
    ?assertEqual([typo, typo], Said(rounds(118, World0))),
    Other = rounds(2, command(a, {join, other}, World0)),
    ?assertEqual([other, typo], Said(Other)),
    Joined = command(a, {join, b}, command(b, create, started(b, Other))),
    ?assertEqual([other, typo], Said(rounds(200, Joined))).

a_removed_node_gives_way_when_it_comes_back_test() ->
    World0 = full([a, b, c]),
    World1 = quiet(commit(a, [{b, remove}], crash(b, World0))),
    ?assertEqual(16, length(mine(a, World1)) + length(mine(c, World1))),
    World = quiet(restart(b, World1)),
    ?assertEqual([], mine(b, World)),
    ?assertEqual([], wrong_in_the_end([a, c], World)).

%% --- nodes that are gone ----------------------------------------------------------------------

who_left_is_forgotten_and_may_join_again_test() ->
    World0 = quiet(commit(a, [{d, leave}], full([a, b, c, d], #{gone_max => 0}))),
    ?assertEqual([none, none, none, none],
                 [weft_ring_table:member(d, ring(Node, World0)) || Node <- [a, b, c, d]]),
    ?assertEqual([], wrong_in_the_end([a, b, c], World0)),
    World = quiet(commit(b, [{d, join}], rounds(2, command(d, {join, a}, World0)))),
    ?assertEqual([], wrong_in_the_end([a, b, c, d], World)).

%% However many come and go: each is another node.
only_so_many_are_remembered_test() ->
    Nodes = [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(10, 29)],
    World = lists:foldl(fun(Node, W0) ->
                            W = rounds(1, command(Node, {join, a}, started(Node, W0))),
                            rounds(3, handed(40, commit(a, [{Node, remove}], W)))
                        end, full([a, b], #{gone_max => 4}), Nodes),
    Gone = [Node || {Node, _} <- weft_ring_table:members([gone], ring(a, World))],
    ?assertEqual({true, true}, {length(Gone) =< 4, lists:member(n29, Gone)}),
    ?assertEqual([], wrong_in_the_end([a, b], quiet(World))).

%% They have each other's word that they are members, and what all others have forgotten.
an_old_ring_brings_nobody_back_test() ->
    World0 = crash(c, crash(d, full([a, b, c, d], #{gone_max => 0}))),
    World1 = quiet(commit(a, [{c, remove}, {d, remove}], World0)),
    ?assertEqual([], weft_ring_table:members([gone], ring(b, World1))),
    World = quiet(restart(c, restart(d, World1))),
    ?assertEqual([], wrong_in_the_end([a, b], World)),
    [?assertEqual({none, none, []}, {weft_ring_table:member(c, ring(Node, World)),
                                     weft_ring_table:member(d, ring(Node, World)), mine(c, World)})
     || Node <- [a, b, c, d]].

%% It was not there when the other one went, and may have something that nobody else has.
while_a_member_is_away_nobody_is_forgotten_test() ->
    World0 = crash(c, crash(b, full([a, b, c], #{gone_max => 0}))),
    World1 = quiet(commit(a, [{c, remove}], World0)),
    ?assertEqual(gone, weft_ring_table:member(c, ring(a, World1))),
    World = quiet(restart(b, World1)),
    ?assertEqual([none, none], [weft_ring_table:member(c, ring(Node, World)) || Node <- [a, b]]).

%% Here b has committed something in an earlier version than that in which the last one has gone.
who_has_another_ring_is_waited_for_test() ->
    World0 = lists:foldl(fun(Node, W) -> rounds(1, command(Node, {join, a}, started(Node, W))) end,
                         full([a, b], #{gone_max => 0}), [c, d, e]),
    World1 = commit(b, [{c, join}], cut([{b, Node} || Node <- [a, c, d, e]], World0)),
    World2 = deliver_all(commit(a, [{e, remove}], commit(a, [{d, remove}], World1))),
    World = quiet(event(a, ?SYNC, heal(World2))),
    ?assertEqual([none, none], [weft_ring_table:member(Node, ring(a, World)) || Node <- [d, e]]),
    ?assertEqual([], wrong_in_the_end([a, b, c], World)).

both_of_two_joins_on_two_sides_of_a_cut_hold_test() ->
    World0 = joined([a, b, c, d], world([a, b, c, d])),
    World1 = quiet(commit(a, [{b, join}], World0)),
    World2 = cut([{a, b}, {a, d}, {c, b}, {c, d}], World1),
    World3 = commit(b, [{d, join}], commit(a, [{c, join}], World2)),
    World = quiet(heal(World3)),
    ?assertEqual([], wrong_in_the_end([a, b, c, d], World)).

%% Pushes alone reach most nodes in a number of rounds that grows as the logarithm, and each node
%% pushes a piece of news once, to a bounded number of others.
news_spreads_in_logarithmic_time_test_() ->
    {timeout, 60,
     fun() ->
         Nodes = [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(100, 227)],
         [First, Second | _] = Nodes,
         World0 = joined_at_once(Nodes, world(Nodes)),
         World1 = (hd_commit(First, Second, World0))#{sent := 0},
         World2 = waves(2 * 7, World1),
         ?assert(knowing(Nodes, World2) >= 0.85 * length(Nodes)),
         ?assert(map_get(sent, World2) =< 5 * 2 * length(Nodes)),
         World3 = rounds(7, World2),
         ?assertEqual(length(Nodes), knowing(Nodes, World3))
     end}.

hd_commit(Node, Joiner, World) ->
    {ok, #{token := Token}} = reply(plan, Node, W = command(Node, {stage, Joiner, join}, World)),
    command(Node, {commit, Token}, W).

knowing(Nodes, World) ->
    Rings = [ring(Node, World) || Node <- Nodes],
    {_, Newest} = lists:max([{lists:sort(maps:to_list(weft_ring_table:registers(R))), R}
                             || R <- Rings]),
    Plan = weft_ring_table:planned_members(Newest),
    length([R || R <- Rings, weft_ring_table:planned_members(R) =:= Plan]).

%% --- any schedule -----------------------------------------------------------------------------

any_schedule_test_() ->
    {timeout, 240, ?_assert(proper:quickcheck(prop_schedule(), [{numtests, count()}, quiet]))}.

count() ->
    case os:getenv("FULL") of false -> 150; _ -> 5000 end.

prop_schedule() ->
    ?FORALL({GoneMax, Steps},
            {oneof([0, 2, 32]), ?SIZED(Size, resize(3 * Size, list(step())))},
            begin
                Wrong = wrong(GoneMax, Steps),
                ?WHENFAIL(io:format("~p ~p~n~p~n", [GoneMax, Steps, Wrong]), Wrong =:= [])
            end).

%% It has nothing on its disk, so that nobody starts it by what is there.
who_lost_its_disk_and_crashed_before_it_had_asked_anybody_is_seen_to_test() ->
    ?assertEqual([], wrong(0, [{commit, n1, n2, leave}, {split, 3}, rest, {forget, n1, n3},
                               {crash, n1}])).

wrong(GoneMax, Steps) ->
    try
        World = lists:foldl(fun(Step, W) -> checked(perform(Step, W)) end,
                            full(first_nodes(), #{settle => true, gone_max => GoneMax}), Steps),
        End = seen_to(quiet(lists:foldl(fun weft_ring_world:restart/2, heal(World),
                                        nodes_of(World)))),
        Members = [N || {N, _} <- weft_ring_table:members([member], ring(operated(End), End))],
        Gone = weft_ring_table:members([gone], ring(hd(Members), End)),
        wrong_in_the_end(Members, End) ++ [{remembered, Gone} || length(Gone) > GoneMax]
    catch
        error:Reason:Stack -> [{Reason, Stack}]
    end.

%% Each node of the ring is started, also one that has lost its disk and has then crashed. Who has
%% asked a node that has no ring asks another one. Who has forgotten the ring is removed; others may
%% have left by then, so another node joins.
seen_to(World) ->
    On = operated(World),
    Nodes = [Node || {Node, _} <- weft_ring_table:members([joining, member, leaving],
                                                          ring(On, World))],
    World0 = lists:foldl(fun weft_ring_world:restart/2, World, Nodes),
    Joining = [Node || Node <- Nodes, ring(Node, World0) =:= none],
    #{forgotten := Forgotten} = World1 =
        rounds(3, lists:foldl(fun(Node, W) -> command(Node, {join, On}, W) end,
                              started(n0, World0), [n0 | Joining])),
    quiet(commit(On, [{n0, join} | [{Node, remove} || {Node, true} <- maps:to_list(Forgotten)]],
                 World1)).

%% On which node an operator works: one of those that have a ring, and have not forgotten it.
operated(#{kept := Kept, forgotten := Forgotten}) ->
    {_, Node} = lists:min([{status(weft_ring_table:member(Node, Ring)), Node}
                           || {Node, Ring} <- maps:to_list(Kept),
                              not maps:get(Node, Forgotten, false)]),
    Node.

status(member) -> 1;
status(leaving) -> 2;
status(_) -> 3.

first_nodes() -> [n1, n2, n3].
all_nodes() -> [n1, n2, n3, n4, n5, n6].

step() ->
    frequency([{20, {deliver, range(1, 50)}}, {6, {handoff, range(1, 20)}},
               {6, {done, range(1, 20)}}, {5, {look, a_node()}}, {5, {sync, a_node()}},
               {2, {cut, a_node(), a_node()}}, {2, {split, range(1, 63)}}, {2, heal}, {1, rest},
               {3, {crash, a_node()}}, {3, {restart, a_node()}}, {3, {join, a_node(), a_node()}},
               {1, {forget, a_node(), a_node()}},
               {6, {commit, a_node(), a_node(), oneof([join, leave])}}]).

a_node() -> oneof(all_nodes()).

perform({deliver, Count}, World) -> deliver(Count, World);
perform({handoff, Nth}, World) -> handoff(Nth, World);
perform({done, Nth}, World) -> done(Nth, World);
perform({look, Node}, World) -> look(Node, World);
perform({sync, Node}, World) -> event(Node, ?SYNC, World);
perform({cut, A, B}, World) -> cut([{A, B}], World);
perform({split, Bits}, World) ->
    {In, Out} = lists:partition(fun({I, _}) -> Bits band (1 bsl I) =/= 0 end,
                                lists:zip(lists:seq(0, 5), all_nodes())),
    cut([{A, B} || {_, A} <- In, {_, B} <- Out], World);
perform(heal, World) -> heal(World);
perform(rest, World) -> checked(quiet(3, World));
perform({crash, Node}, World) -> crash(Node, World);
perform({restart, Node}, World) -> restart(Node, World);
perform({join, Node, Via}, World) -> asked(Node, Via, started(Node, World));
perform({forget, Node, Via}, #{kept := Kept, forgotten := Forgotten} = World) ->
    case [N || {N, _} <- maps:to_list(Kept), N =/= Node, not maps:get(N, Forgotten, false)] of
        [] -> World;
        _ -> asked(Node, Via, restart(Node, forget(Node, crash(Node, World))))
    end;
perform({commit, On, Node, Change}, #{replies := Replies} = World) ->
    Committed = commit(On, [{Node, Change}], World),
    Committed#{replies := Replies}.

%% Nobody notices that a node has forgotten the ring that asks one which has not heard what it owns.
asked(Node, Via, #{kept := Kept} = World) ->
    Known = maps:get(Via, Kept, none),
    IsNews = [P || Known =/= none, {_, Ring} <- maps:to_list(Kept),
                   P <- weft_ring_table:owned(Node, Ring),
                   weft_ring_table:holder(P, Ring) > weft_ring_table:holder(P, Known)],
    case ring(Node, World) of
        none when IsNews =/= [] -> World;
        _ -> command(Node, {join, Via}, World)
    end.

%% --- merging ----------------------------------------------------------------------------------

prop_merge() ->
    ?FORALL({StepsA, StepsB, StepsC}, {changes(), changes(), changes()},
            begin
                Base = weft_ring_table:create({n1, 1}, here, 8, 3),
                [A, B, C] = [changed(Author, Steps, Base)
                             || {Author, Steps} <- [{n1, StepsA}, {n2, StepsB}, {n3, StepsC}]],
                merged(A, B) =:= merged(B, A)
                    andalso merged(merged(A, B), C) =:= merged(A, merged(B, C))
                    andalso merged(A, merged(A, B)) =:= merged(A, B)
                    andalso weft_ring_table:with(weft_ring_table:difference(A, B), B)
                                =:= merged(A, B)
            end).

%% All that are in the ring have it when some are forgotten, and one changes it at that time. There
%% is a ring of before that, too.
prop_forget() ->
    ?FORALL({Before, Since, Later, Keep}, {changes(), changes(), changes(), range(0, 2)},
            begin
                Old = changed(n1, Before, weft_ring_table:create({n1, 1}, here, 8, 3)),
                Ring = changed(n2, Since, Old),
                Forgot = change({forget, Keep}, none, Ring),
                New = changed(n3, Later, Ring),
                Both = merged(Forgot, New),
                merged(Forgot, Old) =:= Forgot
                    andalso merged(Forgot, Ring) =:= Forgot
                    andalso are_in(weft_ring_table:difference(New, Ring), Both, New)
                    andalso is_same_but_for_the_gone(Both, New)
            end).

are_in(Changes, Both, New) ->
    lists:all(fun({{member, Node}, _}) ->
                      IsGone = weft_ring_table:is_out(Node, New),
                      weft_ring_table:is_out(Node, Both) =:= IsGone;
                 ({horizon, _}) ->
                      true;
                 ({Key, Value}) ->
                      map_get(Key, weft_ring_table:registers(Both)) =:= Value
              end, maps:to_list(Changes)).

%% What is left of an even older ring may be forgotten, too.
is_same_but_for_the_gone(Both, New) ->
    [Members, Others] = [weft_ring_table:members([joining, member, leaving], R)
                         || R <- [Both, New]],
    Members =:= Others andalso length(weft_ring_table:members([gone], Both))
        =< length(weft_ring_table:members([gone], New)).

changes() ->
    list(oneof([{member, a_node(), oneof([joining, member, leaving, gone])},
                {plan, vector(8, a_node())}, {give, range(0, 7), a_node()},
                {seize, list(range(0, 7))}, {forget, range(0, 2)}])).

changed(Author, Steps, Ring) ->
    lists:foldl(fun(Step, R) -> change(Step, weft_ring_table:version({Author, R}), R) end, Ring,
                Steps).

change({member, Node, Status}, Version, Ring) ->
    weft_ring_table:set_member(Node, Status, {{location, here}, Version}, Ring);
change({plan, Owners}, Version, Ring) ->
    weft_ring_table:set_plan(Version, [], Owners, Ring);
change({give, P, To}, _, Ring) ->
    #{{owner, P} := {Generation, Epoch, _}} = weft_ring_table:registers(Ring),
    weft_ring_table:give(P, {Generation, Epoch}, To, Ring);
change({seize, Ps}, Version, Ring) ->
    weft_ring_table:seize(lists:usort(Ps), Version, Ring);
change({forget, Keep}, _, Ring) ->
    case length(weft_ring_table:members([gone], Ring)) > Keep of
        true -> weft_ring_table:forget(Keep, Ring);
        false -> Ring
    end.

merged(A, B) ->
    {ok, Ring} = weft_ring_table:merge(A, B),
    Ring.
