%% SPDX-License-Identifier: Apache-2.0
%% @doc The straight line that is nearest to some points, for tests.
-module(weft_report_line).

-export([fit/1]).

%% @doc Least squares: the slope, the height at 0, and how much of the variance the line explains
%% (R², 1 if all points are on it).
-spec fit([{number(), number()}, ...]) -> {Slope :: float(), Height :: float(), R2 :: float()}.
fit(Points) ->
    Count = length(Points),
    MeanX = lists:sum([X || {X, _} <- Points]) / Count,
    MeanY = lists:sum([Y || {_, Y} <- Points]) / Count,
    Sxx = lists:sum([(X - MeanX) * (X - MeanX) || {X, _} <- Points]),
    Sxy = lists:sum([(X - MeanX) * (Y - MeanY) || {X, Y} <- Points]),
    Syy = lists:sum([(Y - MeanY) * (Y - MeanY) || {_, Y} <- Points]),
    Slope = Sxy / Sxx,
    {Slope, MeanY - Slope * MeanX, Sxy * Sxy / (Sxx * Syy)}.
