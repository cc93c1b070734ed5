%% SPDX-License-Identifier: Apache-2.0
%% @doc What BenchErl is told: a run.conf of `KEY=VALUE' lines, with `#' before comments. A key
%% without a value is as one that is not there.
%%
%% ```
%% NUMBER_OF_SCHEDULERS=1..4     or 1,2,8; one is always measured, for the speed-up
%% NUMBER_OF_SLAVE_NODES=0       or 0..4, 0,2: nodes beside the master; a sweep over nodes
%% VERSION=short                 short, intermediate, long: how much each benchmark does
%% ITERATIONS=3
%% OUTPUT_FORMAT=min             min, avg, max, avg_min_max, plain: what the files show of them
%% INCLUDE_BENCH=bang,big        these only;  EXCLUDE_BENCH=dialyzer  all but these
%% OTPS=25=erl,27=/opt/otp27     labels, and installations or emulators; this one if left out
%% ERL_ARGS="bound=+sbt u,free=+sbt db"     labels, and arguments; one set after the other
%% ERL_ARGS="+sbt u;+sbt db"     the same without labels
%% COOKIE=cookie                 of the nodes
%% CHECK_SANITY=1                outputs of a benchmark have to be the same in all runs
%% BENCH_DIR=DIR                 benchmarks of one's own, DIR/*.erl or DIR/NAME/src/NAME.erl
%% TIMEOUT_S=600                 a benchmark that takes longer is killed
%% RESULTS=DIR                   where results go
%% '''
%%
%% A benchmark of BENCH_DIR has keys of its own in NAME/conf/bench.conf: most of these, and
%%
%% ```
%% EXTRA_ERL_ARGS="+P 1000000"   besides those of ERL_ARGS
%% EXTRA_CODE_PATH="DIR DIR"     directories of modules
%% DEPENDENCIES="a b"            the modules of app/a/ebin and app/b/ebin beside BENCH_DIR
%% ERL_ENV="A=1 B=2"             environment of the emulator
%% WORKING_DIRECTORY=DIR         of the emulator
%% SLAVE_NODES=                  without a value: never with slave nodes
%% '''
%%
%% PLOT, MASTER_NODE, SLAVE_NODES with names, USE_LONG_NAMES and SKIP_SLAVE_SETUP of BenchErl are
%% read, and have no effect: nodes are made for each measurement, and plots are made always.
-module(weft_bencherl_config).

-export([read/1, parse/1, defaults/0, of_bench/2, ignored/2, environment/2]).
-export_type([config/0]).

-type config() :: #{schedulers := [pos_integer(), ...], slaves := [non_neg_integer(), ...],
                    version := short | intermediate | long, iterations := pos_integer(),
                    output_format := min | avg | max | avg_min_max | plain,
                    include := [string()] | all, exclude := [string()],
                    otps := [{Label :: string(), Emulator :: string()}, ...],
                    erl_args := [{Label :: string(), Arguments :: string()}, ...],
                    cookie := string(), sanity := boolean(),
                    bench_dir := string() | none, timeout_ms := pos_integer(),
                    results := string() | none, extra_args := [string()],
                    code_path := [string()], environment := [{string(), string()}],
                    directory := string() | none, ignored := [string()]}.

-define(NO_EFFECT, ["PLOT", "MASTER_NODE", "SLAVE_NODES", "USE_LONG_NAMES", "SKIP_SLAVE_SETUP"]).
-define(OF_THE_RUN, ["INCLUDE_BENCH", "EXCLUDE_BENCH", "BENCH_DIR", "RESULTS"]).

%% @doc Without a file: a short look at all benchmarks.
-spec defaults() -> config().
defaults() ->
    Cores = erlang:system_info(logical_processors_available),
    #{schedulers => lists:usort([1, Cores]), slaves => [0], version => short, iterations => 3,
      output_format => min, include => all, exclude => [],
      otps => [{erlang:system_info(otp_release), "erl"}], erl_args => [{"", ""}],
      cookie => "weft_bench", sanity => true, bench_dir => none, timeout_ms => 600000,
      results => none, extra_args => [], code_path => [], environment => [], directory => none,
      ignored => []}.

%% @doc Reads a file. The error is a text for the user.
-spec read(file:filename()) -> {ok, config()} | {error, string()}.
read(File) ->
    of_file(File, fun parse/1).

of_file(File, Parse) ->
    case file:read_file(File) of
        {ok, Text} ->
            case Parse(Text) of
                {ok, Config} -> {ok, Config};
                {error, Why} -> {error, lists:flatten([File, ": ", Why])}
            end;
        {error, Reason} ->
            {error, lists:flatten([File, ": ", file:format_error(Reason)])}
    end.

%% @doc The same from text.
-spec parse(binary()) -> {ok, config()} | {error, string()}.
parse(Text) ->
    folded(fun set/4, defaults(), Text).

%% @doc What a benchmark has of a run, with its own bench.conf.
-spec of_bench(weft_bencherl_bench:bench(), config()) -> {ok, config()} | {error, string()}.
of_bench(Bench, Config) ->
    case weft_bencherl_bench:configuration(Bench) of
        {ok, Dir} -> of_directory(Dir, Config#{ignored := hooks(Dir)});
        none -> {ok, Config#{ignored := []}}
    end.

hooks(Dir) ->
    [Hook || Hook <- ["pre_bench", "post_bench"], filelib:is_file(filename:join(Dir, Hook))].

%% BenchErl has benchmarks in ROOT/bench/NAME.
of_directory(Dir, Config) ->
    File = filename:join(Dir, "bench.conf"),
    Root = filename:dirname(filename:dirname(filename:dirname(filename:absname(Dir)))),
    Set = fun(Key, Value, Line, To) ->
                  Expanded = string:replace(Value, "${BENCHERL_ROOT}", Root, all),
                  set_own(Key, lists:flatten(Expanded), Line, Root, To)
          end,
    case filelib:is_file(File) of
        true -> of_file(File, fun(Text) -> folded(Set, Config, Text) end);
        false -> {ok, Config}
    end.

%% @doc What has no effect of what a run and its benchmarks were given, in a line for each.
-spec ignored(config(), [{weft_bencherl_bench:bench(), config()}]) -> [string()].
ignored(#{ignored := OfRun}, Benches) ->
    [lists:flatten([Where, ": no effect here: ", lists:join(", ", lists:usort(Keys))])
     || {Where, [_ | _] = Keys} <- [{"run.conf", OfRun}
                                    | [{Name, Keys} || {#{name := Name}, #{ignored := Keys}}
                                                           <- Benches]]].

%% @doc What was wanted, for the file of the environment: each key of the run, and what a benchmark
%% has otherwise. Cookies are nobody's business, and where results go is known.
-spec environment(config(), [{weft_bencherl_bench:bench(), config()}]) ->
          [{Key :: string(), Value :: string()}].
environment(Config, Benches) ->
    Told = maps:without([cookie, results, ignored], Config),
    [{"config_" ++ atom_to_list(Key), in_text(Value)}
     || {Key, Value} <- lists:sort(maps:to_list(Told))]
        ++ [{"benches", in_text([Name || {#{name := Name}, _} <- Benches])}]
        ++ [{"config_of_" ++ Name, in_text(Own)}
            || {#{name := Name}, Of} <- Benches,
               Own <- [maps:filter(fun(Key, Value) -> map_get(Key, Told) =/= Value end,
                                   maps:with(maps:keys(Told), Of))],
               Own =/= #{}].

in_text(Value) -> lists:flatten(io_lib:format("~0tp", [Value])).

folded(Set, Config, Text) ->
    case unicode:characters_to_list(Text) of
        Characters when is_list(Characters) ->
            Lines = lists:enumerate(string:split(Characters, "\n", all)),
            try {ok, lists:foldl(fun(Line, Acc) -> line(Set, Line, Acc) end, Config, Lines)}
            catch throw:{config, Why} -> {error, lists:flatten(Why)}
            end;
        _ -> {error, "this is no text in UTF-8"}
    end.

line(Set, {Number, Line}, Config) ->
    case string:trim(hd(string:split(Line, "#"))) of
        "" -> Config;
        Content ->
            case string:split(Content, "=") of
                [Key, Value] ->
                    Set(string:trim(Key), string:trim(string:trim(Value), both, "\"'"), Number,
                        Config);
                [_] ->
                    fail(Number, "~ts is not of the form KEY=VALUE", [Content])
            end
    end.

%% Keys that only a benchmark has; what it has of others is for it alone.
set_own("EXTRA_ERL_ARGS", Value, _Line, _Root, Config) ->
    Config#{extra_args := string:lexemes(Value, " ")};
set_own("EXTRA_CODE_PATH", Value, _Line, Root, #{code_path := Path} = Config) ->
    Config#{code_path := Path ++ [filename:absname(Dir, Root)
                                  || Dir <- string:lexemes(Value, " ")]};
set_own("DEPENDENCIES", Value, _Line, Root, #{code_path := Path} = Config) ->
    Config#{code_path := Path ++ [filename:join([Root, "app", Name, "ebin"])
                                  || Name <- words(Value)]};
set_own("ERL_ENV", Value, Line, _Root, Config) ->
    Config#{environment := [pair("ERL_ENV", "NAME=VALUE", Word, Line)
                            || Word <- string:lexemes(Value, " ")]};
set_own("WORKING_DIRECTORY", "", _Line, _Root, Config) -> Config#{directory := none};
set_own("WORKING_DIRECTORY", Value, _Line, Root, Config) ->
    Config#{directory := filename:absname(Value, Root)};
set_own("SLAVE_NODES", "", _Line, _Root, Config) -> Config#{slaves := [0]};
set_own(Key, Value, Line, _Root, #{ignored := Ignored} = Config) ->
    case not lists:member(Key, ?OF_THE_RUN) andalso is_key(Key) of
        true -> set(Key, Value, Line, Config);
        %% The file is a script, with variables of its own.
        false -> Config#{ignored := [Key | Ignored]}
    end.

is_key(Key) ->
    lists:keymember(Key, 1, keys()) orelse lists:member(Key, ?NO_EFFECT).

keys() ->
    [{"NUMBER_OF_SCHEDULERS", schedulers}, {"NUMBER_OF_SLAVE_NODES", slaves}, {"VERSION", version},
     {"OUTPUT_FORMAT", output_format}, {"ITERATIONS", iterations}, {"TIMEOUT_S", timeout_ms},
     {"INCLUDE_BENCH", include}, {"EXCLUDE_BENCH", exclude}, {"OTPS", otps},
     {"ERL_ARGS", erl_args}, {"COOKIE", cookie}, {"CHECK_SANITY", sanity},
     {"BENCH_DIR", bench_dir}, {"RESULTS", results}].

set(Key, Value, Line, #{ignored := Ignored} = Config) ->
    case {lists:keyfind(Key, 1, keys()), lists:member(Key, ?NO_EFFECT)} of
        {{_, Field}, _} when Value =:= "" -> Config#{Field := maps:get(Field, defaults())};
        {{_, Field}, _} -> Config#{Field := value(Key, Value, Line)};
        {false, true} when Value =:= "" -> Config;
        {false, true} -> Config#{ignored := [no_effect(Key, Value, Line) | Ignored]};
        {false, false} ->
            fail(Line, "unknown key ~ts; the keys are on top of weft_bencherl_config", [Key])
    end.

no_effect(Key, Value, Line) ->
    _ = [flag(Key, Value, Line)
         || lists:member(Key, ["PLOT", "USE_LONG_NAMES", "SKIP_SLAVE_SETUP"])],
    Key.

value("NUMBER_OF_SCHEDULERS" = Key, Value, Line) -> lists:usort([1 | numbers(Key, Value, 1, Line)]);
value("NUMBER_OF_SLAVE_NODES" = Key, Value, Line) -> lists:usort(numbers(Key, Value, 0, Line));
value("VERSION" = Key, Value, Line) -> one_of(Key, Value, [short, intermediate, long], Line);
value("OUTPUT_FORMAT" = Key, Value, Line) ->
    one_of(Key, Value, [min, avg, max, avg_min_max, plain], Line);
value("ITERATIONS" = Key, Value, Line) -> number(Key, Value, 1, Line);
value("TIMEOUT_S" = Key, Value, Line) -> 1000 * number(Key, Value, 1, Line);
value("INCLUDE_BENCH", Value, _Line) -> words(Value);
value("EXCLUDE_BENCH", Value, _Line) -> words(Value);
value("OTPS" = Key, Value, Line) ->
    [otp(pair(Key, "LABEL=INSTALLATION", string:trim(Word), Line))
     || Word <- string:lexemes(Value, ",")];
value("ERL_ARGS", Value, _Line) -> sets(Value);
value("CHECK_SANITY" = Key, Value, Line) -> flag(Key, Value, Line);
value(_Directory, Value, _Line) -> Value.

%% Only as BenchErl has them do sets begin with labels; arguments with = in them are no labels.
sets(Value) ->
    case re:run(Value, "^\\w+=", [unicode]) of
        {match, _} ->
            [begin
                 [Label, Arguments] = string:split(string:trim(Set), "="),
                 {Label, string:trim(Arguments)}
             end || Set <- re:split(Value, ",(?=\\s*\\w+=)", [unicode, {return, list}])];
        nomatch ->
            [{string:trim(Set), string:trim(Set)} || Set <- string:split(Value, ";", all)]
    end.

words(Value) -> string:lexemes(Value, ", ").

otp({Label, ""}) -> {Label, "erl"};
otp(Labelled) -> Labelled.

pair(Key, Form, Word, Line) ->
    case string:split(Word, "=") of
        [Label, Value] when Label =/= "" -> {Label, Value};
        _ -> fail(Line, "~ts wants ~ts, not ~ts", [Key, Form, Word])
    end.

numbers(Key, Value, Least, Line) ->
    Numbers = [case string:split(Word, "..") of
                   [From, To] -> range(Key, Word, number(Key, From, Least, Line),
                                       number(Key, To, Least, Line), Line);
                   [One] -> [number(Key, One, Least, Line)]
               end || Word <- words(Value)],
    case lists:append(Numbers) of
        [] -> fail(Line, "~ts wants numbers, not ~ts", [Key, Value]);
        All -> All
    end.

range(_Key, _Word, From, To, _Line) when From =< To -> lists:seq(From, To);
range(Key, Word, _From, _To, Line) ->
    fail(Line, "~ts wants LEAST..GREATEST, not ~ts", [Key, Word]).

number(Key, Text, Least, Line) ->
    case string:to_integer(string:trim(Text)) of
        {Number, ""} when Number >= Least -> Number;
        _ -> fail(Line, "~ts wants a number from ~b on, not ~ts", [Key, Least, Text])
    end.

flag(_Key, "0", _Line) -> false;
flag(_Key, "1", _Line) -> true;
flag(Key, Value, Line) -> fail(Line, "~ts wants 0 or 1, not ~ts", [Key, Value]).

one_of(Key, Value, Names, Line) ->
    case [Name || Name <- Names, atom_to_list(Name) =:= Value] of
        [Name] -> Name;
        [] -> fail(Line, "~ts wants one of ~0tp, not ~ts", [Key, Names, Value])
    end.

-spec fail(pos_integer(), io:format(), [term()]) -> no_return().
fail(Line, Format, Arguments) ->
    throw({config, io_lib:format("line ~b: " ++ Format, [Line | Arguments])}).
