%% SPDX-License-Identifier: Apache-2.0
-module(weft_json_tests).

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
