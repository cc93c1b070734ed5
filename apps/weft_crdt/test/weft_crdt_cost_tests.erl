%% SPDX-License-Identifier: Apache-2.0
%% @doc What the guide and decisions 0028 and 0029 say that things cost: messages for a change among
%% many neighbours, what each actor leaves in a key, and what is left when it is retired.
-module(weft_crdt_cost_tests).

-include_lib("eunit/include/eunit.hrl").

-define(WORLD, weft_crdt_world).

%% A tree has one message for each other node.
a_change_among_many_neighbours_costs_some_times_a_tree_test_() ->
    {timeout, 60,
     fun() ->
         ?assertEqual([{8, 7}, {16, 49}, {32, 137}],
                      [{Count, length(deltas(changed([hd(names(Count))], Count)))}
                       || Count <- [8, 16, 32]])
     end}.

%% While all nodes change something, messages carry several changes, which a tree sends one by one.
many_changes_at_once_cost_as_many_messages_as_a_tree_test_() ->
    {timeout, 60,
     fun() ->
         Messages = length(deltas(changed(names(32), 32))),
         ?assert(Messages < 1.2 * 32 * 31)
     end}.

names(Count) ->
    [list_to_atom("node" ++ integer_to_list(100 + N)) || N <- lists:seq(1, Count)].

%% All are neighbours of all.
changed(Who, Count) ->
    Names = names(Count),
    Declared = lists:foldl(fun(Name, World) ->
                               ?WORLD:command(Name, {declare, set, orset}, World)
                           end, ?WORLD:new(Names, #{}), Names),
    Linked = lists:foldl(fun({A, B}, World) -> ?WORLD:link(A, B, World) end, Declared,
                         [{A, B} || A <- Names, B <- Names, A < B]),
    World = lists:foldl(fun(Name, W) -> ?WORLD:command(Name, {update, set, {add, Name}, 0}, W) end,
                        ?WORLD:forget(?WORLD:settle(2, Linked)), Who),
    %% In the order in which it was sent.
    After = lists:foldl(fun(_, W) -> ?WORLD:settle(0, ?WORLD:tick(6, W)) end, World,
                        lists:seq(1, 40)),
    ?assertEqual([Who], lists:usort([Value || Name <- Names,
                                              {ok, Value} <- [?WORLD:value(Name, set, After)]])),
    After.

deltas(World) ->
    [Msg || {_, _, {weft_crdt, 1, {deltas, _, _, _, _} = Msg}} <- ?WORLD:sent(World)].

what_an_actor_leaves_test_() ->
    {timeout, 60, fun what_an_actor_leaves/0}.

what_an_actor_leaves() ->
    Costs = [{Type, left(Type, Operation)}
             || {Type, Operation} <- [{gcounter, increment}, {pncounter, increment},
                                      {orset, {add, x}}, {mv_register, {set, x}},
                                      {ew_flag, enable}]],
    ?assertEqual([], [Cost || {_, {Sent, Words}} = Cost <- Costs,
                              Sent < 35 orelse Sent > 60 orelse Words > 150 / 8]),
    {Register, _} = left(lww_register, {set, x}),
    ?assert(Register < 1).

%% Bytes in a message and words in memory for each of a thousand.
left(Type, Operation) ->
    [{FewBytes, FewWords}, {ManyBytes, ManyWords}] =
        [begin
             {Module, State} = of_runs(Runs, Type, Operation),
             {erlang:external_size(Module:pack(State)), erts_debug:flat_size(State)}
         end || Runs <- [10, 1010]],
    {(ManyBytes - FewBytes) / 1000, (ManyWords - FewWords) / 1000}.

of_runs(Runs, Type, Operation) ->
    {ok, Module} = weft_crdt_type:module(Type),
    {Module, lists:foldl(fun(N, Before) ->
                             Who = {'shop@shop-1.example.com', 1795530000000000 + N},
                             {ok, Delta} = Module:mutate(Operation, {Who, N}, Before),
                             Module:merge(Before, Delta)
                         end, Module:new(), lists:seq(1, Runs))}.

%% Of a thousand runs in a key, all of which have ended; and of the table of a hundred such nodes,
%% which a store has once.
what_retired_runs_leave_test_() ->
    {timeout, 60, fun what_retired_runs_leave/0}.

what_retired_runs_leave() ->
    {ok, Table} = weft_crdt_retired:next(#{'shop@shop-1.example.com' => 1795530000001000}, [],
                                         weft_crdt_retired:new()),
    Costs = [begin
                 {Module, Before} = of_runs(1000, Type, Operation),
                 After = Module:retire(Table, Before),
                 ?assertEqual(Module:value(Before), Module:value(After)),
                 {Type, erlang:external_size(Module:pack(Before)),
                  erlang:external_size(Module:pack(After))}
             end || {Type, Operation} <- [{gcounter, increment}, {pncounter, increment},
                                          {orset, {add, x}}, {mv_register, {set, x}},
                                          {ew_flag, enable}]],
    ?assertEqual([], [Cost || {_, Before, After} = Cost <- Costs,
                              Before < 35000 orelse Before > 60000 orelse After > 100], Costs),
    Nodes = maps:from_list([{list_to_atom("shop@shop-" ++ integer_to_list(N) ++ ".example.com"),
                             1795530000001000} || N <- lists:seq(100, 199)]),
    {ok, Hundred} = weft_crdt_retired:next(Nodes, maps:keys(Nodes), weft_crdt_retired:new()),
    ?assert(erlang:external_size(Hundred) < 6000, erlang:external_size(Hundred)).
