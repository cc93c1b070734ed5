%% SPDX-License-Identifier: Apache-2.0
%% @doc One cell of the weather: a Lorenz system that its four neighbours pull at. Each `period'
%% ticks it is integrated over `steps' steps (Runge-Kutta, fourth order), and told to the
%% neighbours. This is what takes processor time in a city.
%%
%% Only sums and products of floats, in a fixed order: they are the same on all machines.
-module(weft_diasca_city_weather).
-behaviour(weft_diasca_actor).

-export([init/2, on_tick/2, on_message/4, terminate/2]).

-define(SIGMA, 10.0).
-define(RHO, 28.0).
-define(BETA, 2.6666666666666665).
-define(STEP, 0.01).
-define(PULL, 0.5).

init(#{neighbours := Neighbours, period := Period, steps := Steps},
     #{tick := Now, random := Random0}) ->
    {X, Random1} = weft_diasca_random:float(Random0),
    {Y, Random2} = weft_diasca_random:float(Random1),
    {Z, _} = weft_diasca_random:float(Random2),
    {#{neighbours => Neighbours, period => Period, steps => Steps,
       state => {X * 10.0, Y * 10.0, Z * 10.0 + 20.0}, heard => #{}},
     [{schedule, Now + Period}]}.

on_tick(#{state := Before, steps := Steps, heard := Heard, neighbours := Neighbours,
          period := Period} = Cell, #{tick := Now}) ->
    State = {X, _, _} = integrated(Steps, mean(Heard, Neighbours, element(1, Before)), Before),
    {Cell#{state := State},
     [{probe, weather, State}, {schedule, Now + Period}
      | [{send, Neighbour, {weather, X}} || Neighbour <- Neighbours]]}.

on_message(From, {weather, X}, #{heard := Heard} = Cell, _Context) ->
    {Cell#{heard := Heard#{From => X}}, []}.

terminate(#{state := State}, _Context) ->
    [{probe, weather_in_the_end, State}].

%% Who has not said anything yet is as this cell.
mean(_Heard, [], Own) -> Own;
mean(Heard, Neighbours, Own) ->
    lists:foldl(fun(Neighbour, Sum) -> Sum + maps:get(Neighbour, Heard, Own) end, 0.0, Neighbours)
        / length(Neighbours).

integrated(0, _Around, State) -> State;
integrated(Steps, Around, {X, Y, Z} = State) ->
    K1 = slope(Around, State),
    K2 = slope(Around, moved(State, K1, ?STEP / 2)),
    K3 = slope(Around, moved(State, K2, ?STEP / 2)),
    K4 = slope(Around, moved(State, K3, ?STEP)),
    Change = fun(N) ->
                     ?STEP / 6 * (element(N, K1) + 2 * element(N, K2) + 2 * element(N, K3)
                                  + element(N, K4))
             end,
    integrated(Steps - 1, Around, {X + Change(1), Y + Change(2), Z + Change(3)}).

slope(Around, {X, Y, Z}) ->
    {?SIGMA * (Y - X) + ?PULL * (Around - X), X * (?RHO - Z) - Y, X * Y - ?BETA * Z}.

moved({X, Y, Z}, {Dx, Dy, Dz}, Step) ->
    {X + Step * Dx, Y + Step * Dy, Z + Step * Dz}.
