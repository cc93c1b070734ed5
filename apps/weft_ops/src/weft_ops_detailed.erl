%% SPDX-License-Identifier: Apache-2.0
%% @doc The families of /metrics/detailed: a series for each link, session and so on, and only on
%% request, because there may be thousands. The list of requests, and the families of each; pure but
%% for the registries.
%%
%% Each request has a registry of prometheus.erl. So its format is used, and also who has an
%% endpoint of his own can offer it: `prometheus_text_format:format(weft_ops_link)'.
-module(weft_ops_detailed).

-export([requests/0, families/1, registry/1, request/1, register_collector/1,
         deregister_collector/1]).

-type request() :: link | lane | session | circuit | relay | channel | group | dist.

%% @doc What may be asked for.
-spec requests() -> [request()].
requests() -> [link, lane, session, circuit, relay, channel, group, dist].

-spec registry(request()) -> atom().
registry(link) -> weft_ops_link;
registry(lane) -> weft_ops_lane;
registry(session) -> weft_ops_session;
registry(circuit) -> weft_ops_circuit;
registry(relay) -> weft_ops_relay;
registry(channel) -> weft_ops_channel;
registry(group) -> weft_ops_group;
registry(dist) -> weft_ops_dist.

%% @doc What a registry is for; none if it is no detailed one.
-spec request(Registry :: atom()) -> request() | none.
request(Registry) ->
    hd([Request || Request <- requests(), registry(Request) =:= Registry] ++ [none]).

-spec register_collector(module()) -> ok.
register_collector(Collector) ->
    lists:foreach(fun(Request) ->
                          prometheus_registry:register_collector(registry(Request), Collector)
                  end, requests()).

-spec deregister_collector(module()) -> ok.
deregister_collector(Collector) ->
    lists:foreach(fun(Request) ->
                          prometheus_registry:deregister_collector(registry(Request), Collector)
                  end, requests()).

%% @doc The families of a request.
-spec families(request()) -> [weft_ops_family:family()].
families(link) -> link();
families(lane) -> lane();
families(session) -> session();
families(circuit) -> circuit();
families(relay) -> relay();
families(channel) -> channel();
families(group) -> group();
families(dist) -> weft_ops_dist_families:all().

family(Name, Type, Labels, Help, Read) ->
    #{name => Name, type => Type, labels => Labels, help => Help, from => status, read => Read}.

%% --- links --------------------------------------------------------------------------------------

link() ->
    [family(weft_detailed_link_state, gauge, [peer, state],
            "Always 1; the label says the state of the link.",
            fun(#{links := Links} = Status) ->
                    [{[Node, State], 1} || #{node := Node, state := State} <- Links]
                        ++ [{[Node, unknown], 1} || Node <- unanswered(link, Status)]
            end),
     of_links(weft_detailed_link_round_trip_seconds, gauge, "Round trip of the link.",
              fun(#{rtt_us := Us}) -> seconds(Us, 1000000) end),
     of_links(weft_detailed_link_queued_bytes, gauge, "Bytes that wait before its lanes.",
              fun(#{queued_bytes := Bytes}) -> Bytes end),
     of_links(weft_detailed_link_lanes, gauge, "Lanes of the link.", fun(#{lanes := Lanes}) ->
                                                                             Lanes
                                                                     end),
     of_links(weft_detailed_link_ups_total, counter, "Times the link came up.",
              fun(#{ups := Ups}) -> Ups end),
     of_links(weft_detailed_link_relayed_circuits, gauge,
              "Circuits of other nodes that pass through the link.",
              fun(#{circuits := Circuits}) -> length(Circuits) end),
     of_links(weft_detailed_link_relayed_bytes_total, counter,
              "Bytes that arrived over the link and were relayed.",
              fun(#{relayed_bytes := Bytes}) -> Bytes end)].

%% Whose process has not answered.
unanswered(Kind, Status) ->
    [Node || #{what := What, node := Node} <- maps:get(unanswered, Status, []), What =:= Kind].

of_links(Name, Type, Help, Value) ->
    family(Name, Type, [peer], Help,
           fun(#{links := Links}) ->
                   [{[Node], Value(Link)} || #{node := Node} = Link <- Links]
           end).

seconds(undefined, _PerSecond) -> undefined;
seconds(Time, PerSecond) -> Time / PerSecond.

lane() ->
    [family(weft_detailed_lane_queued_bytes, gauge, [peer, lane, class],
            "Bytes that wait before the lane.",
            of_lanes(fun(#{queued_bytes := Bytes}) -> Bytes end))
     | [family(Name, Type, [peer, lane, class], Help,
               of_lanes(fun(#{stat := Stat}) -> maps:get(Key, Stat, undefined) end))
        || {Name, Type, Key, Help} <-
               [{weft_detailed_lane_received_bytes_total, counter, recv_oct,
                 "Bytes that the lane's socket received."},
                {weft_detailed_lane_sent_bytes_total, counter, send_oct,
                 "Bytes that the lane's socket sent."},
                {weft_detailed_lane_received_packets_total, counter, recv_cnt,
                 "Packets that the lane's socket received."},
                {weft_detailed_lane_sent_packets_total, counter, send_cnt,
                 "Packets that the lane's socket sent."},
                {weft_detailed_lane_pending_bytes, gauge, send_pend,
                 "Bytes that wait to be sent by the lane's socket."}]]].

of_lanes(Value) ->
    fun(#{links := Links}) ->
            [{[Node, Index, class(Class)], Value(Lane)}
             || #{node := Node, lane_stats := Lanes} <- Links,
                #{index := Index, class := Class} = Lane <- Lanes]
    end.

%% Those of channels have their names.
class(<<>>) -> distribution;
class(Channel) -> Channel.

%% --- sessions -----------------------------------------------------------------------------------

session() ->
    [family(weft_detailed_session_state, gauge, [peer, state, path],
            "Always 1; the labels say the state of the session, and if it is direct or a circuit.",
            fun(#{sessions := Sessions} = Status) ->
                    [{[Node, State, path(Session)], 1}
                     || #{node := Node, state := State} = Session <- Sessions]
                        ++ [{[Node, unknown, none], 1} || Node <- unanswered(session, Status)]
            end),
     of_sessions(weft_detailed_session_last_resume_seconds, gauge,
                 "What the last resume took.",
                 fun(Session) -> seconds(maps:get(last_resume_ms, Session, undefined), 1000) end)
     | [of_sessions(Name, Type, Help, fun(Session) -> maps:get(Key, Session, undefined) end)
        || {Name, Type, Key, Help} <- of_session()]].

of_sessions(Name, Type, Help, Value) ->
    family(Name, Type, [peer], Help,
           fun(#{sessions := Sessions}) -> [{[Node], Value(Session)}
                                            || #{node := Node} = Session <- Sessions] end).

of_session() ->
    [{weft_detailed_session_resumes_total, counter, resumes, "Times it went on over a new path."},
     {weft_detailed_session_reroutes_total, counter, reroutes,
      "Times it went on by way of another neighbour than before."},
     {weft_detailed_session_repairs_total, counter, repairs,
      "Times it went on over the same path, after it had lost a lane."},
     {weft_detailed_session_unacknowledged_bytes, gauge, unacked_bytes,
      "Bytes that were sent and not yet acknowledged."},
     {weft_detailed_session_window_bytes, gauge, window_bytes,
      "How much may be sent before an acknowledgement."},
     {weft_detailed_session_queued_bytes, gauge, queued_bytes,
      "Bytes that wait in the queues of senders."},
     {weft_detailed_session_queues, gauge, queues, "Queues of senders."},
     {weft_detailed_session_suspended_senders, gauge, suspended,
      "Processes that wait because they have sent much."},
     {weft_detailed_session_sent_bytes_total, counter, bytes_out, "Bytes of payloads, sent."},
     {weft_detailed_session_received_bytes_total, counter, bytes_in,
      "Bytes of payloads, received."},
     {weft_detailed_session_sent_packets_total, counter, packets_out, "Payloads and ticks, sent."},
     {weft_detailed_session_received_packets_total, counter, packets_in,
      "Payloads and ticks, received."}].

path(#{next_hop := undefined}) -> none;
path(#{node := Node, next_hop := Node}) -> direct;
path(#{}) -> circuit.

%% --- circuits -----------------------------------------------------------------------------------

circuit() ->
    [family(weft_detailed_circuit_info, gauge, [peer, next_hop],
            "Always 1; the labels say to whom the circuit leads, and by way of which neighbour.",
            fun(Status) -> [{[Node, Next], 1} || {Node, Next} <- circuits(Status)] end),
     family(weft_detailed_circuit_best_hops, gauge, [peer],
            "Links of the best route to the peer as the routes are now.", of_routes(hops, 1)),
     family(weft_detailed_circuit_best_cost_seconds, gauge, [peer],
            "Cost of the best route to the peer as the routes are now.",
            of_routes(cost_us, 1000000))].

circuits(#{sessions := Sessions}) ->
    [{Node, Next} || #{node := Node, next_hop := Next} = Session <- Sessions,
                     path(Session) =:= circuit].

of_routes(Key, Unit) ->
    fun(#{routes := Routes} = Status) ->
            [{[Node], per(Value, Unit)} || {Node, _} <- circuits(Status),
                                           #{Node := #{Key := Value}} <- [Routes]]
    end.

per(Value, 1) -> Value;
per(Value, Unit) -> Value / Unit.

relay() ->
    [family(weft_detailed_relay_info, gauge, [peer, label, far, next_hop],
            "Always 1; a circuit of other nodes: from which neighbour it comes under which label, "
            "who is at that end, and to which neighbour it goes on.",
            fun(#{links := Links}) ->
                    [{[Node, Label, Far, Next], 1}
                     || #{node := Node, circuits := Circuits} <- Links,
                        #{label := Label, far := Far, next_hop := Next} <- Circuits]
            end)].

%% --- channels, groups ---------------------------------------------------------------------------

channel() ->
    [family(weft_detailed_channel_queued_bytes, gauge, [channel, peer, partition],
            "Bytes that wait in the stream.",
            fun(#{channels := Channels}) ->
                    [{[Name, Node, Partition], Bytes}
                     || {Name, #{streams := Streams}} <- maps:to_list(Channels),
                        #{node := Node, partition := Partition, queued_bytes := Bytes} <- Streams]
            end)].

group() ->
    [family(weft_detailed_group_member, gauge, [group, peer],
            "1 for a node of the group, 2 for one that is in others, too.",
            fun(#{groups := Groups, gateways := Gateways}) ->
                    [{[Name, Node], case Gateways of #{Node := _} -> 2; #{} -> 1 end}
                     || {Name, Nodes} <- maps:to_list(Groups), Node <- Nodes]
            end)].
