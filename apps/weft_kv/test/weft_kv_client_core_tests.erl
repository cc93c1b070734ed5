%% SPDX-License-Identifier: Apache-2.0
%% @doc Who is asked after which answer. Real nodes are in weft_kv_client_SUITE.
-module(weft_kv_client_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(weft_kv_client_core, [order/4, new/3, node/2, answered/3, unanswered/1]).

-define(LOST, {error, {unknown, {nodedown, a}}}).

the_first_connected_node_is_asked_test() ->
    ?assertMatch({ok, b, first, 3, _}, node([c, b], new(read, [a, b, c], 3))),
    ?assertEqual(none, node([d], new(read, [a, b, c], 3))).

%% A write goes to the first replica, which has to make its version. Who reads has a choice of its
%% own.
nodes_with_a_replica_are_asked_first_test() ->
    ?assertEqual([d, b, a, c, e], order(write, [d, b], [[a, b, c, d, e]], 0)),
    ?assertEqual([d, b, c, e, a], order(write, [d, b], [[a, b, c, d, e]], 1)),
    ?assertEqual([b, d, c, e, a], order(read, [d, b], [[a, b, c, d, e]], 1)),
    ?assertEqual([d, b, e, a, c], order(read, [d, b], [[a, b, c, d, e]], 2)),
    ?assertEqual([d, b, c, a, f, e], order(write, [d, b], [[a, b, c], [d, e, f]], 1)).

without_a_ring_each_process_begins_with_another_node_test() ->
    [?assertEqual([[a, b, c], [b, c, a], [c, a, b], [a, b, c]],
                  [order(Kind, [], [[a, b, c], []], Turn) || Turn <- lists:seq(0, 3)])
     || Kind <- [read, write]].

%% Whatever is known of the ring, the same nodes are asked in the end: those that may be asked, each
%% once. And processes that read use all replicas alike.
an_order_leaves_nobody_out_test() ->
    Property =
        ?FORALL({Kind, Replicas, {Named, Found}, Turn},
                {oneof([read, write]), distinct([]), {distinct([a]), distinct([])},
                 non_neg_integer()},
            begin
                Groups = [Named, Found -- Named],
                Nodes = lists:append(Groups),
                Order = order(Kind, Replicas, Groups, Turn),
                Known = [Node || Node <- Replicas, lists:member(Node, Nodes)],
                {First, Others} = lists:split(length(Known), Order),
                Firsts = [hd(order(read, Replicas, Groups, Turn + More))
                          || More <- lists:seq(1, length(Known))],
                lists:sort(Order) =:= lists:sort(Nodes)
                    andalso lists:sort(First) =:= lists:sort(Known)
                    andalso [] =:= [Node || Node <- Others, lists:member(Node, Replicas)]
                    andalso (Kind =:= read orelse First =:= Known)
                    andalso lists:sort(Firsts) =:= lists:sort(Known)
            end),
    ?assert(proper:quickcheck(Property, [{numtests, 500}, quiet])).

distinct(Always) ->
    ?LET(Pairs, list({integer(), oneof([a, b, c, d, e, f])}),
         distinct(Always, [Node || {_, Node} <- lists:sort(Pairs)])).

distinct(Nodes, []) -> Nodes;
distinct(Nodes, [Node | More]) -> distinct(Nodes ++ ([Node] -- Nodes), More).

%% Nothing was done, so any request may go elsewhere.
a_node_that_can_not_serve_is_left_for_the_next_one_test() ->
    [begin
         State = asked(a, first, new(Kind, [a, b], 3)),
         {next, Next} = answered({error, Reason}, Who, State),
         ?assertMatch({ok, b, first, 2, _}, node([a, b], Next))
     end || Kind <- [read, write], {Reason, Who} <- [{no_ring, said}, {not_running, said},
                                                     {{not_done, few}, said},
                                                     {{no_store, a}, refused}]].

the_error_is_told_after_the_last_try_test() ->
    {next, State} = answered({error, no_ring}, said, asked(a, first, new(write, [a, b], 2))),
    ?assertEqual({answer, {error, not_running}},
                 answered({error, not_running}, said, asked(b, first, State))).

a_read_without_an_answer_is_asked_elsewhere_test() ->
    [begin
         {next, State} = answered(Lost, said, asked(a, first, new(read, [a, b], 2))),
         ?assertEqual({answer, {ok, value, context}},
                      answered({ok, value, context}, said, asked(b, first, State)))
     end || Lost <- [?LOST, {error, timeout}, {error, {too_few, #{}}}]].

%% With what a node may have done already goes the word that it may.
a_write_without_an_answer_is_asked_again_test() ->
    State = again(new(write, [a, b], 3)),
    ?assertEqual({answer, {ok, context}}, answered({ok, context}, said, asked(b, again, State))).

what_a_later_try_did_not_do_hides_nothing_test() ->
    [?assertEqual({Answer, {answer, ?LOST}},
                  {Answer, answered({error, Answer}, said,
                                    asked(b, again, again(new(write, [a, b], 2))))})
     || Answer <- [not_repeated, overload, no_ring, {not_done, few}, unknown_bucket]],
    Later = {error, {unknown, later}},
    ?assertEqual({answer, Later},
                 answered(Later, said, asked(b, again, again(new(write, [a, b], 2))))).

%% The caller has to know, and more requests would make it worse.
overload_and_mistakes_are_told_at_once_test() ->
    [?assertEqual({answer, {error, Reason}},
                  answered({error, Reason}, said, asked(a, first, new(Kind, [a, b], 3))))
     || Kind <- [read, write], Reason <- [overload, unknown_bucket, not_found, bad_context]].

%% With as many tries as nodes or more, those that were asked are asked again, the earliest first.
nodes_are_asked_in_turn_test() ->
    Asked = lists:foldl(fun(Node, State) ->
                            {next, Next} = answered({error, no_ring}, said,
                                                    asked(Node, first, State)),
                            Next
                        end, new(read, [a, b, c], 10), [a, b, c, a, b]),
    ?assertMatch({ok, c, first, 5, _}, node([a, b, c], Asked)),
    ?assertMatch({ok, a, first, 5, _}, node([a, b], Asked)).

without_time_it_is_told_what_is_known_test() ->
    ?assertEqual({error, {no_node, [a]}}, unanswered(new(write, [a], 3))),
    ?assertEqual(?LOST, unanswered(again(new(write, [a], 3)))).

%% Whatever nodes answer: a request is sent at most so many times; one that may have been done is
%% sent as such; and it has an answer that says so, unless it was done.
an_answer_never_hides_a_write_test() ->
    Property =
        ?FORALL({Kind, Tries, Answers},
                {oneof([read, write]), range(1, 5),
                 list(oneof([?LOST, {error, timeout}, {error, no_ring}, {error, overload},
                             {error, not_repeated}, {error, {not_done, few}}, {ok, context}]))},
                is_honest(Kind, Tries, Answers)),
    ?assert(proper:quickcheck(Property, [{numtests, 500}, quiet])).

is_honest(Kind, Tries, Answers) ->
    honest(new(Kind, [a, b], Tries), Kind, Tries, Answers, false).

honest(_State, _Kind, _Left, [], _Open) ->
    true;
honest(_State, _Kind, 0, _Answers, _Open) ->
    false;
honest(State0, Kind, Left, [Answer | Answers], Open) ->
    {ok, _, Try, Left, State} = node([a, b], State0),
    Expected = case Open andalso Kind =:= write of true -> again; false -> first end,
    Now = Open orelse lists:member(Answer, [?LOST, {error, timeout}]),
    Try =:= Expected andalso
        case answered(Answer, said, State) of
            {next, Next} -> honest(Next, Kind, Left - 1, Answers, Now);
            {answer, {ok, _}} -> Answer =:= {ok, context};
            {answer, Error} when Kind =:= write, Now ->
                lists:member(Error, [?LOST, {error, timeout}]);
            {answer, Error} -> Error =:= Answer
        end.

asked(Node, Try, State0) ->
    {ok, Node, Try, _, State} = node([a, b, c], State0),
    State.

%% One that was sent to the first node and got lost.
again(State) ->
    {next, Next} = answered(?LOST, said, asked(a, first, State)),
    Next.
