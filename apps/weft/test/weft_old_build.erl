%% SPDX-License-Identifier: Apache-2.0
%% @doc A build of weft as it was at a commit, from the project's own history.
%%
%% A copy of the sources without it has no such build; who asks is told why.
-module(weft_old_build).

-export([make/1]).

%% @doc Compiles apps/weft of that commit, or takes what was compiled by this emulator before, since
%% a commit does not change. Returns the directory of its object code.
-spec make(Commit :: string()) -> {ok, file:filename()} | {error, Reason :: string()}.
make(Commit) ->
    Builds = filename:join(filename:dirname(filename:dirname(code:lib_dir(weft))), "old"),
    Dir = filename:join(Builds, Commit ++ "-" ++ erlang:system_info(version)),
    Ebin = filename:join(Dir, "apps/weft/ebin"),
    case filelib:is_dir(Ebin) of
        true -> {ok, Ebin};
        false -> made(Commit, Dir, Ebin)
    end.

%% In another place at first: what was interrupted is no build.
made(Commit, Dir, Ebin) ->
    Making = Dir ++ "." ++ os:getpid(),
    Archive = filename:join(Making, "weft.tar"),
    Git = io_lib:format("git -C '~ts' archive -o '~ts' ~s apps/weft/src 2>&1",
                        [root(), Archive, Commit]),
    ok = filelib:ensure_dir(Archive),
    Said = os:cmd(Git),
    case filelib:is_file(Archive) andalso erl_tar:extract(Archive, [{cwd, Making}]) of
        ok ->
            _ = compiled(filename:join(Making, "apps/weft")),
            ok = file:delete(Archive),
            ok = file:rename(Making, Dir),
            {ok, Ebin};
        _ ->
            _ = file:del_dir_r(Making),
            {error, lists:flatten(io_lib:format("no build of ~s: ~ts", [Commit, Said]))}
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
