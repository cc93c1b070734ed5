%% SPDX-License-Identifier: Apache-2.0
%% @doc What lines mean; see also weft_im_SUITE, where people talk.
-module(weft_im_terminal_tests).

-include_lib("eunit/include/eunit.hrl").

lines_are_understood_test_() ->
    [?_assertEqual({Line, Command}, {Line, weft_im_terminal:command(Line)})
     || {Line, Command} <- [{"@bob hello  there \n", {say, <<"bob">>, <<"hello  there">>}},
                            {"  hello\n", {say, last, <<"hello">>}},
                            {<<"@bob hello">>, {say, <<"bob">>, <<"hello">>}},
                            {[64, 16#e4, 32, 16#4f60], {say, <<"ä"/utf8>>, <<16#4f60/utf8>>}},
                            {"\n", nothing}, {"   ", nothing}, {"/quit\n", quit},
                            {"@bob\n", {who, <<"bob">>}}, {"@bob  \n", {who, <<"bob">>}}]].

bad_lines_are_told_test_() ->
    [?_assertMatch({_, {match, _}}, {Line, re:run(text(Line), Part)})
     || {Line, Part} <- [{"/help", "/quit"}, {"@", "1 to 64 letters"},
                         {"@b!b hello", "1 to 64 letters"},
                         {[$@ | lists:duplicate(65, $b)] ++ " hello", "1 to 64 letters"},
                         {lists:duplicate(4001, $x), "longer than 4000 bytes"},
                         {<<255, 254>>, "no text"}]].

text(Line) ->
    {error, Text} = weft_im_terminal:command(Line),
    Text.
