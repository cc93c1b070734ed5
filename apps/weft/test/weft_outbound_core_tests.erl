%% SPDX-License-Identifier: Apache-2.0
%% @doc Both halves of a session against a model: whatever paths do, everything arrives once and in
%% order.
%%
%% The network of the model has several lanes, each a queue; packets of different lanes overtake
%% each other, can come twice, and are lost when the path breaks, as are acknowledgements. Then the
%% session resumes, again and again. What is delivered must be a prefix of what was pushed at any
%% time, and all of it once the network is left alone.
-module(weft_outbound_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(WINDOW, 3000).
%% Less than the window, so that it is exceeded at times.
-define(EARLY_MAX, 2000).
-define(PAYLOAD_MAX, 700).
%% What the cores count for each payload beside its bytes.
-define(ITEM_BYTES, 100).
-define(LANES, 4).

-record(model, {out = weft_outbound_core:new(?WINDOW, ?WINDOW),
                in = weft_inbound_core:new(?EARLY_MAX),
                lanes = weft_lanes_model:new() :: weft_lanes_model:lanes(),
                acks = [] :: [non_neg_integer()],
                pushed = [] :: [binary()],
                delivered = [] :: [binary()],
                overflows = 0 :: non_neg_integer()}).

everything_arrives_once_and_in_order_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(prop_exactly_once(), [{numtests, 500}, quiet]))}.

prop_exactly_once() ->
    ?FORALL(Steps, ?SIZED(Size, resize(20 * Size, list(step()))),
            begin
                Model = #model{delivered = Delivered, pushed = Pushed, out = Out}
                    = settle(lists:foldl(fun checked/2, #model{}, Steps)),
                ?WHENFAIL(io:format("~p~n", [Model]),
                          Delivered =:= Pushed andalso weft_outbound_core:room(Out))
            end).

checked(Step, Model0) ->
    #model{out = Out, pushed = Pushed, delivered = Delivered} = Model = step(Step, Model0),
    %% Newest first, so what was delivered is the tail of what was pushed.
    Delivered = lists:nthtail(length(Pushed) - length(Delivered), Pushed),
    true = weft_outbound_core:unacked_bytes(Out) < ?WINDOW + ?PAYLOAD_MAX + ?ITEM_BYTES,
    true = weft_inbound_core:received(Model#model.in) =:= length(Delivered),
    Model.

step() ->
    frequency([{8, {push, range(0, ?PAYLOAD_MAX), range(1, ?LANES)}},
               {8, {deliver, range(1, ?LANES)}},
               {2, {repeat, range(1, ?LANES)}},
               {3, acknowledge},
               {1, {old_ack, range(0, 100)}},
               {1, {break, binary(8)}}]).

step({push, Bytes, Lane}, #model{out = Out0, pushed = Pushed} = Model) ->
    case weft_outbound_core:room(Out0) of
        true ->
            Payload = binary:copy(<<(length(Pushed))>>, Bytes),
            {Item, Out} = weft_outbound_core:push(kind(Pushed), Payload, Bytes, 0, Out0),
            send(Item, Lane, Model#model{out = Out, pushed = [Payload | Pushed]});
        false ->
            Model
    end;
step({deliver, Lane}, #model{lanes = Lanes} = Model) ->
    arrived(weft_lanes_model:take(Lane, Lanes), Model);
step({repeat, Lane}, #model{lanes = Lanes} = Model) ->
    arrived(weft_lanes_model:peek(Lane, Lanes), Model);
step(acknowledge, #model{acks = [Ack | Acks], out = Out} = Model) ->
    Model#model{acks = Acks, out = acked(Ack, Out)};
step(acknowledge, Model) ->
    Model;
step({old_ack, Back}, #model{in = In, out = Out} = Model) ->
    Ack = max(0, weft_inbound_core:received(In) - Back),
    Model#model{out = acked(Ack, Out)};
step({break, Random}, Model) ->
    resume(lose(Random, Model)).

%% The first payloads of a session are those of the handshake.
kind(Pushed) when length(Pushed) < 3 -> handshake;
kind(_Pushed) -> frames.

send(Item, Lane, #model{lanes = Lanes} = Model) ->
    Model#model{lanes = weft_lanes_model:send(Item, Lane, Lanes)}.

arrived(none, Model) -> Model;
arrived({Item, Lanes}, Model) -> arrive(Item, Model#model{lanes = Lanes}).

arrive({Sequence, Kind, Payload, Bytes}, #model{in = In0, acks = Acks, delivered = Delivered,
                                                overflows = Overflows} = Model) ->
    Bytes = byte_size(Payload),
    case weft_inbound_core:accept(Sequence, Kind, Payload, In0) of
        {Deliveries, Ack, In} ->
            Payloads = lists:reverse([P || {_, P} <- Deliveries]),
            Model#model{in = In, delivered = Payloads ++ Delivered,
                        acks = Acks ++ [weft_inbound_core:received(In) || Ack]};
        overflow ->
            resume(lose(<<>>, Model#model{overflows = Overflows + 1}))
    end.

lose(Random, #model{lanes = Lanes} = Model) ->
    Model#model{lanes = weft_lanes_model:broken(Random, Lanes), acks = []}.

resume(#model{in = In, out = Out0, lanes = Lanes} = Model) ->
    {ok, Items, Out} = weft_outbound_core:resume(weft_inbound_core:received(In), Out0),
    Model#model{out = Out, lanes = weft_lanes_model:spread(Items, ?LANES, Lanes)}.

%% The network is left alone.
settle(Model0) ->
    Model = deliver_all(resume(lose(<<>>, Model0))),
    lists:foldl(fun(_, M) -> step(acknowledge, M) end, Model, Model#model.acks).

deliver_all(#model{lanes = Lanes} = Model) ->
    case weft_lanes_model:oldest(Lanes) of
        none -> Model;
        {ok, Lane} -> deliver_all(checked({deliver, Lane}, Model))
    end.

%% --- single rules -----------------------------------------------------------------------------

acked(Sequence, Out0) ->
    {_, Out} = weft_outbound_core:acked(Sequence, undefined, 1000, Out0),
    Out.

pushed(Count, Bytes) ->
    lists:foldl(fun(_, Out0) ->
                        {_, Out} = weft_outbound_core:push(frames, <<0:Bytes/unit:8>>, Bytes, 0,
                                                             Out0),
                        Out
                end, weft_outbound_core:new(?WINDOW, ?WINDOW), lists:seq(1, Count)).

a_full_window_has_no_room_until_acknowledged_test() ->
    ?assert(weft_outbound_core:room(pushed(1, 1500))),
    Full = pushed(2, 1500),
    ?assertNot(weft_outbound_core:room(Full)),
    ?assertEqual(2 * 1500, weft_outbound_core:unacked_bytes(Full)),
    Acked = acked(1, Full),
    ?assert(weft_outbound_core:room(Acked)),
    ?assertEqual(1500, weft_outbound_core:unacked_bytes(Acked)).

%% Kept payloads take memory, however small they are.
many_empty_payloads_fill_the_window_too_test() ->
    ?assertNot(weft_outbound_core:room(pushed(?WINDOW div ?ITEM_BYTES, 0))).

acknowledgements_of_what_was_never_sent_change_nothing_test() ->
    Out = pushed(2, 10),
    ?assertEqual(Out, acked(3, Out)),
    ?assertEqual(Out, acked(0, Out)).

a_peer_of_another_history_cannot_resume_test() ->
    Out = acked(2, pushed(3, 10)),
    ?assertEqual({error, lost}, weft_outbound_core:resume(4, Out)),
    %% An acknowledgement was faster than the count of the same peer: what it said stands.
    ?assertMatch({ok, [{3, frames_ack, _, 10}], _}, weft_outbound_core:resume(1, Out)),
    ?assertMatch({ok, [{3, frames_ack, _, 10}], _}, weft_outbound_core:resume(2, Out)),
    ?assertMatch({ok, [], _}, weft_outbound_core:resume(3, Out)).

a_quarter_of_the_window_asks_for_an_acknowledgement_test() ->
    ?assertEqual([frames, frames_ack, frames, frames_ack], kinds(300, 4, ?WINDOW)),
    ?assertEqual([frames_ack], kinds(5000, 1, ?WINDOW)).

%% In a large window few of many small payloads are kept.
a_number_of_payloads_asks_for_an_acknowledgement_test() ->
    ?assertEqual([64, 128, 192], [Number || {Number, frames_ack}
                                                <- lists:enumerate(kinds(10, 250, 1048576))]).

kinds(Bytes, Count, Window) ->
    Push = fun(_, Out0) ->
                   {{_, Kind, _, _}, Out} = weft_outbound_core:push(frames, <<>>, Bytes, 0, Out0),
                   {Kind, Out}
           end,
    {Kinds, _} = lists:mapfoldl(Push, weft_outbound_core:new(Window, Window), lists:seq(1, Count)),
    Kinds.

%% Two acknowledgements are under way. The first makes the window smaller than what is out, so the
%% rest is asked for; the second comes right after, has the number of all, and is no answer to that.
an_acknowledgement_that_was_under_way_is_no_round_trip_test() ->
    Sent = fun(Count, AtUs, Out) ->
                   lists:foldl(fun(_, Out0) ->
                                       {_, Next} = weft_outbound_core:push(frames, <<>>, 40000,
                                                                           AtUs, Out0),
                                       Next
                               end, Out, lists:seq(1, Count))
           end,
    Full = Sent(30, 0, weft_outbound_core:new(65536, 1048576)),
    {times, Acked} = weft_outbound_core:acked(7, undefined, 20000, Full),
    {ask, Smaller} = weft_outbound_core:acked(14, undefined, 40000, Sent(10, 20000, Acked)),
    {ok, All} = weft_outbound_core:acked(40, undefined, 40001, Smaller),
    ?assertMatch(#{round_trip_us := 20000}, weft_outbound_core:window(Smaller)),
    ?assertMatch(#{round_trip_us := 20000}, weft_outbound_core:window(All)).

%% --- what bypasses others ---------------------------------------------------------------------

%% Each sender in its own order; behind all that has a number where that is said, and for ever
%% behind what has changed the atoms.
what_bypasses_others_names_what_it_is_behind_test() ->
    Orders = [frames, {bypass, 7, all}, frames, {bypass, 7, last}, {bypass, 8, all},
              {bypass, 8, last}, defines, {bypass, 7, last}, {bypass, 8, defines},
              {bypass, 7, last}],
    {_, Kinds} = lists:foldl(fun(Order, {Out0, Acc}) ->
                                     {{_, Kind, _, _}, Out} =
                                         weft_outbound_core:push(Order, <<>>, 0, 0, Out0),
                                     {Out, [Kind | Acc]}
                             end, {weft_outbound_core:new(100000, 100000), []}, Orders),
    ?assertEqual([frames, {bypass, 0, 1}, frames, {bypass, 2, 0}, {bypass, 0, 4}, {bypass, 5, 0},
                  frames, {bypass, 4, 7}, {bypass, 0, 8}, {bypass, 8, 9}], lists:reverse(Kinds)).

it_may_go_beyond_the_window_and_what_is_in_a_hurry_test() ->
    Room = fun(Bytes) -> weft_outbound_core:room(pushed(1, Bytes), express) end,
    ?assertEqual([all, express, express, bypass, bypass, none],
                 [Room(Bytes) || Bytes <- [100, ?WINDOW, 1048576, 1048576 + ?WINDOW, 2097152,
                                           2097152 + ?WINDOW]]).

the_last_one_asks_when_it_is_repeated_test() ->
    {_, Out} = weft_outbound_core:push({bypass, 7, all}, <<>>, 0, 0, pushed(1, 10)),
    ?assertMatch({ok, [{2, {bypass_ack, 0, 1}, _, _}, {1, frames, _, _}], _},
                 weft_outbound_core:resume(0, Out)).

%% In the version before they were said to travel apart.
those_that_the_version_before_kept_are_repeated_test() ->
    {_, Out0} = weft_outbound_core:push({bypass, 7, all}, <<>>, 0, 0, pushed(63, 10)),
    {_, Out} = weft_outbound_core:push({bypass, 7, last}, <<>>, 0, 0, Out0),
    Kinds = #{bypass => apart, bypass_ack => apart_ack},
    Before = setelement(8, Out, [setelement(2, Item, setelement(1, Kind, map_get(How, Kinds)))
                                 || {_, {How, _, _} = Kind, _, _} = Item <- element(8, Out)]),
    ?assertMatch([{65, {apart, 64, 0}, _, _}, {64, {apart_ack, 0, 63}, _, _}], element(8, Before)),
    {ok, Repeated, _} = weft_outbound_core:resume(63, weft_outbound_core:code_change(Before)),
    ?assertMatch([{64, {bypass_ack, 0, 63}, _, _}, {65, {bypass_ack, 64, 0}, _, _}], Repeated).
