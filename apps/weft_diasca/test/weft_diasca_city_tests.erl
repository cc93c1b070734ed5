%% SPDX-License-Identifier: Apache-2.0
%% @doc The city: a street worked out by hand, and what holds in any city.
-module(weft_diasca_city_tests).

-include_lib("eunit/include/eunit.hrl").

-export([about/0, actors/1]).

about() -> #{text => "a city that a test has built", ticks => 60, options => #{actors => []}}.

actors(#{actors := Actors}) ->
    [{list_to_atom(lists:concat([weft_diasca_city_, Kind])), Arguments, #{}}
     || {Kind, Arguments} <- Actors].

%% A street from A to B. At A there are a truck for 100 kg and a source with as much, at B an
%% incinerator with a tank for 60 kg, which burns 25 kg each 10 ticks, and a landfill.
street(Trucks) ->
    [{junction, {{1, 1}, #{east => 3}}}, {junction, {{2, 1}, #{west => 4}}},
     {road, #{to => {2, {2, 1}}, ticks => 4, room => 1}},
     {road, #{to => {1, {1, 1}}, ticks => 4, room => 1}},
     {source, #{mean => 100 * Trucks, deviation => 0, period => 1000, first => 1, room => 1000}},
     {facility, #{room => 60, rate => 25, period => 10}},
     {facility, #{room => 1000}}
     | lists:duplicate(Trucks, {truck, #{at => {1, {1, 1}}, sources => [{5, 1, {1, 1}}],
                                         facilities => [{6, 2, {2, 1}}, {7, 2, {2, 1}}],
                                         room => 100, first => 5}})].

%% By hand, tick by tick (the number of diascas and of messages in brackets):
%%    0  all begin [1, 0]                     1  the source has 100 kg [1, 0]
%%    5  the truck loads 100 kg, until 17 [3, 2]
%%   17  it asks for the way to B, enters the road, and is there at 21 [5, 4]
%%   21  it leaves the road; of its 100 kg the incinerator takes 60, until 33 [3, 3]
%%   31  25 kg burn, 35 are left [1, 0]
%%   33  it has 40 kg, and room: to the source, where it is at 37 [5, 4]
%%   37  it leaves the road; the source has nothing, until 49 [3, 3]
%%   41  25 kg burn, 10 are left [1, 0]
%%   49  it has been at all sources: to the next facility, the landfill, at 53 [5, 4]
%%   51  10 kg burn, the fire is out [1, 0]
%%   53  it leaves the road; the landfill takes 40 kg, until 65, after the end [3, 3]
a_street_is_what_was_worked_out_by_hand_test() ->
    {ok, #{probes := Probes} = Result} = run(street(1)),
    ?assertMatch(#{diascas := 32, messages := 23, ticks := 12, tick := 53, dropped := 0,
                   actors := 8}, Result),
    ?assertEqual(#{unloads => [{{21, 2}, 8, 60}, {{53, 2}, 8, 40}],
                   burns => [{{31, 0}, 6, 25}, {{41, 0}, 6, 25}, {{51, 0}, 6, 10}],
                   on_road => [{{53, 3}, 3, {0, 2, 0}}, {{53, 3}, 4, {0, 1, 0}}],
                   in_sources => [{{53, 3}, 5, 0}], produced => [{{53, 3}, 5, 100}],
                   lost => [{{53, 3}, 5, 0}],
                   in_tanks => [{{53, 3}, 6, 0}], burnt => [{{53, 3}, 6, 60}],
                   in_landfills => [{{53, 3}, 7, 40}],
                   in_trucks => [{{53, 3}, 8, 0}], trips => [{{53, 3}, 8, 2}]}, Probes).

%% The road has room for one. At tick 17 one of three trucks enters, until 21; the other two are
%% refused and ask again at 23, when one enters, and the third one does at 29.
a_full_road_is_entered_later_test() ->
    {ok, #{probes := #{on_road := [{_, 3, OnRoad} | _]}}} =
        weft_diasca:run(?MODULE, #{options => #{actors => street(3)}, ticks => 30}),
    ?assertEqual({1, 2, 3}, OnRoad),
    {ok, #{probes := #{unloads := Unloads}}} =
        weft_diasca:run(?MODULE, #{options => #{actors => street(3)}, ticks => 900}),
    ?assertEqual(300, lists:sum([Kg || {_, _, Kg} <- Unloads])).

run(Actors) -> weft_diasca:run(?MODULE, #{options => #{actors => Actors}}).

waste_is_neither_lost_nor_made_test_() ->
    [{lists:concat(["city ", Seed]),
      fun() ->
          {ok, #{probes := Probes}} = weft_diasca:run(city, #{ticks => 3000, seed => Seed,
                                                              options => #{city_seed => Seed}}),
          Sum = fun(Name) -> lists:sum([Value || {_, _, Value} <- maps:get(Name, Probes)]) end,
          ?assertEqual(Sum(produced), Sum(in_sources) + Sum(in_trucks) + Sum(in_tanks)
                                      + Sum(burnt) + Sum(in_landfills)),
          ?assertEqual({Sum(burnt), Sum(unloads)},
                       {Sum(burns), Sum(in_tanks) + Sum(burnt) + Sum(in_landfills)}),
          ?assert(Sum(trips) > 10),
          [?assert(abs(X) < 30 andalso abs(Y) < 40 andalso Z > -10 andalso Z < 70)
           || {_, _, {X, Y, Z}} <- maps:get(weather, Probes)]
      end} || Seed <- [1, 2, 3]].

districts_change_where_actors_are_and_nothing_else_test() ->
    Run = fun(Districts) ->
                  {ok, #{hash := Hash}} =
                      weft_diasca:run(city, #{options => #{scale => small, districts => Districts},
                                              ticks => 100, probes => none}),
                  Hash
          end,
    ?assertEqual(Run(false), Run(true)).

scales_have_the_actors_of_their_counts_test_() ->
    {timeout, 60, fun scales_have_the_actors_of_their_counts/0}.

scales_have_the_actors_of_their_counts() ->
    #{options := Options} = weft_diasca_city:about(),
    Count = fun(Scale) ->
                    Kinds = [Module || {Module, _, _}
                                           <- weft_diasca_city:actors(Options#{scale := Scale})],
                    [length([M || M <- Kinds, M =:= Module])
                     || Module <- [weft_diasca_city_junction, weft_diasca_city_road,
                                   weft_diasca_city_source, weft_diasca_city_facility,
                                   weft_diasca_city_truck, weft_diasca_city_weather]]
            end,
    %% Roads: 2 x (4 x 3 + 5 x 2), and so on.
    ?assertEqual([15, 44, 9, 3, 5, 6], Count(tiny)),
    ?assertEqual([500, 1910, 580, 32, 180, 130], Count(small)),
    ?assertEqual([1950, 7622, 2130, 183, 1007, 500], Count(medium)),
    {error, Reason} = weft_diasca:run(city, #{options => #{scale => huge}}),
    ?assertMatch({match, _}, re:run(weft_diasca:format_error(Reason),
                                    "scale is one of \\[medium,small,tiny\\]")).
