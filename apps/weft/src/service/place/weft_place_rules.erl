%% SPDX-License-Identifier: Apache-2.0
%% @doc Which of the nodes that answered are chosen, and in what order. Pure.
%%
%% Predicates, all of which have to hold (one about an attribute that a node does not have does
%% not):
%% <ul>
%% <li>`{Attribute, eq | ne | lt | le | gt | ge, Value}', `{Attribute, true | false | yes |
%% no}'</li>
%% <li>`{role, Role}': the list `roles' has it</li>
%% <li>`{zone, Path}': the zone begins with that path</li>
%% <li>`near', `far': no other candidate is at a lesser, or greater, distance</li>
%% </ul>
%% A node whose `roles' or `zone' is no list is as one without: what one node says of itself must
%% not end the choice of all others.
%%
%% Attributes that are found out for each choice: `distance' (0.0 to 1.0, `weft_distance') and
%% `rtt_us' (measured) from the node that chooses.
%% Order: `{Attribute, ascending | descending}', `near' and `far' (by distance). The first of these
%% that distinguishes two nodes decides, and after all of them their names. Nodes without the
%% attribute come last.
-module(weft_place_rules).

-export([attributes/1, check/1, choose/2]).
-export_type([predicate/0, order/0, candidate/0]).

-type operator() :: eq | ne | lt | le | gt | ge.
-type predicate() :: {Attribute :: term(), operator(), Value :: term()}
                   | {Attribute :: term(), true | false | yes | no}
                   | {role | zone, term()} | near | far.
-type order() :: {Attribute :: term(), ascending | descending} | near | far.
-type rules() :: #{where => [predicate()], order => [order()], atom() => term()}.
-type candidate() :: {node(), #{Attribute :: term() => Value :: term()}}.

-define(IS_OPERATOR(Op), (Op =:= eq orelse Op =:= ne orelse Op =:= lt orelse Op =:= le
                          orelse Op =:= gt orelse Op =:= ge)).

%% @doc The attributes that the nodes have to be asked for.
-spec attributes(rules()) -> [term()].
attributes(Rules) ->
    lists:usort([attribute(Rule) || Rule <- maps:get(where, Rules, [])
                                        ++ maps:get(order, Rules, [])]).

attribute({role, _}) -> roles;
attribute({distance, _, _}) -> zone;
attribute({distance, _}) -> zone;
attribute(NearOrFar) when NearOrFar =:= near; NearOrFar =:= far -> zone;
attribute({Attribute, _, _}) -> Attribute;
attribute({Attribute, _}) -> Attribute.

%% @doc Checks the form of the rules.
-spec check(rules()) -> ok | {error, {bad_predicate | bad_order, term()}}.
check(Rules) ->
    case {[P || P <- maps:get(where, Rules, []), not is_predicate(P)],
          [O || O <- maps:get(order, Rules, []), not is_order(O)]} of
        {[], []} -> ok;
        {[Predicate | _], _} -> {error, {bad_predicate, Predicate}};
        {[], [Order | _]} -> {error, {bad_order, Order}}
    end.

is_predicate({_Attribute, Operator, _Value}) -> ?IS_OPERATOR(Operator);
is_predicate({role, _}) -> true;
is_predicate({zone, Path}) -> is_path(Path);
is_predicate({_Attribute, Bool}) -> lists:member(Bool, [true, false, yes, no]);
is_predicate(Word) -> Word =:= near orelse Word =:= far.

is_path(Path) when length(Path) >= 0 -> true; % no improper list
is_path(_) -> false.

is_order({_Attribute, Direction}) -> Direction =:= ascending orelse Direction =:= descending;
is_order(Word) -> Word =:= near orelse Word =:= far.

%% @doc The nodes for which all predicates hold, best first.
-spec choose(rules(), [candidate()]) -> [node()].
choose(Rules, Candidates) ->
    Distances = [{Node, Distance} || {Node, #{distance := Distance}} <- Candidates],
    Where = [with_nodes(Predicate, Distances) || Predicate <- maps:get(where, Rules, [])],
    Chosen = [Candidate || Candidate <- Candidates,
                           lists:all(fun(Predicate) -> holds(Predicate, Candidate) end, Where)],
    Orders = maps:get(order, Rules, []),
    [Node || {_, Node} <- lists:sort([{[key(Order, Values) || Order <- Orders], Node}
                                      || {Node, Values} <- Chosen])].

%% `near' and `far' compare with all candidates, not only with those that fulfil other predicates.
with_nodes(near, Distances) -> {one_of, weft_distance:nearest(Distances)};
with_nodes(far, Distances) -> {one_of, weft_distance:farthest(Distances)};
with_nodes(Predicate, _Distances) -> Predicate.

holds({one_of, Nodes}, {Node, _}) -> lists:member(Node, Nodes);
holds({role, Role}, {_, Values}) -> lists:member(Role, list(roles, Values));
holds({zone, Path}, {_, Values}) -> lists:prefix(Path, list(zone, Values));
holds({Attribute, Operator, Value}, {_, Values}) ->
    case Values of
        #{Attribute := Actual} -> compare(Operator, Actual, Value);
        #{} -> false
    end;
holds({Attribute, Expected}, {_, Values}) ->
    case Values of
        #{Attribute := Actual} -> truth(Expected) =:= truth(Actual);
        #{} -> false
    end.

list(Attribute, Values) ->
    case Values of
        #{Attribute := List} when length(List) >= 0 -> List;
        #{} -> []
    end.

compare(eq, A, B) -> A == B;
compare(ne, A, B) -> A /= B;
compare(lt, A, B) -> A < B;
compare(le, A, B) -> A =< B;
compare(gt, A, B) -> A > B;
compare(ge, A, B) -> A >= B.

truth(yes) -> true;
truth(no) -> false;
truth(Other) -> Other.

%% Sorted ascending; `z' is after all numbers.
key(near, Values) -> key({distance, ascending}, Values);
key(far, Values) -> key({distance, descending}, Values);
key({Attribute, Direction}, Values) ->
    case Values of
        #{Attribute := Value} when Direction =:= ascending -> {known, Value};
        #{Attribute := Value} when is_number(Value) -> {known, -Value};
        #{Attribute := _} -> {known, z};
        #{} -> {unknown, z}
    end.
