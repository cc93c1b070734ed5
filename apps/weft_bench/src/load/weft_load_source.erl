%% SPDX-License-Identifier: Apache-2.0
%% @doc Loads a driver or a benchmark module: from the code path, or from a source file that is
%% compiled into memory, so that modules written for Basho Bench and BenchErl run unchanged.
-module(weft_load_source).

-export([load/2, load_others/2, compile/1]).

%% @doc Makes a module ready. The error is a text.
-spec load(module(), SourceDir :: string() | undefined) -> ok | {error, string()}.
load(Module, SourceDir) ->
    case {code:ensure_loaded(Module), source(Module, SourceDir)} of
        {{module, Module}, _} -> ok;
        {{error, _}, {ok, File}} -> compile(File);
        {{error, Reason}, none} ->
            {error, lists:flatten(
                      io_lib:format("there is no module ~ts on the code path (~0tp) and no source "
                                    "of it in ~ts", [Module, Reason, shown(SourceDir)]))}
    end.

%% @doc Makes the other modules of a directory ready that are not on the code path. Those that do
%% not compile are left out, as in Basho Bench: they may be drivers for something else.
-spec load_others(SourceDir :: string() | undefined, But :: module()) -> ok.
load_others(undefined, _But) ->
    ok;
load_others(Dir, But) ->
    lists:foreach(fun(File) ->
                          Module = list_to_atom(filename:basename(File, ".erl")),
                          _ = Module =:= But orelse load(Module, Dir)
                  end, filelib:wildcard(filename:join(Dir, "*.erl"))).

source(_Module, undefined) -> none;
source(Module, Dir) ->
    File = filename:join(Dir, atom_to_list(Module) ++ ".erl"),
    case filelib:is_regular(File) of
        true -> {ok, File};
        false -> none
    end.

shown(undefined) -> "source_dir (not given)";
shown(Dir) -> Dir.

%% @doc Compiles a source file and loads it. Headers of Basho Bench are found.
-spec compile(file:filename()) -> ok | {error, string()}.
compile(File) ->
    Headers = filename:join(code:priv_dir(weft_bench), "include"),
    Options = [binary, return_errors, nowarn_deprecated_function,
               {i, filename:dirname(File)}, {i, Headers}],
    case compile:file(File, Options) of
        {ok, Module, Code} ->
            {module, Module} = code:load_binary(Module, File, Code),
            ok;
        {error, [{_, [{Where, By, What} | _]} | _], _} ->
            {error, lists:flatten(io_lib:format("~ts:~0tp: ~ts",
                                                [File, Where, By:format_error(What)]))};
        {error, Errors, _} ->
            {error, weft_bench_error:text("~ts: ~0tp", [File, Errors])}
    end.
