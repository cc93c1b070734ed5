%% SPDX-License-Identifier: Apache-2.0
%% @doc Short countings: a call passes the processes of weft and none of them on stock, and each
%% call is counted once; how many functions are called for it; what perf says is read.
-module(weft_bench_costs_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([calls_are_counted/1, totals_are_medians/1, wrong_arguments_are_refused/1,
         counts_of_perf_are_read/1, parts_of_perf_are_summed/1]).

%% Function calls that a message takes more than on stock, on its way out, and as many on its way
%% in, at most. Modules of another release of OTP have other functions.
-define(PASSAGE_CALLS_MAX, 60).
-define(COUNTED_WITH, "25").
-define(REPETITIONS, 3).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [calls_are_counted, totals_are_medians, wrong_arguments_are_refused, counts_of_perf_are_read,
     parts_of_perf_are_summed].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

%% Of each call the caller, the server, and with weft a session and a link on both sides hear once
%% or twice.
calls_are_counted(Config) ->
    Dir = ?config(priv_dir, Config),
    ?assertEqual(0, weft_bench_costs:main(["--only", "call", "--for_ms", "300", "--repetitions",
                                           integer_to_list(?REPETITIONS), "--out", Dir])),
    Counted = rows(Dir, "costs.csv"),
    Rows = of_repetition(1, Counted),
    [?assert(about(1, value(Variant, <<"receiver">>, <<"received">>, <<"weft_bench_calls">>, Rows)))
     || Variant <- [<<"stock">>, <<"weft_1">>]],
    [?assert(about(Count, value(<<"weft_1">>, Node, <<"received">>, Kind, Rows)))
     || Node <- [<<"sender">>, <<"receiver">>],
        {Kind, Count} <- [{<<"weft_link">>, 1}, {<<"weft_session">>, 2}]],
    ?assertEqual([], [Row || #{<<"variant">> := <<"stock">>, <<"of">> := Of} = Row <- Rows,
                             lists:member(Of, [<<"weft_link">>, <<"weft_session">>])]),
    [?assert(value(Variant, <<"receiver">>, <<"calls">>, <<"gen_server">>, Rows) >= 1)
     || Variant <- [<<"stock">>, <<"weft_1">>]],
    [?assert(value(Variant, <<"sender">>, <<"processor_us">>, <<"all">>, Rows) > 0)
     || Variant <- [<<"stock">>, <<"weft_1">>]],
    Totals = rows(Dir, "totals.csv"),
    [_] = [Row || #{<<"variant">> := <<"stock">>, <<"what">> := <<"received">>,
                    <<"of">> := <<"all">>} = Row <- Totals],
    few_calls_to_a_passage(Counted).

%% A call is two messages, and each of them passes twice. What else runs on the machine can only add
%% calls: a node that waits for a processor looks whether it is busy (`weft_turn').
few_calls_to_a_passage(Counted) ->
    [Stock, Weft] = [lists:min([calls_of_one(Variant, of_repetition(Repetition, Counted))
                                || Repetition <- lists:seq(1, ?REPETITIONS)])
                     || Variant <- [<<"stock">>, <<"weft_1">>]],
    Passage = (Weft - Stock) / 4,
    ct:pal("~.1f function calls more for a passage", [Passage]),
    %% It passes a session or a link: if these were not counted it would be less.
    ?assert(Passage > 20),
    ?assert(erlang:system_info(otp_release) =/= ?COUNTED_WITH
            orelse Passage =< ?PASSAGE_CALLS_MAX).

%% Who tells the nodes what to do is heard meanwhile, and what they have measured is sorted.
calls_of_one(Variant, Rows) ->
    lists:sum([number(Value) || #{<<"variant">> := V, <<"what">> := <<"calls">>, <<"of">> := Of,
                                  <<"value">> := Value} <- Rows,
                                V =:= Variant, Of =/= <<"peer">>, Of =/= <<"lists">>]).

of_repetition(Repetition, Rows) ->
    [Row || #{<<"repetition">> := R} = Row <- Rows, binary_to_integer(R) =:= Repetition].

rows(Dir, Name) ->
    {ok, Text} = file:read_file(filename:join(Dir, Name)),
    [Header | Lines] = weft_report_csv:parse(Text),
    [maps:from_list(lists:zip(Header, Line)) || Line <- Lines].

%% A call that is not in the second repetition was not made there; the sum that is there is not
%% added up.
totals_are_medians(_Config) ->
    Row = fun(Repetition, Node, What, Of, Value) ->
              #{cell => call, variant => stock, repetition => Repetition, unit => call,
                node => Node, what => What, 'of' => Of, value => Value}
          end,
    Rows = [Row(1, sender, calls, <<"lists">>, 2.0), Row(1, receiver, calls, <<"lists">>, 3.0),
            Row(1, sender, calls, <<"maps">>, 4.0), Row(2, sender, calls, <<"lists">>, 7.0),
            Row(1, all, system_calls, <<"all">>, 10), Row(1, all, system_calls, <<"writev">>, 2),
            Row(2, all, system_calls, <<"all">>, 12), Row(2, all, system_calls, <<"writev">>, 2)],
    ?assertEqual([{calls, <<"all">>, 8.0}, {calls, <<"lists">>, 6.0}, {calls, <<"maps">>, 2.0},
                  {system_calls, <<"all">>, 11.0}, {system_calls, <<"writev">>, 2.0}],
                 [{What, Of, Value} || #{what := What, 'of' := Of, value := Value}
                                           <- weft_bench_costs:totals(Rows)]).

value(Variant, Node, What, Of, Rows) ->
    [Value] = [Value || #{<<"variant">> := V, <<"node">> := N, <<"what">> := W, <<"of">> := O,
                          <<"value">> := Value} <- Rows,
                        {V, N, W, O} =:= {Variant, Node, What, Of}],
    number(Value).

number(Text) ->
    try binary_to_float(Text) catch error:badarg -> float(binary_to_integer(Text)) end.

%% One that answers late may count more than once, and pings and ticks are heard, too.
about(Count, Value) -> Value >= 0.9 * Count andalso Value =< 1.2 * Count.

wrong_arguments_are_refused(_Config) ->
    [?assertEqual({Arguments, 2}, {Arguments, weft_bench_costs:main(Arguments)})
     || Arguments <- [["--only", "nothing"], ["--for_ms", "1"], ["--repetitions", "0"]]].

counts_of_perf_are_read(_Config) ->
    Text = <<"# started on a day\n\n"
             "13,,raw_syscalls:sys_enter,100,100.00,,\n"
             "4,,syscalls:sys_enter_writev,100,100.00,,\n"
             "0,,syscalls:sys_enter_read,100,100.00,,\n"
             "<not supported>,,cache-misses,0,100.00,,\n">>,
    ?assertEqual([{system_calls, <<"all">>, 13}, {system_calls, <<"writev">>, 4},
                  {system_calls, <<"others">>, 9}], weft_bench_perf:counts(Text)).

parts_of_perf_are_summed(_Config) ->
    Text = <<"    50.00%;2;[kernel.kallsyms];[k] tcp_ack\n"
             "    25.00%;1;[kernel.kallsyms];[k] rep_movs_alternative\n"
             "    25.00%;1;libc.so.6;[.] __memmove_avx_unaligned_erms\n"
             "    25.00%;3;beam.smp;[.] erts_schedule\n"
             "    25.00%;5;memfd:vmem (deleted);[.] 0x00000000005d930c\n">>,
    ?assertEqual([{processor_us_of, <<"Erlang code">>, 5000.0},
                  {processor_us_of, <<"emulator">>, 3000.0},
                  {processor_us_of, <<"emulator, copying">>, 1000.0},
                  {processor_us_of, <<"kernel">>, 2000.0},
                  {processor_us_of, <<"kernel, copying">>, 1000.0}],
                 weft_bench_perf:parts(Text, 1000)).
