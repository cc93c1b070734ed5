%% SPDX-License-Identifier: Apache-2.0
%% @doc The link to one peer: brings its lanes up, reads them all, and notices when they are dead.
%%
%% One process for each peer. It owns the sockets of the lanes and reads them (`weft_link_lanes').
%% Keepalive and control messages end here; all other packets go to the handler above
%% (`weft_switch'). Any process sends through `weft_lane'.
%% The link is brought up when the overlay wants it or something in the handler needs it: first at
%% once, then with pauses that double up to a second. Either side may dial; `weft_links:admit/3'
%% settles crossing calls. A lane that does not answer for link_timeout_ms is closed.
%% A peer is `gone' if twice epmd does not know its name and its port refuses. A peer that can not
%% be dialled has `departed' if it does not come back after its host has closed the link.
%%
%% A link belongs to the side that dialled it. This side releases (closes) it once the overlay does
%% not want it any more and sessions can go another way. If the other side wants it, that one dials.
-module(weft_link).
-behaviour(gen_server).

-export([start_link/4, attach/4, want/2, agree/2, decider/2, break/1, retry/1, hurry/1,
         subscribe/3, unsubscribe/2, handler/2, info/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% Lanes of one link, those of channels included.
-define(LANES_MAX, 256).
%% Time for the router to hear that a link was released, before sessions may ask for it again.
-define(RELEASED_MS, 1000).
%% A peer that can not be dialled dials again at once, if it is alive.
-define(RETURN_MS, 1000).
%% The side that did not dial the lost lane gives the other this much time to dial again.
-define(COURTESY_MS, 200).

-record(link, {key :: weft_links:key(),
               handler :: module(),
               above :: weft_link_handler:state(),
               cores :: weft_link_cores:cores(),
               lanes = #{} :: weft_link_lanes:lanes(),
               peer :: weft_handshake:peer() | undefined,
               wish = weft_link_wish:new() :: weft_link_wish:wish(),
               is_released = false :: boolean(),
               was_used = false :: boolean(),
               dial = weft_link_dial:new() :: weft_link_dial:dial(),
               rtt_us :: pos_integer() | undefined,
               last_error :: term(),
               ups = 0 :: non_neg_integer(),
               up_us = 0 :: integer(),
               idle_since_ms :: integer()}).

%% @doc Called by `weft_link_sup'.
-spec start_link(Handler :: module(), weft_links:key(), [{weft_links:core(), pid()}],
                 Decider :: weft_links:core() | none) -> {ok, pid()} | {error, term()}.
start_link(Handler, Key, Subscribers, Decider) ->
    gen_server:start_link(?MODULE, {Key, Handler, weft_link_cores:new(Key, Subscribers, Decider)},
                          [{spawn_opt, [{priority, weft_turn:priority(data)},
                                         {message_queue_data, off_heap}, {fullsweep_after, 10}]}]).

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

%% @doc A process needs the peer now: the next attempt does not wait for the end of a pause. Later
%% pauses are as long as they would be.
-spec hurry(pid()) -> ok.
hurry(Link) -> gen_server:cast(Link, hurry).

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
    weft_link_lanes:look_later(),
    Name = case Key of {anonymous, _} -> <<>>; _ -> atom_to_binary(Key) end,
    {ok, #link{key = Key, handler = Handler, above = Handler:init(Key, Name),
               cores = Cores, idle_since_ms = now_ms()}}.

%% @private
handle_call(info, _From, Link) ->
    {reply, info_of(Link), Link};
handle_call(Request, _From, Link) ->
    {reply, weft_stray:call(Request), Link}.

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
handle_cast(retry, #link{dial = Dial} = Link) ->
    {noreply, need(Link#link{dial = weft_link_dial:retry_at_once(Dial)})};
handle_cast(hurry, Link) ->
    {noreply, need(cancel_pause(Link))};
handle_cast({subscribe, Core, Pid}, #link{cores = Cores} = Link) ->
    {noreply, cores_changed(weft_link_cores:subscribe(Core, Pid, up(Link), Cores), Link)};
handle_cast({unsubscribe, Pid}, #link{cores = Cores} = Link) ->
    {noreply, Link#link{cores = weft_link_cores:unsubscribe(Pid, up(Link), Cores)}};
handle_cast(Request, Link) ->
    ok = weft_stray:message(Request),
    {noreply, Link}.

%% @private
-spec handle_info(term(), #link{}) -> {noreply, #link{}} | {stop, normal, #link{}}.
handle_info({Tag, Socket, Packet}, #link{lanes = Lanes} = Link)
  when Tag =:= tcp, is_map_key(Socket, Lanes); Tag =:= ssl, is_map_key(Socket, Lanes) ->
    BeganUs = weft_turn:begins(),
    {Lane, Lanes1} = weft_link_lanes:received(Socket, Lanes),
    Taken = packet(weft_wire:decode(Packet), Packet, Lane, Link#link{lanes = Lanes1}),
    ok = weft_turn:worked(BeganUs),
    {noreply, Taken};
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
    weft_link_lanes:look_later(),
    keepalive(Link);
handle_info(unwanted, Link) ->
    {noreply, release(now_ms(), Link)};
handle_info({return_is_due, Ups}, #link{ups = Ups} = Link) ->
    {noreply, departed(is_up(Link), Link)};
handle_info({timeout, Timer, parted}, #link{wish = Wish} = Link) ->
    case weft_link_wish:is_parted(Timer, Wish) of
        true ->
            Parted = agreed(false, Link#link{wish = weft_link_wish:stay(Wish)}),
            {noreply, release(now_ms(), Parted)};
        false ->
            {noreply, Link}
    end;
handle_info(dial, #link{dial = Dial} = Link) ->
    {noreply, need(publish(Link#link{dial = weft_link_dial:pause_is_over(Dial),
                                     is_released = false}))};
handle_info({dialled, Pid, Result}, #link{dial = Dial} = Link) ->
    {noreply, ended(weft_link_dial:ended(Pid, Dial), Result, Link)};
handle_info({'EXIT', Socket, Reason}, Link) when is_port(Socket) ->
    {noreply, publish(lose(Socket, Reason, Link))};
handle_info({'EXIT', _Pid, normal}, Link) ->
    {noreply, Link};
handle_info({'EXIT', Pid, Reason}, #link{lanes = Lanes, dial = Dial} = Link) ->
    case {weft_link_lanes:of_writer(Pid, Lanes), weft_link_dial:ended(Pid, Dial)} of
        {none, Ended} -> {noreply, ended(Ended, {error, Reason}, Link)};
        {Lane, none} -> {noreply, publish(lose(weft_lane:socket(Lane), writer_died, Link))}
    end;
handle_info(_PassiveOrStale, Link) ->
    {noreply, Link}.

%% @private An orderly stop of this node: peers need not wait for a resume. If this process ends for
%% another reason the lanes are closed too, but without a goodbye.
terminate(shutdown, #link{lanes = Lanes}) ->
    lists:foreach(fun(Lane) ->
                          _ = weft_lane:send(Lane, weft_wire:goodbye(), 1),
                          weft_lane:close(Lane)
                  end, weft_link_lanes:all(Lanes));
terminate(_Reason, #link{lanes = Lanes}) ->
    lists:foreach(fun weft_lane:abort/1, weft_link_lanes:all(Lanes)).

%% --- packets ----------------------------------------------------------------------------------

packet({ping, TimeUs}, _Raw, Lane, #link{lanes = Lanes} = Link) ->
    _ = weft_lane:send(Lane, weft_wire:pong(TimeUs), 9),
    %% The first ping says that the peer has the link up: further lanes are welcome.
    need(Link#link{lanes = weft_link_lanes:answered(Lane, Lanes)});
packet({pong, TimeUs}, _Raw, _Lane, Link) ->
    Link#link{rtt_us = smoothed(Link#link.rtt_us, max(1, now_us() - TimeUs))};
packet({control, Core, Payload}, _Raw, Lane, Link) ->
    control(Core, Payload, Lane, Link);
packet(goodbye, _Raw, _Lane, Link) ->
    ok = died(Link),
    publish(lose_all(gone, Link#link{last_error = peer_stopped}));
packet(empty, _Raw, _Lane, Link) ->
    Link;
packet(Packet, Raw, Lane, #link{handler = Handler, above = Above} = Link) ->
    Link#link{above = Handler:packet(Packet, Raw, Lane, Above)}.

%% Follows a shorter time at once and a longer one slowly, because a pong is mostly not delayed by
%% the network.
smoothed(undefined, SampleUs) -> SampleUs;
smoothed(RttUs, SampleUs) -> min(SampleUs, (7 * RttUs + SampleUs) div 8).

control(Core, Payload, Lane, #link{cores = Cores0} = Link) ->
    case weft_link_cores:control(Core, Payload, incarnation(Link), Cores0) of
        {ok, Cores} -> Link#link{cores = Cores};
        malformed -> violated(weft_lane:socket(Lane), bad_control_message, Link)
    end.

incarnation(#link{peer = #{incarnation := Incarnation}}) -> Incarnation.

%% An authenticated peer violates the protocol: this is logged once, and the lane is closed.
violated(Socket, Reason, #link{lanes = Lanes} = Link) ->
    weft_refusals:report(weft_link_lanes:peername(Socket, Lanes), Reason),
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
    case {weft_fault_table:is_cut(Key), Purpose} of
        {true, _} -> false;
        {false, link} -> not is_lost_crossing(Peer, Link);
        {false, {lane, _, _}} ->
            is_up(Link) andalso is_of_this_link(Peer, Link)
                andalso map_size(Link#link.lanes) < ?LANES_MAX
    end.

%% The link may have been made anew while this lane was authenticated.
is_of_this_link(#{proven_with := Token}, #link{peer = #{token := Token}}) -> true;
is_of_this_link(_Peer, _Link) -> false.

%% Two calls may have crossed so that both were answered, which `weft_links:admit/3' cannot see.
%% Both ends keep the one of the node with the greater name, whichever is done first.
is_lost_crossing(#{role := Role, begun_us := BegunUs, name := Name},
                 #link{peer = #{role := OtherRole}, up_us = UpUs} = Link)
  when Role =/= OtherRole, BegunUs < UpUs ->
    is_up(Link) andalso (Role =:= dialer) =/= (weft_identity:name() > Name);
is_lost_crossing(_Peer, _Link) ->
    false.

add_lane(Socket, LaneKey, Peer, UntilMore, Address,
         #link{key = Key, handler = Handler, lanes = Lanes, dial = Dial, ups = Ups} = Link0) ->
    Node = case Key of {anonymous, _} -> undefined; _ -> Key end,
    Lane = weft_lane:new(Socket, LaneKey, {weft_fault_table, lateness, [Node]}),
    WasUp = is_up(Link0),
    IsFirst = LaneKey =:= {<<>>, 0},
    %% Published first, because sessions that are told of the lane look whether the link is up.
    Link = publish(Link0#link{
        lanes = weft_link_lanes:add(Lane, Peer, UntilMore, Lanes),
        peer = case IsFirst of true -> Peer; false -> Link0#link.peer end,
        up_us = case IsFirst of true -> now_us(); false -> Link0#link.up_us end,
        dial = weft_link_dial:reached(Address, Dial), is_released = false,
        ups = case WasUp of true -> Ups; false -> Ups + 1 end}),
    _ = WasUp orelse weft_link_cores:link_up(Lane, Link#link.cores),
    _ = WasUp orelse connect_at_once(Link),
    _ = weft_lane:send(Lane, weft_wire:ping(now_us()), 9),
    need(Link#link{above = Handler:lane_up(Lane, Link#link.above)}).

agreed(IsAgreed, #link{cores = Cores} = Link) ->
    cores_changed(weft_link_cores:agree(IsAgreed, up(Link), Cores), Link).

%% Published first, because sessions that took a detour look whether this is their way now.
cores_changed(Cores, #link{cores = Before, handler = Handler, above = Above} = Link0) ->
    Link = publish(Link0#link{cores = Cores}),
    _ = connect_at_once(Link),
    case is_up(Link) andalso weft_link_cores:is_neighbour(Cores)
        andalso not weft_link_cores:is_neighbour(Before) of
        true -> Link#link{above = Handler:message(available, Above)};
        false -> Link
    end.

%% With an overlay neighbours see each other: a link between them carries a distribution connection.
%% But two nodes that agreed to be neighbours often part at once, so in this case the connection is
%% made at the second tick.
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
    case weft_link_lanes:first(Lanes) of
        none -> down;
        Lane -> {Lane, incarnation(Link)}
    end.

%% Another start of the node answers under the same name: the connections of the old one are over.
same_incarnation(#{incarnation := Incarnation}, #link{peer = #{incarnation := Other}} = Link)
  when Incarnation =/= Other ->
    ok = died(Link),
    (drop_all(restarted, Link))#link{peer = undefined};
same_incarnation(_Peer, Link) ->
    Link.

%% A peer that dials the link again has given up all connections that are still open here. Nothing
%% is dialled from here, because a new lane is about to come.
make_room(link, _Peer, #link{lanes = Lanes} = Link) when map_size(Lanes) =:= 0 -> Link;
make_room(link, _Peer, Link) -> drop_all(broken, Link#link{last_error = replaced});
make_room(Purpose, #{role := Role}, #link{lanes = Lanes} = Link) ->
    case weft_link_lanes:find(lane_key(Purpose), Role, Lanes) of
        none -> Link;
        Lane when map_size(Lanes) > 1 -> drop_lane(Lane, replaced, Link);
        _ -> drop_all(broken, Link#link{last_error = replaced})
    end.

lose(Socket, Reason, #link{lanes = Lanes} = Link) when is_map_key(Socket, Lanes) ->
    case map_size(Lanes) of
        1 -> lost(Reason, lose_all(broken, Link#link{last_error = Reason}));
        _ -> need(drop_lane(weft_link_lanes:lane(Socket, Lanes), Reason, Link))
    end;
lose(_Socket, _Reason, Link) ->
    Link.

%% The last lane of a node that cannot be dialled. A node whose name cannot be resolved here cannot
%% be dialled either (`dialled/3').
lost(Reason, #link{peer = #{listens := false}} = Link) ->
    _ = return_is_awaited(Reason, Link),
    Link;
lost(_Reason, Link) ->
    Link.

%% The host closes the lane also if a node that lives on has closed it, but then the node comes
%% back.
return_is_awaited(LostBy, #link{ups = Ups}) when LostBy =:= closed; LostBy =:= econnreset ->
    erlang:send_after(?RETURN_MS, self(), {return_is_due, Ups});
return_is_awaited(_LostBy, _Link) ->
    not_by_its_host.

departed(true, Link) ->
    Link;
departed(false, #link{peer = undefined} = Link) ->
    Link;
departed(false, #link{key = Key, peer = #{incarnation := Incarnation}, handler = Handler} = Link) ->
    ok = Handler:peer_ended(departed, Key, Incarnation),
    down_above(departed, Link).

died(#link{key = Key, peer = #{incarnation := Incarnation}, handler = Handler}) ->
    Handler:peer_ended(died, Key, Incarnation).

drop_lane(Lane, Reason, #link{lanes = Lanes, handler = Handler, above = Above} = Link) ->
    weft_lane:abort(Lane),
    Link#link{lanes = weft_link_lanes:remove(Lane, Lanes), last_error = Reason,
              above = Handler:lane_down(Lane, Above)}.

lose_all(Reason, #link{lanes = Lanes} = Link) when map_size(Lanes) =:= 0 ->
    down_above(Reason, Link);
lose_all(Reason, Link) ->
    %% Published first, because sessions that are told of the loss look for another way at once.
    _ = publish(Link#link{lanes = #{}}),
    need(courtesy(drop_all(Reason, Link))).

drop_all(Reason, #link{lanes = Lanes} = Link) when map_size(Lanes) =:= 0 ->
    down_above(Reason, Link);
drop_all(Reason, #link{lanes = Lanes, cores = Cores, wish = Wish} = Link) ->
    lists:foreach(fun weft_lane:abort/1, weft_link_lanes:all(Lanes)),
    down_above(Reason, Link#link{lanes = #{}, idle_since_ms = now_ms(),
                                 wish = weft_link_wish:stay(Wish),
                                 cores = weft_link_cores:link_down(Link#link.last_error, Cores)}).

down_above(Reason, #link{handler = Handler, above = Above} = Link) ->
    Link#link{above = Handler:link_down(Reason, Above)}.

is_up(#link{lanes = Lanes}) -> map_size(Lanes) > 0.

%% --- dialling ---------------------------------------------------------------------------------

%% Backoff after a loss: the side that dialled goes first.
courtesy(#link{peer = #{role := listener}} = Link) -> pause(?COURTESY_MS, Link);
courtesy(Link) -> Link.

pause(PauseMs, #link{dial = Dial} = Link) ->
    Link#link{dial = weft_link_dial:pause(PauseMs, Dial)}.

cancel_pause(#link{dial = Dial} = Link) ->
    Link#link{dial = weft_link_dial:cancel_pause(Dial)}.

wish(true, #link{is_released = true} = Link) ->
    wish(true, cancel_pause(Link#link{is_released = false}));
wish(Wanted, #link{wish = Wish} = Link) ->
    Link#link{wish = weft_link_wish:wish(Wanted, Wish)}.

%% Dials if there is a reason to and none is under way or pausing.
need(#link{dial = Dial} = Link) ->
    case weft_link_dial:may_start(Dial) andalso what_to_dial(Link) of
        false -> Link;
        What -> publish(Link#link{dial = weft_link_dial:start(Link#link.key, What, Dial)})
    end.

what_to_dial(#link{lanes = Lanes} = Link) when map_size(Lanes) =:= 0 ->
    is_wanted(Link) andalso can_dial(Link) andalso link;
what_to_dial(#link{lanes = Lanes, peer = #{role := Role, token := Token}, handler = Handler,
                   above = Above} = Link) ->
    case can_dial(Link) andalso weft_link_lanes:is_heard(Lanes)
        andalso weft_lane_plan:missing(Role, weft_link_lanes:keys(Lanes), weft_config:get(lanes),
                                       Handler:wants_lanes(Above)) of
        {lane, _, _} = Lane when map_size(Lanes) < ?LANES_MAX -> {Lane, Token};
        _ -> false
    end.

is_wanted(#link{wish = Wish, handler = Handler, above = Above}) ->
    weft_link_wish:is_wanted(Wish) orelse Handler:wants_link(Above).

can_dial(#link{key = {anonymous, _}}) -> false;
can_dial(#link{peer = #{listens := false}}) -> false;
can_dial(_Link) -> true.

ended(none, _Result, Link) ->
    Link;
ended({Purpose, Dial}, Result, Link) ->
    publish(need(dialled(Result, Purpose, Link#link{dial = Dial}))).

dialled({ok, Socket, Peer, Address}, Purpose, Link) ->
    attached(Socket, Peer, Purpose, Address, Link);
dialled({error, simultaneous}, link, Link) ->
    %% The peer's own call is about to arrive.
    pause(?COURTESY_MS, Link);
dialled({error, Reason}, link, #link{dial = Dial, handler = Handler} = Link0) ->
    _ = Reason =:= nxdomain andalso return_is_awaited(Link0#link.last_error, Link0),
    Link = may_be_gone(Link0#link{dial = weft_link_dial:failed(Reason, Dial), last_error = Reason}),
    case is_up(Link) of
        true ->
            retry_later(Link);
        false ->
            weft_link_cores:failed(Reason, Link#link.cores),
            retry_later(Link#link{above = Handler:dial_failed(Reason, Link#link.above)})
    end;
dialled({error, no_link}, {lane, _, _}, Link) ->
    %% Nothing is wrong: the link is being replaced.
    retry_later(Link);
dialled({error, Reason}, {lane, _, _}, Link) ->
    retry_later(Link#link{last_error = Reason}).

retry_later(#link{dial = Dial} = Link) ->
    Link#link{dial = weft_link_dial:retry_later(Dial)}.

may_be_gone(#link{dial = Dial, peer = Peer} = Link) ->
    case Peer =/= undefined andalso weft_link_dial:is_gone(Dial) of
        true ->
            ok = died(Link),
            (lose_all(gone, Link))#link{peer = undefined};
        false -> Link
    end.

connect_distribution(#link{key = Key}) ->
    is_atom(Key) andalso spawn_opt(fun() -> net_kernel:connect_node(Key) end,
                                   [{priority, weft_turn:priority(control)}]).

%% --- keepalive --------------------------------------------------------------------------------

keepalive(#link{lanes = Lanes0} = Link0) ->
    NowMs = now_ms(),
    {Dead, ToPing, Lanes} = weft_link_lanes:look(NowMs, Lanes0),
    Link1 = lists:foldl(fun(Socket, Link) -> lose(Socket, timeout, Link) end,
                        Link0#link{lanes = Lanes}, Dead),
    _ = [weft_lane:send(Lane, weft_wire:ping(now_us()), 9)
         || Lane <- ToPing, weft_lane:queued_bytes(Lane) < 65536],
    %% A first attempt to connect may have failed, because it crossed another or the link broke.
    idle(NowMs, publish(need(release(NowMs, connect_later(Link1))))).

release(NowMs, #link{peer = #{role := dialer}, wish = Wish} = Link0) ->
    case is_up(Link0) andalso weft_link_wish:is_settled(NowMs, Wish) andalso may_release(Link0) of
        true ->
            %% Published first, see lose_all/2.
            Link = publish(Link0#link{lanes = #{}, is_released = true, last_error = released}),
            pause(?RELEASED_MS,
                  drop_all(broken, cancel_pause(Link#link{lanes = Link0#link.lanes})));
        false -> Link0
    end;
release(_NowMs, Link) ->
    Link.

%% Sessions that use the link need another way.
may_release(#link{wish = Wish, handler = Handler, above = Above}) ->
    case Handler:is_in_use(Above) of
        true -> Handler:can_spare_link(Above);
        false -> weft_link_wish:is_given_up(Wish)
    end.

%% A link that nothing needs is closed after a while.
idle(NowMs, #link{idle_since_ms = SinceMs, handler = Handler, above = Above} = Link) ->
    IdleMs = weft_config:get(link_idle_ms),
    case weft_link_wish:is_wanted(Link#link.wish) orelse Handler:is_in_use(Above)
        orelse weft_link_dial:is_under_way(Link#link.dial) of
        true -> {noreply, Link#link{idle_since_ms = NowMs}};
        false when NowMs - SinceMs > IdleMs -> {stop, normal, drop_all(broken, Link)};
        false -> {noreply, Link}
    end.

%% --- what others see --------------------------------------------------------------------------

publish(#link{key = Key, lanes = Lanes, dial = Dial, peer = Peer} = Link) ->
    First = case weft_link_lanes:first(Lanes) of none -> #{}; Lane -> #{lane => Lane} end,
    Told = case Peer of undefined -> #{}; _ -> maps:with([token, incarnation], Peer) end,
    weft_link_table:publish(Key, maps:merge(maps:merge(First, Told),
                                       #{dialling => weft_link_dial:is_under_way(Dial)
                                           andalso not is_up(Link),
                                         wanted => weft_link_wish:is_wanted(Link#link.wish),
                                         neighbour => weft_link_cores:is_neighbour(Link#link.cores),
                                         is_released => Link#link.is_released})),
    Link.

info_of(#link{key = Key, lanes = Lanes, peer = Peer, handler = Handler, above = Above} = Link) ->
    #{node => Key,
      state => case {is_up(Link), weft_link_dial:is_under_way(Link#link.dial)} of
                   {true, _} -> up;
                   {false, true} -> dialling;
                   {false, false} -> down
               end,
      lanes => weft_link_lanes:info(Lanes),
      incarnation => case Peer of #{incarnation := I} -> I; undefined -> undefined end,
      rtt_us => Link#link.rtt_us, wanted => weft_link_wish:is_wanted(Link#link.wish),
      ups => Link#link.ups, last_error => Link#link.last_error, above => Handler:info(Above)}.

now_ms() -> erlang:monotonic_time(millisecond).
now_us() -> erlang:monotonic_time(microsecond).
