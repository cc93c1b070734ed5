%% SPDX-License-Identifier: Apache-2.0
%% @doc What is made where the tools for it are: the documentation by ex_doc, and the image by
%% Docker. Their files are held against what is here. Also what a first reader finds: a short
%% README, and an index with each guide.
-module(weft_publication_tests).

-include_lib("eunit/include/eunit.hrl").

-define(EX_DOC, "docs/ex_doc.config").
%% Read in three or four minutes; marks of tables are counted as words.
-define(README_WORDS_MAX, 1000).

%% --- a first reader ---------------------------------------------------------------------------

the_readme_is_short_test() ->
    {ok, Text} = file:read_file("README.md"),
    ?assertMatch(Words when Words =< ?README_WORDS_MAX,
                 length(string:lexemes(binary_to_list(Text), " \n"))).

each_guide_is_in_the_index_test() ->
    {ok, Index} = file:read_file("docs/guide/README.md"),
    Guides = [filename:basename(File) || File <- filelib:wildcard("docs/guide/*.md")],
    ?assertEqual(["README.md"],
                 [Guide || Guide <- Guides, string:find(Index, "](" ++ Guide ++ ")") =:= nomatch]).

%% --- ex_doc -----------------------------------------------------------------------------------

each_page_is_there_once_test() ->
    Pages = lists:append([filelib:wildcard(Pattern)
                          || Pattern <- ["*.md", "docs/guide/*.md", "docs/internals/*.md",
                                         "docs/decisions/*.md", "docs/benchmarks/README.md",
                                         "LICENSE"]]) -- ["docs/decisions/0000-template.md"],
    ?assertEqual(lists:sort(Pages), lists:sort(extras())).

each_page_is_in_one_group_test() ->
    ?assertEqual(extras(), [binary_to_list(Page) || {_, Pages} <- ex_doc(groups_for_extras),
                                                    Page <- Pages]).

%% ex_doc names a page by its file, wherever that is.
pages_have_different_names_test() ->
    Names = [case Extra of
                 {_, Options} -> binary_to_list(proplists:get_value(filename, Options));
                 File -> string:lowercase(filename:basename(binary_to_list(File), ".md"))
             end || Extra <- ex_doc(extras)],
    ?assertEqual([], Names -- lists:usort(Names)),
    ?assert(lists:member(binary_to_list(ex_doc(main)), Names)).

pictures_come_along_test_() ->
    Assets = [{string:trim(binary_to_list(From), trailing, "/"), binary_to_list(To)}
              || {From, To} <- maps:to_list(ex_doc(assets))],
    [{Page ++ ": " ++ Picture,
      fun() ->
              Place = lists:member(filename:dirname(Picture), [To || {_, To} <- Assets]),
              Source = [From || {From, To} <- Assets, To =:= filename:dirname(Picture)],
              ?assertEqual({true, [true]},
                           {Place, [filelib:is_regular(filename:join(From,
                                                                     filename:basename(Picture)))
                                    || From <- Source]})
      end} || Page <- extras(), Picture <- pictures(Page)].

pictures(Page) ->
    {ok, Text} = file:read_file(Page),
    case re:run(Text, "!\\[[^\\]]*\\]\\(([^)]+)\\)", [global, {capture, [1], list}]) of
        {match, Found} -> lists:append(Found);
        nomatch -> []
    end.

modules_of_the_groups_are_there_test() ->
    Sources = [list_to_atom(filename:basename(File, ".erl"))
               || File <- filelib:wildcard("apps/weft/src/**/*.erl")],
    Grouped = lists:append([Modules || {_, Modules} <- ex_doc(groups_for_modules)]),
    ?assertEqual([], Grouped -- Sources),
    ?assertEqual([], Grouped -- lists:usort(Grouped)),
    %% Behaviours are for others to implement, unless they are inside.
    ?assertEqual([], [Module || Module <- [weft_core, weft_topology, weft_discovery],
                                not lists:member(Module, Grouped)]).

extras() ->
    [case Extra of
         {File, _} -> atom_to_list(File);
         File -> binary_to_list(File)
     end || Extra <- ex_doc(extras)].

ex_doc(Key) ->
    {ok, Terms} = file:consult(?EX_DOC),
    {Key, Value} = lists:keyfind(Key, 1, Terms),
    Value.

%% --- Docker -----------------------------------------------------------------------------------

%% What the image runs has the libraries of OTP that it names.
the_image_has_what_it_runs_test() ->
    [_, _Build, Image] = re:split(dockerfile(), "(?m)^FROM ", [{return, list}]),
    Packages = ["erlang-" ++ Name || Name <- words(Image, "erlang-([a-z0-9-]+)")],
    Needed = lists:usort(["erlang-" ++ [case Char of $_ -> $-; _ -> Char end
                                        || Char <- atom_to_list(App)]
                          || Name <- apps() ++ ["weft_cli", "weft_command", "weft_profile",
                                                "weft_migrate", "weft_report", "weft_deploy"],
                             App <- applications(Name), is_package(App)]),
    ?assertEqual([], Needed -- Packages).

the_image_holds_what_needs_only_otp_test() ->
    Apps = apps(),
    ?assertEqual([], [App || App <- Apps, Other <- applications(App), not is_otp(Other),
                             not lists:member(atom_to_list(Other), Apps)]).

%% A file of an earlier stage is where that stage has put it.
stages_know_each_other_test() ->
    Text = dockerfile(),
    ?assertEqual(["build", "build"], words(Text, "--from=(\\w+)")),
    ?assertMatch({match, _}, re:run(Text, "^FROM \\S+ AS build$", [multiline])),
    [?assertNotEqual({Made, nomatch}, {Made, string:find(Text, Made)})
     || Made <- ["mkdir -p /out/lib", "WORKDIR /src", "make compile"]].

%% What rebar3 makes is not sent to Docker; what `make compile' reads is.
what_is_built_is_left_out_test() ->
    {ok, Ignored} = file:read_file(".dockerignore"),
    Lines = string:lexemes(binary_to_list(Ignored), "\n"),
    ?assert(lists:member("_build", Lines)),
    ?assertEqual([], [Path || Path <- ["apps", "bin", "rebar.config", "Makefile"],
                              lists:member(Path, Lines)]).

dockerfile() ->
    {ok, Text} = file:read_file("Dockerfile"),
    binary_to_list(Text).

apps() ->
    {match, [Found]} = re:run(dockerfile(), "for app in ((?:[a-z_]+[ \\\\\n]+)*[a-z_]+);",
                              [{capture, [1], list}]),
    string:lexemes(Found, " \\\n").

words(Text, Pattern) ->
    {match, Found} = re:run(Text, Pattern, [global, {capture, [1], list}]),
    lists:append(Found).

applications(App) ->
    {ok, [{application, _, Keys}]} =
        file:consult(filename:join(["apps", App, "src", App ++ ".app.src"])),
    proplists:get_value(applications, Keys).

is_otp(App) -> not filelib:is_dir(filename:join("apps", App)).

%% The others are in erlang-base.
is_package(App) ->
    is_otp(App) andalso not lists:member(App, [kernel, stdlib, compiler, sasl]).
