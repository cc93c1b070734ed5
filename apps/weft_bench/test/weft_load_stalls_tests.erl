%% SPDX-License-Identifier: Apache-2.0
%% @doc Is what a load reports true? Its driver takes known times, of which each fifth one is a
%% stall, and notes itself when each operation began and ended. From these notes the percentiles are
%% computed anew, from all values and without the code of the load, and those that were reported
%% have to be within 1 % of them. A stall in the warm-up must not be in them but for what was due
%% after it.
%%
%% The driver and the load read the clock one after the other. All times are so long that the
%% microseconds between are far below 1 %, and of each there are so many that it does not matter if
%% others have the processor in between, now and then. If the whole machine stands still in between,
%% it does; so one of several loads has to be true.
-module(weft_load_stalls_tests).

-include_lib("eunit/include/eunit.hrl").

-export([new/1, run/4]).

%% The first two are usual times, the others stalls.
-define(PERCENTILES, [50, 75, 90, 95, 99, 100]).
-define(WORKERS, 24).
-define(WARM_UP_S, 1).
-define(SECONDS, 8).
%% Of each worker, which could do twice as many.
-define(RATE, 1.5).
-define(SEED, {3646, 8, 9}).
%% What an operation takes, in milliseconds. Each worker begins at another place, and goes round.
-define(TIMES_MS, {200, 200, 200, 200, 400, 200, 200, 200, 200, 200,
                   800, 200, 200, 200, 200, 200, 400, 200, 200, 200,
                   200, 1600, 200, 200, 200, 200, 400, 200, 200, 200,
                   200, 400, 200, 200, 200, 800, 200, 200, 400, 200}).
%% So far that no two workers begin at the same place.
-define(APART, 7).
%% Operations that follow each other at once: one may begin on the other side of either end for the
%% load than for its driver, which reads the clock later.
-define(AT_THE_ENDS, 2).
-define(LOADS_MAX, 3).

%% ---- the driver ----

new(Id) -> {ok, {Id, Id * ?APART}}.

run(known, _Key, _Value, {Id, Place}) ->
    BeginUs = erlang:monotonic_time(microsecond),
    %% pacing: what it does is to take known times
    receive after element(Place rem tuple_size(?TIMES_MS) + 1, ?TIMES_MS) -> ok end,
    true = ets:insert(?MODULE, {{Id, BeginUs}, erlang:monotonic_time(microsecond)}),
    {ok, {Id, Place + 1}}.

%% ---- the truth ----

percentiles_are_true_test_() ->
    [{timeout, 60, {"open load", fun() -> of_several(?LOADS_MAX, fun open/0) end}},
     {timeout, 60, {"closed load", fun() -> of_several(?LOADS_MAX, fun closed/0) end}}].

%% Of a load that is wrong no attempt is right.
of_several(1, Load) ->
    Load();
of_several(Left, Load) ->
    try Load()
    catch error:{Assertion, _} when Assertion =:= assertEqual; Assertion =:= assert ->
              of_several(Left - 1, Load)
    end.

%% The next operation begins when the last one is done.
closed() ->
    {FromUs, UntilUs, Notes, #{service := Service, response := Response}} = load(max),
    Due = [Note || {_Id, Own} <- Notes, {BeginUs, _} = Note <- Own,
                   BeginUs >= FromUs, BeginUs < UntilUs],
    same([EndUs - BeginUs || {BeginUs, EndUs} <- Due, EndUs =< UntilUs], ?AT_THE_ENDS, Service),
    same([EndUs - BeginUs || {BeginUs, EndUs} <- Due], ?AT_THE_ENDS, Response).

%% Operations are due at times that follow from the seed.
open() ->
    {FromUs, UntilUs, Notes, #{service := Service, response := Response}} = load(?RATE),
    Due = [One || {Id, Own} <- Notes, {DueUs, _} = One <- due(Id, Own),
                  DueUs >= FromUs, DueUs < UntilUs],
    %% Those that were due while it stood still waited for it.
    ?assert(length([late || {DueUs, {BeginUs, _}} <- Due, BeginUs - DueUs > 50000]) > 50),
    same([EndUs - BeginUs || {_, {BeginUs, EndUs}} <- Due, EndUs =< UntilUs], 0, Service),
    same([EndUs - DueUs || {DueUs, {_, EndUs}} <- Due], 0, Response).

%% Some were begun at once when they were due.
due(Id, Notes) ->
    WithOffsets = lists:zip(Notes, offsets(Id, length(Notes))),
    FirstUs = lists:min([BeginUs - OffsetUs || {{BeginUs, _}, OffsetUs} <- WithOffsets]),
    [{FirstUs + OffsetUs, Note} || {Note, OffsetUs} <- WithOffsets].

same(True, MayDiffer, Reported) ->
    ?assert(abs(length(True) - weft_load_histogram:count(Reported)) =< MayDiffer),
    Sorted = lists:sort(True),
    [begin
         Exact = lists:nth(max(1, ceil(length(Sorted) * Percent / 100)), Sorted),
         Read = weft_load_histogram:percentile(Percent, Reported),
         ?assertEqual({Percent, Exact, Read, within},
                      {Percent, Exact, Read, case abs(Read - Exact) * 100 =< Exact of
                                                 true -> within;
                                                 false -> beyond_one_percent
                                             end})
     end || Percent <- ?PERCENTILES].

%% As the worker draws them: a pause before the first operation, from which they count here; then
%% for each the pause after it, and what it is.
offsets(Id, Count) ->
    {A, B, C} = ?SEED,
    {_FirstPause, Random} = rand:uniform_s(rand:seed_s(exsss, {A + Id, B + Id, C + Id})),
    offsets(Count, 0, Random).

offsets(0, _OffsetUs, _Random) -> [];
offsets(Count, OffsetUs, Random0) ->
    {Drawn, Random1} = rand:uniform_s(Random0),
    {_Operation, Random} = rand:uniform_s(1, Random1),
    PauseUs = round(-math:log(1 - Drawn) * 1.0e6 / ?RATE),
    [OffsetUs | offsets(Count - 1, OffsetUs + PauseUs, Random)].

load(Mode) ->
    Dir = filename:join(filename:basedir(user_cache, ?MODULE_STRING),
                        integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    ?MODULE = ets:new(?MODULE, [named_table, public, ordered_set]),
    try
        {ok, Config} = weft_load_config:check(
                         [{driver, ?MODULE}, {operations, [{known, 1}]}, {concurrent, ?WORKERS},
                          %% One that draws nothing, or due times would follow otherwise.
                          {value_generator, {fixed_bin, 1, 0}},
                          {mode, case Mode of max -> max; _ -> {rate, Mode} end},
                          {rng_seed, ?SEED}, {duration, {seconds, ?SECONDS}},
                          {warm_up_s, ?WARM_UP_S}, {operation_timeout_s, 20}]),
        Self = self(),
        %% When the workers are ready, which takes some time on a busy machine.
        Begin = fun() ->
                    NowUs = erlang:monotonic_time(microsecond),
                    Self ! {begun, NowUs},
                    NowUs
                end,
        {ok, #{total := #{known := Meter}, errors := [], unfinished := 0}} =
            weft_load:run(Config, #{dir => Dir, environment => [],
                                    progress => fun(_Second) -> ok end,
                                    begin_us => Begin}),
        BeginUs = receive {begun, Us} -> Us end,
        FromUs = BeginUs + ?WARM_UP_S * 1000000,
        {FromUs, FromUs + ?SECONDS * 1000000, notes(), Meter}
    after
        ets:delete(?MODULE),
        file:del_dir_r(Dir)
    end.

%% Of each worker, in their order.
notes() ->
    All = ets:tab2list(?MODULE),
    [{Id, [{BeginUs, EndUs} || {{Of, BeginUs}, EndUs} <- All, Of =:= Id]}
     || Id <- lists:seq(1, ?WORKERS)].
