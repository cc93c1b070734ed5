%% SPDX-License-Identifier: Apache-2.0
%% @doc The sending half of a stream: numbers payloads and keeps them until acknowledged.
%%
%% Pure; called in place by the process that sends. A payload gets the next number, is kept, and is
%% dropped when the peer has acknowledged it or a later one. A window bounds the sum of kept bytes
%% (`weft_window_core'): while `room/1' is false nothing may be pushed, except urgent payloads,
%% which may exceed the window a little (`room/2'). The receiver has no timer, so the sender asks
%% for acknowledgements: each quarter of the window, with each 64th payload, when the window is
%% full, and when the window has become smaller than what is under way. After a break `resume/2'
%% returns, in order, what the peer has not received; numbers make repeats harmless. Times are in
%% microseconds.
%%
%% Bypass payloads (see `weft_inbound_core') may exceed the window by more. The fair queue says
%% which payloads have to be delivered before them (`weft_bypass_queue').
-module(weft_outbound_core).

-export([new/2, lanes/2, relayed/2, room/1, room/2, push/5, acked/4, losses/2, resume/2,
         is_acked/1, unacked_bytes/1, window_bytes/1, window/1, code_change/1, items/1]).
-export_type([state/0, item/0]).

%% On the way of each message: not calls.
-compile({inline, [push_kind/5, cost/1]}).

-define(ITEM_BYTES, 100).
%% A window of small payloads would be thousands of them, which the garbage collector of the process
%% would visit again and again. With 128 a process with few messages has twice the memory.
-define(ASK_PAYLOADS, 64).
%% How far express payloads may exceed the window.
-define(BEYOND_BYTES, 1048576).
%% And how far bypass payloads may.
-define(BYPASS_BEYOND_BYTES, 2097152).
%% For so many senders the last bypass payload is remembered; then those are forgotten that the peer
%% has acknowledged.
-define(SENDERS_MAX, 8192).

-record(outbound, {window :: weft_window_core:state(),
                   last = 0 :: weft_wire:sequence(),
                   acked = 0 :: weft_wire:sequence(),
                   %% With what each payload takes besides its own bytes.
                   unacked_bytes = 0 :: non_neg_integer(),
                   unasked_bytes = 0 :: non_neg_integer(),
                   %% The oldest first, and those after them, the latest first.
                   kept = [] :: [item()],
                   later = [] :: [item()],
                   asked = queue:new() :: queue:queue({weft_wire:sequence(), AtUs :: integer()}),
                   floor = 0 :: weft_wire:sequence(),
                   bypass = #{} :: #{weft_frame:key() => weft_wire:sequence()}}).
-opaque state() :: #outbound{}.
-type item() :: {weft_wire:sequence(), weft_wire:payload_kind(), iodata(),
                 Bytes :: non_neg_integer()}.

%% @doc With a window that adapts to the path, between Min and Max.
-spec new(WindowMinBytes :: pos_integer(), WindowMaxBytes :: pos_integer()) -> state().
new(Min, Max) ->
    #outbound{window = weft_window_core:new(Min, Max)}.

%% @doc How many lanes carry the payloads.
-spec lanes(pos_integer(), state()) -> state().
lanes(Lanes, #outbound{window = Window} = State) ->
    State#outbound{window = weft_window_core:lanes(Lanes, Window)}.

%% @doc Does the path lead over gateways?
-spec relayed(boolean(), state()) -> state().
relayed(IsRelayed, #outbound{window = Window} = State) ->
    State#outbound{window = weft_window_core:relayed(IsRelayed, Window)}.

%% @doc May another payload be pushed? The last one may exceed the window by its own size.
-spec room(state()) -> boolean().
room(#outbound{unacked_bytes = Unacked, window = Window}) ->
    Unacked < weft_window_core:bytes(Window).

%% @doc What may be pushed: all, only what is urgent, only bypass payloads, or nothing.
-spec room(state(), Beyond :: express) -> all | express | bypass | none.
room(#outbound{unacked_bytes = Unacked, window = Window}, express) ->
    Bytes = weft_window_core:bytes(Window),
    if
        Unacked < Bytes -> all;
        Unacked < Bytes + ?BEYOND_BYTES -> express;
        Unacked < Bytes + ?BYPASS_BEYOND_BYTES -> bypass;
        true -> none
    end.

%% @doc Numbers and keeps a payload. The item to send says whether it asks for an acknowledgement.
-spec push(handshake | part | weft_fair_queue_core:order(), iodata(), non_neg_integer(),
           NowUs :: integer(), state()) -> {item(), state()}.
push({bypass, Key, Behind}, Payload, Bytes, NowUs, State) ->
    {After, Floor} = behind(Behind, Key, State),
    push_kind({bypass, After, Floor}, Payload, Bytes, NowUs,
              followed(Key, defined(Behind, State)));
push(defines, Payload, Bytes, NowUs, State) ->
    push_kind(frames, Payload, Bytes, NowUs, defined(defines, State));
push(Kind, Payload, Bytes, NowUs, State) ->
    push_kind(Kind, Payload, Bytes, NowUs, State).

behind(last, Key, #outbound{bypass = Bypass, floor = Floor}) -> {maps:get(Key, Bypass, 0), Floor};
behind(_All, _Key, #outbound{last = Last}) -> {0, Last}.

%% All bypass payloads that are sent later have to wait for the payload that is about to be
%% numbered.
defined(defines, #outbound{last = Last} = State) -> State#outbound{floor = Last + 1};
defined(_Behind, State) -> State.

%% The payload that is about to be numbered is the last one of its sender. One that the peer has
%% acknowledged need not be remembered, because it has been delivered.
followed(Key, #outbound{bypass = Bypass0, last = Last, acked = Acked} = State) ->
    Bypass = case map_size(Bypass0) >= ?SENDERS_MAX of
                 true -> maps:filter(fun(_, Sequence) -> Sequence > Acked end, Bypass0);
                 false -> Bypass0
             end,
    State#outbound{bypass = Bypass#{Key => Last + 1}}.

push_kind(Kind, Payload, Bytes, NowUs,
          #outbound{window = Window, last = Before, unacked_bytes = Unacked0,
                    unasked_bytes = Unasked0, later = Later} = State0) ->
    Last = Before + 1,
    Unacked = Unacked0 + cost(Bytes),
    Unasked = Unasked0 + cost(Bytes),
    WindowBytes = weft_window_core:bytes(Window),
    IsFull = Unacked >= WindowBytes,
    Asks = Kind =/= handshake
        andalso (IsFull andalso Unacked0 < WindowBytes orelse
                 Unasked * 4 >= WindowBytes orelse Last rem ?ASK_PAYLOADS =:= 0),
    Item = {Last, case Asks of true -> asking(Kind); false -> Kind end, Payload, Bytes},
    Pushed = State0#outbound{last = Last, unacked_bytes = Unacked, unasked_bytes = Unasked,
                             later = [Item | Later]},
    State = case IsFull of true -> limited(Pushed); false -> Pushed end,
    {Item, case Asks of true -> asked(NowUs, State); false -> State end}.

limited(#outbound{window = Window} = State) ->
    State#outbound{window = weft_window_core:limited(Window)}.

asked(NowUs, #outbound{last = Last, asked = Asked} = State) ->
    State#outbound{unasked_bytes = 0, asked = queue:in({Last, NowUs}, Asked)}.

%% @doc The peer has received everything up to Sequence. Adapts the window to that. Old and repeated
%% news changes nothing. `ask' if the window has become smaller than what is under way and no
%% acknowledgement of that was asked for: then the caller has to ask, because nothing else will.
%% `doubt' if the kernel is to be asked how much was lost, `times' if the peer is to be asked to say
%% with acknowledgements when it sent them. PeerUs is that time, by its clock, if it says so.
-spec acked(weft_wire:sequence(), PeerUs :: integer() | undefined, NowUs :: integer(), state()) ->
          {ok | ask | doubt | times, state()}.
acked(Sequence, PeerUs, NowUs, #outbound{unacked_bytes = Before, acked = Acked0} = State0) ->
    case received(Sequence, State0) of
        #outbound{acked = Acked0} = Same ->
            {ok, Same};
        #outbound{unacked_bytes = Unacked, acked = Acked, asked = Asked0} = State1 ->
            {AtUs, Asked} = answered(Acked, Asked0, undefined),
            RoundTripUs = case AtUs of undefined -> undefined; _ -> NowUs - AtUs end,
            Window = weft_window_core:acked({Before - Unacked, Unacked}, RoundTripUs,
                                            {NowUs, PeerUs}, State1#outbound.window),
            ask_if_full(State1#outbound{window = Window, asked = Asked})
    end.

received(Sequence, #outbound{acked = Acked, last = Last} = State)
  when Sequence > Acked, Sequence =< Last ->
    #outbound{kept = Kept0, later = Later0, unacked_bytes = Unacked0} = State,
    {Kept, Later, Unacked} = drop(Sequence, Kept0, Later0, Unacked0),
    State#outbound{acked = Sequence, kept = Kept, later = Later, unacked_bytes = Unacked};
received(_Sequence, State) ->
    State.

%% When the newest of the questions was asked that this acknowledgement answers.
answered(Acked, Asked, AtUs) ->
    case queue:peek(Asked) of
        {value, {Sequence, Us}} when Sequence =< Acked ->
            answered(Acked, queue:drop(Asked), Us);
        _ ->
            {AtUs, Asked}
    end.

%% No time is kept: an acknowledgement that is already under way may cover everything, if lanes
%% overtake each other or something was repeated, and would look like a very short round trip.
ask_if_full(#outbound{unasked_bytes = Unasked, window = Window} = State) ->
    case {Unasked > 0 andalso not room(State), weft_window_core:is_in_doubt(Window)} of
        {true, _} -> {ask, State#outbound{unasked_bytes = 0}};
        {false, true} -> {doubt, State};
        {false, false} -> ask_times(State)
    end.

ask_times(#outbound{window = Window} = State) ->
    case weft_window_core:wants_times(Window) of
        true -> {times, State#outbound{window = weft_window_core:times_asked(Window)}};
        false -> {ok, State}
    end.

%% @doc So much was lost on the lanes (`weft_window_core:losses/2').
-spec losses(integer() | unknown, state()) -> state().
losses(Count, #outbound{window = Window} = State) ->
    State#outbound{window = weft_window_core:losses(Count, Window)}.

drop(Acked, [{Sequence, _, _, Bytes} | Kept], Later, Unacked) when Sequence =< Acked ->
    drop(Acked, Kept, Later, Unacked - cost(Bytes));
drop(Acked, [], [_ | _] = Later, Unacked) ->
    drop(Acked, lists:reverse(Later), [], Unacked);
drop(_Acked, Kept, Later, Unacked) ->
    {Kept, Later, Unacked}.

%% Keeping a payload takes memory here, and in `early' at the receiver, however small it is.
cost(Bytes) -> Bytes + ?ITEM_BYTES.

%% @doc On a new path: what to send again, given the last number that the peer has received. Bypass
%% payloads come first, since the receiver puts all in order. An acknowledgement on the old path may
%% have confirmed more than that number; it stays valid.
%% `lost' means that the peer has more than was ever sent: it has another history, and the session
%% cannot go on.
-spec resume(weft_wire:sequence(), state()) -> {ok, [item()], state()} | {error, lost}.
resume(Received, #outbound{last = Last} = State0) when Received =< Last ->
    #outbound{kept = Kept, later = Later} = State = received(Received, State0),
    {Bypass, InOrder} = lists:partition(fun({_, Kind, _, _}) -> is_tuple(Kind) end,
                                        ask_at_end(Kept ++ lists:reverse(Later))),
    {ok, Bypass ++ InOrder, restarted(State)};
resume(_Received, _State) ->
    {error, lost}.

restarted(#outbound{window = Window} = State) ->
    State#outbound{unasked_bytes = 0, asked = queue:new(),
                   window = weft_window_core:restart(Window)}.

%% What was asked on the old path may never be answered.
ask_at_end([]) -> [];
ask_at_end([{Sequence, Kind, Payload, Bytes}]) -> [{Sequence, asking(Kind), Payload, Bytes}];
ask_at_end([Item | Items]) -> [Item | ask_at_end(Items)].

asking(frames) -> frames_ack;
asking(part) -> part_ack;
asking({bypass, After, Floor}) -> {bypass_ack, After, Floor};
asking(Kind) -> Kind.

%% @doc Has the peer received all that was pushed?
-spec is_acked(state()) -> boolean().
is_acked(#outbound{last = Last, acked = Acked}) -> Acked =:= Last.

%% @doc Bytes that were pushed and are not acknowledged, without what it takes to keep them.
-spec unacked_bytes(state()) -> non_neg_integer().
unacked_bytes(#outbound{unacked_bytes = Unacked, kept = Kept, later = Later}) ->
    Unacked - ?ITEM_BYTES * (length(Kept) + length(Later)).

-spec window_bytes(state()) -> pos_integer().
window_bytes(#outbound{window = Window}) -> weft_window_core:bytes(Window).

%% @doc The window, and what it was computed from.
-spec window(state()) -> map().
window(#outbound{window = Window}) -> weft_window_core:info(Window).

%% @doc The state as this version keeps it. Before, what is kept was a queue.
-spec code_change(state() | Before :: tuple()) -> state().
code_change(#outbound{window = Window, kept = Kept, later = Later} = State) ->
    State#outbound{window = weft_window_core:code_change(Window), kept = items(Kept),
                   later = items(Later)};
code_change({outbound, Window, Last, Acked, Unacked, Unasked, Kept, Asked, Floor, Bypass}) ->
    #outbound{window = weft_window_core:code_change(Window), last = Last, acked = Acked,
              unacked_bytes = Unacked, unasked_bytes = Unasked,
              kept = items(queue:to_list(Kept)), asked = Asked, floor = Floor, bypass = Bypass}.

%% @doc Payloads as this version keeps them. Before, a bypass payload was said to travel apart.
-spec items([item() | Before :: tuple()]) -> [item()].
items(Items) ->
    [setelement(2, Item, case element(2, Item) of
                             {apart, After, Floor} -> {bypass, After, Floor};
                             {apart_ack, After, Floor} -> {bypass_ack, After, Floor};
                             Kind -> Kind
                         end) || Item <- Items].
