%% SPDX-License-Identifier: Apache-2.0
%% @doc What waits for a link is opened when it comes up, or its session is told why not.
-module(weft_pending_circuits_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PENDING, weft_pending_circuits).
-define(NEIGHBOUR, <<"neighbour@host">>).

what_a_session_asked_for_last_counts_test() ->
    Pending = ?PENDING:add(a, in, open(new, <<"other@host">>), pending([{a, new}, {b, new}])),
    ?assertMatch([{b, _, _}, {a, in, #{target := <<"other@host">>}}], ?PENDING:to_open(Pending)).

who_waits_no_more_is_not_served_test() ->
    Pending = ?PENDING:drop(a, pending([{a, new}, {b, resume}])),
    ?assertEqual([false, true], [?PENDING:is_pending(Session, Pending) || Session <- [a, b]]).

nodes_behind_the_neighbour_may_be_alive_test() ->
    Behind = ?PENDING:add(b, in, open(resume, <<"behind@host">>),
                          ?PENDING:add(a, in, open(new, <<"behind@host">>), [])),
    ?assertEqual({[], Behind}, ?PENDING:split(?NEIGHBOUR, Behind)),
    With = ?PENDING:add(d, in, open(new, ?NEIGHBOUR),
                        ?PENDING:add(c, in, open(resume, ?NEIGHBOUR), Behind)),
    ?assertEqual({[c, d], Behind}, ?PENDING:split(?NEIGHBOUR, With)).

why_a_neighbour_cannot_be_dialled_is_said_of_it_alone_test() ->
    Pending = ?PENDING:add(b, in, open(new, <<"behind@host">>), pending([{a, new}])),
    ?assertEqual([{a, {dial, econnrefused}}, {b, broken}],
                 ?PENDING:dial_failed(econnrefused, ?NEIGHBOUR, Pending)).

%% The first one of the list began to wait first.
pending(Waiting) ->
    lists:foldl(fun({Session, Mode}, Pending) ->
                    ?PENDING:add(Session, in, open(Mode, ?NEIGHBOUR), Pending)
                end, [], Waiting).

open(Mode, Target) ->
    #{mode => Mode, kind => distribution, hops => 8, session => <<0:128>>, received => 0,
      source => <<"own@host">>, target => Target}.
