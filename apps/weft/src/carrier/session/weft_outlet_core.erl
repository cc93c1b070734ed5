%% SPDX-License-Identifier: Apache-2.0
%% @doc The rules for what the VM has to send on a connection, on its way to the stream: what goes
%% past the queue, when more is fetched, what is sent next, and which senders are stopped.
%%
%% Pure, but for what it is given to get a frame with (see `weft_fetch_core'). `weft_outlet' carries
%% out what is decided here for the VM, the simulator for simulated senders. The handle of the
%% connection, which frames are got from, is opaque.
%%
%% Frames wait in a fair queue (`weft_fair_queue_core'). The VM says once that it has frames. When
%% all were fetched it has to be asked to say so again: `awaits/1' gives the handle then.
-module(weft_outlet_core).

-export([new/2, connected/2, handle/1, awaits/1, more/1, at_once/4, to_fetch/1, fetch/2, pins/1,
         repinned/3, ready/2, take/3, effects/1, may_suspend/2, queued_bytes/1, info/1,
         code_change/1]).
-export_type([outlet/0, effect/0]).

%% On the way of each message: not calls.
-compile({inline, [joined/2, fetched_all/2, behind/3]}).

%% How many windows a message in progress may take before other senders have their turn.
-define(PROGRESS_WINDOWS, 16).

-record(outlet, {handle :: handle() | undefined,
                 more = false :: boolean(),
                 fair :: weft_fair_queue_core:state(),
                 classes = #{} :: weft_fair_queue_core:classes(),
                 pins = 0 :: integer(),
                 %% Does the VM know the flag async_dist, so that a sender has to be asked for it?
                 %% And those that were to be suspended, and have not been asked or answered yet.
                 has_flag :: boolean(),
                 asked = #{} :: #{weft_frame:key() => []}}).
-opaque outlet() :: #outlet{}.
-type handle() :: term().
%% ask: whether that sender may be suspended; then `may_suspend/2'.
-type effect() :: {suspend | ask | resume, weft_frame:key()}.

%% @doc HasFlag: may senders have a flag not to be suspended, so that each has to be asked?
-spec new(QueueBytesMax :: pos_integer(), HasFlag :: boolean()) -> outlet().
new(BytesMax, HasFlag) ->
    #outlet{fair = weft_fair_queue_core:new(BytesMax), has_flag = HasFlag}.

%% @doc From now on frames are got from there.
-spec connected(handle(), outlet()) -> outlet().
connected(Handle, Outlet) -> Outlet#outlet{handle = Handle}.

-spec handle(outlet()) -> handle() | undefined.
handle(#outlet{handle = Handle}) -> Handle.

%% @doc The handle, if nothing more is to be fetched: the VM has to be asked to say when it has
%% more.
-spec awaits(outlet()) -> handle() | none.
awaits(#outlet{more = false, handle = Handle}) when Handle =/= undefined -> Handle;
awaits(_Outlet) -> none.

%% @doc There may be frames to be fetched.
-spec more(outlet()) -> outlet().
more(Outlet) -> Outlet#outlet{more = true}.

%% @doc There are frames. If there is room for all, so that nothing is to be repeated before, if
%% nothing waits here, and if they are small, they are a payload that can be sent at once, in order:
%% most calls and messages are alone. The frame behind them waits in the queue then. `all' if that
%% was all; otherwise more is to be fetched, and so is everything if there is `none'. Pins is the
%% version of the classes that there are now: if it is another one, they are read first.
-spec at_once(weft_fair_queue_core:room() | none, weft_fetch_core:get(handle()), Pins :: integer(),
              outlet()) ->
          {all | more, iodata(), Bytes :: pos_integer(), outlet()} | {none, outlet()}.
at_once(all, Get, Pins, #outlet{handle = Handle, fair = Fair, classes = Classes,
                                pins = Pins} = Outlet)
  when Handle =/= undefined, map_size(Classes) =:= 0 ->
    case weft_fair_queue_core:is_idle(Fair) of
        true -> joined(weft_fetch_core:join(Get, Handle), Outlet);
        false -> {none, more(Outlet)}
    end;
at_once(_Room, _Get, _Pins, Outlet) ->
    {none, more(Outlet)}.

joined({none, _, 0, _, Handle}, Outlet) ->
    {none, fetched_all(Handle, Outlet)};
joined({none, Batch, Bytes, Pieces, Handle}, Outlet) ->
    {all, weft_payload_fifo:flatten(Bytes, Pieces, Batch), Bytes, fetched_all(Handle, Outlet)};
joined({full, Batch, Bytes, Pieces, Handle}, Outlet) ->
    {more, weft_payload_fifo:flatten(Bytes, Pieces, Batch), Bytes,
     Outlet#outlet{handle = Handle, more = true}};
joined({Frame, _, 0, _, Handle}, Outlet) ->
    {none, behind(Frame, Handle, Outlet)};
joined({Frame, Batch, Bytes, Pieces, Handle}, Outlet) ->
    {more, weft_payload_fifo:flatten(Bytes, Pieces, Batch), Bytes, behind(Frame, Handle, Outlet)}.

fetched_all(Handle, #outlet{handle = Handle, more = false} = Outlet) -> Outlet;
fetched_all(Handle, Outlet) -> Outlet#outlet{handle = Handle, more = false}.

behind(Frame, Handle, #outlet{fair = Fair, classes = Classes} = Outlet) ->
    Outlet#outlet{handle = Handle, more = true,
                  fair = weft_fair_queue_core:add(element(1, Frame), element(2, Frame), Classes,
                                                  Fair)}.

%% @doc Is there something to fetch, and room for it?
-spec to_fetch(outlet()) -> boolean().
to_fetch(#outlet{more = More, fair = Fair}) ->
    More andalso not weft_fair_queue_core:full(Fair).

%% @doc Fetches what there is, but not all at once. Only if there is something (`to_fetch/1').
-spec fetch(weft_fetch_core:get(handle()), outlet()) -> outlet().
fetch(Get, #outlet{handle = Handle0, fair = Fair0, classes = Classes} = Outlet) ->
    {Left, Handle, Fair} = weft_fetch_core:fetch(Get, Handle0, Classes, Fair0),
    Outlet#outlet{handle = Handle, fair = Fair, more = Left =:= more}.

%% @doc The version of the classes that are known here.
-spec pins(outlet()) -> integer().
pins(#outlet{pins = Pins}) -> Pins.

%% @doc The classes of pinned processes are these from now on.
-spec repinned(Pins :: integer(), weft_fair_queue_core:classes(), outlet()) -> outlet().
repinned(Pins, Classes, #outlet{classes = Before, fair = Fair} = Outlet) ->
    Outlet#outlet{pins = Pins, classes = Classes,
                  fair = weft_fair_queue_core:repinned(Before, Classes, Fair)}.

%% @doc Is there anything to send for which there is room?
-spec ready(weft_fair_queue_core:room() | none, outlet()) -> boolean().
ready(none, _Outlet) -> false;
ready(Room, #outlet{fair = Fair}) -> weft_fair_queue_core:ready(Room, Fair).

%% @doc The next payload (see `weft_fair_queue_core:take/3').
-spec take(weft_fair_queue_core:room() | none, WindowBytes :: pos_integer(), outlet()) ->
          {iodata(), Bytes :: pos_integer(), weft_fair_queue_core:order(), outlet()} | empty.
take(none, _WindowBytes, _Outlet) ->
    empty;
take(Room, WindowBytes, #outlet{fair = Fair0} = Outlet) ->
    case weft_fair_queue_core:take(Room, ?PROGRESS_WINDOWS * WindowBytes, Fair0) of
        {Payload, Bytes, Order, Fair} -> {Payload, Bytes, Order, Outlet#outlet{fair = Fair}};
        empty -> empty
    end.

%% @doc What is to be done to senders, after something was fetched or taken.
-spec effects(outlet()) -> {[effect()], outlet()} | none.
effects(#outlet{fair = Fair0} = Outlet0) ->
    case weft_fair_queue_core:effects(Fair0) of
        {[], _} ->
            none;
        {Effects, Fair} ->
            {Done, Outlet} = lists:foldl(fun effect/2, {[], Outlet0#outlet{fair = Fair}}, Effects),
            {lists:reverse(Done), Outlet}
    end.

effect({suspend, Key}, {Done, #outlet{has_flag = true, asked = Asked} = Outlet}) ->
    {[{ask, Key} | Done], Outlet#outlet{asked = Asked#{Key => []}}};
effect({resume, Key}, {Done, #outlet{asked = Asked} = Outlet}) when is_map_key(Key, Asked) ->
    {Done, Outlet#outlet{asked = maps:remove(Key, Asked)}};
effect(Effect, {Done, Outlet}) ->
    {[Effect | Done], Outlet}.

%% @doc A sender that was asked may be suspended, unless it was resumed in the meantime.
-spec may_suspend(weft_frame:key(), outlet()) -> {IsToSuspend :: boolean(), outlet()}.
may_suspend(Key, #outlet{asked = Asked} = Outlet) ->
    {is_map_key(Key, Asked), Outlet#outlet{asked = maps:remove(Key, Asked)}}.

%% @doc Bytes that wait to be sent.
-spec queued_bytes(outlet()) -> non_neg_integer().
queued_bytes(#outlet{fair = Fair}) -> weft_fair_queue_core:bytes(Fair).

%% @doc Bytes and senders that wait.
-spec info(outlet()) -> map().
info(#outlet{fair = Fair}) -> weft_fair_queue_core:info(Fair).

%% @doc The outlet as this version keeps it.
-spec code_change(outlet()) -> outlet().
code_change(#outlet{fair = Fair} = Outlet) ->
    Outlet#outlet{fair = weft_fair_queue_core:code_change(Fair)}.
