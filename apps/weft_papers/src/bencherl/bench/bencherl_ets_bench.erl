%% SPDX-License-Identifier: Apache-2.0
%% @doc ETS tables under many processes (Scalable ETS, Klaftenegger et al. 2013): inserts, then a
%% mix of look-ups and updates, inserts again, deletes, each timed by itself. Set and ordered set,
%% with concurrency options, with 100, 99 and 90 percent look-ups.
%%
%% Keys and operations are drawn before the time is taken, the same ones in each run, and given to
%% the processes that do them.
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

%% @private Before each phase that is timed is one that makes its processes.
-spec run(list(), [node()], list()) ->
          {{continue | done, ignore | string()}, term()} | {error, term()}.
run([Type, Concurrency, Updates, Keys, Inserts, Mixed], _Slaves, Conf) ->
    Workers = bencherl_ets:workers(Conf),
    _ = rand:seed(exsss, 1),
    Draw = fun(Count) ->
                   shared_out([rand:uniform(Keys) || _ <- lists:seq(1, Count)], Workers)
           end,
    Mix = shared_out([operation(Updates, Keys) || _ <- lists:seq(1, Mixed)], Workers),
    {First, Again} = {Draw(Inserts), Draw(Inserts)},
    Phases = [{"insert", First}, count, {"mixed", Mix}, {"insert again", Again},
              {"delete", Again}, {check, Again}],
    {{continue, ignore}, {prepare, bencherl_ets:table(Type, Concurrency), Phases}};
run([{prepare, Table, [count | Left]} | _], _, _) ->
    io:format("~b keys~n", [ets:info(Table, size)]),
    {{continue, ignore}, {prepare, Table, Left}};
run([{prepare, Table, [{check, Keys}]} | _], _, _) ->
    check(Table, Keys);
run([{prepare, Table, [{Name, Parts} | Left]} | _], _, _) ->
    Do = work(Name, Table),
    Workers = bencherl_ets:ready([fun() -> lists:foreach(Do, Part) end || Part <- Parts]),
    {{continue, ignore}, {go, Name, Workers, {prepare, Table, Left}}};
run([{go, Name, Workers, Next} | _], _, _) ->
    _ = bencherl_ets:at_once(Workers),
    {{continue, Name}, Next}.

work("delete", Table) -> fun(Key) -> ets:delete(Table, Key) end;
work("mixed", Table) ->
    fun({lookup, Key}) -> ets:lookup(Table, Key);
       ({insert, Key}) -> ets:insert(Table, {Key});
       ({delete, Key}) -> ets:delete(Table, Key)
    end;
work(_Insert, Table) -> fun(Key) -> ets:insert(Table, {Key}) end.

check(Table, Keys) ->
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
