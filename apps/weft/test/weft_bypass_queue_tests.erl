%% SPDX-License-Identifier: Apache-2.0
%% @doc From the fair queue of one end to what the other end gives to its VM, while processes are
%% pinned and unpinned, lanes overtake each other, and paths break.
%%
%% Whatever happens each frame arrives once, the frames of a sender in their order, signals without
%% sender in their place, and the peer reads the atoms that the sender meant.
-module(weft_bypass_queue_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-include("../src/carrier/queue/weft_frame_sizes.hrl").

-define(WINDOW, 150000).
-define(EARLY_MAX, 600000).
-define(PROGRESS_BYTES, 4194304).
-define(LANES, 3).
-define(SENDERS, 4).

%% What went in: {Number, Sender}; what was meant by it, and what was read: {Number, Texts}. Newest
%% first.
-record(model, {fair = weft_fair_queue_core:new(64 * 1048576),
                classes = #{} :: weft_fair_queue_core:classes(),
                vm = #{} :: map(),
                next = 1 :: pos_integer(),
                entered = [] :: [{pos_integer(), integer() | last | ordered}],
                meant = [] :: [{pos_integer(), [binary()]}],
                out = weft_outbound_core:new(?WINDOW, ?WINDOW),
                in = weft_inbound_core:new(?EARLY_MAX),
                lanes = weft_lanes_model:new() :: weft_lanes_model:lanes(),
                acks = [] :: [non_neg_integer()],
                have = #{} :: map(),
                read = [] :: [{pos_integer(), [binary()]}],
                bypass = 0 :: non_neg_integer(),
                early = 0 :: non_neg_integer()}).

whatever_happens_test_() ->
    {timeout, 300, ?_assert(proper:quickcheck(prop_once_and_in_order(),
                                              [{numtests, times()}, quiet]))}.

times() ->
    case os:getenv("FULL") of false -> 150; _ -> 800 end.

prop_once_and_in_order() ->
    ?FORALL(Steps, ?SIZED(Size, resize(20 * Size, list(step()))),
            begin
                Model = settle(lists:foldl(fun step/2, #model{}, Steps)),
                ?WHENFAIL(io:format("~p~n~p~n", [Model#model.entered, Model#model.read]),
                          is_right(Model))
            end).

is_right(#model{entered = In, read = Read, meant = Meant, fair = Fair}) ->
    weft_fair_queue_core:bytes(Fair) =:= 0
        andalso weft_fair_queue_core_tests:is_in_order(lists:reverse(In),
                                                       lists:reverse([N || {N, _} <- Read]))
        andalso lists:all(fun({{Number, Used}, {Number, Texts}}) -> lists:prefix(Used, Texts) end,
                          lists:zip(lists:sort(Meant), lists:sort(Read))).

step() ->
    frequency([{12, {send, range(1, ?SENDERS), size(), atoms()}},
               {1, {send, last, 100, atoms()}},
               {1, {send, ordered, 100, atoms()}},
               {3, {pin, range(1, ?SENDERS), oneof([control, control, default, bulk, none])}},
               {10, {pump, oneof([all, all, express, bypass]), range(1, ?LANES)}},
               {10, {deliver, range(1, ?LANES)}},
               {2, {repeat, range(1, ?LANES)}},
               {3, acknowledge},
               {1, {break, binary(8)}}]).

size() -> frequency([{10, 100}, {2, 5000}, {2, 20000}, {1, 60000}]).

%% Some have the slot of others.
atoms() -> list(frequency([{20, range(1, 4)}, {1, range(301, 304)}])).

step({send, Sender, Bytes, Atoms0}, #model{next = Number, vm = Vm0} = Model) ->
    Atoms = weft_atom_cache_tests:distinct_slots(lists:usort(Atoms0)),
    {[Header, _], Vm} = weft_atom_cache_tests:vm_writes(Number, {whole, Atoms}, Vm0),
    Frame = [Header, control(Sender), <<0:Bytes/unit:8, Number:32>>],
    Texts = [weft_atom_cache_tests:text(Atom) || Atom <- Atoms],
    enqueue(Frame, Model#model{vm = Vm, next = Number + 1,
                               entered = [{Number, Sender} | Model#model.entered],
                               meant = [{Number, Texts} | Model#model.meant]});
step({pin, Sender, none}, #model{classes = Classes} = Model) ->
    repinned(maps:remove(Sender, Classes), Model);
step({pin, Sender, Class}, #model{classes = Classes} = Model) ->
    repinned(Classes#{Sender => Class}, Model);
step({pump, Room, Lane}, #model{fair = Fair0, out = Out} = Model) ->
    case allowed(Room, weft_outbound_core:room(Out, express)) of
        none ->
            Model;
        Allowed ->
            case weft_fair_queue_core:take(Allowed, ?PROGRESS_BYTES, Fair0) of
                empty -> Model;
                {Payload, Bytes, Order, Fair} ->
                    push(Order, Payload, Bytes, Lane, Model#model{fair = Fair})
            end
    end;
step({deliver, Lane}, #model{lanes = Lanes} = Model) ->
    arrived(weft_lanes_model:take(Lane, Lanes), Model);
step({repeat, Lane}, #model{lanes = Lanes} = Model) ->
    arrived(weft_lanes_model:peek(Lane, Lanes), Model);
step(acknowledge, #model{acks = [Ack | Acks], out = Out0} = Model) ->
    {_, Out} = weft_outbound_core:acked(Ack, undefined, 1000, Out0),
    Model#model{acks = Acks, out = Out};
step(acknowledge, Model) ->
    Model;
step({break, Random}, Model) ->
    resume(lose(Random, Model)).

control(last) ->
    weft_test_frames:control([<<97, 21>>, weft_test_frames:atom(119, <<"name">>),
                              weft_test_frames:pid(1), <<90, 0>>]);
control(ordered) ->
    weft_test_frames:control([<<97, 2>>, weft_test_frames:atom(119, <<>>),
                              weft_test_frames:pid(1)]);
control(Sender) ->
    weft_test_frames:control([<<97, 22>>, weft_test_frames:pid(Sender), weft_test_frames:pid(1)]).

%% Not looked at when that is allowed, as the outlet does; nothing is fetched while it is full.
enqueue(Frame, #model{fair = Fair, classes = Classes} = Model) ->
    Size = iolist_size(Frame),
    IsFast = map_size(Classes) =:= 0 andalso weft_fair_queue_core:fast(Fair)
        andalso Size < ?SMALL_BYTES
        andalso not weft_atom_cache:defines(Frame),
    Batch = [<<Size:32>> | Frame],
    Model#model{fair = case IsFast of
                           true -> weft_fair_queue_core:add_batch(Batch, Size + 4, 1, Fair);
                           false -> weft_fair_queue_core:add(Size, Frame, Classes, Fair)
                       end}.

repinned(Classes, #model{classes = Before, fair = Fair} = Model) ->
    Model#model{classes = Classes, fair = weft_fair_queue_core:repinned(Before, Classes, Fair)}.

allowed(_Room, none) -> none;
allowed(bypass, _) -> bypass;
allowed(express, all) -> express;
allowed(_Room, Allowed) -> Allowed.

push(Order, Payload, Bytes, Lane, #model{out = Out0, bypass = Bypass} = Model) ->
    {Item, Out} = weft_outbound_core:push(Order, iolist_to_binary(Payload), Bytes, 0, Out0),
    true = weft_outbound_core:unacked_bytes(Out) < ?WINDOW + 2 * 1048576 + 200000,
    send(Item, Lane, Model#model{out = Out, bypass = Bypass + length([Order || is_tuple(Order)])}).

send(Item, Lane, #model{lanes = Lanes} = Model) ->
    Model#model{lanes = weft_lanes_model:send(Item, Lane, Lanes)}.

arrived(none, Model) -> Model;
arrived({Item, Lanes}, Model) -> arrive(Item, Model#model{lanes = Lanes}).

arrive({Sequence, Kind, Payload, _}, #model{in = In0, acks = Acks, early = Early} = Model) ->
    {data, 1, Sequence, Kind, Payload} =
        weft_wire:decode(iolist_to_binary(weft_wire:data(1, Sequence, Kind, Payload))),
    case weft_inbound_core:accept(Sequence, Kind, Payload, In0) of
        {Deliveries, Ack, In} ->
            Received = weft_inbound_core:received(In),
            IsEarly = Sequence > Received andalso Deliveries =/= [],
            lists:foldl(fun given/2,
                        Model#model{in = In, acks = Acks ++ [Received || Ack],
                                    early = Early + case IsEarly of true -> 1; false -> 0 end},
                        Deliveries);
        overflow ->
            resume(lose(<<>>, Model))
    end.

given({Frames, Payload}, #model{have = Have0, read = Read} = Model)
  when Frames =:= frames; Frames =:= whole ->
    {New, Have} = lists:mapfoldl(fun weft_atom_cache_tests:without_body/2, Have0,
                                 [F || <<S:32, F:S/binary>> <= Payload]),
    Model#model{have = Have, read = lists:reverse(New, Read)}.

lose(Random, #model{lanes = Lanes} = Model) ->
    Model#model{lanes = weft_lanes_model:broken(Random, Lanes), acks = []}.

resume(#model{in = In, out = Out0, lanes = Lanes} = Model) ->
    {ok, Items, Out} = weft_outbound_core:resume(weft_inbound_core:received(In), Out0),
    Model#model{out = Out, lanes = weft_lanes_model:spread(Items, ?LANES, Lanes)}.

%% The network is left alone until all is there.
settle(#model{fair = Fair, next = Next} = Model0) ->
    Model = acknowledged(deliver_all(resume(lose(<<>>, Model0)))),
    case weft_fair_queue_core:bytes(Fair) of
        0 when length(Model#model.read) =:= Next - 1 -> Model;
        0 -> error({missing, Model});
        _ -> settle(step({pump, all, 1}, Model))
    end.

deliver_all(#model{lanes = Lanes} = Model) ->
    case weft_lanes_model:oldest(Lanes) of
        none -> Model;
        {ok, Lane} -> deliver_all(step({deliver, Lane}, Model))
    end.

acknowledged(#model{in = In, out = Out0} = Model) ->
    {_, Out} = weft_outbound_core:acked(weft_inbound_core:received(In), undefined, 1000, Out0),
    Model#model{out = Out, acks = []}.

%% --- it is worth it ---------------------------------------------------------------------------

%% Others' payloads are lost, or far behind; those of a pinned sender arrive, in their order.
a_pinned_sender_does_not_wait_for_others_test() ->
    Bulk = {send, 1, 60000, [1]},
    Small = {send, 2, 100, [1, 2]},
    Model = run([{pin, 2, control}, Bulk, Small, {pump, all, 1}, {pump, all, 1},
                 {deliver, 1}, {deliver, 1},
                 Bulk, {pump, all, 1}, Small, {pump, all, 2}, Bulk, {pump, all, 1},
                 Small, {pump, all, 2}, {deliver, 2}, {deliver, 2}]),
    ?assertEqual([2, 2], first_senders(2, Model)),
    ?assertMatch(#model{early = 2, bypass = 3}, Model),
    ?assert(is_right(settle(Model))).

%% What the sender sent before it was pinned comes first.
what_was_sent_before_the_pin_is_not_overtaken_test() ->
    Model = run([{send, 2, 100, []}, {pump, all, 1}, {pin, 2, control},
                 {send, 2, 100, []}, {pump, all, 2}, {deliver, 2}]),
    ?assertMatch(#model{read = [], bypass = 1}, Model),
    ?assertMatch(#model{read = [{2, _}, {1, _}]}, step({deliver, 1}, Model)).

%% A frame that uses an atom waits for the payload of another sender that defines it.
atoms_are_there_first_test() ->
    Start = run([{pin, 2, control}, {send, 2, 100, []}, {pump, all, 1}, {deliver, 1},
                 {send, 1, 60000, [1]}, {pump, all, 1}, {send, 2, 100, [1]}, {pump, all, 2},
                 {deliver, 2}]),
    ?assertMatch(#model{read = [{1, []}]}, Start),
    ?assertMatch(#model{read = [{3, [<<"1">>]}, {2, [<<"1">>]}, {1, []}]},
                 step({deliver, 1}, Start)).

%% Pinned senders do not wait for each other either.
each_pinned_sender_has_an_order_of_its_own_test() ->
    Small = fun(Sender) -> {send, Sender, 100, []} end,
    Model = run([{pin, 1, control}, {pin, 2, control}, Small(1), Small(2),
                 {pump, all, 1}, {pump, all, 1}, {deliver, 1}, {deliver, 1},
                 Small(1), {pump, all, 1}, Small(2), {pump, all, 2}, {deliver, 2}]),
    ?assertEqual([2, 2, 1], first_senders(3, Model)).

%% Nor what it sent while it was not pinned, although something from before was still to go then.
what_was_sent_between_two_pins_is_not_overtaken_test() ->
    Small = {send, 2, 100, []},
    Model = run([{pin, 2, control}, Small, {pin, 2, none}, {pump, all, 1}, {deliver, 1},
                 Small, {pump, all, 1}, {pin, 2, control}, Small, {pump, all, 2}, {deliver, 2}]),
    ?assertMatch(#model{read = [{1, _}], bypass = 2}, Model),
    ?assertMatch(#model{read = [{3, _}, {2, _}, {1, _}]}, step({deliver, 1}, Model)).

%% That others are pinned and unpinned makes no difference.
a_pin_does_not_touch_who_was_pinned_test() ->
    Small = {send, 2, 100, []},
    Model = run([{pin, 2, control}, Small, {pump, all, 1}, {deliver, 1},
                 {send, 1, 60000, []}, {pump, all, 1}, {pin, 3, default}, {pin, 3, none},
                 Small, {pump, all, 2}, {deliver, 2}]),
    ?assertEqual([2, 2], first_senders(2, Model)).

run(Steps) -> lists:foldl(fun step/2, #model{}, Steps).

%% Of what was read last.
first_senders(Count, #model{read = Read, entered = In}) ->
    [Sender || {Number, _} <- lists:sublist(Read, Count), {N, Sender} <- In, N =:= Number].
