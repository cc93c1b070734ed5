%% SPDX-License-Identifier: Apache-2.0
%% @doc The rules of a session: what it does next, and when it has nothing to do.
%%
%% Pure. `weft_session' asks them for real sessions, the simulator for simulated ones. What waits to
%% be sent is in `weft_outlet_core', and what is repeated, and where it is written, is said by
%% `weft_stream_core'.
-module(weft_session_core).

-export([first/2, is_ready/2, may_rest/2]).

-compile({inline, [first/2]}).

%% @doc What comes next, if anything (`is_ready/2'): to repeat a payload or to send the next part of
%% one (`flush'); else to fetch and then to send, in the same step; else to send. Frames are fetched
%% also when nothing can be sent: the VM's queue is kept short.
-spec first(weft_stream_core:state(), weft_outlet_core:outlet()) -> flush | fetch | send.
first(Stream, Outlet) ->
    case weft_stream_core:to_flush(Stream) of
        true -> flush;
        false ->
            case weft_outlet_core:to_fetch(Outlet) of
                true -> fetch;
                false -> send
            end
    end.

%% @doc Is there something to do?
-spec is_ready(weft_stream_core:state(), weft_outlet_core:outlet()) -> boolean().
is_ready(Stream, Outlet) ->
    first(Stream, Outlet) =/= send
        orelse weft_outlet_core:ready(weft_stream_core:room(express, Stream), Outlet).

%% @doc May its stream rest (`weft_stream_core:rest/2'), so that it is not asked at the next tick of
%% the ticker? Not while there is something to do, and not while something waits in the queue.
-spec may_rest(weft_stream_core:state(), weft_outlet_core:outlet()) -> boolean().
may_rest(Stream, Outlet) ->
    weft_outlet_core:queued_bytes(Outlet) =:= 0 andalso not is_ready(Stream, Outlet).
