%% SPDX-License-Identifier: Apache-2.0
%% @doc What browsers get of a time at which nothing was recorded.
-module(weft_dashboard_past_tests).

-include_lib("eunit/include/eunit.hrl").

%% As the dashboard was started again after an hour.
in_a_gap_all_are_silent_and_it_is_said_test() ->
    with_recording([[0, 2000], [3602000]], fun(Config) ->
        ?assertMatch({200, #{<<"nodes">> := #{<<"a@h">> := #{<<"state">> := <<"up">>}},
                             <<"alarms">> := None}} when map_size(None) =:= 0,
                     weft_dashboard_past:model(2000, Config)),
        {200, Gap} = weft_dashboard_past:model(60000, Config),
        ?assertMatch(#{<<"at_ms">> := 60000, <<"source">> := <<"recording">>,
                       <<"nodes">> := #{<<"a@h">> := #{<<"state">> := <<"silent">>,
                                                       <<"groups">> := [<<"g">>]}}}, Gap),
        ?assertEqual(<<"nothing was recorded from 1970-01-01T00:00:02.000Z to "
                       "1970-01-01T01:00:02.000Z">>, said(Gap)),
        {200, End} = weft_dashboard_past:model(999999999999999, Config),
        ?assertEqual(<<"nothing was recorded from 1970-01-01T01:00:02.000Z on">>, said(End)),
        ?assertEqual(nomatch, binary:match(iolist_to_binary(weft_json:encode(Gap)), <<"null">>))
    end).

%% Times that no clock has.
a_gap_of_a_made_up_file_is_one_test() ->
    with_recording([[-1 bsl 62], [1 bsl 62]], fun(Config) ->
        {200, Gap} = weft_dashboard_past:model(3000, Config),
        ?assertEqual(<<"nothing was recorded from 1970-01-01T00:00:00.000Z to "
                       "9999-12-31T23:59:59.999Z">>, said(Gap))
    end).

said(#{<<"alarms">> := #{<<"not recorded">> := #{<<"text">> := Text}}}) -> Text.

%% With chunks of samples of these times.
with_recording(Chunks, Fun) ->
    Dir = filename:join([filename:basedir(user_cache, "weft"), "test",
                         integer_to_list(erlang:system_time(nanosecond))]),
    _ = lists:foldl(fun([FirstMs | _] = Times, Files) ->
                        Chunk = lists:foldl(fun(Ms, Acc) ->
                                                weft_ops_chunk:add(Ms, {sample, sample(Ms)}, Acc)
                                            end, weft_ops_chunk:new(), Times),
                        Bytes = weft_ops_chunk:encode(Chunk),
                        {ok, Next} = weft_ops_recording_files:append(max(0, FirstMs), Bytes, Files),
                        Next
                    end, weft_ops_recording_files:new(#{dir => Dir, bytes_max => 1048576}), Chunks),
    try Fun(#{recording => Dir})
    after ok = file:del_dir_r(Dir)
    end.

sample(AtMs) ->
    #{node => a@h, at_ms => AtMs, period_ms => 2000, uptime_ms => 1, groups => [g], peers => [],
      links => [], relayed_bytes => 0, relayed_circuits => 0, unreachable => [], cuts => [],
      conflicts => 0, told => [],
      machine => #{wake_up_us => 1, run_queue => 0, memory_bytes => 1, processes => 1}}.
