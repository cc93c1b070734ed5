%% SPDX-License-Identifier: Apache-2.0
%% @doc Workload `city' (after the City example of Sim-Diasca, in small): waste that homes and
%% industry make, trucks that carry it over a grid of roads to incinerators and landfills, and the
%% weather. A tick is 5 seconds.
%%
%% The city is generated from the option `city_seed' and one of the scales below, the counts of
%% which are those of Sim-Diasca (`small' has an eighth of them). With `districts' what is near each
%% other is on one node, so that most messages stay on a node; the result is the same.
-module(weft_diasca_city).
-behaviour(weft_diasca_workload).

-export([about/0, actors/1]).

-define(SCALES,
        #{tiny => #{width => 5, height => 3, homes => 5, industry => 4, incinerators => 1,
                    landfills => 2, trucks => 5},
          small => #{width => 25, height => 20, homes => 450, industry => 130, incinerators => 18,
                     landfills => 14, trucks => 180},
          medium => #{width => 50, height => 39, homes => 1700, industry => 430,
                      incinerators => 124, landfills => 59, trucks => 1007}}).
-define(ROUND, 6).
-define(DISTRICT, 5).

-record(city, {counts, random, steps, districts, next = 1, actors = [], junctions = #{}}).

%% @private
about() ->
    #{text => "a city: waste, trucks on roads, incinerators, landfills, weather",
      %% One hour.
      ticks => 720,
      options => #{scale => tiny, city_seed => 1, weather_steps => 20, districts => false}}.

%% @private
actors(#{scale := Scale, city_seed := Seed, weather_steps := Steps, districts := Districts}) ->
    case ?SCALES of
        #{Scale := Counts} when is_integer(Steps), Steps >= 0, is_boolean(Districts) ->
            City = #city{counts = Counts, random = weft_diasca_random:new({city, Seed}, 0),
                         steps = Steps, districts = Districts},
            #city{actors = Actors} = trucks(facilities(sources(roads(junctions(weather(City)))))),
            [Spec || {_, Spec} <- lists:sort(lists:append(Actors))];
        #{} ->
            {error, io_lib:format("scale is one of ~0p, weather_steps a number, districts true or "
                                  "false", [lists:sort(maps:keys(?SCALES))])}
    end.

%% --- what it is made of -----------------------------------------------------------------------

grid(#city{counts = #{width := Width, height := Height}}) ->
    [{X, Y} || Y <- lists:seq(1, Height), X <- lists:seq(1, Width)].

%% So many actors: what the function makes of a number, an element and chance.
add(Elements, Make, #city{next = Next, random = Random0, actors = Actors} = City) ->
    Numbered = lists:zip(lists:seq(Next, Next + length(Elements) - 1), Elements),
    {New, Random} = lists:mapfoldl(fun({Id, Element}, R0) ->
                                           {Spec, R} = Make(Element, R0),
                                           {{Id, Spec}, R}
                                   end, Random0, Numbered),
    {Numbered, City#city{next = Next + length(Elements), random = Random, actors = [New | Actors]}}.

spec(Module, Arguments, {X, Y}, #city{districts = Districts}) ->
    {Module, Arguments, maps:from_list([{place, {X div ?DISTRICT, Y div ?DISTRICT}}
                                        || Districts])}.

%% A cell of the weather for each fourth junction.
weather(#city{next = Next, steps = Steps} = City) ->
    Cells = [At || {X, Y} = At <- grid(City), X rem 2 =:= 1, Y rem 2 =:= 1],
    Ids = maps:from_list(lists:zip(Cells, lists:seq(Next, Next + length(Cells) - 1))),
    {_, All} = add(Cells, fun({X, Y} = At, Random) ->
                                  Around = [{X - 2, Y}, {X + 2, Y}, {X, Y - 2}, {X, Y + 2}],
                                  Neighbours = [Id || There <- Around, #{There := Id} <- [Ids]],
                                  {spec(weft_diasca_city_weather,
                                        #{neighbours => Neighbours, period => 60, steps => Steps},
                                        At, City), Random}
                          end, City),
    All.

%% They name the roads, which come after them in the order of `roads_of/1'.
junctions(#city{next = Next} = City) ->
    Grid = grid(City),
    First = Next + length(Grid),
    Roads = roads_of(City),
    Numbered = lists:zip(Roads, lists:seq(First, First + length(Roads) - 1)),
    Leaving = lists:foldl(fun({{From, Direction, _}, Road}, All) ->
                                  All#{From => (maps:get(From, All, #{}))#{Direction => Road}}
                          end, #{}, Numbered),
    {Made, All} = add(Grid, fun(At, Random) ->
                                    {spec(weft_diasca_city_junction,
                                          {At, maps:get(At, Leaving, #{})}, At, City), Random}
                            end, City),
    All#city{junctions = maps:from_list([{At, Id} || {Id, At} <- Made])}.

roads_of(#city{counts = #{width := Width, height := Height}} = City) ->
    [{At, Direction, {X + Dx, Y + Dy}}
     || {X, Y} = At <- grid(City),
        {Direction, Dx, Dy} <- [{east, 1, 0}, {north, 0, -1}, {south, 0, 1}, {west, -1, 0}],
        X + Dx >= 1, X + Dx =< Width, Y + Dy >= 1, Y + Dy =< Height].

%% From 100 to 500 metres at 10 metres a second.
roads(#city{junctions = Junctions} = City) ->
    {_, All} = add(roads_of(City),
                   fun({From, _, To}, Random0) ->
                           {Ticks, Random} = between(2, 10, Random0),
                           {spec(weft_diasca_city_road,
                                 #{to => {map_get(To, Junctions), To}, ticks => Ticks,
                                   room => 5 * Ticks}, From, City), Random}
                   end, City),
    All.

sources(#city{counts = #{homes := Homes, industry := Industry}} = City0) ->
    Kinds = lists:duplicate(Homes, #{mean => 40, deviation => 5, period => 360, room => 1000})
        ++ lists:duplicate(Industry, #{mean => 300, deviation => 40, period => 180, room => 10000}),
    {Sites, City} = sites(Kinds, City0),
    {_, All} = add(Sites, fun({Kind, At}, Random0) ->
                                  {First, Random} = between(1, map_get(period, Kind), Random0),
                                  {spec(weft_diasca_city_source, Kind#{first => First}, At, City),
                                   Random}
                          end, City),
    remember(sources, Sites, City#city.next, All).

facilities(#city{counts = #{incinerators := Incinerators, landfills := Landfills}} = City0) ->
    Kinds = lists:duplicate(Incinerators, #{room => 8000, rate => 200, period => 60})
        ++ lists:duplicate(Landfills, #{room => 500000}),
    {Sites, City} = sites(Kinds, City0),
    {_, All} = add(Sites, fun({Kind, At}, Random) ->
                                  {spec(weft_diasca_city_facility, Kind, At, City), Random}
                          end, City),
    remember(facilities, Sites, City#city.next, All).

%% Each knows some sources and some facilities that are near.
trucks(#city{counts = #{trucks := Count, sources := Sources, facilities := Facilities},
             junctions = Junctions} = City0) ->
    {Sites, City} = sites(lists:duplicate(Count, truck), City0),
    {_, All} = add(Sites, fun({truck, At}, Random0) ->
                                  {Some, Random1} = some(?ROUND, At, Sources, Random0),
                                  {Where, Random2} = some(3, At, Facilities, Random1),
                                  {First, Random} = between(1, 120, Random2),
                                  {spec(weft_diasca_city_truck,
                                        #{at => {map_get(At, Junctions), At}, sources => Some,
                                          facilities => Where, room => 2000, first => First},
                                        At, City), Random}
                          end, City),
    All.

%% --- chance -----------------------------------------------------------------------------------

between(Least, Most, Random0) ->
    {Number, Random} = weft_diasca_random:uniform(Most - Least + 1, Random0),
    {Least + Number - 1, Random}.

%% Each kind at a junction of chance.
sites(Kinds, #city{counts = #{width := Width, height := Height}, random = Random0} = City) ->
    {Sites, Random} = lists:mapfoldl(fun(Kind, R0) ->
                                             {X, R1} = between(1, Width, R0),
                                             {Y, R} = between(1, Height, R1),
                                             {{Kind, {X, Y}}, R}
                                     end, Random0, Kinds),
    {Sites, City#city{random = Random}}.

%% Where the actors from this number on are, for the trucks.
remember(What, Sites, First, #city{counts = Counts, junctions = Junctions} = City) ->
    Places = [{Id, map_get(At, Junctions), At}
              || {Id, {_, At}} <- lists:zip(lists:seq(First, First + length(Sites) - 1), Sites)],
    City#city{counts = Counts#{What => Places}}.

%% Of the nearest, a half.
some(Count, {X, Y}, Places, Random0) ->
    Near = lists:sort([{abs(X - PlaceX) + abs(Y - PlaceY), Place}
                       || {_, _, {PlaceX, PlaceY}} = Place <- Places]),
    {Shuffled, Random} = weft_diasca_random:shuffle(lists:sublist(Near, 2 * Count), Random0),
    {[Place || {_, Place} <- lists:sublist(Shuffled, Count)], Random}.
