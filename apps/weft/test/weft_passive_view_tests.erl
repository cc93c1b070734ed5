%% SPDX-License-Identifier: Apache-2.0
%% @doc The passive view stays within its bounds and its rules, whatever it is told.
-module(weft_passive_view_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SELF, 'self@host').
-define(PASSIVE_MAX, 4).

the_rules_hold_after_any_history_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_rules(), [{numtests, 1000}, {to_file, user}]))}.

%% The model remembers in which incarnation each node left.
prop_rules() ->
    ?FORALL(Steps, list(step()),
            begin
                New = weft_passive_view:new(?SELF, #{passive => ?PASSIVE_MAX, former_max => 2}),
                {View, _, Left} = lists:foldl(fun step/2, {New, rand:seed_s(exsss, 1), #{}}, Steps),
                Passive = weft_passive_view:passive(View),
                Lost = weft_passive_view:lost(View),
                Former = weft_passive_view:former(View),
                length(Passive) =< ?PASSIVE_MAX andalso length(Lost) =< ?PASSIVE_MAX
                    andalso length(Former) =< 2
                    andalso not lists:member(?SELF, Passive ++ Former ++ Lost)
                    andalso [] =:= (Passive ++ Former ++ Lost)
                                       -- lists:usort(Passive ++ Former ++ Lost)
                    andalso lists:all(fun({Node, Incarnation}) ->
                                          weft_passive_view:has_left(Node, Incarnation, View)
                                      end, maps:to_list(Left))
            end).

step() ->
    Node = oneof([?SELF | [list_to_atom([C | "@host"]) || C <- "abcdefgh"]]),
    Peer = {Node, integer(0, 3)},
    oneof([{add, list(Peer), list(Node), list(Node)}, {remove, Node}, {failed, Node},
           {left, Peer}]).

step({add, Peers, First, Except}, {View0, Rand0, Left}) ->
    ExceptMap = maps:from_list([{Node, []} || Node <- Except]),
    {View, Rand} = weft_passive_view:add(Peers, First, ExceptMap, View0, Rand0),
    Added = weft_passive_view:passive(View) -- weft_passive_view:passive(View0),
    true = lists:all(fun(Node) ->
                         Incarnation = lists:max([I || {N, I} <- Peers, N =:= Node]),
                         not is_map_key(Node, ExceptMap)
                             andalso Incarnation > maps:get(Node, Left, -1)
                     end, Added),
    {View, Rand, Left};
step({remove, Node}, {View, Rand, Left}) ->
    {weft_passive_view:remove(Node, View), Rand, Left};
step({failed, Node}, {View, Rand, Left}) ->
    {weft_passive_view:failed(Node, View), Rand, Left};
step({left, {Node, Incarnation}}, {View0, Rand, Left}) ->
    {News, View} = weft_passive_view:left(Node, Incarnation, 0, View0),
    News = case maps:get(Node, Left, -1) of
               Last when Last >= Incarnation -> known;
               _ -> new
           end,
    {View, Rand, Left#{Node => max(Incarnation, maps:get(Node, Left, -1))}}.

those_given_away_make_room_first_test() ->
    Add = fun(Names, First, View) ->
                  {Added, _} = weft_passive_view:add([{Name, 1} || Name <- Names], First, #{}, View,
                                                     rand:seed_s(exsss, 1)),
                  Added
          end,
    Full = Add([a, b, c, d], [], weft_passive_view:new(?SELF, #{passive => ?PASSIVE_MAX})),
    Swapped = Add([e, f], [a, c], Full),
    ?assertEqual([b, d, e, f], weft_passive_view:passive(Swapped)),
    ?assertEqual([a, c], weft_passive_view:former(Swapped)).

who_left_long_ago_is_forgotten_test() ->
    {new, Left} = weft_passive_view:left(a, 5, 1000, weft_passive_view:new(?SELF, #{})),
    ?assert(weft_passive_view:has_left(a, 5, weft_passive_view:expire(600000, Left))),
    ?assertNot(weft_passive_view:has_left(a, 5, weft_passive_view:expire(601001, Left))).

of_too_many_who_left_the_oldest_are_forgotten_test() ->
    New = weft_passive_view:new(?SELF, #{left_max => 2}),
    View = lists:foldl(fun({Node, Ms}, V0) ->
                           {new, V} = weft_passive_view:left(Node, 1, Ms, V0),
                           V
                       end, New, [{a, 1}, {b, 2}, {c, 3}]),
    ?assertEqual([false, true, true], [weft_passive_view:has_left(N, 1, View) || N <- [a, b, c]]).
