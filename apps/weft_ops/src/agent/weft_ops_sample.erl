%% SPDX-License-Identifier: Apache-2.0
%% @doc What an agent is told of a node, every few seconds: made of two readings of `weft:status()',
%% so that no message costs anything. Pure.
%%
%% Who talks to whom is taken from the counters of sessions. What was sent over a session that began
%% and ended between two readings is in no sample.
-module(weft_ops_sample).

-export([first/1, next/4, is_sample/1]).
-export_type([sample/0, machine/0, before/0, told/0]).

%% A session or link whose process did not answer is `unknown'; what it did meanwhile is in the
%% sample of when it answers again.
%%
%% Bytes that were exchanged with a peer in the period, and the neighbour that they went by: the
%% peer itself if it has a link.
-type peer() :: #{node := node(), via := node() | undefined, state := atom(),
                  bytes_out := non_neg_integer(), bytes_in := non_neg_integer(),
                  queued_bytes := non_neg_integer(), suspended := non_neg_integer(),
                  resumes := non_neg_integer(), reroutes := non_neg_integer()}.
%% lanes: bytes out of each in the period. ups: times it came up in the period.
-type link() :: #{node := node(), state := up | down | dialling | unknown, ups := non_neg_integer(),
                  rtt_us := pos_integer() | undefined, queued_bytes := non_neg_integer(),
                  lanes := [non_neg_integer()], last_error := string()}.
%% wake_up_us: how late a process of normal priority was woken, at worst.
-type machine() :: #{wake_up_us := non_neg_integer(), run_queue := non_neg_integer(),
                     memory_bytes := non_neg_integer(), processes := non_neg_integer()}.
%% agent: with the last sample for an agent, who is it from then on.
-type sample() :: #{node := node(), at_ms := integer(), period_ms := pos_integer(),
                    uptime_ms := non_neg_integer(), groups := [weft_group:name()],
                    peers := [peer()], links := [link()], relayed_bytes := non_neg_integer(),
                    relayed_circuits := non_neg_integer(), unreachable := [node()],
                    machine := machine(), cuts := [node()], conflicts := non_neg_integer(),
                    told := [told()], agent => node()}.
%% Of `weft_ops:tell/2'.
-type told() :: {About :: term(), Text :: binary()}.
%% What has to be known of a reading to make a sample at the next one.
-opaque before() :: #{sessions := #{pid() => {non_neg_integer(), non_neg_integer(),
                                              non_neg_integer(), non_neg_integer()}},
                      ups := #{node() => non_neg_integer()},
                      lanes := #{{node(), term()} => non_neg_integer()},
                      relayed_bytes := non_neg_integer(),
                      %% Of each scope of names.
                      conflicts := #{weft_names:scope() => non_neg_integer()}}.

%% @doc Of the first reading there is no sample.
-spec first(weft_status:status()) -> before().
first(#{sessions := Sessions, links := Links, counters := #{relayed_bytes := Relayed},
        names := Scopes}) ->
    #{sessions => maps:from_list([{Pid, {Out, In, Resumes, maps:get(reroutes, Session, 0)}}
                                  || #{pid := Pid, bytes_out := Out, bytes_in := In,
                                       resumes := Resumes} = Session <- Sessions]),
      ups => maps:from_list([{Node, Ups} || #{node := Node, ups := Ups} <- Links]),
      lanes => maps:from_list([{{Node, lane(Lane)}, sent(Lane)}
                               || #{node := Node, lane_stats := Lanes} <- Links, Lane <- Lanes]),
      relayed_bytes => Relayed,
      conflicts => maps:from_list([{Scope, Count}
                                   || {Scope, #{conflicts := Count}} <- maps:to_list(Scopes)])}.

%% @doc The sample of the period since the reading before, which ends at that system time. cuts:
%% links that are cut on purpose (`weft_fault'); conflicts: those of names that it resolved in the
%% period.
-spec next(weft_status:status(), machine(), {AtMs :: integer(), PeriodMs :: pos_integer()},
           before()) -> {sample(), before()}.
next(#{node := Node, sessions := Sessions, links := Links} = Status, Machine, {AtMs, PeriodMs},
     #{relayed_bytes := RelayedBefore, conflicts := ConflictsBefore} = Before) ->
    Unanswered = maps:get(unanswered, Status, []),
    #{relayed_bytes := Relayed, conflicts := Conflicts} = Now = kept(Unanswered, Before,
                                                                     first(Status)),
    {#{node => Node, at_ms => AtMs, period_ms => PeriodMs, machine => Machine,
       uptime_ms => maps:get(uptime_ms, Status), groups => maps:get(own_groups, Status),
       peers => [peer(Session, Before) || Session <- Sessions]
           ++ [unknown_peer(Peer) || #{what := session, node := Peer} <- Unanswered],
       links => [link(Link, Before) || Link <- Links]
           ++ [unknown_link(Peer) || #{what := link, node := Peer} <- Unanswered],
       relayed_bytes => Relayed - RelayedBefore,
       relayed_circuits => relayed_circuits(Links),
       unreachable => unreachable(Status), cuts => maps:get(cuts, Status),
       conflicts => lists:sum([since(Count, maps:get(Scope, ConflictsBefore, 0))
                               || {Scope, Count} <- maps:to_list(Conflicts)]),
       told => []}, Now}.

peer(#{pid := Pid, node := Node, next_hop := Via, state := State} = Session,
     #{sessions := Before}) ->
    {OutBefore, InBefore, ResumesBefore, ReroutesBefore} = maps:get(Pid, Before, {0, 0, 0, 0}),
    #{node => Node, via => Via, state => State,
      bytes_out => maps:get(bytes_out, Session) - OutBefore,
      bytes_in => maps:get(bytes_in, Session) - InBefore,
      resumes => maps:get(resumes, Session) - ResumesBefore,
      reroutes => maps:get(reroutes, Session, 0) - ReroutesBefore,
      queued_bytes => maps:get(queued_bytes, Session),
      suspended => maps:get(suspended, Session)}.

unknown_peer(Node) ->
    #{node => Node, via => undefined, state => unknown, bytes_out => 0, bytes_in => 0,
      resumes => 0, reroutes => 0, queued_bytes => 0, suspended => 0}.

unknown_link(Node) ->
    #{node => Node, state => unknown, rtt_us => undefined, queued_bytes => 0, last_error => "",
      ups => 0, lanes => []}.

%% What was known of those that have not answered.
kept(Unanswered, #{sessions := Sessions, ups := Ups, lanes := Lanes, conflicts := Conflicts},
     #{sessions := NewSessions, ups := NewUps, lanes := NewLanes,
       conflicts := NewConflicts} = Now) ->
    Pids = [Pid || #{what := session, pid := Pid} <- Unanswered],
    Nodes = [Node || #{what := link, node := Node} <- Unanswered],
    Now#{conflicts := case lists:member(#{what => names}, Unanswered) of
                          true -> Conflicts;
                          false -> NewConflicts
                      end,
         sessions := maps:merge(maps:with(Pids, Sessions), NewSessions),
         ups := maps:merge(maps:with(Nodes, Ups), NewUps),
         lanes := maps:merge(maps:filter(fun({Node, _}, _) -> lists:member(Node, Nodes) end, Lanes),
                             NewLanes)}.

%% Each is told by both links that it passes.
relayed_circuits(Links) ->
    lists:sum([length(Circuits) || #{circuits := Circuits} <- Links]) div 2.

%% A link that was closed for want of use, and opened again, counts from the beginning.
link(#{node := Node, ups := Ups, lane_stats := Lanes} = Link, #{ups := UpsBefore,
                                                                lanes := LanesBefore}) ->
    #{node => Node, state => maps:get(state, Link), rtt_us => maps:get(rtt_us, Link),
      queued_bytes => maps:get(queued_bytes, Link), last_error => maps:get(last_error, Link),
      ups => since(Ups, maps:get(Node, UpsBefore, 0)),
      lanes => [since(sent(Lane), maps:get({Node, lane(Lane)}, LanesBefore, 0))
                || #{class := <<>>} = Lane <- Lanes]}.

since(Now, Before) when Now >= Before -> Now - Before;
since(Now, _Before) -> Now.

lane(#{class := Class, index := Index}) -> {Class, Index}.

%% A lane that was closed meanwhile has no statistics.
sent(#{stat := Stat}) -> maps:get(send_oct, Stat, 0).

%% Members to which nothing leads now, as far as is known. One that a failure detector has found
%% dead is no member any more, and is missed all the same until it is known to have left.
unreachable(#{node := Self, members := Members, links := Links, sessions := Sessions,
              routes := Routes} = Status) ->
    Reached = [Node || #{node := Node, state := up} <- Links ++ Sessions] ++ maps:keys(Routes)
        ++ [Node || #{node := Node} <- maps:get(unanswered, Status, [])],
    (lists:usort(Members ++ maps:get(failed, Status, [])) -- [Self]) -- Reached.

%% --- of another node ----------------------------------------------------------------------------

%% @doc Whether it is a sample as this version makes them. What other versions, or other programs,
%% send may be anything.
-spec is_sample(term()) -> boolean().
is_sample(Term) ->
    try is_whole(Term) catch error:_ -> false end.

is_whole(#{node := Node, groups := Groups, peers := Peers, links := Links,
           unreachable := Unreachable, machine := Machine, period_ms := PeriodMs} = Sample) ->
    is_list(Groups) andalso PeriodMs > 0 andalso lists:all(fun is_atom/1, [Node | Unreachable])
        andalso is_atom(maps:get(agent, Sample, Node))
        andalso are_integers([at_ms, period_ms, uptime_ms, relayed_bytes, relayed_circuits], Sample)
        andalso are_integers([wake_up_us, run_queue, memory_bytes, processes], Machine)
        andalso lists:all(fun is_peer/1, Peers) andalso lists:all(fun is_link/1, Links)
        andalso is_integer(maps:get(conflicts, Sample, 0))
        andalso lists:all(fun is_atom/1, maps:get(cuts, Sample, []))
        andalso lists:all(fun({_About, Text}) -> is_text(Text) end, maps:get(told, Sample, [])).

is_peer(#{node := Node, via := Via, state := State} = Peer) ->
    lists:all(fun is_atom/1, [Node, Via, State]) andalso is_integer(maps:get(reroutes, Peer, 0))
        andalso are_integers([bytes_out, bytes_in, queued_bytes, suspended, resumes], Peer).

is_link(#{node := Node, state := State, rtt_us := RttUs, lanes := Lanes,
          last_error := Error} = Link) ->
    lists:all(fun is_atom/1, [Node, State]) andalso are_integers([ups, queued_bytes], Link)
        andalso (RttUs =:= undefined orelse is_integer(RttUs))
        andalso lists:all(fun is_integer/1, Lanes) andalso is_text(Error).

are_integers(Keys, Map) -> lists:all(fun(Key) -> is_integer(maps:get(Key, Map)) end, Keys).

is_text(Text) -> is_binary(unicode:characters_to_binary(Text)).
