%% SPDX-License-Identifier: Apache-2.0
%% @doc Who may call whom. Inside apps/weft/src the folders are in an order and calls go down only,
%% and so do names of modules, by which one is called through a variable, or its process found. (The
%% name of the library itself is that of its application, too, and is free.) Between applications
%% the .app.src files are the truth, apps/weft needs nothing but OTP, and nothing calls what it does
%% not declare. The order of the layers is in house.config.
-module(house_layers).

-export([rules/0, check/2]).

-define(LIBRARY, weft).

-spec rules() -> [atom()].
rules() ->
    [layer, name, application].

-spec check(house_facts:facts(), [tuple()]) -> [house:problem()].
check(#{modules := Modules, apps := Apps}, Config) ->
    {layers, Lowest2Highest} = lists:keyfind(layers, 1, Config),
    Facts = [Module || {_, Module} <- lists:sort(maps:to_list(Modules))],
    Library = [Module || #{app := ?LIBRARY} = Module <- Facts],
    Ranks = ranks(Library, Lowest2Highest),
    homeless(Library, Lowest2Highest) ++ layer(Facts, Ranks) ++ name(Library, Ranks)
        ++ library(Apps) ++ cycles(Apps) ++ undeclared(Facts, Modules, Apps).

homeless(Library, Lowest2Highest) ->
    [house:problem(layer, File, 1, folder(File),
                   "this folder has no place in house.config: which folders may use it?")
     || #{file := File} <- Library, not lists:member(folder(File), Lowest2Highest)].

ranks(Library, Lowest2Highest) ->
    Ranks = maps:from_list(lists:zip(Lowest2Highest, lists:seq(1, length(Lowest2Highest)))),
    maps:from_list([{M, maps:get(folder(File), Ranks, 0)}
                    || #{module := M, file := File} <- Library]).

%% Below src.
folder(File) ->
    ["apps", _, "src" | Folders] = filename:split(filename:dirname(File)),
    lists:flatten(lists:join("/", Folders)).

layer(Facts, Ranks) ->
    [house:problem(layer, File, Line, lists:concat([From, " -> ", To]),
                   io_lib:format("~w must not use ~w, which is in a folder above", [From, To]))
     || #{module := From, file := File} = Module <- Facts, {Line, To} <- uses(Module),
        maps:get(To, Ranks, 0) > maps:get(From, Ranks, infinity)].

%% Each module once, where it is named first.
name(Library, Ranks) ->
    [house:problem(name, File, Line, lists:concat([From, " -> ", To]),
                   io_lib:format("~w must not name ~w, which is in a folder above", [From, To]))
     || #{module := From, file := File, names := Names} <- Library,
        {Line, To} <- lists:ukeysort(2, Names), To =/= ?LIBRARY,
        maps:get(To, Ranks, 0) > maps:get(From, Ranks)].

uses(#{calls := Calls, behaviours := Behaviours}) ->
    lists:usort([{1, B} || B <- Behaviours] ++ [{Line, M} || {_, Line, {M, _, _}} <- Calls]).

library(Apps) ->
    [house:problem(application, File, 1, atom_to_list(?LIBRARY),
                   io_lib:format("~w needs ~w, but depends on OTP only", [?LIBRARY, Needed]))
     || {?LIBRARY, {File, Needs}} <- maps:to_list(Apps), Needed <- Needs, not is_otp(Needed)].

is_otp(App) ->
    case code:lib_dir(App) of
        {error, bad_name} -> false;
        Dir -> lists:prefix(code:lib_dir(), Dir) andalso App =/= proper
    end.

cycles(Apps) ->
    [house:problem(application, File, 1, atom_to_list(App),
                   io_lib:format("~w needs itself, by way of others: a circular dependency", [App]))
     || {App, {File, _}} <- lists:sort(maps:to_list(Apps)),
        lists:member(App, below(needs(App, Apps), Apps, []))].

below([], _, Seen) ->
    Seen;
below([App | Rest], Apps, Seen) ->
    case lists:member(App, Seen) of
        true -> below(Rest, Apps, Seen);
        false -> below(needs(App, Apps) ++ Rest, Apps, [App | Seen])
    end.

needs(App, Apps) ->
    {_, Needs} = maps:get(App, Apps, {"", []}),
    Needs.

undeclared(Facts, Modules, Apps) ->
    [house:problem(application, File, Line, lists:concat([App, " -> ", Other]),
                   io_lib:format("uses ~w of ~w: name ~w in `applications' of ~w.app.src",
                                 [M, Other, Other, App]))
     || #{app := App, file := File} = Module <- Facts, {Line, M} <- uses(Module),
        Other <- application_of(M, Modules), Other =/= App,
        not lists:member(Other, needs(App, Apps))].

application_of(M, Modules) ->
    case Modules of
        #{M := #{app := App}} -> [App];
        #{} -> otp_application(code:which(M))
    end.

otp_application(Path) when is_list(Path), Path =/= "" ->
    Dir = filename:basename(filename:dirname(filename:dirname(Path))),
    [list_to_atom(hd(string:split(Dir, "-")))];
otp_application(_PreloadedOrUnknown) ->
    [].
