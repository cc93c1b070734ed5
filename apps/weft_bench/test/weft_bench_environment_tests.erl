%% SPDX-License-Identifier: Apache-2.0
-module(weft_bench_environment_tests).

-include_lib("eunit/include/eunit.hrl").

what_hosts_have_in_common_is_there_once_test() ->
    Of = fun(Cores) -> [{"date", "today"}, {"commit", "none"}, {"otp_release", "25"},
                        {"cores", Cores}, {"flags_of_nodes", "+sbwt none"}]
         end,
    ?assertEqual([{"otp_release", "25"}, {"cores of h1", "2"}, {"cores of h2", "64"}],
                 weft_bench_environment:of_hosts([{"h1", Of("2")}, {"h2", Of("64")}])),
    ?assertEqual([{"otp_release", "25"}, {"cores", "2"}],
                 weft_bench_environment:of_hosts([{"h1", Of("2")}, {"h2", Of("2")}])).
