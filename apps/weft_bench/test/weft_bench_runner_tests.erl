%% SPDX-License-Identifier: Apache-2.0
%% @doc Which cells are left out, and why; what is done with the others is in weft_bench_SUITE.
-module(weft_bench_runner_tests).

-include_lib("eunit/include/eunit.hrl").

%% Without root there are none.
only_emulated_links_need_to_be_emulated_test() ->
    [Cell | _] = weft_bench_throughput:cells(quick),
    Host = #{address => "localhost", erl => "erl", code => [],
             command => fun([Program | Arguments]) -> {Program, Arguments} end},
    [OnHosts] = weft_bench_hosts:on(#{near => Host, far => Host, epmd_port => 4369}, [Cell]),
    No = {error, "no network namespaces"},
    [?assertEqual({Label, Expected}, {Label, weft_bench_runner:why_not(Of, stock, No)})
     || {#{link := #{label := Label}} = Of, Expected}
            <- [{Cell, ok}, {OnHosts, ok},
                {Cell#{link := weft_bench_link:emulated(1, 800, 0)}, No}]].
