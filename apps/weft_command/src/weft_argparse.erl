%% SPDX-License-Identifier: Apache-2.0
%% @doc Command lines: reads the words by a description of commands and their arguments, which its
%% help is made of, too.
%%
%% The description is that of the module argparse, which OTP has from version 26 on, as far as it is
%% needed here; with OTP 25 out of use that one takes the place of this. Beyond it there are lists
%% with commas, the word that stands for a value in the help, lines of text below the first one, and
%% errors that name the nearest known word.
%%
%% An option is `--long value', `--long=value' or `-s value'; one that is boolean takes no value.
%% Options may stand anywhere among the other words; `--' ends them. The words of commands come
%% first. `--help' and `-h' are known to every command.
-module(weft_argparse).

-export([parse/3, run/3, help/2, usage/2, nearest/2, distance/2]).
-export_type([command/0, argument/0, given/0]).

%% An argument with neither `short' nor `long' (which is without its first dash) is one of the words
%% in their order; with nargs a list, it takes what is left of them. What is not given has its
%% default, or is not in the map; a word that is needed has to be given.
-type argument() :: #{name := atom(), short => char(), long => string(), type => type(),
                      default => term(), required => boolean(), action => store | append,
                      nargs => list, value => string(), help => hidden | unicode:chardata()}.
%% Those of `custom' return the value, or throw what the value should be.
-type type() :: string | boolean | integer | float | atom_type()
              | {integer | float, [{min | max, number()}]}
              | {list, type()} | {custom, fun((string()) -> term())}.
-type atom_type() :: {atom, [atom(), ...]}.
-type given() :: #{Name :: atom() => term()}.
%% The handler of the command is called with what is given, by whoever called parse/3, or by run/3.
-type command() :: #{commands => #{Word :: string() => command()}, arguments => [argument()],
                     handler => fun((given()) -> term()) | {module(), Function :: atom()},
                     help => hidden | unicode:chardata(), details => [unicode:chardata()],
                     %% What is of use only to who describes the command.
                     atom() => term()}.

-define(HELP, #{name => help, short => $h, long => "-help", type => boolean, help => "this text"}).

%% @doc Reads the words. The error is a text for people, as is the help that was asked for. The path
%% is the words of commands that lead to the command.
-spec parse([string()], command(), Program :: string()) ->
          {ok, given(), Path :: [string()], command()} | {help, unicode:chardata()}
        | {error, unicode:chardata()}.
parse(Words, Command, Program) ->
    find(Words, Command, [Program]).

%% @doc Reads the words and calls the handler; the result is the exit status: that of the handler, 0
%% for help, 2 if the words are wrong.
-spec run([string()], command(), Program :: string()) -> non_neg_integer().
run(Words, Command, Program) ->
    case parse(Words, Command, Program) of
        {ok, Given, _Path, #{handler := {Module, Function}}} -> Module:Function(Given);
        {ok, Given, _Path, #{handler := Handler}} -> Handler(Given);
        {help, Text} -> io:put_chars(Text), 0;
        {error, Text} ->
            io:format(standard_error, "~ts~n", [Text]),
            2
    end.

%% Words of commands, as long as there are some; Path is reversed.
find([Word | Words] = All, #{commands := Commands} = Command, Path) ->
    case {Commands, Command} of
        {#{Word := Next}, _} -> find(Words, Next, [Word | Path]);
        {_, #{handler := _}} -> arguments(All, Command, Path);
        {_, _} when Word =:= "--help"; Word =:= "-h" -> {help, help(Command, path(Path))};
        {_, _} -> {error, unknown_word(Word, maps:keys(Commands))}
    end;
find([], #{commands := _} = Command, Path) when not is_map_key(handler, Command) ->
    {help, help(Command, path(Path))};
find(Words, Command, Path) ->
    arguments(Words, Command, Path).

path(Reversed) -> lists:append(lists:join(" ", lists:reverse(Reversed))).

unknown_word(Word, Known) ->
    ["there is no command ", Word,
     case nearest(Word, Known) of
         {ok, Near} -> [", did you mean ", Near, "?"];
         none -> [". There are: ", lists:join(", ", lists:sort(Known)), "."]
     end].

arguments(Words, Command, Path) ->
    {Options, Positional} = lists:partition(fun is_option/1, known(Command)),
    try
        {Given, Rest} = options(Words, Options, #{}, []),
        case Given of
            #{help := true} ->
                {help, help(Command, path(Path))};
            #{} ->
                All = defaults(Options ++ Positional, positional(Positional, Rest, Given)),
                {ok, All, tl(lists:reverse(Path)), Command}
        end
    catch
        throw:{wrong, Text} -> {error, [Text, "\nSee: ", path(Path), " --help"]}
    end.

known(#{arguments := Arguments}) ->
    case lists:any(fun(#{name := Name}) -> Name =:= help end, Arguments) of
        true -> Arguments;
        false -> Arguments ++ [?HELP]
    end;
known(_Command) ->
    [?HELP].

is_option(Argument) ->
    is_map_key(long, Argument) orelse is_map_key(short, Argument).

%% --- options ------------------------------------------------------------------------------------

options([], _Known, Given, Rest) ->
    {Given, lists:reverse(Rest)};
options(["--" | Words], _Known, Given, Rest) ->
    {Given, lists:reverse(Rest, Words)};
options(["--" ++ Word | Words], Known, Given, Rest) ->
    [Name | Value] = string:split(Word, "="),
    case [Option || #{long := Long} = Option <- Known, Long =:= "-" ++ Name] of
        [Option] -> option("--" ++ Name, Option, Value, Words, {Known, Given, Rest});
        [] -> wrong(unknown_option(Name, [Long || #{long := "-" ++ Long} = One <- Known,
                                                   not is_hidden(One)]))
    end;
options([[$-, Letter] = Word | Words], Known, Given, Rest) ->
    case [Option || #{short := Short} = Option <- Known, Short =:= Letter] of
        [Option] -> option(Word, Option, [], Words, {Known, Given, Rest});
        [] -> wrong(["unknown option ", Word])
    end;
options([Word | Words], Known, Given, Rest) ->
    options(Words, Known, Given, [Word | Rest]).

option(_Word, #{type := boolean} = Option, [], Words, {Known, Given, Rest}) ->
    options(Words, Known, add(Option, true, Given), Rest);
option(Word, #{type := boolean}, [_], _Words, _Context) ->
    wrong([Word, " takes no value"]);
option(Word, Option, [], [], _Context) ->
    wrong([Word, " needs a value: ", Word, " ", value_word(Option)]);
option(Word, Option, [], [Text | Words], Context) ->
    option(Word, Option, [Text], Words, Context);
option(Word, Option, [Text], Words, {Known, Given, Rest}) ->
    options(Words, Known, add(Option, value(Word, Option, Text), Given), Rest).

add(#{name := Name, action := append}, Value, Given) ->
    maps:update_with(Name, fun(Values) -> Values ++ [Value] end, [Value], Given);
add(#{name := Name}, Value, Given) ->
    Given#{Name => Value}.

unknown_option(Name, Known) ->
    ["unknown option --", Name,
     case nearest(Name, Known) of
         {ok, Near} -> [", did you mean --", Near, "?"];
         none -> [", there are ", lists:join(", ", [["--", K] || K <- Known])]
     end].

%% --- other words --------------------------------------------------------------------------------

positional([], [], Given) ->
    Given;
positional([], [Word | _], _Given) ->
    wrong(["unexpected word ", Word]);
positional([#{nargs := list} = Argument | Others], Words, Given) ->
    #{name := Name} = Argument,
    positional(Others, [], Given#{Name => [value(value_word(Argument), Argument, Word)
                                           || Word <- Words]});
positional([#{required := false} | Others], [], Given) ->
    positional(Others, [], Given);
positional([Argument | _], [], _Given) ->
    wrong([value_word(Argument), " is missing"]);
positional([#{name := Name} = Argument | Others], [Word | Words], Given) ->
    positional(Others, Words, Given#{Name => value(value_word(Argument), Argument, Word)}).

defaults(Arguments, Given) ->
    maps:merge(maps:from_list([{Name, Default} || #{name := Name, default := Default}
                                                      <- Arguments]), Given).

%% --- values -------------------------------------------------------------------------------------

value(Word, Argument, Text) ->
    try typed(maps:get(type, Argument, string), Text)
    catch throw:{expected, What} -> wrong([Word, " is ", Text, ", it must be ", What])
    end.

typed(string, Text) -> Text;
typed(integer, Text) -> typed({integer, []}, Text);
typed(float, Text) -> typed({float, []}, Text);
typed({integer, Limits} = Type, Text) ->
    case string:to_integer(Text) of
        {Number, ""} -> within(Number, Limits, Type);
        _ -> expected(Type)
    end;
typed({float, Limits} = Type, Text) ->
    case {string:to_float(Text), string:to_integer(Text)} of
        {{Number, ""}, _} -> within(Number, Limits, Type);
        {_, {Number, ""}} -> within(float(Number), Limits, Type);
        _ -> expected(Type)
    end;
typed({atom, Known} = Type, Text) ->
    case [Atom || Atom <- Known, atom_to_list(Atom) =:= Text] of
        [Atom] -> Atom;
        [] -> expected(Type)
    end;
typed({list, Type}, Text) ->
    Several = "several with commas between them",
    case [string:trim(Part) || Part <- string:lexemes(Text, ",")] of
        [] -> throw({expected, ["one or ", Several]});
        Parts ->
            try [typed(Type, Part) || Part <- Parts]
            catch throw:{expected, One} -> throw({expected, [One, ", or ", Several]})
            end
    end;
typed({custom, Read}, Text) ->
    try Read(Text)
    catch throw:What -> throw({expected, What})
    end.

within(Number, Limits, Type) ->
    case lists:all(fun({min, Min}) -> Number >= Min; ({max, Max}) -> Number =< Max end, Limits) of
        true -> Number;
        false -> expected(Type)
    end.

-spec expected(type()) -> no_return().
expected(Type) -> throw({expected, described(Type)}).

described({atom, Known}) ->
    ["one of ", lists:join(", ", [atom_to_list(Atom) || Atom <- Known])];
described({integer, Limits}) -> ["a whole number", limits(Limits)];
described({float, Limits}) -> ["a number", limits(Limits)].

limits(Limits) ->
    [case Limit of
         {min, Min} -> io_lib:format(" from ~p on", [Min]);
         {max, Max} -> io_lib:format(" up to ~p", [Max])
     end || Limit <- Limits].

-spec wrong(unicode:chardata()) -> no_return().
wrong(Text) -> throw({wrong, Text}).

%% --- help ---------------------------------------------------------------------------------------

%% @doc What a command is for, its commands and its arguments. `Program' with the words of commands.
-spec help(command(), Program :: string()) -> unicode:chardata().
help(Command, Program) ->
    Arguments = [A || A <- known(Command), not is_hidden(A)],
    {Options, Positional} = lists:partition(fun is_option/1, Arguments),
    Commands = [One || {_, C} = One <- lists:sort(maps:to_list(maps:get(commands, Command, #{}))),
                       not is_hidden(C)],
    [usage(Program, Command),
     [[": ", maps:get(help, Command)] || is_map_key(help, Command)], "\n",
     [["\n", [[string:trim("  " ++ Line, trailing), "\n"] || Line <- Lines]]
      || #{details := Lines} <- [Command]],
     [["\nCommands:\n", table([{usage(Word, C), maps:get(help, C, "")}
                               || {Word, C} <- Commands])] || Commands =/= []],
     [["\nArguments:\n", table([{positional_words(P), Help} || #{help := Help} = P <- Positional])]
      || [] =/= [P || #{help := _} = P <- Positional]],
     "\nOptions:\n", table([{option_words(O), maps:get(help, O, "")} || O <- Options])].

is_hidden(One) -> maps:get(help, One, "") =:= hidden.

%% @doc A command with the words that it takes.
-spec usage(Word :: string(), command()) -> string().
usage(Word, Command) ->
    lists:append(lists:join(" ", [Word | [positional_words(A)
                                          || A <- maps:get(arguments, Command, []),
                                             not is_option(A)]])).

positional_words(#{required := false} = Argument) -> "[" ++ value_word(Argument) ++ "]";
positional_words(#{nargs := list} = Argument) -> "[" ++ value_word(Argument) ++ "]";
positional_words(Argument) -> value_word(Argument).

option_words(Option) ->
    Names = [[$-, Short] || #{short := Short} <- [Option]]
        ++ ["-" ++ Long || #{long := Long} <- [Option]],
    lists:append(lists:join(", ", Names))
        ++ case Option of
               #{type := boolean} -> "";
               #{} -> " " ++ value_word(Option)
           end.

value_word(#{value := Word}) -> Word;
value_word(#{name := Name}) -> string:uppercase(atom_to_list(Name)).

table(Rows) ->
    Width = lists:max([length(Words) || {Words, _} <- Rows]),
    [[string:trim(io_lib:format("  ~ts  ~ts", [string:pad(Words, Width), Help]), trailing), "\n"]
     || {Words, Help} <- Rows].

%% --- near words ---------------------------------------------------------------------------------

%% @doc The known word that is most like the given one, if one is like it at all.
-spec nearest(string(), [string()]) -> {ok, string()} | none.
nearest(Word, Known) ->
    case lists:min([{different(Word, K), K} || K <- Known] ++ [{infinity, ""}]) of
        {Different, Near} when is_integer(Different), 2 * Different =< length(Word) -> {ok, Near};
        _ -> none
    end.

%% A prefix counts as near.
different(Word, Known) ->
    case Word =/= "" andalso lists:prefix(Word, Known) of
        true -> 0;
        false -> distance(Word, Known)
    end.

%% @doc How many letters to insert, delete or replace make one word of the other (Levenshtein 1966),
%% row by row.
-spec distance(string(), string()) -> non_neg_integer().
distance(Word, Known) ->
    lists:last(lists:foldl(fun(Letter, Row) -> row(Letter, Known, Row) end,
                           lists:seq(0, length(Known)), Word)).

row(Letter, Known, [Corner | Above]) ->
    row(Letter, Known, Corner, Above, [Corner + 1]).

row(_Letter, [], _Corner, [], Row) ->
    lists:reverse(Row);
row(Letter, [K | Known], Corner, [Up | Above], [Left | _] = Row) ->
    Cost = case Letter of K -> 0; _ -> 1 end,
    row(Letter, Known, Up, Above, [lists:min([Corner + Cost, Up + 1, Left + 1]) | Row]).
