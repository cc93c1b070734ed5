%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_picture_tests).

-include_lib("eunit/include/eunit.hrl").

%% A chart with two lines.
chart(Title) ->
    #{title => Title, description => "what it shows", x_label => "size", y_label => "time",
      x => {categories, ["one"]}, y => log, y_text => fun(_) -> "tick" end,
      series => [#{name => Name, class => Class, shape => 0, points => [{1, 5, 4, 6, "tip"}]}
                 || {Name, Class} <- [{"stock TCP", <<"stock">>}, {"weft", <<"weft_1">>}]]}.

svg(Count) ->
    unicode:characters_to_binary(
      weft_report_picture:svg("a & b", [chart(integer_to_list(N)) || N <- lists:seq(1, Count)])).

count(Part, Svg) -> length(binary:matches(Svg, Part)).

a_picture_is_well_formed_with_all_charts_and_one_legend_test() ->
    Svg = svg(4),
    ?assertMatch({ok, _, _}, xmerl_sax_parser:stream(Svg, [])),
    ?assertEqual(4, count(<<"<desc>what it shows</desc>">>, Svg)),
    ?assertEqual(1, count(<<">stock TCP</text>">>, Svg)),
    ?assertEqual(1, count(<<"<title>a &amp; b</title>">>, Svg)).

%% Three in a row.
a_picture_is_as_large_as_its_charts_test() ->
    Pattern = "^<svg [^>]*width=\"(\\d+)\" height=\"(\\d+)\"",
    Sizes = [Size || Count <- [1, 3, 4],
                     {match, Size} <- [re:run(svg(Count), Pattern,
                                              [{capture, all_but_first, list}])]],
    {Width, Height} = weft_report_svg:size(),
    [[W1, H1], [W3, H3], [W3, H4]] = [[list_to_integer(N) || N <- Size] || Size <- Sizes],
    ?assertEqual({2 * (Width + 10), 0, Height + 10}, {W3 - W1, H3 - H1, H4 - H3}).
