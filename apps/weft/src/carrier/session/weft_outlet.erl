%% SPDX-License-Identifier: Apache-2.0
%% @doc What the VM has to send on a connection, on its way to the stream.
%%
%% A value in the process of the session. Frames are fetched as soon as the VM has some, up to a
%% bound, whether they can be sent now or not: the VM stops all senders of a connection when its own
%% queue is long, and does not distinguish those that send much from those that send little. Frames
%% wait in a fair queue (`weft_fair_queue_core'), which also says which senders to stop. Over the
%% bound nothing is fetched, and the VM stops all senders as the last resort. `weft_fetch_core' says
%% how many frames are fetched, and which are joined.
%%
%% A sender over its share is suspended (erlang:suspend_process/2) and resumed later. If this
%% process ends, the VM resumes those that it has suspended. Some are never suspended: those in
%% `weft_never_stopped', and those with the process flag `async_dist' of OTP 25.3. To read the flag
%% of another process is to wait until that process is scheduled, or has collected its garbage. So a
%% process is spawned that asks, and its message `{may_suspend, Key}' is for `may_suspend/2'.
-module(weft_outlet).

-export([new/1, connected/2, more/1, at_once/1, to_fetch/1, fetch/1, ready/2, take/3, may_suspend/2,
         queued_bytes/1, info/1, code_change/1]).
-export([ask/3]).
-export_type([outlet/0]).

%% On the way of each message: not calls.
-compile({inline, [joined/2, fetched_all/1]}).

-define(GET, fun erlang:dist_ctrl_get_data/1).

-record(outlet, {handle :: erlang:dist_handle() | undefined,
                 more = false :: boolean(),
                 fair :: weft_fair_queue_core:state(),
                 classes = #{} :: weft_fair_queue_core:classes(),
                 pins = 0 :: integer(),
                 %% Does this VM have the flag async_dist, and for which processes is it being
                 %% asked?
                 has_flag :: boolean(),
                 asked = #{} :: #{weft_frame:key() => []}}).
-opaque outlet() :: #outlet{}.

-spec new(QueueBytesMax :: pos_integer()) -> outlet().
new(BytesMax) ->
    #outlet{fair = weft_fair_queue_core:new(BytesMax), has_flag = flag(self()) =/= unknown}.

%% @doc The VM has a handle for the connection. From now on it tells the calling process when it
%% has frames, by the message `dist_data', for `more/1'.
-spec connected(erlang:dist_handle(), outlet()) -> outlet().
connected(Handle, Outlet) ->
    false = erlang:dist_ctrl_set_opt(Handle, get_size, true),
    erlang:dist_ctrl_get_data_notification(Handle),
    Outlet#outlet{handle = Handle}.

-spec more(outlet()) -> outlet().
more(Outlet) -> Outlet#outlet{more = true}.

%% @doc The VM has frames. If they are small and nothing waits here, they are a payload that can be
%% sent at once, in order: most calls and messages are alone. `all' if that was all; otherwise more
%% is to be fetched, and so is everything if there is `none'.
-spec at_once(outlet()) -> {all | more, iodata(), Bytes :: pos_integer(), outlet()}
                         | {none, outlet()}.
at_once(#outlet{handle = Handle, fair = Fair, classes = Classes, pins = Pins} = Outlet) ->
    case Handle =/= undefined andalso weft_fetch_core:may_go_at_once(Classes, Fair)
        andalso weft_pins:version() =:= Pins of
        true -> joined(weft_fetch_core:join(?GET, Handle), Outlet);
        false -> {none, more(Outlet)}
    end.

joined({none, _, 0, _, _}, Outlet) -> {none, fetched_all(Outlet)};
joined({none, Batch, Bytes, Pieces, _}, Outlet) ->
    {all, weft_payload_fifo:flatten(Bytes, Pieces, Batch), Bytes, fetched_all(Outlet)};
joined({full, Batch, Bytes, Pieces, _}, Outlet) ->
    {more, weft_payload_fifo:flatten(Bytes, Pieces, Batch), Bytes, more(Outlet)};
joined({{Size, Data}, _, 0, _, _}, Outlet) -> {none, more(add(Size, Data, Outlet))};
joined({{Size, Data}, Batch, Bytes, Pieces, _}, Outlet) ->
    {more, weft_payload_fifo:flatten(Bytes, Pieces, Batch), Bytes, more(add(Size, Data, Outlet))}.

%% @doc Is there something to fetch, and room for it?
-spec to_fetch(outlet()) -> boolean().
to_fetch(#outlet{more = More, fair = Fair}) ->
    More andalso not weft_fair_queue_core:full(Fair).

%% @doc Fetches what the VM has, but not all at once. Only if there is something (`to_fetch/1').
-spec fetch(outlet()) -> outlet().
fetch(Outlet) ->
    apply_effects(fetched(pinned(Outlet))).

fetched(#outlet{handle = Handle, fair = Fair0, classes = Classes} = Outlet) ->
    case weft_fetch_core:fetch(?GET, Handle, Classes, Fair0) of
        {all, _, Fair} ->
            erlang:dist_ctrl_get_data_notification(Handle),
            Outlet#outlet{fair = Fair, more = false};
        {more, _, Fair} ->
            Outlet#outlet{fair = Fair}
    end.

%% The classes of pinned processes, read again when the pins have changed.
pinned(#outlet{pins = Seen, classes = Before, fair = Fair} = Outlet) ->
    case weft_pins:version() of
        Seen ->
            Outlet;
        Version ->
            Classes = weft_pins:classes(),
            Outlet#outlet{pins = Version, classes = Classes,
                          fair = weft_fair_queue_core:repinned(Before, Classes, Fair)}
    end.

fetched_all(#outlet{handle = Handle, more = More} = Outlet) ->
    erlang:dist_ctrl_get_data_notification(Handle),
    case More of
        true -> Outlet#outlet{more = false};
        false -> Outlet
    end.

add(Size, Data, #outlet{fair = Fair, classes = Classes} = Outlet) ->
    Outlet#outlet{fair = weft_fair_queue_core:add(Size, Data, Classes, Fair)}.

%% @doc Is there anything to send for which the window has room?
-spec ready(weft_fair_queue_core:room() | none, outlet()) -> boolean().
ready(none, _Outlet) -> false;
ready(Room, #outlet{fair = Fair}) -> weft_fair_queue_core:ready(Room, Fair).

%% @doc The next payload (see `weft_fair_queue_core:take/3').
-spec take(weft_fair_queue_core:room(), ProgressBytes :: pos_integer(), outlet()) ->
          {iodata(), Bytes :: pos_integer(), weft_fair_queue_core:order(), outlet()} | empty.
take(Room, ProgressBytes, #outlet{fair = Fair0} = Outlet) ->
    case weft_fair_queue_core:take(Room, ProgressBytes, Fair0) of
        {Payload, Bytes, Order, Fair} ->
            {Payload, Bytes, Order, apply_effects(Outlet#outlet{fair = Fair})};
        empty -> empty
    end.

apply_effects(#outlet{fair = Fair0} = Outlet) ->
    case weft_fair_queue_core:effects(Fair0) of
        {[], _} -> Outlet;
        {Effects, Fair} -> lists:foldl(fun apply_effect/2, Outlet#outlet{fair = Fair}, Effects)
    end.

apply_effect({suspend, Key}, #outlet{has_flag = HasFlag, asked = Asked} = Outlet) ->
    Sender = weft_frame:pid(Key, self()),
    case weft_never_stopped:contains(Sender) of
        true ->
            Outlet;
        false when HasFlag ->
            _ = spawn_opt(?MODULE, ask, [self(), Key, Sender], [{priority, max}]),
            Outlet#outlet{asked = Asked#{Key => []}};
        false ->
            suspend(Sender),
            Outlet
    end;
apply_effect({resume, Key}, #outlet{asked = Asked} = Outlet) when is_map_key(Key, Asked) ->
    Outlet#outlet{asked = maps:remove(Key, Asked)};
apply_effect({resume, Key}, Outlet) ->
    resume(weft_frame:pid(Key, self())),
    Outlet.

%% @private
-spec ask(Session :: pid(), weft_frame:key(), Sender :: pid()) -> ok.
ask(Session, Key, Sender) ->
    _ = flag(Sender) =:= {async_dist, false} andalso (Session ! {may_suspend, Key}),
    ok.

%% `undefined' for a process that is dead.
flag(Pid) ->
    try process_info(Pid, async_dist)
    catch error:badarg -> unknown
    end.

%% @doc A sender that was asked may be suspended, unless it has been resumed in the meantime.
-spec may_suspend(weft_frame:key(), outlet()) -> outlet().
may_suspend(Key, #outlet{asked = Asked} = Outlet) when is_map_key(Key, Asked) ->
    suspend(weft_frame:pid(Key, self())),
    Outlet#outlet{asked = maps:remove(Key, Asked)};
may_suspend(_Key, Outlet) ->
    Outlet.

%% The sender may be dead, or this process itself.
suspend(Sender) ->
    try erlang:suspend_process(Sender, [asynchronous, unless_suspending]) of
        true -> weft_counters:add(senders_suspended);
        false -> ok
    catch error:badarg -> ok
    end.

%% The process may not have been suspended.
resume(Sender) ->
    try erlang:resume_process(Sender)
    catch error:badarg -> false
    end.

%% @doc Bytes that wait to be sent.
-spec queued_bytes(outlet()) -> non_neg_integer().
queued_bytes(#outlet{fair = Fair}) -> weft_fair_queue_core:bytes(Fair).

%% @doc Bytes and senders that wait.
-spec info(outlet()) -> map().
info(#outlet{fair = Fair}) -> weft_fair_queue_core:info(Fair).

%% @doc The outlet as this version keeps it; to be called by its process when that changes code.
-spec code_change(outlet()) -> outlet().
code_change(#outlet{fair = Fair} = Outlet) ->
    Outlet#outlet{fair = weft_fair_queue_core:code_change(Fair)}.
