%% SPDX-License-Identifier: Apache-2.0
%% @doc ETS tables under many processes (Scalable ETS, Klaftenegger et al. 2013): inserts, then a
%% mix of look-ups and updates, inserts again, deletes, each timed by itself. Set and ordered set,
%% with concurrency options, with 100, 99 and 90 percent look-ups.
%%
%% Keys and operations are drawn before the time is taken, the same ones in each run.
-module(bencherl_ets_bench).

-export([bench_args/2, run/3]).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(Version, _Conf) ->
    {Keys, Inserts, Mixed} = case Version of
                                 short -> {14, 15, 17};
                                 intermediate -> {18, 18, 21};
                                 long -> {21, 20, 22}
                             end,
    [[Type, Concurrency, Updates, 1 bsl Keys, 1 bsl Inserts, 1 bsl Mixed]
     || {Type, Concurrency} <- bencherl_ets:sets(), Updates <- [0, 1, 10]].

%% @private Each phase gives the next one the table and what is left to do.
-spec run(list(), [node()], list()) ->
          {{continue | done, ignore | string()}, term()} | {error, term()}.
run([Type, Concurrency, Updates, Keys, Inserts, Mixed], _Slaves, Conf) ->
    Table = bencherl_ets:table(Type, Concurrency),
    Workers = bencherl_ets:workers(Conf),
    _ = rand:seed(exsss, 1),
    Draw = fun(Count) ->
                   shared_out([rand:uniform(Keys) || _ <- lists:seq(1, Count)], Workers)
           end,
    Mix = shared_out([operation(Updates, Keys) || _ <- lists:seq(1, Mixed)], Workers),
    {{continue, ignore}, {insert, Table, Mix, Draw(Inserts), Draw(Inserts)}};
run([{insert, Table, Mix, Keys, More} | _], _, _) ->
    all(fun(Key) -> ets:insert(Table, {Key}) end, Keys),
    {{continue, "insert"}, {mix, Table, Mix, More}};
run([{mix, Table, Mix, More} | _], _, _) ->
    all(fun({lookup, Key}) -> ets:lookup(Table, Key);
           ({insert, Key}) -> ets:insert(Table, {Key});
           ({delete, Key}) -> ets:delete(Table, Key)
        end, Mix),
    {{continue, "mixed"}, {insert_again, Table, More}};
run([{insert_again, Table, Keys} | _], _, _) ->
    all(fun(Key) -> ets:insert(Table, {Key}) end, Keys),
    {{continue, "insert again"}, {delete, Table, Keys}};
run([{delete, Table, Keys} | _], _, _) ->
    all(fun(Key) -> ets:delete(Table, Key) end, Keys),
    {{continue, "delete"}, {check, Table, Keys}};
run([{check, Table, Keys} | _], _, _) ->
    Left = [Key || Part <- Keys, Key <- Part, ets:member(Table, Key)],
    true = ets:delete(Table),
    case Left of
        [] -> {{done, ignore}, none};
        _ -> {error, {not_deleted, length(Left)}}
    end.

operation(Updates, Keys) ->
    Key = rand:uniform(Keys),
    case rand:uniform(200) of
        N when N > 2 * Updates -> {lookup, Key};
        N when N > Updates -> {insert, Key};
        _ -> {delete, Key}
    end.

shared_out(List, 1) -> [List];
shared_out(List, Parts) ->
    {Part, Rest} = lists:split(length(List) div Parts, List),
    [Part | shared_out(Rest, Parts - 1)].

all(Do, Parts) ->
    _ = bencherl_ets:at_once([fun() -> lists:foreach(Do, Part) end || Part <- Parts]),
    ok.
