%% SPDX-License-Identifier: Apache-2.0
%% @doc Whole loads: what is counted, what is told of crashes, hangs and bad configurations.
-module(weft_load_tests).

-include_lib("eunit/include/eunit.hrl").

-export([new/1, run/4, terminate/2]).

%% --- a driver ---------------------------------------------------------------------------------

new(Id) ->
    case basho_bench_config:get(start, ok) of
        ok -> {ok, Id};
        Reason -> {error, Reason}
    end.

run(good, _Key, _Value, Id) ->
    counters:add(persistent_term:get(?MODULE), 1, 1),
    {ok, Id};
run(five, _Key, _Value, Id) -> {{ok, 5}, Id};
run(told, _Key, _Value, Id) -> {ok, 5000000, Id};
run(silent, _Key, _Value, Id) -> timer:sleep(1), {silent, Id}; % pacing: a slow one
run(bad, _Key, _Value, Id) -> {error, {no, good}, Id};
run(crash, _Key, _Value, _Id) -> error(on_purpose);
run(odd, _Key, _Value, _Id) -> nonsense;
run(stop, _Key, _Value, _Id) -> {stop, enough};
run(hang, _Key, _Value, _Id) -> receive never -> ok end;
run(slow, _Key, _Value, Id) ->
    case counters:get(persistent_term:get(?MODULE), 2) of
        %% pacing: one operation that holds up all others
        0 -> counters:add(persistent_term:get(?MODULE), 2, 1), timer:sleep(500);
        _ -> ok
    end,
    {ok, Id}.

terminate(_Reason, _Id) ->
    counters:add(persistent_term:get(?MODULE), 3, 1).

%% --- tests ------------------------------------------------------------------------------------

load_test_() ->
    {foreach, fun() -> persistent_term:put(?MODULE, counters:new(3, [])) end,
     fun(_) -> persistent_term:erase(?MODULE) end,
     [{timeout, 60, {Text, Test}}
      || {Text, Test} <- [{"counts add up", fun counts_add_up/0},
                          {"answers of drivers", fun answers/0},
                          {"crashes", fun crashes/0},
                          {"all stop", fun all_stop/0},
                          {"hanging", fun hanging/0},
                          {"coordinated omission", fun coordinated_omission/0},
                          {"a given rate", fun a_given_rate/0},
                          {"warm-up", fun warm_up/0},
                          {"a driver that does not start", fun bad_start/0},
                          {"no driver", fun no_driver/0},
                          {"drivers from source", fun from_source/0},
                          {"no directory", fun no_directory/0},
                          {"bad generator", fun bad_generator/0}]]}.

counted(N) -> counters:get(persistent_term:get(?MODULE), N).

dir() ->
    filename:join([code:lib_dir(weft_bench), "..", "..", "load_tests",
                   integer_to_list(os:system_time()) ++ "-"
                   ++ integer_to_list(erlang:unique_integer([positive]))]).

load(Pairs) ->
    Dir = dir(),
    {ok, Config} = weft_load_config:check(Pairs ++ [{duration, {seconds, 0.5}}, {mode, max},
                                                    {driver, ?MODULE}, {operation_timeout_s, 1}]),
    {weft_load:run(Config, #{dir => Dir, progress => fun(_) -> ok end}), Dir}.

total(Label, {{ok, #{total := Total}}, _Dir}) ->
    #{Label := #{service := Service, units := Units, failed := Failed}} = Total,
    {weft_load_histogram:count(Service), Units, Failed}.

%% What the driver did, the total, the series and the windows tell the same number.
counts_add_up() ->
    {_, Dir} = Result = load([{operations, [{good, 1}, {five, 1}]}, {concurrent, 3},
                              {report_interval, 1}, {duration, {seconds, 2.5}}]),
    {Count, Count, 0} = total(good, Result),
    ?assert(Count > 1000),
    %% What ended after the end of the run is not counted.
    ?assert(counted(1) >= Count),
    ?assertEqual(Count, sum(Dir, "series.csv", 3, <<"good">>)),
    ?assertEqual(Count, sum(Dir, "good_latencies.csv", 3, any)),
    {Fives, Units, 0} = total(five, Result),
    ?assertEqual(5 * Fives, Units),
    ?assertEqual(Count + Fives, sum(Dir, "summary.csv", 4, any)),
    ?assertEqual(3, counted(3)),
    ok = weft_load_report:write(Dir),
    {ok, Page} = file:read_file(weft_load_report:file(Dir)),
    {_, _} = xmerl_scan:string(unicode:characters_to_list(
                                 string:replace(Page, "<!DOCTYPE html>\n", ""))).

sum(Dir, File, Field, Operation) ->
    {ok, Text} = file:read_file(filename:join(Dir, File)),
    [_ | Lines] = weft_bench_csv:parse(Text),
    lists:sum([binary_to_integer(string:trim(lists:nth(Field, Line)))
               || Line <- Lines, Operation =:= any orelse lists:nth(2, Line) =:= Operation]).

answers() ->
    {_, Dir} = Result = load([{operations, [{told, 1}, {silent, 1}, {bad, 1}, {odd, 1}]},
                              {concurrent, 1}]),
    {{ok, #{total := #{told := #{service := Told}}, errors := Errors}}, _} = Result,
    ?assert(weft_load_histogram:min(Told) >= 5000000),
    ?assertEqual({0, 0, 0}, total(silent, Result)),
    {0, 0, Bad} = total(bad, Result),
    ?assert(Bad > 10),
    ?assertEqual([Bad], [Count || {bad, <<"{no,good}">>, Count} <- Errors]),
    ?assertMatch([_], [Reason || {odd, <<"{bad_answer,nonsense}">> = Reason, _} <- Errors]),
    {ok, Text} = file:read_file(filename:join(Dir, "errors.csv")),
    ?assertMatch({_, _}, binary:match(Text, <<"bad {no,good}">>)).

%% The worker starts anew and goes on.
crashes() ->
    Result = load([{operations, [{crash, 1}, {good, 10}]}, {concurrent, 1}]),
    {{ok, #{crashed := [], hung := 0}}, _} = Result,
    {0, 0, Crashes} = total(crash, Result),
    {Good, _, 0} = total(good, Result),
    ?assert(Crashes > 10 andalso Good > Crashes).

all_stop() ->
    {Us, {{ok, #{finished := 2, hung := 0}}, _}} =
        timer:tc(fun() -> load([{operations, [{stop, 1}]}, {concurrent, 2},
                                {duration, {seconds, 30}}]) end),
    ?assert(Us < 10000000).

%% The one that hangs is told of, what the other did is there.
hanging() ->
    Result = load([{operations, [{hang, 1}, {good, 100}]}, {concurrent, 2}]),
    {{ok, #{hung := Hung}}, _} = Result,
    ?assert(Hung > 0),
    {Good, _, 0} = total(good, Result),
    ?assert(Good > 0).

%% One operation of half a second holds up all that were due meanwhile; service times do not tell.
coordinated_omission() ->
    {{ok, #{total := #{slow := #{service := Service, response := Response}}}}, _} =
        load([{operations, [{slow, 1}]}, {concurrent, 1}, {mode, {rate, 200}},
              {duration, {seconds, 2}}]),
    ?assert(weft_load_histogram:percentile(75, Service) < 50000),
    ?assert(weft_load_histogram:percentile(90, Response) > 100000).

a_given_rate() ->
    Result = load([{operations, [{good, 1}]}, {concurrent, 2}, {mode, {rate, 300}},
                   {duration, {seconds, 2}}]),
    {Count, _, 0} = total(good, Result),
    ?assert(Count > 900 andalso Count < 1500).

warm_up() ->
    Result = load([{operations, [{good, 1}]}, {concurrent, 1}, {mode, {rate, 200}},
                   {warm_up_s, 1}]),
    {Count, _, 0} = total(good, Result),
    ?assert(counted(1) > 200),
    ?assert(Count < 200).

bad_start() ->
    {{error, Text}, _} = load([{operations, [{good, 1}]}, {start, no_luck}]),
    ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"no_luck">>)).

no_driver() ->
    {{error, Text}, _} = load([{operations, [{good, 1}]}, {driver, weft_no_such_driver}]),
    ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"weft_no_such_driver">>)),
    {{error, Other}, _} = load([{operations, [{good, 1}]}, {driver, lists}]),
    ?assertMatch({_, _}, binary:match(list_to_binary(Other), <<"new/1">>)).

%% As they are written for Basho Bench, with its header.
from_source() ->
    Dir = dir(),
    Source = filename:join(Dir, "weft_load_sourced.erl"),
    ok = filelib:ensure_dir(Source),
    Write = fun(Text) ->
                    ok = file:write_file(Source, ["-module(weft_load_sourced).\n"
                                                  "-export([new/1, run/4]).\n"
                                                  "-include(\"basho_bench.hrl\").\n", Text])
            end,
    Write("new(Id) -> ?DEBUG(\"~p\", [Id]), {ok, basho_bench_config:get(mine)}.\n"
          "run(_, K, V, S) -> true = S =:= 7, true = is_integer(K()), _ = V(), {ok, S}.\n"),
    Pairs = [{operations, [{any, 1}]}, {driver, weft_load_sourced}, {source_dir, Dir}, {mine, 7}],
    {Count, _, 0} = total(any, load(Pairs)),
    ?assert(Count > 0),
    true = code:delete(weft_load_sourced),
    Write("new(Id) -> {ok, Unbound}.\n"),
    {{error, Text}, _} = load(Pairs),
    ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"weft_load_sourced.erl">>)).

no_directory() ->
    File = dir(),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, ""),
    {ok, Config} = weft_load_config:check([{driver, ?MODULE}, {operations, [{good, 1}]}]),
    {error, Text} = weft_load:run(Config, #{dir => filename:join(File, "x"),
                                            progress => fun(_) -> ok end}),
    ?assert(is_list(Text)).

bad_generator() ->
    {{error, Text}, _} = load([{operations, [{good, 1}]}, {key_generator, {no_such, 1}}]),
    ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"no_such">>)).

%% Each names the key and what was expected.
bad_configurations_test() ->
    [begin
         {error, Text} = weft_load_config:check([{driver, d} | Pairs]),
         ?assertMatch({_, _}, binary:match(list_to_binary(Text), Word))
     end || {Word, Pairs} <- [{<<"mode">>, [{mode, fast}]}, {<<"duration">>, [{duration, -1}]},
                              {<<"duration">>, [{duration, infinity}]},
                              {<<"concurrent">>, [{concurrent, 0}]},
                              {<<"operations">>, [{operations, []}]},
                              {<<"operations">>, [{operations, [{get, zero}]}]},
                              {<<"rng_seed">>, [{rng_seed, 1}]}, {<<"Key">>, [nonsense]},
                              {<<"shutdown_on_error">>, [{shutdown_on_error, 1}]}]],
    {error, NoDriver} = weft_load_config:check([]),
    ?assertMatch({_, _}, binary:match(list_to_binary(NoDriver), <<"driver">>)),
    {error, NoFile} = weft_load_config:read("no_such_file"),
    ?assertMatch({_, _}, binary:match(list_to_binary(NoFile), <<"no_such_file">>)).
