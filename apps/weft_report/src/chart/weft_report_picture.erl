%% SPDX-License-Identifier: Apache-2.0
%% @doc The charts of one figure as a picture of its own, an SVG file that needs no page: what the
%% marks mean, then the charts in rows. For documents; pages have charts in their text.
-module(weft_report_picture).

-export([svg/2]).

-define(E, weft_report_html:tag).
-define(T, weft_report_html:text).
-define(COLUMNS_MAX, 3).
-define(GAP, 10).
%% Of the legend: a line, a mark, a letter.
-define(LINE_HEIGHT, 18).
-define(MARK, 30).
-define(LETTER, 6.0).

%% @doc At least one chart; the title is for those to whom it is read aloud.
-spec svg(Title :: unicode:chardata(), [weft_report_svg:chart(), ...]) -> weft_report_html:html().
svg(Title, Charts) ->
    {ChartWidth, ChartHeight} = weft_report_svg:size(),
    Columns = min(?COLUMNS_MAX, length(Charts)),
    Width = ?GAP + Columns * (ChartWidth + ?GAP),
    {Legend, Top} = legend(weft_report_chart:marks(Charts), Width),
    Rows = (length(Charts) + Columns - 1) div Columns,
    Height = Top + Rows * (ChartHeight + ?GAP),
    [?E(svg, [{xmlns, "http://www.w3.org/2000/svg"}, {width, Width}, {height, Height},
              {viewBox, io_lib:format("0 0 ~b ~b", [Width, Height])}, {role, "img"},
              {'aria-label', Title}],
        [?E(title, [], ?T(Title)), "\n<style>\n", weft_report_html:chart_style(), "</style>\n",
         ?E(rect, [{width, Width}, {height, Height}, {class, "ground"}]), "\n",
         ?E(g, [{class, "chart"}], Legend), "\n",
         [at(Number, Columns, Top, Chart) || {Number, Chart} <- lists:enumerate(0, Charts)]]),
     "\n"].

at(Number, Columns, Top, Chart) ->
    {Width, Height} = weft_report_svg:size(),
    [?E(svg, [{x, ?GAP + Number rem Columns * (Width + ?GAP)},
              {y, Top + Number div Columns * (Height + ?GAP)}, {width, Width}, {height, Height}],
        weft_report_svg:chart(Chart)), "\n"].

%% From left to right, in as many lines as it takes; with where the charts begin.
legend(Marks, Width) ->
    {Placed, {_, Y}} = lists:mapfoldl(
        fun({_, _, Name} = Mark, {X0, Y0}) ->
            Next = ?MARK + ceil(?LETTER * string:length(Name)) + 2 * ?GAP,
            {X, Y} = case X0 > ?GAP andalso X0 + Next > Width of
                         true -> {?GAP, Y0 + ?LINE_HEIGHT};
                         false -> {X0, Y0}
                     end,
            {mark(Mark, X, Y), {X + Next, Y}}
        end, {?GAP, ?GAP}, Marks),
    {Placed, Y + ?LINE_HEIGHT + ?GAP}.

mark({Class, Shape, Name}, X, Y) ->
    [?E(svg, [{x, X}, {y, Y}, {width, 24}, {height, 12}], weft_report_svg:marker(Class, Shape)),
     ?E(text, [{x, X + ?MARK}, {y, Y + 10}], ?T(Name)), "\n"].
