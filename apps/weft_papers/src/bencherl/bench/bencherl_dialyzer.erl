%% SPDX-License-Identifier: Apache-2.0
%% @doc Dialyzer builds a table of types for applications of OTP, on several cores: a real program.
%% The first run of an emulator also loads its code, as in BenchErl.
-module(bencherl_dialyzer).

-export([bench_args/2, run/3]).

%% Dialyzer is not everywhere; the benchmark says so when it is run.
-dialyzer({nowarn_function, run/3}).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(short, _Conf) -> [[[crypto]]];
bench_args(intermediate, _Conf) -> [[[stdlib]]];
bench_args(long, _Conf) -> [[[stdlib, kernel, compiler]]].

%% @private
-spec run(list(), [node()], list()) -> ok | {error, term()}.
run([Applications], _Slaves, Conf) ->
    Plt = filename:join(proplists:get_value(datadir, Conf), "dialyzer.plt"),
    ok = filelib:ensure_dir(Plt),
    Dirs = [filename:join(code:lib_dir(Application), "ebin") || Application <- Applications],
    case code:ensure_loaded(dialyzer) of
        {module, dialyzer} ->
            Warnings = dialyzer:run([{analysis_type, plt_build}, {files_rec, Dirs},
                                     {output_plt, Plt}, {get_warnings, false}]),
            io:format("~b warnings~n", [length(Warnings)]);
        {error, Reason} ->
            {error, {no_dialyzer, Reason}}
    end.
