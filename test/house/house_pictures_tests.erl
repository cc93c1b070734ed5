%% SPDX-License-Identifier: Apache-2.0
%% @doc The two pictures of ARCHITECTURE.md are of the code as it is: boxes are folders, in the
%% order of the layers, and the tree of processes is that of the supervisors, as far as their source
%% text says so. What beside a name is said of it, no test can know.
-module(house_pictures_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SOURCES, "apps/weft/src").
%% The text under the drawing says that these are not in it.
-define(NOT_DRAWN, ["api", "application", "config"]).
%% What services are made of is none of them.
-define(NO_SERVICE, ["kit"]).

each_box_is_a_folder_and_each_folder_is_in_a_box_test() ->
    ?assertEqual(folders(?SOURCES) -- ?NOT_DRAWN, lists:sort(layers() ++ beside())).

%% Each column has the higher layers above the lower ones.
boxes_stand_in_the_order_of_the_layers_test_() ->
    {ok, Config} = file:consult("test/house/house.config"),
    {layers, Folders} = lists:keyfind(layers, 1, Config),
    Downwards = lists:reverse([Layer || Folder <- Folders, [Layer] <- [filename:split(Folder)]]),
    [?_assertEqual([Layer || Layer <- Downwards, lists:member(Layer, Column)], Column)
     || Column <- [layers(), beside()]].

what_is_not_drawn_is_named_test() ->
    ?assertEqual(?NOT_DRAWN, lists:sort(lists:append(
        [found("`([a-z]+)`", Said) || Said <- found("^(.*Not drawn .*)$", architecture())]))).

all_services_are_in_their_box_test() ->
    [Said] = found("^ service +(.*): all optional$", drawing()),
    ?assertEqual(folders(?SOURCES ++ "/service") -- ?NO_SERVICE,
                 lists:sort(string:lexemes(Said, ", "))).

the_parts_in_other_boxes_are_folders_test() ->
    Of = fun(Layer, Parts) -> Parts -- folders(?SOURCES ++ "/" ++ Layer) end,
    [_ | _] = InOverlay = found("│ ([a-z_]+):", drawing()),
    [_ | _] = InCarrier = found("→ ([a-z_]+)", drawing()),
    ?assertEqual({[], []}, {Of("overlay", InOverlay), Of("carrier", InCarrier)}),
    ?assertEqual(["weft_dist"], found("(weft_[a-z_]+)", drawing())),
    ?assertMatch([_], source_files("weft_dist")).

each_process_of_the_tree_is_a_child_of_the_one_above_test_() ->
    [{Name, ?_assert(case Parent of
                         none -> names("\\{local, \\?MODULE\\}", Name);
                         _ -> names("\\b" ++ Name ++ "\\b", Parent)
                     end)}
     || {Parent, Names} <- tree(), Name <- Names].

all_children_of_the_two_supervisors_at_the_top_are_in_the_tree_test_() ->
    [{Top, ?_assertEqual(
              lists:usort(found("(?:worker\\(|supervised\\(|id => |define\\(\\w+, )(weft_\\w+)",
                                code(Top))),
              lists:sort([Name || {Parent, Names} <- tree(), Parent =:= Top, Name <- Names]))}
     || Top <- ["weft_carrier_sup", "weft_sup"]].

a_tree_is_read_by_its_indentation_test() ->
    Lines = ["weft_top (one)  all", "├─ weft_a, weft_b", "│     nothing like weft_c",
             "└─ weft_d      that", "   └─ more ─ weft_e  it", "", "weft_other", "└─ weft_f"],
    ?assertEqual([{none, ["weft_top"]}, {"weft_top", ["weft_a", "weft_b"]},
                  {"weft_top", ["weft_d"]}, {"weft_d", ["weft_e"]}, {none, ["weft_other"]},
                  {"weft_other", ["weft_f"]}],
                 with_parents([Read || Line <- Lines, Read <- read(Line)], [])).

%%% The pictures

drawing() -> block("## The idea").

layers() -> found("^ ([a-z]+) {3,}", drawing()).

beside() -> found("┌ ([a-z]+) ─", drawing()).

tree() ->
    Lines = string:split(block("## What ends with a process"), "\n", all),
    with_parents([Read || Line <- Lines, Read <- read(Line)], []).

%% The first block of text under a heading.
block(Heading) ->
    [_, Section] = string:split(architecture(), Heading ++ "\n"),
    [_, Block] = string:split(Section, "```text\n"),
    [Text, _] = string:split(Block, "\n```"),
    Text.

architecture() ->
    {ok, Text} = file:read_file("ARCHITECTURE.md"),
    unicode:characters_to_list(Text).

%% How far to the right a line begins, and which processes it names. What is said of them stands
%% behind two spaces at least. The other lines go on with what was said.
read(Line) ->
    case {re:run(Line, "^([ │]*)[├└]─ (.*)$", [unicode, {capture, [1, 2], list}]),
          re:run(Line, "^\\w", [unicode])} of
        {{match, [Indent, Rest]}, _} -> [{length(Indent), label(Rest)}];
        {nomatch, {match, _}} -> [{-1, label(Line)}];
        {nomatch, nomatch} -> []
    end.

label(Text) ->
    [Label | _] = re:split(Text, " {2,}", [unicode, {return, list}]),
    found("(weft_\\w+)", Label).

%% Above: the lines that a further one may belong to, the nearest first.
with_parents([{Column, Names} | Lines], Above) ->
    Open = [One || {Left, _} = One <- Above, Left < Column],
    Parent = case Open of
                 [{_, [Name | _]} | _] -> Name;
                 _ -> none
             end,
    [{Parent, Names} | with_parents(Lines, [{Column, Names} | Open])];
with_parents([], _Above) ->
    [].

%%% The code

folders(Dir) ->
    lists:sort([Name || Name <- filelib:wildcard("*", Dir),
                        filelib:is_dir(filename:join(Dir, Name))]).

source_files(Module) -> filelib:wildcard(?SOURCES ++ "/**/" ++ Module ++ ".erl").

%% Without comments.
code(Module) ->
    [File] = source_files(Module),
    {ok, Text} = file:read_file(File),
    re:replace(Text, "%.*", "", [global, unicode, {return, list}]).

names(Pattern, Module) -> found("(" ++ Pattern ++ ")", code(Module)) =/= [].

found(Pattern, Text) ->
    case re:run(Text, Pattern, [global, multiline, unicode, {capture, [1], list}]) of
        {match, Found} -> [Group || [Group] <- Found];
        nomatch -> []
    end.
