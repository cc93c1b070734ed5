%% SPDX-License-Identifier: Apache-2.0
%% @doc The sources below some paths. Directories that are made by a build, and those whose name
%% begins with a full stop, are left out.
-module(weft_migrate_files).

-export([below/1]).

-define(BUILT, ["_build", "deps", "ebin", "node_modules"]).
-define(DEPTH_MAX, 32).

%% @doc Files named are taken whatever their name is. Sorted, each once.
-spec below([file:filename_all()]) -> {ok, [file:filename_all()]} | {error, string()}.
below(Paths) ->
    case [Path || Path <- Paths, not filelib:is_file(Path)] of
        [] -> {ok, lists:usort(lists:append([found(Path) || Path <- Paths]))};
        [Missing | _] ->
            {error, lists:flatten(io_lib:format("there is no ~ts; write files or directories",
                                                [Missing]))}
    end.

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
