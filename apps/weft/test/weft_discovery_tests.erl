%% SPDX-License-Identifier: Apache-2.0
%% @doc Sources of discovery: what may be configured, and what each answers.
-module(weft_discovery_tests).

-include_lib("eunit/include/eunit.hrl").

good_sources_get_their_defaults_test_() ->
    [?_assertMatch({ok, [{Name, _, _}]}, weft_discovery_options:parse([{Name, Options}]))
     || {Name, Options} <- [{static, #{nodes => ['a@b']}}, {file, #{path => "nodes"}},
                            {env, #{variable => "SEEDS"}}, {dns, #{name => "app"}},
                            {dns, #{name => "app", type => srv, node => "x"}}, {gossip, #{}},
                            {kubernetes, #{service => "web", namespace => "default"}},
                            {epmd, #{hosts => ["h1"]}}, {weft_discovery_file, #{any => thing}}]].

%% {Configured term, words that the error must contain}.
errors_say_which_source_and_option_are_wrong_and_what_to_write_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Term])), fun() -> assert_error(Term, Words) end}
     || {Term, Words} <-
            [{dns, ["discovery is dns", "[{Source, Options}", "kubernetes"]},
             {[dns], ["discovery has dns", "write {Source"]},
             {[{dms, #{name => "app"}}], ["dms is neither", "dns"]},
             {[{lists, #{}}], ["lists has no function discover/1"]},
             {[{dns, #{}}], ["dns needs name"]},
             {[{dns, #{name => app}}], ["name of discovery source dns is app", "of the DNS"]},
             {[{dns, #{name => "app", typ => a}}], ["no option typ", "type"]},
             {[{dns, #{name => "app", type => mx}}], ["type", "mx", "a, aaaa or srv"]},
             {[{dns, #{name => "app", node => "a b"}}], ["node", "a b"]},
             {[{dns, #{name => "app", nameservers => [{1, 2}]}}], ["nameservers", "Port"]},
             {[{static, #{nodes => [a]}}], ["nodes of discovery source static", "'name@host'"]},
             {[{kubernetes, #{service => "web"}}], ["kubernetes needs namespace"]},
             {[{kubernetes, #{service => "a", namespace => "b", by => name}}], ["by", "hostname"]},
             {[{epmd, #{hosts => []}}], ["hosts", "list of host names"]},
             {[{gossip, #{port => 0}}], ["port", "a UDP port"]},
             {[{gossip, #{}}, {gossip, #{}}], ["gossip twice"]}]].

assert_error(Term, Words) ->
    {error, Text0} = weft_discovery_options:parse(Term),
    Text = lists:flatten(Text0),
    [?assertNotEqual({nomatch, Word, Text}, {string:find(Text, Word), Word, Text})
     || Word <- Words].

names_are_taken_from_text_and_all_else_is_left_out_test() ->
    Text = <<"a@h1, b@h2\n# c@h3\n\t d@h4;e@10.0.0.1 # f@h\r\nnothing @h5 g@ h@i@j k@l!m\n">>,
    ?assertEqual(['a@h1', 'b@h2', 'd@h4', 'e@10.0.0.1'],
                 weft_discovery_names:nodes(weft_discovery_names:words(Text))),
    ?assertEqual([], weft_discovery_names:words(<<16#ff, 16#fe>>)),
    ?assertNot(weft_discovery_names:is_name(lists:duplicate(255, $a) ++ "@h")).

an_answer_is_sorted_without_this_node_and_bounded_test() ->
    ?assertEqual({ok, ['a@h', 'b@h']},
                 weft_discovery_source:discover(weft_discovery_static,
                                         #{nodes => ['b@h', node(), 'a@h', 'b@h']})),
    Many = [list_to_atom("n" ++ integer_to_list(N) ++ "@h") || N <- lists:seq(1, 1200)],
    {ok, Taken} = weft_discovery_source:discover(weft_discovery_static, #{nodes => Many}),
    ?assertEqual(1000, length(Taken)).

a_file_is_read_anew_each_time_test() ->
    Path = filename:join(os:getenv("TMPDIR", "/tmp"),
                         "weft_nodes_" ++ os:getpid() ++ integer_to_list(erlang:unique_integer())),
    ?assertEqual({error, enoent}, weft_discovery_file:discover(#{path => Path})),
    try
        ok = file:write_file(Path, "a@h\n"),
        ?assertEqual({ok, ['a@h']}, weft_discovery_file:discover(#{path => Path})),
        ok = file:write_file(Path, "b@h c@h\n"),
        ?assertEqual({ok, ['b@h', 'c@h']}, weft_discovery_file:discover(#{path => Path})),
        ok = file:write_file(Path, <<"a@h\n# all of them\nb@h x", 16#ff, "@h c@h\n\nd@h no\n">>),
        ?assertEqual({ok, ['a@h', 'b@h', 'c@h', 'd@h'],
                      {no_node_names, #{file => Path, line => 3, words => [[$x, 16#ff | "@h"]],
                                        wrong_lines => 2}}},
                     weft_discovery_source:discover(weft_discovery_file, #{path => Path}))
    after
        file:delete(Path)
    end.

a_variable_of_the_environment_names_nodes_test() ->
    Variable = "WEFT_TEST_SEEDS",
    true = os:unsetenv(Variable),
    ?assertEqual({error, not_set}, weft_discovery_env:discover(#{variable => Variable})),
    true = os:putenv(Variable, "a@h,b@h"),
    ?assertEqual({ok, ['a@h', 'b@h']}, weft_discovery_env:discover(#{variable => Variable})),
    true = os:unsetenv(Variable).
