%% SPDX-License-Identifier: Apache-2.0
%% @doc The command in one file, as `make compile' makes it, of the applications that are tested.
-module(weft_cli_build).

-export([file/0, ebins/0, flags/0]).

%% @doc Makes the file, which is in the build of the tests, unless it is there and later than all
%% that is in it; several suites may do so at once. With FULL=1 it is made by the tool that makes it
%% for users, which compiles the applications once more.
-spec file() -> file:filename().
file() ->
    Base = filename:absname(filename:join([filename:dirname(code:which(weft_cli)),
                                           "..", "..", "..", ".."])),
    case os:getenv("FULL") of
        false -> escript(filename:join(Base, "test"));
        _ -> escriptize(root(), Base)
    end.

%% @doc The directories of object code that are in the file.
-spec ebins() -> [file:filename()].
ebins() ->
    Apps = filename:join(filename:dirname(weft_test_nodes:ebin(weft_cli)), ".."),
    [filename:absname(filename:join([Apps, App, "ebin"])) || App <- option(escript_incl_apps)].

%% @doc The arguments of the emulator in the file, without those that make it run one command and
%% read nothing.
-spec flags() -> [string()].
flags() ->
    "%%! -escript main weft_cli -noinput " ++ Flags = string:trim(option(escript_emu_args)),
    string:lexemes(Flags, " ").

option(Name) ->
    {ok, Options} = file:consult(filename:join(root(), "rebar.config")),
    proplists:get_value(Name, Options).

root() -> root(filename:dirname(proplists:get_value(source, module_info(compile)))).

root(Dir) ->
    case filelib:is_regular(filename:join(Dir, "rebar.config")) of
        true -> Dir;
        false when Dir =/= "/" -> root(filename:dirname(Dir))
    end.

escriptize(Root, Base) ->
    Output = os:cmd("cd '" ++ Root ++ "' && REBAR_BASE_DIR='" ++ Base
                    ++ "' TERM=dumb rebar3 escriptize 2>&1"),
    ct:log("~ts", [Output]),
    File = filename:join(Base, "default/bin/weft"),
    true = filelib:is_regular(File),
    File.

%% Of what rebar.config says.
escript(Build) ->
    Patterns = [{App, "ebin/*"} || App <- option(escript_incl_apps)]
        ++ [{App, filename:join("priv", Pattern)} || {App, Pattern} <- option(escript_incl_priv)],
    Names = [filename:join(App, Name)
             || {App, Pattern} <- Patterns,
                Name <- filelib:wildcard(Pattern, filename:join([Build, "lib", App]))],
    In = fun(Name) -> filename:join([Build, "lib", Name]) end,
    File = filename:join([Build, "bin", "weft"]),
    Sources = [filename:join(root(), "rebar.config") | [In(Name) || Name <- Names]],
    case is_later(File, Sources) of
        true -> File;
        false -> made(File, [{Name, read(In(Name))} || Name <- Names])
    end.

%% What was written in the same second may be another one.
is_later(File, Sources) ->
    Written = filelib:last_modified(File),
    Written =/= 0 andalso lists:all(fun(Source) -> filelib:last_modified(Source) < Written end,
                                    Sources).

made(File, Files) ->
    ok = filelib:ensure_dir(File),
    "%%!" ++ Arguments = string:trim(option(escript_emu_args)),
    New = File ++ "." ++ os:getpid(),
    ok = escript:create(New, [shebang, {emu_args, Arguments}, {archive, Files, []}]),
    ok = file:change_mode(New, 8#755),
    ok = file:rename(New, File),
    File.

read(File) ->
    {ok, Binary} = file:read_file(File),
    Binary.
