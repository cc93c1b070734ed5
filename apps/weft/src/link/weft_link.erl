%% SPDX-License-Identifier: Apache-2.0
%% @doc The link to one peer: its lanes, their life and death, and the reading of them all.
%%
%% One process per peer. It owns the sockets of the lanes and reads them; keepalive and control
%% messages end here, all other packets go to the handler above (`weft_switch'). Anybody sends
%% through `weft_lane'.
%% The link is brought up when the overlay wants it or something in the handler needs it: first at
%% once, then with pauses that double up to a second. Either side may dial; `weft_links:admit/3'
%% settles crossing calls. A lane that does not answer for link_timeout_ms is closed.
%% A peer whose name epmd no longer knows, and whose port refuses, twice, is `gone'.
%%
%% A link belongs to the side that dialled it. That one releases (closes) it once the overlay does
%% not want it any more and sessions can go another way; if the other side wants it, it dials.
-module(weft_link).
-behaviour(gen_server).

-export([start_link/4, attach/4, want/2, agree/2, decider/2, break/1, retry/1, subscribe/3,
         unsubscribe/2, handler/2, info/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(RETRY_MIN_MS, 20).
-define(RETRY_MAX_MS, 1000).
%% Lanes of one link, those of channels included.
-define(LANES_MAX, 256).
%% Time for the router to hear that a link was released, before sessions may ask for it again.
-define(RELEASED_MS, 1000).
%% The side that did not dial the lost lane leaves the other this much time to do it again.
-define(COURTESY_MS, 200).

-record(lane, {lane :: weft_lane:lane(),
               role :: dialer | listener,
               peername :: {inet:ip_address(), inet:port_number()} | undefined,
               until_more :: non_neg_integer(),
               packets = 0 :: non_neg_integer(),
               watch :: weft_lane_watch:watch()}).

-record(link, {key :: weft_links:key(),
               handler :: module(),
               above :: weft_link_handler:state(),
               cores :: weft_link_cores:cores(),
               lanes = #{} :: #{weft_transport:socket() => #lane{}},
               peer :: weft_handshake:peer() | undefined,
               address :: weft_dialer:address() | undefined,
               wish = weft_link_wish:new() :: weft_link_wish:wish(),
               is_released = false :: boolean(),
               was_used = false :: boolean(),
               dialer :: {pid(), link | weft_hello:purpose()} | undefined,
               dial_timer :: reference() | undefined,
               retry_ms = ?RETRY_MIN_MS :: pos_integer(),
               missing = 0 :: non_neg_integer(),
               rtt_us :: pos_integer() | undefined,
               last_error :: term(),
               ups = 0 :: non_neg_integer(),
               up_us = 0 :: integer(),
               idle_since_ms :: integer()}).

-spec start_link(weft_links:key(), module(), [{weft_links:core(), pid()}],
                 Decider :: weft_links:core() | none) -> {ok, pid()}.
start_link(Key, Handler, Subscribers, Decider) ->
    gen_server:start_link(?MODULE, {Key, Handler, weft_link_cores:new(Key, Subscribers, Decider)},
                          [{spawn_opt, [{message_queue_data, off_heap}, {fullsweep_after, 10}]}]).

%% @doc Hands over an authenticated connection owned by the caller.
-spec attach(pid(), weft_transport:socket(), weft_handshake:peer(), weft_hello:purpose()) ->
          ok | {error, term()}.
attach(Link, Socket, Peer, Purpose) ->
    case weft_transport:controlling_process(Socket, Link) of
        ok -> gen_server:cast(Link, {attach, Socket, Peer, Purpose, undefined});
        Error -> Error
    end.

%% @doc Should the link be up for its own sake?
-spec want(pid(), boolean()) -> ok.
want(Link, Wanted) -> gen_server:cast(Link, {want, Wanted}).

%% @doc Is the peer a neighbour, in the eyes of the core that decides about it?
-spec agree(pid(), boolean()) -> ok.
agree(Link, IsAgreed) -> gen_server:cast(Link, {agree, IsAgreed}).

-spec decider(pid(), weft_links:core() | none) -> ok.
decider(Link, Decider) -> gen_server:cast(Link, {decider, Decider}).

-spec break(pid()) -> ok.
break(Link) -> gen_server:cast(Link, break).

-spec retry(pid()) -> ok.
retry(Link) -> gen_server:cast(Link, retry).

-spec subscribe(pid(), weft_links:core(), pid()) -> ok.
subscribe(Link, Core, Pid) -> gen_server:cast(Link, {subscribe, Core, Pid}).

%% @doc The process of a core has ended.
-spec unsubscribe(pid(), pid()) -> ok.
unsubscribe(Link, Pid) -> gen_server:cast(Link, {unsubscribe, Pid}).

%% @doc A message for the handler of this link.
-spec handler(pid(), term()) -> ok.
handler(Link, Message) ->
    Link ! {weft_handler, Message},
    ok.

-spec info(pid()) -> map().
info(Link) -> gen_server:call(Link, info).

%% @private
init({Key, Handler, Cores}) ->
    process_flag(trap_exit, true),
    _ = erlang:send_after(weft_config:get(keepalive_ms), self(), keepalive),
    Name = case Key of {anonymous, _} -> <<>>; _ -> atom_to_binary(Key) end,
    {ok, #link{key = Key, handler = Handler, above = Handler:init(Key, Name),
               cores = Cores, idle_since_ms = now_ms()}}.

%% @private
handle_call(info, _From, Link) ->
    {reply, info_of(Link), Link}.

%% @private
handle_cast({attach, Socket, Peer, Purpose, Address}, Link) ->
    {noreply, publish(attached(Socket, Peer, Purpose, Address, Link))};
handle_cast({want, Wanted}, Link) ->
    {noreply, need(publish(wish(Wanted, Link)))};
handle_cast({agree, true}, #link{wish = Wish} = Link) ->
    {noreply, agreed(true, Link#link{wish = weft_link_wish:stay(Wish)})};
handle_cast({agree, false}, #link{wish = Wish} = Link) ->
    {noreply, Link#link{wish = weft_link_wish:part(Wish)}};
handle_cast({decider, Decider}, #link{cores = Cores} = Link) ->
    {noreply, cores_changed(weft_link_cores:decider(Decider, up(Link), Cores), Link)};
handle_cast(break, Link) ->
    {noreply, publish(lose_all(broken, Link#link{last_error = broken}))};
handle_cast(retry, Link) ->
    {noreply, need(cancel_pause(Link#link{retry_ms = ?RETRY_MIN_MS}))};
handle_cast({subscribe, Core, Pid}, #link{cores = Cores} = Link) ->
    {noreply, cores_changed(weft_link_cores:subscribe(Core, Pid, up(Link), Cores), Link)};
handle_cast({unsubscribe, Pid}, #link{cores = Cores} = Link) ->
    {noreply, Link#link{cores = weft_link_cores:unsubscribe(Pid, Cores)}}.

%% @private
-spec handle_info(term(), #link{}) -> {noreply, #link{}} | {stop, normal, #link{}}.
handle_info({Tag, Socket, Packet}, #link{lanes = Lanes} = Link)
  when Tag =:= tcp, is_map_key(Socket, Lanes); Tag =:= ssl, is_map_key(Socket, Lanes) ->
    #{Socket := Lane} = Lanes,
    Lane1 = count(Socket, Lane),
    {noreply, packet(weft_wire:decode(Packet), Packet, Lane1#lane.lane,
                     Link#link{lanes = Lanes#{Socket := Lane1}})};
handle_info({weft_handler, Message}, #link{handler = Handler, above = Above} = Link) ->
    {noreply, need(Link#link{above = Handler:message(Message, Above)})};
handle_info({weft_packet, _, _, _, _, _} = Message,
            #link{handler = Handler, above = Above} = Link) ->
    {noreply, Link#link{above = Handler:message(Message, Above)}};
handle_info({'DOWN', _, process, _, _} = Message, #link{handler = Handler, above = Above} = Link) ->
    {noreply, Link#link{above = Handler:message(Message, Above)}};
handle_info({Closed, Socket}, Link) when Closed =:= tcp_closed; Closed =:= ssl_closed ->
    {noreply, publish(lose(Socket, closed, Link))};
handle_info({Error, Socket, emsgsize}, #link{lanes = Lanes} = Link)
  when Error =:= tcp_error, is_map_key(Socket, Lanes);
       Error =:= ssl_error, is_map_key(Socket, Lanes) ->
    {noreply, violated(Socket, emsgsize, Link)};
handle_info({Error, Socket, Reason}, Link) when Error =:= tcp_error; Error =:= ssl_error ->
    {noreply, publish(lose(Socket, Reason, Link))};
handle_info(keepalive, Link) ->
    _ = erlang:send_after(weft_config:get(keepalive_ms), self(), keepalive),
    keepalive(Link);
handle_info(unwanted, Link) ->
    {noreply, release(now_ms(), Link)};
handle_info({timeout, Timer, parted}, #link{wish = Wish} = Link) ->
    case weft_link_wish:is_parted(Timer, Wish) of
        true ->
            Parted = agreed(false, Link#link{wish = weft_link_wish:stay(Wish)}),
            {noreply, release(now_ms(), Parted)};
        false ->
            {noreply, Link}
    end;
handle_info(dial, Link) ->
    {noreply, need(publish(Link#link{dial_timer = undefined, is_released = false}))};
handle_info({dialled, Pid, Result}, #link{dialer = {Pid, What}} = Link) ->
    {noreply, publish(need(dialled(Result, What, Link#link{dialer = undefined})))};
handle_info({'EXIT', Socket, Reason}, Link) when is_port(Socket) ->
    {noreply, publish(lose(Socket, Reason, Link))};
handle_info({'EXIT', Pid, Reason}, #link{dialer = {Pid, What}} = Link) when Reason =/= normal ->
    {noreply, publish(need(dialled({error, Reason}, What, Link#link{dialer = undefined})))};
handle_info({'EXIT', Pid, Reason}, #link{key = Key} = Link) ->
    case whereis(weft_links) of
        Pid -> {stop, normal, Link};
        _ when Reason =:= normal -> {noreply, Link};
        _ -> exit({linked_process_died, Key, Reason})
    end;
handle_info(_PassiveOrStale, Link) ->
    {noreply, Link}.

%% @private An orderly stop of this node: peers need not wait for a resume. Anything else that ends
%% this process closes the lanes too, but says nothing of the kind.
terminate(Reason, #link{lanes = Lanes}) ->
    Goodbye = Reason =:= shutdown,
    lists:foreach(fun(#lane{lane = Lane}) ->
                          _ = Goodbye andalso weft_lane:send(Lane, weft_wire:goodbye(), 1),
                          case Goodbye of
                              true -> weft_lane:close(Lane);
                              false -> weft_lane:abort(Lane)
                          end
                  end, maps:values(Lanes)).

%% --- packets ----------------------------------------------------------------------------------

count(Socket, #lane{until_more = 1, packets = Packets} = Lane) ->
    %% An error here shows up as a closed socket.
    _ = weft_transport:more(Socket, weft_transport:half()),
    Lane#lane{until_more = weft_transport:half(), packets = Packets + 1};
count(_Socket, #lane{until_more = Left, packets = Packets} = Lane) ->
    Lane#lane{until_more = Left - 1, packets = Packets + 1}.

packet({ping, TimeUs}, _Raw, Lane, #link{lanes = Lanes} = Link) ->
    _ = weft_lane:send(Lane, weft_wire:pong(TimeUs), 9),
    Socket = weft_lane:socket(Lane),
    #{Socket := #lane{watch = Watch} = Row} = Lanes,
    Link#link{lanes = Lanes#{Socket := Row#lane{watch = weft_lane_watch:answered(Watch)}}};
packet({pong, TimeUs}, _Raw, _Lane, Link) ->
    Link#link{rtt_us = smoothed(Link#link.rtt_us, max(1, now_us() - TimeUs))};
packet({control, Core, Payload}, _Raw, Lane, Link) ->
    control(Core, Payload, Lane, Link);
packet(goodbye, _Raw, _Lane, Link) ->
    publish(lose_all(gone, Link#link{last_error = peer_stopped}));
packet(empty, _Raw, _Lane, Link) ->
    Link;
packet(Packet, Raw, Lane, #link{handler = Handler, above = Above} = Link) ->
    Link#link{above = Handler:packet(Packet, Raw, Lane, Above)}.

%% Down at once, up slowly: what delays a pong is mostly not the network.
smoothed(undefined, SampleUs) -> SampleUs;
smoothed(RttUs, SampleUs) -> min(SampleUs, (7 * RttUs + SampleUs) div 8).

control(Core, Payload, Lane, #link{cores = Cores0} = Link) ->
    case weft_link_cores:control(Core, Payload, incarnation(Link), Cores0) of
        {ok, Cores} -> Link#link{cores = Cores};
        malformed -> violated(weft_lane:socket(Lane), bad_control_message, Link)
    end.

incarnation(#link{peer = #{incarnation := Incarnation}}) -> Incarnation.

%% An authenticated peer breaks the protocol: said once, and the lane is closed.
violated(Socket, Reason, #link{lanes = Lanes} = Link) ->
    #{Socket := #lane{peername = Peername}} = Lanes,
    weft_refusals:report(Peername, Reason),
    publish(lose(Socket, Reason, Link)).

%% --- lanes come and go ------------------------------------------------------------------------

attached(Socket, Peer, Purpose, Address, Link0) ->
    Link = same_incarnation(Peer, Link0),
    case is_welcome(Peer, Purpose, Link)
        andalso weft_transport:activate(Socket, weft_wire:packet_bytes_max()) of
        {ok, UntilMore} ->
            add_lane(Socket, lane_key(Purpose), Peer, UntilMore, Address,
                     make_room(Purpose, Peer, Link));
        false ->
            weft_transport:close(Socket),
            Link;
        {error, Reason} ->
            weft_transport:close(Socket),
            Link#link{last_error = Reason}
    end.

lane_key(link) -> {<<>>, 0};
lane_key({lane, Class, Index}) -> {Class, Index}.

%% A lane belongs to a link that is up; on a cut link nothing comes up.
is_welcome(Peer, Purpose, #link{key = Key} = Link) ->
    case {weft_fault:is_cut(Key), Purpose} of
        {true, _} -> false;
        {false, link} -> not is_lost_crossing(Peer, Link);
        {false, {lane, _, _}} -> is_up(Link) andalso map_size(Link#link.lanes) < ?LANES_MAX
    end.

%% Two calls may have crossed so that both were answered, which `weft_links:admit/3' cannot see.
%% Both ends keep the one of the node with the greater name, whichever is done first.
is_lost_crossing(#{role := Role, begun_us := BegunUs, name := Name},
                 #link{peer = #{role := OtherRole}, up_us = UpUs} = Link)
  when Role =/= OtherRole, BegunUs < UpUs ->
    is_up(Link) andalso (Role =:= dialer) =/= (weft_identity:name() > Name);
is_lost_crossing(_Peer, _Link) ->
    false.

add_lane(Socket, LaneKey, #{role := Role} = Peer, UntilMore, Address,
         #link{key = Key, handler = Handler, lanes = Lanes, ups = Ups} = Link0) ->
    Node = case Key of {anonymous, _} -> undefined; _ -> Key end,
    Lane = weft_lane:new(Socket, LaneKey, Node),
    WasUp = is_up(Link0),
    IsFirst = LaneKey =:= {<<>>, 0},
    %% Published first: sessions that hear of the lane look whether the link is up.
    Link = publish(cancel_pause(Link0#link{
        lanes = Lanes#{Socket => #lane{lane = Lane, role = Role,
                                       peername = maps:get(peername, Peer),
                                       until_more = UntilMore, watch = watch(Socket)}},
        peer = case IsFirst of true -> Peer; false -> Link0#link.peer end,
        up_us = case IsFirst of true -> now_us(); false -> Link0#link.up_us end,
        address = case Address of undefined -> Link0#link.address; _ -> Address end,
        retry_ms = ?RETRY_MIN_MS, missing = 0, is_released = false,
        ups = case WasUp of true -> Ups; false -> Ups + 1 end})),
    _ = WasUp orelse came_up(Lane, Link),
    _ = weft_lane:send(Lane, weft_wire:ping(now_us()), 9),
    need(Link#link{above = Handler:lane_up(Lane, Link#link.above)}).

came_up(Lane, #link{cores = Cores} = Link) ->
    weft_link_cores:link_up(Lane, Cores),
    connect_at_once(Link).

agreed(IsAgreed, #link{cores = Cores} = Link) ->
    cores_changed(weft_link_cores:agree(IsAgreed, up(Link), Cores), Link).

%% Published first: sessions that took a detour look whether this is their way now.
cores_changed(Cores, #link{cores = Before, handler = Handler, above = Above} = Link0) ->
    Link = publish(Link0#link{cores = Cores}),
    connect_at_once(Link),
    case is_up(Link) andalso weft_link_cores:is_neighbour(Cores)
        andalso not weft_link_cores:is_neighbour(Before) of
        true -> Link#link{above = Handler:message(available, Above)};
        false -> Link
    end.

%% Under an overlay neighbours see each other: a link between them carries a distribution
%% connection. But those who agreed to be neighbours often part at once; to that end they wait for
%% the second tick.
connect_at_once(#link{cores = Cores} = Link) ->
    is_up(Link) andalso weft_link_cores:is_neighbour_anyway(Cores)
        andalso connect_distribution(Link).

connect_later(#link{cores = Cores, wish = Wish, was_used = WasUsed} = Link) ->
    IsUsed = is_up(Link) andalso weft_link_cores:is_used(Cores)
        andalso not weft_link_wish:is_parting(Wish),
    _ = IsUsed andalso WasUsed andalso not lists:member(Link#link.key, nodes(connected))
        andalso connect_distribution(Link),
    Link#link{was_used = IsUsed}.

up(#link{lanes = Lanes} = Link) ->
    case first_lane(Lanes) of
        none -> down;
        Lane -> {Lane, incarnation(Link)}
    end.

%% Another start of the node answers under the same name: what the old one had is over.
same_incarnation(#{incarnation := Incarnation}, #link{peer = #{incarnation := Other}} = Link)
  when Incarnation =/= Other ->
    (drop_all(restarted, Link))#link{peer = undefined};
same_incarnation(_Peer, Link) ->
    Link.

%% A peer that dials the link anew has given up all connections that we still have. Nothing is
%% dialled from here: a new lane is about to come.
make_room(link, _Peer, Link) ->
    case is_up(Link) of
        true -> drop_all(broken, Link#link{last_error = replaced});
        false -> Link
    end;
make_room(Purpose, #{role := Role}, #link{lanes = Lanes} = Link) ->
    case [Lane || #lane{lane = Lane, role = Dialled} <- maps:values(Lanes), Dialled =:= Role,
                  weft_lane:key(Lane) =:= lane_key(Purpose)] of
        [Lane] when map_size(Lanes) > 1 -> drop_lane(Lane, replaced, Link);
        [_] -> drop_all(broken, Link#link{last_error = replaced});
        [] -> Link
    end.

lose(Socket, Reason, #link{lanes = Lanes} = Link) ->
    case Lanes of
        #{Socket := _} when map_size(Lanes) =:= 1 ->
            lose_all(broken, Link#link{last_error = Reason});
        #{Socket := #lane{lane = Lane}} ->
            need(drop_lane(Lane, Reason, Link));
        _ ->
            Link
    end.

drop_lane(Lane, Reason, #link{lanes = Lanes, handler = Handler, above = Above} = Link) ->
    weft_lane:abort(Lane),
    Link#link{lanes = maps:remove(weft_lane:socket(Lane), Lanes), last_error = Reason,
              above = Handler:lane_down(Lane, Above)}.

lose_all(Reason, #link{lanes = Lanes} = Link) when map_size(Lanes) =:= 0 ->
    down_above(Reason, Link);
lose_all(Reason, Link) ->
    %% Published first: sessions that hear of the loss look for another way at once.
    _ = publish(Link#link{lanes = #{}}),
    need(pause(drop_all(Reason, Link))).

drop_all(Reason, #link{lanes = Lanes} = Link) when map_size(Lanes) =:= 0 ->
    down_above(Reason, Link);
drop_all(Reason, #link{lanes = Lanes, cores = Cores, wish = Wish} = Link) ->
    lists:foreach(fun(#lane{lane = Lane}) -> weft_lane:abort(Lane) end, maps:values(Lanes)),
    down_above(Reason, Link#link{lanes = #{}, idle_since_ms = now_ms(),
                                 wish = weft_link_wish:stay(Wish),
                                 cores = weft_link_cores:link_down(Link#link.last_error, Cores)}).

down_above(Reason, #link{handler = Handler, above = Above} = Link) ->
    Link#link{above = Handler:link_down(Reason, Above)}.

is_up(#link{lanes = Lanes}) -> map_size(Lanes) > 0.

%% --- dialling ---------------------------------------------------------------------------------

%% After a loss: the side that dialled goes first.
pause(#link{peer = #{role := listener}, dial_timer = undefined} = Link) ->
    Link#link{dial_timer = erlang:send_after(?COURTESY_MS, self(), dial)};
pause(Link) ->
    Link.

cancel_pause(#link{dial_timer = undefined} = Link) ->
    Link;
cancel_pause(#link{dial_timer = Timer} = Link) ->
    _ = erlang:cancel_timer(Timer),
    Link#link{dial_timer = undefined}.

wish(true, #link{is_released = true} = Link) ->
    wish(true, cancel_pause(Link#link{is_released = false}));
wish(Wanted, #link{wish = Wish} = Link) ->
    Link#link{wish = weft_link_wish:wish(Wanted, Wish)}.

%% Dials if there is a reason to and none is under way or pausing.
need(#link{dialer = undefined, dial_timer = undefined} = Link) ->
    case {is_up(Link), missing_lane(Link)} of
        {false, _} ->
            case is_wanted(Link) andalso can_dial(Link) of
                true -> dial(link, link, Link);
                false -> Link
            end;
        {true, {lane, _, _} = Lane} ->
            #link{peer = #{token := Token}} = Link,
            dial(Lane, {Lane, Token}, Link);
        {true, none} ->
            Link
    end;
need(Link) ->
    Link.

is_wanted(#link{wish = Wish, handler = Handler, above = Above}) ->
    weft_link_wish:is_wanted(Wish) orelse Handler:wants_link(Above).

is_needed(#link{wish = Wish, handler = Handler, above = Above}) ->
    weft_link_wish:is_wanted(Wish) orelse Handler:is_in_use(Above).

can_dial(#link{key = {anonymous, _}}) -> false;
can_dial(#link{peer = #{listens := false}}) -> false;
can_dial(_Link) -> true.

missing_lane(#link{lanes = Lanes, peer = #{role := Role}, handler = Handler,
                   above = Above} = Link) ->
    case map_size(Lanes) < ?LANES_MAX andalso can_dial(Link) of
        true ->
            Present = [weft_lane:key(Lane) || #lane{lane = Lane} <- maps:values(Lanes)],
            weft_lane_plan:missing(Role, Present, weft_config:get(lanes),
                                   Handler:wants_lanes(Above));
        false ->
            none
    end;
missing_lane(_Link) ->
    none.

dial(Purpose, What, #link{key = Node, address = Address} = Link) ->
    Self = self(),
    TimeoutMs = weft_config:get(handshake_timeout_ms),
    Pid = spawn_link(fun() ->
                             Result = weft_dialer:dial(Node, What, Address, TimeoutMs),
                             hand_over(Result, Self),
                             Self ! {dialled, self(), Result}
                     end),
    publish(Link#link{dialer = {Pid, Purpose}}).

hand_over({ok, Socket, _Peer, _Address}, Link) ->
    ok = weft_transport:controlling_process(Socket, Link);
hand_over({error, _}, _Link) ->
    ok.

dialled({ok, Socket, Peer, Address}, Purpose, Link) ->
    attached(Socket, Peer, Purpose, Address, Link);
dialled({error, simultaneous}, link, Link) ->
    %% The peer's own call is about to arrive.
    again(?COURTESY_MS, Link);
dialled({error, Reason}, link, #link{retry_ms = RetryMs, handler = Handler} = Link0) ->
    Link1 = note_missing(Reason, Link0#link{last_error = Reason}),
    Link2 = case is_up(Link1) of
                true ->
                    Link1;
                false ->
                    weft_link_cores:failed(Reason, Link1#link.cores),
                    Link1#link{above = Handler:dial_failed(Reason, Link1#link.above)}
            end,
    again(RetryMs, Link2#link{retry_ms = min(?RETRY_MAX_MS, 2 * RetryMs)});
dialled({error, Reason}, {lane, _, _}, #link{retry_ms = RetryMs} = Link) ->
    again(RetryMs, Link#link{last_error = Reason, retry_ms = min(?RETRY_MAX_MS, 2 * RetryMs)}).

again(PauseMs, #link{dial_timer = undefined} = Link) ->
    Link#link{dial_timer = erlang:send_after(PauseMs, self(), dial)};
again(_PauseMs, Link) ->
    Link.

%% epmd forgets a name the moment its node stops. Twice, for an epmd that was itself restarted.
note_missing(no_such_node, #link{missing = Missing, peer = Peer} = Link)
  when Missing >= 1, Peer =/= undefined ->
    (lose_all(gone, Link))#link{missing = 0, peer = undefined};
note_missing(no_such_node, #link{missing = Missing} = Link) ->
    Link#link{missing = Missing + 1};
note_missing(_Reason, Link) ->
    Link#link{missing = 0}.

connect_distribution(#link{key = {anonymous, _}}) ->
    ok;
connect_distribution(#link{key = Node}) ->
    _ = spawn(fun() -> net_kernel:connect_node(Node) end),
    ok.

%% --- keepalive --------------------------------------------------------------------------------

keepalive(#link{lanes = Lanes} = Link0) ->
    NowMs = now_ms(),
    Looked = maps:map(fun(Socket, Lane) -> look(NowMs, Socket, Lane) end, Lanes),
    Link1 = maps:fold(fun(Socket, {dead, _}, L) -> lose(Socket, timeout, L);
                         (_Socket, _Lives, L) -> L
                      end, Link0#link{lanes = maps:map(fun(_, {_, Lane}) -> Lane end, Looked)},
                      Looked),
    _ = [weft_lane:send(Lane, weft_wire:ping(now_us()), 9)
         || {ping, #lane{lane = Lane}} <- maps:values(Looked),
            weft_lane:queued_bytes(Lane) < 65536],
    %% A first attempt to connect may have failed, crossing another or caught by a break.
    idle(NowMs, publish(need(release(NowMs, connect_later(Link1))))).

release(NowMs, #link{peer = #{role := dialer}, wish = Wish} = Link0) ->
    case is_up(Link0) andalso weft_link_wish:is_settled(NowMs, Wish) andalso may_release(Link0) of
        true ->
            %% Published first, see lose_all/2.
            Link = publish(Link0#link{lanes = #{}, is_released = true, last_error = released}),
            again(?RELEASED_MS,
                  drop_all(broken, cancel_pause(Link#link{lanes = Link0#link.lanes})));
        false -> Link0
    end;
release(_NowMs, Link) ->
    Link.

%% What is in use needs another way.
may_release(#link{wish = Wish, handler = Handler, above = Above}) ->
    case Handler:is_in_use(Above) of
        true -> Handler:can_spare_link(Above);
        false -> weft_link_wish:is_given_up(Wish)
    end.

watch(Socket) ->
    weft_lane_watch:new(now_ms(), weft_transport:sent_packets(Socket)).

look(NowMs, Socket, #lane{packets = Packets, watch = Watch0} = Lane) ->
    Limits = #{timeout_ms => weft_config:get(link_timeout_ms),
               idle_ms => weft_config:idle_keepalive_ms()},
    {What, Watch} = weft_lane_watch:look(NowMs, {Packets, weft_transport:sent_packets(Socket)},
                                         {Watch0, Limits}),
    {What, Lane#lane{watch = Watch}}.

%% A link that nothing needs is closed after a while.
idle(NowMs, #link{idle_since_ms = SinceMs} = Link) ->
    case is_needed(Link) orelse Link#link.dialer =/= undefined of
        true -> {noreply, Link#link{idle_since_ms = NowMs}};
        false ->
            case NowMs - SinceMs > weft_config:get(link_idle_ms) of
                true -> {stop, normal, drop_all(broken, Link)};
                false -> {noreply, Link}
            end
    end.

%% --- what others see --------------------------------------------------------------------------

publish(#link{key = Key, lanes = Lanes, dialer = Dialer, peer = Peer} = Link) ->
    First = case first_lane(Lanes) of none -> #{}; Lane -> #{lane => Lane} end,
    Told = case Peer of undefined -> #{}; _ -> maps:with([token, incarnation], Peer) end,
    weft_links:publish(Key, maps:merge(maps:merge(First, Told),
                                       #{dialling => Dialer =/= undefined andalso not is_up(Link),
                                         wanted => weft_link_wish:is_wanted(Link#link.wish),
                                         neighbour => weft_link_cores:is_neighbour(Link#link.cores),
                                         is_released => Link#link.is_released})),
    Link.

first_lane(Lanes) ->
    case lists:sort([{weft_lane:key(Lane), Lane} || #lane{lane = Lane} <- maps:values(Lanes)]) of
        [{_, First} | _] -> First;
        [] -> none
    end.

info_of(#link{key = Key, lanes = Lanes, peer = Peer, handler = Handler, above = Above} = Link) ->
    #{node => Key,
      state => case {is_up(Link), Link#link.dialer} of
                   {true, _} -> up;
                   {false, undefined} -> down;
                   {false, _} -> dialling
               end,
      lanes => [lane_info(Lane) || Lane <- maps:values(Lanes)],
      incarnation => case Peer of #{incarnation := I} -> I; undefined -> undefined end,
      rtt_us => Link#link.rtt_us, wanted => weft_link_wish:is_wanted(Link#link.wish),
      ups => Link#link.ups, last_error => Link#link.last_error, above => Handler:info(Above)}.

lane_info(#lane{lane = Lane, peername = Peername, packets = Packets}) ->
    #{class => weft_lane:class(Lane), index => weft_lane:index(Lane),
      packets_in => Packets, peername => Peername,
      queued_bytes => weft_lane:queued_bytes(Lane)}.

now_ms() -> erlang:monotonic_time(millisecond).
now_us() -> erlang:monotonic_time(microsecond).
