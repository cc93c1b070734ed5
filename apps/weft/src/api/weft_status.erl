%% SPDX-License-Identifier: Apache-2.0
%% @doc What this node knows of its links, sessions and routes, gathered into plain terms, and an
%% explanation in words for one peer (`why/1').
%%
%% Only for people and their tools: it asks every link and session process, all at once. It asks no
%% other node. What does not answer in time is missing, and named under `unanswered'. Times and
%% sizes carry their unit in the name of the key.
-module(weft_status).

-export([status/0, status/1, why/1, why/2, why/3]).
-export_type([status/0, link/0, session/0, why/0, unanswered/0]).

-define(TIMEOUT_MS, 5000).

-type link() :: #{node := node(), state := up | down | dialling, lanes := non_neg_integer(),
                  rtt_us := pos_integer() | undefined, queued_bytes := non_neg_integer(),
                  lane_stats := [lane()],
                  circuits := [relayed()], relayed_bytes := non_neg_integer(),
                  ups := non_neg_integer(), last_error := string()}.
%% A circuit that passes through this node: it arrives over the link of this map under `label', and
%% goes on to next_hop under next_label. far: the end on the side where it arrives.
-type relayed() :: #{label := pos_integer(), far := binary(), next_hop := node() | undefined,
                     next_label := pos_integer() | undefined}.
%% class: empty, or the channel whose lane it is. stat: see `inet:getstat/1', of its socket.
-type lane() :: #{class := binary(), index := non_neg_integer(), queued_bytes := non_neg_integer(),
                  stat := #{inet:stat_option() => integer()}}.
%% next_hop: the neighbour that the session's frames go to, the peer itself if direct; label: that
%% of its circuit on that link. unacked: sent; queued: waits in the queues of that many senders, of
%% whom some are suspended.
-type session() :: #{node := node(), state := up | resuming | handshake,
                     role := initiator | acceptor, next_hop := node() | undefined,
                     label := pos_integer() | undefined, resumes := non_neg_integer(),
                     last_resume_ms := non_neg_integer() | undefined, last_error := string(),
                     unacked_bytes := non_neg_integer(), bytes_in := non_neg_integer(),
                     bytes_out := non_neg_integer(), packets_in := non_neg_integer(),
                     packets_out := non_neg_integer(), queued_bytes := non_neg_integer(),
                     queues := non_neg_integer(), suspended := non_neg_integer(),
                     window_bytes := pos_integer(), repairs := non_neg_integer(),
                     reroutes := non_neg_integer(), pid := pid()}.
%% A link or session whose process did not answer, or a service.
-type unanswered() :: #{what := link | session, node := node(), pid := pid()}
                    | #{what := channels | broadcast | partition | names | locks}.
-type status() :: #{node := node(), os_pid := string(), uptime_ms := non_neg_integer(),
                    topology := term(), broker := map() | none,
                    circuits := hidden | visible, cuts := [node()],
                    links := [link()], sessions := [session()],
                    routes := #{node() => #{next_hop := node(), hops := pos_integer(),
                                            cost_us := pos_integer()}},
                    members := [node()], failed := [node()], connected := [node()],
                    channels := #{atom() => map()}, broadcast := #{atom() => term()},
                    partition := weft_partition:status() | undefined,
                    groups := #{weft_group:name() => [node()]}, own_groups := [weft_group:name()],
                    gateways := #{node() => [weft_group:name()]},
                    names := #{weft_names:scope() => map()},
                    locks := #{atom() => non_neg_integer()}, unanswered := [unanswered()],
                    counters := #{weft_counters:name() => non_neg_integer()}}.
%% text: the answer in words, a line each.
-type why() :: #{from := node(), to := node(), connected := boolean(),
                 next_hop := node() | undefined, link := link() | undefined,
                 session := session() | undefined, text := [string()]}.

%% @doc See `weft:status/0'.
-spec status() -> status().
status() -> status(?TIMEOUT_MS).

%% @doc The same, with what answers in that time.
-spec status(TimeoutMs :: pos_integer()) -> status().
status(TimeoutMs) ->
    Peers = peers(),
    Services = [channels, broadcast, partition, names, locks],
    {Answers, Silent} = weft_ask:all([{link, Pid} || Pid <- maps:keys(Peers)]
                                         ++ [{session, Pid} || Pid <- sessions()] ++ Services,
                                     fun answer/1, TimeoutMs),
    Said = maps:from_list(Answers),
    #{node => node(), os_pid => os:getpid(),
      uptime_ms => element(1, erlang:statistics(wall_clock)),
      topology => weft_topology:without_secrets(weft_config:get(topology)),
      broker => weft_tunnel:status(), circuits => weft_config:get(circuits),
      cuts => weft_fault:cuts(), links => [link_of(Info, Peers) || {{link, _}, Info} <- Answers],
      sessions => [session_of(Info, Peers)
                   || {{session, _}, #{node := Node} = Info} <- Answers, Node =/= undefined],
      routes => routes(), members => weft_overlay:members(), failed => weft_overlay:failed(),
      connected => nodes(connected),
      channels => maps:get(channels, Said, #{}), broadcast => maps:get(broadcast, Said, #{}),
      partition => maps:get(partition, Said, undefined),
      groups => weft_group:groups(), own_groups => lists:sort(maps:keys(weft_group:own())),
      gateways => weft_group:gateways(), names => maps:get(names, Said, #{}),
      locks => maps:get(locks, Said, #{}), counters => weft_counters:read(),
      unanswered => [Missing || What <- Silent, Missing <- unanswered(What, Peers)]}.

answer({link, Pid}) -> weft_link:info(Pid);
answer({session, Pid}) -> (weft_session:info(Pid))#{pid => Pid};
answer(channels) -> weft_channel:info();
answer(broadcast) -> weft_broadcast:info();
answer(partition) -> weft_partition:status();
answer(names) -> weft_names:info();
answer(locks) -> weft_global:info().

%% A link or a session may end while it is asked. Streams of channels have no row.
unanswered({link, Pid}, Peers) ->
    [#{what => link, node => map_get(Pid, Peers), pid => Pid} || is_process_alive(Pid)];
unanswered({session, Pid}, _Peers) ->
    [#{what => session, node => Node, pid => Pid}
     || is_process_alive(Pid), Peer <- weft_sessions:peers(Pid), Node <- known(Peer)];
unanswered(Service, _Peers) ->
    [#{what => Service}].

%% One that has never been connected may have no atom yet.
known(Peer) ->
    try [binary_to_existing_atom(Peer)] catch error:badarg -> [] end.

link_of(#{node := Node, state := State, lanes := Lanes, rtt_us := RttUs, ups := Ups,
          last_error := LastError, above := Above}, Peers) ->
    #{node => Node, state => State, lanes => length(Lanes), rtt_us => RttUs,
      queued_bytes => lists:sum([Bytes || #{queued_bytes := Bytes} <- Lanes]),
      lane_stats => [lane_of(Lane) || Lane <- Lanes],
      circuits => [relayed(Circuit, Peers) || Circuit <- maps:get(circuits, Above)],
      relayed_bytes => maps:get(relayed_bytes, Above),
      ups => Ups, last_error => explain(LastError)}.

lane_of(#{socket := Stat} = Lane) ->
    (maps:with([class, index, queued_bytes], Lane))#{stat => Stat}.

relayed(#{label := Label, far := Far, next_link := Link, next_label := NextLabel}, Peers) ->
    #{label => Label, far => Far, next_hop => maps:get(Link, Peers, undefined),
      next_label => case NextLabel of waiting -> undefined; _ -> NextLabel end}.

%% Which process is the link to which node.
peers() ->
    maps:from_list([{Pid, Node} || {Node, Pid} <- with_carrier(fun weft_links:list/0),
                                   is_atom(Node)]).

sessions() -> with_carrier(fun weft_sessions:list/0).

session_of(#{link := Link, last_error := LastError} = Info, Peers) ->
    Kept = maps:with([node, pid, state, role, label, resumes, reroutes, repairs,
                      last_resume_ms, unacked_bytes, queued_bytes, queues, suspended, window_bytes,
                      bytes_in,
                      bytes_out, packets_in, packets_out], Info),
    Kept#{next_hop => maps:get(Link, Peers, undefined), last_error => explain(LastError)}.

routes() ->
    maps:from_list([{Dest, #{next_hop => Next, hops => Hops, cost_us => Cost}}
                    || {Dest, {Next, Cost, Hops}} <- weft_overlay:routes()]).

%% Without `-proto_dist weft' there are no tables to read.
with_carrier(Fun) ->
    case whereis(weft_carrier_sup) of
        undefined -> [];
        _ -> Fun()
    end.

explain(Reason) ->
    lists:flatten(io_lib:format("~ts", [weft_refusals:explain(Reason)])).

%% --- why --------------------------------------------------------------------------------------

%% @doc See `weft:why/1'. For a node that is not known it says so.
-spec why(node()) -> why().
why(Node) ->
    why(Node, unknown).

%% @doc The same, for a caller that knows the way of the session because it has asked the nodes on
%% it (`weft_trace'): the nodes from this one to Node, both included.
-spec why(node(), Way :: [node()] | unknown) -> why().
why(Node, Way) ->
    why(Node, Way, ?TIMEOUT_MS).

%% @doc The same, of what answers in that time.
-spec why(node(), Way :: [node()] | unknown, TimeoutMs :: pos_integer()) -> why().
why(Node, Way, TimeoutMs) ->
    #{links := Links, connected := Connected} = Status = status(TimeoutMs),
    Next = first_hop(Node, Status),
    Why = #{from => node(), to => Node, next_hop => Next, link => named(Next, Links),
            session => named(Node, maps:get(sessions, Status)),
            connected => lists:member(Node, Connected)},
    Known = case [Pid || #{what := session, node := N, pid := Pid} <- maps:get(unanswered, Status),
                         N =:= Node] of
                [_ | _] when map_get(session, Why) =:= undefined -> Why#{session := unknown};
                _ -> Why
            end,
    Why#{text => [unicode:characters_to_list(Line) || Line <- text(Node, Known, Way)]}.

named(Node, Rows) ->
    case [Row || #{node := N} = Row <- Rows, N =:= Node] of
        [Row | _] -> Row;
        [] -> undefined
    end.

%% The neighbour that the session uses, or else the one that it would use.
first_hop(Node, #{sessions := Sessions}) ->
    case {named(Node, Sessions), weft_next_hop:choose(Node)} of
        {#{next_hop := Next}, _} when Next =/= undefined -> Next;
        {_, direct} -> Node;
        {_, {via, Next}} -> Next;
        {_, no_route} -> undefined
    end.

text(Node, _Why, _Way) when Node =:= node() ->
    [io_lib:format("~ts is this node itself.", [Node])];
text(Node, #{session := Session, link := Link} = Why, Way) ->
    [headline(Why), path(Why, Way)] ++ shorter(Why, Way) ++ cut(Node, Why)
        ++ [session_text(Session) | queue_text(Session, Link)] ++ link_text(Link) ++ stranger(Why).

headline(#{from := From, to := To, connected := true, session := #{state := resuming}}) ->
    io_lib:format("~ts has no path to ~ts now, but the connection is open: nothing is lost yet.",
                  [From, To]);
headline(#{from := From, to := To, connected := true, session := undefined}) ->
    io_lib:format("~ts and ~ts are connected by the stock protocol, without a session of weft.",
                  [From, To]);
headline(#{from := From, to := To, connected := true}) ->
    io_lib:format("~ts and ~ts are connected.", [From, To]);
headline(#{from := From, to := To}) ->
    io_lib:format("~ts is not connected to ~ts now.", [From, To]).

path(#{next_hop := undefined}, _Way) ->
    "Path: none. No neighbour knows a way; see which gateways are down (weft status).";
path(#{to := To, next_hop := To}, _Way) ->
    "Path: direct, the node is a neighbour.";
path(#{session := #{next_hop := Next}}, [_, Next | _] = Way) ->
    io_lib:format("Path: a circuit of ~b links by way of ~ts: ~ts.",
                  [length(Way) - 1, Next, lists:join(" - ", [short(Node) || Node <- Way])]);
path(#{session := #{next_hop := Next}}, _Way) when Next =/= undefined ->
    io_lib:format("Path: a circuit by way of ~ts; weft trace follows it.", [Next]);
path(#{to := To, next_hop := Next}, _Way) ->
    case routes() of
        #{To := #{hops := Hops}} ->
            io_lib:format("Path: a circuit of ~b links by way of ~ts, as the routes are now.",
                          [Hops, Next]);
        #{} ->
            io_lib:format("Path: a circuit by way of ~ts.", [Next])
    end.

%% A circuit is not moved while it works; but a direct link is taken as soon as there is one
%% (`weft_stream').
shorter(#{to := To, session := #{next_hop := Used}}, Way) when Used =/= undefined, Used =/= To ->
    case routes() of
        #{To := #{hops := Hops, next_hop := Next}} when Next =/= Used ->
            [stays(Hops, Next)];
        #{To := #{hops := Hops, next_hop := Next}} when is_list(Way), Hops < length(Way) - 1 ->
            [stays(Hops, Next)];
        #{} ->
            []
    end;
shorter(_Why, _Way) ->
    [].

stays(Hops, Next) ->
    io_lib:format("The best route is now one of ~b link~ts by way of ~ts. A session stays on its "
                  "circuit until that breaks; only to a direct link it moves at once.",
                  [Hops, [$s || Hops =/= 1], Next]).

short(Node) -> hd(string:split(atom_to_list(Node), "@")).

cut(Node, #{next_hop := Next}) ->
    [io_lib:format("The link to ~ts is cut on purpose (weft cut); weft heal ends that.", [Cut])
     || Cut <- weft_fault:cuts(), Cut =:= Node orelse Cut =:= Next].

session_text(undefined) ->
    "Session: none. It begins with the first message to the node.";
session_text(unknown) ->
    "Session: its process does not answer, so nothing else is known of it.";
session_text(#{state := State, resumes := 0}) ->
    io_lib:format("Session: ~ts, never interrupted.", [state(State)]);
session_text(#{state := State, resumes := Resumes, last_resume_ms := LastMs, last_error := Last}) ->
    io_lib:format("Session: ~ts, resumed ~ts, the last time after ~ts. Reason: ~ts.",
                  [state(State), times(Resumes), duration(LastMs), Last]).

times(1) -> "once";
times(Count) -> io_lib:format("~b times", [Count]).

state(up) -> "up";
state(handshake) -> "starting, the two nodes shake hands";
state(resuming) ->
    case weft_config:get(resume_timeout_ms) of
        auto -> "looking for a new path; the kernel gives up (nodedown) after net_ticktime";
        TimeoutMs -> io_lib:format("looking for a new path; gives up (nodedown) after ~b ms",
                                   [TimeoutMs])
    end.

queue_text(NothingIsKnown, _Link) when is_atom(NothingIsKnown) ->
    [];
queue_text(#{unacked_bytes := Unacked, bytes_in := In, bytes_out := Out}, Link) ->
    Waiting = case Link of #{queued_bytes := Bytes} -> Bytes; undefined -> 0 end,
    [io_lib:format("Queue: ~b bytes not yet acknowledged, ~b wait in the link. "
                   "So far ~b bytes out, ~b in.", [Unacked, Waiting, Out, In])].

link_text(undefined) ->
    [];
link_text(#{node := Node, state := up, lanes := Lanes, rtt_us := RttUs} = Link) ->
    [io_lib:format("Link to ~ts: up, ~b lane~s, round trip ~ts. Last error: ~ts.",
                   [Node, Lanes, [$s || Lanes =/= 1], milliseconds(RttUs),
                    maps:get(last_error, Link)])];
link_text(#{node := Node, state := State, last_error := LastError}) ->
    [io_lib:format("Link to ~ts: ~ts. Last error: ~ts.",
                   [Node, case State of down -> "down"; dialling -> "down, dialling" end,
                    LastError])].

stranger(#{to := To, session := undefined, connected := false}) ->
    case weft_overlay:members() of
        [] -> [];
        Members ->
            [io_lib:format("The topology does not know ~ts: check the name.", [To])
             || not lists:member(To, Members)]
    end;
stranger(_Why) ->
    [].

milliseconds(undefined) -> "not measured yet";
milliseconds(Us) -> io_lib:format("~.1f ms", [Us / 1000]).

duration(undefined) -> "an unknown time";
duration(Ms) -> io_lib:format("~b ms", [Ms]).
