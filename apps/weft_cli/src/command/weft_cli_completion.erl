%% SPDX-License-Identifier: Apache-2.0
%% @doc `weft completion SHELL': a script with which the shell completes the words of `weft'. It is
%% made of the description of the commands, and asks nothing while the user types.
-module(weft_cli_completion).

-export([completion/2]).

%% @doc The script for bash, zsh (which reads the one for bash) or fish.
-spec completion([string()], map()) -> weft_cli:answer().
completion(["bash"], _Options) -> told(bash());
completion(["zsh"], _Options) -> told(["autoload -U +X bashcompinit && bashcompinit\n", bash()]);
completion(["fish"], _Options) -> told(fish());
completion([Shell], _Options) ->
    {usage, io_lib:format("no completion for ~ts: it is there for bash, zsh and fish", [Shell])}.

told(Script) ->
    {ok, #{script => unicode:characters_to_binary(Script)}, Script}.

%% What begins with a dash is completed to an option of the command, the first word to a command.
bash() ->
    ["_weft() {\n"
     "    local word=${COMP_WORDS[COMP_CWORD]} words=\n"
     "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
     "        words=\"", lists:join($\s, names() ++ ["help"]), "\"\n"
     "    else\n"
     "        case ${COMP_WORDS[1]} in\n"
     "        help) words=\"", lists:join($\s, names()), "\" ;;\n",
     [["        ", Name, ") words=\"", lists:join($\s, options(Command)), "\" ;;\n"]
      || #{name := Name} = Command <- weft_cli_commands:all()],
     "        esac\n"
     "        [ \"$COMP_CWORD\" -ne 2 ] || [[ $word == -* ]] || case ${COMP_WORDS[1]} in\n",
     [["        ", Name, ") COMPREPLY=($(compgen -W \"", lists:join($\s, Words), "\" -- "
       "\"$word\")); return ;;\n"]
      || #{name := Name} = Command <- weft_cli_commands:all(), [_ | _] = Words <- [first(Command)]],
     "        esac\n"
     "        [[ $word == -* || ${COMP_WORDS[1]} == help ]] || words=\n"
     "    fi\n"
     "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
     "}\n"
     "complete -o default -F _weft weft\n"].

fish() ->
    [["complete -c weft -n __fish_use_subcommand -f -a ", Name, " -d ", quoted(Help), "\n",
      [["complete -c weft -n '__fish_seen_subcommand_from ", Name, "' -l ", Long,
        [[" -s ", Short] || {ok, Short} <- [maps:find(short, Argument)]],
        [" -r" || maps:get(type, Argument, string) =/= boolean],
        " -d ", quoted(Said), "\n"]
       || #{long := [$- | Long], help := Said} = Argument <- Arguments, Said =/= hidden],
      [["complete -c weft -n '__fish_seen_subcommand_from ", Name, "' -f -a '",
        lists:join($\s, Words), "'\n"] || [_ | _] = Words <- [first(Command)]]]
     || #{name := Name, help := Help, arguments := Arguments} = Command
            <- weft_cli_commands:all()].

names() -> [Name || #{name := Name} <- weft_cli_commands:all()].

%% What the first word of a command may be, where that is known.
first(#{arguments := [#{type := {atom, Known}} = Argument | _]})
  when not is_map_key(long, Argument) ->
    [atom_to_list(Word) || Word <- Known];
first(_Command) -> [].

options(#{arguments := Arguments}) ->
    [[$- | Long] || #{long := Long} = Argument <- Arguments,
                    maps:get(help, Argument, "") =/= hidden] ++ ["--help"].

quoted(Text) ->
    [$', string:replace(unicode:characters_to_list(Text), "'", "\\'", all), $'].
