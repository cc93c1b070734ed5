%% SPDX-License-Identifier: Apache-2.0
%% @doc What the replicas of a partition keep: tokens, incarnations, leases, requests that come
%% twice.
-module(weft_names_strong_table_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(TABLE, weft_names_strong_table).
-define(A, 'a@x').
-define(B, 'b@x').

a_name_has_one_owner_test() ->
    {{ok, Lease, [{1, {registered, 10}}]}, T1} = write(?A, {1, 0}, 0, [{1, reg(x, p)}], 10, new()),
    ?assertEqual(10, Lease),
    {{ok, 11, [{1, {taken, p, 10}}]}, T2} = write(?B, {1, 0}, 0, [{1, reg(x, q)}], 11, T1),
    ?assertEqual({p, 10, meta}, ?TABLE:find(x, T2)),
    {{ok, 10, [{2, removed}]}, T3} = write(?A, {1, 0}, 10, [{2, {unregister, x, 10}}], 12, T2),
    ?assertEqual(undefined, ?TABLE:find(x, T3)),
    {{ok, 11, [{2, {registered, 13}}]}, _} = write(?B, {1, 0}, 11, [{2, reg(x, q)}], 13, T3).

only_the_owner_with_the_token_changes_test() ->
    {_, T} = write(?A, {1, 0}, 0, [{1, reg(x, p)}], 10, new()),
    [?assertMatch({{ok, _, [{9, absent}]}, _}, write(Node, {1, 0}, Lease, [{9, Request}], 11, T))
     || {Node, Lease, Request} <- [{?B, 0, {unregister, x, 10}}, {?A, 10, {unregister, x, 9}},
                                   {?B, 0, {update, x, 10, q, meta}},
                                   {?A, 10, {update, x, 9, q, meta}}]],
    {{ok, 10, [{2, {registered, 11}}]}, T2} =
        write(?A, {1, 0}, 10, [{2, {update, x, 10, q, new}}], 11, T),
    ?assertEqual({q, 11, new}, ?TABLE:find(x, T2)).

a_request_that_comes_twice_is_carried_out_once_test() ->
    {{ok, 10, First}, T1} = write(?A, {1, 0}, 0, [{1, reg(x, p)}], 10, new()),
    {_, T2} = write(?A, {1, 0}, 10, [{2, {unregister, x, 10}}], 11, T1),
    ?assertMatch({{ok, 10, First}, _}, write(?A, {1, 0}, 10, [{1, reg(x, p)}], 12, T2)),
    %% The owner waits for nothing below 3 any more. What overtakes that knows less.
    {_, T3} = ?TABLE:run({write, ?A, {1, 0}, 10, 3, [{3, reg(y, p)}]}, 13, T2),
    [?assertEqual({{ok, 10, []}, T3},
                  ?TABLE:run({write, ?A, {1, 0}, 10, Oldest, [{1, reg(x, p)}]}, 14, T3))
     || Oldest <- [1, 3]].

a_name_that_its_owner_does_not_know_of_is_replaced_test() ->
    {_, T1} = write(?A, {1, 0}, 0, [{1, reg(x, p)}], 10, new()),
    {{ok, 10, [{2, {yours, p, 10}}]}, T2} = write(?A, {1, 0}, 10, [{2, reg(x, q)}], 11, T1),
    ?assertEqual({p, 10, meta}, ?TABLE:find(x, T2)),
    {{ok, 10, [{3, {registered, 12}}]}, T3} =
        write(?A, {1, 0}, 10, [{3, {register, x, q, meta, 10}}], 12, T2),
    ?assertEqual({q, 12, meta}, ?TABLE:find(x, T3)),
    %% Only by its owner, and only what he was told of; if that has gone, the name is free.
    [?assertMatch({{ok, _, [{4, {Answer, q, 12}}]}, _},
                  write(Node, {1, 0}, 0, [{4, {register, x, r, meta, Token}}], 13, T3))
     || {Answer, Node, Token} <- [{taken, ?B, 12}, {yours, ?A, 10}, {yours, ?A, 0}]],
    {_, T4} = write(?A, {1, 0}, 10, [{4, {unregister, x, 12}}], 13, T3),
    ?assertMatch({{ok, 10, [{5, {registered, 14}}]}, _},
                 write(?A, {1, 0}, 10, [{5, {register, x, r, meta, 12}}], 14, T4)).

a_later_incarnation_ends_an_earlier_one_test() ->
    {_, T1} = write(?A, {1, 0}, 0, [{1, reg(x, p)}], 10, new()),
    {{ok, 11, _}, T2} = write(?A, {1, 1}, 0, [{2, reg(y, q)}], 11, T1),
    ?assertEqual(undefined, ?TABLE:find(x, T2)),
    ?assertEqual([{?A, {1, 1}}], ?TABLE:owners(T2)),
    [?assertMatch({stale, T2}, write(?A, Incarnation, Lease, [{3, reg(z, r)}], 12, T2))
     || {Incarnation, Lease} <- [{{1, 0}, 0}, {{1, 0}, 10}, {{0, 9}, 0}, {{1, 1}, 10},
                                 {{2, 0}, 11}]].

a_lease_that_is_not_known_is_stale_test() ->
    ?assertMatch({stale, _}, write(?A, {1, 0}, 10, [{1, reg(x, p)}], 11, new())).

expiry_frees_all_names_of_that_incarnation_test() ->
    {_, T1} = write(?A, {1, 0}, 0, [{1, reg(x, p)}, {2, reg(y, p)}], 10, new()),
    ?assertEqual({ok, T1}, ?TABLE:run({expire, ?A, {1, 1}}, 11, T1)),
    {ok, T2} = ?TABLE:run({expire, ?A, {1, 0}}, 11, T1),
    ?assertEqual({0, []}, {?TABLE:count(T2), ?TABLE:owners(T2)}).

what_the_owner_believes_is_compared_test() ->
    {_, T} = write(?A, {1, 0}, 0, [{1, reg(x, p)}, {2, reg(y, p)}], 10, new()),
    ?assertEqual(same, ?TABLE:digest(?A, {{1, 0}, 10}, 20, T)),
    ?assertEqual({names, #{x => 10, y => 10}}, ?TABLE:digest(?A, {{1, 0}, 10}, 10, T)),
    [?assertEqual(stale, ?TABLE:digest(Node, {Incarnation, Lease}, 20, T))
     || {Node, Incarnation, Lease} <- [{?B, {1, 0}, 10}, {?A, {1, 1}, 10}, {?A, {1, 0}, 9}]].

%% --- any operations ---------------------------------------------------------------------------

always_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(prop_always(), [{numtests, 300}, {to_file, user}]))}.

%% Tokens of a name only grow; the sums that owners are compared by are those of their names; a name
%% is its owner's and nobody else's.
prop_always() ->
    ?FORALL(Ops, list(op()),
            begin
                {_, Table, Tokens} = lists:foldl(fun step/2, {1, new(), []}, Ops),
                lists:all(fun({Name, List}) -> lists:usort(List) =:= lists:reverse(List)
                                                   andalso Name =/= none end, grouped(Tokens))
                    andalso lists:all(fun({Node, Of}) -> is_consistent(Node, Of, Table) end,
                                      ?TABLE:owners(Table))
                    andalso ?TABLE:count(Table)
                    =:= lists:sum([map_size(held(N, L, Table)) || {N, L} <- ?TABLE:owners(Table)])
            end).

step(Op0, {No, Table0, Tokens}) ->
    Op = with_lease(Op0, Table0),
    {Result, Table} = ?TABLE:run(Op, No, Table0),
    New = case {Op, Result} of
              {{write, _, _, _, _, Requests}, {ok, _, Results}} ->
                  [{element(2, Request), Token}
                   || {{Id, Request}, {Id, {registered, Token}}} <- lists:zip(Requests, Results),
                      Token =:= No];
              _ -> []
          end,
    {No + 1, Table, New ++ Tokens}.

%% Half of the writes know their lease.
with_lease({write, Node, Incarnation, known, Oldest, Requests}, Table) ->
    {write, Node, Incarnation, lease(Node, Incarnation, Table), Oldest, Requests};
with_lease(Op, _Table) -> Op.

lease(Node, Incarnation, Table) ->
    case lists:member({Node, Incarnation}, ?TABLE:owners(Table)) of
        true ->
            Write = {write, Node, Incarnation, 0, 0, []},
            {{ok, Lease, []}, _} = ?TABLE:run(Write, 1 bsl 40, Table),
            Lease;
        false -> 0
    end.

is_consistent(Node, Incarnation, Table) ->
    Held = held(Node, Incarnation, Table),
    Lease = lease(Node, Incarnation, Table),
    same =:= ?TABLE:digest(Node, {Incarnation, Lease}, lists:sum(maps:values(Held)),
                           Table)
        andalso lists:all(fun({Name, Token}) ->
                              {Node, Token, meta} =:= ?TABLE:find(Name, Table)
                          end, maps:to_list(Held)).

held(Node, Incarnation, Table) ->
    case ?TABLE:digest(Node, {Incarnation, lease(Node, Incarnation, Table)}, -1, Table) of
        {names, Names} -> Names
    end.

grouped(Tokens) ->
    maps:to_list(lists:foldr(fun({Name, Token}, Acc) ->
                                 Acc#{Name => [Token | maps:get(Name, Acc, [])]}
                             end, #{}, Tokens)).

op() ->
    ?LET(Node, oneof([?A, ?B]),
         frequency([{1, {expire, Node, incarnation()}},
                    {8, ?LET(Requests, list(request(Node)),
                             {write, Node, incarnation(), oneof([known, 0, range(1, 20)]), 0,
                              one_for_each_name(lists:ukeysort(1, Requests))})}])).

%% Owners have one request for a name under way.
one_for_each_name(Requests) ->
    maps:values(maps:from_list([{element(2, Request), {Id, Request}}
                                || {Id, Request} <- Requests])).

incarnation() -> {1, range(0, 2)}.

request(Node) ->
    {range(1, 1000), oneof([{register, name(), Node, meta, range(0, 30)},
                            {update, name(), range(1, 30), Node, meta},
                            {unregister, name(), range(1, 30)}])}.

name() -> oneof([x, y, z]).

new() -> ?TABLE:new([{?A, 1}]).

reg(Name, Pid) -> {register, Name, Pid, meta, 0}.

write(Node, Incarnation, Lease, Requests, No, Table) ->
    ?TABLE:run({write, Node, Incarnation, Lease, 0, Requests}, No, Table).
