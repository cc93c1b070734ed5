%% SPDX-License-Identifier: Apache-2.0
%% @doc One replica of a partition: founding, votes, following, and who is no member.
-module(weft_names_strong_replica_tests).

-include_lib("eunit/include/eunit.hrl").

-define(REPLICA, weft_names_strong_replica).
-define(A, {'a@x', 1}).
-define(B, {'b@x', 1}).
-define(C, {'c@x', 1}).

founding_needs_every_replica_test() ->
    A0 = new(?A),
    {A1, Asked} = ?REPLICA:tick(A0, env(?A, 1000)),
    Ballot = {1, 'a@x', 1},
    ?assertEqual([{'b@x', {found, Ballot}}, {'c@x', {found, Ballot}}], Asked),
    {A2, []} = ?REPLICA:handle(?B, {agreed, founding, Ballot}, A1, env(?A, 1001)),
    ?assertMatch(#{role := founding}, ?REPLICA:info(A2)),
    {A3, Told} = ?REPLICA:handle(?C, {agreed, founding, Ballot}, A2, env(?A, 1002)),
    ?assertMatch(#{role := leading, members := [?A, ?B, ?C]}, ?REPLICA:info(A3)),
    ?assertMatch([{'b@x', {append, Ballot, 1, _, [noop], _}}, {'c@x', {append, _, _, _, _, _}}],
                 Told).

only_the_first_replica_founds_and_only_in_the_first_view_test() ->
    {_, []} = ?REPLICA:tick(new(?B), env(?B, 1000)),
    {_, []} = ?REPLICA:tick(new(?A), (env(?A, 1000))#{founds := false}).

nothing_is_answered_before_a_lease_of_an_earlier_founding_has_ended_test() ->
    #{lease_ms := LeaseMs, margin_ms := MarginMs} = options(),
    {Leader, _} = leading(1000),
    {Asked, Out} = ?REPLICA:request('d@x', {read, 9, [{1, {name, x}}]}, Leader, env(?A, 2000)),
    ?assertEqual([], Out),
    Late = 1000 + LeaseMs + MarginMs,
    {Waiting, Early} = lasting(Asked, {?A, ?B}, 2000, Late - 100),
    ?assertEqual([], Early),
    {_, Answers} = lasting(Waiting, {?A, ?B}, Late, Late + 1000),
    ?assertEqual([{'d@x', {values, 9, [{1, undefined}]}}], Answers).

%% The founder may be gone before it is over.
the_next_leader_waits_for_that_too_test() ->
    #{lease_ms := LeaseMs, margin_ms := MarginMs} = options(),
    {Electing, _} = ?REPLICA:handle(?A, {lead, {1, 'a@x', 1}}, follower(), env(?B, 3000)),
    {Leader, _} = ?REPLICA:handle(?C, {agreed, electing, {2, 'b@x', 1}}, Electing, env(?B, 3000)),
    ?assertMatch(#{role := leading}, ?REPLICA:info(Leader)),
    {Asked, []} = ?REPLICA:request('d@x', {read, 9, [{1, {name, x}}]}, Leader, env(?B, 3000)),
    Late = 3000 + LeaseMs + MarginMs,
    {Waiting, Early} = lasting(Asked, {?B, ?C}, 3000, Late - 100),
    ?assertEqual([], Early),
    {Open, Answers} = lasting(Waiting, {?B, ?C}, Late, Late + 1000),
    ?assertEqual([{'d@x', {values, 9, [{1, undefined}]}}], Answers),
    %% Once is enough.
    ?assert(weft_names_strong_table:is_open(?REPLICA:table(Open))).

names_of_a_node_that_has_restarted_are_free_test() ->
    #{lease_ms := LeaseMs, margin_ms := MarginMs} = options(),
    {Founder, _} = leading(1000),
    OpenMs = 1200 + LeaseMs + MarginMs,
    {Open, []} = lasting(Founder, {?A, ?B}, 1000, OpenMs),
    Write = {write, {1, 0}, 0, 1, [{1, {register, x, p, meta, 0}}]},
    {Asked, _} = ?REPLICA:request('d@x', Write, Open, env(?A, OpenMs)),
    {Leader, [{'d@x', {wrote, _, _, _}}]} = lasting(Asked, {?A, ?B}, OpenMs, OpenMs + 200),
    [?assertEqual(Count, weft_names_strong_table:count(?REPLICA:table(element(1, Ticked))))
     || {Up, Count} <- [{#{}, 1}, {#{'d@x' => 1}, 1}, {#{'d@x' => 2}, 0}],
        #{up := Known} = Env <- [env(?A, OpenMs + 300)],
        Ticked <- [?REPLICA:tick(Leader, Env#{up := maps:merge(Known, Up)})]].

an_owner_that_is_not_heard_of_keeps_its_names_for_a_lease_and_a_margin_test() ->
    #{lease_ms := LeaseMs, margin_ms := MarginMs} = options(),
    {Founder, _} = leading(1000),
    OpenMs = 1200 + LeaseMs + MarginMs,
    {Open, []} = lasting(Founder, {?A, ?B}, 1000, OpenMs),
    Write = {write, {1, 0}, 0, 1, [{1, {register, x, p, meta, 0}}]},
    {Asked, _} = ?REPLICA:request('d@x', Write, Open, env(?A, OpenMs)),
    EndMs = OpenMs + LeaseMs + MarginMs,
    {Held, _} = lasting(Asked, {?A, ?B}, OpenMs, EndMs),
    ?assertEqual(1, weft_names_strong_table:count(?REPLICA:table(Held))),
    {Free, _} = lasting(Held, {?A, ?B}, EndMs + 100, EndMs + 300),
    ?assertEqual(0, weft_names_strong_table:count(?REPLICA:table(Free))).

%% Ticks of a leader and acknowledgements of another replica for a time; what goes to d@x meanwhile.
lasting(Leader, {Self, {Node, _} = Other}, FromMs, ToMs) ->
    lists:foldl(fun(NowMs, {L0, Answers}) ->
                    {L1, Out1} = ?REPLICA:tick(L0, env(Self, NowMs)),
                    Acks = [{ack, Ballot, Round}
                            || {To, {append, Ballot, Round, _, _, _}} <- Out1, To =:= Node],
                    {L2, Out2} = lists:foldl(fun(Ack, {L, Acc}) ->
                                                 {Next, More} = ?REPLICA:handle(Other, Ack, L,
                                                                                env(Self, NowMs)),
                                                 {Next, Acc ++ More}
                                             end, {L1, Out1}, Acks),
                    {L2, Answers ++ [Answer || {'d@x', _} = Answer <- Out2]}
                end, {Leader, []}, lists:seq(FromMs, ToMs, 100)).

%% Another round begins at each tick while the last one is not acknowledged.
requests_are_answered_where_a_round_trip_is_longer_than_a_tick_test() ->
    #{lease_ms := LeaseMs, margin_ms := MarginMs} = options(),
    {Founder, _} = leading(1000),
    OpenMs = 1200 + LeaseMs + MarginMs,
    {Open, []} = lasting(Founder, {?A, ?B}, 1000, OpenMs),
    {_, Answered} =
        lists:foldl(fun(NowMs, {{L0, UnderWay}, Count}) ->
                        {Arrived, Later} = lists:partition(fun({AtMs, _}) -> AtMs =< NowMs end,
                                                           UnderWay),
                        {L1, Out1} = in_turn([fun(L) -> ?REPLICA:handle(?B, Ack, L, env(?A, NowMs))
                                              end || {_, Ack} <- Arrived], L0),
                        {L2, Out2} = in_turn([fun(L) -> read(NowMs, L) end,
                                              fun(L) -> ?REPLICA:tick(L, env(?A, NowMs)) end], L1),
                        Acks = [{NowMs + 250, {ack, Ballot, Round}}
                                || {'b@x', {append, Ballot, Round, _, _, _}} <- Out1 ++ Out2],
                        {{L2, Later ++ Acks},
                         Count + length([Id || {'d@x', {values, 9, Values}} <- Out1 ++ Out2,
                                               {Id, _} <- Values])}
                    end, {{Open, []}, 0}, lists:seq(OpenMs + 100, OpenMs + 3000, 100)),
    ?assert(Answered >= 20, Answered).

read(NowMs, Leader) ->
    ?REPLICA:request('d@x', {read, 9, [{NowMs, {name, x}}]}, Leader, env(?A, NowMs)).

in_turn(Steps, Leader) ->
    lists:foldl(fun(Step, {L0, Before}) ->
                    {L, Out} = Step(L0),
                    {L, Before ++ Out}
                end, {Leader, []}, Steps).

a_follower_that_missed_something_gets_the_table_test() ->
    {_, Told} = leading(1000),
    [Append] = [Msg || {'b@x', Msg} <- Told],
    {B1, [{'a@x', {behind, Ballot, Round} = Behind}]} =
        ?REPLICA:handle(?A, Append, new(?B), env(?B, 1)),
    {Leader, _} = leading(1000),
    {Sent, [{'b@x', Snapshot}]} = ?REPLICA:handle(?B, Behind, Leader, env(?A, 1003)),
    ?assertMatch({snapshot, Ballot, Round, _, _}, Snapshot),
    %% It is on its way: not twice.
    ?assertMatch({_, []}, ?REPLICA:handle(?B, Behind, Sent, env(?A, 1003))),
    {B2, [{'a@x', {ack, Ballot, Round}}]} = ?REPLICA:handle(?A, Snapshot, B1, env(?B, 2)),
    ?assertMatch(#{role := follower, leader := ?A, members := [?A, ?B, ?C]}, ?REPLICA:info(B2)).

a_vote_goes_to_who_has_all_this_replica_has_test() ->
    B = follower(),
    Own = {{1, 'a@x', 1}, 2},
    Ballot = {5, 'c@x', 1},
    ?assertMatch({_, [{'c@x', {agreed, electing, Ballot}}]},
                 ?REPLICA:handle(?C, {elect, Ballot, Own}, B, env(?B, 5000))),
    ?assertMatch({_, []},
                 ?REPLICA:handle(?C, {elect, Ballot, {{0, none, 0}, 9}}, B, env(?B, 5000))),
    %% The promise holds all the same.
    {Promised, []} = ?REPLICA:handle(?C, {elect, Ballot, {{0, none, 0}, 9}}, B, env(?B, 5000)),
    ?assertMatch({_, [{'a@x', {refused, Ballot}}]},
                 ?REPLICA:handle(?A, {elect, {4, 'a@x', 1}, Own}, Promised, env(?B, 5000))).

nobody_who_hears_a_leader_would_elect_another_test() ->
    B = follower(),
    Ask = {ask, {5, 'c@x', 1}, {{9, 'a@x', 1}, 9}},
    ?assertEqual({B, []}, ?REPLICA:handle(?C, Ask, B, env(?B, 10))),
    ?assertMatch({_, [{'c@x', {agreed, asking, {5, 'c@x', 1}}}]},
                 ?REPLICA:handle(?C, Ask, B, env(?B, 60000))),
    Down = ?REPLICA:node_down('a@x', B, env(?B, 10)),
    ?assertMatch({_, [{'c@x', {agreed, asking, _}}]}, ?REPLICA:handle(?C, Ask, Down, env(?B, 10))).

%% It does not know the names any more, but what it acknowledged binds its vote.
a_removed_replica_votes_as_before_test() ->
    {Removed, []} = ?REPLICA:handle(?A, {removed, {1, 'a@x', 1}}, follower(), env(?B, 10)),
    ?assertEqual(none, ?REPLICA:table(Removed)),
    ?assertMatch({_, []}, ?REPLICA:handle(?C, {elect, {5, 'c@x', 1}, {{0, none, 0}, 9}}, Removed,
                                          env(?B, 10))).

a_replica_whose_members_have_restarted_forgets_test() ->
    Anew = (env(?B, 60000))#{latest := #{'a@x' => 2, 'b@x' => 1, 'c@x' => 2}},
    {Forgot, []} = ?REPLICA:tick(follower(), Anew),
    ?assertEqual(none, ?REPLICA:table(Forgot)),
    %% With one of them it asks for votes.
    One = (env(?B, 60000))#{latest := #{'a@x' => 2, 'b@x' => 1, 'c@x' => 1}},
    ?assertMatch({_, [{'a@x', {ask, _, _}}, {'c@x', {ask, _, _}}]},
                 ?REPLICA:tick(follower(), One)).

%% The founder was not restarted, but the other replicas were.
tokens_of_a_later_founding_are_greater_test() ->
    #{lease_ms := LeaseMs, margin_ms := MarginMs, election_ms := ElectionMs} = options(),
    OpenMs = 1200 + LeaseMs + MarginMs,
    Wrote = played([{asked, write(Id, {name, Id}), OpenMs} || Id <- lists:seq(1, 20)],
                   ['a@x', 'b@x', 'c@x'], all_until(OpenMs)),
    Founder = maps:get(?A, Wrote),
    Tokens = [Token || {_, Token} <- weft_names_strong_table:names(?REPLICA:table(Founder))],
    ?assertEqual(20, length(Tokens)),
    Anew = #{'a@x' => 1, 'b@x' => 2, 'c@x' => 2},
    At = fun(NowMs) -> (env(?A, NowMs))#{up := Anew, latest := Anew} end,
    DownMs = OpenMs + 4 * ElectionMs,
    LostMs = DownMs + 2 * ElectionMs,
    {Follower, _} = ?REPLICA:tick(Founder, At(DownMs)),
    {Forgot, _} = ?REPLICA:tick(Follower, At(LostMs)),
    ?assertEqual(none, ?REPLICA:table(Forgot)),
    {Asking, [{'b@x', {found, Ballot}} | _]} = ?REPLICA:tick(Forgot, At(LostMs + 2 * ElectionMs)),
    {Agreed, []} = ?REPLICA:handle({'b@x', 2}, {agreed, founding, Ballot}, Asking,
                                   At(LostMs + 2 * ElectionMs)),
    {_, Told} = ?REPLICA:handle({'c@x', 2}, {agreed, founding, Ballot}, Agreed,
                                At(LostMs + 2 * ElectionMs)),
    [No | _] = [N || {'b@x', {append, _, 1, _, [noop], {_, N}}} <- Told],
    ?assert(No > lists:max(Tokens)).

who_does_not_lead_says_who_does_test() ->
    ?assertMatch({_, [{'d@x', {not_leader, 'a@x'}}]},
                 ?REPLICA:request('d@x', {read, 1, []}, follower(), env(?B, 10))),
    ?assertMatch({_, [{'d@x', {not_leader, none}}]},
                 ?REPLICA:request('d@x', {read, 1, []}, new(?B), env(?B, 10))).

a_leader_without_a_majority_gives_up_test() ->
    {Leader, _} = leading(1000),
    {Asked, []} = ?REPLICA:request('d@x', {read, 9, [{1, {name, x}}]}, Leader, env(?A, 2000)),
    #{election_ms := ElectionMs} = options(),
    {Follower, Told} = ?REPLICA:tick(Asked, env(?A, 1100 + 3 * ElectionMs)),
    ?assertMatch(#{role := follower}, ?REPLICA:info(Follower)),
    ?assertEqual([{'d@x', {not_leader, none}}], Told).

a_dead_member_goes_and_its_next_incarnation_comes_one_at_a_time_test() ->
    {L1, _} = confirmed(leading(1000), 1010),
    Anew = #{'a@x' => 1, 'b@x' => 1, 'c@x' => 2},
    Env = (env(?A, 1020))#{latest := Anew, up := Anew},
    {L2, Out} = ?REPLICA:tick(L1, Env),
    ?assertMatch(#{members := [?A, ?B]}, ?REPLICA:info(L2)),
    ?assertMatch([{members, [?A, ?B]}],
                 [Op || {'b@x', {append, _, _, _, Ops, _}} <- Out, Op <- Ops]),
    %% The next change waits for this one, and for the new one to follow.
    {L3, _} = ?REPLICA:tick(L2, Env),
    ?assertMatch(#{members := [?A, ?B]}, ?REPLICA:info(L3)),
    Ballot = {1, 'a@x', 1},
    {L4, _} = ?REPLICA:handle(?B, {ack, Ballot, 99}, L3, Env),
    {L5, _} = ?REPLICA:handle({'c@x', 2}, {ack, Ballot, 99}, L4, Env),
    {L6, _} = ?REPLICA:tick(L5, Env),
    ?assertMatch(#{members := [?A, ?B, {'c@x', 2}]}, ?REPLICA:info(L6)).

%% The new leader gets what it lacks before it is told to lead, and nothing changes meanwhile. B is
%% not told of each round at once: C, which comes later in the order of members, is.
the_lead_is_handed_over_while_names_are_registered_test() ->
    #{lease_ms := LeaseMs, margin_ms := MarginMs} = options(),
    OpenMs = 1200 + LeaseMs + MarginMs,
    Open = all_until(OpenMs),
    Order = ['b@x', 'a@x', 'c@x'],
    Wrote = played([{asked, write(1, x), OpenMs}], Order, Open),
    Tables = [?REPLICA:table(maps:get(Self, Wrote)) || Self <- [?A, ?B, ?C]],
    ?assertEqual([1, 0, 1], [weft_names_strong_table:count(Table) || Table <- Tables]),
    %% A request comes between the order to lead and the election.
    {A1, Out} = ?REPLICA:tick(maps:get(?A, Wrote), env(?A, OpenMs + 100, Order)),
    ?assert(lists:member({'b@x', {lead, {1, 'a@x', 1}}}, Out)),
    {A2, Asked} = ?REPLICA:request('d@x', write(2, y), A1, env(?A, OpenMs + 101, Order)),
    Moved = delivered([{?A, Msg} || Msg <- Out ++ Asked], OpenMs + 102, Order, Wrote#{?A := A2}),
    ?assertMatch(#{role := leading, ballot := {2, 'b@x', 1}}, ?REPLICA:info(maps:get(?B, Moved))),
    %% It was not carried out, and can be asked of the new leader.
    ?assertEqual(1, weft_names_strong_table:count(?REPLICA:table(maps:get(?B, Moved)))).

%% The order to lead may be lost.
a_leader_that_nobody_follows_goes_on_test() ->
    #{lease_ms := LeaseMs, margin_ms := MarginMs, heartbeat_ms := HeartbeatMs} = options(),
    OpenMs = 1200 + LeaseMs + MarginMs,
    Open = all_until(OpenMs),
    Order = ['b@x', 'a@x', 'c@x'],
    {A1, Out} = ?REPLICA:tick(maps:get(?A, Open), env(?A, OpenMs + 100, Order)),
    Kept = [{?A, Msg} || {_, Told} = Msg <- Out, element(1, Told) =/= lead],
    {A2, []} = ?REPLICA:request('d@x', write(1, x), A1, env(?A, OpenMs + 101, Order)),
    Still = delivered(Kept, OpenMs + 102, Order, Open#{?A := A2}),
    ?assertEqual(0, weft_names_strong_table:count(?REPLICA:table(maps:get(?A, Still)))),
    Later = played([{ticks, OpenMs + 100 + HeartbeatMs}], Order, Still),
    ?assertEqual(1, weft_names_strong_table:count(?REPLICA:table(maps:get(?A, Later)))).

write(Id, Name) -> {write, {1, 0}, 0, 1, [{Id, {register, Name, p, meta, 0}}]}.

%% A leads, and answers.
all_until(OpenMs) ->
    played([{ticks, NowMs} || NowMs <- lists:seq(1000, OpenMs, 100)], ['a@x', 'b@x', 'c@x'],
           maps:from_list([{Self, new(Self)} || Self <- [?A, ?B, ?C]])).

%% All replicas in the order of time; each message arrives before the next step.
played(Steps, Order, Replicas) ->
    lists:foldl(fun({ticks, NowMs}, Before) ->
                        lists:foldl(fun(Self, Acc) ->
                                        tell(fun ?REPLICA:tick/2, Self, NowMs, Order, Acc)
                                    end, Before, [?A, ?B, ?C]);
                   ({asked, Request, NowMs}, Before) ->
                        tell(fun(R, Env) -> ?REPLICA:request('d@x', Request, R, Env) end, ?A,
                             NowMs, Order, Before)
                end, Replicas, Steps).

tell(Fun, Self, NowMs, Order, Replicas) ->
    {Replica, Out} = Fun(maps:get(Self, Replicas), env(Self, NowMs, Order)),
    delivered([{Self, Msg} || Msg <- Out], NowMs, Order, Replicas#{Self := Replica}).

delivered([], _NowMs, _Order, Replicas) ->
    Replicas;
delivered([{_From, {'d@x', _Answer}} | Rest], NowMs, Order, Replicas) ->
    delivered(Rest, NowMs, Order, Replicas);
delivered([{From, {Node, Msg}} | Rest], NowMs, Order, Replicas) ->
    Self = {Node, 1},
    {Replica, Out} = ?REPLICA:handle(From, Msg, maps:get(Self, Replicas), env(Self, NowMs, Order)),
    delivered(Rest ++ [{Self, More} || More <- Out], NowMs, Order, Replicas#{Self := Replica}).

%% --- helpers ----------------------------------------------------------------------------------

new({Node, _} = Self) ->
    ?REPLICA:new(rand:seed_s(exsss, erlang:phash2(Node)), env(Self, 0)).

leading(NowMs) ->
    {A1, _} = ?REPLICA:tick(new(?A), env(?A, NowMs)),
    Agreed = {agreed, founding, {1, 'a@x', 1}},
    {A2, _} = ?REPLICA:handle(?B, Agreed, A1, env(?A, NowMs)),
    ?REPLICA:handle(?C, Agreed, A2, env(?A, NowMs)).

confirmed({Leader, _}, NowMs) ->
    ?REPLICA:handle(?B, {ack, {1, 'a@x', 1}, 1}, Leader, env(?A, NowMs)).

%% B with the table of A's founding.
follower() ->
    Table = weft_names_strong_table:new([?A, ?B, ?C]),
    {B, _} = ?REPLICA:handle(?A, {snapshot, {1, 'a@x', 1}, 1, {{1, 'a@x', 1}, 2}, Table}, new(?B),
                             env(?B, 1)),
    B.

options() -> weft_names_strong_options:complete(#{voters => ['a@x', 'b@x', 'c@x']}).

env(Self, NowMs) ->
    env(Self, NowMs, ['a@x', 'b@x', 'c@x']).

env(Self, NowMs, Replicas) ->
    Incarnations = #{'a@x' => 1, 'b@x' => 1, 'c@x' => 1},
    #{now_ms => NowMs, self => Self, up => Incarnations, latest => Incarnations,
      replicas => Replicas, founds => true, options => options()}.
