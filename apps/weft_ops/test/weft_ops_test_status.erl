%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node knows, made up: small, with a value for each family, or of any size.
-module(weft_ops_test_status).

-export([snapshot/1, small/0, large/1, peer/1]).

%% @doc What is gathered for a scrape, with that status.
-spec snapshot(map()) -> weft_ops_snapshot:snapshot().
snapshot(Status) ->
    #{status => Status, peers => [peer(b@h)],
      build => #{cluster => <<"shop">>, version => "1.2", otp_release => "25"},
      webhook => #{sent => 20, failed => 21, dropped => 22, queued => 23}, seconds => 0.25,
      dist_peers_max => 28, stores => stores(),
      errors => #{status => 1, peers => 2, families => 3}}.

stores() ->
    #{ring => #{members => #{joining => 1, member => 2, leaving => 3, gone => 4}, partitions => 64,
                owned => 16, moving => 5, processes => 17, longest => 18,
                handoffs => #{running => 2, done => 19, failed => 20}},
      kv => #{requests => #{get => 31, put => 32, delete => 33},
              request_us => #{get => 500000, put => 1500000, delete => 250000},
              errors => #{caller => 34, overload => 35}, running => 36, lingering => 59,
              hints => 37, objects => 38, memory_bytes => 39, file_bytes => 40, unwritable => 41,
              entropy => #{compared => 42, failed => 43, repaired => 44, pairs => 45, alike => 46,
                           not_compared => 50, incomplete => 58},
              strong => #{voting => 47, founding => 48, forgotten => 49}},
      crdt => #{keys => 51, served => [b@h, c@h], unacknowledged => #{b@h => 26, c@h => 27},
                refused => 54, waiting => 55, subscriptions => 56, retired => 57,
                barred => {retired, b@h}}}.

%% @doc A node a@h: a direct session with b@h, a circuit to c@h, one that resumes to d@h; e@h is
%% known by a route only, and nothing leads to f@h.
-spec small() -> map().
small() ->
    #{node => a@h, topology => {groups, #{}}, members => [a@h, b@h, c@h, d@h, e@h, f@h],
      links => [link_to(b@h), (link_to(f@h))#{state := down, rtt_us := undefined, lanes := 0,
                                              lane_stats := []}],
      sessions => [session(b@h, b@h), session(c@h, b@h),
                   (session(d@h, undefined))#{state := resuming}],
      routes => #{b@h => route(1), c@h => route(2), d@h => route(3), e@h => route(2)},
      channels => #{bulk => channel()}, groups => #{left => [a@h, b@h, c@h]},
      gateways => #{b@h => [left, right]},
      names => #{cluster => #{kind => eventual, names => 11, conflicts => 13},
                 {own, "x"} => #{kind => strong, owned => 12}},
      broadcast => broadcast(), counters => counters()}.

link_to(Node) ->
    #{node => Node, state => up, lanes => 2, rtt_us => 1500, queued_bytes => 20,
      lane_stats => [#{index => N, class => Class, queued_bytes => 10,
                       stat => #{recv_oct => 100 * N, recv_cnt => N, recv_max => 60 + N,
                                 recv_avg => 50 * N, recv_dvi => N, send_oct => 200, send_cnt => 4,
                                 send_max => 9, send_avg => 50, send_pend => N}}
                     || {N, Class} <- [{1, <<>>}, {2, <<"bulk">>}]],
      circuits => [#{label => 7, far => <<"c@h">>, next_hop => d@h, next_label => 8}],
      relayed_bytes => 77, ups => 3, last_error => ""}.

session(Node, Next) ->
    #{node => Node, pid => self(), state => up, next_hop => Next, label => 1, resumes => 2,
      repairs => 1, reroutes => 3, last_resume_ms => 50, last_error => "", unacked_bytes => 30,
      queued_bytes => 40,
      queues => 5, suspended => 2, window_bytes => 65536, bytes_in => 1000, bytes_out => 2000,
      packets_in => 10, packets_out => 20}.

route(Hops) -> #{next_hop => b@h, hops => Hops, cost_us => 2000 * Hops}.

channel() ->
    #{counters => maps:from_list([{Name, 5} || Name <- weft_channel_counters:names()]),
      streams => [#{node => b@h, partition => N, queued_bytes => 8} || N <- [1, 2]]}.

broadcast() ->
    #{sent => 1, received => 2, received_bytes => 3, delivered => 4, dropped => 5, missed => 6,
      malformed => 7, mailbox_drops => 8, subscribers => #{x => 2, y => 3},
      tree => #{duplicates => 9, grafts_out => 10, grafts_in => 11, prunes_out => 12,
                prunes_in => 13, eager => 14, lazy => 15, trees => 16, missing => 17,
                cached => 18}}.

%% The first is 101, the next one 102, in the order of their names.
counters() ->
    Names = [bytes_in, bytes_out, dials_failed, lanes_closed, lanes_opened, links_down, links_up,
             packets_in, packets_out, refusals, relayed_bytes, relayed_packets, repairs, resumes,
             senders_suspended, sessions_ended, sessions_started, reroutes],
    maps:from_list(lists:zip(Names, lists:seq(101, 100 + length(Names)))).

%% @doc So many members, links, sessions, routes, channels, groups and scopes.
-spec large(pos_integer()) -> map().
large(Count) ->
    Numbers = lists:seq(1, Count),
    Nodes = [named(N) || N <- Numbers],
    Status = small(),
    Status#{members := [a@h | Nodes], links := [link_to(Node) || Node <- Nodes],
            sessions := [session(Node, Node) || Node <- Nodes],
            routes := maps:from_list([{Node, route(1)} || Node <- Nodes]),
            channels := maps:from_list([{{channel, N}, channel()} || N <- Numbers]),
            groups := maps:from_list([{{group, N}, lists:sublist(Nodes, N, 12)} || N <- Numbers]),
            names := maps:from_list([{{scope, N}, #{kind => eventual, names => N, conflicts => N}}
                                     || N <- Numbers])}.

named(N) -> list_to_atom(lists:concat(["node", N, "@h"])).

%% @doc What is known of a connected node.
-spec peer(node()) -> weft_ops_peers:peer().
peer(Node) ->
    #{node => Node, state => up, queue_bytes => 5,
      inet => #{recv_oct => 1, recv_cnt => 2, recv_max => 3, recv_avg => 4, recv_dvi => 5,
                send_oct => 6, send_cnt => 7, send_max => 8, send_avg => 9, send_pend => 10},
      port => #{input => 11, output => 12, memory => 13, queue_size => 14},
      processes => [{dist, #{memory => 15, heap_size => 16, min_heap_size => 17,
                             min_bin_vheap_size => 18, stack_size => 19, total_heap_size => 20,
                             message_queue_len => 21, reductions => 22, status => waiting}}]}.
