%% SPDX-License-Identifier: Apache-2.0
%% @doc Large messages in pieces: any body, any order of arrival, and peers that cheat.
-module(weft_channel_chunks_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(C, weft_channel_chunks_core).

properties_test_() ->
    [{Name, {timeout, 60, ?_assert(proper:quickcheck(Property, [{numtests, 250}, quiet]))}}
     || {Name, Property} <- [{"whatever order", prop_together_again()},
                             {"bounded whatever comes", prop_bounded()}]].

prop_together_again() ->
    ?FORALL({Bodies, Chunk, Seed}, {non_empty(list(list(binary()))), range(1, 20), integer()},
            begin
                Bytes = iolist_size(Bodies),
                Numbered = lists:zip(lists:seq(1, length(Bodies)), Bodies),
                Events = shuffle(lists:append([events(N, Body, Chunk) || {N, Body} <- Numbered,
                                                          iolist_size(Body) > 0]), Seed),
                {Complete, Assembly} =
                    lists:foldl(fun(Event, {Done, A0}) ->
                                        case apply_event(Event, A0) of
                                            {complete, Pieces, A} ->
                                                {[{element(2, Event), Pieces} | Done], A};
                                            {incomplete, A} ->
                                                {Done, A}
                                        end
                                end, {[], ?C:new(max(1, Bytes), length(Bodies))}, Events),
                ?C:bytes(Assembly) =:= 0 andalso
                    lists:sort([{N, iolist_to_binary(Pieces)} || {N, Pieces} <- Complete])
                    =:= [{N, iolist_to_binary(Body)} || {N, Body} <- Numbered,
                                                        iolist_size(Body) > 0]
            end).

events(N, Body, Chunk) ->
    Pieces = ?C:cut(Body, Chunk),
    [true = iolist_size(Piece) =:= Chunk || Piece <- lists:droplast(Pieces)],
    [{announce, N, iolist_size(Body), length(Pieces)}
     | [{add, N, I, iolist_to_binary(Piece)}
        || {I, Piece} <- lists:zip(lists:seq(0, length(Pieces) - 1), Pieces)]].

shuffle(List, Seed) ->
    [E || {_, E} <- lists:sort([{erlang:phash2({Seed, I}), E}
                                || {I, E} <- lists:zip(lists:seq(1, length(List)), List)])].

apply_event({announce, Id, Size, Count}, Assembly) -> ?C:announce(Id, Size, Count, Assembly);
apply_event({add, Id, Index, Chunk}, Assembly) -> ?C:add(Id, Index, Chunk, Assembly).

%% Random announcements and pieces: never more than the bound is held, never a crash.
prop_bounded() ->
    Event = oneof([{announce, range(1, 5), range(0, 60), range(1, 4)},
                   {add, range(1, 5), range(0, 5), binary()}]),
    ?FORALL(Events, list(Event),
            element(2, lists:foldl(fun(_, {stopped, IsRight}) -> {stopped, IsRight};
                                      (E, {A, true}) -> bounded(apply_event(E, A))
                                   end, {?C:new(50, 3), true}, Events))).

bounded({complete, Pieces, A}) when Pieces =/= [] -> bounded({incomplete, A});
bounded({complete, [], _A}) -> {stopped, false};
bounded({incomplete, A}) ->
    case ?C:bytes(A) =< 50 of
        true -> {A, true};
        false -> {stopped, false}
    end;
bounded({error, _}) -> {stopped, true}.

cheats_test_() ->
    {incomplete, Half} = ?C:add(1, 0, <<"ab">>, ?C:new(10, 2)),
    {incomplete, Told} = ?C:announce(1, 4, 2, Half),
    [?_assertMatch({error, {repeated, 1, 0}}, ?C:add(1, 0, <<"ab">>, Told)),
     ?_assertMatch({error, {announced_twice, 1}}, ?C:announce(1, 4, 2, Told)),
     ?_assertMatch({error, {wrong_size, 1}}, ?C:add(1, 1, <<"abc">>, Told)),
     ?_assertMatch({error, {wrong_index, 1}}, ?C:add(1, 7, <<"ab">>, Told)),
     ?_assertMatch({error, {empty, 1, 1}}, ?C:add(1, 1, <<>>, Told)),
     ?_assertMatch({error, {too_large, 11}}, ?C:announce(2, 11, 1, Told)),
     ?_assertMatch({error, {too_many_bytes, 11}}, ?C:add(2, 0, <<"123456789">>, Told)),
     ?_assertMatch({complete, [<<"ab">>, <<"cd">>], _}, ?C:add(1, 1, <<"cd">>, Told)),
     fun() ->
             {incomplete, Two} = ?C:add(2, 0, <<"x">>, Told),
             ?assertEqual({error, {too_many_messages, 2}}, ?C:add(3, 0, <<"x">>, Two))
     end].
