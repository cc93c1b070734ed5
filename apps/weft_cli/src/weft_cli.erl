%% SPDX-License-Identifier: Apache-2.0
%% @doc The command `weft': reads the words, runs the command they name, prints what it answers and
%% ends with its exit code.
%%
%% What the commands are is in `weft_cli_commands', what they do in the modules named there. With
%% `--json' the answer, or the error, is one JSON object on standard output; otherwise answers go to
%% standard output and errors to standard error.
-module(weft_cli).

-export([main/1]).
-export_type([answer/0]).

%% What a command answers: data for --json, and the same for people; or why not. An answer that was
%% found wanting is shown all the same; of one that is shown already nothing is left to say.
-type answer() :: {ok | wanting | siblings, weft_json:json(), unicode:chardata()} | shown
                | {failed | usage | not_up | no_node | not_found, unicode:chardata()}.

%% @doc Runs one command and ends the VM. A command that is ended by SIGTERM has the exit status
%% that a shell gives to that; OTP would end in good order, with 0.
-spec main([string()]) -> no_return().
main(Words) ->
    ok = os:set_signal(sigterm, default),
    _ = io:setopts([{encoding, unicode}]),
    ExitCode = command(Words),
    ok = weft_local_control:disconnect(),
    halt(ExitCode).

command([]) -> help([]);
command(["help" | Words]) -> help(Words);
command([Word | _]) when Word =:= "--help"; Word =:= "-h" -> help([]);
command(["--version" | _]) -> version();
command(Words) ->
    case weft_argparse:parse(Words, weft_cli_commands:command(), "weft") of
        {ok, Given, _Path, Command} -> report(run(Command, Given), Given);
        {help, Text} -> print(Text);
        {error, Text} -> report({usage, Text},
                                maps:from_list([{json, true} || lists:member("--json", Words)]))
    end.

help([]) -> print(weft_cli_commands:overview());
help([Name | _]) -> command([Name, "--help"]).

version() ->
    _ = application:load(weft_cli),
    {ok, Version} = application:get_key(weft_cli, vsn),
    print(["weft ", Version, $\n]).

print(Text) ->
    io:put_chars(Text),
    0.

%% Commands get their words in order, apart from their options.
run(#{handler := {Module, Function}, arguments := Arguments}, Given) ->
    Words = [Argument || Argument <- Arguments, not is_map_key(long, Argument)],
    Module:Function(lists:append([words(Argument, Given) || Argument <- Words]),
                    maps:without([Name || #{name := Name} <- Words], Given)).

words(#{name := Name, nargs := list}, Given) -> maps:get(Name, Given);
words(#{name := Name}, Given) -> [Word || {ok, Word} <- [maps:find(Name, Given)]].

report(shown, _Options) ->
    0;
report({ok, Json, _Text}, #{json := true}) ->
    print([unicode:characters_to_binary(weft_json:encode(Json)), $\n]);
report({ok, _Json, Text}, _Options) ->
    print(Text);
report({wanting, Json, Text}, Options) ->
    0 = report({ok, Json, Text}, Options),
    exit_code(failed);
report({siblings, Json, Text}, Options) ->
    0 = report({ok, Json, Text}, Options),
    exit_code(siblings);
report({Error, Text}, #{json := true}) ->
    Message = unicode:characters_to_binary(Text),
    io:put_chars([weft_json:encode(#{error => Error, message => Message}), $\n]),
    exit_code(Error);
report({Error, Text}, _Options) ->
    io:put_chars(standard_error, ["weft: ", string:trim(Text, trailing), $\n]),
    exit_code(Error).

%% The codes are part of the interface: see weft_cli_commands:overview/0.
exit_code(failed) -> 1;
exit_code(usage) -> 2;
exit_code(not_up) -> 3;
exit_code(no_node) -> 4;
exit_code(not_found) -> 5;
exit_code(siblings) -> 6.
