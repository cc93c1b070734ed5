%% SPDX-License-Identifier: Apache-2.0
%% @doc Which process delivers to the VM what the peer of a session sends.
%%
%% If the session begins on the link to its peer, the process of that link does: it reads the socket
%% anyway, so no process stands between. It stays the one also when the session later goes another
%% way. A session that begins on a circuit has a process of its own for it (`weft_input_proc'). What
%% either of them does with packets is `weft_input'.
-module(weft_session_input).

-export([of_initiator/2, of_acceptor/2, connected/2, finish/1]).
-export_type([input/0]).

%% A process that delivers input waits for nobody, so it is done when it has had its turn. One that
%% hangs must not hold up the kernel, which waits for the end of a session.
-define(FINISH_MS, 1000).

%% Is it the process of a link?
-type input() :: {pid(), IsHosted :: boolean()}.

%% @doc For a session that the calling process begins, by the way that leads to Node now.
-spec of_initiator(node(), weft_session_counters:counters()) -> input().
of_initiator(Node, Counters) ->
    of_initiator(weft_next_hop:choose(Node), Node, Counters).

of_initiator(direct, Node, Counters) ->
    case weft_links:ensure(Node) of
        {ok, Link} -> weft_link_handler:tell(Link, {host, self(), Counters}), {Link, true};
        {error, not_running} -> own_process(Counters)
    end;
of_initiator(_ViaOrNoRoute, _Node, Counters) ->
    own_process(Counters).

%% @doc For a session of the calling process that a peer has begun; the link that the peer came by
%% has said which process it is to be.
-spec of_acceptor(Host :: pid() | own_process, weft_session_counters:counters()) -> input().
of_acceptor(own_process, Counters) -> own_process(Counters);
of_acceptor(Link, _Counters) -> {Link, true}.

own_process(Counters) ->
    {ok, Input} = weft_input_proc:start_link(self(), Counters, weft_config:get(window_bytes)),
    {Input, false}.

%% @doc The VM has a handle for the connection of the calling process: its input is delivered from
%% now on.
-spec connected(erlang:dist_handle(), input()) -> ok.
connected(Handle, {Link, true}) -> weft_link_handler:tell(Link, {connected, self(), Handle});
connected(Handle, {Input, false}) -> weft_input_proc:connected(Input, Handle).

%% @doc Returns when what has come so far for the calling session is with the VM, and nothing is
%% delivered any more, or after a second. The session ends then, which is the nodedown. If it ended
%% beside the delivery, messages could be lost that had come before, and one could come after the
%% nodedown.
-spec finish(input()) -> ok.
finish({Process, IsHosted}) ->
    Monitor = erlang:monitor(process, Process),
    ok = tell_finish(IsHosted, Process, Monitor),
    receive
        {weft_input, finished, Monitor} -> ok;
        {'DOWN', Monitor, process, Process, _Reason} -> ok
    after ?FINISH_MS -> ok
    end.

tell_finish(true, Link, Monitor) -> weft_link_handler:tell(Link, {finish, self(), Monitor});
tell_finish(false, Input, _Monitor) -> weft_input_proc:finish(Input).
