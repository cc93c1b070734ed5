%% SPDX-License-Identifier: Apache-2.0
-module(weft_ops_traffic_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(GROUPS, #{g1 => [a, b], g2 => [b, c]}).

who_sends_tells_test() ->
    ?assertEqual([#{from => a, to => c, via => b, bytes_per_s => 500}],
                 between_nodes(#{a => sample([peer(c, b, 1000, 0)]),
                                 c => sample([peer(a, b, 0, 900)])})).

%% It has no weft_ops, or does not report any more.
who_receives_tells_for_others_test() ->
    ?assertEqual([#{from => a, to => c, via => undefined, bytes_per_s => 450}],
                 between_nodes(#{a => silent, c => sample([peer(a, b, 0, 900)])})).

the_most_comes_first_and_nothing_is_left_out_test() ->
    ?assertMatch([#{to := c, bytes_per_s := 50}, #{to := b, bytes_per_s := 5}],
                 between_nodes(#{a => sample([peer(b, b, 10, 0), peer(c, b, 100, 0),
                                              peer(d, d, 0, 0)])})).

groups_test_() ->
    Groups = fun(From, To) ->
                 #{groups := [#{from := A, to := B, bytes_per_s := 50, pairs := 1}]} =
                     weft_ops_traffic:of_samples(#{From => sample([peer(To, To, 100, 0)])},
                                                 ?GROUPS),
                 {A, B}
             end,
    [?_assertEqual(Expected, Groups(From, To))
     || {From, To, Expected} <- [{a, b, {g1, g1}}, {b, c, {g2, g2}}, {a, c, {g1, g2}},
                                 {c, a, {g2, g1}}, {a, x, {g1, none}}, {x, y, {none, none}}]].

%% Each byte is in one pair of groups.
groups_have_what_nodes_have_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_sums(), [{numtests, 200}, {to_file, user}]))}.

prop_sums() ->
    Node = oneof([a, b, c, d, e]),
    ?FORALL({Peers, Groups}, {list({Node, Node, range(0, 9000), range(0, 9000)}),
                              list({oneof([g1, g2, g3]), list(Node)})},
            begin
                Samples = lists:foldl(fun({From, To, Out, In}, Acc) ->
                                          #{peers := Others} = maps:get(From, Acc, sample([])),
                                          Rest = [P || #{node := N} = P <- Others, N =/= To],
                                          Acc#{From => sample([peer(To, To, Out, In) | Rest])}
                                      end, #{}, Peers),
                #{nodes := Nodes, groups := Sums} =
                    weft_ops_traffic:of_samples(Samples, maps:from_list(Groups)),
                Of = fun(Key, Rows) -> lists:sum([maps:get(Key, Row) || Row <- Rows]) end,
                Of(bytes_per_s, Nodes) =:= Of(bytes_per_s, Sums)
                    andalso length(Nodes) =:= Of(pairs, Sums)
            end).

between_nodes(Samples) ->
    #{nodes := Rows} = weft_ops_traffic:of_samples(Samples, ?GROUPS),
    Rows.

sample(Peers) -> #{period_ms => 2000, peers => Peers}.

peer(Node, Via, Out, In) -> #{node => Node, via => Via, bytes_out => Out, bytes_in => In}.
