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
bench_args(Version, Conf) ->
    Processes = proplists:get_value(schedulers, Conf),
    {Keys, Inserts, Mixed} = case Version of
                                 short -> {14, 15, 17};
                                 intermediate -> {18, 18, 21};
                                 long -> {21, 20, 22}
                             end,
    [[Type, Options, Updates, 1 bsl Keys, 1 bsl Inserts, 1 bsl Mixed, Processes]
     || Type <- [set, ordered_set], Options <- [no, r, w, rw], Updates <- [0, 1, 10]].

%% @private Each phase gives the next one the table and what is left to do.
-spec run(list(), [node()], list()) -> {{continue | done, ignore | string()}, term()}.
run([Type, Options, Updates, Keys, Inserts, Mixed, Processes], _Slaves, _Conf) ->
    Table = table(Type, Options),
    _ = rand:seed(exsss, 1),
    Draw = fun(Count) ->
                   shared_out([rand:uniform(Keys) || _ <- lists:seq(1, Count)], Processes)
           end,
    Mix = shared_out([operation(Updates, Keys) || _ <- lists:seq(1, Mixed)], Processes),
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
    {{continue, "delete"}, {finish, Table}};
run([{finish, Table} | _], _, _) ->
    true = ets:delete(Table),
    {{done, ignore}, none}.

table(Type, Options) ->
    Concurrency = case Options of
                      no -> [];
                      r -> [{read_concurrency, true}];
                      w -> [{write_concurrency, true}];
                      rw -> [{read_concurrency, true}, {write_concurrency, true}]
                  end,
    ets:new(?MODULE, [Type, public | Concurrency]).

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
    Monitors = [element(2, spawn_monitor(fun() -> lists:foreach(Do, Part) end)) || Part <- Parts],
    [normal = receive {'DOWN', Monitor, process, _, Reason} -> Reason end || Monitor <- Monitors],
    ok.
