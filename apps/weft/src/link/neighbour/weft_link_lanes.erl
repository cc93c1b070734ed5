%% SPDX-License-Identifier: Apache-2.0
%% @doc The lanes that a link has, by their sockets: what is read from each, which one is the first,
%% and which ones are to be pinged or are dead.
%%
%% Belongs to the process of the link, which owns the sockets. `weft_lane_plan' says which lanes
%% there should be; the contents of packets do not matter here.
-module(weft_link_lanes).

-export([add/4, remove/2, received/2, is_heard/1, answered/2, ticked/2, check/2, rest/1,
         first/1, kept/2, all/1, keys/1, roles/1, of_writer/2, lane/2, peername/2, info/1,
         say_goodbye/1, abort/1]).
-export_type([lanes/0]).

%% On the way of each message: not calls.
-compile({inline, [count/2]}).

%% A lane on which something is heard all the time is pinged at one check of so many.
-define(REFRESH_CHECKS, 5).
%% So long what waits in writers has to get out before lanes are closed.
-define(GOODBYE_MS, 300).

-record(row, {lane :: weft_lane:lane(),
              role :: dialer | listener,
              peername :: {inet:ip_address(), inet:port_number()} | undefined,
              until_more :: non_neg_integer(),
              packets = 0 :: non_neg_integer(),
              watch :: weft_lane_watch:watch()}).
%% A map, so that guards can tell whether a socket is one of these, and whether there is any.
-type lanes() :: #{weft_transport:socket() => #row{}}.

%% @doc Adds a lane, which is pinged now. After UntilMore packets the socket has to be asked for
%% more.
-spec add(weft_lane:lane(), weft_handshake:peer(), UntilMore :: pos_integer(), lanes()) -> lanes().
add(Lane, #{role := Role, peername := Peername}, UntilMore, Lanes) ->
    weft_counters:add(lanes_opened),
    Socket = weft_lane:socket(Lane),
    Watch = weft_lane_watch:new(now_ms(), weft_transport:sent_packets(Socket)),
    Lanes#{Socket => #row{lane = Lane, role = Role, peername = Peername, until_more = UntilMore,
                          watch = Watch}}.

-spec remove(weft_lane:lane(), lanes()) -> lanes().
remove(Lane, Lanes) ->
    weft_counters:add(lanes_closed),
    maps:remove(weft_lane:socket(Lane), Lanes).

%% @doc A packet came from this socket. Returns the lane; asks the socket for more in time.
-spec received(weft_transport:socket(), lanes()) -> {weft_lane:lane(), lanes()}.
received(Socket, Lanes) ->
    #{Socket := #row{lane = Lane} = Row} = Lanes,
    {Lane, Lanes#{Socket := count(Socket, Row)}}.

count(Socket, #row{until_more = 1, packets = Packets} = Row) ->
    %% An error here shows up as a closed socket.
    _ = weft_transport:more(Socket, weft_transport:half()),
    Row#row{until_more = weft_transport:half(), packets = Packets + 1};
count(_Socket, #row{until_more = Left, packets = Packets} = Row) ->
    Row#row{until_more = Left - 1, packets = Packets + 1}.

%% @doc Has the peer said anything on any of them?
-spec is_heard(lanes()) -> boolean().
is_heard(Lanes) -> lists:any(fun(#row{packets = Packets}) -> Packets > 0 end, maps:values(Lanes)).

%% @doc A ping of the peer was answered on this lane.
-spec answered(weft_lane:lane(), lanes()) -> lanes().
answered(Lane, Lanes) ->
    Socket = weft_lane:socket(Lane),
    #{Socket := #row{watch = Watch} = Row} = Lanes,
    Lanes#{Socket := Row#row{watch = weft_lane_watch:answered(1, Watch)}}.

%% @doc A tick of the kernel has come just now. If the lane is the only one, and at rest, the next
%% check can wait.
-spec ticked(weft_link_check:check(), lanes()) -> {weft_link_check:check(), lanes()}.
ticked(Check, Lanes) when map_size(Lanes) =:= 1 ->
    case weft_link_check:later(Check) of
        Check -> {Check, Lanes};
        Later -> {Later, maps:map(fun(_Socket, Row) -> heard(now_ms(), Row) end, Lanes)}
    end;
ticked(Check, Lanes) ->
    {Check, Lanes}.

heard(NowMs, #row{packets = Packets, watch = Watch} = Row) ->
    Row#row{watch = weft_lane_watch:heard(NowMs, Packets, Watch)}.

%% @doc The sockets that do not answer any more, the lanes to ping, and whether all lanes may rest.
-spec check(NowMs :: integer(), lanes()) ->
          {Dead :: [weft_transport:socket()], ToPing :: [weft_lane:lane()], MayRest :: boolean(),
           lanes()}.
check(NowMs, Lanes) ->
    Limits = #{timeout_ms => weft_config:get(link_timeout_ms),
               idle_ms => weft_link_keys:idle_keepalive_ms(),
               refresh_ms => ?REFRESH_CHECKS * weft_config:get(keepalive_ms)},
    Checked = maps:map(fun(Socket, Row) -> check(NowMs, Socket, Row, Limits) end, Lanes),
    {[Socket || {Socket, {dead, _}} <- maps:to_list(Checked)],
     [Lane || {ping, #row{lane = Lane}} <- maps:values(Checked)],
     lists:all(fun({What, _}) -> What =:= rest end, maps:values(Checked)),
     maps:map(fun(_, {_, Row}) -> Row end, Checked)}.

check(NowMs, Socket, #row{lane = Lane, packets = Packets, watch = Before} = Row, Limits) ->
    ok = weft_lane:settle(NowMs, Lane),
    Watch0 = moved(NowMs, Lane, weft_lane_watch:answered(weft_lane:answers(Lane), Before)),
    {What, Watch} = weft_lane_watch:check(NowMs, {Packets, weft_transport:sent_packets(Socket)},
                                          {Watch0, Limits}),
    {What, Row#row{watch = Watch}}.

%% The kernel at the other end acknowledges pings also where the node has stopped. So what is
%% acknowledged tells something only while no ping is sent.
moved(NowMs, Lane, Watch) ->
    case weft_lane_watch:is_asked(Watch) of
        true -> weft_lane_watch:moved(NowMs, progress(Lane), Watch);
        false -> Watch
    end.

progress(Lane) ->
    case {weft_transport:progress(weft_lane:socket(Lane)), weft_lane_ping:is_busy(Lane)} of
        {{Received, Acked}, true} -> {Received, Acked};
        {{Received, _Acked}, false} -> {Received, idle};
        {unknown, _} -> unknown
    end.

%% @doc All lanes are at rest from now on (`weft_lane:rest/1'). False if one was used after the last
%% check.
-spec rest(lanes()) -> boolean().
rest(Lanes) ->
    lists:foreach(fun weft_lane:rest/1, all(Lanes)),
    lists:all(fun({Socket, #row{lane = Lane, watch = Watch}}) ->
                      weft_lane:queued_bytes(Lane) =:= 0
                          andalso weft_lane_watch:is_unchanged(weft_transport:sent_packets(Socket),
                                                               Watch)
              end, maps:to_list(Lanes)).

%% @doc The one with the smallest key.
-spec first(lanes()) -> weft_lane:lane() | none.
first(Lanes) ->
    case lists:sort([{weft_lane:key(Lane), Lane} || Lane <- all(Lanes)]) of
        [{_, First} | _] -> First;
        [] -> none
    end.

%% @doc That lane as long as it is one of these, else the first one.
-spec kept(weft_lane:lane() | none, lanes()) -> weft_lane:lane() | none.
kept(Lane, Lanes) ->
    case lists:member(Lane, all(Lanes)) of
        true -> Lane;
        false -> first(Lanes)
    end.

-spec all(lanes()) -> [weft_lane:lane()].
all(Lanes) -> [Lane || #row{lane = Lane} <- maps:values(Lanes)].

-spec keys(lanes()) -> [weft_lane:key()].
keys(Lanes) -> [weft_lane:key(Lane) || Lane <- all(Lanes)].

%% @doc What each of them is, and who has brought it up.
-spec roles(lanes()) -> [{weft_lane:lane(), weft_lane:key(), dialer | listener}].
roles(Lanes) ->
    [{Lane, weft_lane:key(Lane), Role} || #row{lane = Lane, role = Role} <- maps:values(Lanes)].

%% @doc The lane that this process writes to.
-spec of_writer(pid(), lanes()) -> weft_lane:lane() | none.
of_writer(Pid, Lanes) ->
    case [Lane || Lane <- all(Lanes), weft_lane:writer(Lane) =:= Pid] of
        [Lane] -> Lane;
        [] -> none
    end.

%% @doc The lane of that socket.
-spec lane(weft_transport:socket(), lanes()) -> weft_lane:lane().
lane(Socket, Lanes) ->
    #{Socket := #row{lane = Lane}} = Lanes,
    Lane.

%% @doc The address at the other end of that socket.
-spec peername(weft_transport:socket(), lanes()) ->
          {inet:ip_address(), inet:port_number()} | undefined.
peername(Socket, Lanes) ->
    #{Socket := #row{peername = Peername}} = Lanes,
    Peername.

%% @doc What each lane is, what waits in it, and what its socket has counted (`inet:getstat/1').
-spec info(lanes()) -> [map()].
info(Lanes) ->
    [#{class => weft_lane:class(Lane), index => weft_lane:index(Lane), packets_in => Packets,
       peername => Peername, queued_bytes => weft_lane:queued_bytes(Lane),
       socket => weft_transport:statistics(Socket)}
     || {Socket, #row{lane = Lane, peername = Peername, packets = Packets}} <- maps:to_list(Lanes)].

%% @doc Closes all when what was sent is out, the last of which is a goodbye. A peer that does not
%% read is not waited for.
-spec say_goodbye(lanes()) -> ok.
say_goodbye(Lanes) ->
    DeadlineMs = now_ms() + ?GOODBYE_MS,
    Waiting = [Lane || Lane <- all(Lanes),
                       weft_lane:send(Lane, weft_wire:goodbye(), 1, notify) =:= queued],
    lists:foreach(fun(Lane) -> await_out(weft_lane:socket(Lane), DeadlineMs) end, Waiting),
    lists:foreach(fun weft_lane:close/1, all(Lanes)).

await_out(Socket, DeadlineMs) ->
    receive {weft_lane, ready, Socket} -> ok
    after max(0, DeadlineMs - now_ms()) -> ok
    end.

%% @doc Closes all at once.
-spec abort(lanes()) -> ok.
abort(Lanes) ->
    weft_counters:add(lanes_closed, map_size(Lanes)),
    lists:foreach(fun weft_lane:abort/1, all(Lanes)).

now_ms() -> erlang:monotonic_time(millisecond).
