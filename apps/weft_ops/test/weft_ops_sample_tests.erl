%% SPDX-License-Identifier: Apache-2.0
-module(weft_ops_sample_tests).

-include_lib("eunit/include/eunit.hrl").

-define(IDLE, #{wake_up_us => 0, run_queue => 0, memory_bytes => 1, processes => 1}).

what_was_exchanged_since_the_look_before_test() ->
    Pid = list_to_pid("<0.1000.0>"),
    Sample = sample(status([session(b, Pid, 1000, 500)], []),
                    status([session(b, Pid, 1700, 510)], [])),
    ?assertMatch(#{node := 'a@h', period_ms := 2000, at_ms := 5,
                   peers := [#{node := b, bytes_out := 700, bytes_in := 10, resumes := 0}]},
                 Sample).

reroutes_since_the_look_before_test() ->
    Session = session(b, list_to_pid("<0.1000.0>"), 0, 0),
    Sample = sample(status([Session#{reroutes => 3}], []), status([Session#{reroutes => 5}], [])),
    ?assertMatch(#{peers := [#{reroutes := 2, resumes := 0}]}, Sample),
    %% A node of the version before does not say it.
    ?assertMatch(#{peers := [#{reroutes := 0}]}, sample(status([Session], []),
                                                        status([Session], []))).

%% What it did meanwhile is in the sample of when it answers again.
who_does_not_answer_is_unknown_and_has_not_ended_test() ->
    Pid = list_to_pid("<0.1000.0>"),
    Answers = fun(Out) -> status([session(b, Pid, Out, 0)], [link(b, up, 3, [Out])]) end,
    Silent = (status([], []))#{members := ['a@h', b],
                               unanswered => [#{what => session, node => b, pid => Pid},
                                              #{what => link, node => b, pid => Pid}]},
    {Between, Before} = weft_ops_sample:next(Silent, ?IDLE, {5, 2000},
                                             weft_ops_sample:first(Answers(1000))),
    ?assertMatch(#{peers := [#{node := b, state := unknown, bytes_out := 0}], unreachable := [],
                   links := [#{node := b, state := unknown, lanes := []}]}, Between),
    {After, _} = weft_ops_sample:next(Answers(1700), ?IDLE, {7, 2000}, Before),
    ?assertMatch(#{peers := [#{bytes_out := 700}], links := [#{ups := 0, lanes := [700]}]}, After).

%% The conflicts of before are not told again.
names_that_do_not_answer_lose_no_count_test() ->
    Conflicts = fun(Count) -> (status([], []))#{names := #{cluster => #{conflicts => Count}}} end,
    {#{conflicts := 0}, Before} =
        weft_ops_sample:next((status([], []))#{unanswered => [#{what => names}]}, ?IDLE, {5, 2000},
                             weft_ops_sample:first(Conflicts(7))),
    ?assertMatch({#{conflicts := 1}, _},
                 weft_ops_sample:next(Conflicts(8), ?IDLE, {7, 2000}, Before)).

%% The counter of a scope that was begun anew begins at zero. Those of others are not told again.
a_scope_that_was_begun_anew_counts_from_its_beginning_test() ->
    Conflicts = fun(One, Other) ->
                    (status([], []))#{names => #{one => #{conflicts => One},
                                                 other => #{conflicts => Other}}}
                end,
    ?assertMatch(#{conflicts := 0}, sample(Conflicts(7, 9), Conflicts(0, 9))),
    ?assertMatch(#{conflicts := 3}, sample(Conflicts(7, 9), Conflicts(1, 11))).

%% The counters of another session with the same node begin at zero.
a_new_session_counts_from_its_beginning_test() ->
    Sample = sample(status([session(b, list_to_pid("<0.1000.0>"), 1000, 500)], []),
                    status([session(b, list_to_pid("<0.1001.0>"), 70, 7)], [])),
    ?assertMatch(#{peers := [#{bytes_out := 70, bytes_in := 7}]}, Sample).

ups_and_bytes_of_lanes_test() ->
    Sample = sample(status([], [link(b, up, 3, [100, 200])]),
                    status([], [link(b, up, 5, [110, 200, 30])])),
    ?assertMatch(#{links := [#{node := b, ups := 2, lanes := [10, 0, 30]}]}, Sample).

%% The process of a link that nobody needed has ended, and there is another one.
a_link_that_was_begun_anew_counts_from_its_beginning_test() ->
    Sample = sample(status([], [link(b, up, 9, [1000])]), status([], [link(b, up, 1, [50])])),
    ?assertMatch(#{links := [#{ups := 1, lanes := [50]}]}, Sample).

%% Lanes of channels are no part of the comparison of lanes.
only_lanes_of_the_link_are_compared_test() ->
    #{lane_stats := [Lane | _]} = Link = link(b, up, 1, [10]),
    Sample = sample(status([], []),
                    status([], [Link#{lane_stats := [Lane, Lane#{class := <<"bulk">>}]}])),
    ?assertMatch(#{links := [#{lanes := [10]}]}, Sample).

%% It is told by the link that it comes by and by the one that it goes on by.
a_circuit_that_passes_counts_once_test() ->
    Circuit = #{label => 7, far => <<"c@h">>, next_hop => d, next_label => 8},
    Gateway = status([], [(link(Node, up, 1, []))#{circuits := [Circuit]} || Node <- [b, d]]),
    ?assertMatch(#{relayed_circuits := 1}, sample(Gateway, Gateway)).

a_member_without_link_route_and_session_is_unreachable_test() ->
    Status = status([session(c, list_to_pid("<0.1000.0>"), 0, 0)], [link(b, up, 1, []),
                                                                    link(e, down, 1, [])]),
    ?assertMatch(#{unreachable := [e, f]},
                 sample(Status, Status#{members := ['a@h', b, c, d, e, f],
                                        routes := #{d => #{}}})).

%% As SWIM finds them: such a node is no member any more, but may be back.
a_failed_node_without_a_path_is_unreachable_test() ->
    Status = (status([], [link(b, up, 1, [])]))#{members := ['a@h', b]},
    ?assertMatch(#{unreachable := [c]}, sample(Status, Status#{failed => [b, c]})).

%% Other versions and other programs may send anything.
what_is_made_here_is_a_sample_and_nothing_else_test_() ->
    Pid = list_to_pid("<0.1000.0>"),
    Known = status([session(b, Pid, 1, 1)], [link(b, up, 1, [10])]),
    Whole = #{peers := [Peer], links := [Link], machine := Machine} = sample(Known, Known),
    Unanswered = [#{what => What, node => b, pid => Pid} || What <- [session, link]],
    Unknown = sample(Known, (status([], []))#{unanswered => Unanswered}),
    Is = fun weft_ops_sample:is_sample/1,
    [?_assert(Is(Sample))
     || Sample <- [Whole, Unknown, maps:without([told, cuts, conflicts], Whole),
                   Whole#{told := [{x, <<"done">>}], later => new}, Whole#{agent => b}]]
        ++ [?_assertNot(Is(maps:remove(Key, Whole)))
            || Key <- maps:keys(Whole) -- [told, cuts, conflicts]]
        ++ [?_assertNot(Is(Whole#{machine := maps:remove(Key, Machine)}))
            || Key <- maps:keys(Machine)]
        ++ [?_assertNot(Is(Whole#{peers := [maps:remove(Key, Peer)]}))
            || Key <- maps:keys(Peer) -- [reroutes]]
        ++ [?_assertNot(Is(Whole#{links := [maps:remove(Key, Link)]})) || Key <- maps:keys(Link)]
        ++ [?_assertNot(Is(Wrong))
            || Wrong <- [sample, #{}, Whole#{peers := [x | y]}, Whole#{period_ms := 0},
                         Whole#{links := [Link#{lanes := [1.5]}]}, Whole#{unreachable := ["b"]},
                         Whole#{links := [Link#{last_error := {no, text}}]},
                         Whole#{told := [{x, {error, <<>>, <<255>>}}]},
                         Whole#{agent => "b"}]].

sample(Before, After) ->
    {Sample, _} = weft_ops_sample:next(After, ?IDLE, {5, 2000}, weft_ops_sample:first(Before)),
    Sample.

status(Sessions, Links) ->
    #{node => 'a@h', sessions => Sessions, links => Links, uptime_ms => 1, own_groups => [],
      members => [], routes => #{}, counters => #{relayed_bytes => 0}, cuts => [],
      names => #{}}.

session(Node, Pid, Out, In) ->
    #{node => Node, pid => Pid, bytes_out => Out, bytes_in => In, resumes => 0, next_hop => Node,
      state => up, queued_bytes => 0, suspended => 0}.

link(Node, State, Ups, Lanes) ->
    #{node => Node, state => State, ups => Ups, rtt_us => undefined, queued_bytes => 0,
      last_error => "", circuits => [],
      lane_stats => [#{class => <<>>, index => Index, queued_bytes => 0,
                       stat => #{send_oct => Bytes}}
                     || {Index, Bytes} <- lists:zip(lists:seq(0, length(Lanes) - 1), Lanes)]}.
