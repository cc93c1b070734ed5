%% SPDX-License-Identifier: Apache-2.0
-module(weft_json_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

json(Term) -> iolist_to_binary(weft_json:encode(Term)).

scalars_test() ->
    ?assertEqual(<<"[null,null,true,false,\"up\",\"text\",-7,0.5]">>,
                 json([null, undefined, true, false, up, <<"text">>, -7, 0.5])).

containers_test() ->
    ?assertEqual(<<"{\"a\":[],\"b\":{},\"c\":[1,[2]]}">>,
                 json(#{c => [1, [2]], a => [], <<"b">> => #{}})).

strings_are_escaped_test() ->
    ?assertEqual(<<"\"say \\\"hi\\\" \\\\ \\n \\u0001 ", "ä"/utf8, "\"">>,
                 json(<<"say \"hi\" \\ \n ", 1, " ", "ä"/utf8>>)).

what_is_no_utf8_is_latin1_test() ->
    ?assertEqual(<<"\"", "ä"/utf8, "\"">>, json(<<"ä">>)).

what_is_no_json_crashes_test() ->
    ?assertError(function_clause, weft_json:encode({a, tuple})).

%% --- reading ------------------------------------------------------------------------------------

what_is_read_test() ->
    [?assertEqual({Text, {ok, Term}}, {Text, weft_json:decode(Text)})
     || {Text, Term} <- [{<<" {\"a\" : [1, -2.5,true,null] , \"b\":{}}\n">>,
                          #{<<"a">> => [1, -2.5, true, null], <<"b">> => #{}}},
                         {<<"[]">>, []}, {<<"[ [ ] ]">>, [[]]}, {<<"false">>, false},
                         {<<"0">>, 0}, {<<"-0.5e1">>, -5.0}, {<<"2E+2">>, 200.0},
                         {<<"{\"a\":1,\"a\":2}">>, #{<<"a">> => 2}},
                         {<<"\"\\u00e4\\n\\/\\\"\\ud83d\\ude00\"">>, <<"ä\n/\"😀"/utf8>>},
                         {<<"\"ä\""/utf8>>, <<"ä"/utf8>>}]].

what_is_no_json_is_an_error_test() ->
    [?assertEqual({Text, {error, not_json}}, {Text, weft_json:decode(Text)})
     || Text <- [<<>>, <<" ">>, <<"{">>, <<"[1,]">>, <<"[1 2]">>, <<"{\"a\"}">>, <<"{a:1}">>,
                 <<"{\"a\":1,}">>, <<"01">>, <<"1.">>, <<"+1">>, <<"1e999">>, <<"nul">>,
                 <<"\"a">>, <<"\"", 10, "\"">>, <<"\"", 255, "\"">>, <<"\"\\x\"">>,
                 <<"\"\\u12\"">>, <<"\"\\u-123\"">>, <<"\"\\ud800\"">>,
                 <<"\"\\ud800\\u0041\"">>, <<"\"\\udc00\"">>, <<"1 2">>,
                 binary:copy(<<"[">>, 4000)]].

nested_as_deep_as_may_be_test() ->
    Nested = fun(Depth) -> <<(binary:copy(<<"[">>, Depth))/binary,
                             (binary:copy(<<"]">>, Depth))/binary>> end,
    ?assertMatch({ok, [_]}, weft_json:decode(Nested(32))),
    ?assertEqual({error, not_json}, weft_json:decode(Nested(33))).

what_was_written_is_read_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(?FORALL(Term, term(3),
                                                     weft_json:decode(json(Term)) =:= {ok, Term}),
                                             [{to_file, user}, {numtests, 100}, {max_size, 12}]))}.

term(0) -> oneof([integer(), float(), boolean(), null, utf8()]);
term(Depth) -> oneof([term(0), list(term(Depth - 1)),
                      ?LET(Pairs, list({utf8(), term(Depth - 1)}), maps:from_list(Pairs))]).
