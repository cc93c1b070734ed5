%% SPDX-License-Identifier: Apache-2.0
%% @doc The attempts of a link to reach its peer: one at a time, and the pauses between them.
%%
%% After a failed attempt the next one has to wait, each time twice as long, up to a second. While
%% epmd does not know the name, pauses grow on slowly, up to five seconds: a node that is to come
%% dials by itself as a rule, and a cluster may have many that are not there. An attempt is a
%% process linked to the caller, which is that of the link. It sends {dialled, Pid, Result} at the
%% end, and gives the caller the socket of a result {ok, Socket, Peer, Address}. The end of a pause
%% is the message `dial'.
%%
%% An attempt that is without a connection for long is no call: what answers addresses may stand
%% still (epmd, name servers), or nothing answers at the address (a firewall lets only the calls of
%% the peer through). The call of the peer must not be refused for the sake of one that may never be
%% made (`weft_link_admission'). It sends {waiting, Pid} then, and {calling, Pid} when it has a
%% connection after all. If the peer has brought the link up meanwhile, it does not call: that would
%% replace a link that is in use. It ends as one that was refused for the peer's own call.
%%
%% An epmd that was restarted knows no names until its nodes register again. So that it does not
%% know a name proves something only together with a port that refuses: where the peer was dialled
%% before, or where it has said that it listens. A peer that has not said so, because it is of an
%% earlier version, has ended if its name is unknown for longer than nodes need to register again.
%% `weft_link_need' decides when to dial, `weft_link' what becomes of the lane.
-module(weft_link_dial).

-export([new/0, start/4, look_up/2, told/3, is_calling/1, is_under_way/1, may_start/1, ended/2,
         failed/3, is_gone/1, is_in_doubt/2, reached/2, tell_port/2, listening/2, pause/2,
         pause_is_over/1, cancel_pause/1, retry_later/1, retry_at_once/1]).
-export_type([dial/0]).

-define(RETRY_MIN_MS, 20).
-define(RETRY_MAX_MS, 1000).
%% So much longer for each time in a row that epmd did not know the name.
-define(RETRY_MISSING_MS, 100).
-define(RETRY_MISSING_MAX_MS, 5000).
%% How often in a row epmd did not know the name, and the port refused: a node is started again at
%% such a moment, too.
-define(MISSING_MAX, 2).
%% For so long where no port is known: nodes register again 2 s after their epmd has ended
%% (`erl_epmd'), on a busy node somewhat later.
-define(REGISTERED_MS, 3000).

%% Of the packet that says where this node listens.
-define(LISTENING_BYTES, 3).
%% For so long an attempt without a connection is one that is about to have it.
-define(CONNECTING_MS, 500).

-record(dial, {%% A third element says that the attempt is without a connection for long.
               attempt :: {pid(), weft_hello:purpose()} | {pid(), weft_hello:purpose(), waiting}
                        | undefined,
               timer :: reference() | undefined,
               retry_ms = ?RETRY_MIN_MS :: pos_integer(),
               %% How often in a row epmd did not know the name, from when to when.
               missing = none :: none | {pos_integer(), FirstMs :: integer(), LastMs :: integer()},
               %% The address where the peer was reached last, or the port that it has named.
               address :: weft_dialer:known()}).
-opaque dial() :: #dial{}.

-spec new() -> dial().
new() -> #dial{}.

%% @doc Begins an attempt, for the link or for a further lane of the link with this token. IsUp says
%% whether the link is up, in the process of the attempt.
-spec start(node(), link | {weft_hello:purpose(), Token :: binary()}, IsUp :: fun(() -> boolean()),
            dial()) -> dial().
start(Node, What, IsUp, #dial{attempt = undefined, address = Address} = Dial) ->
    Self = self(),
    TimeoutMs = weft_config:get(handshake_timeout_ms),
    Pid = spawn_opt(fun() ->
                            Waiting = erlang:send_after(?CONNECTING_MS, Self, {waiting, self()}),
                            Calling = fun() -> calling(Waiting, {What, IsUp}, Self) end,
                            Result = weft_dialer:dial(Node, What, Address, Calling, TimeoutMs),
                            hand_over(Result, Self),
                            Self ! {dialled, self(), Result}
                    end, [link, {priority, weft_turn:priority(control)}]),
    Dial#dial{attempt = {Pid, purpose(What)}}.

calling(Waiting, {What, IsUp}, Link) ->
    case erlang:cancel_timer(Waiting) =:= false andalso What =:= link andalso IsUp() of
        true -> {error, simultaneous};
        false -> Link ! {calling, self()}, ok
    end.

purpose(link) -> link;
purpose({Purpose, _Token}) -> Purpose.

hand_over({ok, Socket, _Peer, _Address}, Link) ->
    ok = weft_transport:controlling_process(Socket, Link);
hand_over({error, _}, _Link) ->
    ok.

%% @doc Only asks for the address: the result is {error, no_such_node}, as of an attempt, or known.
%% No call either.
-spec look_up(node(), dial()) -> dial().
look_up(Node, #dial{attempt = undefined} = Dial) ->
    Self = self(),
    TimeoutMs = weft_config:get(handshake_timeout_ms),
    Pid = spawn_opt(fun() -> Self ! {dialled, self(), weft_dialer:look_up(Node, TimeoutMs)} end,
                    [link, {priority, weft_turn:priority(control)}]),
    Dial#dial{attempt = {Pid, link, waiting}}.

%% @doc The message {waiting, Pid} or {calling, Pid} came.
-spec told(waiting | calling, pid(), dial()) -> dial().
told(waiting, Pid, #dial{attempt = {Pid, Purpose}} = Dial) ->
    Dial#dial{attempt = {Pid, Purpose, waiting}};
told(calling, Pid, #dial{attempt = {Pid, Purpose, waiting}} = Dial) ->
    Dial#dial{attempt = {Pid, Purpose}};
told(_, _Earlier, Dial) ->
    Dial.

%% @doc Is the peer about to be called, or being called just now? Not for a further lane, of which
%% nothing becomes when the link is down.
-spec is_calling(dial()) -> boolean().
is_calling(#dial{attempt = {_Pid, link}}) -> true;
is_calling(_WaitingOrNone) -> false.

-spec is_under_way(dial()) -> boolean().
is_under_way(#dial{attempt = Attempt}) -> Attempt =/= undefined.

%% @doc No attempt and no pause?
-spec may_start(dial()) -> boolean().
may_start(#dial{attempt = Attempt, timer = Timer}) ->
    Attempt =:= undefined andalso Timer =:= undefined.

%% @doc The process of an attempt has ended, or told its result: what the attempt was for.
-spec ended(pid(), dial()) -> {weft_hello:purpose(), dial()} | none.
ended(Pid, #dial{attempt = Attempt} = Dial) when element(1, Attempt) =:= Pid ->
    {element(2, Attempt), Dial#dial{attempt = undefined}};
ended(_Pid, _Dial) ->
    none.

%% @doc An attempt to bring the link up failed.
-spec failed(Reason :: term(), NowMs :: integer(), dial()) -> dial().
failed(Reason, NowMs, #dial{missing = Missing} = Dial) ->
    weft_counters:add(dials_failed),
    Dial#dial{missing = case Reason of no_such_node -> missing(NowMs, Missing); _ -> none end}.

missing(NowMs, {Times, FirstMs, _LastMs}) -> {Times + 1, FirstMs, NowMs};
missing(NowMs, _NotMissing) -> {1, NowMs, NowMs}.

%% @doc Has the peer stopped? epmd forgets a name as soon as its node stops.
-spec is_gone(dial()) -> boolean().
is_gone(#dial{missing = {Times, FirstMs, LastMs}} = Dial) when Times >= ?MISSING_MAX ->
    is_proof(Dial) orelse LastMs - FirstMs >= ?REGISTERED_MS;
is_gone(_Dial) ->
    false.

%% A tunnel says of no node that it has stopped without being sure.
is_proof(#dial{address = Known}) -> Known =/= undefined orelse weft_tunnel:provider() =/= none.

%% @doc Is it worth another attempt to know whether the peer has stopped, after one that failed for
%% this reason? epmd may forget the name a moment after the port begins to refuse. There are few
%% such attempts: a port may also refuse for ever.
-spec is_in_doubt(Reason :: term(), dial()) -> boolean().
is_in_doubt(no_such_node, Dial) -> not is_gone(Dial);
is_in_doubt(econnrefused, #dial{retry_ms = RetryMs}) -> RetryMs < ?RETRY_MAX_MS;
is_in_doubt(_Reason, _Dial) -> false.

%% @doc There is a lane; the peer was dialled at this address, or has dialled (`undefined').
-spec reached(weft_dialer:address() | undefined, dial()) -> dial().
reached(undefined, Dial) -> (retry_at_once(Dial))#dial{missing = none};
reached(Address, Dial) -> (reached(undefined, Dial))#dial{address = Address}.

%% @doc The peer that was dialled knows no address of this node. It needs one to find out whether
%% this node has ended.
-spec tell_port(weft_handshake:peer(), weft_lane:lane()) -> ok.
tell_port(#{role := dialer}, Lane) ->
    _ = [weft_lane:send(Lane, weft_wire:listening(Port), ?LISTENING_BYTES)
         || {ok, Port} <- [weft_identity:port()]],
    ok;
tell_port(#{role := listener}, _Lane) ->
    ok.

%% @doc The peer, which has dialled, says that it can be dialled at that port. It may have been
%% another one when the peer was dialled from here, in an earlier incarnation.
-spec listening(inet:port_number(), dial()) -> dial().
listening(Port, #dial{address = {Ip, _Before}} = Dial) when is_tuple(Ip) ->
    Dial#dial{address = {Ip, Port}};
listening(Port, Dial) ->
    Dial#dial{address = {listening, Port}}.

%% @doc No attempt begins before that; a pause that is already running is not changed.
-spec pause(PauseMs :: non_neg_integer(), dial()) -> dial().
pause(PauseMs, #dial{timer = undefined} = Dial) ->
    Dial#dial{timer = erlang:send_after(PauseMs, self(), dial)};
pause(_PauseMs, Dial) ->
    Dial.

%% @doc The message `dial' came.
-spec pause_is_over(dial()) -> dial().
pause_is_over(Dial) -> Dial#dial{timer = undefined}.

-spec cancel_pause(dial()) -> dial().
cancel_pause(#dial{timer = undefined} = Dial) ->
    Dial;
cancel_pause(#dial{timer = Timer} = Dial) ->
    _ = erlang:cancel_timer(Timer),
    Dial#dial{timer = undefined}.

%% @doc A pause, and a longer one the next time.
-spec retry_later(dial()) -> dial().
retry_later(#dial{retry_ms = RetryMs, missing = Missing} = Dial) ->
    MaxMs = max(?RETRY_MAX_MS, min(?RETRY_MISSING_MAX_MS, times(Missing) * ?RETRY_MISSING_MS)),
    pause(RetryMs, Dial#dial{retry_ms = min(MaxMs, 2 * RetryMs)}).

times({Times, _FirstMs, _LastMs}) -> Times;
times(_NotMissing) -> 0.

%% @doc No pause now, and a short one the next time.
-spec retry_at_once(dial()) -> dial().
retry_at_once(Dial) ->
    cancel_pause(Dial#dial{retry_ms = ?RETRY_MIN_MS}).
