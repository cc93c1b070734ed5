%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node owns: sums, watched processes, what differs from the replicas.
-module(weft_names_strong_holdings_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(HOLDINGS, weft_names_strong_holdings).

a_process_is_watched_as_long_as_there_is_a_reason_test() ->
    {H1, [{watch, p}]} = ?HOLDINGS:watch(p, {request, 1}, ?HOLDINGS:new()),
    {H2, [{view, {name, x}, {own, p, 7, meta, 0, exit}}]} = ?HOLDINGS:put(x, holding(0, p, 7), H1),
    {H3, []} = ?HOLDINGS:unwatch(p, {request, 1}, H2),
    {H4, [{unwatch, p}, {view, {name, x}, delete}]} = ?HOLDINGS:drop(x, H3),
    ?assertEqual(?HOLDINGS:new(), H4).

who_loses_a_name_is_told_as_he_wished_test() ->
    [?assertEqual([{unwatch, p}, {view, {name, x}, delete}, {notice, {lost, x, 7}}, Told],
                  element(2, ?HOLDINGS:lose(x, scope, owner(Holding#{on_lost := OnLost}))))
     || Holding <- [holding(0, p, 7)],
        {OnLost, Told} <- [{exit, {exit, p, {weft_names_lost, scope, x}}}, {kill, {exit, p, kill}},
                           {tell, {tell, p, {weft_names_lost, scope, x, 7}}}]].

what_is_new_or_just_being_changed_is_not_judged_test() ->
    Mine = owner(holding(0, p, 7)),
    ?assertEqual({[x], [{y, 5}]}, ?HOLDINGS:compare({0, 9, #{}}, #{y => 5}, Mine)),
    ?assertEqual({[], []}, ?HOLDINGS:compare({0, 9, #{}}, #{x => 7}, Mine)),
    ?assertEqual({[x], []}, ?HOLDINGS:compare({0, 9, #{}}, #{x => 6}, Mine)),
    ?assertEqual({[], [{y, 5}]}, ?HOLDINGS:compare({0, 6, #{}}, #{y => 5}, Mine)),
    ?assertEqual({[], []}, ?HOLDINGS:compare({0, 9, #{x => [], y => []}}, #{y => 5}, Mine)),
    ?assertEqual({[], []}, ?HOLDINGS:compare({1, 9, #{}}, #{}, Mine)).

sums_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_sums(), [{numtests, 200}, {to_file, user}]))}.

%% Whatever is put and dropped, the sum of a partition is that of the tokens of its names.
prop_sums() ->
    ?FORALL(Changes, list({oneof([put, drop]), range(1, 6), range(1, 100)}),
            begin
                {Holdings, Model} = lists:foldl(fun change/2, {?HOLDINGS:new(), #{}}, Changes),
                map_size(Model) =:= ?HOLDINGS:count(Holdings)
                    andalso lists:all(fun(P) ->
                        Mine = maps:filter(fun(Name, _) -> Name rem 2 =:= P end, Model),
                        {lists:sort(maps:keys(Mine)), lists:sum(maps:values(Mine))}
                            =:= {?HOLDINGS:names(P, Holdings), ?HOLDINGS:sum(P, Holdings)}
                    end, [0, 1])
            end).

change({put, Name, Token}, {Holdings, Model}) when not is_map_key(Name, Model) ->
    {Changed, _} = ?HOLDINGS:put(Name, holding(Name rem 2, Name, Token), Holdings),
    {Changed, Model#{Name => Token}};
change({_, Name, _Token}, {Holdings, Model}) ->
    {Changed, _} = ?HOLDINGS:drop(Name, Holdings),
    {Changed, maps:remove(Name, Model)}.

owner(Holding) ->
    {Holdings, _} = ?HOLDINGS:put(x, Holding, ?HOLDINGS:new()),
    Holdings.

holding(P, Pid, Token) ->
    #{part => P, pid => Pid, token => Token, meta => meta, on_lost => exit}.
