%% SPDX-License-Identifier: Apache-2.0
%% @doc Completion and the manual page are asked as their users ask: bash completes, groff reads.
-module(weft_cli_completion_tests).

-include_lib("eunit/include/eunit.hrl").

bash_completes_commands_test_() ->
    {timeout, 60, fun bash_completes_commands/0}.

bash_completes_commands() ->
    ?assertEqual(["status"], completed("weft stat")),
    ?assertEqual(lists:sort(["help" | names()]), lists:sort(completed("weft ''"))).

bash_completes_options_of_the_command_test_() ->
    {timeout, 60, fun bash_completes_options_of_the_command/0}.

bash_completes_options_of_the_command() ->
    ?assertEqual(["--groups"], completed("weft up --gr")),
    ?assertEqual([], completed("weft down --gr")),
    ?assertEqual(["--help"], completed("weft kill n01 --he")).

bash_leaves_other_words_to_files_test_() ->
    {timeout, 60, fun bash_leaves_other_words_to_files/0}.

bash_leaves_other_words_to_files() ->
    ?assertEqual([], completed("weft up --file ''")).

bash_completes_the_first_word_where_it_is_known_test_() ->
    {timeout, 60, fun bash_completes_the_first_word_where_it_is_known/0}.

bash_completes_the_first_word_where_it_is_known() ->
    ?assertEqual(["delete"], completed("weft kv de")),
    ?assertEqual([], completed("weft kv get de")),
    ?assertEqual(["--limit"], completed("weft kv list carts --li")).

help_is_followed_by_a_command_test_() ->
    {timeout, 60, fun help_is_followed_by_a_command/0}.

help_is_followed_by_a_command() ->
    ?assertEqual(["trace"], completed("weft help tr")).

fish_gets_a_line_for_each_command_test() ->
    {ok, _, Script} = weft_cli_completion:completion(["fish"], #{}),
    Lines = string:lexemes(unicode:characters_to_list(Script), "\n"),
    [?assertMatch([_], [Line || Line <- Lines,
                                string:find(Line, "subcommand -f -a " ++ Name ++ " ") =/= nomatch])
     || Name <- names()].

another_shell_is_refused_with_those_that_are_known_test() ->
    {usage, Text} = weft_cli_completion:completion(["csh"], #{}),
    ?assertEqual("no completion for csh: it is there for bash, zsh and fish", lists:flatten(Text)).

the_page_can_be_read_and_has_each_command_test_() ->
    case os:find_executable("groff") of
        false -> {"skipped: no groff to read the manual page with (package groff-base)", []};
        Groff -> {timeout, 60, fun() -> is_read(Groff) end}
    end.

is_read(Groff) ->
    {ok, _, Page} = weft_cli_man:man([], #{}),
    File = temporary("weft.1", Page),
    Read = Groff ++ " -man -ww -Tascii -P-cbou " ++ File,
    Warnings = os:cmd(Read ++ " 2>&1 >/dev/null"),
    Said = os:cmd(Read),
    ok = file:delete(File),
    ?assertEqual("", Warnings),
    [?assertNotEqual({Name, nomatch}, {Name, string:find(Said, "weft " ++ Name)})
     || Name <- names()].

names() -> [Name || #{name := Name} <- weft_cli_commands:all()].

%% The last word of the line is the one that is completed.
completed(Line) ->
    {ok, _, Script} = weft_cli_completion:completion(["bash"], #{}),
    File = temporary("completion", [Script,
                                    "COMP_WORDS=(", Line, ")\n"
                                    "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                                    "_weft\n"
                                    "printf '%s\\n' \"${COMPREPLY[@]}\"\n"]),
    Said = os:cmd("bash " ++ File ++ " < /dev/null"),
    ok = file:delete(File),
    string:lexemes(Said, "\n").

temporary(Name, Content) ->
    File = string:trim(os:cmd("mktemp")) ++ "." ++ Name,
    ok = file:delete(filename:rootname(File, "." ++ Name)),
    ok = file:write_file(File, Content),
    File.
