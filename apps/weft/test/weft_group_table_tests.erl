%% SPDX-License-Identifier: Apache-2.0
%% @doc The table of groups: what wins over what, that any order of merging has one outcome, and
%% that without concurrency it is a plain map.
-module(weft_group_table_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(A, {'a@h', 1}).
-define(B, {'b@h', 1}).
-define(NODES, ['a@h', 'b@h', 'c@h', 'd@h']).

of_two_creations_of_a_name_one_remains_whole_test() ->
    A = weft_group_table:create({g, ['a@h', 'c@h']}, ?A, weft_group_table:new()),
    B = weft_group_table:create({g, ['b@h', 'd@h']}, ?B, weft_group_table:new()),
    ?assertEqual(#{g => ['b@h', 'd@h']}, weft_group_table:groups(join(A, B))),
    ?assertEqual(#{g => ['b@h', 'd@h']}, weft_group_table:groups(join(B, A))).

changes_of_different_members_at_once_both_hold_test() ->
    Start = weft_group_table:create({g, ['a@h', 'b@h', 'c@h']}, ?A, weft_group_table:new()),
    Added = weft_group_table:change({g, in}, ['d@h'], ?A, Start),
    Removed = weft_group_table:change({g, out}, ['c@h'], ?B, Start),
    ?assertEqual(#{g => ['a@h', 'b@h', 'd@h']}, weft_group_table:groups(join(Added, Removed))).

the_later_change_of_one_member_counts_test() ->
    Start = weft_group_table:create({g, ['a@h', 'b@h']}, ?A, weft_group_table:new()),
    Removed = weft_group_table:change({g, out}, ['b@h'], ?A, Start),
    Again = weft_group_table:change({g, in}, ['b@h'], ?A, Removed),
    ?assertEqual(#{g => ['a@h', 'b@h']}, weft_group_table:groups(join(Removed, Again))).

an_addition_does_not_undo_a_deletion_it_knew_nothing_of_test() ->
    Start = weft_group_table:create({g, ['a@h', 'b@h']}, ?A, weft_group_table:new()),
    Deleted = weft_group_table:delete(g, ?A, Start),
    Added = weft_group_table:change({g, in}, ['c@h'], ?B, Start),
    ?assertEqual(#{}, weft_group_table:groups(join(Added, Deleted))),
    Anew = weft_group_table:create({g, ['b@h']}, ?B, join(Added, Deleted)),
    ?assertEqual(#{g => ['b@h']}, weft_group_table:groups(join(Deleted, Anew))).

a_deletion_says_of_which_creation_it_was_test() ->
    Start = weft_group_table:create({g, ['a@h', 'b@h']}, ?A, weft_group_table:new()),
    Created = weft_group_table:created(g, Start),
    Deleted = weft_group_table:delete(g, ?B, Start),
    ?assertEqual([none, {'b@h', Created}],
                 [weft_group_table:deleted(g, T) || T <- [Start, Deleted]]),
    Again = weft_group_table:create({g, ['a@h']}, ?A, Deleted),
    ?assertEqual([none, {'a@h', weft_group_table:created(g, Again)}],
                 [weft_group_table:deleted(g, T)
                  || T <- [Again, weft_group_table:delete(g, ?A, Again)]]),
    %% As an earlier state of the code has made it.
    {ok, {Version, deleted, _}} = weft_group_table:entry(g, Deleted),
    ?assertEqual({'b@h', unknown},
                 weft_group_table:deleted(g, weft_group_table:from_list(
                                               0, [{g, {Version, deleted, #{}}}]))).

what_is_configured_is_united_and_gives_way_to_any_change_test() ->
    One = weft_group_table:configured(#{g => ['a@h', 'b@h']}, weft_group_table:new()),
    Other = weft_group_table:configured(#{g => ['b@h', 'c@h']}, weft_group_table:new()),
    Both = join(One, Other),
    ?assertEqual(#{g => ['a@h', 'b@h', 'c@h']}, weft_group_table:groups(Both)),
    Removed = weft_group_table:change({g, out}, ['c@h'], ?A, Both),
    ?assertEqual(#{g => ['a@h', 'b@h']}, weft_group_table:groups(join(Other, Removed))),
    Deleted = weft_group_table:delete(g, ?A, Both),
    ?assertEqual(#{}, weft_group_table:groups(weft_group_table:configured(#{g => ['a@h']},
                                                                          Deleted))).

a_group_of_a_node_that_forgot_all_is_another_one_test() ->
    One = weft_group_table:create({g, ['a@h', 'b@h']}, {'a@h', 1}, weft_group_table:new()),
    Other = weft_group_table:create({g, ['a@h', 'c@h']}, {'a@h', 2}, weft_group_table:new()),
    ?assertEqual(#{g => ['a@h', 'c@h']}, weft_group_table:groups(join(Other, One))).

so_many_deleted_groups_are_remembered_test() ->
    Many = lists:foldl(fun(N, T) ->
                           weft_group_table:delete(N, ?A, weft_group_table:create({N, ['a@h']}, ?A,
                                                                                  T))
                       end, weft_group_table:new(), lists:seq(1, 1100)),
    Summary = weft_group_table:summary(Many),
    ?assertEqual(1024, map_size(Summary)),
    ?assertEqual({false, true}, {is_map_key(76, Summary), is_map_key(77, Summary)}).

so_many_former_members_are_remembered_test() ->
    Nodes = [list_to_atom("n" ++ integer_to_list(N) ++ "@h") || N <- lists:seq(1, 1100)],
    Start = weft_group_table:create({g, ['a@h' | Nodes]}, ?A, weft_group_table:new()),
    Removed = weft_group_table:change({g, out}, Nodes, ?A, Start),
    {ok, {_, alive, Known}} = weft_group_table:entry(g, Removed),
    ?assertEqual({1025, {ok, ['a@h']}}, {map_size(Known), weft_group_table:members(g, Removed)}).

a_full_table_takes_in_no_group_but_changes_and_deletions_test() ->
    Full = weft_group_table:configured(maps:from_list([{N, ['a@h']} || N <- lists:seq(1, 4096)]),
                                       weft_group_table:new()),
    ?assert(weft_group_table:is_full(Full)),
    Other = weft_group_table:create({new, ['b@h']}, ?B,
                                    weft_group_table:delete(1, ?B, Full)),
    {ok, New} = weft_group_table:entry(new, Other),
    ?assertEqual({full, Full}, weft_group_table:merge(new, New, Full)),
    {ok, Deleted} = weft_group_table:entry(1, Other),
    {changed, Less} = weft_group_table:merge(1, Deleted, Full),
    ?assertMatch({changed, _}, weft_group_table:merge(new, New, Less)).

any_order_of_merging_has_one_outcome_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_merge(), [{numtests, 500}, {to_file, user}]))}.

prop_merge() ->
    ?FORALL(Steps, list(step()),
            begin
                [T1, T2, T3] = Tables = maps:values(lists:foldl(fun step/2, start(), Steps)),
                All = join(join(T1, T2), T3),
                Orders = [join(T3, join(T2, T1)), join(join(T2, T3), T1), join(All, T2)],
                lists:all(fun(T) -> same(T, All) end, Orders)
                    andalso lists:all(fun(T) -> same(join(T, T), T) end, Tables)
            end).

%% Equal knowledge, and hashes that tell so.
same(T1, T2) ->
    weft_group_table:groups(T1) =:= weft_group_table:groups(T2)
        andalso weft_group_table:hash(T1) =:= weft_group_table:hash(T2)
        andalso weft_group_table:summary(T1) =:= weft_group_table:summary(T2).

without_concurrency_it_is_a_map_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_model(), [{numtests, 500}, {to_file, user}]))}.

%% Every replica learns of a step before the next one.
prop_model() ->
    ?FORALL(Steps, list(step()),
            begin
                {Table, Model} = lists:foldl(fun sequential/2, {weft_group_table:new(), #{}},
                                             [S || {_, Change} = S <- Steps, Change =/= learn]),
                weft_group_table:groups(Table) =:= Model
            end).

sequential({Node, Change}, {Table, Model}) ->
    {act(Change, {Node, 1}, Table), model(Change, Model)}.

model({create, G, Nodes}, Model) when not is_map_key(G, Model) -> Model#{G => lists:usort(Nodes)};
model({in, G, N}, Model) when is_map_key(G, Model) ->
    Model#{G := lists:usort([N | map_get(G, Model)])};
model({out, G, N}, Model) when is_map_key(G, Model) -> Model#{G := map_get(G, Model) -- [N]};
model({delete, G}, Model) -> maps:remove(G, Model);
model(_, Model) -> Model.

start() -> maps:from_list([{Node, weft_group_table:new()} || Node <- ['a@h', 'b@h', 'c@h']]).

step({Node, {learn, Other}}, Tables) ->
    Tables#{Node := join(map_get(Node, Tables), map_get(Other, Tables))};
step({Node, Change}, Tables) ->
    Tables#{Node := act(Change, {Node, 1}, map_get(Node, Tables))}.

act({create, G, Nodes}, Author, Table) ->
    case weft_group_table:members(G, Table) of
        error -> weft_group_table:create({G, lists:usort(Nodes)}, Author, Table);
        {ok, _} -> Table
    end;
act({delete, G}, Author, Table) ->
    if_alive(G, Table, fun() -> weft_group_table:delete(G, Author, Table) end);
act({learn, _}, _Author, Table) ->
    Table;
act({InOrOut, G, Node}, Author, Table) ->
    if_alive(G, Table, fun() -> weft_group_table:change({G, InOrOut}, [Node], Author, Table) end).

if_alive(G, Table, Fun) ->
    case weft_group_table:members(G, Table) of
        error -> Table;
        {ok, _} -> Fun()
    end.

join(T1, T2) ->
    maps:fold(fun(Name, _, T) ->
                  {ok, Entry} = weft_group_table:entry(Name, T2),
                  element(2, weft_group_table:merge(Name, Entry, T))
              end, T1, weft_group_table:summary(T2)).

step() ->
    {oneof(['a@h', 'b@h', 'c@h']),
     oneof([{create, group(), list(oneof(?NODES))}, {in, group(), oneof(?NODES)},
            {out, group(), oneof(?NODES)}, {delete, group()},
            {learn, oneof(['a@h', 'b@h', 'c@h'])}])}.

group() -> oneof([g1, g2]).
