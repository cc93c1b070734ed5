%% SPDX-License-Identifier: Apache-2.0
%% @doc Whole loads: what is counted, what is told of crashes, hangs and bad configurations.
-module(weft_load_tests).

-include_lib("eunit/include/eunit.hrl").

-export([new/1, run/4, terminate/2, before/0, afterwards/0, fails/0]).

%% --- a driver ---------------------------------------------------------------------------------

new(Id) ->
    counters:add(persistent_term:get(?MODULE), 4, 1),
    case {basho_bench_config:get(start, ok), counted(4)} of
        {ok, _} -> {ok, Id};
        {only_once, 1} -> {ok, Id};
        {Reason, _} -> {error, Reason}
    end.

run(good, _Key, _Value, Id) ->
    counters:add(persistent_term:get(?MODULE), 1, 1),
    {ok, Id};
run(five, _Key, _Value, Id) -> {{ok, 5}, Id};
run({get, Bytes}, _Key, _Value, Id) when is_integer(Bytes) -> {ok, Id};
run({put, [red]}, _Key, _Value, Id) -> {error, "it is \"red\"", Id};
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
    {ok, Id};
run(thrown, _Key, _Value, _Id) -> throw({stop, enough});
run(key, Key, _Value, Id) ->
    _ = Key(),
    {ok, Id};
run(linked, _Key, _Value, Id) ->
    {Pid, Monitor} = spawn_opt(fun() -> exit(boom) end, [link, monitor]),
    receive {'DOWN', Monitor, process, Pid, boom} -> {ok, Id} end;
run(linked_at_first, Key, Value, Id) ->
    counters:add(persistent_term:get(?MODULE), 1, 1),
    case counted(1) of
        1 -> run(linked, Key, Value, Id);
        _ -> {ok, Id}
    end;
run(client, _Key, _Value, _Id) ->
    Self = self(),
    Counters = persistent_term:get(?MODULE),
    Client = spawn_link(fun() ->
                                process_flag(trap_exit, true),
                                Self ! {self(), ready},
                                receive {'EXIT', Self, crash} -> counters:add(Counters, 6, 1) end
                        end),
    receive {Client, ready} -> error(on_purpose) end;
run(die, _Key, _Value, _Id) -> exit(self(), kill);
run(die_once, _Key, _Value, Id) ->
    Counters = persistent_term:get(?MODULE),
    NowMs = erlang:monotonic_time(millisecond),
    case {counted(2), counted(6)} of
        {0, _} -> counters:put(Counters, 2, NowMs), exit(self(), kill);
        {DiedMs, 0} -> counters:put(Counters, 6, NowMs - DiedMs), {ok, Id};
        {_, _} -> {ok, Id}
    end;
run(stalls, _Key, _Value, Id) ->
    %% pacing: it stops when half of the run is over, and goes on after its end
    is_second_half() andalso timer:sleep(1200),
    {ok, Id};
run(freezes, Key, Value, Id) ->
    case is_second_half() of
        true -> run(hang, Key, Value, Id);
        false -> {ok, Id}
    end;
run(slow_at_first, _Key, _Value, Id) ->
    NowMs = erlang:monotonic_time(millisecond),
    _ = get(?MODULE) =:= undefined andalso put(?MODULE, NowMs),
    NowMs < get(?MODULE) + 1000 andalso timer:sleep(100), % pacing: it does not keep up at first
    {ok, Id};
run(too_slow, _Key, _Value, Id) ->
    timer:sleep(50), % pacing: it can do 20 per second
    {ok, Id}.

%% Says true once in a run of two seconds, when half of it is over since the first operation.
is_second_half() ->
    NowMs = erlang:monotonic_time(millisecond),
    case get(?MODULE) of
        undefined -> put(?MODULE, NowMs + 1000), false;
        AtMs when AtMs =< NowMs -> put(?MODULE, NowMs + 100000), true;
        _ -> false
    end.

before() -> counters:add(persistent_term:get(?MODULE), 5, 1).

%% All workers have ended before.
afterwards() -> counters:add(persistent_term:get(?MODULE), 6, counted(3)).

fails() -> error(no_luck).

terminate(_Reason, _Id) ->
    counters:add(persistent_term:get(?MODULE), 3, 1).

%% --- tests ------------------------------------------------------------------------------------

load_test_() ->
    {foreach, fun() -> persistent_term:put(?MODULE, counters:new(6, [])) end,
     fun(_) -> persistent_term:erase(?MODULE) end,
     [{timeout, 60, {Text, Test}}
      || {Text, Test} <- [{"counts add up", fun counts_add_up/0},
                          {"answers of drivers", fun answers/0},
                          {"operations that are terms", fun operations_that_are_terms/0},
                          {"crashes", fun crashes/0},
                          {"all stop", fun all_stop/0},
                          {"one worker after the other stops", fun keys_are_used_up/0},
                          {"without a given end", fun endless/0},
                          {"the client of a driver dies", fun linked/0},
                          {"a crash ends the clients of a driver", fun clients_end/0},
                          {"workers that die", fun die/0},
                          {"workers that die, open loop", fun die_open/0},
                          {"no driver after a crash", fun no_restart/0},
                          {"an error ends the run", fun shutdown_on_error/0},
                          {"hanging", fun hanging/0},
                          {"stalled at the end, open loop", fun stalled_open/0},
                          {"stalled at the end, closed loop", fun stalled_closed/0},
                          {"frozen at the end", fun frozen/0},
                          {"too slow for the rate", fun too_slow/0},
                          {"an interrupt of one that is too slow", fun interrupted_drain/0},
                          {"hooks", fun hooks/0},
                          {"hooks that fail", fun bad_hooks/0},
                          {"coordinated omission", fun coordinated_omission/0},
                          {"a given rate", fun a_given_rate/0},
                          {"workers with a rate begin one by one", fun no_burst/0},
                          {"warm-up", fun warm_up/0},
                          {"a warm-up that falls behind", fun slow_warm_up/0},
                          {"an interrupt in the warm-up", fun interrupted_warm_up/0},
                          {"a client that dies in the warm-up", fun linked_in_warm_up/0},
                          {"a worker that dies in the warm-up", fun die_in_warm_up/0},
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

stalled_s(Label, Dir) ->
    {ok, Results, _} = weft_load_results:read(Dir),
    [Cell] = [Of || {_, Workload, _, _, _, _} = Of <- weft_report_results:cells(Results),
                    Workload =:= <<"load ", (atom_to_binary(Label))/binary>>],
    {ok, #{median := StalledS}} = weft_report_results:measured(Cell, <<"load">>, <<"stalled_s">>,
                                                               Results),
    StalledS.

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
    ?assertEqual(Count + Units, sum(Dir, "summary.csv", 4, any)),
    ?assertEqual(Units, sum(Dir, "five_latencies.csv", 3, any)),
    ?assertEqual(3, counted(3)),
    ok = weft_report_load:write(Dir),
    {ok, Page} = file:read_file(weft_report_load:file(Dir)),
    {_, _} = xmerl_scan:string(unicode:characters_to_list(
                                 string:replace(Page, "<!DOCTYPE html>\n", ""))).

sum(Dir, File, Field, Operation) ->
    {ok, Text} = file:read_file(filename:join(Dir, File)),
    [_ | Lines] = weft_report_csv:parse(Text),
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
    %% As Basho Bench: the label and what the driver got, the reason, the count.
    ?assertMatch({_, _}, binary:match(Text, iolist_to_binary(
                                              ["\"{{bad,bad},{no,good}}\",\"",
                                               integer_to_list(Bad), "\"\n"]))).

%% Their files are called as by Basho Bench. What has no weight is never run.
operations_that_are_terms() ->
    {_, Dir} = Result = load([{operations, [{{get, 10}, 3}, {red, {put, [red]}, 1}, {hang, 0}]},
                              {concurrent, 1}]),
    {Count, Count, 0} = total('get-10', Result),
    {0, 0, Failed} = total(red, Result),
    ?assert(Count > Failed andalso Failed > 0),
    ?assertEqual(Count, sum(Dir, "get-10_latencies.csv", 3, any)),
    {ok, Text} = file:read_file(filename:join(Dir, "errors.csv")),
    ?assertEqual([[<<"{{red,{put,[red]}},\"it is \\\"red\\\"\"}">>, integer_to_binary(Failed)]],
                 tl(weft_report_csv:parse(Text))),
    ?assertNot(filelib:is_regular(filename:join(Dir, "hang_latencies.csv"))).

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

%% As with Basho Bench, a generator without more keys ends its worker, and the last one the run.
keys_are_used_up() ->
    Result = load([{operations, [{key, 1}]}, {concurrent, 3}, {duration, {seconds, 30}},
                   {key_generator, {partitioned_sequential_int, 100}}]),
    {{ok, #{finished := 3, errors := [], crashed := [], hung := 0, unfinished := 0}}, _} = Result,
    {100, 100, 0} = total(key, Result).

endless() ->
    {{ok, #{finished := 2, errors := []}}, Dir} = Result =
        load([{operations, [{key, 1}, {thrown, 1}]}, {concurrent, 2}, {duration, infinity}]),
    {Count, Count, 0} = total(key, Result),
    ?assertEqual(Count, sum(Dir, "series.csv", 3, <<"key">>)),
    ?assertEqual(2, counted(3)).

%% The worker lives on and tells it.
linked() ->
    Result = load([{operations, [{linked, 1}, {good, 1}]}, {concurrent, 1}]),
    {{ok, #{crashed := [], errors := Errors}}, _} = Result,
    {Linked, _, 0} = total(linked, Result),
    ?assert(Linked > 10),
    ?assertMatch([Told] when Told >= Linked,
                 [Count || {linked, <<"{linked_process_ended,boom}">>, Count} <- Errors]).

%% The driver is told of its end, too.
clients_end() ->
    Result = load([{operations, [{client, 1}]}, {concurrent, 1}]),
    {{ok, #{crashed := [], errors := [_]}}, _} = Result,
    {0, 0, Crashes} = total(client, Result),
    ?assert(Crashes > 10),
    ?assertEqual(Crashes + 1, counted(3)),
    wait_for(fun() -> counted(6) =:= Crashes end).

wait_for(Condition) -> wait_for(Condition, erlang:monotonic_time(millisecond) + 5000).

wait_for(Condition, EndMs) ->
    case Condition() of
        true -> ok;
        false ->
            ?assert(erlang:monotonic_time(millisecond) < EndMs),
            erlang:yield(),
            wait_for(Condition, EndMs)
    end.

%% Another one comes in the place of each, but not for ever; the run ends when none comes any more.
die() ->
    {Us, Result} = timer:tc(fun() -> load([{operations, [{die, 1}]}, {concurrent, 1},
                                           {duration, {seconds, 30}}]) end),
    {{ok, #{crashed := Crashed, errors := Errors}}, _} = Result,
    ?assertEqual(lists:duplicate(6, killed), Crashed),
    ?assertMatch([{die, <<"{worker_ended,killed}">>, 6}], Errors),
    ?assertEqual({0, 0, 6}, total(die, Result)),
    ?assert(Us < 20000000).

%% What was due meanwhile is not forgotten.
die_open() ->
    {{ok, #{total := Total, crashed := [killed | _], unfinished := Unfinished}}, _} = Result =
        load([{operations, [{die, 1}]}, {concurrent, 1}, {mode, {rate, 100}},
              {duration, {seconds, 30}}]),
    ?assert(Unfinished > 50),
    {0, 0, Failed} = total(die, Result),
    ?assertEqual(Unfinished + 6, Failed),
    #{die := #{response := Response}} = Total,
    ?assertEqual(Unfinished, weft_load_histogram:count(Response)).

no_restart() ->
    {{ok, #{crashed := Crashed}}, _} =
        load([{operations, [{crash, 1}]}, {concurrent, 1}, {start, only_once},
              {duration, {seconds, 30}}]),
    ?assertMatch([{start, {new, {error, only_once}}}, _, _, _, _,
                  {restart, {new, {error, only_once}}}], Crashed).

shutdown_on_error() ->
    {Us, {{ok, #{crashed := Crashed, hung := 0}}, _}} =
        timer:tc(fun() -> load([{operations, [{bad, 1}, {good, 1000}]}, {concurrent, 3},
                                {mode, {rate, 1000}}, {shutdown_on_error, true},
                                {duration, {seconds, 60}}]) end),
    ?assert(lists:member(shutdown_on_error, Crashed)),
    ?assert(Us < 50000000).

%% The one that hangs is told of, what the other did is there.
hanging() ->
    Result = load([{operations, [{hang, 1}, {good, 100}]}, {concurrent, 2}]),
    {{ok, #{hung := Hung, unfinished := Hung, errors := Errors}}, Dir} = Result,
    ?assert(Hung > 0),
    ?assertEqual([{hang, <<"unfinished: begun, not done">>, Hung}], Errors),
    ?assertEqual({0, 0, Hung}, total(hang, Result)),
    %% In half a second nothing has waited for a second, however long it is waited for afterwards.
    ?assert(stalled_s(hang, Dir) == 0),
    ok = weft_report_load:write(Dir),
    {ok, Page} = file:read_file(weft_report_load:file(Dir)),
    ?assertNotEqual(nomatch, binary:match(Page, <<"{hang,hang},unfinished: begun, not done">>)),
    {Good, _, 0} = total(good, Result),
    ?assert(Good > 0).

%% One operation of half a second holds up all that were due meanwhile; service times do not tell.
coordinated_omission() ->
    {{ok, #{total := #{slow := #{service := Service, response := Response}}}}, _} =
        load([{operations, [{slow, 1}]}, {concurrent, 1}, {mode, {rate, 200}},
              {duration, {seconds, 2}}]),
    ?assert(weft_load_histogram:percentile(75, Service) < 50000),
    ?assert(weft_load_histogram:percentile(90, Response) > 100000).

%% What was due while the system stalled is done after the end of the run; it counts from when it
%% was due. How much the run has done is another matter.
stalled_open() ->
    {{ok, #{total := Total, errors := [], hung := 0, unfinished := 0}}, _} =
        load([{operations, [{stalls, 1}]}, {concurrent, 1}, {mode, {rate, 200}},
              {duration, {seconds, 2}}, {operation_timeout_s, 20}]),
    #{stalls := #{service := Service, response := Response}} = Total,
    ?assert(weft_load_histogram:percentile(99, Service) < 200000),
    ?assert(weft_load_histogram:percentile(95, Response) > 200000),
    ?assert(weft_load_histogram:count(Response) > weft_load_histogram:count(Service) + 30).

stalled_closed() ->
    {{ok, #{total := Total, errors := [], hung := 0, unfinished := 0}}, _} =
        load([{operations, [{stalls, 1}]}, {concurrent, 1}, {duration, {seconds, 2}},
              {operation_timeout_s, 20}]),
    #{stalls := #{service := Service, response := Response}} = Total,
    ?assertEqual(weft_load_histogram:count(Service) + 1, weft_load_histogram:count(Response)),
    ?assert(weft_load_histogram:max(Response) > 1000000).

%% The one under way and all that were due after it.
frozen() ->
    {{ok, #{total := Total, errors := Errors, hung := 1, unfinished := Unfinished}}, _} = Result =
        load([{operations, [{freezes, 1}]}, {concurrent, 1}, {mode, {rate, 200}},
              {duration, {seconds, 2}}]),
    #{freezes := #{response := Response}} = Total,
    ?assert(Unfinished > 30 andalso Unfinished < 300),
    ?assertEqual([{freezes, <<"unfinished: due, not begun">>, Unfinished - 1},
                  {freezes, <<"unfinished: begun, not done">>, 1}], Errors),
    {Done, Done, Unfinished} = total(freezes, Result),
    {_, Dir} = Result,
    ?assert(stalled_s(freezes, Dir) < 1.5),
    ?assertEqual(Done + Unfinished, weft_load_histogram:count(Response)),
    ?assert(weft_load_histogram:percentile(95, Response) > 1000000).

%% A worker that is behind is not one that hangs.
too_slow() ->
    {{ok, #{total := Total, hung := 0, finished := 1, unfinished := Unfinished}}, _} =
        load([{operations, [{too_slow, 1}]}, {concurrent, 1}, {mode, {rate, 400}}]),
    #{too_slow := #{service := Service, response := Response, failed := Unfinished}} = Total,
    ?assert(Unfinished > 50),
    %% Others were done in the second after the run.
    Late = weft_load_histogram:count(Response) - weft_load_histogram:count(Service) - Unfinished,
    ?assert(Late > 3 andalso Late < 25).

%% It would take 50 seconds to do what was due in half a second.
interrupted_drain() ->
    %% pacing: the run is over then, and what was due is not done
    _ = erlang:send_after(4000, self(), weft_bench_interrupt),
    {Us, Result} = timer:tc(fun() -> load([{operations, [{too_slow, 1}]}, {concurrent, 1},
                                           {mode, {rate, 2000}}, {operation_timeout_s, 60}])
                            end),
    {{ok, #{hung := 0, finished := 1, unfinished := Unfinished}}, _} = Result,
    ?assert(Unfinished > 500),
    ?assert(Us < 20000000).

hooks() ->
    Hooks = [{pre_hook, {?MODULE, before}}, {post_hook, {?MODULE, afterwards}}],
    {{ok, #{errors := []}}, _} = load([{operations, [{good, 1}]}, {concurrent, 3} | Hooks]),
    ?assertEqual({1, 3}, {counted(5), counted(6)}).

bad_hooks() ->
    {{error, Text}, _} = load([{operations, [{good, 1}]}, {pre_hook, {?MODULE, fails}}]),
    ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"pre_hook: {error,no_luck">>)),
    ?assertEqual(0, counted(1)),
    {{error, Other}, _} = load([{operations, [{good, 1}]}, {post_hook, {?MODULE, no_such}}]),
    ?assertMatch({_, _}, binary:match(list_to_binary(Other), <<"post_hook: there is no">>)),
    {{ok, #{crashed := [{post_hook, {error, no_luck, _}}]}}, _} = Result =
        load([{operations, [{good, 1}]}, {post_hook, {?MODULE, fails}}]),
    {Count, Count, 0} = total(good, Result),
    ?assert(Count > 0).

%% In half a second 100 workers want some 50 operations. All at the begin are 100 more.
no_burst() ->
    {Count, Count, 0} = total(good, load([{operations, [{good, 1}]}, {concurrent, 100},
                                          {mode, {rate, 1}}])),
    ?assert(Count > 0 andalso Count < 100).

%% All that was due counts, also what was done a little late.
a_given_rate() ->
    {{ok, #{total := #{good := #{response := Response}}}}, _} = Result =
        load([{operations, [{good, 1}]}, {concurrent, 2}, {mode, {rate, 300}},
              {duration, {seconds, 2}}, {operation_timeout_s, 20}]),
    {_, _, 0} = total(good, Result),
    Count = weft_load_histogram:count(Response),
    ?assert(Count > 900 andalso Count < 1500),
    ?assert(weft_load_histogram:percentile(50, Response) < 250000).

warm_up() ->
    Result = load([{operations, [{good, 1}]}, {concurrent, 1}, {mode, {rate, 200}},
                   {warm_up_s, 0.5}]),
    {Count, _, 0} = total(good, Result),
    ?assert(counted(1) > 130),
    ?assert(Count < 130).

%% Some 70 operations that were due in the warm-up are done in the run. They are not counted in it,
%% nor are their times.
slow_warm_up() ->
    {{ok, #{total := #{slow_at_first := #{response := Response}}}}, _} = Result =
        load([{operations, [{slow_at_first, 1}]}, {concurrent, 1}, {mode, {rate, 80}},
              {warm_up_s, 1}, {duration, {seconds, 1}}]),
    {Count, _, 0} = total(slow_at_first, Result),
    ?assert(Count < 120),
    ?assert(weft_load_histogram:count(Response) < 120),
    ?assert(weft_load_histogram:percentile(50, Response) < 400000).

interrupted_warm_up() ->
    self() ! weft_bench_interrupt,
    StartMs = erlang:monotonic_time(millisecond),
    Result = load([{operations, [{good, 1}]}, {concurrent, 1}, {mode, {rate, 50}},
                   {warm_up_s, 40}, {duration, {seconds, 40}}]),
    ?assertEqual({0, 0, 0}, total(good, Result)),
    ?assert(erlang:monotonic_time(millisecond) - StartMs < 20000).

%% One in its place comes in a tenth of a second, and not when the warm-up is over: it would begin
%% with all that was due in it.
die_in_warm_up() ->
    {{ok, #{crashed := Crashed}}, _} = Result =
        load([{operations, [{die_once, 1}]}, {concurrent, 1}, {mode, {rate, 100}},
              {warm_up_s, 3}, {duration, {seconds, 3}}]),
    ?assertEqual([killed], Crashed),
    ?assertMatch({_, _, 0}, total(die_once, Result)),
    ?assert(counted(6) < 2500).

%% It is no error, as operations that fail then are none.
linked_in_warm_up() ->
    {{ok, #{errors := [], crashed := []}}, _} = Result =
        load([{operations, [{linked_at_first, 1}]}, {concurrent, 1}, {warm_up_s, 0.5}]),
    {Count, Count, 0} = total(linked_at_first, Result),
    ?assert(Count > 0).

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
    forget(weft_load_sourced),
    %% What it calls may be beside it; what has nothing to do with it need not compile.
    ok = file:write_file(filename:join(Dir, "weft_load_beside.erl"),
                         "-module(weft_load_beside).\n-export([key/1]).\n"
                         "key(_) -> fun() -> 8 end.\n"),
    ok = file:write_file(filename:join(Dir, "weft_load_broken.erl"), "-module(weft_load_broken"),
    Write("new(_) -> {ok, none}.\nrun(_, K, _, S) -> 8 = K(), {ok, S}.\n"),
    {Beside, _, 0} = total(any, load([{key_generator, {function, weft_load_beside, key, []}}
                                      | Pairs])),
    ?assert(Beside > 0),
    forget(weft_load_sourced),
    Write("new(Id) -> {ok, Unbound}.\n"),
    {{error, Text}, _} = load(Pairs),
    ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"weft_load_sourced.erl">>)).

forget(Module) ->
    true = code:delete(Module),
    _ = code:purge(Module),
    ok.

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

%% A second run would mix its files with those of the first.
results_are_not_written_over_test() ->
    Dir = dir(),
    ?assertEqual(ok, weft_load_files:is_free(Dir)),
    File = filename:join(Dir, "load.config"),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, io_lib:format("{driver, ~s}. {operations, [{silent, 1}]}.\n"
                                             "{duration, {seconds, 0.2}}.\n", [?MODULE])),
    persistent_term:put(?MODULE, counters:new(6, [])),
    ?assertEqual(0, weft_load_cli:main([File, "--out", Dir])),
    {error, Text} = weft_load_files:is_free(Dir),
    ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"--out">>)),
    {ok, Before} = file:read_file(filename:join(Dir, "summary.csv")),
    ?assertEqual(2, weft_load_cli:main([File, "--out", Dir])),
    ?assertEqual({ok, Before}, file:read_file(filename:join(Dir, "summary.csv"))).

%% Each names the key and what was expected.
bad_configurations_test() ->
    [begin
         {error, Text} = weft_load_config:check([{driver, d} | Pairs]),
         ?assertMatch({_, _}, binary:match(list_to_binary(Text), Word))
     end || {Word, Pairs} <- [{<<"mode">>, [{mode, fast}]}, {<<"duration">>, [{duration, -1}]},
                              {<<"warm_up_s">>, [{duration, {seconds, 1}}, {warm_up_s, 2}]},
                              {<<"duration">>, [{duration, forever}]},
                              {<<"distribute_work">>, [{distribute_work, true}]},
                              {<<"state_dir">>, [{sequential_int_state_dir, "/tmp"}]},
                              {<<"pre_hook">>, [{pre_hook, {a, b, c}}]},
                              {<<"post_hook">>, [{post_hook, nonsense}]},
                              {<<"concurrent">>, [{concurrent, 0}]},
                              {<<"operations">>, [{operations, []}]},
                              {<<"operations">>, [{operations, [{get, zero}]}]},
                              {<<"operations: one of them">>, [{operations, [{get, 0}]}]},
                              {<<"operations: a list">>, [{operations, [{get, 1} | x]}]},
                              {<<"operations: get-10 and get_10 would both write get-10_lat">>,
                               [{operations, [{get_10, 1}, {{get, 10}, 1}]}]},
                              {<<"operations: a label">>,
                               [{operations, [{lists:duplicate(200, $a), 1}]}]},
                              {<<"duraton: there is no such key; duration?">>, [{duraton, 1}]},
                              {<<"mod: there is no such key; mode?">>, [{mod, max}]},
                              {<<"operations?">>, [{operation, [{get, 1}]}]},
                              {<<"rng_seed">>, [{rng_seed, 1}]}, {<<"Key">>, [nonsense]},
                              {<<"shutdown_on_error">>, [{shutdown_on_error, 1}]}]],
    %% One of no weight writes nothing.
    {ok, _} = weft_load_config:check([{driver, d}, {operations, [{get_10, 1}, {{get, 10}, 0}]}]),
    %% A key that only looks like one that is given too may be the driver's.
    {ok, Config} = weft_load_config:check([{driver, d}, {drivers, 2}, {my_key, 1}]),
    ?assertEqual([drivers, my_key], weft_load_config:for_driver(Config)),
    %% So may a short one that is as near to one that is not given: there are many such words.
    {ok, Nodes} = weft_load_config:check([{driver, d}, {nodes, ['a@b']}, {node, 'a@b'}, {code, 1}]),
    ?assertEqual([code, node, nodes], weft_load_config:for_driver(Nodes)),
    {error, NoDriver} = weft_load_config:check([]),
    ?assertMatch({_, _}, binary:match(list_to_binary(NoDriver), <<"driver">>)),
    {error, NoFile} = weft_load_config:read("no_such_file"),
    ?assertMatch({_, _}, binary:match(list_to_binary(NoFile), <<"no_such_file">>)).
