%% SPDX-License-Identifier: Apache-2.0
%% @doc The families that weft adds to /metrics: one node in few series, whatever the cluster's
%% size. Pure.
%%
%% What only grows is read from the counters of the node. Sums over links and sessions that live now
%% are gauges, because they fall when one ends. Of what users name (channels, groups, scopes) the
%% first ones have series; `weft_series_left_out' says how many others there are.
%%
%% Not here: a series for each peer (`weft_ops_detailed', `weft_ops_dist_families'), and the ring
%% and the stores (`weft_ops_stores_families').
-module(weft_ops_families).

-export([all/0]).

%% Of 19 families for each channel, two for each group, and two for each scope.
-define(NAMED_MAX, 50).

%% @doc All of them, in the order of the documentation.
-spec all() -> [weft_ops_family:family()].
all() ->
    cluster() ++ links() ++ sessions() ++ relays() ++ channels() ++ groups() ++ broadcast()
        ++ weft_ops_stores_families:all() ++ webhook() ++ scrape().

family(Name, Type, Labels, Help, Read) ->
    #{name => Name, type => Type, labels => Labels, help => Help, from => status, read => Read}.

gauge(Name, Help, Read) -> family(Name, gauge, [], Help, Read).

%% A counter of the node; nothing if this version of weft has none of that name.
total(Name, Key, Help) ->
    family(Name, counter, [], Help, fun(#{counters := #{Key := Count}}) -> Count;
                                       (#{}) -> undefined
                                    end).

%% --- the node and its cluster -------------------------------------------------------------------

cluster() ->
    [(family(weft_build_info, gauge, [cluster, version, topology, otp_release],
             "Always 1; the labels say what runs.", fun build/1))#{from := snapshot},
     (family(weft_members, gauge, [cluster], "Nodes that are known to belong to the cluster.",
             fun members/1))#{from := snapshot},
     gauge(weft_unreachable_members,
           "Members, also those that have failed, to which this node has no path now: no link, no "
           "route and no session. Without a topology it is not reported.", fun unreachable/1)].

build(#{status := #{topology := Topology},
        build := #{cluster := Cluster, version := Version, otp_release := Otp}}) ->
    [{[Cluster, unicode:characters_to_binary(Version), topology(Topology), list_to_binary(Otp)],
      1}];
build(#{}) ->
    [].

members(#{status := #{members := Members}, build := #{cluster := Cluster}}) ->
    [{[Cluster], length(Members)}];
members(#{}) ->
    [].

topology(undefined) -> none;
topology(Topology) when is_tuple(Topology) -> element(1, Topology);
topology(Topology) -> Topology.

unreachable(#{topology := undefined}) ->
    undefined;
unreachable(#{node := Self, members := Members, routes := Routes, links := Links,
              sessions := Sessions} = Status) ->
    Unknown = [Node || #{node := Node} <- maps:get(unanswered, Status, [])],
    Reached = maps:from_list([{Node, up} || Rows <- [Links, Sessions],
                                            #{node := Node, state := up} <- Rows]
                                 ++ [{Node, unknown} || Node <- Unknown]),
    length([Node || Node <- lists:usort(Members ++ maps:get(failed, Status, [])), Node =/= Self,
                    not is_map_key(Node, Reached), not is_map_key(Node, Routes)]).

%% --- links --------------------------------------------------------------------------------------

links() ->
    [family(weft_links, gauge, [state], "Links to neighbours.",
            fun(#{links := Links} = Status) ->
                    states([up, dialling, down], Links) ++ unknown(link, Status)
            end),
     gauge(weft_link_round_trip_seconds_max, "Longest round trip of the links.",
           fun(Status) -> of_round_trips(fun lists:max/1, Status) end),
     gauge(weft_link_round_trip_seconds_mean, "Mean round trip of the links.",
           fun(Status) -> of_round_trips(fun mean/1, Status) end),
     total(weft_links_up_total, links_up, "Times a link came up."),
     total(weft_links_down_total, links_down, "Times a link went down."),
     total(weft_dials_failed_total, dials_failed,
           "Attempts to connect to a neighbour that failed."),
     gauge(weft_link_queued_bytes, "Bytes that wait before the lanes of the links.",
           fun(#{links := Links}) -> sum(queued_bytes, Links) end),
     gauge(weft_lanes, "Lanes of all links.", fun(#{links := Links}) -> sum(lanes, Links) end),
     total(weft_lanes_opened_total, lanes_opened, "Lanes that were opened."),
     total(weft_lanes_closed_total, lanes_closed, "Lanes that have ended."),
     total(weft_refusals_total, refusals,
           "Connections that were refused, or closed for what came over them.")].

states(States, Rows) ->
    [{[State], length([Row || #{state := Is} = Row <- Rows, Is =:= State])} || State <- States].

%% Their process has not answered.
unknown(Kind, Status) ->
    [{[unknown], length([What || #{what := What} <- maps:get(unanswered, Status, []),
                                 What =:= Kind])}].

sum(Key, Rows) -> lists:sum([maps:get(Key, Row) || Row <- Rows]).

of_round_trips(Fun, #{links := Links}) ->
    case [Us || #{rtt_us := Us} <- Links, is_integer(Us)] of
        [] -> undefined;
        RoundTripsUs -> Fun(RoundTripsUs) / 1000000
    end.

mean(Values) -> lists:sum(Values) / length(Values).

%% --- sessions -----------------------------------------------------------------------------------

sessions() ->
    [family(weft_sessions, gauge, [state], "Sessions with other nodes.",
            fun(#{sessions := Sessions} = Status) ->
                    states([up, resuming, handshake], Sessions) ++ unknown(session, Status)
            end),
     total(weft_sessions_started_total, sessions_started, "Sessions that began."),
     total(weft_sessions_ended_total, sessions_ended, "Sessions that ended."),
     total(weft_session_resumes_total, resumes, "Times a session went on over a new path."),
     total(weft_session_reroutes_total, reroutes,
           "Times a session went on by way of another neighbour than before."),
     total(weft_session_repairs_total, repairs,
           "Times a session went on over the same path, after it had lost a lane."),
     gauge(weft_session_unacknowledged_bytes, "Bytes that were sent and not yet acknowledged.",
           fun(#{sessions := Sessions}) -> sum(unacked_bytes, Sessions) end),
     gauge(weft_session_window_bytes, "How much may be sent before an acknowledgement.",
           fun(#{sessions := Sessions}) -> told(window_bytes, Sessions) end),
     gauge(weft_session_queued_bytes, "Bytes that wait in the queues of senders.",
           fun(#{sessions := Sessions}) -> told(queued_bytes, Sessions) end),
     gauge(weft_suspended_senders, "Processes that wait because they have sent much.",
           fun(#{sessions := Sessions}) -> told(suspended, Sessions) end),
     total(weft_senders_suspended_total, senders_suspended,
           "Times a process was made to wait because it had sent much."),
     total(weft_stream_packets_sent_total, packets_out, "Payloads and ticks that were sent."),
     total(weft_stream_packets_received_total, packets_in,
           "Payloads and ticks that were received."),
     total(weft_stream_sent_bytes_total, bytes_out,
           "Bytes of the payloads that were sent; what is repeated counts again."),
     total(weft_stream_received_bytes_total, bytes_in,
           "Bytes of the payloads that were received.")].

%% Nothing if this version of weft does not say it.
told(Key, Sessions) ->
    case lists:all(fun(Session) -> is_map_key(Key, Session) end, Sessions) of
        true -> sum(Key, Sessions);
        false -> undefined
    end.

%% --- circuits -----------------------------------------------------------------------------------

relays() ->
    [gauge(weft_circuits, "Sessions of this node that go through other nodes.",
           fun(#{sessions := Sessions}) ->
                   length([Node || #{node := Node, next_hop := Next} <- Sessions,
                                   Next =/= undefined, Next =/= Node])
           end),
     gauge(weft_relayed_circuits, "Circuits of other nodes that pass through this node.",
           fun(#{links := Links}) -> relayed(Links) end),
     total(weft_relayed_packets_total, relayed_packets, "Packets that were relayed for others."),
     total(weft_relayed_bytes_total, relayed_bytes, "Bytes that were relayed for others.")].

%% Each is told by both links that it passes.
relayed(Links) ->
    length([Circuit || #{circuits := Circuits} <- Links, Circuit <- Circuits]) div 2.

%% --- channels, groups, names --------------------------------------------------------------------

channels() ->
    [family(list_to_atom("weft_channel_" ++ atom_to_list(Counter) ++ "_total"), counter, [channel],
            help(Counter), fun(Status) -> counted(Counter, Status) end)
     || Counter <- weft_channel_counters:names()] ++
        [family(weft_channel_streams, gauge, [channel], "Streams that the channel has now.",
                fun(Status) -> [{[Name], length(Streams)}
                                || {Name, #{streams := Streams}} <- first(channels, Status)] end),
         family(weft_channel_queued_bytes, gauge, [channel], "Bytes that wait in the channel.",
                fun(Status) -> [{[Name], sum(queued_bytes, Streams)}
                                || {Name, #{streams := Streams}} <- first(channels, Status)] end)].

counted(Counter, Status) ->
    [{[Name], Count} || {Name, #{counters := #{Counter := Count}}} <- first(channels, Status)].

help(messages_out) -> "Messages that were given to streams.";
help(bytes_out) -> "Bytes that were given to streams.";
help(batches_out) -> "Batches of messages that were given to streams.";
help(messages_in) -> "Messages that arrived.";
help(batches_in) -> "Batches of messages that arrived.";
help(dropped_newest) -> "Messages that were dropped, as the queue was full.";
help(dropped_oldest) -> "Messages that were dropped for newer ones, as the queue was full.";
help(superseded) -> "Messages that a newer one with the same key has replaced.";
help(refused) -> "Messages that the sender was told were refused, as the queue was full.";
help(blocked) -> "Times a sender waited for room in the queue.";
help(block_timeouts) -> "Times a sender waited for room in the queue in vain.";
help(lost) -> "Messages that were lost when a peer or the channel ended.";
help(undeliverable) -> "Messages that arrived for a receiver that is not there.";
help(repeated) -> "Messages that were sent again and had been acknowledged before.";
help(causal_forced) -> "Messages that were delivered without waiting for those that caused them.";
help(plain) -> "Messages that went by the distribution, to nodes without channels.";
help(paused) -> "Times a receiver was full.";
help(Counter) -> lists:flatten(io_lib:format("Counter ~ts of the channel.", [Counter])).

groups() ->
    [gauge(weft_groups, "Groups that are known here.", fun(#{groups := Groups}) ->
                                                               map_size(Groups)
                                                       end),
     family(weft_group_members, gauge, [group], "Nodes of the group.",
            fun(Status) -> [{[Name], length(Nodes)} || {Name, Nodes} <- first(groups, Status)] end),
     family(weft_group_gateways, gauge, [group], "Nodes of the group that are in others, too.",
            fun(#{gateways := Gateways} = Status) ->
                    [{[Name], length([Node || Node <- Nodes, is_map_key(Node, Gateways)])}
                     || {Name, Nodes} <- first(groups, Status)]
            end),
     family(weft_names, gauge, [scope, kind],
            "Registered names: all that are known here of an eventual scope, those of processes of "
            "this node of a strong one.",
            fun(Status) -> [{[Scope, Kind], names(Info)}
                            || {Scope, #{kind := Kind} = Info} <- first(names, Status)] end),
     family(weft_name_conflicts_total, counter, [scope],
            "Names of an eventual scope that two processes had, where this node has decided.",
            fun(Status) -> [{[Scope], Count}
                            || {Scope, #{conflicts := Count}} <- first(names, Status)] end)].

names(#{names := Count}) -> Count;
names(#{owned := Count}) -> Count;
names(#{}) -> undefined.

first(Key, Status) -> lists:sublist(lists:sort(maps:to_list(maps:get(Key, Status))), ?NAMED_MAX).

%% --- broadcast ----------------------------------------------------------------------------------

broadcast() ->
    [family(Name, counter, [], Help, fun(#{broadcast := Info}) ->
                                             maps:get(Key, Info, undefined)
                                     end)
     || {Name, Key, Help} <- inbox()] ++
        [family(Name, counter, [], Help, fun(Status) -> of_tree(Key, Status) end)
         || {Name, Key, Help} <- tree()] ++
        [family(weft_broadcast_links, gauge, [kind],
                "Links of all trees: eager ones carry messages, lazy ones the names of messages.",
                fun(Status) -> [{[Kind], of_tree(Kind, Status)} || Kind <- [eager, lazy]] end),
         gauge(weft_broadcast_trees, "Trees that are known.",
               fun(Status) -> of_tree(trees, Status) end),
         gauge(weft_broadcast_missing_messages, "Messages that were named and have not come yet.",
               fun(Status) -> of_tree(missing, Status) end),
         gauge(weft_broadcast_cached_messages, "Messages that are kept for nodes that lack them.",
               fun(Status) -> of_tree(cached, Status) end),
         gauge(weft_broadcast_subscriptions, "Subscriptions of processes of this node.",
               fun(#{broadcast := #{subscribers := Scopes}}) -> lists:sum(maps:values(Scopes));
                  (#{}) -> undefined
               end)].

inbox() ->
    [{weft_broadcast_sent_total, sent, "Broadcasts that this node sent."},
     {weft_broadcast_received_total, received, "Broadcasts that arrived, own ones included."},
     {weft_broadcast_received_bytes_total, received_bytes, "Bytes of broadcasts that arrived."},
     {weft_broadcast_delivered_total, delivered, "Deliveries to subscribers."},
     {weft_broadcast_dropped_total, dropped, "Deliveries that were dropped: the mailbox was full."},
     {weft_broadcast_missed_total, missed, "Broadcasts that are gone for good."},
     {weft_broadcast_malformed_total, malformed, "Broadcasts that could not be decoded."},
     {weft_broadcast_mailbox_drops_total, mailbox_drops,
      "Messages of neighbours that were dropped, because they came too fast."}].

tree() ->
    [{weft_broadcast_duplicates_total, duplicates, "Broadcasts that came once more."},
     {weft_broadcast_grafts_sent_total, grafts_out, "Requests to make a link eager, sent."},
     {weft_broadcast_grafts_received_total, grafts_in, "Requests to make a link eager, received."},
     {weft_broadcast_prunes_sent_total, prunes_out, "Requests to make a link lazy, sent."},
     {weft_broadcast_prunes_received_total, prunes_in, "Requests to make a link lazy, received."}].

of_tree(Key, #{broadcast := #{tree := Tree}}) -> maps:get(Key, Tree, undefined);
of_tree(_Key, #{}) -> undefined.

%% --- alarms -------------------------------------------------------------------------------------

webhook() ->
    [(family(Name, Type, [], Help, fun(#{webhook := Counts}) -> maps:get(Key, Counts, undefined);
                                      (#{}) -> undefined
                                   end))#{from := snapshot}
     || {Name, Type, Key, Help} <-
            [{weft_webhook_sent_total, counter, sent, "Messages about alarms that a webhook took."},
             {weft_webhook_failed_total, counter, failed,
              "Attempts to tell a webhook of an alarm that failed."},
             {weft_webhook_dropped_total, counter, dropped,
              "Messages about alarms that were dropped: too many waited, or they were refused."},
             {weft_webhook_queued, gauge, queued, "Messages about alarms that wait."}]].

%% --- the scrape itself --------------------------------------------------------------------------

scrape() ->
    [gauge(weft_series_left_out,
           "Channels, groups and scopes without series of their own, because there are too many.",
           fun(Status) -> lists:sum([max(0, map_size(maps:get(Key, Status)) - ?NAMED_MAX)
                                     || Key <- [channels, groups, names]]) end),
     (gauge(weft_dist_peers_left_out,
            "Connected nodes without erlang_vm_dist families in /metrics, because there are more "
            "than dist_peers_max.", fun left_out/1))#{from := snapshot},
     (gauge(weft_scrape_seconds, "What it took to gather what this node knows.",
            fun(#{seconds := Seconds}) -> Seconds end))#{from := snapshot},
     (family(weft_scrape_errors_total, counter, [source],
             "Times something was left out of a scrape, because its source did not answer.",
             fun(#{errors := Errors}) -> [{[Source], Count}
                                          || {Source, Count} <- maps:to_list(Errors)] end))
     #{from := snapshot}].

left_out(#{peers := Peers, dist_peers_max := Max}) when length(Peers) > Max -> length(Peers);
left_out(#{}) -> 0.
