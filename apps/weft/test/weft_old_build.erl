%% SPDX-License-Identifier: Apache-2.0
%% @doc A build of weft as it was at a commit, from the project's own history.
%%
%% A copy of the sources without it has no such build; who asks is told why.
-module(weft_old_build).

-export([make/2]).

%% @doc Compiles apps/weft of that commit below Dir. Returns the directory of its object code.
-spec make(Commit :: string(), file:filename()) ->
          {ok, file:filename()} | {error, Reason :: string()}.
make(Commit, Dir) ->
    Archive = filename:join(Dir, "weft.tar"),
    Git = io_lib:format("git -C '~ts' archive -o '~ts' ~s apps/weft/src 2>&1",
                        [root(), Archive, Commit]),
    ok = filelib:ensure_dir(Archive),
    Said = os:cmd(Git),
    case filelib:is_file(Archive) andalso erl_tar:extract(Archive, [{cwd, Dir}]) of
        ok -> {ok, compiled(filename:join(Dir, "apps/weft"))};
        _ -> {error, lists:flatten(io_lib:format("no build of ~s: ~ts", [Commit, Said]))}
    end.

%% The build is below the sources.
root() -> hd(string:split(code:lib_dir(weft), "/_build")).

compiled(App) ->
    Ebin = filename:join(App, "ebin"),
    ok = filelib:ensure_path(Ebin),
    Modules = [compiled(File, Ebin)
               || File <- filelib:wildcard(filename:join(App, "src/**/*.erl"))],
    {ok, [{application, weft, Keys}]} = file:consult(filename:join(App, "src/weft.app.src")),
    Complete = {application, weft, lists:keystore(modules, 1, Keys, {modules, Modules})},
    ok = file:write_file(filename:join(Ebin, "weft.app"), io_lib:format("~p.~n", [Complete])),
    Ebin.

%% What it says of behaviours that are compiled later is nothing new.
compiled(File, Ebin) ->
    {ok, Module} = compile:file(File, [{outdir, Ebin}]),
    Module.
