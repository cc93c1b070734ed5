%% SPDX-License-Identifier: Apache-2.0
%% @doc Who waits for a link is told when it comes up, or why not.
-module(weft_pending_circuits_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PENDING, weft_pending_circuits).
-define(NEIGHBOUR, <<"neighbour@host">>).

what_a_session_asked_for_last_counts_test() ->
    Pending = ?PENDING:add(a, <<"other@host">>, pending([a, b])),
    ?assertEqual([a, b], ?PENDING:sessions(Pending)),
    ?assertMatch({[b], _}, ?PENDING:split(?NEIGHBOUR, Pending)).

who_waits_no_more_is_not_told_test() ->
    Pending = ?PENDING:drop(a, pending([a, b])),
    ?assertEqual([false, true], [?PENDING:is_pending(Session, Pending) || Session <- [a, b]]),
    ?assertEqual([b], ?PENDING:sessions(Pending)).

nodes_behind_the_neighbour_may_be_alive_test() ->
    Behind = ?PENDING:add(b, <<"behind@host">>, ?PENDING:add(a, <<"behind@host">>, [])),
    ?assertEqual({[], Behind}, ?PENDING:split(?NEIGHBOUR, Behind)),
    With = ?PENDING:add(d, ?NEIGHBOUR, ?PENDING:add(c, ?NEIGHBOUR, Behind)),
    ?assertEqual({[c, d], Behind}, ?PENDING:split(?NEIGHBOUR, With)).

why_a_neighbour_cannot_be_dialled_is_said_of_it_alone_test() ->
    Pending = ?PENDING:add(b, <<"behind@host">>, pending([a])),
    ?assertEqual([{a, {dial, econnrefused}}, {b, broken}],
                 ?PENDING:dial_failed(econnrefused, ?NEIGHBOUR, Pending)).

%% The first one of the list began to wait first.
pending(Sessions) ->
    lists:foldl(fun(Session, Pending) -> ?PENDING:add(Session, ?NEIGHBOUR, Pending) end, [],
                Sessions).
