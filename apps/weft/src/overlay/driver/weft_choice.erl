%% SPDX-License-Identifier: Apache-2.0
%% @doc Random choices for the cores: elements of a list, and numbers around one. The random state
%% is an argument and part of the result. Not here: where the random state comes from
%% (`weft_core:seed/3').
-module(weft_choice).

-export([one/2, some/3, around/2]).

%% @doc One element, each with the same chance.
-spec one([Element], rand:state()) -> {{ok, Element} | none, rand:state()}.
one([], Rand) ->
    {none, Rand};
one(List, Rand0) ->
    {N, Rand} = rand:uniform_s(length(List), Rand0),
    {{ok, lists:nth(N, List)}, Rand}.

%% @doc Up to Count different elements, in random order.
-spec some(Count :: integer(), [Element], rand:state()) -> {[Element], rand:state()}.
some(Count, List, Rand0) when Count > 0 ->
    case one(List, Rand0) of
        {none, Rand} -> {[], Rand};
        {{ok, Element}, Rand1} ->
            {More, Rand} = some(Count - 1, lists:delete(Element, List), Rand1),
            {[Element | More], Rand}
    end;
some(_NoneLeft, _List, Rand) ->
    {[], Rand}.

%% @doc A whole number from 3/4 to 5/4 of Number, for intervals: nodes must not act in step.
-spec around(Number :: non_neg_integer(), rand:state()) ->
          {non_neg_integer(), rand:state()}.
around(Number, Rand0) ->
    {Share, Rand} = rand:uniform_s(Rand0),
    {round(Number * (0.75 + Share / 2)), Rand}.
