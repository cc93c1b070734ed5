%% SPDX-License-Identifier: Apache-2.0
%% @doc Every command can be run, and its help says so.
-module(weft_cli_commands_tests).

-include_lib("eunit/include/eunit.hrl").

every_command_has_its_function_test_() ->
    [{Name, ?_assert(begin
                         {module, Module} = code:ensure_loaded(Module),
                         erlang:function_exported(Module, Function, 2)
                     end)}
     || #{name := Name, handler := {Module, Function}} <- weft_cli_commands:all()].

help_names_every_option_test_() ->
    [{Name, ?_assertNotEqual(nomatch, string:find(help(Name), "-" ++ Long))}
     || #{name := Name, arguments := Arguments} <- weft_cli_commands:all(),
        #{long := Long} <- Arguments].

overview_names_every_command_test_() ->
    Overview = unicode:characters_to_list(weft_cli_commands:overview()),
    [?_assertNotEqual(nomatch, string:find(Overview, "  weft " ++ Name ++ " "))
     || #{name := Name} <- weft_cli_commands:all()].

no_option_is_there_twice_test_() ->
    [{Name, ?_assertEqual(length(All), length(lists:usort([Key || #{name := Key} <- All])))}
     || #{name := Name, arguments := All} <- weft_cli_commands:all()].

%% It would be done as if they were not there.
options_of_other_actions_are_refused_test_() ->
    Usage = fun({usage, Text}) -> unicode:characters_to_list(Text) end,
    [?_assertEqual("--purge does nothing for weft deploy apply, it is of down: leave it out",
                   Usage(weft_cli_deploy:deploy(["apply", "no.deploy"], #{purge => true}))),
     ?_assertEqual("--ttl-ms does nothing for weft kv get, it is of put: leave it out",
                   Usage(weft_cli_kv:kv([get, "carts", "ann"], #{limit => 100, ttl_ms => 5}))),
     ?_assertEqual(ok, weft_cli_actions:check({"kv", "put"}, #{limit => 100, ttl_ms => 5},
                                              #{ttl_ms => ["put"], keep => ["backup"]}))].

so_many_words_are_taken_test_() ->
    [?_assertMatch({Words, Expected}, {Words, element(1, parse(Words))})
     || {Words, Expected} <- [{["up"], ok}, {["up", "x"], error}, {["trace", "a"], error},
                              {["trace", "a", "b"], ok}, {["heal"], ok}, {["heal", "a", "b"], ok},
                              {["kill"], error}, {["doctor"], ok}, {["doctor", "a"], error},
                              {["watch"], ok}, {["watch", "-i", "1", "--count", "2"], ok},
                              {["watch", "--cluster", "x"], ok}, {["kill", "a", "--cluster", "x"],
                                                                  error},
                              {["watch", "--count", "0"], error}, {["watch", "-i", "0"], error},
                              {["alarms"], ok}, {["alarms", "a"], error},
                              {["events", "--minutes", "5"], ok},
                              {["events", "--minutes", "0"], error},
                              {["kv"], error}, {["kv", "get", "a", "b"], ok},
                              {["kv", "gut"], error},
                              {["profile", "a", "b"], ok}, {["paper"], ok},
                              {["paper", "a", "b"], error}, {["migrate"], error},
                              {["migrate", "scan", "a", "b"], ok}]].

parse(Words) -> weft_argparse:parse(Words, weft_cli_commands:command(), "weft").

unknown_command_names_the_nearest_test() ->
    {error, Text} = parse(["stats"]),
    ?assertEqual("there is no command stats, did you mean status?",
                 unicode:characters_to_list(Text)).

help(Name) ->
    {help, Help} = parse([Name, "--help"]),
    unicode:characters_to_list(Help).
