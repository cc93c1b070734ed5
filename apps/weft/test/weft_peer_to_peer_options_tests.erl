%% SPDX-License-Identifier: Apache-2.0
%% @doc The topology peer_to_peer in a configuration: what is accepted, and what the errors say.
-module(weft_peer_to_peer_options_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, 'a@host').

it_is_a_topology_of_the_configuration_test() ->
    ?assertEqual({ok, weft_peer_to_peer_core, #{seeds => [?A]}},
                 weft_topology:parse({peer_to_peer, #{seeds => [?A]}})),
    ?assert(weft_peer_to_peer_core:partial(?A, #{seeds => [?A]})),
    ?assertEqual([?A], weft_topology:seeds(weft_peer_to_peer_core, #{seeds => [?A]})),
    ?assertEqual([], weft_topology:seeds(weft_peer_to_peer_core, #{seeds => discovered})).

good_options_are_accepted_test_() ->
    [?_assertEqual(ok, weft_topology:validate(?A, {peer_to_peer, Options}))
     || Options <- [#{seeds => [?A]}, #{seeds => discovered},
                    #{seeds => ['b@host'], active => 2, passive => 2},
                    #{seeds => [?A], shuffle_ms => 100, probe_ms => 86400000},
                    #{seeds => [?A], optimise => rtt, optimise_ms => 100, unbiased => 0}]].

%% {Options, words that the error must contain}.
errors_say_what_is_wrong_where_and_what_to_write_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Options])), fun() -> assert_error(Options, Words) end}
     || {Options, Words} <-
            [{[?A], ["options of topology peer_to_peer", "seeds =>"]},
             {#{}, ["needs seeds", "seeds => ['name@host'", "discovered"]},
             {#{seeds => []}, ["needs seeds"]},
             {#{seeds => ?A}, ["seeds of the peer_to_peer topology", "a@host", "no list"]},
             {#{seeds => [a]}, ["a is no node name", "'name@host'"]},
             {#{seeds => [?A], activ => 4}, ["no option activ", "active"]},
             {#{seeds => [?A], active => 1}, ["active", "is 1", "from 2 to 100"]},
             {#{seeds => [?A], active => 4, passive => 3}, ["passive", "is 3", "from 4 to 10000"]},
             {#{seeds => [?A], shuffle_ms => 5}, ["shuffle_ms", "is 5", "from 100"]},
             {#{seeds => [?A], optimise => latency}, ["optimise", "is latency", "write rtt"]},
             {#{seeds => [?A], optimise_ms => 1}, ["optimise_ms", "is 1", "from 100"]},
             {#{seeds => [?A], active => 3, unbiased => 3}, ["unbiased", "is 3", "from 0 to 2"]},
             {#{seeds => [?A], probe_ms => often}, ["probe_ms", "is often", "whole number"]}]].

assert_error(Options, Words) ->
    {error, Text0} = weft_topology:validate(?A, {peer_to_peer, Options}),
    Text = lists:flatten(Text0),
    lists:foreach(fun(Word) ->
                      ?assert(string:find(Text, Word) =/= nomatch, Text ++ " lacks " ++ Word)
                  end, Words).
