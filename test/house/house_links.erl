%% SPDX-License-Identifier: Apache-2.0
%% @doc Links of documents: what a link in a *.md file leads to, by a path in the checkout, is
%% there, and has the heading that the link names. Addresses on the net are not asked for.
-module(house_links).

-export([rules/0, check/3, anchors/1]).

-spec rules() -> [atom()].
rules() ->
    [link].

%% @doc The links of one file.
-spec check(Root :: file:filename(), string(), binary()) -> [house:problem()].
check(Root, File, Text) ->
    case filename:extension(File) of
        ".md" -> lists:append([problems(Root, File, Text, Link) || Link <- links(Text)]);
        _ -> []
    end.

%% With their lines. Code may have brackets of its own.
links(Text) ->
    Lines = binary:split(Text, <<"\n">>, [global]),
    {_, All} = lists:foldl(fun({Number, Line}, {IsCode, Found}) ->
                               case Line of
                                   <<"```", _/binary>> -> {not IsCode, Found};
                                   _ when IsCode -> {IsCode, Found};
                                   _ -> {IsCode, Found ++ [{Number, T} || T <- targets(Line)]}
                               end
                           end, {false, []}, lists:enumerate(Lines)),
    All.

targets(Line) ->
    Words = re:replace(Line, "`[^`]*`", "", [global, {return, binary}]),
    case re:run(Words, "\\]\\(([^)\\s]+)\\)", [global, {capture, all_but_first, list}]) of
        {match, Found} -> [Target || [Target] <- Found, not is_elsewhere(Target)];
        nomatch -> []
    end.

is_elsewhere(Target) ->
    re:run(Target, "^[a-z]+:", [{capture, none}]) =:= match.

problems(_Root, File, Text, {Number, "#" ++ Anchor = Target}) ->
    without_heading(File, Number, Target, Anchor, anchors(Text));
problems(Root, File, _Text, {Number, Target}) ->
    [Path | Anchors] = string:split(Target, "#"),
    Place = filename:join([Root, filename:dirname(File), Path]),
    case filelib:is_file(Place) of
        false -> [problem(File, Number, Target, "is not there")];
        true -> lists:append([without_heading(File, Number, Target, Anchor, headings(Place))
                              || Anchor <- Anchors])
    end.

without_heading(File, Number, Target, Anchor, Headings) ->
    [problem(File, Number, Target, "has no such heading") || not lists:member(Anchor, Headings)].

problem(File, Number, Target, What) ->
    house:problem(link, File, Number, File, [Target, " ", What]).

headings(Place) ->
    case file:read_file(Place) of
        {ok, Text} -> anchors(Text);
        {error, _} -> []
    end.

%% @doc What the headings of a document are called in links.
-spec anchors(binary()) -> [string()].
anchors(Text) ->
    [anchor(Heading) || Line <- binary:split(Text, <<"\n">>, [global]),
                        {match, [Heading]} <- [re:run(Line, "^#+ +(.*)$",
                                                      [{capture, all_but_first, binary}])]].

anchor(Heading) ->
    Lower = string:lowercase(unicode:characters_to_list(Heading)),
    [case Char of $\s -> $-; _ -> Char end
     || Char <- Lower, Char =:= $\s orelse Char =:= $- orelse Char =:= $_ orelse Char > 127
            orelse (Char >= $a andalso Char =< $z) orelse (Char >= $0 andalso Char =< $9)].
