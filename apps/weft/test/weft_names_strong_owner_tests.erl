%% SPDX-License-Identifier: Apache-2.0
%% @doc The owner's half of strong names: leases, retries, what is told to whom.
-module(weft_names_strong_owner_tests).

-include_lib("eunit/include/eunit.hrl").

-define(CLIENT, weft_names_strong_owner).
-define(REPLICAS, ['a@x', 'b@x', 'c@x']).

a_name_is_owned_from_the_answer_until_the_lease_ends_test() ->
    {C1, Sent} = command({register, x, p, meta, exit, 5000}, caller, ?CLIENT:new(), 1000),
    ?assertEqual([{watch, p}, {send, 'a@x', {ask, 0, {write, {7, 0}, 0, 1,
                                                      [{1, {register, x, p, meta, 0}}]}}}], Sent),
    {C2, Answered} = answer({wrote, {7, 0}, 50, [{1, {registered, 50}}]}, C1, 1400),
    ?assertEqual([{view, {lease, 0}, {9000}}, {view, {name, x}, {own, p, 50, meta, 0, exit}},
                  {reply, caller, {ok, 50}}], Answered),
    %% The lease counts from when the request was sent, and ends by itself.
    {C3, _} = ?CLIENT:tick(C2, env(8999)),
    ?assertMatch(#{owned := 1}, ?CLIENT:info(C3)),
    {C4, Lost} = ?CLIENT:tick(C3, env(9000)),
    ?assertEqual(#{owned => 0, requests => 0, cached => 0, leases => 0}, ?CLIENT:info(C4)),
    [?assert(lists:member(Effect, Lost))
     || Effect <- [{view, {name, x}, delete}, {view, {lease, 0}, delete},
                   {exit, p, {weft_names_lost, scope, x}}, {notice, {lost, x, 50}}]].

renewals_extend_the_lease_from_when_they_were_sent_test() ->
    C1 = owner(exit),
    {C2, Sent} = ?CLIENT:tick(C1, env(4000)),
    ?assertEqual([{send, 'a@x', {ask, 0, {renew, {7, 0}, 50, 3, 50}}}], Sent),
    {C3, Extended} = answer({renewed, {7, 0}, 3, 60, same}, C2, 4500),
    ?assertEqual([{view, {lease, 0}, {12000}}], Extended),
    %% The answer to another renewal, or of another incarnation, counts nothing.
    [?assertEqual([], element(2, answer({renewed, Incarnation, Id, 60, same}, C3, 5000)))
     || {Incarnation, Id} <- [{{7, 0}, 3}, {{7, 1}, 3}, {{6, 0}, 3}]].

a_stale_lease_is_lost_at_once_test() ->
    {_, Effects} = answer({stale, {7, 0}, []}, owner(kill), 2000),
    ?assert(lists:member({exit, p, kill}, Effects)),
    {_, Told} = answer({stale, {7, 0}, []}, owner(tell), 2000),
    ?assert(lists:member({tell, p, {weft_names_lost, scope, x, 50}}, Told)).

what_may_have_been_registered_is_not_registered_again_test() ->
    {C1, _} = command({register, y, q, meta, exit, 5000}, caller, owner(exit), 8000),
    %% The lease ends while it is under way.
    {C2, Effects} = ?CLIENT:tick(C1, env(9002)),
    ?assert(lists:member({reply, caller, {error, no_quorum}}, Effects)),
    ?assertMatch(#{requests := 0}, ?CLIENT:info(C2)),
    %% A replica that says that it did not carry it out may be asked anew.
    {_, Again} = answer({stale, {7, 0}, [3]}, C1, 8100),
    ?assert(lists:member({send, 'a@x', {ask, 0, {write, {7, 1}, 0, 3,
                                                 [{3, {register, y, q, meta, 0}}]}}}, Again)).

%% In the next incarnation the name is not there, but it may have been handed over in this one.
what_may_have_been_handed_over_is_not_said_not_to_have_been_test() ->
    {C1, _} = command({update, x, 50, q, meta, same, 5000}, caller, owner(exit), 2000),
    {_, Effects} = answer({stale, {7, 0}, []}, C1, 2001),
    ?assert(lists:member({reply, caller, {error, no_quorum}}, Effects)),
    ?assertEqual([], [Ask || {send, _, {ask, 0, Ask}} <- Effects]).

no_answer_is_no_quorum_in_time_test() ->
    {C1, _} = command({register, x, p, meta, exit, 1000}, caller, ?CLIENT:new(), 0),
    {C2, Again} = ?CLIENT:tick(C1, env(600)),
    ?assertMatch([{send, 'b@x', {ask, 0, {write, _, _, _, _}}}], Again),
    {_, Effects} = ?CLIENT:tick(C2, env(1000)),
    ?assertEqual([{reply, caller, {error, no_quorum}}, {unwatch, p}], Effects).

whoever_leads_is_asked_test() ->
    {C1, _} = command({whereis, x, 1000}, caller, ?CLIENT:new(), 0),
    {C2, Again} = ?CLIENT:answer('a@x', 0, {not_leader, 'c@x'}, C1, env(1)),
    ?assertEqual([{send, 'c@x', {ask, 0, {read, 7, [{1, {name, x}}]}}}], Again),
    %% Without a hint the next tick asks another replica.
    {C3, []} = ?CLIENT:answer('c@x', 0, {not_leader, none}, C2, env(2)),
    ?assertMatch({_, [{send, _, {ask, 0, {read, 7, _}}}]}, ?CLIENT:tick(C3, env(600))).

answers_to_an_earlier_incarnation_are_nothing_test() ->
    {C1, _} = command({whereis, x, 1000}, caller, ?CLIENT:new(), 0),
    ?assertEqual({C1, []}, answer({values, 6, [{1, {p, 9, meta}}]}, C1, 1)),
    {_, Effects} = answer({values, 7, [{1, {p, 9, meta}}]}, C1, 1),
    ?assertEqual([{reply, caller, {ok, p, 9, meta}}],
                 [Effect || {reply, _, _} = Effect <- Effects]),
    ?assert(lists:member({view, {name, x}, {cached, p, 9, meta, 8000}}, Effects)).

%% The name may have been given up since the leader was asked.
what_was_read_is_kept_from_when_it_was_asked_test() ->
    {C1, _} = command({whereis, x, 20000}, caller, ?CLIENT:new(), 1000),
    Views = fun(NowMs) ->
                {C2, Effects} = answer({values, 7, [{1, {p, 9, meta}}]}, C1, NowMs),
                ?assert(lists:member({reply, caller, {ok, p, 9, meta}}, Effects)),
                {[View || {view, _, _} = View <- Effects], maps:get(cached, ?CLIENT:info(C2))}
            end,
    ?assertEqual({[{view, {name, x}, {cached, p, 9, meta, 9000}}], 1}, Views(8999)),
    ?assertEqual({[], 0}, Views(9000)).

what_the_replicas_have_too_much_is_removed_test() ->
    {C1, _} = ?CLIENT:tick(owner(exit), env(4000)),
    {_, Effects} = answer({renewed, {7, 0}, 3, 60, {names, #{x => 50, orphan => 55}}}, C1, 4001),
    ?assertEqual([{write, {7, 0}, 50, 4, [{4, {unregister, orphan, 55}}]}],
                 [Ask || {send, _, {ask, 0, Ask}} <- Effects]),
    %% And what they do not have is lost.
    {_, Lost} = answer({renewed, {7, 0}, 3, 60, {names, #{}}}, C1, 4001),
    ?assert(lists:member({exit, p, {weft_names_lost, scope, x}}, Lost)).

what_was_registered_without_an_answer_is_replaced_test() ->
    {C1, _} = command({register, y, q, meta, exit, 1000}, first, owner(exit), 2000),
    {C2, _} = ?CLIENT:tick(C1, env(3000)),
    {C3, _} = command({register, y, r, meta, exit, 1000}, second, C2, 3100),
    {C4, []} = command({unregister, y, 60, 1000}, third, C3, 3100),
    {C5, Again} = answer({wrote, {7, 0}, 50, [{4, {yours, q, 60}}]}, C4, 3101),
    ?assertEqual([{write, {7, 0}, 50, 5, [{5, {register, y, r, meta, 60}}]}],
                 [Ask || {send, _, {ask, 0, Ask}} <- Again]),
    {C6, Effects} = answer({wrote, {7, 0}, 50, [{5, {registered, 61}}]}, C5, 3102),
    ?assertEqual([{reply, second, {ok, 61}}], [Effect || {reply, _, _} = Effect <- Effects]),
    %% Only the replicas know that they do not have what was forgotten.
    ?assertEqual([{write, {7, 0}, 50, 6, [{6, {unregister, y, 60}}]}],
                 [Ask || {send, _, {ask, 0, Ask}} <- Effects]),
    {C7, Third} = answer({wrote, {7, 0}, 50, [{6, absent}]}, C6, 3103),
    ?assertEqual([{reply, third, ok}], [Effect || {reply, _, _} = Effect <- Third]),
    ?assertMatch(#{owned := 2, requests := 0}, ?CLIENT:info(C7)),
    %% What it knows that it owns is taken.
    {C8, _} = command({register, y, s, meta, exit, 1000}, fourth, C7, 3200),
    {_, Taken} = answer({wrote, {7, 0}, 50, [{7, {yours, r, 61}}]}, C8, 3201),
    ?assertEqual([{reply, fourth, {error, {taken, r}}}],
                 [Effect || {reply, _, _} = Effect <- Taken]).

%% Whoever owns nothing may still have something at the replicas, which only he keeps alive.
after_the_last_answer_there_is_a_renewal_test() ->
    {C1, _} = command({register, x, p, meta, exit, 1000}, caller, ?CLIENT:new(), 1000),
    {C2, _} = answer({wrote, {7, 0}, 50, [{1, {taken, other, 9}}]}, C1, 1001),
    {C3, Sent} = ?CLIENT:tick(C2, env(1100)),
    ?assertMatch([{send, 'a@x', {ask, 0, {renew, {7, 0}, 50, 2, 0}}}], Sent),
    {C4, Effects} = answer({renewed, {7, 0}, 2, 60, {names, #{orphan => 55}}}, C3, 1101),
    ?assertEqual([{write, {7, 0}, 50, 3, [{3, {unregister, orphan, 55}}]}],
                 [Ask || {send, _, {ask, 0, Ask}} <- Effects]),
    {C5, _} = answer({wrote, {7, 0}, 50, [{3, removed}]}, C4, 1102),
    {C6, [{send, _, {ask, 0, {renew, _, 50, 4, 0}}}]} = ?CLIENT:tick(C5, env(3200)),
    {C7, _} = answer({renewed, {7, 0}, 4, 61, same}, C6, 3201),
    %% Then there is no doubt, and the lease may end.
    {C8, []} = ?CLIENT:tick(C7, env(8000)),
    {C9, _} = ?CLIENT:tick(C8, env(11200)),
    ?assertMatch(#{leases := 0}, ?CLIENT:info(C9)).

names_of_a_process_that_ended_are_given_back_test() ->
    {C1, Effects} = ?CLIENT:gone(p, owner(exit), env(2000)),
    ?assertEqual([{write, {7, 0}, 50, 3, [{3, {unregister, x, 50}}]}],
                 [Ask || {send, _, {ask, 0, Ask}} <- Effects]),
    ?assertMatch(#{owned := 0}, ?CLIENT:info(C1)).

a_process_may_end_while_its_name_is_asked_for_test() ->
    {C1, _} = command({register, x, q, meta, exit, 5000}, caller, owner(exit), 2000),
    {C2, []} = asks(?CLIENT:gone(p, C1, env(2001))),
    ?assertMatch(#{owned := 0}, ?CLIENT:info(C2)),
    {_, Again} = asks(answer({wrote, {7, 0}, 50, [{3, {yours, p, 50}}]}, C2, 2002)),
    ?assertEqual([{write, {7, 0}, 50, 4, [{4, {register, x, q, meta, 50}}]}], Again).

asks({Client, Effects}) -> {Client, [Ask || {send, _, {ask, 0, Ask}} <- Effects]}.

requests_for_one_name_go_one_after_the_other_test() ->
    {C1, _} = command({unregister, x, 50, 1000}, first, owner(exit), 2000),
    {C2, []} = command({register, x, q, meta, exit, 1000}, second, C1, 2001),
    {_, Effects} = answer({wrote, {7, 0}, 50, [{3, removed}]}, C2, 2002),
    ?assertMatch([{write, {7, 0}, 50, 4, [{4, {register, x, q, meta, 0}}]}],
                 [Ask || {send, _, {ask, 0, Ask}} <- Effects]),
    %% A token that is not the present one changes nothing here.
    {C3, [{write, {7, 0}, 50, 3, [{3, {unregister, x, 49}}]}]} =
        asks(command({unregister, x, 49, 1000}, first, owner(exit), 2000)),
    ?assertMatch(#{owned := 1}, ?CLIENT:info(C3)).

%% --- taking a name away from somebody else ----------------------------------------------------

a_name_is_free_when_its_owner_gave_it_back_test() ->
    {C1, Read} = command({remove, x, 5000}, caller, ?CLIENT:new(), 1000),
    ?assertEqual([{send, 'a@x', {ask, 0, {read, 7, [{2, {name, x}}]}}}], Read),
    {C2, Asked} = answer({values, 7, [{2, {q, 9, meta}}]}, C1, 1001),
    ?assertEqual([{send, 'a@x', {removal, {remove, 0, {'d@x', 7, 1}, x, 9}}}], Asked),
    [?assertEqual({C2, []}, ?CLIENT:given_back(Asker, Token, C2, env(1002)))
     || {Asker, Token} <- [{{'d@x', 6, 1}, 9}, {{'d@x', 7, 2}, 9}, {{'d@x', 7, 1}, 8}]],
    {C3, Told} = ?CLIENT:given_back({'d@x', 7, 1}, 9, C2, env(1002)),
    ?assertEqual([{reply, caller, ok}], Told),
    ?assertEqual({C3, []}, ?CLIENT:given_back({'d@x', 7, 1}, 9, C3, env(1003))).

a_name_that_is_not_given_back_is_asked_for_again_and_never_said_to_be_free_test() ->
    {C1, _} = command({remove, x, 5000}, caller, ?CLIENT:new(), 1000),
    {C2, _} = answer({values, 7, [{2, {q, 9, meta}}]}, C1, 1001),
    {C3, [_Renewal, {send, 'a@x', {ask, 0, {read, 7, [{Id, {name, x}}]}}}]} =
        with_renewal(?CLIENT:tick(C2, env(1501))),
    {C4, Again} = answer({values, 7, [{Id, {q, 9, meta}}]}, C3, 1502),
    ?assertMatch([{send, _, {removal, {remove, 0, {'d@x', 7, 1}, x, 9}}}], Again),
    {_, Effects} = ?CLIENT:tick(C4, env(6000)),
    ?assertEqual([{reply, caller, {error, timeout}}], [R || {reply, _, _} = R <- Effects]).

with_renewal({Client, Effects}) -> {Client, [renewal | Effects]}.

without_replicas_nothing_is_said_test() ->
    {C1, _} = command({remove, x, 1000}, caller, ?CLIENT:new(), 1000),
    {_, Effects} = ?CLIENT:tick(C1, env(2000)),
    ?assertEqual([{reply, caller, {error, no_quorum}}], Effects).

an_owner_gives_back_what_a_replica_asks_for_test() ->
    Asker = {'e@x', 3, 1},
    {C1, Effects} = ?CLIENT:give_back('b@x', Asker, {x, 50}, owner(exit), env(2000)),
    ?assert(lists:member({view, {name, x}, delete}, Effects)),
    ?assertMatch(#{owned := 0}, ?CLIENT:info(C1)),
    ?assertEqual([{write, {7, 0}, 50, 3, [{3, {unregister, x, 50}}]}],
                 [Ask || {send, _, {ask, 0, Ask}} <- Effects]),
    Told = fun(Result) ->
               {_, Out} = answer({wrote, {7, 0}, 50, [{3, Result}]}, C1, 2001),
               [Sent || {send, _, _} = Sent <- Out]
           end,
    ?assertEqual([{send, 'b@x', {removal, {given_back, Asker, 50}}}], Told(removed)),
    %% What the replicas did not have was not free because of this.
    ?assertEqual([], Told(absent)).

%% The lease as this node knows it may be over, and at the replicas it is not.
an_owner_gives_back_what_it_does_not_know_of_test() ->
    Asker = {'e@x', 3, 1},
    {_, Unknown} = ?CLIENT:give_back('b@x', Asker, {z, 44}, owner(exit), env(2000)),
    ?assertEqual([{write, {7, 0}, 50, 3, [{3, {unregister, z, 44}}]}],
                 [Ask || {send, _, {ask, 0, Ask}} <- Unknown]),
    {C1, Lapsed} = ?CLIENT:give_back('b@x', Asker, {x, 50}, owner(exit), env(9500)),
    ?assertMatch([_], [Ask || {send, _, {ask, 0, Ask}} <- Lapsed]),
    ?assertMatch(#{owned := 0}, ?CLIENT:info(C1)).

%% --- helpers ----------------------------------------------------------------------------------

owner(OnLost) ->
    {C1, _} = command({register, x, p, meta, OnLost, 5000}, caller, ?CLIENT:new(), 1000),
    {C2, _} = answer({wrote, {7, 0}, 50, [{1, {registered, 50}}]}, C1, 1001),
    %% Its first renewal is due, and answered.
    {C3, [{send, _, {ask, 0, {renew, _, _, Id, _}}}]} = ?CLIENT:tick(C2, env(1002)),
    {C4, _} = answer({renewed, {7, 0}, Id, 51, same}, C3, 1003),
    C4.

command(Command, From, Client, NowMs) -> ?CLIENT:command(Command, From, Client, env(NowMs)).

answer(Answer, Client, NowMs) -> ?CLIENT:answer('a@x', 0, Answer, Client, env(NowMs)).

env(NowMs) ->
    Options = weft_names_strong_options:complete(#{voters => ?REPLICAS, partitions => 1,
                                                   lease_ms => 8000}),
    #{now_ms => NowMs, self => 'd@x', scope => scope, incarnation => 7, options => Options,
      up => maps:from_list([{Replica, 1} || Replica <- ?REPLICAS]), places => #{0 => ?REPLICAS}}.
