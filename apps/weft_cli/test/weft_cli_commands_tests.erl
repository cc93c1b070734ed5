%% SPDX-License-Identifier: Apache-2.0
%% @doc Every command can be run, and its help says so.
-module(weft_cli_commands_tests).

-include_lib("eunit/include/eunit.hrl").

every_command_has_its_function_test_() ->
    [{Name, ?_assert(begin
                         {module, Module} = code:ensure_loaded(Module),
                         erlang:function_exported(Module, Function, 2)
                     end)}
     || #{name := Name, run := {Module, Function}} <- weft_cli_commands:all()].

help_names_every_option_test_() ->
    [{Name, ?_assertNotEqual(nomatch, string:find(help(Command), long(Key)))}
     || #{name := Name, options := Options} = Command <- weft_cli_commands:all(),
        #{key := Key} <- Options].

overview_names_every_command_test_() ->
    Overview = unicode:characters_to_list(weft_cli_commands:overview()),
    [?_assertNotEqual(nomatch, string:find(Overview, "  weft " ++ Name ++ " "))
     || #{name := Name} <- weft_cli_commands:all()].

no_option_is_there_twice_test_() ->
    [{Name, ?_assertEqual(length(Options), length(lists:usort([Key || #{key := Key} <- Options])))}
     || #{name := Name, options := Options} <- weft_cli_commands:all()].

counts_test() ->
    Count = fun(Name) ->
                    {ok, Command} = weft_cli_commands:find(Name),
                    weft_cli_commands:counts(Command)
            end,
    ?assertEqual([[0], [2], [0, 2], [1]], [Count(N) || N <- ["up", "trace", "heal", "kill"]]).

unknown_command_names_the_nearest_test() ->
    {error, Text} = weft_cli_commands:find("stats"),
    ?assertEqual("there is no command stats, did you mean status?",
                 unicode:characters_to_list(Text)).

help(Command) -> unicode:characters_to_list(weft_cli_commands:help(Command)).

long(Key) -> "--" ++ lists:flatten(string:replace(atom_to_list(Key), "_", "-", all)).
