%% SPDX-License-Identifier: Apache-2.0
%% @doc Ports from the configuration.
-module(weft_epmd_tests).

-include_lib("eunit/include/eunit.hrl").

a_node_has_the_port_of_its_name_or_that_of_all_others_test() ->
    ?assertEqual([{port, 4371, 6}, {port, 4370, 6}],
                 ports(["db", "web"], #{default => 4370, "db" => 4371})).

%% It may run all the same, and call.
of_some_nodes_no_port_is_known_test() ->
    ?assertEqual([{port, 4371, 6}, {error, no_port}], ports(["db", "web"], #{"db" => 4371})),
    ?assertEqual([{error, no_port}], ports(["db"], #{})).

ports(Names, Configured) ->
    ok = application:set_env(weft, ports, Configured),
    Ports = [weft_epmd:port_please(Name, "host") || Name <- Names],
    ok = application:unset_env(weft, ports),
    Ports.
