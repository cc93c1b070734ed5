%% SPDX-License-Identifier: Apache-2.0
%% @doc Line charts as SVG: points with whiskers from the smallest to the largest value, on linear
%% or logarithmic axes.
%%
%% Colours and fonts come from the style sheet of the page: a series has the classes `series' and
%% the one given. Series also differ in the shape of their points, for readers who do not see the
%% colours. Each point tells its value when pointed at; the whole chart has a title and a
%% description.
-module(weft_report_svg).

-export([chart/1, marker/2, size/0]).
-export_type([chart/0, series/0, point/0]).

-type point() :: {X :: number(), Y :: number(), Low :: number(), High :: number(),
                  Tip :: unicode:chardata()}.
-type series() :: #{name := unicode:chardata(), class := unicode:chardata(), shape := 0..5,
                    points := [point()]}.
%% x: categories have the positions 1, 2, ..., and points on them are joined by a line if they are
%% quantities, whose names begin with a number; y: `reference' draws a line at 1.
-type chart() :: #{title := unicode:chardata(), description := unicode:chardata(),
                   x_label := unicode:chardata(), y_label := unicode:chardata(),
                   x := {categories, [unicode:chardata()]} | linear | log, y := linear | log,
                   %% Names of the places on a logarithmic axis, if these are not the numbers.
                   x_text => fun((number()) -> unicode:chardata()),
                   y_text := fun((number()) -> unicode:chardata()),
                   series := [series()], reference => number()}.

-define(WIDTH, 380).
-define(HEIGHT, 250).
-define(LEFT, 62).
-define(RIGHT, 10).
-define(TOP, 26).
-define(BOTTOM, 40).
%% The width of a letter of a label.
-define(LETTER, 5.8).
%% Series are moved apart by so much, as points on categories would hide each other.
-define(APART, 5).

%% @doc The width and the height of a chart.
-spec size() -> {pos_integer(), pos_integer()}.
size() -> {?WIDTH, ?HEIGHT}.

%% @doc The chart. At least one series has a point.
-spec chart(chart()) -> weft_report_html:html().
chart(#{title := Title, description := Description, series := Series} = Chart) ->
    X = x_axis(Chart),
    Y = y_axis(Chart),
    e(svg, [{viewBox, io_lib:format("0 0 ~b ~b", [?WIDTH, ?HEIGHT])}, {role, "img"},
            {class, "chart"}, {'aria-label', Title}],
      [e(title, [], t(Title)), e(desc, [], t(Description)),
       e(text, [{x, 4}, {y, 14}, {class, "heading"}], t(Title)),
       y_grid(Y, Chart), x_grid(X, Chart), reference(Y, Chart),
       [draw(One, Position, Chart, X, Y)
        || {Position, One} <- lists:zip(lists:seq(0, length(Series) - 1), Series)]]).

e(Name, Attributes, Content) -> weft_report_html:tag(Name, Attributes, Content).
e(Name, Attributes) -> weft_report_html:tag(Name, Attributes).
t(Text) -> weft_report_html:text(Text).

%% ---- axes: {From, To, Ticks, Scale} ----

x_axis(#{x := {categories, Names}}) ->
    Count = length(Names),
    #{from => 0.5, to => Count + 0.5, scale => linear,
      ticks => lists:zip(lists:seq(1, Count), Names)};
x_axis(#{x := linear, series := Series}) ->
    Highest = lists:max([1 | [X || #{points := Points} <- Series, {X, _, _, _, _} <- Points]]),
    Ticks = linear_ticks(0, Highest),
    #{from => 0, to => lists:max([Highest | Ticks]), scale => linear,
      ticks => [{Tick, plain(Tick)} || Tick <- Ticks]};
x_axis(#{x := log, series := Series} = Chart) ->
    Values = [X || #{points := Points} <- Series, {X, _, _, _, _} <- Points],
    {First, Last} = {floor(math:log10(lists:min(Values))), ceil(math:log10(lists:max(Values)))},
    Ticks = [math:pow(10, Power) || Power <- lists:seq(First, max(First + 1, Last))],
    {Text, Beyond} = case Chart of
                         #{x_text := Long} -> {Long, 2}; % the last text has room beside its tick
                         _ -> {fun plain/1, 1}
                     end,
    #{from => hd(Ticks), to => Beyond * lists:last(Ticks), scale => log,
      ticks => [{Tick, Text(Tick)} || Tick <- Ticks]}.

plain(Value) when Value == round(Value) -> integer_to_list(round(Value));
plain(Value) -> io_lib:format("~.1f", [float(Value)]).

y_axis(#{y := linear, y_text := Text} = Chart) ->
    Highest = lists:max(y_values(Chart)),
    Ticks = linear_ticks(0, Highest),
    #{from => 0, to => lists:max([Highest | Ticks]), scale => linear,
      ticks => [{Tick, Text(Tick)} || Tick <- Ticks]};
y_axis(#{y := log, y_text := Text} = Chart) ->
    Positive = [Value || Value <- y_values(Chart), Value > 0],
    {Low, High} = case Positive of
                      [] -> {1, 10};
                      _ -> {lists:min(Positive), lists:max(Positive)}
                  end,
    Ticks = log_ticks(Low, High),
    #{from => hd(Ticks), to => lists:last(Ticks), scale => log,
      ticks => [{Tick, Text(Tick)} || Tick <- Ticks]}.

y_values(#{series := Series} = Chart) ->
    [maps:get(reference, Chart, 0)]
        ++ [Value || #{points := Points} <- Series, {_, Y, Low, High, _} <- Points,
                     Value <- [Y, Low, High]].

%% Steps of 1, 2 or 5 times a power of ten, about five of them.
linear_ticks(From, To) when To =< From ->
    [From, From + 1];
linear_ticks(From, To) ->
    Rough = (To - From) / 4,
    Power = math:pow(10, math:floor(math:log10(Rough))),
    [Step | _] = [Power * F || F <- [1, 2, 5, 10], Power * F >= Rough * 0.999],
    [From + N * Step || N <- lists:seq(0, ceil((To - From) / Step - 1.0e-9))].

%% Powers of ten that enclose all; with 2 and 5 between them where there are few.
log_ticks(Low, High) ->
    First = floor(math:log10(Low)),
    Last = max(First + 1, ceil(math:log10(High))),
    Factors = case High / Low of
                  Narrow when Narrow < 80 -> [1, 2, 5];
                  _ -> [1]
              end,
    All = [Factor * math:pow(10, Power) || Power <- lists:seq(First, Last), Factor <- Factors],
    Below = [Tick || Tick <- All, Tick =< Low * 1.000001],
    {Before, After} = lists:splitwith(fun(Tick) -> Tick < High * 0.999999 end,
                                      [Tick || Tick <- All, Tick > Low * 1.000001]),
    [lists:last([math:pow(10, First) | Below])] ++ Before ++ lists:sublist(After, 1).

x_at(X, #{from := From, to := To} = Axis) ->
    Part = case Axis of
               #{scale := linear} -> (X - From) / (To - From);
               #{scale := log} -> math:log10(X / From) / math:log10(To / From)
           end,
    ?LEFT + Part * (?WIDTH - ?LEFT - ?RIGHT).

y_at(Y, #{from := From, to := To, scale := linear}) ->
    ?HEIGHT - ?BOTTOM - (max(From, Y) - From) / (To - From) * (?HEIGHT - ?TOP - ?BOTTOM);
y_at(Y, #{from := From, to := To, scale := log}) ->
    Part = (math:log10(max(From, Y)) - math:log10(From)) / (math:log10(To) - math:log10(From)),
    ?HEIGHT - ?BOTTOM - Part * (?HEIGHT - ?TOP - ?BOTTOM).

y_grid(#{ticks := Ticks, scale := Scale} = Axis, #{y_label := Label}) ->
    [[line(?LEFT, y_at(Tick, Axis), ?WIDTH - ?RIGHT, y_at(Tick, Axis), "grid"),
      e(text, [{x, ?LEFT - 6}, {y, y_at(Tick, Axis) + 3.5}, {class, "tick y"}], t(Name))]
     || {Tick, Name} <- Ticks]
        ++ [e(text, [{x, ?WIDTH - ?RIGHT}, {y, 14}, {class, "unit"}], t(Label))]
        ++ [e(text, [{x, ?LEFT - 6}, {y, ?HEIGHT - 6}, {class, "tick y"}], t("log scale"))
            || Scale =:= log].

x_grid(#{ticks := Ticks, scale := Scale} = Axis, #{x_label := Label}) ->
    Bottom = ?HEIGHT - ?BOTTOM,
    [[line(x_at(Tick, Axis), Bottom, x_at(Tick, Axis), Bottom + 4, "axis"),
      e(text, [{x, x_at(Tick, Axis)}, {y, Bottom + Below}, {class, "tick x"}], t(Name))]
     || {{Tick, Name}, Below} <- lists:zip(Ticks, below(Ticks))]
        ++ [line(?LEFT, Bottom, ?WIDTH - ?RIGHT, Bottom, "axis"),
            e(text, [{x, (?LEFT + ?WIDTH - ?RIGHT) / 2}, {y, ?HEIGHT - 6}, {class, "label"}],
              t(Label))]
        ++ [e(text, [{x, ?WIDTH - ?RIGHT}, {y, ?HEIGHT - 6}, {class, "unit"}], t("log scale"))
            || Scale =:= log].

%% Names that are too long to stand beside each other take turns in two lines.
below(Ticks) ->
    Room = (?WIDTH - ?LEFT - ?RIGHT) / max(1, length(Ticks)),
    Longest = lists:max([0 | [string:length(Name) || {_, Name} <- Ticks]]),
    case Longest * ?LETTER > Room of
        true -> [case N rem 2 of 1 -> 13; 0 -> 23 end || N <- lists:seq(1, length(Ticks))];
        false -> [16 || _ <- Ticks]
    end.

reference(Axis, #{reference := At}) ->
    line(?LEFT, y_at(At, Axis), ?WIDTH - ?RIGHT, y_at(At, Axis), "reference");
reference(_Axis, _Chart) ->
    [].

line(X1, Y1, X2, Y2, Class) ->
    e(line, [{x1, X1}, {y1, Y1}, {x2, X2}, {y2, Y2}, {class, Class}]).

%% ---- series ----

draw(#{class := Class, shape := Shape, points := Points, name := Name}, Position,
     #{x := Over, series := Series}, X, Y) ->
    Shift = shift(Position, length(Series), X),
    Placed = [{x_at(At, X) + Shift, y_at(Value, Y), y_at(Low, Y), y_at(High, Y), Tip}
              || {At, Value, Low, High, Tip} <- Points],
    Path = lists:join(" ", [io_lib:format("~.1f,~.1f", [float(Px), float(Py)])
                            || {Px, Py, _, _, _} <- Placed]),
    e(g, [{class, ["series ", Class]}],
      [[e(polyline, [{points, Path}]) || is_ordered(Over)]
       | [e(g, [], [e(title, [], t([Name, ": ", Tip])),
                    [line(Px, Pl, Px, Ph, "whisker") || abs(Pl - Ph) > 1],
                    shape(Shape, Px, Py)]) || {Px, Py, Pl, Ph, Tip} <- Placed]]).

%% A line between things that have no order would tell of a course that there is not.
is_ordered(Scale) when Scale =:= linear; Scale =:= log -> true;
is_ordered({categories, Names}) ->
    lists:all(fun(Name) -> re:run(Name, "^[0-9]", [unicode]) =/= nomatch end, Names).

shift(Position, Count, #{ticks := [{1, _} | _], from := 0.5}) ->
    (Position - (Count - 1) / 2) * ?APART;
shift(_Position, _Count, _Time) ->
    0.

%% @doc The mark of a series for a legend.
-spec marker(Class :: unicode:chardata(), Shape :: 0..5) -> weft_report_html:html().
marker(Class, Shape) ->
    e(svg, [{viewBox, "0 0 24 12"}, {width, 24}, {height, 12}, {'aria-hidden', "true"}],
      e(g, [{class, ["series ", Class]}],
        [e(polyline, [{points, "0,6 24,6"}]), shape(Shape, 12, 6)])).

shape(0, X, Y) -> e(circle, [{cx, X}, {cy, Y}, {r, 3.2}]);
shape(1, X, Y) -> e(rect, [{x, X - 2.8}, {y, Y - 2.8}, {width, 5.6}, {height, 5.6}]);
shape(2, X, Y) -> polygon([{X, Y - 3.8}, {X + 3.6, Y + 2.8}, {X - 3.6, Y + 2.8}]);
shape(3, X, Y) -> polygon([{X, Y - 4}, {X + 4, Y}, {X, Y + 4}, {X - 4, Y}]);
shape(4, X, Y) -> polygon([{X, Y + 3.8}, {X + 3.6, Y - 2.8}, {X - 3.6, Y - 2.8}]);
%% Lies across its whisker.
shape(5, X, Y) -> e(rect, [{x, X - 4.6}, {y, Y - 1.5}, {width, 9.2}, {height, 3}]).

polygon(Corners) ->
    e(polygon, [{points, lists:join(" ", [io_lib:format("~.1f,~.1f", [float(X), float(Y)])
                                          || {X, Y} <- Corners])}]).
