%% SPDX-License-Identifier: Apache-2.0
%% @doc The words of `bin/im'; see also weft_im_SUITE, where people talk.
-module(weft_im_command_tests).

-include_lib("eunit/include/eunit.hrl").

words_are_read_test_() ->
    [?_assertEqual({Words, {Given, Module}}, {Words, read(Words)})
     || {Words, Given, Module} <- [{["ann"], #{name => "ann"}, weft_im_terminal},
                                   {["ann", "im@h"], #{name => "ann", node => "im@h"},
                                    weft_im_terminal},
                                   {["serve"], #{servers => 3}, weft_im_service},
                                   {["serve", "--servers", "5"], #{servers => 5},
                                    weft_im_service}]].

wrong_words_are_refused_test_() ->
    [?_assertMatch({Words, {error, _}}, {Words, parse(Words)})
     || Words <- [[], ["ann", "im@h", "more"], ["serve", "ann"], ["serve", "--servers", "1"],
                  ["serve", "--servers", "100"], ["ann", "--servers", "3"]]].

help_is_given_when_it_is_asked_for_test_() ->
    [?_assertMatch({Words, {match, _}},
                   begin
                       {help, Text} = parse(Words),
                       {Words, re:run(unicode:characters_to_list(Text), Part)}
                   end)
     || {Words, Part} <- [{["--help"], "bin/im NAME \\[NODE\\]"}, {["-h"], "@bob hello"},
                          {["--help"], "serve"}, {["serve", "--help"], "--servers COUNT"}]].

read(Words) ->
    {ok, Given, _, #{handler := {Module, run}}} = parse(Words),
    {Given, Module}.

parse(Words) -> weft_argparse:parse(Words, weft_im_command:command(), "bin/im").
