%% SPDX-License-Identifier: Apache-2.0
-module(weft_im_conversation_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(M, weft_im_conversation).

what_is_said_is_sent_until_it_is_heard_test() ->
    {[{message, 1, 0, <<"a">>}], End1} = ?M:say(<<"a">>, 100, ?M:new()),
    {[], End2} = ?M:say(<<"b">>, 110, End1),
    ?assertEqual(no, ?M:due(50, 149, End2)),
    ?assertEqual({yes, 1}, ?M:due(50, 150, End2)),
    {[{message, 1, 0, <<"a">>}], End3} = ?M:again(150, End2),
    ?assertEqual({yes, 2}, ?M:due(50, 200, End3)),
    ?assertNot(?M:is_silent(End3)),
    ?assertEqual(120, ?M:waiting_us(220, End3)),
    %% Half of the time since it was sent first.
    {[{delivered, 1, 60}], [{message, 2, 0, <<"b">>}], End4} = ?M:acknowledged(1, 220, End3),
    {[{delivered, 2, 5}], [], End5} = ?M:acknowledged(2, 230, End4),
    ?assert(?M:is_silent(End5)),
    ?assertEqual(0, ?M:waiting_us(300, End5)),
    ?assertEqual({[], End5}, ?M:again(300, End5)),
    ?assertEqual({[], [], End5}, ?M:acknowledged(2, 300, End5)).

what_was_heard_is_not_heard_again_test() ->
    {[{heard, 1, <<"a">>}], [{heard, 1}], End1} = ?M:hear({1, <<"a">>}, 0, 0, ?M:new()),
    ?assertEqual({[], [{heard, 1}], End1}, ?M:hear({1, <<"a">>}, 0, 9, End1)).

%% Who answers has heard.
an_answer_acknowledges_test() ->
    {_, End1} = ?M:say(<<"a">>, 0, ?M:new()),
    {Events, [{heard, 1}], End2} = ?M:hear({1, <<"b">>}, 1, 20, End1),
    ?assertEqual([{delivered, 1, 10}, {heard, 1, <<"b">>}], Events),
    ?assertMatch({[{message, 2, 1, <<"c">>}], _}, ?M:say(<<"c">>, 30, End2)).

%% Of somebody who logs in anew: the other end has heard three of the login before.
who_joins_late_speaks_on_test() ->
    {[{heard, 1, <<"b">>}], [{heard, 1}], Late} = ?M:hear({1, <<"b">>}, 3, 0, ?M:new()),
    {[{message, 4, 1, <<"a">>}], Said} = ?M:say(<<"a">>, 0, Late),
    ?assertEqual({[], [], Said}, ?M:acknowledged(3, 0, Said)),
    {[{delivered, 4, 5}], [{message, 5, 1, <<"c">>}], _} =
        ?M:acknowledged(4, 10, element(2, ?M:say(<<"c">>, 0, Said))).

a_hundred_may_wait_test() ->
    Said = lists:foldl(fun(_, End) -> {_, After} = ?M:say(<<>>, 0, End), After end, ?M:new(),
                       lists:seq(1, 100)),
    ?assertNot(?M:is_full(Said)),
    {[], Full} = ?M:say(<<>>, 0, Said),
    ?assert(?M:is_full(Full)).

%% Two ends and a network that loses, repeats and reorders: all is heard once and in order, by both,
%% and acknowledged, as soon as it is sent again without loss.
messages_are_heard_once_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(heard_once(), [{numtests, 500}, {to_file, user}]))}.

heard_once() ->
    ?FORALL(Steps, list(step()),
            begin
                Ends = #{a => ?M:new(), b => ?M:new()},
                World = #{ends => Ends, flying => [], said => #{a => 0, b => 0},
                          heard => #{a => [], b => []}, delivered => #{a => [], b => []}},
                #{said := #{a := A, b := B}} = After = settled(lists:foldl(fun step/2, World,
                                                                           Steps), 0),
                #{heard := #{a := AtA, b := AtB}, delivered := Delivered} = After,
                lists:reverse(AtB) =:= lists:seq(1, A)
                    andalso lists:reverse(AtA) =:= lists:seq(1, B)
                    andalso Delivered =:= #{a => lists:seq(A, 1, -1), b => lists:seq(B, 1, -1)}
            end).

step() ->
    frequency([{3, {say, oneof([a, b])}}, {2, {again, oneof([a, b])}},
               {5, {arrive, nat()}}, {2, {lose, nat()}}, {1, {repeat, nat()}}]).

step({say, Who}, #{said := Said} = World) ->
    #{Who := Count} = Said,
    act(fun(End) -> ?M:say(text(Count + 1), 0, End) end, Who,
        World#{said := Said#{Who := Count + 1}});
step({again, Who}, World) ->
    act(fun(End) -> ?M:again(0, End) end, Who, World);
step(_OfNothing, #{flying := []} = World) ->
    World;
step({What, Number}, #{flying := Flying} = World) ->
    {Before, [{To, Said} | Behind]} = lists:split(Number rem length(Flying), Flying),
    case What of
        arrive -> arrive(Said, To, World#{flying := Before ++ Behind});
        lose -> World#{flying := Before ++ Behind};
        repeat -> World#{flying := [{To, Said} | Flying]}
    end.

act(Do, Who, #{ends := Ends, flying := Flying} = World) ->
    {Out, After} = Do(map_get(Who, Ends)),
    World#{ends := Ends#{Who := After}, flying := Flying ++ [{other(Who), Said} || Said <- Out]}.

arrive(Said, To, #{ends := Ends, flying := Flying} = World) ->
    End = map_get(To, Ends),
    {Events, Out, After} = case Said of
                               {message, Number, Heard, Text} ->
                                   ?M:hear({Number, Text}, Heard, 0, End);
                               {heard, Number} -> ?M:acknowledged(Number, 0, End)
                           end,
    lists:foldl(fun(Event, Acc) -> event(Event, To, Acc) end,
                World#{ends := Ends#{To := After},
                       flying := Flying ++ [{other(To), One} || One <- Out]}, Events).

event({heard, Number, Text}, At, #{heard := Heard} = World) ->
    ?assertEqual(text(Number), Text),
    World#{heard := Heard#{At := [Number | map_get(At, Heard)]}};
event({delivered, Number, 0}, At, #{delivered := Delivered} = World) ->
    World#{delivered := Delivered#{At := [Number | map_get(At, Delivered)]}}.

text(Number) -> integer_to_binary(Number).

other(a) -> b;
other(b) -> a.

settled(#{flying := [{To, Said} | Rest]} = World, Rounds) ->
    settled(arrive(Said, To, World#{flying := Rest}), Rounds);
settled(#{ends := #{a := A, b := B}} = World, Rounds) ->
    case ?M:is_silent(A) andalso ?M:is_silent(B) of
        true -> World;
        false when Rounds < 1000 ->
            settled(step({again, a}, step({again, b}, World)), Rounds + 1)
    end.
