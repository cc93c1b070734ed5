%% SPDX-License-Identifier: Apache-2.0
%% @doc All bytes go to text and back, and what is no such text is an error.
-module(weft_octets_tests).

-include_lib("eunit/include/eunit.hrl").

all_bytes_come_back_test_() ->
    [?_assertEqual({ok, Bytes}, From(To(Bytes)))
     || Bytes <- [<<>>, <<0>>, <<"ann">>, <<"a/b%c">>, list_to_binary(lists:seq(0, 255))],
        {To, From} <- [{fun weft_octets:percent/1, fun weft_octets:from_percent/1},
                       {fun weft_octets:base64url/1, fun weft_octets:from_base64url/1}]].

only_what_may_stand_in_a_url_is_written_test_() ->
    All = list_to_binary(lists:seq(0, 255)),
    [?_assertEqual(<<"a%2Fb%20%25%FF~">>, weft_octets:percent(<<"a/b %", 255, "~">>)),
     ?_assertEqual(match, re:run(weft_octets:percent(All), "^[A-Za-z0-9%._~-]+$",
                                 [{capture, none}])),
     ?_assertEqual(match, re:run(weft_octets:base64url(All), "^[A-Za-z0-9_-]+$",
                                 [{capture, none}]))].

what_is_no_such_text_is_an_error_test_() ->
    [?_assertEqual({Text, error}, {Text, weft_octets:from_percent(Text)})
     || Text <- [<<"%">>, <<"a%2">>, <<"%zz">>, <<"%2%20">>]]
        ++ [?_assertEqual({Text, error}, {Text, weft_octets:from_base64url(Text)})
            || Text <- [<<"?">>, <<"A">>, <<"AA AA!">>]].
