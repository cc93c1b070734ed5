%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration of a load: a file of Erlang terms with the keys of Basho Bench.
%%
%% ```
%% {mode, max}.                       % or {rate, max}, {rate, PerSecond}: of each worker
%% {duration, 1}.                     % minutes, {seconds, N}, or infinity: till no worker is left
%% {concurrent, 4}.                   % workers
%% {driver, weft_load_driver_ets}.
%% {operations, [{get, 4}, {put, 1}]}.% {Operation, Weight} or {Label, Operation, Weight}
%% {key_generator, {int_to_bin_bigendian, {uniform_int, 10000}}}.
%% {value_generator, {fixed_bin, 100}}.
%% '''
%%
%% Also: code_paths, source_dir, rng_seed, report_interval (seconds), warm_up_s (0: not counted at
%% the start), operation_timeout_s (60: a worker that takes longer at the end hangs),
%% shutdown_on_error, pre_hook and post_hook ({Module, Function}), exact_start (true: so as not to
%% begin a millisecond late workers yield, which costs processor time). All other keys are for the
%% driver, but for those that look like one of these misspelt.
-module(weft_load_config).

-export([read/1, read/2, check/1, weighted/1, describe/1, for_driver/1]).
-export_type([config/0, hook/0]).

-type config() :: #{duration_ms := pos_integer() | infinity, concurrent := pos_integer(),
                    rate := max | number(), driver := module(),
                    operations := [{Label :: atom(), Operation :: term(), Weight :: pos_integer()}],
                    key_generator := term(), value_generator := term(),
                    rng_seed := {integer(), integer(), integer()} | now,
                    report_interval_s := pos_integer(), warm_up_ms := non_neg_integer(),
                    operation_timeout_ms := pos_integer(), shutdown_on_error := boolean(),
                    exact_start := boolean(),
                    pre_hook := hook(), post_hook := hook(),
                    code_paths := [string()], source_dir := string() | undefined,
                    pairs := [{atom(), term()}]}.
%% Called before the first worker starts, and after the last one has ended.
-type hook() :: {module(), Function :: atom()} | none.

%% Keys of Basho Bench that would make it another load, and are not followed.
-define(UNSUPPORTED, [distribute_work, measurement_driver, sequential_int_state_dir,
                      value_generator_blob_file]).
-define(KEYS, [mode, duration, concurrent, driver, operations, key_generator, value_generator,
               code_paths, source_dir, rng_seed, report_interval, warm_up_s, operation_timeout_s,
               shutdown_on_error, pre_hook, post_hook, exact_start]).
%% So many letters added, left out or changed make a misspelt key. Many words are near to a short
%% one, as `node' and `code' to `mode', and may be keys of the driver: there it is one letter, and
%% not the first.
-define(MISSPELT_MAX, 2).
-define(SHORT_MAX, 5).
%% Labels become parts of names of files.
-define(LABEL_MAX, 100).

%% @doc Reads and checks a file. The error is a text for the user.
-spec read(file:filename()) -> {ok, config()} | {error, string()}.
read(File) ->
    read(File, []).

%% @doc The same, with values for keys that the file may leave out.
-spec read(file:filename(), Defaults :: [{atom(), term()}]) -> {ok, config()} | {error, string()}.
read(File, Defaults) ->
    case file:consult(File) of
        {ok, Pairs} ->
            case check(Pairs ++ Defaults) of
                {ok, Config} -> {ok, Config};
                {error, Text} -> {error, lists:flatten([File, ": ", Text])}
            end;
        {error, Reason} ->
            {error, lists:flatten([File, ": ", file:format_error(Reason)])}
    end.

%% @doc Checks the terms of a file.
-spec check([term()]) -> {ok, config()} | {error, string()}.
check(Pairs) ->
    try {ok, checked(Pairs)}
    catch throw:{config, Text} -> {error, lists:flatten(io_lib:format("~ts", [Text]))}
    end.

checked(Pairs) ->
    [fail("~0tp is no {Key, Value}", [Pair])
     || Pair <- Pairs, not (is_tuple(Pair) andalso tuple_size(Pair) =:= 2
                            andalso is_atom(element(1, Pair)))],
    ok = lists:foreach(fun(Key) -> absent(Key, proplists:get_value(Key, Pairs, false)) end,
                       ?UNSUPPORTED),
    ok = lists:foreach(fun(Key) -> known(Key, Pairs) end, others(Pairs)),
    Get = fun(Key, Default) -> proplists:get_value(Key, Pairs, Default) end,
    DurationMs = duration_ms(Get(duration, 5)),
    WarmUpMs = round(1000 * number(warm_up_s, Get(warm_up_s, 0))),
    [fail("warm_up_s: the warm-up is longer than the run of ~p s after it", [DurationMs / 1000])
     || WarmUpMs > DurationMs],
    #{duration_ms => DurationMs,
      concurrent => positive(concurrent, Get(concurrent, 3)),
      rate => rate(Get(mode, {rate, 5})),
      driver => driver(Get(driver, undefined)),
      operations => operations(Get(operations, [{get, 4}, {put, 4}, {delete, 1}])),
      key_generator => Get(key_generator, {uniform_int, 100000}),
      value_generator => Get(value_generator, {fixed_bin, 100}),
      rng_seed => seed(Get(rng_seed, {42, 23, 12})),
      report_interval_s => positive(report_interval, Get(report_interval, 10)),
      warm_up_ms => WarmUpMs,
      operation_timeout_ms => 1000 * positive(operation_timeout_s, Get(operation_timeout_s, 60)),
      shutdown_on_error => boolean(shutdown_on_error, Get(shutdown_on_error, false)),
      exact_start => boolean(exact_start, Get(exact_start, true)),
      pre_hook => hook(pre_hook, Get(pre_hook, no_op)),
      post_hook => hook(post_hook, Get(post_hook, no_op)),
      code_paths => Get(code_paths, []), source_dir => Get(source_dir, undefined),
      pairs => Pairs}.

absent(_Key, false) -> ok;
absent(Key, _Value) -> fail("~ts: this is not supported here; leave it out", [Key]).

others(Pairs) -> lists:usort([Key || {Key, _} <- Pairs]) -- ?KEYS.

%% A key that is given too is not what was meant.
known(Key, Pairs) ->
    case [Known || Known <- ?KEYS, not lists:keymember(Known, 1, Pairs),
                   is_misspelt(atom_to_list(Key), atom_to_list(Known))] of
        [] -> ok;
        [Known | _] -> fail("~ts: there is no such key; ~ts?", [Key, Known])
    end.

is_misspelt([First | _] = Key, Known) when length(Key) =< ?SHORT_MAX ->
    hd(Known) =:= First andalso weft_argparse:distance(Key, Known) =< 1;
is_misspelt(Key, Known) ->
    weft_argparse:distance(Key, Known) =< ?MISSPELT_MAX.

duration_ms({seconds, Seconds}) when is_number(Seconds), Seconds > 0 -> round(Seconds * 1000);
duration_ms(Minutes) when is_number(Minutes), Minutes > 0 -> round(Minutes * 60000);
duration_ms(infinity) -> infinity;
duration_ms(Other) -> fail("duration: minutes, {seconds, N} or infinity, not ~0tp", [Other]).

rate(max) -> max;
rate({rate, max}) -> max;
rate({rate, Rate}) when is_number(Rate), Rate > 0 -> Rate;
rate(Other) -> fail("mode: max, {rate, max} or {rate, PerSecond}, not ~0tp", [Other]).

driver(undefined) -> fail("driver: no driver is given; it is a module with new/1 and run/4", []);
driver(Driver) when is_atom(Driver) -> Driver;
driver(Other) -> fail("driver: a module, not ~0tp", [Other]).

operations(Operations) when length(Operations) >= 1 -> % not of an improper list
    case [Operation || {_, _, Weight} = Operation <- [operation(Given) || Given <- Operations],
                       Weight > 0] of
        [] -> fail("operations: one of them needs a weight above 0", []);
        Some ->
            ok = files(lists:usort([Label || {Label, _, _} <- Some])),
            Some
    end;
operations(Other) -> fail("operations: a list of {Operation, Weight}, not ~0tp", [Other]).

%% Two of them would write over what the other one has.
files(Labels) ->
    Files = [{weft_load_files:latencies_file(Label), Label} || Label <- Labels],
    case [{One, Other, File} || {File, One} <- Files, {Same, Other} <- Files, Same =:= File,
                                One < Other] of
        [] -> ok;
        [{One, Other, File} | _] ->
            fail("operations: ~ts and ~ts would both write ~ts; give one of them another label, as "
                 "{Label, Operation, Weight}", [One, Other, File])
    end.

operation({Operation, Weight}) when is_integer(Weight), Weight >= 0 ->
    {label(Operation), Operation, Weight};
operation({Label, Operation, Weight}) when is_integer(Weight), Weight >= 0 ->
    {label(Label), Operation, Weight};
operation(Other) ->
    fail("operations: {Operation, Weight} or {Label, Operation, Weight}, not ~0tp", [Other]).

%% As Basho Bench calls the file of `{get, 10}': get-10.
label(Label) when is_atom(Label) ->
    Label;
label(Label) ->
    case unicode:characters_to_list(words(Label)) of
        Text when is_list(Text), length(Text) =< ?LABEL_MAX -> list_to_atom(Text);
        _ -> fail("operations: a label of letters, at most ~b, not ~0tP", [?LABEL_MAX, Label, 20])
    end.

words(Label) when is_tuple(Label) -> lists:join("-", [words(Part) || Part <- tuple_to_list(Label)]);
words(Label) when is_atom(Label) -> atom_to_list(Label);
words(Label) when is_integer(Label) -> integer_to_list(Label);
words(Label) when is_binary(Label) -> Label;
words([_ | _] = Label) ->
    case io_lib:printable_unicode_list(Label) of
        true -> Label;
        false -> words(list_to_tuple(Label))
    end;
words(Label) -> io_lib:format("~0tp", [Label]).

hook(_Key, no_op) -> none;
hook(_Key, {Module, Function}) when is_atom(Module), is_atom(Function) -> {Module, Function};
hook(Key, Other) -> fail("~ts: {Module, Function}, not ~0tp", [Key, Other]).

seed(now) -> now;
seed({A, B, C} = Seed) when is_integer(A), is_integer(B), is_integer(C) -> Seed;
seed(Other) -> fail("rng_seed: {N, N, N} or now, not ~0tp", [Other]).

positive(_Key, Value) when is_integer(Value), Value > 0 -> Value;
positive(Key, Other) -> fail("~ts: a number above zero, not ~0tp", [Key, Other]).

number(_Key, Value) when is_number(Value), Value >= 0 -> Value;
number(Key, Other) -> fail("~ts: a number, not ~0tp", [Key, Other]).

boolean(_Key, Value) when is_boolean(Value) -> Value;
boolean(Key, Other) -> fail("~ts: true or false, not ~0tp", [Key, Other]).

-spec fail(io:format(), [term()]) -> no_return().
fail(Format, Arguments) ->
    throw({config, weft_bench_error:text(Format, Arguments)}).

%% @doc Each operation as many times as it weighs, to be drawn from.
-spec weighted([{Label, Operation, Weight :: pos_integer()}]) -> [{Label, Operation}].
weighted(Operations) ->
    lists:append([lists:duplicate(Weight, {Label, Operation})
                  || {Label, Operation, Weight} <- Operations]).

%% @doc Keys that mean nothing here, and that only the driver can know.
-spec for_driver(config()) -> [atom()].
for_driver(#{pairs := Pairs}) -> others(Pairs).

%% @doc One line about what is going to run.
-spec describe(config()) -> iolist().
describe(#{driver := Driver, concurrent := Workers, duration_ms := DurationMs, rate := Rate}) ->
    io_lib:format("~ts, ~b workers, ~ts, ~ts",
                  [Driver, Workers, case Rate of
                                        max -> "as fast as they can";
                                        _ -> io_lib:format("~p operations/s each", [Rate])
                                    end,
                   case DurationMs of
                       infinity -> "until all have finished";
                       _ -> io_lib:format("~.1f s", [DurationMs / 1000])
                   end]).
