%% SPDX-License-Identifier: Apache-2.0
%% @doc Charts of the results of a run: a metric over cells or other things, a line for each
%% variant, with its name, its mark and the units of the metric. Drawn by `weft_report_svg'; what is
%% worth a chart is up to `weft_report_plots' and to the figures of papers.
-module(weft_report_chart).

-export([over/6, lines/6, ratio/1, in_terms/2, said/3, said_level/4, new/5, variants/2,
         series/3, line/2, value/4, tip/2, legend/1, marks/1]).
-export_type([point_of/0, spread/0]).

%% The values of a variant at one of the things that a chart is over; without one there is a gap.
-type point_of() :: fun((Thing :: term(), Variant :: binary()) ->
                               [{Y :: number(), Low :: number(), High :: number(),
                                 Tip :: unicode:chardata()}]).
%% A median, and the ends of its whiskers.
-type spread() :: #{median := number(), low := number(), high := number(), _ => _}.

%% @doc A metric over cells, which are named by Of.
-spec over(fun((weft_report_record:cell()) -> integer() | iodata()), XLabel :: string(),
           [weft_report_record:cell()], Metric :: binary(), Title :: iodata(),
           weft_report_results:results()) -> weft_report_svg:chart().
over(Of, XLabel, Cells, Metric, Title, Results) ->
    Value = fun(Cell, Variant) -> value(Cell, Variant, Metric, Results) end,
    new(Title, XLabel, [in_words(Of(Cell)) || Cell <- Cells], Metric,
        series(Cells, Value, variants(Cells, Results))).

%% @doc All variants of some cells, in the usual order.
-spec variants([weft_report_record:cell()], weft_report_results:results()) -> [binary()].
variants(Cells, Results) ->
    weft_report_results:variant_order(
      lists:append([weft_report_results:variants(Cell, Results) || Cell <- Cells])).

in_words(Number) when is_integer(Number) -> integer_to_list(Number);
in_words(Text) -> Text.

%% @doc Several lines of one variant over a number of something, each with its name and its points:
%% such a number with what was measured there.
-spec lines(Title :: iodata(), XLabel :: string(), Scale :: log | linear, Metric :: binary(),
            YLabel :: string(), [{Name :: iodata(), [{number(), spread()}]}]) ->
          weft_report_svg:chart().
lines(Title, XLabel, Scale, Metric, YLabel, All) ->
    Lines = [Line || {_, [_ | _]} = Line <- All],
    Series = [#{name => Name, class => "s" ++ integer_to_list(Number), shape => Number rem 6,
                points => [{X, Median, Low, High, spread(Median, Low, High, Metric)}
                           || {X, #{median := Median, low := Low, high := High}} <- Points]}
              || {Number, {Name, Points}} <- lists:zip(lists:seq(1, length(Lines)), Lines)],
    (new(Title, XLabel, [], Metric, Series))#{x => linear, y => Scale, y_label => YLabel}.

%% @doc A ratio as a point of `lines'. Its whiskers are its interval, if it has one.
-spec ratio(weft_report_results:ratio()) -> spread().
ratio(#{median := Times, interval := none}) ->
    #{median => Times, low => Times, high => Times};
ratio(#{median := Times, interval := {Low, High}}) ->
    #{median => Times, low => Low, high => High}.

%% @doc Lines of numbers that are in terms of something and have no unit.
-spec in_terms(weft_report_svg:chart(), Of :: unicode:chardata()) -> weft_report_svg:chart().
in_terms(#{series := Series, title := Title} = Chart, Of) ->
    Chart#{y_text := fun(Times) -> weft_report_words:ratio(float(Times)) end,
           description := [Title, ", in terms of ", Of],
           series := [One#{points := [{X, Y, Low, High, times(Y, Low, High)}
                                      || {X, Y, Low, High, _} <- Points]}
                      || #{points := Points} = One <- Series]}.

times(Y, Y, Y) ->
    [weft_report_words:ratio(float(Y)), " times"];
times(Y, Low, High) ->
    [times(Y, Y, Y), " (", weft_report_words:interval({float(Low), float(High)}), ")"].

%% @doc With what a paper says in its text, beside what was measured. What its pictures show is not
%% read from them, and what is between two values is not said, so no line joins them. Each name has
%% a mark of its own.
-spec said(Name :: unicode:chardata(), [{X :: number(), Y :: number(), Tip :: string()}],
           weft_report_svg:chart()) -> weft_report_svg:chart().
said(Name, Points, #{series := Series} = Chart) ->
    Before = length([said || #{class := "said"} <- Series]),
    Said = #{name => Name, class => "said", shape => (3 + Before) rem 6,
             points => [{X, Y, Y, Y, Tip} || {X, Y, Tip} <- Points]},
    Chart#{series := Series ++ [Said || Series =/= []]}.

%% @doc The same of what is said without a place: it is beside each point of the chart.
-spec said_level(Name :: unicode:chardata(), Y :: number(), Tip :: string(),
                 weft_report_svg:chart()) -> weft_report_svg:chart().
said_level(Name, Y, Tip, #{series := Series} = Chart) ->
    Places = lists:usort([X || #{points := Points} <- Series, {X, _, _, _, _} <- Points]),
    said(Name, [{X, Y, Tip} || X <- Places], Chart).

%% @doc A chart of a metric over categories.
-spec new(Title :: iodata(), XLabel :: string(), Categories :: [iodata()], Metric :: binary(),
          [weft_report_svg:series()]) -> weft_report_svg:chart().
new(Title, XLabel, Categories, Metric, Series) ->
    Unit = weft_report_words:unit(Metric),
    #{title => Title, x_label => XLabel, x => {categories, Categories}, y => log,
      y_label => weft_report_words:metric(Metric), series => Series,
      y_text => fun(Value) -> weft_report_words:tick(Value, Unit) end,
      description => [weft_report_words:metric(Metric), " by ", XLabel, "; the table of all cells "
                      "has the numbers."]}.

%% @doc The points of each variant over some things.
-spec series([term()], point_of(), Variants :: [binary()]) -> [weft_report_svg:series()].
series(Things, Value, Variants) ->
    [line(Variant, Points)
     || Variant <- Variants,
        Points <- [[{X, Y, Low, High, Tip}
                    || {X, Thing} <- lists:zip(lists:seq(1, length(Things)), Things),
                       {Y, Low, High, Tip} <- Value(Thing, Variant)]],
        Points =/= []].

%% @doc The line of a variant.
-spec line(Variant :: binary(), [weft_report_svg:point()]) -> weft_report_svg:series().
line(Variant, Points) ->
    #{name => weft_report_words:variant(Variant), class => Variant, shape => shape(Variant),
      points => Points}.

%% @doc What was measured, as a point; what is not above zero has no place on a logarithmic axis.
-spec value(weft_report_record:cell(), Variant :: binary(), Metric :: binary(),
            weft_report_results:results()) ->
          [{number(), number(), number(), unicode:chardata()}].
value(Cell, Variant, Metric, Results) ->
    case weft_report_results:measured(Cell, Variant, Metric, Results) of
        {ok, #{median := Median, low := Low, high := High}} when Median > 0 ->
            [{Median, Low, High, spread(Median, Low, High, Metric)}];
        _ ->
            []
    end.

spread(Median, Low, High, Metric) ->
    [tip(Median, Metric), " (", tip(Low, Metric), " to ", tip(High, Metric), ")"].

%% @doc A value in words.
-spec tip(number(), Metric :: binary()) -> iodata().
tip(Value, Metric) ->
    weft_report_words:value(Value, weft_report_words:unit(Metric)).

%% @doc The marks of some charts, each once, in the usual order of variants.
-spec marks([weft_report_svg:chart()]) -> [{Class :: binary(), Shape :: 0..5, Name :: binary()}].
marks(Charts) ->
    All = [{unicode:characters_to_binary(Class), Shape, unicode:characters_to_binary(Name)}
           || #{series := Series} <- Charts, #{class := Class, shape := Shape, name := Name}
                                                  <- Series],
    Order = weft_report_results:variant_order([Class || {Class, _, _} <- All]),
    [Mark || Wanted <- Order, {Class, _, _} = Mark <- lists:usort(All), Class =:= Wanted].

%% @doc What the marks of some charts mean.
-spec legend([weft_report_svg:chart()]) -> weft_report_html:html().
legend(Charts) ->
    weft_report_html:tag(
      p, [{class, "legend"}],
      [weft_report_html:tag(span, [], [weft_report_svg:marker(Class, Shape), " ",
                                       weft_report_html:text(Name)])
       || {Class, Shape, Name} <- marks(Charts)]).

shape(<<"stock">>) -> 0;
shape(<<"stock_tls">>) -> 0;
shape(<<"weft_1">>) -> 1;
shape(<<"weft_tls_1">>) -> 1;
shape(<<"weft_4">>) -> 2;
shape(<<"weft_tls_4">>) -> 2;
shape(<<"weft_8">>) -> 4;
shape(<<"weft_gateway">>) -> 5;
shape(<<"stock_relay">>) -> 5;
shape(<<"stock_mesh">>) -> 1;
shape(<<"weft_mesh">>) -> 2;
shape(<<"weft_swim">>) -> 3;
shape(<<"weft_groups">>) -> 4;
shape(<<"weft_peers">>) -> 5;
shape(_Channel) -> 3.
