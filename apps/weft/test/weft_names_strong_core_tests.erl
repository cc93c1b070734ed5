%% SPDX-License-Identifier: Apache-2.0
%% @doc What the nodes of a strong scope tell each other of their incarnations: a node whose clock
%% was set back between two starts does not stay in its own shadow. And what a clock that is set
%% forward does to the leases of others.
-module(weft_names_strong_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(CORE, weft_names_strong_core).
-define(A, 'a@x').
-define(B, 'b@x').
-define(C, 'c@x').

who_comes_back_earlier_than_it_was_is_told_test() ->
    A1 = after_hello(?B, 100, started(?A, 10)),
    {A2, _} = ?CORE:handle({neighbour_down, ?B, killed}, 1, A1),
    {_, Effects} = ?CORE:handle({message, ?B, hello(50)}, 2, A2),
    ?assertEqual([{send, ?B, {1, {lived, 100}}}], sent(lived, Effects)).

who_comes_back_later_is_not_told_test() ->
    A1 = after_hello(?B, 100, started(?A, 10)),
    {A2, _} = ?CORE:handle({neighbour_down, ?B, killed}, 1, A1),
    {_, Effects} = ?CORE:handle({message, ?B, hello(101)}, 2, A2),
    ?assertEqual([], sent(lived, Effects)).

who_is_told_takes_a_later_incarnation_and_says_so_test() ->
    {Incarnation, B, Effects} = told(100, after_hello(?C, 7, after_hello(?A, 10, started(?B, 50)))),
    ?assert(Incarnation > 100),
    ?assertEqual([?A, ?C], lists:sort([To || {send, To, _} <- sent(hello, Effects)])),
    ?assertMatch(#{incarnation := Incarnation}, ?CORE:info(B)).

%% Two starts may be told the same, if the first one ends before anybody has heard of its new
%% incarnation.
two_that_are_told_the_same_become_different_test() ->
    Incarnations = [Incarnation || Seed <- [1, 2],
                                   {Incarnation, _, _} <- [told(100, started(?B, 50, Seed))]],
    ?assertEqual(2, length(lists:usort(Incarnations))).

%% A hello of the former incarnation may be on its way, or have come already.
whoever_may_have_heard_of_the_former_incarnation_is_told_of_the_new_one_test() ->
    {Incarnation, B1, _} = told(100, after_hello(?A, 10, started(?B, 50))),
    {B2, First} = ?CORE:handle({message, ?C, hello(7)}, 2, B1),
    ?assertMatch([{send, ?C, {1, {hello, Incarnation, _}}}], sent(hello, First)),
    {_, Again} = ?CORE:handle({message, ?C, {1, {lived, 100}}}, 3, B2),
    ?assertMatch([{send, ?C, {1, {hello, Incarnation, _}}}], sent(hello, Again)).

%% Its names and replicas end, and those who wait get an answer.
what_it_had_ends_with_the_former_incarnation_test() ->
    Command = {register, name, self(), [], exit, 5000},
    {B, _} = ?CORE:handle({command, caller, Command}, 1, after_hello(?A, 10, started(?B, 50))),
    {_, Ended, Effects} = told(100, B),
    ?assert(lists:member({reply, caller, {error, no_quorum}}, Effects)),
    ?assertEqual(#{}, maps:get(partitions, ?CORE:info(Ended))).

%% For the others it is as if its connection had ended in between.
who_says_hello_in_another_incarnation_was_away_test() ->
    A = after_hello(?B, 60, after_hello(?B, 50, started(?A, 10))),
    ?assertMatch(#{connected := [?A, ?B]}, ?CORE:info(A)).

%% The clock of a host that stood still jumps, too. Either way the owner has not had its time yet.
a_leader_whose_clock_jumps_waits_for_leases_of_others_test() ->
    #{lease_ms := LeaseMs, margin_ms := MarginMs} = Options =
        weft_names_strong_options:complete(#{voters => [?A], partitions => 1}),
    {Started, _} = ?CORE:init(?A, Options#{scope => scope, incarnation => 10, seed => 1}),
    OpenMs = 1000 + LeaseMs + MarginMs,
    {Connected, _} = ?CORE:handle({message, ?B, {1, {hello, 50, {1, [?A]}}}}, 0, Started),
    Open = ticking(0, OpenMs, Connected),
    Write = {write, {50, 0}, 0, 1, [{1, {register, name, pid, meta, 0}}]},
    {Held, _} = ?CORE:handle({message, ?B, {1, [{0, ask, Write}]}}, OpenMs, Open),
    JumpMs = 2 * (LeaseMs + MarginMs),
    %% It goes on as the leader when a round is confirmed before its next tick.
    Read = {message, ?B, {1, [{0, ask, {read, 50, [{2, {name, name}}]}}]}},
    {Jumped, _} = ?CORE:handle(Read, OpenMs + JumpMs, Held),
    Before = ticking(OpenMs + JumpMs, OpenMs + JumpMs + LeaseMs, Jumped),
    ?assertEqual(1, weft_names_strong_table:count(?CORE:table(0, Before))),
    %% It does end.
    After = ticking(OpenMs + JumpMs + LeaseMs, OpenMs + JumpMs + LeaseMs + 2 * MarginMs, Before),
    ?assertEqual(0, weft_names_strong_table:count(?CORE:table(0, After))).

ticking(FromMs, ToMs, Core) ->
    lists:foldl(fun(NowMs, Acc) -> element(1, ?CORE:handle({timer, tick}, NowMs, Acc)) end, Core,
                lists:seq(FromMs, ToMs, 100)).

started(Self, Incarnation) -> started(Self, Incarnation, 1).

started(Self, Incarnation, Seed) ->
    {Core, _} = ?CORE:init(Self, #{scope => scope, incarnation => Incarnation, seed => Seed,
                                   voters => [?A, ?B, ?C]}),
    Core.

after_hello(Node, Incarnation, Core0) ->
    {Core, _} = ?CORE:handle({message, Node, hello(Incarnation)}, 0, Core0),
    Core.

told(Later, Core0) ->
    {Core, Effects} = ?CORE:handle({message, ?A, {1, {lived, Later}}}, 1, Core0),
    {maps:get(incarnation, ?CORE:info(Core)), Core, Effects}.

hello(Incarnation) -> {1, {hello, Incarnation, {1, [?A, ?B, ?C]}}}.

sent(What, Effects) ->
    [Effect || {send, _, {1, Message}} = Effect <- Effects, element(1, Message) =:= What].
