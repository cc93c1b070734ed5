%% SPDX-License-Identifier: Apache-2.0
%% @doc A node at which sessions with one peer end (`weft_sim_session'), with its links
%% (`weft_sim_switches') and what its kernel does with connections.
%%
%% The `source' connects to its peer, and again when a connection has ended or an attempt has
%% failed. Each attempt is a session with an id of its own. The `target' is reached. What serves a
%% circuit there starts late, as a process does, and at times so late that the source has opened
%% another one meanwhile. When the handshake of a session is done, the kernel ends the session that
%% there was before.
%%
%% Either end may crash and start again. Views appear if something is wrong or to be judged:
%% `disorder' if what arrives is not what was promised, `ended' with {Id, Why, Incarnation} (of the
%% peer) for each session that was up, `reached' with the incarnation of the peer to which a lane of
%% their link has come up, and the one with which that link was before, if it knows one.
-module(weft_sim_session_core).
-behaviour(weft_core).

-export([init/2, handle/3, info_of/2, gave_up/3, incarnation/2]).

-define(CONNECT_AGAIN_MS, 250).
-define(ACCEPT_AFTER_MS, 5).
%% An opener waits for three seconds.
-define(ACCEPT_LATE_MS, 4000).

-type id() :: weft_sessions:id().
-record(node, {role :: source | target,
               peer :: node(),
               options :: map(),
               switches :: weft_sim_switches:switches(),
               sessions = #{} :: #{id() => weft_sim_session:session()},
               %% The one that the kernel has for the connection with its peer.
               current :: id() | undefined,
               known = #{sessions => #{}, ended => #{}} :: weft_sim_switches:known(),
               ended = weft_ended_sessions:new([]) :: weft_ended_sessions:ended(),
               %% Attempts of this node that came to nothing.
               given_up = [] :: [id()],
               %% Or it stands still: no ticks, and nothing is accepted.
               kernel = runs :: runs | stopped,
               %% Incarnations of the peer that are over, as this node has heard.
               dead = [] :: [non_neg_integer()],
               rand :: rand:state()}).

%% @doc Options: `role' (source | target), `peer', `lanes' (whom each lane leads to),
%% `window_bytes', `queue_bytes', `senders' (keys and kinds), `classes' (of some senders),
%% `until_ms' (how long they send), `ordered_until_ms' (how long there are signals that hold up all
%% others), `timed' (senders of the peer whose messages are timed), `timed_since_ms' (from when on),
%% `resume_timeout_ms'.
-spec init(node(), map()) -> {#node{}, weft_core:effects()}.
init(Self, #{role := Role, peer := Peer, lanes := Lanes} = Options) ->
    Gateways = lists:delete(Peer, lists:usort(maps:values(Lanes))),
    Switches = weft_sim_switches:new(Self, Lanes, Gateways, maps:get(incarnation, Options, 0)),
    {#node{role = Role, peer = Peer, options = Options#{self => Self}, switches = Switches,
           rand = weft_core:seed(Self, ?MODULE, Options)},
     [{after_ms, 1, connect} || Role =:= source]}.

%% @doc See `weft_core'. The notice {died, Incarnation} tells that an incarnation of the peer is
%% over; at the notice `disconnect' the kernel ends the connection, and makes no other one. After
%% `kernel_stops' what the kernel does stands still; links go on.
-spec handle(weft_core:event(), integer(), #node{}) -> {#node{}, weft_core:effects()}.
handle({message, Lane, lane_up}, NowMs, #node{switches = Switches} = Node) ->
    switched(weft_sim_switches:lane_up(Lane, Switches), NowMs, Node);
handle({neighbour_down, Lane, _}, NowMs, #node{switches = Switches} = Node) ->
    switched(weft_sim_switches:lane_down(Lane, Switches), NowMs, Node);
handle({message, Lane, {carried, Raw}}, NowMs, #node{switches = Switches, known = Known} = Node) ->
    switched(weft_sim_switches:packet(Lane, Raw, Known, Switches), NowMs, Node);
handle({message, Lane, {sent, Bytes}}, NowMs, #node{switches = Switches0} = Node) ->
    {Time, Switches} = weft_sim_switches:sent(Lane, Bytes, Switches0),
    each(fun(Session, S) -> weft_sim_session:lane_ready(Time, NowMs, {Session, S}) end, NowMs,
         Node#node{switches = Switches});
handle({timer, connect}, NowMs,
       #node{role = source, current = undefined, kernel = runs} = Node) ->
    connect(NowMs, Node);
handle({timer, {accept, _Circuit}}, _NowMs, #node{kernel = stopped} = Node) ->
    {Node, []};
handle({timer, {session, _Id, tick}}, _NowMs, #node{kernel = stopped} = Node) ->
    {Node, []};
handle({timer, {accept, Circuit}}, NowMs, Node) ->
    accept(Circuit, NowMs, Node);
handle({timer, {session, Id, Timer}}, NowMs, Node) ->
    event(Id, {timer, Timer}, NowMs, Node);
handle({notice, {died, Incarnation}}, NowMs, #node{dead = Dead} = Node) ->
    each(fun(Session, S) -> weft_sim_session:died(Incarnation, NowMs, Session, S) end, NowMs,
         Node#node{dead = [Incarnation | Dead]});
handle({notice, disconnect}, NowMs, #node{current = Id} = Node) when Id =/= undefined ->
    over(disconnect, Id, NowMs, Node#node{current = undefined});
handle({notice, kernel_stops}, _NowMs, Node) ->
    {Node#node{kernel = stopped}, []};
handle(_Other, _NowMs, Node) ->
    {Node, []}.

%% --- sessions begin ---------------------------------------------------------------------------

connect(NowMs, #node{peer = Peer, options = #{lanes := Lanes}} = Node0) ->
    {Number, #node{switches = Switches} = Node} = draw(1 bsl 58, Node0),
    Id = <<Number:128>>,
    Host = case lists:member(Peer, maps:values(Lanes)) of true -> Peer; false -> own_process end,
    Entered = entered(Id, Host, Node#node{current = Id}),
    {Options, Next} = options(Host, Entered),
    answered(Id, weft_sim_session:begin_to(Id, NowMs, Options, Switches), NowMs, Next).

%% A stream has one end here, as `weft_sessions' sees to.
accept({Id, {_Link, _, _} = Path, Host}, NowMs,
       #node{sessions = Sessions, switches = Switches} = Node)
  when not is_map_key(Id, Sessions) ->
    {Options, Next} = options(Host, entered(Id, Host, Node)),
    answered(Id, weft_sim_session:accept(Id, Path, NowMs, Options, Switches), NowMs, Next);
accept({_Id, {Link, _, Label}, _Host}, NowMs, #node{switches = Switches} = Node) ->
    switched(weft_sim_switches:message(Link, {taken, Label}, Switches), NowMs, Node).

entered(Id, Host, #node{peer = Peer, known = #{sessions := Known} = All} = Node) ->
    Node#node{known = All#{sessions := Known#{Id => {Host, atom_to_binary(Peer)}}}}.

options(Host, #node{options = Options, dead = Dead} = Node0) ->
    {Number, Node} = draw(1 bsl 58, Node0),
    {Options#{host => Host, dead => Dead, rand => rand:seed_s(exsss, Number)}, Node}.

draw(Max, #node{rand = Rand0} = Node) ->
    {Number, Rand} = rand:uniform_s(Max, Rand0),
    {Number, Node#node{rand = Rand}}.

%% --- what happens to sessions -----------------------------------------------------------------

each(Do, NowMs, #node{sessions = Sessions} = Node0) ->
    lists:foldl(fun(Id, {Node1, Effects}) ->
                    {Node, More} = one(Id, Do, NowMs, Node1),
                    {Node, Effects ++ More}
                end, {Node0, []}, maps:keys(Sessions)).

event(Id, Event, NowMs, Node) ->
    one(Id, fun(Session, S) -> weft_sim_session:event(Event, NowMs, Session, S) end, NowMs, Node).

one(Id, Do, NowMs, #node{sessions = Sessions, switches = Switches} = Node) ->
    case Sessions of
        #{Id := Session} -> answered(Id, Do(Session, Switches), NowMs, Node);
        #{} -> {Node, []}
    end.

answered(Id, {News, Session, Switches, Effects}, NowMs, #node{sessions = Sessions} = Node0) ->
    Of = [case Effect of
              {after_ms, Ms, Timer} -> {after_ms, Ms, {session, Id, Timer}};
              _ -> Effect
          end || Effect <- Effects],
    lists:foldl(fun(What, {Node1, Done}) ->
                    {Node, More} = news(What, Id, NowMs, Node1),
                    {Node, Done ++ More}
                end, {Node0#node{sessions = Sessions#{Id => Session}, switches = Switches}, Of},
                News).

news(_What, Id, _NowMs, #node{sessions = Sessions} = Node) when not is_map_key(Id, Sessions) ->
    {Node, []};
news({disorder, What}, _Id, _NowMs, Node) ->
    {Node, [{view, disorder, What}]};
news(up, Id, NowMs, #node{current = Earlier} = Node) when Earlier =/= undefined, Earlier =/= Id ->
    over(replaced, Earlier, NowMs, Node#node{current = Id});
news(up, Id, _NowMs, Node) ->
    {Node#node{current = Id}, []};
news({over, Why}, Id, NowMs, #node{current = Id} = Node) ->
    {Ended, Effects} = over(Why, Id, NowMs, Node#node{current = undefined}),
    {Ended, [{after_ms, ?CONNECT_AGAIN_MS, connect} | Effects]};
news({over, Why}, Id, NowMs, Node) ->
    over(Why, Id, NowMs, Node).

%% The process of the session ends, and all its links hear of it.
over(Why, Id, NowMs, #node{sessions = Sessions0, switches = Switches} = Node0) ->
    {Session, Sessions} = maps:take(Id, Sessions0),
    Node1 = Node0#node{sessions = Sessions},
    Incarnation = weft_sim_session:peer_incarnation(Session),
    {Node, Effects} = switched(weft_sim_switches:down(Id, Switches), NowMs,
                               forgotten(how(Why, Incarnation), Id, Node1)),
    case Incarnation of
        undefined -> {Node#node{given_up = [Id | Node#node.given_up]}, Effects};
        _ -> {Node, [{view, ended, {Id, Why, Incarnation}} | Effects]}
    end.

%% In its handshake the process of a session is ended by that of the kernel. Later by the kernel, or
%% by itself.
how(_Why, undefined) -> shutdown;
how(not_responding, _) -> net_tick_timeout;
how(Why, _) when Why =:= disconnect; Why =:= replaced -> Why;
how(Why, _) -> weft_ended_sessions:how(Why).

forgotten(How, Id, #node{known = #{sessions := Known, ended := Rows}, peer = Peer,
                         ended = Ended0} = Node) ->
    {Remembered, Forgotten, Ended} =
        weft_ended_sessions:ended(How, {Id, distribution, atom_to_binary(Peer)}, Ended0),
    Node#node{ended = Ended,
              known = #{sessions => maps:remove(Id, Known),
                        ended => maps:without(Forgotten, lists:foldl(fun remember/2, Rows,
                                                                     Remembered))}}.

remember({Id, _How, _Peer} = Row, Rows) -> Rows#{Id => Row}.

%% --- links ------------------------------------------------------------------------------------

switched({Results, Switches}, NowMs, Node0) ->
    lists:foldl(fun(Result, {Node1, Effects}) ->
                    {Node, More} = result(Result, NowMs, Node1),
                    {Node, Effects ++ More}
                end, {Node0#node{switches = Switches}, []}, Results).

result({told, Id, Message}, NowMs, Node) ->
    event(Id, {told, Message}, NowMs, Node);
result({input, Id, Lane, Packet}, NowMs, Node) ->
    event(Id, {input, Lane, Packet}, NowMs, Node);
result({accept, distribution, Id, _Source, Path, Host}, _NowMs, Node0) ->
    {Choice, Node} = draw(2, Node0),
    {Node, [{after_ms, element(Choice, {?ACCEPT_AFTER_MS, ?ACCEPT_LATE_MS}),
             {accept, {Id, Path, Host}}}]};
result({reached, Peer, Incarnations}, _NowMs, #node{peer = Peer} = Node) ->
    {Node, [{view, reached, Incarnations}]};
result({reached, _Gateway, _}, _NowMs, Node) ->
    {Node, []};
result(Effect, _NowMs, Node) ->
    {Node, [Effect]}.

%% --- what checkers see ------------------------------------------------------------------------

%% @doc Of the session that the kernel has: its id, the incarnations of both nodes that it is with,
%% frames sent and arrived, by sender; the most that was kept and queued, in bytes; how long the
%% slowest timed message took; how often what happened. Of the node: how many sessions and labels it
%% knows, and what its lanes are.
-spec info_of(node(), weft_sim_world:world()) -> #{atom() => term()}.
info_of(Name, World) ->
    Nothing = #{id => none, incarnations => none, link => undefined, sessions => 0, labels => 0,
                keys => #{}},
    case weft_sim_world:machine(Name, session, World) of
        {ok, #node{current = Id, sessions = Sessions, switches = Switches}} ->
            Known = #{sessions => map_size(Sessions), labels => weft_sim_switches:labels(Switches),
                      keys => weft_sim_switches:keys(Switches)},
            maps:merge(case Sessions of
                           #{Id := Session} -> weft_sim_session:info(Session);
                           #{} -> Nothing
                       end, Known);
        error ->
            Nothing
    end.

%% @doc Was that an attempt of the node which came to nothing?
-spec gave_up(node(), id(), weft_sim_world:world()) -> boolean().
gave_up(Name, Id, World) ->
    case weft_sim_world:machine(Name, session, World) of
        {ok, #node{given_up = GivenUp}} -> lists:member(Id, GivenUp);
        error -> false
    end.

%% @doc Which incarnation of the node runs, if it does.
-spec incarnation(node(), weft_sim_world:world()) -> non_neg_integer() | none.
incarnation(Name, World) ->
    case weft_sim_world:machine(Name, session, World) of
        {ok, #node{options = Options}} -> maps:get(incarnation, Options, 0);
        error -> none
    end.
