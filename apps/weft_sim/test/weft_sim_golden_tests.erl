%% SPDX-License-Identifier: Apache-2.0
%% @doc Golden scenarios: test/golden/*.txt holds a scenario and, below a line of dashes, the trace
%% that it gives. A change of behaviour shows as a difference of text.
%%
%% With WEFT_GOLDEN=rewrite in the environment the traces are written anew; commit them only if you
%% understand every line that changed.
%%
%% The scenario is a list of Erlang terms: `{topology, Term}' as in the configuration of a node,
%% `{AtMs, Verb}' (see `weft_sim_world'), and `{until, Ms}'. Latency is 1 to 2 ms, a broken link is
%% noticed after 100 to 200 ms.
-module(weft_sim_golden_tests).

-include_lib("eunit/include/eunit.hrl").

-define(RULE, "----------\n").

golden_test_() ->
    Files = filelib:wildcard(filename:join(directory(), "*.txt")),
    [?_assert(length(Files) >= 4)
     | [{filename:basename(File), fun() -> check(File) end} || File <- Files]].

check(File) ->
    {ok, Text} = file:read_file(File),
    [Scenario | Expected] = string:split(Text, ?RULE),
    Trace = unicode:characters_to_binary(weft_sim_trace:format(trace(Scenario))),
    case os:getenv("WEFT_GOLDEN") of
        "rewrite" -> ok = file:write_file(File, [Scenario, ?RULE, Trace]);
        _ -> ?assertEqual(lines(iolist_to_binary(Expected)), lines(Trace))
    end.

lines(Text) ->
    binary:split(Text, <<"\n">>, [global]).

trace(Scenario) ->
    Terms = terms(binary_to_list(Scenario)),
    {ok, Topology, Options} = weft_topology:parse(proplists:get_value(topology, Terms)),
    World0 = weft_sim_world:new(#{seed => 1, trace => true, latency_us => {1000, 2000},
                                  detection_ms => {100, 200},
                                  machines => fun(_Node) ->
                                                  [{topology, Topology, Options},
                                                   {router, weft_router_core, #{}}]
                                              end}),
    World = lists:foldl(fun({AtMs, Verb}, W) -> weft_sim_world:schedule(AtMs, Verb, W) end, World0,
                        [Step || {AtMs, _} = Step <- Terms, is_integer(AtMs)]),
    weft_sim_world:trace(weft_sim_world:run_until(proplists:get_value(until, Terms), World)).

terms(Text) ->
    case erl_scan:tokens([], Text, 1) of
        {done, {ok, Tokens, _}, Rest} ->
            {ok, Term} = erl_parse:parse_term(Tokens),
            [Term | terms(Rest)];
        {more, _} -> [];
        {done, {eof, _}, _} -> []
    end.

%% Beside this file, also when the tests run from a copy elsewhere.
directory() ->
    Source = proplists:get_value(source, module_info(compile)),
    filename:join(filename:dirname(Source), "golden").
