%% SPDX-License-Identifier: Apache-2.0
%% @doc `weft man': the manual page of the command, in the language of man(7), made of the same
%% description as the help.
-module(weft_cli_man).

-export([man/2]).

%% @doc The page; `weft man > weft.1' keeps it where `man -l weft.1' finds it.
-spec man([string()], map()) -> weft_cli:answer().
man([], _Options) ->
    Page = page(),
    {ok, #{page => unicode:characters_to_binary(Page)}, Page}.

page() ->
    _ = application:load(weft_cli),
    {ok, Version} = application:get_key(weft_cli, vsn),
    [".TH WEFT 1 \"\" \"weft ", Version, "\" \"weft\"\n",
     ".SH NAME\nweft \\- distributed Erlang in any shape, tried out, watched and deployed\n",
     ".SH SYNOPSIS\n.B weft\n.I command\n.RI [ words ]\n.RI [ options ]\n",
     ".SH COMMANDS\n", [command(Command) || Command <- weft_cli_commands:all()],
     ".SH EXIT STATUS\n",
     "0: done. 1: it failed (doctor: it found an error or a warning). 2: the words made no sense.\n"
     "3: no such cluster is up. 4: no such node, or it does not run. Of kv: 5: no such key.\n"
     "6: there are several values.\n"].

command(#{name := Name, help := Help, details := Details, arguments := Arguments}) ->
    [".SS weft ", text(Name), [[" ", text(Word)] || Word <- words(Arguments)], "\n",
     text(Help), ".\n.PP\n",
     ".nf\n", [[line(Line), "\n"] || Line <- Details], ".fi\n",
     [[".TP\n.B ", option(Argument), "\n", text(Said), "\n"]
      || #{long := _, help := Said} = Argument <- Arguments, Said =/= hidden]].

words(Arguments) ->
    [maps:get(value, Argument, string:uppercase(atom_to_list(Name)))
     || #{name := Name} = Argument <- Arguments, not is_map_key(long, Argument)].

option(#{long := Long} = Argument) ->
    [[["\\-", Short, ", "] || {ok, Short} <- [maps:find(short, Argument)]],
     text([$- | Long]), [[" ", text(Value)] || {ok, Value} <- [maps:find(value, Argument)]]].

%% A dot or a quote at the begin of a line would be a request.
line(Line) ->
    ["\\&", text(Line)].

text(Text) ->
    [escaped(Char) || Char <- unicode:characters_to_list(Text)].

escaped($\\) -> "\\e";
escaped($-) -> "\\-";
escaped($') -> "\\(aq";
escaped(Char) -> Char.
