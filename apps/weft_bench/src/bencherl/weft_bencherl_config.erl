%% SPDX-License-Identifier: Apache-2.0
%% @doc What BenchErl is told: a run.conf of `KEY=VALUE' lines, with `#' before comments.
%%
%% ```
%% NUMBER_OF_SCHEDULERS=1..4     or 1,2,8; one is always measured, for the speed-up
%% NUMBER_OF_SLAVE_NODES=0       or 0..4, 0,2: nodes beside the master; a sweep over nodes
%% VERSION=short                 short, intermediate, long: how much each benchmark does
%% ITERATIONS=3
%% OUTPUT_FORMAT=min             min, avg, max, avg_min_max, plain: what the files show of them
%% INCLUDE_BENCH=bang,big        these only;  EXCLUDE_BENCH=dialyzer  all but these
%% OTPS=25=erl,27=/opt/otp27/bin/erl     labels and emulators; this one if it is left out
%% ERL_ARGS="+sbt u;+sbt db"     sets of arguments, one after the other
%% CHECK_SANITY=1                outputs of a benchmark have to be the same in all runs
%% BENCH_DIR=DIR                 benchmarks of one's own, DIR/*.erl or DIR/NAME/src/NAME.erl
%% TIMEOUT_S=600                 a benchmark that takes longer is killed
%% RESULTS=DIR                   where results go
%% '''
-module(weft_bencherl_config).

-export([read/1, parse/1, defaults/0]).
-export_type([config/0]).

-type config() :: #{schedulers := [pos_integer(), ...], slaves := [non_neg_integer(), ...],
                    version := short | intermediate | long, iterations := pos_integer(),
                    output_format := min | avg | max | avg_min_max | plain,
                    include := [string()] | all, exclude := [string()],
                    otps := [{Label :: string(), Emulator :: string()}, ...],
                    erl_args := [string(), ...], sanity := boolean(),
                    bench_dir := string() | none, timeout_ms := pos_integer(),
                    results := string() | none}.

%% @doc Without a file: a short look at all benchmarks.
-spec defaults() -> config().
defaults() ->
    Cores = erlang:system_info(logical_processors_available),
    #{schedulers => lists:usort([1, Cores]), slaves => [0], version => short, iterations => 3,
      output_format => min, include => all, exclude => [],
      otps => [{erlang:system_info(otp_release), "erl"}], erl_args => [""], sanity => true,
      bench_dir => none, timeout_ms => 600000, results => none}.

%% @doc Reads a file. The error is a text for the user.
-spec read(file:filename()) -> {ok, config()} | {error, string()}.
read(File) ->
    case file:read_file(File) of
        {ok, Text} ->
            case parse(Text) of
                {ok, Config} -> {ok, Config};
                {error, Why} -> {error, lists:flatten([File, ": ", Why])}
            end;
        {error, Reason} ->
            {error, lists:flatten([File, ": ", file:format_error(Reason)])}
    end.

%% @doc The same from text.
-spec parse(binary()) -> {ok, config()} | {error, string()}.
parse(Text) ->
    Lines = lists:enumerate(string:split(unicode:characters_to_list(Text), "\n", all)),
    try {ok, lists:foldl(fun line/2, defaults(), Lines)}
    catch throw:{config, Why} -> {error, lists:flatten(Why)}
    end.

line({Number, Line}, Config) ->
    case string:trim(hd(string:split(Line, "#"))) of
        "" -> Config;
        Content ->
            case string:split(Content, "=") of
                [Key, Value] ->
                    set(string:trim(Key), string:trim(string:trim(Value), both, "\"'"), Number,
                        Config);
                [_] ->
                    fail(Number, "~ts is not of the form KEY=VALUE", [Content])
            end
    end.

set("NUMBER_OF_SCHEDULERS", Value, Line, Config) ->
    Config#{schedulers := lists:usort([1 | numbers(Value, 1, Line)])};
set("NUMBER_OF_SLAVE_NODES", Value, Line, Config) ->
    Config#{slaves := lists:usort(numbers(Value, 0, Line))};
set("VERSION", Value, Line, Config) ->
    Config#{version := one_of(Value, [short, intermediate, long], Line)};
set("OUTPUT_FORMAT", Value, Line, Config) ->
    Config#{output_format := one_of(Value, [min, avg, max, avg_min_max, plain], Line)};
set("ITERATIONS", Value, Line, Config) -> Config#{iterations := number(Value, 1, Line)};
set("TIMEOUT_S", Value, Line, Config) -> Config#{timeout_ms := 1000 * number(Value, 1, Line)};
set("INCLUDE_BENCH", "", _Line, Config) -> Config#{include := all};
set("INCLUDE_BENCH", Value, _Line, Config) -> Config#{include := words(Value)};
set("EXCLUDE_BENCH", Value, _Line, Config) -> Config#{exclude := words(Value)};
set("OTPS", Value, Line, Config) -> Config#{otps := [otp(Word, Line) || Word <- words(Value)]};
set("ERL_ARGS", Value, _Line, Config) ->
    Config#{erl_args := [string:trim(Args) || Args <- string:split(Value, ";", all)]};
set("CHECK_SANITY", Value, Line, Config) -> Config#{sanity := number(Value, 0, Line) > 0};
set("BENCH_DIR", Value, _Line, Config) -> Config#{bench_dir := Value};
set("RESULTS", Value, _Line, Config) -> Config#{results := Value};
set(Key, _Value, Line, _Config) ->
    fail(Line, "unknown key ~ts; the keys are on top of weft_bencherl_config", [Key]).

words(Value) -> string:lexemes(Value, ", ").

otp(Word, Line) ->
    case string:split(Word, "=") of
        [Label, Emulator] when Label =/= "", Emulator =/= "" -> {Label, Emulator};
        _ -> fail(Line, "OTPS wants LABEL=EMULATOR, not ~ts", [Word])
    end.

numbers(Value, Least, Line) ->
    lists:append([case string:split(Word, "..") of
                      [From, To] -> lists:seq(number(From, Least, Line), number(To, Least, Line));
                      [One] -> [number(One, Least, Line)]
                  end || Word <- words(Value)]).

number(Text, Least, Line) ->
    case string:to_integer(string:trim(Text)) of
        {Number, ""} when Number >= Least -> Number;
        _ -> fail(Line, "~ts is no number from ~b on", [Text, Least])
    end.

one_of(Value, Names, Line) ->
    case [Name || Name <- Names, atom_to_list(Name) =:= Value] of
        [Name] -> Name;
        [] -> fail(Line, "~ts is none of ~0tp", [Value, Names])
    end.

-spec fail(pos_integer(), io:format(), [term()]) -> no_return().
fail(Line, Format, Arguments) ->
    throw({config, io_lib:format("line ~b: " ++ Format, [Line | Arguments])}).
