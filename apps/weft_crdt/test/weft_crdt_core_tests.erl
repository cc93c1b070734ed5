%% SPDX-License-Identifier: Apache-2.0
%% @doc Stores in a world where messages are lost, doubled and reordered, links break and nodes
%% forget: in the end all have the same, and nothing that arrived somewhere is missing. And what it
%% costs.
-module(weft_crdt_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(W, weft_crdt_world).
-define(NODES, [a, b, c, d]).
-define(KEYS, [{count, pncounter}, {set, orset}, {map, ormap}, {register, mv_register}]).

%% --- any schedule -----------------------------------------------------------------------------

any_schedule_test_() ->
    [{Name, {timeout, 1200, ?_assert(proper:quickcheck(converges(Links, Options),
                                                      [{numtests, count()}, quiet]))}}
     || {Name, Links, Options} <-
            [{"in a mesh", [{A, B} || A <- ?NODES, B <- ?NODES, A < B], #{}},
             {"in a chain", [{a, b}, {b, c}, {c, d}], #{}},
             {"with buffers for one key", [{a, b}, {b, c}, {c, d}, {d, a}], #{waiting_max => 1}},
             {"with one delta in a message", [{a, b}, {b, c}, {c, a}, {c, d}],
              #{message_bytes => 1}}]].

count() ->
    case os:getenv("FULL") of false -> 60; _ -> 3000 end.

converges(Links, Options) ->
    ?FORALL(Steps, ?SIZED(Size, resize(4 * Size, list(step(Links)))),
            begin
                Begun = joined(Links, ?W:new(?NODES, Options)),
                World = lists:foldl(fun step/2, Begun, Steps),
                End = ?W:settle(joined(Links, World)),
                Values = [[?W:value(Node, Key, End) || {Key, _} <- ?KEYS] || Node <- ?NODES],
                ?WHENFAIL(io:format("~p~n~p~n~p~n", [Steps, Values, ?W:warnings(End)]),
                          length(lists:usort(Values)) =:= 1 andalso ?W:warnings(End) =:= []
                              andalso lists:all(fun({Key, _}) ->
                                                    is_right(Key, updates(Key, Steps), World, End)
                                                end, ?KEYS))
            end).

joined(Links, World) ->
    lists:foldl(fun({A, B}, W) -> ?W:link(A, B, W) end, declared(World), Links).

declared(World) ->
    lists:foldl(fun({Node, {Key, Type}}, W) -> ?W:command(Node, {declare, Key, Type}, W) end,
                World, [{Node, Key} || Node <- ?W:nodes(World), Key <- ?KEYS]).

step(Links) ->
    frequency([{10, ?LET({{Key, _}, Node}, {oneof(?KEYS), oneof(?NODES)},
                         {update, Node, Key, operation(Key)})},
               {15, {deliver, range(0, 50)}}, {3, {double, range(0, 50)}},
               {3, {lose, range(0, 50)}}, {6, {tick, oneof([10, 100, 2500])}},
               {2, {cut, oneof(Links)}}, {2, {link, oneof(Links)}}, {1, {restart, oneof(?NODES)}}]).

operation(count) -> increment;
operation(set) -> {oneof([add, remove]), range(1, 5)};
operation(register) -> {set, range(1, 5)};
operation(map) -> oneof([{update, f, orset, operation(set)}, {remove, f}]).

step({update, Node, Key, Operation}, World) ->
    ?W:command(Node, {update, Key, Operation, 0}, World);
step({cut, {A, B}}, World) -> ?W:cut(A, B, World);
step({link, {A, B}}, World) -> ?W:link(A, B, World);
step({restart, Node}, World) -> declared(?W:restart(Node, World));
step({Step, N}, World) -> ?W:Step(N, World).

%% --- what is known of the end -----------------------------------------------------------------

%% The updates of a key, in order, and of each whether its node has not been restarted since.
updates(Key, Steps) ->
    {Updates, _} = lists:foldr(
                     fun({restart, Node}, {Updates, Restarted}) ->
                             {Updates, [Node | Restarted]};
                        ({update, Node, K, Operation}, {Updates, Restarted}) when K =:= Key ->
                             {[{Node, Operation, not lists:member(Node, Restarted)} | Updates],
                              Restarted};
                        (_, Acc) -> Acc
                     end, {[], []}, Steps),
    Updates.

%% What no node has forgotten counts, and so does what had arrived at another one; and nothing
%% counts twice.
is_right(count, Updates, World, End) ->
    {ok, Count} = ?W:value(a, count, End),
    Kept = length([kept || {_, increment, true} <- Updates]),
    Arrived = [Value || Node <- ?NODES, {ok, Value} <- [?W:value(Node, count, World)]],
    Count >= lists:max([Kept | Arrived]) andalso Count =< length(Updates);
is_right(Key, Updates, _World, End) ->
    {ok, Value} = ?W:value(a, Key, End),
    Elements = case Key of map -> maps:get(f, Value, []); _ -> Value end,
    lists:all(fun(E) ->
                  case fate(E, Updates) of
                      in -> lists:member(E, Elements);
                      out -> not lists:member(E, Elements);
                      open -> true
                  end
              end, lists:seq(1, 5)).

%% `in': the node that added it still knows of that, and nobody has removed it after that. `out':
%% each who added it has removed it after that. Otherwise it depends on what arrived when.
fate(E, Updates) ->
    Adds = [{Node, IsKept, removals(E, Later)}
            || N <- lists:seq(1, length(Updates)),
               [{Node, Operation, IsKept} | Later] <- [lists:nthtail(N - 1, Updates)],
               adds(Operation, E)],
    IsOut = fun({Node, IsKept, Removals}) -> IsKept andalso lists:keymember(Node, 1, Removals) end,
    case {[in || {_, true, []} <- Adds], lists:all(IsOut, Adds)} of
        {[_ | _], _} -> in;
        {[], true} -> out;
        {[], false} -> open
    end.

removals(E, Updates) -> [Update || {_, Operation, _} = Update <- Updates, removes(Operation, E)].

adds({update, f, orset, Operation}, E) -> adds(Operation, E);
adds({add, Added}, E) -> Added =:= E;
adds({set, Value}, E) -> Value =:= E;
adds({remove, _}, _) -> false.

%% A field with all that it has, too; and what is written to a register replaces what was there.
removes({update, f, orset, Operation}, E) -> removes(Operation, E);
removes({remove, Removed}, E) -> Removed =:= E orelse Removed =:= f;
removes({set, _}, _) -> true;
removes({add, _}, _) -> false.

%% --- what it costs ----------------------------------------------------------------------------

%% Each change passes each link of a small mesh no more often than to reach everybody.
a_change_reaches_each_neighbour_once_test() ->
    World0 = ?W:forget(?W:settle(2, joined([{A, B} || A <- ?NODES, B <- ?NODES, A < B],
                                           ?W:new(?NODES, #{})))),
    World = ?W:settle(1, ?W:command(a, {update, count, increment, 0}, World0)),
    ?assertEqual([b, c, d], lists:sort([To || {a, To, {_, 1, {deltas, _, _, _, _}}}
                                                  <- ?W:sent(World)])),
    ?assertEqual([], [M || {From, _, {_, 1, {deltas, _, _, _, _}}} = M <- ?W:sent(World),
                           From =/= a]).

stores_that_are_equal_say_little_to_each_other_test() ->
    World = ?W:settle(20, ?W:forget(filled(100, [a, b], ?W:new([a, b], #{})))),
    ?assert(?W:bytes(World) < 20 * 2 * 100).

after_a_partition_differences_are_sent_test_() ->
    {timeout, 60,
     fun() ->
         World0 = filled(1000, [a, b], ?W:new([a, b], #{})),
         Whole = whole(1000, a, World0),
         Apart = ?W:forget(changed(100, ?W:cut(a, b, World0))),
         World = ?W:settle(3, ?W:link(a, b, Apart)),
         [?assertEqual(?W:value(a, Key, World), ?W:value(b, Key, World))
          || Key <- lists:seq(1, 1000)],
         ?assert(?W:bytes(World) * 10 =< Whole, {?W:bytes(World), Whole})
     end}.

stores_with_nothing_in_common_send_little_more_than_themselves_test_() ->
    {timeout, 60,
     fun() ->
         World0 = filled(1, 500, [a], filled(501, 1000, [b], ?W:new([a, b], #{}))),
         Whole = whole(1000, a, World0) + whole(1000, b, World0),
         World = ?W:settle(3, ?W:link(a, b, ?W:forget(World0))),
         ?assertEqual(1000, length(?W:reply(a, keys, World))),
         ?assertEqual(1000, length(?W:reply(b, keys, World))),
         ?assert(?W:bytes(World) * 10 =< Whole * 12, {?W:bytes(World), Whole})
     end}.

a_store_that_is_empty_gets_all_test_() ->
    {timeout, 60,
     fun() ->
         World0 = filled(1000, [a], ?W:new([a, b], #{})),
         Whole = whole(1000, a, World0),
         World = ?W:settle(3, ?W:link(a, b, ?W:forget(World0))),
         ?assertEqual(1000, length(?W:reply(b, keys, World))),
         ?assert(?W:bytes(World) * 10 =< Whole * 12, {?W:bytes(World), Whole})
     end}.

%% A set without actors has nothing shorter to say than sums of its parts.
of_a_large_set_that_differs_in_little_little_is_sent_test() ->
    Elements = [<<N:128>> || N <- lists:seq(1, 5000)],
    Node = fun(Name, W) -> ?W:command(Name, {declare, set, clset}, W) end,
    World0 = lists:foldl(Node, ?W:link(a, b, ?W:new([a, b], #{})), [a, b]),
    World1 = ?W:settle(3, ?W:command(a, {update, set, {add_all, Elements}, 0}, World0)),
    Apart = lists:foldl(fun({Name, Operation}, W) ->
                            ?W:command(Name, {update, set, Operation, 0}, W)
                        end, ?W:cut(a, b, World1), [{a, {add, new}}, {b, {remove, <<7:128>>}}]),
    World = ?W:settle(3, ?W:link(a, b, ?W:forget(Apart))),
    Both = {ok, lists:sort([new | Elements -- [<<7:128>>]])},
    ?assertEqual({Both, Both}, {?W:value(a, set, World), ?W:value(b, set, World)}),
    ?assert(?W:bytes(World) * 5 =< erlang:external_size(Elements), ?W:bytes(World)).

%% What each would have to send if it sent its state, where it sent a delta.
deltas_of_128_clients_are_small_test_() ->
    {timeout, 120,
     fun() ->
         Nodes = [list_to_atom("n" ++ integer_to_list(N)) || N <- lists:seq(1001, 1128)],
         Options = #{sync_ms => 1000000},
         Increment = {update, count, increment, 0},
         Linked = lists:foldl(fun({A, B}, W) -> ?W:link(A, B, W) end, ?W:new(Nodes, Options),
                              [{A, B} || A <- Nodes, B <- Nodes, A < B]),
         Ready = lists:foldl(fun(N, W) -> ?W:command(N, {declare, count, gcounter}, W) end, Linked,
                             Nodes),
         World1 = ?W:settle(8, lists:foldl(fun(N, W) -> ?W:command(N, Increment, W) end,
                                           ?W:settle(1, Ready), Nodes)),
         World = lists:foldl(fun increment/2, ?W:forget(World1), lists:sublist(Nodes, 10)),
         ?assertEqual([{ok, 138}], lists:usort([?W:value(N, count, World) || N <- Nodes])),
         Messages = length([x || {_, _, {_, 1, {deltas, _, _, _, _}}} <- ?W:sent(World)]),
         State = maps:from_list([{{N, 1}, 1} || N <- Nodes]),
         ?assert(?W:bytes(World) * 10 =< Messages * erlang:external_size(State),
                 {?W:bytes(World), Messages * erlang:external_size(State)})
     end}.

increment(Node, World) ->
    lists:foldl(fun(_, W) -> ?W:settle(0, ?W:tick(10, W)) end,
                ?W:command(Node, {update, count, increment, 0}, World), lists:seq(1, 10)).

%% Keys with sets of 40 elements, on all of these nodes, which are linked first.
filled(Count, Nodes, World) -> filled(1, Count, Nodes, World).

filled(From, To, Nodes, World0) ->
    World1 = lists:foldl(fun({A, B}, W) -> ?W:link(A, B, W) end, World0,
                         [{A, B} || A <- Nodes, B <- Nodes, A < B]),
    World = lists:foldl(fun(Key, W) ->
                            Elements = [<<Key:32, N:96>> || N <- lists:seq(1, 40)],
                            ?W:command(hd(Nodes), {update, Key, {add_all, Elements}, 0},
                                       ?W:command(hd(Nodes), {declare, Key, orset}, W))
                        end, World1, lists:seq(From, To)),
    ?W:settle(3, World).

%% So many keys get an element, half of them on either side.
changed(Count, World) ->
    lists:foldl(fun(N, W) ->
                    ?W:command(lists:nth(N rem 2 + 1, [a, b]), {update, 10 * N, {add, new}, 0}, W)
                end, World, lists:seq(1, Count)).

whole(Count, Node, World) ->
    lists:sum([erlang:external_size({Key, orset, Elements})
               || Key <- lists:seq(1, Count), {ok, Elements} <- [?W:value(Node, Key, World)]]).

%% The following hold without a periodic comparison.
both_sides_of_a_difference_are_told_at_once_test() ->
    World0 = filled(100, [a, b], ?W:new([a, b], #{sync_ms => 1000000000})),
    Apart = lists:foldl(fun(Node, W) -> ?W:command(Node, {update, 7, {add, Node}, 0}, W) end,
                        ?W:cut(a, b, World0), [a, b]),
    World = ?W:settle(3, ?W:link(a, b, Apart)),
    {ok, Elements} = ?W:value(a, 7, World),
    ?assertEqual([true, true], [lists:member(Node, Elements) || Node <- [a, b]]),
    ?assertEqual({ok, Elements}, ?W:value(b, 7, World)).

what_did_not_fit_into_a_buffer_is_compared_when_it_is_empty_test() ->
    World0 = joined([{a, b}], ?W:new([a, b], #{waiting_max => 1, sync_ms => 1000000000})),
    World = lists:foldl(fun({Key, Operation}, W) ->
                            ?W:command(a, {update, Key, Operation, 0}, W)
                        end, World0, [{count, increment}, {set, {add, 1}}, {register, {set, 1}},
                                      {map, {update, f, orset, {add, 1}}}]),
    End = ?W:settle(10, World),
    [?assertEqual(?W:value(a, Key, End), ?W:value(b, Key, End)) || {Key, _} <- ?KEYS].

%% Six megabytes of them. Those that do not fit into an answer are still different, and come later.
many_large_digests_are_sent_by_and_by_test_() ->
    {timeout, 120,
     fun() ->
         Counts = maps:from_list([{{n, Run}, 1} || Run <- lists:seq(1, 5000)]),
         Keys = lists:seq(1, 100),
         World0 = ?W:new([a, b], #{kept => [{Key, gcounter, Counts} || Key <- Keys]}),
         Apart = lists:foldl(fun(Key, W) ->
                                 Node = lists:nth(Key rem 2 + 1, [a, b]),
                                 ?W:command(Node, {update, Key, increment, 0}, W)
                             end, World0, Keys),
         %% One comparison.
         World1 = ?W:settle(0, ?W:link(a, b, ?W:forget(Apart))),
         Largest = lists:max(digests(World1)),
         ?assert(Largest > 4000000, Largest),
         ?assert(Largest < 4500000, Largest),
         World = ?W:settle(4, World1),
         [?assertEqual([{ok, 5001}, {ok, 5001}], [?W:value(Node, Key, World) || Node <- [a, b]])
          || Key <- Keys]
     end}.

digests(World) ->
    [erlang:external_size(Digests)
     || {_, _, {weft_crdt, 1, {digests, _, Digests}}} <- ?W:sent(World)].

%% Keys of two types, for example. Here no answer makes them equal.
keys_that_stay_different_do_not_hold_up_others_test() ->
    Keys = lists:seq(1, 100),
    Entries = weft_crdt_entries:learn_all([{Key, gcounter, #{{a, 1} => 1}} || Key <- Keys],
                                          weft_crdt_entries:new(1000)),
    {ranges, [{From, Until, _, _}]} = weft_crdt_compare:root(weft_crdt_ranges:new()),
    Items = {items, [{From, Until, [{Key, other} || Key <- Keys]}]},
    Firsts = [begin
                  {[], [{digests, true, [{First, _, _} | _]}], [], _} =
                      weft_crdt_exchange:answer(Items, Turn, Entries),
                  First
              end || Turn <- Keys],
    ?assert(length(lists:usort(Firsts)) > 10).

%% A neighbour that has little of each key asks for all at once; it gets no more than that.
small_digests_are_not_answered_by_many_large_ones_test() ->
    Counts = maps:from_list([{{n, Run}, 1} || Run <- lists:seq(1, 10000)]),
    Keys = lists:seq(1, 10),
    Entries = weft_crdt_entries:learn_all([{Key, gcounter, Counts} || Key <- Keys],
                                          weft_crdt_entries:new(1000)),
    Given = [{Key, gcounter, #{{a, 1} => 1}} || Key <- Keys],
    {Offers, [{digests, false, Back}], [], _} =
        weft_crdt_exchange:answer({digests, true, Given}, 0, Entries),
    ?assertEqual({10, 1}, {length(Offers), length(Back)}).

%% Of what only one neighbour asked for, the sender does not say that others get it.
what_one_asked_for_is_passed_on_test() ->
    World0 = joined([{a, b}, {a, c}, {b, c}], ?W:new([a, b, c], #{sync_ms => 1000000000})),
    Item = {count, pncounter, #{{z, 1} => {5, 0}}},
    Deltas = fun(Shared, Own) ->
                 Msg = {weft_crdt, 1, {deltas, 1, weft_crdt_peers:marks([c]), Shared, Own}},
                 World = ?W:tick(10, ?W:event(a, {message, b, Msg}, ?W:forget(World0))),
                 [To || {a, To, {_, 1, {deltas, _, _, _, _}}} <- ?W:sent(World)]
             end,
    ?assertEqual({[], [c]}, {Deltas([Item], []), Deltas([], [Item])}).

what_is_shared_and_asked_for_is_sent_as_asked_for_test() ->
    Buffer = lists:foldl(fun(Kind, B) ->
                             weft_crdt_buffer:add(k, gcounter, #{a => 1}, Kind, 10, B)
                         end, weft_crdt_buffer:new(0), [shared, own, shared]),
    ?assertMatch({1, [], [{k, gcounter, _}], _}, weft_crdt_buffer:next(1000, Buffer)).

%% --- slow links and losses --------------------------------------------------------------------

%% For three minutes nothing arrives at b. All that b says arrives: it looks for what it lacks, with
%% a key and without it.
a_slow_link_carries_a_large_state_once_test() ->
    Large = binary:copy(<<1>>, 200000),
    [begin
         World0 = ?W:settle(2, ?W:link(a, b, register_on(Nodes, ?W:new([a, b], #{})))),
         World1 = ?W:tick(10, ?W:command(a, {update, r, {set, Large}, 1}, ?W:forget(World0))),
         World2 = lists:foldl(fun(_, W) -> ?W:one_way(b, a, ?W:tick(3000, W)) end, World1,
                              lists:seq(1, 60)),
         World = ?W:settle(10, ?W:one_way(a, b, World2)),
         ?assertEqual({ok, Large}, ?W:value(b, r, World)),
         ?assertEqual(1, length(larger_than(100000, World)))
     end || Nodes <- [[a], [a, b]]].

%% Nothing is found by comparison here.
what_was_lost_is_sent_again_when_that_is_known_test() ->
    World0 = ?W:settle(2, ?W:link(a, b, register_on([a, b], ?W:new([a, b],
                                                                   #{sync_ms => 1000000000})))),
    World1 = ?W:tick(10, ?W:command(a, {update, r, {set, 7}, 1}, ?W:forget(World0))),
    [{a, b, {weft_crdt, 1, {deltas, Seq, _, [_], []}}}] = ?W:sent(World1),
    World2 = ?W:tick(2000, ?W:lose(0, World1)),
    [_, {a, b, {weft_crdt, 1, {deltas, Question, <<>>, [], []}}}] = ?W:sent(World2),
    ?assert(Question > Seq),
    ?assertEqual({ok, undefined}, ?W:value(b, r, World2)),
    World = ?W:one_way(a, b, ?W:one_way(b, a, ?W:one_way(a, b, World2))),
    ?assertEqual({ok, 7}, ?W:value(b, r, World)).

register_on(Nodes, World) ->
    lists:foldl(fun(Node, W) -> ?W:command(Node, {declare, r, lww_register}, W) end, World, Nodes).

larger_than(Bytes, World) ->
    [Msg || {_, _, Msg} <- ?W:sent(World), erlang:external_size(Msg) > Bytes].

%% --- many neighbours --------------------------------------------------------------------------

with_many_neighbours_few_are_served_test() ->
    Nodes = [list_to_atom("n" ++ integer_to_list(N)) || N <- lists:seq(1001, 1100)],
    Reached = fun Reach(Known) ->
                  case lists:usort(Known ++ lists:append([weft_crdt_peers:picks(N, Nodes -- [N])
                                                          || N <- Known])) of
                      Known -> Known;
                      More -> Reach(More)
                  end
              end,
    ?assertEqual(7, length(weft_crdt_peers:picks(n1050, Nodes -- [n1050]))),
    ?assertEqual(Nodes, Reached([n1050])).

%% --- bounds and bad messages ------------------------------------------------------------------

a_neighbour_that_does_not_answer_costs_a_bounded_buffer_test() ->
    World0 = joined([{a, b}], ?W:new([a, b], #{waiting_max => 10})),
    World = lists:foldl(fun(Key, W) ->
                            ?W:command(a, {update, Key, increment, 0},
                                       ?W:command(a, {declare, Key, gcounter}, W))
                        end, World0, lists:seq(1, 100)),
    #{unacknowledged := #{b := Waiting}} = ?W:reply(a, info, World),
    ?assertEqual(10, Waiting),
    ?assertEqual(100, length([K || {K, gcounter} <- ?W:reply(b, keys, ?W:settle(World))])).

%% It is asked for half an hour, and then given up.
a_neighbour_that_never_acknowledges_ends_nothing_test() ->
    World0 = ?W:command(a, {update, count, increment, 0}, joined([{a, b}], ?W:new([a, b], #{}))),
    World1 = lists:foldl(fun(_, W) -> ?W:tick(30000, W) end, World0, lists:seq(1, 70)),
    ?assertMatch(#{unacknowledged := #{b := 0}}, ?W:reply(a, info, World1)),
    World = ?W:command(a, {update, count, increment, 0}, World1),
    ?assertEqual({ok, 2}, ?W:value(b, count, ?W:settle(World))).

an_unknown_command_is_answered_test() ->
    ?assertEqual({error, {unknown_command, what}}, ?W:reply(a, what, ?W:new([a], #{}))).

too_many_keys_are_refused_test() ->
    World = joined([{a, b}], ?W:new([a, b], #{keys_max => 4})),
    ?assertEqual({error, {too_many_keys, 4}}, ?W:reply(a, {declare, more, orset}, World)).

too_large_an_operation_is_refused_test() ->
    World = declared(?W:new([a], #{operation_bytes => 100})),
    ?assertMatch({error, {too_large, _, 100}},
                 ?W:reply(a, {update, set, {add, binary:copy(<<1>>, 200)}, 0}, World)).

keys_of_two_types_are_told_and_stay_apart_test() ->
    World0 = ?W:command(b, {declare, k, gcounter},
                        ?W:command(a, {declare, k, orset}, ?W:new([a, b], #{}))),
    World1 = ?W:link(a, b, ?W:command(b, {update, k, increment, 0},
                                      ?W:command(a, {update, k, {add, 1}, 0}, World0))),
    World = ?W:settle(World1),
    ?assertEqual({{ok, [1]}, {ok, 1}}, {?W:value(a, k, World), ?W:value(b, k, World)}),
    ?assertMatch([{refused, _, {k, {other_type, _}}} | _], ?W:warnings(World)),
    ?assertEqual(2, length(?W:warnings(World))).

another_version_is_ignored_test() ->
    World = joined([{a, b}], ?W:new([a, b], #{})),
    Later = ?W:event(a, {message, b, {weft_crdt, 2, {deltas, 1, <<>>, [], []}}}, World),
    ?assertEqual(?W:sent(World), ?W:sent(Later)).

malformed_messages_are_refused_test_() ->
    {timeout, 1200, ?_assert(proper:quickcheck(refuses(), [{numtests, 5 * count()}, quiet]))}.

refuses() ->
    ?FORALL(Msgs, list(message()),
            begin
                World0 = joined([{a, b}], ?W:new([a, b], #{})),
                World = lists:foldl(fun(Msg, W) -> ?W:event(a, {message, b, {weft_crdt, 1, Msg}}, W)
                                    end, World0, Msgs),
                ?W:value(a, count, ?W:settle(2, World)) =/= error
            end).

message() ->
    Bad = ?W:bad(),
    List = oneof([Bad, list(Bad), [Bad | Bad]]),
    Key = oneof([count, set, Bad]),
    Type = oneof([pncounter, orset, ormap, lww_register, Bad]),
    Place = oneof([0, 7, 16#100000000, Bad]),
    Actor = #{Bad => {list({range(-1, 5), range(-1, 5)}), oneof([Bad, #{1 => Bad}])}},
    Item = {Key, Type, oneof([Bad, #{Bad => Bad}, Actor])},
    oneof([Bad, {deltas, oneof([1, Bad]), oneof([<<>>, Bad]), oneof([List, [Item]]),
                 oneof([List, [Item]])},
           {ack, Bad}, {serve, Bad}, {wants, oneof([List, [Key]])},
           {ranges, oneof([List, [{Place, Place, oneof([0, 5, Bad]), oneof([0, Bad])}]])},
           {items, oneof([List, [{Place, Place, oneof([List, [{Key, Bad}]])}]])},
           {digests, oneof([true, Bad]), oneof([List, [Item]])}]).

%% Else one message with the whole range two thousand times would ask for all keys that often.
ranges_that_overlap_are_refused_test() ->
    Whole = 16#100000000,
    Ranges = weft_crdt_ranges:put(k, 1, weft_crdt_ranges:new()),
    [?assertEqual(error, weft_crdt_compare:Kind(List, Ranges))
     || {Kind, List} <- [{ranges, [{0, Whole, 0, 1}, {0, Whole, 0, 2}]},
                         {ranges, [{5, 9, 0, 1}, {0, 6, 0, 1}]},
                         {items, [{0, Whole, []}, {0, Whole, []}]}]],
    ?assertMatch({ok, [], [k]}, weft_crdt_compare:ranges([{9, Whole, 0, 1}, {0, 9, 0, 1}],
                                                         Ranges)).

a_flood_of_comparisons_is_not_answered_test() ->
    World0 = ?W:forget(joined([{a, b}], ?W:new([a, b], #{}))),
    Flood = lists:foldl(fun(_, W) ->
                            ?W:event(a, {message, b, {weft_crdt, 1, {wants, [count]}}}, W)
                        end, World0, lists:seq(1, 1000)),
    #{refused := Refused} = ?W:reply(a, info, Flood),
    ?assertEqual(800, Refused),
    ?assertMatch(#{refused := 800}, ?W:reply(a, info, ?W:event(
                     a, {message, b, {weft_crdt, 1, {wants, []}}}, ?W:tick(1000, Flood)))).

%% --- readers ----------------------------------------------------------------------------------

a_reader_waits_for_its_threshold_test() ->
    Read = {read, count, {at_least, 2}, 1000, self()},
    World0 = ?W:command(a, Read, joined([{a, b}], ?W:new([a, b], #{}))),
    World1 = ?W:settle(1, ?W:command(b, {update, count, increment, 0}, World0)),
    ?assertMatch(#{waiting := 0}, ?W:reply(a, info, World1)),
    %% Nothing has changed for some time.
    World2 = ?W:command(a, Read, ?W:tick(20, ?W:tick(20, World1))),
    ?assertMatch(#{waiting := 1}, ?W:reply(a, info, World2)),
    World3 = ?W:command(a, {update, count, increment, 0}, World2),
    ?assertMatch(#{waiting := 0}, ?W:reply(a, info, World3)),
    ?assertEqual({ok, 2}, ?W:reply(a, Read, World3)).

a_reader_that_waits_in_vain_is_told_test() ->
    World0 = ?W:command(a, {read, set, {contains, x}, 1000, self()}, declared(?W:new([a], #{}))),
    ?assertMatch(#{waiting := 1}, ?W:reply(a, info, World0)),
    ?assertMatch(#{waiting := 0}, ?W:reply(a, info, ?W:tick(1000, World0))),
    ?assertEqual({error, {bad_threshold, x}}, ?W:reply(a, {read, set, x, 10, self()}, World0)),
    ?assertEqual({error, undeclared}, ?W:reply(a, {read, no, {is, 1}, 10, self()}, World0)).

thresholds_test_() ->
    [?_assertEqual({Threshold, Value, Is},
                   {Threshold, Value, weft_crdt_threshold:is_passed(Threshold, Value)})
     || {Threshold, Value, Is} <-
            [{{at_least, 2}, 2, true}, {{at_least, 2}, 1, false}, {{at_least, 2}, [a], false},
             {{at_least, 1}, [a], true}, {{at_least, 1}, #{}, false}, {{contains, a}, [a], true},
             {{contains, 1}, [1.0], false}, {{contains, a}, #{a => 1}, true},
             {{contains, a}, 1, false}, {{is, true}, true, true}, {{is, 1}, 1.0, false}]].

%% A register may have any value, and a caller any time.
no_value_and_no_time_ends_the_store_test() ->
    [?assertEqual({Threshold, false},
                  {Threshold, weft_crdt_threshold:is_passed(Threshold, [x | y])})
     || Threshold <- [{at_least, 1}, {contains, z}, {is, []}]],
    {_, [{after_ms, Ms, _} | _]} =
        weft_crdt_readers:command({read, r, {is, 1}, 1 bsl 80, self()}, ref, fun(_) -> {ok, 0} end,
                                  weft_crdt_readers:new()),
    Timer = erlang:send_after(Ms, self(), never),
    ?assert(is_integer(erlang:cancel_timer(Timer))).

subscribers_hear_of_many_changes_at_once_test() ->
    World0 = ?W:command(a, {subscribe, count, self()}, declared(?W:new([a], #{}))),
    World1 = lists:foldl(fun(_, W) -> ?W:command(a, {update, count, increment, 0}, W) end, World0,
                         lists:seq(1, 50)),
    World2 = ?W:tick(100, World1),
    ?assertEqual([{self(), {weft_crdt, count, 50}}], ?W:told(World2)),
    Gone = ?W:event(a, {notice, {gone, self(), normal}}, World2),
    ?assertMatch(#{subscriptions := 0}, ?W:reply(a, info, Gone)).

%% One that was killed while it waited has no place any more, whatever time it had.
a_reader_that_has_ended_does_not_wait_test() ->
    World = ?W:command(a, {read, set, {contains, x}, 1 bsl 60, self()},
                       declared(?W:new([a], #{}))),
    ?assertMatch(#{waiting := 1}, ?W:reply(a, info, World)),
    Gone = ?W:event(a, {notice, {gone, self(), killed}}, World),
    ?assertMatch(#{waiting := 0}, ?W:reply(a, info, Gone)).

who_follows_a_key_is_told_when_he_asks_test() ->
    Changed = fun(W) -> ?W:tick(100, ?W:command(a, {update, count, increment, 0}, W)) end,
    World = Changed(Changed(Changed(?W:command(a, {follow, count, self()},
                                               declared(?W:new([a], #{})))))),
    ?assertEqual([1], [Value || {_, {weft_crdt, count, Value}} <- ?W:told(World)]),
    Next = ?W:event(a, {notice, {next, count, self()}}, World),
    ?assertEqual([1, 3], [Value || {_, {weft_crdt, count, Value}} <- ?W:told(Next)]).

what_is_derived_stays_here_test() ->
    World0 = joined([{a, b}], ?W:new([a, b], #{})),
    World = ?W:settle(2, ?W:command(a, {derive, sum, 7}, World0)),
    ?assertEqual({{ok, 7}, error}, {?W:value(a, sum, World), ?W:value(b, sum, World)}),
    ?assertEqual({error, declared}, ?W:reply(a, {derive, set, 7}, World)),
    ?assertEqual({error, derived}, ?W:reply(a, {declare, sum, orset}, World)).

%% --- what is kept -----------------------------------------------------------------------------

%% What is new is kept before it is answered, and a store that begins with it has the same.
what_is_new_is_kept_and_read_again_test() ->
    {Core0, _} = weft_crdt_core:init(a, #{durable => true, incarnation => 1,
                                          declared => [{set, orset}]}),
    {Core1, Effects1} = update({add, 1}, Core0),
    ?assertMatch([{view, kept, {set, orset, _}}, {reply, _, ok} | _], Effects1),
    {_, Effects2} = update({remove, 1}, Core1),
    {_, Effects3} = update({remove, 1}, Core0),
    ?assertMatch([{reply, _, ok}], Effects3),
    Kept = fun(Effects) -> [Item || {view, kept, Item} <- Effects] end,
    Restarted = fun(Items) -> {Core, _} = weft_crdt_core:init(a, #{kept => Items}), Core end,
    ?assertEqual({ok, [1]}, weft_crdt_core:value(set, Restarted(Kept(Effects1)))),
    ?assertEqual({ok, []}, weft_crdt_core:value(set, Restarted(Kept(Effects1 ++ Effects2)))).

%% What was read from the file is in the keys, and not beside them as long as the store runs.
what_was_kept_is_held_once_test() ->
    {Core, _} = weft_crdt_core:init(a, #{kept => [{r, lww_register, {1, b, lists:seq(1, 9999)}}]}),
    {Now, _} = weft_crdt_core:handle({command, ref, {update, r, {set, 1}, 2}}, 0, Core),
    ?assert(erlang:external_size(Now) < 9999).

update(Operation, Core) ->
    weft_crdt_core:handle({command, ref, {update, set, Operation, 0}}, 0, Core).
