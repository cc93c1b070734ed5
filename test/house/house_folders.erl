%% SPDX-License-Identifier: Apache-2.0
%% @doc What a folder of sources must look like: few files, in any application; and, in those that
%% ?EXPLAINED names, a README.md that says what it is for and which file to begin with. Looks at the
%% names of files and at the text of the READMEs.
-module(house_folders).

-export([rules/0, check/1]).

%% Applications whose folders each have a README.md.
-define(EXPLAINED, ["weft", "weft_bench", "weft_cli", "weft_deploy", "weft_report", "weft_sim"]).
-define(FILES_MAX, 25).
-define(README, "README.md").

-spec rules() -> [atom()].
rules() ->
    [folder].

%% @doc The problems of all folders of sources, from all files and their texts.
-spec check([{File :: string(), Text :: binary()}]) -> [house:problem()].
check(Sources) ->
    Files = [File || {File, _} <- Sources, is_source(filename:split(File))],
    Folders = lists:usort([Folder || File <- Files, Folder <- folders(filename:dirname(File))]),
    [Problem || Folder <- Folders,
                Problem <- size([F || F <- Files, filename:dirname(F) =:= Folder], Folder)
                    ++ explanation(Folder, Sources, Files)].

is_source(["apps", _App, "src" | _]) -> true;
is_source(_Path) -> false.

%% With those above it: there may be one that has only folders.
folders(Folder) ->
    case filename:split(Folder) of
        ["apps", _App, "src"] -> [Folder];
        _Room -> [Folder | folders(filename:dirname(Folder))]
    end.

size(Files, Folder) when length(Files) > ?FILES_MAX ->
    [house:problem(folder, Folder, 0, Folder,
                   io_lib:format("~w files, at most ~w: make rooms", [length(Files), ?FILES_MAX]))];
size(_Files, _Folder) ->
    [].

explanation(Folder, Sources, Files) ->
    ["apps", App | _] = filename:split(Folder),
    case lists:member(App, ?EXPLAINED) of
        true -> readme(Folder, lists:keyfind(filename:join(Folder, ?README), 1, Sources), Files);
        false -> []
    end.

readme(Folder, false, _Files) ->
    [house:problem(folder, Folder, 0, Folder, "needs a README.md: what is it for?")];
readme(Folder, {File, Text}, Files) ->
    case re:run(Text, "Begin with `([^`]+)`", [{capture, [1], list}]) of
        {match, [First]} ->
            [house:problem(folder, File, 0, Folder, ["there is no ", First, " to begin with"])
             || not lists:member(filename:join(Folder, First), Files)];
        nomatch ->
            [house:problem(folder, File, 0, Folder, "say: Begin with `FILE'")]
    end.
