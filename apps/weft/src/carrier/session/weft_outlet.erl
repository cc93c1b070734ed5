%% SPDX-License-Identifier: Apache-2.0
%% @doc What the VM has to send on a connection, on its way to the stream. Carries out what
%% `weft_outlet_core' decides.
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

-export([new/1, connected/2, at_once/2, fetch/1, take/3, may_suspend/2]).
-export([ask/3]).
-export_type([outlet/0]).

%% On the way of each message: not calls.
-compile({inline, [await/1]}).

-define(GET, fun erlang:dist_ctrl_get_data/1).

-type outlet() :: weft_outlet_core:outlet().

-spec new(QueueBytesMax :: pos_integer()) -> outlet().
new(BytesMax) ->
    weft_outlet_core:new(BytesMax, flag(self()) =/= unknown).

%% @doc The VM has a handle for the connection. From now on it tells the calling process when it
%% has frames, by the message `dist_data', for `at_once/2'.
-spec connected(erlang:dist_handle(), outlet()) -> outlet().
connected(Handle, Outlet) ->
    false = erlang:dist_ctrl_set_opt(Handle, get_size, true),
    erlang:dist_ctrl_get_data_notification(Handle),
    weft_outlet_core:connected(Handle, Outlet).

%% @doc The VM has frames (see `weft_outlet_core:at_once/4').
-spec at_once(weft_fair_queue_core:room() | none, outlet()) ->
          {all | more, iodata(), Bytes :: pos_integer(), outlet()} | {none, outlet()}.
at_once(Room, Outlet) ->
    case weft_outlet_core:at_once(Room, ?GET, weft_pins:version(), Outlet) of
        {_AllOrMore, _Payload, _Bytes, Fetched} = Sent -> await(Fetched), Sent;
        {none, Fetched} = Nothing -> await(Fetched), Nothing
    end.

await(Outlet) ->
    case weft_outlet_core:awaits(Outlet) of
        none -> ok;
        Handle -> erlang:dist_ctrl_get_data_notification(Handle)
    end.

%% @doc Fetches what the VM has, but not all at once. Only if there is something
%% (`weft_outlet_core:to_fetch/1').
-spec fetch(outlet()) -> outlet().
fetch(Outlet0) ->
    Outlet = weft_outlet_core:fetch(?GET, pinned(Outlet0)),
    await(Outlet),
    case weft_outlet_core:effects(Outlet) of
        none -> Outlet;
        {Effects, Next} -> carry_out(Effects, Next)
    end.

%% The classes of pinned processes, read again when the pins have changed.
pinned(Outlet) ->
    Seen = weft_outlet_core:pins(Outlet),
    case weft_pins:version() of
        Seen -> Outlet;
        Version -> weft_outlet_core:repinned(Version, weft_pins:classes(), Outlet)
    end.

%% @doc The next payload (see `weft_outlet_core:take/3').
-spec take(weft_fair_queue_core:room() | none, WindowBytes :: pos_integer(), outlet()) ->
          {iodata(), Bytes :: pos_integer(), weft_fair_queue_core:order(), outlet()} | empty.
take(Room, WindowBytes, Outlet0) ->
    case weft_outlet_core:take(Room, WindowBytes, Outlet0) of
        {Payload, Bytes, Order, Outlet} = Taken ->
            case weft_outlet_core:effects(Outlet) of
                none -> Taken;
                {Effects, Next} -> {Payload, Bytes, Order, carry_out(Effects, Next)}
            end;
        empty ->
            empty
    end.

carry_out(Effects, Outlet) ->
    lists:foreach(fun effect/1, Effects),
    Outlet.

effect({resume, Key}) ->
    resume(weft_frame:pid(Key, self()));
effect({SuspendOrAsk, Key}) ->
    Sender = weft_frame:pid(Key, self()),
    case {weft_never_stopped:contains(Sender), SuspendOrAsk} of
        {true, _} -> ok;
        {false, suspend} -> suspend(Sender);
        {false, ask} -> spawn_opt(?MODULE, ask, [self(), Key, Sender], [{priority, max}])
    end.

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
may_suspend(Key, Outlet0) ->
    {IsToSuspend, Outlet} = weft_outlet_core:may_suspend(Key, Outlet0),
    Sender = weft_frame:pid(Key, self()),
    _ = IsToSuspend andalso not weft_never_stopped:contains(Sender) andalso suspend(Sender),
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
