%% SPDX-License-Identifier: Apache-2.0
%% @doc A cell over the TLS of OTP is measured, and leaves no key behind. One over that of weft is
%% in weft_bench_commands_SUITE.
-module(weft_bench_tls_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([stock_tls_is_measured/1]).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [stock_tls_is_measured].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

stock_tls_is_measured(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "stock_tls"),
    ?assertEqual(0, weft_bench_cli:main(["--quick", "--only", "a small 100 B x 16", "--variants",
                                         "stock_tls", "--repetitions", "1", "--out", Dir])),
    {ok, Rows} = weft_report_record:read(Dir),
    ?assertEqual([], [Row || #{metric := Metric} = Row <- Rows,
                             lists:member(Metric, [<<"failed">>, <<"skipped">>])]),
    [Rate] = [Rate || #{metric := <<"messages_per_s">>, value := Rate} <- Rows],
    ?assert(Rate > 1000),
    ?assertEqual([], filelib:wildcard("**/*.pem", Dir)).
