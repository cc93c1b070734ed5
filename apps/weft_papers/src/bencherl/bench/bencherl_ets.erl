%% SPDX-License-Identifier: Apache-2.0
%% @doc What the benchmarks of ETS tables share: tables by their concurrency options, and processes
%% that work on one at once.
-module(bencherl_ets).

-export([sets/0, table/2, workers/1, ready/1, at_once/1]).
-export_type([type/0, concurrency/0]).

-type type() :: set | ordered_set.
%% Tables made for many readers (r), many writers (w), and these with counters for each scheduler
%% (wd); those that find out by themselves how many locks they need (auto, since OTP 25).
-type concurrency() :: no | r | w | rw | wd | auto.

%% @doc All types with all concurrency options.
-spec sets() -> [{type(), concurrency()}].
sets() ->
    [{Type, Concurrency} || Type <- [set, ordered_set], Concurrency <- concurrencies(Type)].

concurrencies(set) -> [no, r, w, rw, wd, auto];
%% If it is made for writers it has the counters, too.
concurrencies(ordered_set) -> [no, r, w, rw, auto].

%% @doc An empty table that all processes may use.
-spec table(type(), concurrency()) -> ets:table().
table(Type, Concurrency) ->
    Options = case Concurrency of
                  no -> [];
                  r -> [{read_concurrency, true}];
                  w -> [{write_concurrency, true}];
                  rw -> [{read_concurrency, true}, {write_concurrency, true}];
                  wd -> [{write_concurrency, true}, {decentralized_counters, true}];
                  auto -> [{write_concurrency, auto}]
              end,
    ets:new(?MODULE, [Type, public | Options]).

%% @doc How many processes there are to be: one for each scheduler. What a benchmark is told of the
%% run and not an argument, as times are compared where arguments are the same.
-spec workers(Conf :: [{atom(), term()}]) -> pos_integer().
workers(Conf) ->
    proplists:get_value(schedulers, Conf).

%% @doc A process for each function, with all it knows, which waits: making them is no part of what
%% is timed. If one crashes so does the caller.
-spec ready([fun(() -> term())]) -> [pid()].
ready(Funs) ->
    Parent = self(),
    Workers = [spawn_link(fun() -> worker(Parent, Fun) end) || Fun <- Funs],
    [receive {ready, Worker} -> Worker end || Worker <- Workers].

worker(Parent, Fun) ->
    Parent ! {ready, self()},
    receive go -> Parent ! {done, self(), Fun()} end.

%% @doc Lets them all go; their values, when all are done.
-spec at_once([pid()]) -> [term()].
at_once(Workers) ->
    _ = [Worker ! go || Worker <- Workers],
    [receive {done, Worker, Value} -> Value end || Worker <- Workers].
