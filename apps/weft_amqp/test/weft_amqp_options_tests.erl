%% SPDX-License-Identifier: Apache-2.0
-module(weft_amqp_options_tests).

-include_lib("eunit/include/eunit.hrl").

one_url_or_several_test() ->
    [?assertMatch({ok, #{brokers := Brokers}} when length(Brokers) =:= Count, parse(Broker))
     || {Broker, Count} <- [{"amqp://a", 1}, {["amqp://a"], 1}, {["amqp://a", "amqp://b"], 2}]].

defaults_and_the_name_of_the_exchange_test() ->
    {ok, Options} = parse("amqp://a"),
    ?assertMatch(#{announce_ms := 5000, part_bytes := 1048576, exchange := <<"weft.c">>}, Options).

one_bad_url_is_an_error_test() ->
    ?assertMatch({error, _}, parse(["amqp://a", "amqp://b:port"])).

the_name_of_a_cluster_must_fit_test() ->
    Parse = fun(Bytes) -> weft_amqp_options:parse(#{broker => "amqp://a"},
                                                  binary:copy(<<"c">>, Bytes)) end,
    ?assertMatch({ok, _}, Parse(250)),
    ?assertMatch({error, _}, Parse(251)).

parse(Broker) -> weft_amqp_options:parse(#{broker => Broker}, <<"c">>).
