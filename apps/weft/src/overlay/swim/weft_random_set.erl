%% SPDX-License-Identifier: Apache-2.0
%% @doc A set that gives random elements in logarithmic time: pure data.
%%
%% Elements are numbered 1..size without gaps; when one is deleted, the last one takes its number.
%% So a random number is a random element, and drawing without replacement is a shuffle that stops
%% early.
-module(weft_random_set).

-export([new/0, add/2, delete/2, is_member/2, size/1, to_list/1, choose/4]).
-export_type([set/1]).

-record(set, {nth = #{} :: #{pos_integer() => term()},
              number = #{} :: #{term() => pos_integer()}}).

-opaque set(Element) :: #set{nth :: #{pos_integer() => Element},
                             number :: #{Element => pos_integer()}}.

-spec new() -> set(_).
new() ->
    #set{}.

-spec add(Element, set(Element)) -> set(Element).
add(Element, #set{number = Number} = Set) when is_map_key(Element, Number) ->
    Set;
add(Element, #set{nth = Nth, number = Number}) ->
    Last = map_size(Nth) + 1,
    #set{nth = Nth#{Last => Element}, number = Number#{Element => Last}}.

-spec delete(Element, set(Element)) -> set(Element).
delete(Element, #set{nth = Nth0, number = Number0} = Set) ->
    case maps:take(Element, Number0) of
        {Place, Number} ->
            case maps:take(map_size(Nth0), Nth0) of
                {Element, Nth} -> #set{nth = Nth, number = Number};
                {Moved, Nth} -> #set{nth = Nth#{Place := Moved},
                                     number = Number#{Moved := Place}}
            end;
        error ->
            Set
    end.

-spec is_member(Element, set(Element)) -> boolean().
is_member(Element, #set{number = Number}) ->
    is_map_key(Element, Number).

-spec size(set(_)) -> non_neg_integer().
size(#set{number = Number}) ->
    map_size(Number).

%% @doc All elements, in term order.
-spec to_list(set(Element)) -> [Element].
to_list(#set{number = Number}) ->
    lists:sort(maps:keys(Number)).

%% @doc Up to Count different elements that Accept wants, each choice of them equally likely. It
%% takes as many draws as it needs, at most the size of the set.
-spec choose(Count :: non_neg_integer(), Accept :: fun((Element) -> boolean()), set(Element),
             rand:state()) -> {[Element], rand:state()}.
choose(Count, Accept, #set{nth = Nth}, Rand) ->
    choose(Count, Accept, map_size(Nth), Nth, Rand, []).

choose(Count, _Accept, Left, _Nth, Rand, Chosen) when Count =:= 0; Left =:= 0 ->
    {Chosen, Rand};
choose(Count, Accept, Left, Nth, Rand0, Chosen) ->
    {Draw, Rand} = rand:uniform_s(Left, Rand0),
    #{Draw := Element, Left := Last} = Nth,
    Rest = Nth#{Draw := Last},
    case Accept(Element) of
        true -> choose(Count - 1, Accept, Left - 1, Rest, Rand, [Element | Chosen]);
        false -> choose(Count, Accept, Left - 1, Rest, Rand, Chosen)
    end.
