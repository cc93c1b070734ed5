%% SPDX-License-Identifier: Apache-2.0
%% @doc How far the clock of another node is ahead of the one here, from questions and answers: the
%% other clock is read some time between the question and its answer, so half of the shortest round
%% trip is as wrong as it can be. Pure.
%%
%% A clock that runs faster than another one by 20 millionths is 1 ms ahead after 50 s. This is not
%% corrected; recordings are short.
-module(weft_profile_clock).

-export([estimate/1, here/2, there/2]).
-export_type([estimate/0]).

%% In nanoseconds. ahead: to be subtracted from times of the other node.
-type estimate() :: #{ahead := integer(), error := non_neg_integer()}.

%% @doc From {asked, the other clock, answered}, each in nanoseconds; asked and answered by the
%% clock here.
-spec estimate([{integer(), integer(), integer()}, ...]) -> estimate().
estimate(Asked) ->
    {RoundTrip, From, There} =
        lists:min([{To - From, From, There} || {From, There, To} <- Asked]),
    Half = (RoundTrip + 1) div 2,
    #{ahead => There - From - Half, error => Half}.

%% @doc A time of the other node on the clock here.
-spec here(integer(), estimate()) -> integer().
here(There, #{ahead := Ahead}) -> There - Ahead.

%% @doc A time of the clock here on the other node.
-spec there(integer(), estimate()) -> integer().
there(Here, #{ahead := Ahead}) -> Here + Ahead.
