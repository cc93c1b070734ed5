%% SPDX-License-Identifier: Apache-2.0
%% The order of an upgrade, and the way back.
-module(weft_deploy_upgrade_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% All actions, when those in Fails fail: an action, or one with the kind of its failure.
run(Mode, Items, Fails) -> steps(weft_deploy_upgrade_core:new(Mode, Items), Fails, []).

steps(State, Fails, Actions) ->
    case weft_deploy_upgrade_core:next(State) of
        {done, Outcome} -> {lists:reverse(Actions), Outcome};
        {Action, Going} ->
            Result = case {lists:member(Action, Fails), lists:keyfind(Action, 2, Fails)} of
                         {true, _} -> {error, "no"};
                         {false, {Kind, Action}} -> {Kind, "no"};
                         {false, false} -> ok
                     end,
            steps(weft_deploy_upgrade_core:result(Result, Going), Fails, [Action | Actions])
    end.

one_after_the_other_test() ->
    {Actions, Outcome} = run(define, [{"a", "2"}, {"b", "2"}], []),
    ?assertEqual([{Step, Node} || Node <- ["a", "b"], Step <- [drain, stop, define, start]],
                 Actions),
    ?assertMatch(#{done := ["a", "b"], undone := [], failed := none, bad := [], left := []},
                 Outcome).

one_that_is_not_healthy_takes_those_before_it_along_test() ->
    {Actions, Outcome} = run_once([{"a", "2"}, {"b", "2"}, {"c", "2"}], {start, "b"}),
    ?assertEqual([{stop, "b"}, {undo, "b"}, {return, "b"}, {drain, "a"}, {stop, "a"}, {undo, "a"},
                  {return, "a"}], lists:nthtail(8, Actions)),
    ?assertMatch(#{done := [], undone := ["b", "a"], failed := {"b", "no"}, bad := ["2"],
                   left := ["c"]}, Outcome).

%% Of two that were upgraded before, one to the same.
one_of_which_nothing_is_known_is_looked_at_first_test() ->
    Resumed = fun() ->
                  weft_deploy_upgrade_core:resumed({[{"c", "2"}], [{"b", "2"}, {"a", "1"}]}, [],
                                                   [{"d", "2"}])
              end,
    {Actions, Outcome} = steps(Resumed(), [], []),
    ?assertEqual([{start, "c"}, {drain, "d"}, {stop, "d"}, {define, "d"}, {start, "d"}], Actions),
    ?assertMatch(#{done := ["c", "d"], undone := [], failed := none}, Outcome),
    {Back, NotHealthy} = steps(Resumed(), [{start, "c"}], []),
    ?assertEqual([{start, "c"}, {stop, "c"}, {undo, "c"}, {return, "c"}, {drain, "b"},
                  {stop, "b"}, {undo, "b"}, {return, "b"}], Back),
    ?assertMatch(#{done := [], undone := ["c", "b"], failed := {"c", "no"}, bad := ["2"],
                   left := ["d"]}, NotHealthy).

%% It is away already, so nobody else is stopped before it is there.
one_that_is_down_comes_before_all_others_test() ->
    Resumed = fun() ->
                  weft_deploy_upgrade_core:resumed({[{"b", "2"}], [{"a", "2"}]}, [{"c", "2"}],
                                                   [{"d", "2"}])
              end,
    {Actions, Outcome} = steps(Resumed(), [], []),
    ?assertEqual([{define, "c"}, {start, "c"}, {start, "b"}, {drain, "d"}, {stop, "d"},
                  {define, "d"}, {start, "d"}], Actions),
    ?assertMatch(#{done := ["c", "b", "d"], failed := none, left := []}, Outcome),
    %% If it is not healthy, all follow that have become the same.
    {Back, NotHealthy} = steps(Resumed(), [{start, "c"}], []),
    ?assertEqual([{stop, "c"}, {undo, "c"}, {return, "c"}]
                 ++ [{Step, Node} || Node <- ["b", "a"], Step <- [drain, stop, undo, return]],
                 lists:nthtail(2, Back)),
    ?assertMatch(#{done := [], undone := ["c", "b", "a"], failed := {"c", "no"}, bad := ["2"],
                   left := ["d"]}, NotHealthy),
    %% One that can not be written is told, and nothing else is touched.
    {[{define, "c"}], Ended} = steps(Resumed(), [{define, "c"}], []),
    ?assertMatch(#{done := [], undone := [], failed := {"c", "no"}, bad := [],
                   left := ["b", "d"]}, Ended).

one_that_was_killed_was_stopped_and_is_named_test() ->
    Stop = fun(State, How) ->
               {{drain, _}, Draining} = weft_deploy_upgrade_core:next(State),
               {{stop, _}, Stopping} =
                   weft_deploy_upgrade_core:next(weft_deploy_upgrade_core:result(ok, Draining)),
               steps(weft_deploy_upgrade_core:result(How, Stopping), [], [])
           end,
    New = weft_deploy_upgrade_core:new(define, [{"a", "2"}]),
    {Actions, Outcome} = Stop(New, killed),
    ?assertEqual({Actions, Outcome#{killed := []}}, Stop(New, ok)),
    ?assertMatch(#{killed := ["a"]}, Outcome).

nodes_of_another_version_stay_upgraded_test() ->
    {_, Outcome} = run_once([{"a", "1"}, {"b", "2"}], {start, "b"}),
    ?assertMatch(#{done := ["a"], undone := ["b"], bad := ["2"]}, Outcome).

%% The action fails the first time only.
run_once(Items, Fails) -> run_once(weft_deploy_upgrade_core:new(define, Items), Fails, []).

run_once(State, Fails, Actions) ->
    case weft_deploy_upgrade_core:next(State) of
        {done, Outcome} -> {lists:reverse(Actions), Outcome};
        {Fails, Going} ->
            run_once(weft_deploy_upgrade_core:result({error, "no"}, Going), none,
                     [Fails | Actions]);
        {Action, Going} ->
            run_once(weft_deploy_upgrade_core:result(ok, Going), Fails, [Action | Actions])
    end.

one_that_can_not_be_drained_stays_and_ends_it_test() ->
    {Actions, Outcome} = run(define, [{"a", "2"}, {"b", "2"}], [{drain, "a"}]),
    ?assertEqual([{drain, "a"}], Actions),
    ?assertMatch(#{done := [], failed := {"a", "no"}, left := ["a", "b"], bad := []}, Outcome).

%% Its version may be good: nothing goes back, and it is looked at before anything else.
a_host_that_is_lost_blames_nothing_test() ->
    Items = [{"a", "2"}, {"b", "2"}, {"c", "2"}],
    {Actions, Outcome} = run(define, Items, [{lost, {start, "b"}}]),
    ?assertEqual({start, "b"}, lists:last(Actions)),
    ?assertMatch(#{done := ["a"], undone := [], failed := {"b", "no"}, bad := [], left := ["c"],
                   unproven := ["b"]}, Outcome),
    Resumed = weft_deploy_upgrade_core:resumed({[{"b", "2"}], [{"a", "2"}]}, [], [{"c", "2"}]),
    ?assertMatch({[{start, "b"}], #{done := [], undone := [], bad := [], unproven := ["b"]}},
                 steps(Resumed, [{lost, {start, "b"}}], [])).

%% A host that is shut down ends the node first, and answers no more a moment later.
nor_does_one_that_ends_its_nodes_first_test() ->
    {Actions, Outcome} = run(define, [{"a", "2"}, {"b", "2"}, {"c", "2"}],
                             [{start, "b"}, {lost, {undo, "b"}}]),
    ?assertEqual({undo, "b"}, lists:last(Actions)),
    ?assertEqual(#{done => ["a"], undone => [], failed => {"b", "no"}, bad => [],
                   left => ["c"], killed => [], unproven => ["b"]}, Outcome),
    %% One that had become the same before stays as it is, too.
    Resumed = weft_deploy_upgrade_core:resumed({[{"b", "2"}], [{"a", "2"}]}, [], [{"c", "2"}]),
    ?assertMatch({[{start, "b"}, {stop, "b"}],
                  #{done := [], undone := [], bad := [], left := ["c"], unproven := ["b"]}},
                 steps(Resumed, [{start, "b"}, {lost, {stop, "b"}}], [])),
    %% Once the node is what it was it is to blame, whatever host is lost then.
    ?assertMatch({[{start, "b"}, {stop, "b"}, {undo, "b"}, {return, "b"}, {drain, "a"},
                   {stop, "a"}],
                  #{undone := ["b"], failed := {"a", "it is down" ++ _}, bad := ["2"],
                    unproven := []}},
                 steps(Resumed, [{start, "b"}, {lost, {stop, "a"}}], [])).

the_only_way_between_others_is_not_rolled_back_test() ->
    {Actions, Outcome} = way_back([{start, "c"}, {needed, {drain, "b"}}]),
    ?assertEqual({drain, "b"}, lists:last(Actions)),
    ?assertMatch(#{done := [], undone := ["c"], failed := {"b", "it is not" ++ _}, bad := ["2"],
                   left := ["b", "a"]}, Outcome),
    {Forward, Ended} = run(define, [{"a", "2"}], [{needed, {drain, "a"}}]),
    ?assertEqual([{drain, "a"}], Forward),
    ?assertMatch(#{failed := {"a", "no"}, left := ["a"], bad := []}, Ended).

another_one_that_is_not_drained_goes_back_all_the_same_test() ->
    {_, Outcome} = way_back([{start, "c"}, {drain, "b"}]),
    ?assertMatch(#{undone := ["c", "b", "a"], failed := {"c", "no"}, left := []}, Outcome).

%% The first that is looked at was upgraded after the others.
way_back(Fails) ->
    steps(weft_deploy_upgrade_core:resumed({[{"c", "2"}], [{"b", "2"}, {"a", "2"}]}, [], []), Fails,
          []).

a_rollback_that_fails_blames_nothing_test() ->
    {_, Outcome} = run(undo, [{"a", "2"}, {"b", "2"}], [{return, "a"}]),
    ?assertMatch(#{failed := {"a", "no"}, bad := [], left := ["b"]}, Outcome).

one_that_can_not_come_back_is_told_test() ->
    {_, #{failed := {"a", Why}}} = run(define, [{"a", "2"}], [{start, "a"}, {return, "a"}]),
    ?assertMatch({match, _}, re:run(Why, "is down")).

%% What was upgraded before stays, and runs.
while_one_can_not_come_back_no_other_one_is_stopped_test() ->
    {Actions, Outcome} = run(define, [{"a", "2"}, {"b", "2"}, {"c", "2"}],
                             [{start, "b"}, {return, "b"}]),
    ?assertEqual({return, "b"}, lists:last(Actions)),
    ?assertMatch(#{failed := {"b", _}, undone := [], left := ["a", "c"]}, Outcome).

properties_test_() ->
    [{atom_to_list(Name), {timeout, 60, ?_assert(proper:quickcheck(Property,
                                                                   [{numtests, 300}, quiet]))}}
     || {Name, Property} <- [{never_two_at_once, prop_one()},
                             {what_was_touched_is_healthy_or_told, prop_told()}]].

items() ->
    ?LET(Ids, resize(6, list(oneof(["2", "3"]))),
         [{"n" ++ integer_to_list(N), Id} || {N, Id} <- lists:zip(lists:seq(1, length(Ids)), Ids)]).

failures(Items) ->
    list({oneof([drain, stop, define, undo, start, return]),
          oneof(["none" | [Node || {Node, _} <- Items]])}).

%% Whatever fails: while a node is drained or stopped, nothing happens to another one.
prop_one() ->
    ?FORALL({Mode, Items}, {oneof([define, undo]), items()},
            ?FORALL(Fails, failures(Items),
                    begin
                        {Actions, _} = run(Mode, Items, Fails),
                        {_, IsOne} = lists:foldl(fun(Action, Away) -> away(Action, Fails, Away) end,
                                                 {[], true}, Actions),
                        IsOne
                    end)).

away({drain, Node} = Action, Fails, {Away, IsOne}) ->
    {case lists:member(Action, Fails) of true -> Away; false -> [Node | lists:delete(Node, Away)]
     end, IsOne andalso lists:delete(Node, Away) =:= []};
away({stop, Node}, _Fails, {Away, IsOne}) ->
    {[Node | lists:delete(Node, Away)], IsOne andalso lists:delete(Node, Away) =:= []};
away({Step, Node} = Action, Fails, {Away, IsOne}) when Step =:= start; Step =:= return ->
    {case lists:member(Action, Fails) of true -> Away; false -> lists:delete(Node, Away) end,
     IsOne};
away(_Action, _Fails, State) ->
    State.

prop_told() ->
    ?FORALL({Mode, Items}, {oneof([define, undo]), items()},
            ?FORALL(Fails, failures(Items),
                    begin
                        {_, #{done := Done, undone := Undone, failed := Failed, left := Left}} =
                            run(Mode, Items, Fails),
                        Told = [Node || {Node, _} <- [Failed || Failed =/= none]],
                        [Node || {Node, _} <- Items] -- (Done ++ Undone ++ Left ++ Told) =:= []
                    end)).
