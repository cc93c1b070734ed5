%% SPDX-License-Identifier: Apache-2.0
%% @doc The sources below some paths, and how a file gets other bytes: all or none of them.
%%
%% Directories that are made by a build, and those whose name begins with a full stop, are left out.
-module(weft_migrate_files).

-export([below/1, replace/2]).

-include_lib("kernel/include/file.hrl").

-define(BUILT, ["_build", "deps", "ebin", "node_modules"]).
-define(DEPTH_MAX, 32).

%% @doc Files named are taken whatever their name is. Sorted, each once.
-spec below([file:filename_all()]) -> {ok, [file:filename_all()]} | {error, string()}.
below(Paths) ->
    case [Path || Path <- Paths, not filelib:is_file(Path)] of
        [] -> some(lists:usort(lists:append([found(Path) || Path <- Paths])), Paths);
        [Missing | _] -> error_text("there is no ~ts; write files or directories", [Missing])
    end.

%% RabbitMQ has its own sources in a directory that is named deps.
some([], Paths) ->
    error_text("there is no source below ~ts; directories named ~ts are read only if they are "
               "named", [lists:join(", ", Paths), lists:join(", ", ?BUILT)]);
some(Files, _Paths) ->
    {ok, Files}.

error_text(Format, Arguments) -> {error, lists:flatten(io_lib:format(Format, Arguments))}.

found(Path) ->
    case filelib:is_dir(Path) of
        true -> in(Path, ?DEPTH_MAX);
        false -> [Path]
    end.

in(_Dir, 0) ->
    [];
in(Dir, Depth) ->
    Names = case file:list_dir(Dir) of {ok, Found} -> Found; {error, _} -> [] end,
    lists:append([entry(filename:join(Dir, Name), Name, Depth) || [First | _] = Name <- Names,
                                                                  First =/= $.]).

entry(File, Name, Depth) ->
    case filelib:is_dir(File) of
        true -> case lists:member(Name, ?BUILT) of true -> []; false -> in(File, Depth - 1) end;
        false -> [File || lists:member(filename:extension(Name),
                                       [".erl", ".hrl", ".ex", ".exs"])]
    end.

%% @doc Whoever reads the file meanwhile has the old bytes or the new ones. Its mode stays; a link
%% stays a link.
-spec replace(file:filename_all(), binary()) -> ok | {error, string()}.
replace(File, Bytes) ->
    Target = target(File, ?DEPTH_MAX),
    New = [Target, ".weft_migrate"],
    Steps = [fun() -> file:write_file(New, Bytes, [exclusive]) end,
             fun() -> keep_mode(Target, New) end,
             fun() -> file:rename(New, Target) end],
    case steps(Steps) of
        ok -> ok;
        {error, eexist} ->
            {error, lists:flatten(io_lib:format("~ts exists; remove it", [New]))};
        {error, Reason} ->
            _ = file:delete(New),
            {error, file:format_error(Reason)}
    end.

steps([]) -> ok;
steps([Step | Steps]) ->
    case Step() of
        ok -> steps(Steps);
        Error -> Error
    end.

keep_mode(From, To) ->
    case file:read_file_info(From) of
        {ok, #file_info{mode = Mode}} -> file:change_mode(To, Mode);
        Error -> Error
    end.

target(File, 0) ->
    File;
target(File, Depth) ->
    case file:read_link(File) of
        {ok, Link} -> target(filename:absname(Link, filename:dirname(File)), Depth - 1);
        {error, _} -> File
    end.
