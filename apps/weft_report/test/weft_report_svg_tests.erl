%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_svg_tests).

-include_lib("eunit/include/eunit.hrl").

chart(Points, More) ->
    unicode:characters_to_list(weft_report_svg:chart(maps:merge(
        #{title => "a < b & c", description => "what it shows", x_label => "size",
          y_label => "time", x => {categories, ["one", "two"]}, y => log,
          y_text => fun(Value) -> integer_to_list(round(Value)) end,
          series => [#{name => "stock", class => <<"stock">>, shape => 0, points => Points}]},
        More))).

point(X, Y) -> {X, Y, Y / 2, Y * 2, "tip"}.

%% The heights at which circles stand, from left to right.
heights(Svg) ->
    {match, Found} = re:run(Svg, "<circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"",
                            [global, {capture, all_but_first, list}]),
    [list_to_float(Y) || {_, Y} <- lists:sort([{float_of(X), float_text(Y)} || [X, Y] <- Found])].

float_of(Text) -> list_to_float(float_text(Text)).

float_text(Text) ->
    case lists:member($., Text) of true -> Text; false -> Text ++ ".0" end.

well_formed(Svg) ->
    {ok, _, _} = xmerl_sax_parser:stream(unicode:characters_to_binary(Svg), []).

a_chart_is_well_formed_and_tells_its_title_test() ->
    Svg = chart([point(1, 10), point(2, 1000)], #{}),
    well_formed(Svg),
    [?assertNotEqual(nomatch, string:find(Svg, Part))
     || Part <- ["<title>a &lt; b &amp; c</title>", "<desc>what it shows</desc>", "role=\"img\"",
                 "aria-label=\"a &lt; b &amp; c\"", "<title>stock: tip</title>", ">one<", ">two<"]].

%% On a logarithmic axis equal factors are equal distances.
equal_factors_are_equal_distances_test() ->
    [A, B, C] = heights(chart([point(1, 10), point(2, 100), point(3, 1000)],
                              #{x => {categories, ["1", "2", "3"]}})),
    ?assert(abs((A - B) - (B - C)) < 0.1),
    ?assert(A > B).

equal_steps_are_equal_distances_on_a_linear_axis_test() ->
    [A, B, C] = heights(chart([point(0, 10), point(5, 20), point(10, 30)],
                              #{x => linear, y => linear})),
    ?assert(abs((A - B) - (B - C)) < 0.1).

all_points_are_inside_test_() ->
    [?_assert(lists:all(fun(Height) -> Height >= 26 andalso Height =< 210 end,
                        heights(chart([point(1, Y), point(2, Y * Factor)], #{y => Scale}))))
     || Y <- [0.003, 1, 999.9, 1.0e7], Factor <- [1, 1.01, 70, 1.0e6], Scale <- [log, linear]].

%% Quantities are joined by a line, other things are not.
only_quantities_are_joined_test() ->
    Joined = fun(Names) ->
                     string:find(chart([point(1, 10), point(2, 20)], #{x => {categories, Names}}),
                                 "<polyline") =/= nomatch
             end,
    ?assertEqual([true, true, false, false],
                 [Joined(Names) || Names <- [["1", "16"], ["64 KB", "1 MB"], ["stock", "weft"],
                                             ["all", "1 %"]]]).

%% Each at its own place.
a_logarithmic_axis_says_so_test() ->
    Says = fun(Scales) ->
                   Svg = chart([point(1, 10), point(5, 20)], Scales),
                   case re:run(Svg, "<text x=\"([0-9.]+)\"[^>]*>log scale<",
                               [global, {capture, all_but_first, list}]) of
                       {match, Places} -> length(lists:usort(Places));
                       nomatch -> 0
                   end
           end,
    ?assertEqual([0, 1, 1, 2], [Says(#{x => X, y => Y}) || X <- [linear, log], Y <- [linear, log]]).

%% In light, and in dark.
no_two_things_have_the_same_colour_test_() ->
    [fun() ->
             {match, Found} = re:run(Sheet, "--([a-z0-9]+): (#[0-9a-f]+)",
                                     [global, {capture, all_but_first, list}]),
             Colours = [Colour || [_Name, Colour] <- Found],
             ?assert(length(Colours) > 20),
             ?assertEqual([], Colours -- lists:usort(Colours))
     end || Sheet <- binary:split(weft_report_html:chart_style(), <<"@media">>)].

a_reference_is_drawn_test() ->
    ?assertEqual(nomatch, string:find(chart([point(1, 2)], #{}), "class=\"reference\"")),
    ?assertNotEqual(nomatch, string:find(chart([point(1, 2)], #{reference => 1, y => linear}),
                                         "class=\"reference\"")).

%% Where the names of categories stand.
label_heights(Names) ->
    Svg = chart([point(1, 10)], #{x => {categories, Names}}),
    {match, Found} = re:run(Svg, "y=\"([0-9.]+)\" class=\"tick x\"",
                            [global, {capture, all_but_first, list}]),
    length(lists:usort(Found)).

long_names_of_categories_take_two_lines_test() ->
    ?assertEqual(1, label_heights(["one", "two", "three"])),
    ?assertEqual(2, label_heights(lists:duplicate(6, "a longer one"))).
