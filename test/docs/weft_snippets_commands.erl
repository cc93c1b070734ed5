%% SPDX-License-Identifier: Apache-2.0
%% @doc Commands that documents show. A script is one for sh; commands of the project have the words
%% and options that are given, targets of make and their variables exist, and so do programs.
-module(weft_snippets_commands).

-export([script/2, span/2]).

%% @doc A script. `<...>' in it is what the reader puts there.
-spec script(string(), weft_snippets:known()) -> [string()].
script(Text, Known) ->
    Script = re:replace(Text, "<[a-z ]+>", "placeholder", [global, unicode, {return, list}]),
    readable(Script)
        ++ lists:append([command(Words, Known) || Words <- commands(Script)]).

readable(Script) ->
    File = string:trim(os:cmd("mktemp")),
    ok = file:write_file(File, unicode:characters_to_binary(Script)),
    Said = os:cmd("sh -n " ++ File),
    ok = file:delete(File),
    [Said || Said =/= ""].

%% @doc A command between backquotes. It may be without what it needs, if only its name is meant.
-spec span(string(), weft_snippets:known()) -> [string()].
span(Span, Known) ->
    lists:append([case command(Words, Known) of
                      [] -> [];
                      Problems -> case command(Words ++ ["--help"], Known) of
                                      [] -> [];
                                      _ -> Problems
                                  end
                  end || Words <- commands(Span)]).

command([Word | Words], #{programs := Programs} = Known) ->
    case {lists:member($=, Word), filename:basename(Word)} of
        {true, _} when Words =:= [] -> [];
        {true, _} -> command(Words, Known);
        {false, "weft"} -> weft(Words);
        {false, "make"} -> make(Words);
        {false, "bench"} -> bench(Words);
        {false, Program} ->
            case lists:any(fun(Place) -> lists:prefix(Place, Word) end, ["bin/", "test/"]) of
                true -> own(Word, Words);
                false -> [["who knows ", Word, "?"] || not lists:member(Program, Programs)]
            end
    end.

weft([Word | _]) when Word =:= "help"; Word =:= "--help"; Word =:= "--version" -> [];
weft(Words) -> parsed(weft_argparse:parse(Words, weft_cli_commands:command(), "weft")).

bench(["help" | _]) -> [];
bench(Words) -> parsed(weft_argparse:parse(Words, weft_papers_cli:command(), "bin/bench")).

parsed({ok, _, _, _}) -> [];
parsed({help, _}) -> [];
parsed({error, Text}) -> [Text].

make(Words) ->
    {ok, Makefile} = file:read_file("Makefile"),
    {ok, Tests} = file:read_file("test/run.escript"),
    {Variables, Targets} = lists:partition(fun(Word) -> lists:member($=, Word) end, Words),
    [["no target of make: ", Target]
     || "-" ++ _ = Target <- Targets] ++
    [["no target of make: ", Target]
     || [Letter | _] = Target <- Targets, Letter =/= $-,
        re:run(Makefile, "^" ++ Target ++ ":", [multiline]) =:= nomatch]
        ++ [["make knows no ", Name] || Variable <- Variables,
                                        [Name | _] <- [string:split(Variable, "=")],
                                        string:find([Makefile, Tests], Name) =:= nomatch]
        ++ handed_on(Targets, [string:split(Variable, "=") || Variable <- Variables]).

%% What the benchmark gets of it, as in the Makefile.
handed_on(["bench"], Variables) ->
    bench(lists:append([case Variable of
                            ["QUICK", _] -> ["--quick"];
                            ["WORKLOADS", Suites] -> ["--suites", Suites];
                            ["ONLY", Titles] -> ["--only", Titles];
                            ["VARIANTS", Variants] -> ["--variants", Variants];
                            ["ARGS", Arguments] -> string:lexemes(Arguments, " ");
                            _ -> []
                        end || Variable <- Variables]));
handed_on(_Targets, _Variables) ->
    [].

%% The other scripts read their options themselves.
own(Script, Words) ->
    case file:read_file(Script) of
        {ok, Text} -> [[Script, " knows no ", Word]
                       || "--" ++ _ = Word <- Words, string:find(Text, Word) =:= nomatch];
        {error, enoent} -> ["there is no " ++ Script]
    end.

%% The words of each command of a script. Quotes, continued lines, comments and what stands between
%% commands are all of sh that is read here.
commands(Script) -> commands(Script, none, [], []).

commands([], Word, Words, All) ->
    [Command || [_ | _] = Command <- lists:reverse([ended(Word, Words) | All])];
commands("\\\n" ++ Rest, Word, Words, All) -> commands(Rest, Word, Words, All);
commands([$\\, Char | Rest], Word, Words, All) -> commands(Rest, more(Word, [Char]), Words, All);
commands([Quote | Rest], Word, Words, All) when Quote =:= $'; Quote =:= $" ->
    {Quoted, After} = quoted(Rest, Quote, []),
    commands(After, more(Word, Quoted), Words, All);
commands([$# | Rest], none, Words, All) ->
    commands(lists:dropwhile(fun(Char) -> Char =/= $\n end, Rest), none, Words, All);
commands([Char | Rest], Word, Words, All) when Char =:= $\n; Char =:= $;; Char =:= $&;
                                               Char =:= $| ->
    commands(Rest, none, [], [ended(Word, Words) | All]);
commands([$\s | Rest], none, Words, All) -> commands(Rest, none, Words, All);
commands([$\s | Rest], Word, Words, All) -> commands(Rest, none, [Word | Words], All);
commands([Char | Rest], Word, Words, All) -> commands(Rest, more(Word, [Char]), Words, All).

quoted([Quote | Rest], Quote, Quoted) -> {lists:reverse(Quoted), Rest};
quoted([$\\, Char | Rest], $", Quoted) -> quoted(Rest, $", [Char | Quoted]);
quoted([Char | Rest], Quote, Quoted) -> quoted(Rest, Quote, [Char | Quoted]).

more(none, Chars) -> Chars;
more(Word, Chars) -> Word ++ Chars.

ended(none, Words) -> without_redirections(lists:reverse(Words));
ended(Word, Words) -> ended(none, [Word | Words]).

without_redirections(Words) ->
    lists:takewhile(fun(Word) -> not lists:member(Word, [">", "<", ">>", "2>"]) end, Words).
