%% SPDX-License-Identifier: Apache-2.0
%% @doc Arguments of a measurement that is a command of its own: `--KEY VALUE', each with what it
%% has to be and what it is if it is not given. What is wrong is told with all that there are.
%% Every such command has `--out', the directory of its results.
-module(weft_bench_arguments).

-export([main/4]).
-export_type([option/0]).

%% A number, or several with commas between them, from `Least' on; some of these words; a file.
-type kind() :: {number | numbers, Least :: integer()} | {words, [atom(), ...]} | file.
-type option() :: {Key :: atom(), kind(), Default :: term()}.

%% @doc Runs the command with its options. `Name' is that of the directory for results in the build
%% directory. 0: done, 2: not, since arguments are bad (in themselves, or as `Run' says of them).
-spec main([string()], Name :: string(), [option()],
           Run :: fun((#{atom() => term()}) -> ok | {error, unicode:chardata()})) -> 0 | 2.
main(Arguments, Name, Options, Run) ->
    Dir = filename:join([os:getenv("REBAR_BASE_DIR", "_build"), "bench", Name]),
    All = Options ++ [{out, file, Dir}],
    Defaults = maps:from_list([{Key, Default} || {Key, _, Default} <- All]),
    Answer = case parse(Arguments -- ["--terminal"], All, Defaults) of
                 {ok, Given} -> Run(Given);
                 {error, Text} -> {error, Text}
             end,
    case Answer of
        ok -> 0;
        {error, Why} ->
            io:format(standard_error, "~ts~n", [Why]),
            2
    end.

parse([], _Options, Given) ->
    {ok, Given};
parse(["--" ++ Word, Text | Rest] = Arguments, Options, Given) ->
    case [{Key, Kind} || {Key, Kind, _} <- Options, atom_to_list(Key) =:= Word] of
        [{Key, Kind}] ->
            case value(Kind, Text) of
                {ok, Value} -> parse(Rest, Options, Given#{Key := Value});
                {error, Wanted} -> {error, ["--", Word, " needs ", Wanted, ", not ", Text]}
            end;
        [] ->
            unknown(Arguments, Options)
    end;
parse(Arguments, Options, _Given) ->
    unknown(Arguments, Options).

unknown([Argument | _], Options) ->
    {error, ["unknown or incomplete argument ", Argument, ". Arguments:",
             [[" [--", atom_to_list(Key), " ", example(Kind), "]"] || {Key, Kind, _} <- Options]]}.

example({number, _}) -> "N";
example({numbers, _}) -> "N,N";
example({words, _}) -> "WORD,WORD";
example(file) -> "DIR".

value(file, Text) ->
    {ok, Text};
value({number, Least}, Text) ->
    case numbers([Text], Least) of
        {ok, [Number]} -> {ok, Number};
        error -> {error, ["a number from ", integer_to_list(Least), " on"]}
    end;
value({numbers, Least}, Text) ->
    case numbers(string:lexemes(Text, ","), Least) of
        {ok, [_ | _] = Numbers} -> {ok, Numbers};
        _ -> {error, ["numbers from ", integer_to_list(Least), " on, as in 10,20"]}
    end;
%% In the order in which they are known.
value({words, Known}, Text) ->
    Given = string:lexemes(Text, ","),
    Chosen = [Word || Word <- Known, lists:member(atom_to_list(Word), Given)],
    case Given -- [atom_to_list(Word) || Word <- Chosen] of
        [] when Chosen =/= [] -> {ok, Chosen};
        _ -> {error, ["some of ", lists:join(",", [atom_to_list(Word) || Word <- Known])]}
    end.

numbers(Texts, Least) ->
    Numbers = [Number || {Number, ""} <- [string:to_integer(Text) || Text <- Texts],
                         Number >= Least],
    case length(Numbers) =:= length(Texts) of
        true -> {ok, Numbers};
        false -> error
    end.
