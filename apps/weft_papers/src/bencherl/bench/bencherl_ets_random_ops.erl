%% SPDX-License-Identifier: Apache-2.0
%% @doc ETS tables under a mix of inserts, deletes and look-ups of random keys, from empty on: the
%% second workload of BenchErl for ETS. Set and ordered set, with concurrency options.
%%
%% Other than in `bencherl_ets_bench' what comes next is drawn meanwhile, so the time of drawing is
%% a part of the whole; the table is empty at first, and keys are a million, so that most look-ups
%% of a short run find nothing. When the time is taken the table is held against what was done.
-module(bencherl_ets_random_ops).

-export([bench_args/2, run/3]).

-define(KEYS, 1000000).
%% Percentages of inserts, deletes and look-ups.
-define(MIXES, [{100, 0, 0}, {50, 50, 0}, {20, 10, 70}, {1, 0, 99}]).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(Version, _Conf) ->
    Operations = case Version of
                     short -> 150000;
                     intermediate -> 1500000;
                     long -> 15000000
                 end,
    [[Type, Concurrency, Mix, Operations, ?KEYS]
     || Mix <- ?MIXES, {Type, Concurrency} <- bencherl_ets:sets()].

%% @private
-spec run(list(), [node()], list()) ->
          {{continue | done, ignore | string()}, term()} | {error, term()}.
run([Type, Concurrency, Mix, Operations, Keys], _Slaves, Conf) ->
    Table = bencherl_ets:table(Type, Concurrency),
    Count = bencherl_ets:workers(Conf),
    Workers = bencherl_ets:ready(
                [fun() -> operate(share(Number, Operations, Count), Table, Mix, Keys,
                                  rand:seed_s(exsss, Number), {0, 0, 0})
                 end || Number <- lists:seq(1, Count)]),
    {{continue, ignore}, {operate, Table, Workers}};
run([{operate, Table, Workers} | _], _Slaves, _Conf) ->
    {{continue, "mix"}, {check, Table, bencherl_ets:at_once(Workers)}};
run([{check, Table, Done}, _Type, _Concurrency, Mix, Operations, Keys], _Slaves, _Conf) ->
    Found = check(Table, Done, Mix, Operations, Keys),
    true = ets:delete(Table),
    case Found of
        ok ->
            io:format("~b operations~n", [Operations]),
            {{done, ignore}, none};
        {error, Reason} ->
            {error, Reason}
    end.

share(Number, Operations, Workers) when Number =< Operations rem Workers ->
    Operations div Workers + 1;
share(_Number, Operations, Workers) ->
    Operations div Workers.

%% Answers how many of each kind there were.
operate(0, _Table, _Mix, _Keys, _Rand, Done) ->
    Done;
operate(Left, Table, {Inserts, Deletes, _} = Mix, Keys, Rand, {Inserted, Deleted, LookedUp}) ->
    {Kind, Rand1} = rand:uniform_s(100, Rand),
    {Key, Rand2} = rand:uniform_s(Keys, Rand1),
    Done = case Kind of
               _ when Kind =< Inserts ->
                   true = ets:insert(Table, {Key}),
                   {Inserted + 1, Deleted, LookedUp};
               _ when Kind =< Inserts + Deletes ->
                   true = ets:delete(Table, Key),
                   {Inserted, Deleted + 1, LookedUp};
               _ ->
                   _ = ets:lookup(Table, Key),
                   {Inserted, Deleted, LookedUp + 1}
           end,
    operate(Left - 1, Table, Mix, Keys, Rand2, Done).

%% A table that many wrote to at once is sound: it has as many keys as it says, no more than were
%% inserted, and no others. And all was done that was to be done.
check(Table, Done, Mix, Operations, Keys) ->
    Count = fun(Kind) -> lists:sum([element(Kind, One) || One <- Done]) end,
    [Inserted, Deleted, LookedUp] = [Count(Kind) || Kind <- [1, 2, 3]],
    Size = ets:info(Table, size),
    Checks = [{operations, Inserted + Deleted + LookedUp =:= Operations},
              {mix, {Inserted > 0, Deleted > 0, LookedUp > 0} =:= wanted(Mix)},
              {size, Size =:= ets:foldl(fun({_Key}, N) -> N + 1 end, 0, Table)},
              {inserts, Size =< Inserted},
              {keys, ets:foldl(fun({Key}, Fit) -> Fit andalso Key >= 1 andalso Key =< Keys end,
                               true, Table)}],
    case [What || {What, false} <- Checks] of
        [] -> ok;
        Wrong -> {error, {Wrong, #{size => Size, inserted => Inserted, deleted => Deleted,
                                   looked_up => LookedUp}}}
    end.

wanted({Inserts, Deletes, LookUps}) -> {Inserts > 0, Deletes > 0, LookUps > 0}.
