%% SPDX-License-Identifier: Apache-2.0
%% @doc Is what a load reports true? Its driver stops at known times, and notes itself when each
%% operation began and ended. From these notes the percentiles are computed anew, from all values
%% and without the code of the load, and those that were reported have to be within 1 % of them. A
%% stop in the warm-up must not be in them but for what was due after it.
-module(weft_load_stalls_tests).

-include_lib("eunit/include/eunit.hrl").

-export([new/1, run/4]).

-define(PERCENTILES, [50, 75, 90, 95, 99, 100]).
-define(WARM_UP_S, 1).
-define(SECONDS, 2.5).
-define(RATE, 60).
%% With this one nothing is due in the 60 ms before the end of the warm-up and that of the load.
%% So what is counted does not depend on how long the first operation takes to begin.
-define(SEED, {3646, 8, 9}).
%% From the first operation on, in milliseconds: when it stops, and for how long.
-define(STALLS, [{300, 350}, {1500, 500}, {2500, 250}]).
-define(USUAL_MS, 5).
%% Operations that follow each other at once: one may begin on the other side of either end for the
%% load than for its driver, which reads the clock later.
-define(AT_THE_ENDS, 2).
%% The driver and the load read the clock one after the other, and others may have the processor in
%% between.
-define(NOISE_US, 1000).

%% ---- the driver ----

new(_Id) -> {ok, not_begun}.

run(known, Key, Value, not_begun) ->
    FirstMs = erlang:monotonic_time(millisecond),
    run(known, Key, Value, [{FirstMs + AtMs, ForMs} || {AtMs, ForMs} <- ?STALLS]);
run(known, _Key, _Value, Stalls) ->
    BeginUs = erlang:monotonic_time(microsecond),
    %% pacing: what it does is to take known times
    Left = case Stalls of
               [{AtMs, ForMs} | Others] when AtMs * 1000 =< BeginUs -> sleep(ForMs, Others);
               _ -> sleep(?USUAL_MS, Stalls)
           end,
    true = ets:insert(?MODULE, {BeginUs, erlang:monotonic_time(microsecond)}),
    {ok, Left}.

sleep(Ms, Left) ->
    receive after Ms -> Left end. % pacing: its time is known

%% ---- the truth ----

percentiles_are_true_test_() ->
    [{timeout, 60, {"open load", fun open/0}}, {timeout, 60, {"closed load", fun closed/0}}].

%% The next operation begins when the last one is done.
closed() ->
    {FromUs, UntilUs, Notes, #{service := Service, response := Response}} = load(max),
    Due = [Note || {BeginUs, _} = Note <- Notes, BeginUs >= FromUs, BeginUs < UntilUs],
    same([EndUs - BeginUs || {BeginUs, EndUs} <- Due, EndUs =< UntilUs], ?AT_THE_ENDS, Service),
    same([EndUs - BeginUs || {BeginUs, EndUs} <- Due], ?AT_THE_ENDS, Response).

%% Operations are due at times that follow from the seed; some were begun at once.
open() ->
    {FromUs, UntilUs, Notes, #{service := Service, response := Response}} = load(?RATE),
    After = offsets(length(Notes)),
    FirstUs = lists:min([BeginUs - OffsetUs
                         || {{BeginUs, _}, OffsetUs} <- lists:zip(Notes, After)]),
    Due = [{FirstUs + OffsetUs, Note} || {Note, OffsetUs} <- lists:zip(Notes, After),
                                         FirstUs + OffsetUs >= FromUs,
                                         FirstUs + OffsetUs < UntilUs],
    %% Those that were due while it stood still waited for it.
    ?assert(length([late || {DueUs, {BeginUs, _}} <- Due, BeginUs - DueUs > 50000]) > 10),
    same([EndUs - BeginUs || {_, {BeginUs, EndUs}} <- Due, EndUs =< UntilUs], 0, Service),
    same([EndUs - DueUs || {DueUs, {_, EndUs}} <- Due], 0, Response).

same(True, MayDiffer, Reported) ->
    ?assert(abs(length(True) - weft_load_histogram:count(Reported)) =< MayDiffer),
    Sorted = lists:sort(True),
    [begin
         Exact = lists:nth(max(1, ceil(length(Sorted) * Percent / 100)), Sorted),
         Read = weft_load_histogram:percentile(Percent, Reported),
         ?assertEqual({Percent, Exact, Read, within},
                      {Percent, Exact, Read, case abs(Read - Exact) =< Exact / 100 + ?NOISE_US of
                                                 true -> within;
                                                 false -> beyond_one_percent
                                             end})
     end || Percent <- ?PERCENTILES].

%% As the worker draws them: a pause before the first operation, from which they count here; then
%% for each the pause after it, and what it is.
offsets(Count) ->
    {A, B, C} = ?SEED,
    {_FirstPause, Random} = rand:uniform_s(rand:seed_s(exsss, {A + 1, B + 1, C + 1})),
    offsets(Count, 0, Random).

offsets(0, _OffsetUs, _Random) -> [];
offsets(Count, OffsetUs, Random0) ->
    {Drawn, Random1} = rand:uniform_s(Random0),
    {_Operation, Random} = rand:uniform_s(1, Random1),
    PauseUs = round(-math:log(1 - Drawn) * 1.0e6 / ?RATE),
    [OffsetUs | offsets(Count - 1, OffsetUs + PauseUs, Random)].

load(Mode) ->
    Dir = filename:join(filename:basedir(user_cache, ?MODULE_STRING),
                        integer_to_list(erlang:unique_integer([positive]))),
    ?MODULE = ets:new(?MODULE, [named_table, public, ordered_set]),
    try
        {ok, Config} = weft_load_config:check(
                         [{driver, ?MODULE}, {operations, [{known, 1}]}, {concurrent, 1},
                          %% One that draws nothing, or due times would follow otherwise.
                          {value_generator, {fixed_bin, 1, 0}},
                          {mode, case Mode of max -> max; _ -> {rate, Mode} end},
                          {rng_seed, ?SEED}, {duration, {seconds, ?SECONDS}},
                          {warm_up_s, ?WARM_UP_S}, {operation_timeout_s, 5}]),
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
        {FromUs, FromUs + round(?SECONDS * 1.0e6), ets:tab2list(?MODULE), Meter}
    after
        ets:delete(?MODULE),
        file:del_dir_r(Dir)
    end.
