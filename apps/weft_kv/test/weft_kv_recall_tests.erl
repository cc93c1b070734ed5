%% SPDX-License-Identifier: Apache-2.0
%% @doc Replicas that forget what they had and are compared with others again, and what reads by
%% `weft_kv_coordinator_core' and lists by `weft_kv_coverage' find meanwhile: each acknowledged
%% write that any replica still has.
-module(weft_kv_recall_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SIZE, 8).

reads_find_what_is_left_anywhere_test_() -> found_by(read).

lists_find_what_is_left_anywhere_test_() -> found_by(list).

found_by(How) ->
    {timeout, 60, ?_assert(proper:quickcheck(finds_what_is_left(How),
                                             [{to_file, user}, {numtests, 3000},
                                              {max_size, 60}]))}.

%% The check itself: who has forgotten counts at once, or after one comparison.
the_same_check_fails_if_who_forgot_counts_test_() ->
    [{atom_to_list(How), fun() -> fails_if_who_forgot_counts(How) end}
     || How <- [read, in_turn, at_once]].

fails_if_who_forgot_counts(How) ->
    At = fun(N) -> {N, N, 1} end,
    Once = [{write, [1, 2]}, {lose, 1}, {How, [1, 2], 1}],
    ?assertEqual([], missed(Once, At(2), fun tag/2)),
    ?assertMatch([_], missed(Once, At(2), fun(_, _) -> ok end)),
    %% Compared with one that has forgotten it, too.
    Twice = [{write, [1, 2, 3]}, {lose, 1}, {lose, 2}, {compare, 1, 2, none}, {How, [1, 2, 3], 1}],
    ?assertEqual([], missed(Twice, At(3), fun tag/2)),
    ?assertMatch([_], missed(Twice, At(3), fun after_one/2)).

%% What the third one had has gone to the first one, when the second one was compared with that
%% already. Then the third one forgets it, before the second one comes to it.
what_goes_from_one_to_the_other_meanwhile_is_not_missed_test_() ->
    [{atom_to_list(How),
      ?_assertEqual([], missed([{write, [1, 2, 3]}, {lose, 2}, {lose, 1}, {compare, 2, 1, none},
                                {compare, 1, 3, Loses}, {compare, 2, 3, none}, {How, [2, 1, 3], 1}],
                               {3, 3, 1}, fun tag/2))}
     || How <- [read, in_turn, at_once], Loses <- [{before_the_end, 3}, {after_the_end, 3}]].

%% Nobody forgets anything meanwhile: so often, and not for ever.
it_counts_again_test() ->
    Steps = [{write, [1, 2, 3]}, {lose, 2}, {compare, 2, 1, none}, {lose, 1}, {compare, 1, 3, none},
             {compare, 2, 3, none}, {compare, 2, 1, none}],
    {Replicas, _, []} = lists:foldl(fun(Step, World) -> step(Step, {3, 3, 1, fun tag/2}, World) end,
                                    {replicas(3), [], []}, Steps),
    ?assertEqual([incomplete, ok, incomplete], [tag(3, Recall) || {_, Recall} <- Replicas]).

%% What is on disk counts, and what is not owned yet does not.
who_owns_what_does_not_count_is_told_test() ->
    [?assertEqual({Is, Recall, InMemory},
                  {weft_kv_recall:is_incomplete(0, ?SIZE, {[3], InMemory}, Recall), Recall,
                   InMemory})
     || {Is, InMemory, Recall} <- [{false, [], weft_kv_recall:all()},
                                   {true, [], weft_kv_recall:none()},
                                   {true, [], weft_kv_recall:promised()},
                                   {false, [], weft_kv_recall:on_disk()},
                                   {true, [3], weft_kv_recall:on_disk()}]].

after_one(N, Recall) ->
    case length([P || {{_, 0, _}, _} = P <- weft_kv_recall:lacking(0, ?SIZE, [N], Recall)]) of
        Lacking when Lacking < N - 1 -> ok;
        _ -> tag(N, Recall)
    end.

finds_what_is_left(How) ->
    ?FORALL({N, W}, ?LET(N, range(2, 4), {N, range(1, N)}),
            ?FORALL({R, Steps}, {range(N - W + 1, N), list(a_step(How, N, W))},
                    equals([], missed(Steps, {N, W, R}, fun tag/2)))).

%% Acknowledged writes that were not found, though a replica had them.
missed(Steps, {N, W, R}, Tag) ->
    {_, _, Missed} = lists:foldl(fun(Step, World) -> step(Step, {N, W, R, Tag}, World) end,
                                 {replicas(N), [], []}, Steps),
    Missed.

replicas(N) -> [{weft_kv_object:new(), weft_kv_recall:none()} || _ <- lists:seq(1, N)].

a_step(How, N, W) ->
    I = range(1, N),
    frequency([{3, {write, ?LET(Order, a_order(N), lists:sublist(Order, W))}},
               {1, {write, ?LET(Order, a_order(N), lists:sublist(Order, W - 1))}},
               {1, {lose, I}},
               {4, {compare, I, I, frequency([{8, none}, {1, {before_the_end, I}},
                                              {1, {after_the_end, I}}])}},
               {4, {case How of read -> read; list -> oneof([in_turn, at_once]) end,
                    a_order(N), range(1, N)}}]).

a_order(N) ->
    ?LET(Keys, vector(N, integer()),
         [I || {_, I} <- lists:sort(lists:zip(Keys, lists:seq(1, N)))]).

%% Writes that know nothing of each other, so that none is replaced. With a copy too few it was not
%% acknowledged, but may be found.
step({write, Some}, {_, W, _, _}, {Replicas, Acked, Missed}) ->
    Value = integer_to_binary(erlang:unique_integer([positive])),
    Object = weft_kv_object:put(#{value => Value, written_ms => 0, expires_ms => never}, #{}, Value,
                                weft_kv_object:new()),
    {lists:foldl(fun(I, Rs) -> merge(I, Object, Rs) end, Replicas, Some),
     [Value || length(Some) =:= W] ++ Acked, Missed};
step({lose, I}, _, {Replicas, Acked, Missed}) ->
    {lose(I, Replicas), Acked, Missed};
step({compare, I, I, _}, _, World) ->
    World;
%% Somebody may forget all before the end of the comparison, or before it is told.
step({compare, I, Other, Loses}, {N, _, _, _}, {Replicas, Acked, Missed}) ->
    {Both, Recall} = lists:nth(I, Replicas),
    {Further, _} = lists:nth(Other, Replicas),
    Pair = {N, 0, {I - 1, Other - 1}},
    Sinces = weft_kv_sinces:before(Pair, ?SIZE, since(Replicas)),
    Ended = loses(before_the_end, Loses, merge(Other, Both, merge(I, Further, Replicas))),
    IsSame = weft_kv_sinces:is_same(Pair, Sinces, since(Ended)),
    Left = loses(after_the_end, Loses, Ended),
    {case [Since || {P, Since} <- weft_kv_recall:lacking(I - 1, ?SIZE, [N], Recall), P =:= Pair] of
         [Since] when IsSame -> told(I, {{N, 0}, Other - 1}, Since, Sinces, Left);
         _ -> Left
     end, Acked, Missed};
step({How, Order, Answers}, Rule, {Replicas, Acked, Missed}) ->
    Left = values(lists:foldl(fun({Object, _}, Sum) -> weft_kv_object:merge(Object, Sum) end,
                              weft_kv_object:new(), Replicas)),
    {Replicas, Acked,
     case found(How, Order, Answers, Rule, Replicas) of
         {ok, Object} -> [V || V <- Acked, lists:member(V, Left)] -- values(Object);
         none -> []
     end ++ Missed}.

found(read, Order, Answers, Rule, Replicas) ->
    read(lists:sublist(Order, Answers), Rule, Replicas);
found(How, Order, Answers, {N, W, R, Tag}, Replicas) ->
    {ok, Options} = weft_kv_bucket:check(#{n => N, r => R, w => W}),
    Needed = case How of in_turn -> Options; at_once -> weft_kv_coverage:meeting(Options) end,
    Some = lists:sublist(Order, Answers),
    Ask = fun({P, _, _}, _IsNeeded) ->
              {Object, Recall} = lists:nth(P + 1, Replicas),
              case lists:member(P + 1, Some) of
                  true -> {ok, {Tag(N, Recall), {[{<<"key">>, Object}], true}}};
                  false -> {error, timeout}
              end
          end,
    Places = [{I - 1, I - 1, primary} || I <- Order],
    case weft_kv_fold:covered(weft_kv_coverage:new(How, Needed, N, Places), Ask) of
        {ok, Coverage} ->
            {[{<<"key">>, Object}], all} = weft_kv_coverage:page(true, Coverage),
            {ok, Object};
        {error, {too_few, _}} -> none
    end.

read(Order, {N, _, R, Tag}, Replicas) ->
    {ok, Options} = weft_kv_bucket:check(#{n => N, r => R}),
    Places = [{P, P, primary} || P <- lists:seq(0, N - 1)],
    {State, _} = weft_kv_coordinator_core:init(read, Places, Options),
    answer([{reply, lists:nth(I, Places), {Tag(N, Recall), Object}}
            || I <- Order, {Object, Recall} <- [lists:nth(I, Replicas)]], State).

answer([], _) -> none;
answer([Reply | Replies], State0) ->
    {State, Effects} = weft_kv_coordinator_core:handle(Reply, State0),
    case [Object || {answer, {ok, Object}} <- Effects] of
        [Object] -> {ok, Object};
        [] -> answer(Replies, State)
    end.

tag(N, Recall) ->
    case weft_kv_recall:counts({N, 0}, true, Recall) of
        true -> ok;
        false -> incomplete
    end.

values(Object) -> weft_kv_object:values(Object).

merge(I, Object, Replicas) ->
    changed(I, fun({Mine, Recall}) -> {weft_kv_object:merge(Object, Mine), Recall} end, Replicas).

lose(I, Replicas) ->
    changed(I, fun(_) -> {weft_kv_object:new(), weft_kv_recall:none()} end, Replicas).

loses(When, {When, I}, Replicas) -> lose(I, Replicas);
loses(_, _, Replicas) -> Replicas.

since(Replicas) ->
    fun(P, {0, '', <<>>}, since) ->
        {_, Recall} = lists:nth(P + 1, Replicas),
        {ok, {since, weft_kv_recall:id(Recall)}}
    end.

told(I, Other, Since, Sinces, Replicas) ->
    changed(I, fun({Object, Recall}) ->
                   case weft_kv_recall:compared(Other, Since, Sinces, Recall) of
                       {ok, New} -> {Object, New};
                       outdated -> {Object, Recall}
                   end
               end, Replicas).

changed(I, Fun, Replicas) ->
    {Before, [Replica | Others]} = lists:split(I - 1, Replicas),
    Before ++ [Fun(Replica) | Others].

%% All replicas of a new ring are like that. And if one of them is away, it may have what the others
%% have forgotten.
all_replicas_together_count_test() ->
    Places = [{P, P, primary} || P <- [0, 1, 2]],
    {ok, Options} = weft_kv_bucket:check(#{}),
    Replies = [{reply, Place, {incomplete, weft_kv_object:new()}} || Place <- Places],
    {State, _} = weft_kv_coordinator_core:init(read, Places, Options),
    ?assertEqual(none, answer(lists:sublist(Replies, 2), State)),
    ?assertEqual({ok, weft_kv_object:new()}, answer(Replies, State)),
    Two = lists:foldl(fun(Reply, S) -> element(1, weft_kv_coordinator_core:handle(Reply, S)) end,
                      State, lists:sublist(Replies, 2)),
    Gone = {reply, {2, 2, primary}, {error, {unknown, killed}}},
    ?assertMatch({_, [{answer, {error, {too_few, #{answered := 0,
                                                   failed := [{2, {unknown, killed}},
                                                              {1, incomplete},
                                                              {0, incomplete}]}}}} | _]},
                 weft_kv_coordinator_core:handle(Gone, Two)).

%% An owner is away, and may have what the others have forgotten. In a new ring it has not, so
%% whoever asks for no owners has an answer if all that are there have said what they have.
all_that_are_there_count_but_not_as_owners_test() ->
    [begin
         {ok, Options} = weft_kv_bucket:check(#{pr => PR}),
         {State, _} = weft_kv_coordinator_core:init(read, Places, Options),
         Answer = answer([{reply, {P, P, Role}, {Tag, weft_kv_object:new()}}
                          || {P, P, Role} <- Places,
                             Tag <- [case Role of primary -> incomplete; fallback -> ok end]],
                         State),
         ?assertEqual({PR, Places, Expected}, {PR, Places, Answer =/= none})
     end || {PR, Expected} <- [{0, true}, {1, false}],
            Places <- [[{0, 0, primary}, {1, 1, primary}, {2, 2, fallback}],
                       [{0, 0, primary}, {1, 1, primary}]]].

%% What it has is heard, and it gets what it lacks.
who_has_forgotten_is_heard_and_repaired_test() ->
    Places = [{P, P, primary} || P <- [0, 1, 2]],
    {ok, Options} = weft_kv_bucket:check(#{}),
    [One, Two] = [weft_kv_object:put(#{value => V, written_ms => 0, expires_ms => never}, #{}, V,
                                     weft_kv_object:new()) || V <- [<<"1">>, <<"2">>]],
    {State, _} = weft_kv_coordinator_core:init(read, Places, Options),
    {_, Effects} = lists:foldl(fun({P, Reply}, {S, Before}) ->
                                   {Next, More} = weft_kv_coordinator_core:handle(
                                                    {reply, {P, P, primary}, Reply}, S),
                                   {Next, Before ++ More}
                               end, {State, []},
                               [{0, {incomplete, One}}, {1, {ok, Two}}, {2, {ok, Two}}]),
    Both = weft_kv_object:merge(One, Two),
    ?assertMatch([{answer, {ok, Both}} | _], Effects),
    ?assertEqual([0, 1, 2], lists:sort([P || {repair, {P, _, _}, Repair} <- Effects,
                                             Repair =:= Both])).

%% --- rules ------------------------------------------------------------------------------------

%% In whatever order, and not before the last of them.
it_counts_when_it_was_compared_with_all_others_test() ->
    ?assert(proper:quickcheck(
              ?FORALL({Partition, Ns, Seed}, {range(0, ?SIZE - 1), [2, 3, 8], integer()},
                      begin
                          Recall = weft_kv_recall:none(),
                          Pairs = weft_kv_recall:lacking(Partition, ?SIZE, Ns, Recall),
                          _ = rand:seed(exsss, Seed),
                          Order = [P || {_, P} <- lists:sort([{rand:uniform(), P} || P <- Pairs])],
                          compared_one_by_one(Order, Partition, Ns, Recall)
                      end), [{to_file, user}, {numtests, 50}])).

compared_one_by_one(Left, Partition, Ns, Recall) ->
    ?assertEqual(lists:sort(Left),
                 lists:sort(weft_kv_recall:lacking(Partition, ?SIZE, Ns, Recall))),
    [?assertEqual([] =:= [Pair || {{ItsN, ItsP, _}, _} = Pair <- Left, ItsN =:= N, ItsP =:= P],
                  weft_kv_recall:counts({N, P}, true, Recall))
     || N <- Ns, Back <- lists:seq(0, N - 1), P <- [(Partition - Back + ?SIZE) rem ?SIZE]],
    case Left of
        [] -> true;
        [{{N, P, {Partition, Other}}, Since} | Further] ->
            {ok, Next} = weft_kv_recall:compared({{N, P}, Other}, Since, #{}, Recall),
            compared_one_by_one(Further, Partition, Ns, Next)
    end.

%% Those of other versions of what it has forgotten do not count.
a_comparison_that_began_before_it_forgot_does_not_count_test() ->
    [{_, Since} | _] = weft_kv_recall:lacking(0, ?SIZE, [2], weft_kv_recall:none()),
    [?assertEqual(outdated, weft_kv_recall:compared({{2, 0}, 1}, Since, #{}, Now))
     || Now <- [weft_kv_recall:none(), weft_kv_recall:all()]].

%% One of an earlier version does not say, and is taken for one that forgets nothing meanwhile.
what_the_others_were_like_is_asked_of_all_of_them_test() ->
    Answers = #{0 => {ok, {since, all}}, 1 => {ok, {error, unknown_command}},
                2 => {error, timeout}},
    Ask = fun(P, {7, '', <<>>}, since) -> map_get(P, Answers) end,
    Sinces = weft_kv_sinces:before({4, 7, {7, 1}}, ?SIZE, Ask),
    ?assertEqual(#{0 => all, 1 => unknown, 2 => away}, Sinces),
    ?assertEqual([true, false],
                 [weft_kv_sinces:is_same({4, 7, {7, 0}}, Sinces,
                                         fun(0, _, since) -> {ok, {since, Since}} end)
                  || Since <- [all, promised]]),
    %% It may have forgotten something, and is as slow to say so as before.
    ?assertNot(weft_kv_sinces:is_same({4, 7, {7, 2}}, Sinces, Ask)).

%% If one of them has forgotten something since, what was compared before it does not count.
comparisons_count_together_while_the_others_stay_as_they_are_test() ->
    Recall = weft_kv_recall:none(),
    Since = weft_kv_recall:id(Recall),
    With = fun({Other, Sinces}, Before) ->
               {ok, Next} = weft_kv_recall:compared({{3, 0}, Other}, Since, Sinces, Before),
               Next
           end,
    [A, B] = [#{1 => all, 2 => all}, #{1 => all, 2 => promised}],
    ?assertEqual([true, false, true],
                 [weft_kv_recall:counts({3, 0}, true, lists:foldl(With, Recall, Steps))
                  || Steps <- [[{1, A}, {2, A}], [{1, A}, {2, B}], [{1, A}, {2, B}, {1, B}]]]).

what_is_on_disk_counts_test() ->
    ?assertEqual([true, false], [weft_kv_recall:counts({3, 0}, IsInMemory, weft_kv_recall:on_disk())
                                 || IsInMemory <- [false, true]]),
    ?assert(weft_kv_recall:counts({3, 0}, true, weft_kv_recall:all())),
    ?assertEqual([], weft_kv_recall:lacking(0, ?SIZE, [3], weft_kv_recall:all())),
    %% There is no other replica from which it could get anything.
    ?assert(weft_kv_recall:counts({1, 0}, true, weft_kv_recall:none())).
