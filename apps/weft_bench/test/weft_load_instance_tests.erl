%% SPDX-License-Identifier: Apache-2.0
%% @doc A load that is ruled by calls: it waits until it shall begin, and all that it did is told.
-module(weft_load_instance_tests).

-include_lib("eunit/include/eunit.hrl").

-export([new/1, run/4]).

new(Id) ->
    case basho_bench_config:get(start, ok) of
        ok -> {ok, Id};
        Reason -> {error, Reason}
    end.

run(good, _Key, _Value, Id) -> {ok, Id}.

config(Pairs) ->
    {ok, Config} = weft_load_config:check(
                     Pairs ++ [{driver, ?MODULE}, {operations, [{good, 1}]}, {concurrent, 2},
                               {mode, {rate, 100}}, {duration, {seconds, 1.5}}]),
    Config.

in_dir(Test) ->
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"),
                        lists:concat(["weft-load-instance-", os:getpid(), "-",
                                      erlang:unique_integer([positive])])),
    try Test(#{dir => Dir, environment => []}) after file:del_dir_r(Dir) end.

%% What is told in seconds is what there is at the end, and another load may follow.
all_that_it_did_is_told_once_test_() ->
    {timeout, 60, fun() ->
        in_dir(fun(Options) ->
            ok = weft_load_instance:ready(config([]), Options),
            ?assertMatch({error, "another load" ++ _},
                         weft_load_instance:ready(config([]), Options)),
            ok = weft_load_instance:begin_at(os:perf_counter(microsecond)),
            {Seconds, {ok, #{total := #{good := Total}}}} = told([]),
            #{window := #{good := Sum}} = weft_load_second:together(Seconds),
            ?assert(weft_load_histogram:count(maps:get(service, Total)) > 0),
            [?assertEqual(weft_load_histogram:count(maps:get(Time, Total)),
                          weft_load_histogram:count(maps:get(Time, Sum)))
             || Time <- [service, response]],
            ?assertEqual(undefined, whereis(weft_load_instance))
        end),
        in_dir(fun(Options) ->
            ok = weft_load_instance:ready(config([{duration, infinity}]), Options),
            ok = weft_load_instance:interrupt(),
            ?assertMatch({ok, #{errors := []}},
                         weft_load_instance:go(os:perf_counter(microsecond)))
        end)
    end}.

told(Seconds) ->
    case weft_load_instance:news() of
        {seconds, More} -> told(Seconds ++ More);
        {ended, Answer} -> {Seconds, Answer}
    end.

what_never_begins_is_in_nobodys_way_test() ->
    in_dir(fun(Options) ->
        {error, Text} = weft_load_instance:ready(config([{start, not_today}]), Options),
        ?assertMatch({match, _}, re:run(Text, "not_today")),
        ?assertMatch({error, _}, weft_load_instance:begin_at(0)),
        ?assertMatch({ended, {error, _}}, weft_load_instance:news())
    end).

second(ElapsedUs, Values) ->
    Histogram = weft_load_histogram:new(),
    [ok = weft_load_histogram:record(Value, Histogram) || Value <- Values],
    Snapshot = weft_load_histogram:snapshot(Histogram),
    #{elapsed_us => ElapsedUs, duration_ms => 30000, workers => 2,
      window => #{good => #{service => Snapshot, response => Snapshot, units => length(Values),
                            failed => 1}}}.

%% Of the median of one and that of the other no median of both can be made.
percentiles_of_several_are_those_of_all_operations_test() ->
    Many = second(12000000, lists:duplicate(98, 10)),
    Few = second(12100000, [200, 201]),
    Text = fun(Second, Where) -> lists:flatten(weft_load_second:text(Second, Where)) end,
    ?assertEqual("  12 of 30 s  2 hosts  4 workers  100/s  p50 10  p99 200  max 201 us  errors 2",
                 Text(weft_load_second:together([Many, Few]), "  2 hosts")),
    ?assertEqual("  12 of 30 s  2 workers  100/s  p50 10  p99 200  max 201 us  errors 2",
                 Text(weft_load_second:joined(Many, Few), "")).

%% If nobody asks for long.
seconds_that_nobody_asks_for_are_bounded_test() ->
    {ok, State0} = weft_load_instance:init({config([]), #{dir => "nowhere"}}),
    Load = spawn(fun() -> ok end),
    State1 = setelement(4, State0, Load),
    {noreply, State} =
        lists:foldl(fun(N, {noreply, State}) ->
                            weft_load_instance:handle_info({second, Load, second(N, [N])}, State)
                    end, {noreply, State1}, lists:seq(1, 300)),
    [Kept] = [List || [_ | _] = List <- tuple_to_list(State)],
    ?assert(length(Kept) =< 101),
    #{window := #{good := #{units := Units}}} = weft_load_second:together(Kept),
    ?assertEqual(300, Units).
