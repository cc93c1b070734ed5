%% SPDX-License-Identifier: Apache-2.0
%% @doc Groups, event by event. Whole clusters with faults are in the simulator.
-module(weft_group_gossip_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SELF, 'a@h').

%% --- errors -----------------------------------------------------------------------------------

what_may_not_be_done_is_an_error_and_changes_nothing_test_() ->
    {Started, _} = weft_group_gossip_core:init(?SELF, #{groups => #{mine => [?SELF, 'b@h'],
                                                                    theirs => ['b@h', 'c@h']}}),
    [{lists:flatten(io_lib:format("~0p", [Change])),
      fun() ->
          {State, Effects} = command(Change, Started),
          ?assertEqual([{reply, ref, {error, Error}}], Effects),
          ?assertEqual(weft_group_gossip_core:table(Started), weft_group_gossip_core:table(State))
      end}
     || {Change, Error} <-
            [{{create, undefined, [?SELF]}, reserved_name},
             {{create, no_group, [?SELF]}, reserved_name},
             {{create, weft_bridge, [?SELF]}, reserved_name},
             {{create, {g, self()}, [?SELF]}, bad_name},
             {{create, #{g => [make_ref()]}, [?SELF]}, bad_name},
             {{create, mine, [?SELF]}, {name_in_use, [?SELF, 'b@h']}},
             {{create, theirs, [?SELF]}, {name_in_use, ['b@h', 'c@h']}},
             {{create, lists:seq(1, 300), [?SELF]}, name_too_long},
             {{create, new, []}, no_nodes},
             {{create, new, ['b@h']}, self_not_in_list},
             {{create, new, [?SELF, b]}, {not_a_node, b}},
             {{create, new, [?SELF, "b@h"]}, {not_a_node, "b@h"}},
             {{add, new, ['b@h']}, unknown_group},
             {{add, theirs, ['b@h']}, not_a_member},
             {{add, mine, []}, no_nodes},
             {{add, mine, [b]}, {not_a_node, b}},
             {{remove, new, ['b@h']}, unknown_group},
             {{remove, theirs, ['b@h']}, not_a_member},
             {{remove, mine, [?SELF]}, cannot_remove_self},
             {{remove, mine, ['c@h', 'b@h']}, {not_members, ['c@h']}},
             {{leave, theirs}, not_a_member},
             {{delete, theirs}, not_a_member},
             {{delete, new}, unknown_group}]].

too_many_operations_at_once_are_refused_test() ->
    Busy = lists:foldl(fun(N, S) ->
                           element(1, command({create, N, [?SELF, 'b@h']}, S))
                       end, started(), lists:seq(1, 256)),
    ?assertEqual(256, weft_group_gossip_core:pending(Busy)),
    ?assertEqual([{reply, ref, {error, busy}}],
                 element(2, command({create, last, [?SELF, 'b@h']}, Busy))).

%% --- answers ----------------------------------------------------------------------------------

a_group_of_this_node_alone_stands_at_once_test() ->
    {State, Effects} = command({create, g, [?SELF]}, started()),
    ?assertEqual([{ok, #{members => [?SELF], unreachable => []}}], replies(Effects)),
    ?assertEqual([{{group, g}, [?SELF]}], views(Effects)),
    {_, Left} = command({leave, g}, State),
    ?assertEqual([{{group, g}, delete}], views(Left)).

a_creation_is_answered_when_all_have_confirmed_test() ->
    {S1, E1} = command({create, g, ['b@h', ?SELF, 'c@h']}, up(['b@h', 'c@h'], started())),
    ?assertMatch([{'b@h', {change, 1, g, _}}, {'c@h', {change, 1, g, _}}], sent(E1)),
    ?assertEqual([], replies(E1)),
    {S2, E2} = message('b@h', confirmation(E1), S1),
    ?assertEqual([], replies(E2)),
    {_, E3} = message('c@h', confirmation(E1), S2),
    ?assertEqual([{ok, #{members => [?SELF, 'b@h', 'c@h'], unreachable => []}}], replies(E3)).

who_is_not_reached_is_dialled_and_reported_and_stays_a_member_test() ->
    {S1, E1} = command({create, g, [?SELF, 'b@h', 'c@h']}, up(['b@h'], started())),
    ?assert(lists:member({connect, 'c@h'}, E1)),
    {S2, E2} = message('b@h', confirmation(E1), S1),
    ?assertEqual([], replies(E2)),
    {_, E3} = handle({neighbour_down, 'c@h', connect_failed}, S2),
    ?assertEqual([{ok, #{members => [?SELF, 'b@h', 'c@h'], unreachable => ['c@h']}}],
                 replies(E3)).

who_comes_in_time_is_told_test() ->
    {S1, _} = command({create, g, [?SELF, 'b@h']}, started()),
    {S2, E2} = handle({neighbour_up, 'b@h'}, S1),
    [{'b@h', {change, 1, g, Entry}}] = [S || {_, {change, _, _, _}} = S <- sent(E2)],
    {_, E3} = message('b@h', {changed, 1, g, Entry}, S2),
    ?assertEqual([{ok, #{members => [?SELF, 'b@h'], unreachable => []}}], replies(E3)).

who_is_silent_until_the_deadline_is_reported_test() ->
    {S1, E1} = command({create, g, [?SELF, 'b@h']}, up(['b@h'], started())),
    [{Ms, Timer}] = [{Ms, T} || {after_ms, Ms, {operation, _} = T} <- E1],
    ?assertEqual(5000, Ms),
    {S2, E2} = handle({timer, Timer}, S1),
    ?assertEqual([{ok, #{members => [?SELF, 'b@h'], unreachable => ['b@h']}}], replies(E2)),
    %% What comes later is no second answer.
    {S3, E3} = message('b@h', confirmation(E1), S2),
    ?assertEqual({[], 0}, {replies(E3), weft_group_gossip_core:pending(S3)}),
    ?assertEqual({S3, []}, handle({timer, Timer}, S3)).

those_removed_are_told_as_well_test() ->
    State = up(['b@h', 'c@h'], started(#{groups => #{g => [?SELF, 'b@h', 'c@h']}})),
    {_, E} = command({remove, g, ['c@h']}, State),
    ?assertMatch([{'b@h', {change, _, g, _}}, {'c@h', {change, _, g, _}}], sent(E)).

a_former_member_is_not_disconnected_nor_dialled_any_more_test() ->
    State = up(['b@h'], started(#{groups => #{g => [?SELF, 'b@h']}})),
    {S1, E1} = command({remove, g, ['b@h']}, State),
    ?assertEqual([], [N || {disconnect, N} <- E1]),
    {_, E2} = handle({neighbour_down, 'b@h', closed}, S1),
    ?assertEqual([], [T || {after_ms, _, {dial, _, _} = T} <- E2]).

%% --- two initiators at once -------------------------------------------------------------------

two_creations_at_once_have_one_outcome_and_both_an_answer_test() ->
    A0 = up(['b@h'], node_of('a@h')),
    B0 = up(['a@h'], node_of('b@h')),
    {A1, EA1} = command({create, g, ['a@h', 'b@h', 'c@h']}, up(['c@h'], A0)),
    {B1, EB1} = command({create, g, ['a@h', 'b@h', 'd@h']}, up(['d@h'], B0)),
    [{'b@h', ToB}] = [S || {'b@h', {change, _, _, _}} = S <- sent(EA1)],
    [{'a@h', ToA}] = [S || {'a@h', {change, _, _, _}} = S <- sent(EB1)],
    {A2, EA2} = message('b@h', ToA, A1),
    {B2, EB2} = message('a@h', ToB, B1),
    [ByA] = [M || {'b@h', {changed, _, _, _} = M} <- sent(EA2)],
    [ByB] = [M || {'a@h', {changed, _, _, _} = M} <- sent(EB2)],
    ?assert(lists:member({notice, {warning, {lost, g}}}, EA2)),
    {A3, _} = message('b@h', ByB, A2),
    {B3, _} = message('a@h', ByA, B2),
    {A4, EA4} = handle({neighbour_down, 'c@h', closed}, A3),
    {B4, EB4} = handle({neighbour_down, 'd@h', closed}, B3),
    ?assertEqual([{error, {name_in_use, ['a@h', 'b@h', 'd@h']}}], replies(EA4)),
    ?assertEqual([{ok, #{members => ['a@h', 'b@h', 'd@h'], unreachable => ['d@h']}}],
                 replies(EB4)),
    ?assertEqual(groups(B4), groups(A4)).

a_change_of_a_group_that_is_deleted_meanwhile_is_an_error_test() ->
    State = up(['b@h'], started(#{groups => #{g => [?SELF, 'b@h']}})),
    {S1, E1} = command({add, g, ['c@h']}, State),
    ?assert(lists:member({connect, 'c@h'}, E1)),
    {ok, Deleted} = weft_group_table:entry(
                      g, weft_group_table:delete(g, {'b@h', 1}, weft_group_gossip_core:table(S1))),
    {S2, _} = message('b@h', {changed, 1, g, Deleted}, S1),
    {S3, E3} = handle({neighbour_down, 'c@h', connect_failed}, S2),
    ?assertEqual([{error, unknown_group}], replies(E3)),
    ?assertEqual(#{}, groups(S3)).

%% --- a name of which others remember a deletion -----------------------------------------------

%% This node has not heard of it before it creates the group, and its counter is lower.
a_deletion_of_an_earlier_group_does_not_end_a_new_one_test() ->
    {Remembered, Deleted} = deleted_by_another(),
    {S1, _} = command({create, g, [?SELF, 'b@h']}, up(['b@h'], started())),
    {S2, Effects} = message('b@h', {changed, 1, g, Deleted}, S1),
    ?assertEqual([{ok, #{members => [?SELF, 'b@h'], unreachable => []}}], replies(Effects)),
    ?assertEqual([], views(Effects) ++ warnings(Effects)),
    [{'b@h', {entries, [{g, Again}], []}}] = sent(Effects),
    {changed, Told} = weft_group_table:merge(g, Again, Remembered),
    ?assertEqual(groups(S2), weft_group_table:groups(Told)),
    %% Once is enough, and who knows the group may delete it.
    ?assertMatch({S2, [{send, _, _}]}, message('b@h', {change, 1, g, Deleted}, S2)),
    {ok, Ended} = weft_group_table:entry(g, weft_group_table:delete(g, {'b@h', 1}, Told)),
    {S3, Gone} = message('b@h', {entries, [{g, Ended}], []}, S2),
    ?assertEqual({#{}, []}, {groups(S3), warnings(Gone)}).

a_group_that_has_been_answered_ok_does_not_vanish_test() ->
    {_, Deleted} = deleted_by_another(),
    {S1, Created} = command({create, g, [?SELF]}, started()),
    ?assertMatch([{ok, _}], replies(Created)),
    {S2, Effects} = message('b@h', {entries, [{g, Deleted}], []}, up(['b@h', 'c@h'], S1)),
    ?assertEqual(#{g => [?SELF]}, groups(S2)),
    ?assertMatch([{'b@h', {entries, [{g, {_, alive, _}}], []}},
                  {'c@h', {entries, [{g, {_, alive, _}}], []}}], lists:sort(sent(Effects))).

%% One that was made by an earlier state of the code may have been of this group.
a_deletion_that_does_not_say_of_what_ends_a_group_with_a_warning_test() ->
    {_, {Version, deleted, _}} = deleted_by_another(),
    {S1, _} = command({create, g, [?SELF]}, started()),
    {S2, Effects} = message('b@h', {entries, [{g, {Version, deleted, #{}}}], []}, S1),
    ?assertEqual(#{}, groups(S2)),
    ?assertMatch([{deleted, g, #{by := 'b@h', what := _}}], warnings(Effects)).

deleted_by_another() ->
    Author = {'b@h', 1},
    Made = weft_group_table:create({g, ['b@h']}, Author, weft_group_table:from_list(10, [])),
    Table = weft_group_table:delete(g, Author, Made),
    {ok, Deleted} = weft_group_table:entry(g, Table),
    {Table, Deleted}.

warnings(Effects) -> [Warning || {notice, {warning, Warning}} <- Effects].

%% --- news -------------------------------------------------------------------------------------

tables_that_differ_are_exchanged_when_nodes_meet_test() ->
    A = started(#{groups => #{g1 => [?SELF], g2 => ['x@h']}}),
    B = started(#{groups => #{g2 => ['x@h'], g3 => ['b@h']}}, 'b@h'),
    {_, Up} = handle({neighbour_up, 'b@h'}, A),
    [{'b@h', Hash}] = sent(Up),
    {B1, [Summary]} = reply_of(message('a@h', Hash, B)),
    {A1, [Entries]} = reply_of(message('b@h', Summary, A)),
    {B2, [Back]} = reply_of(message('a@h', Entries, B1)),
    {A2, []} = reply_of(message('b@h', Back, A1)),
    ?assertEqual(#{g1 => [?SELF], g2 => ['x@h'], g3 => ['b@h']}, groups(A2)),
    ?assertEqual(groups(A2), groups(B2)),
    %% Those that agree have nothing to say.
    [{'b@h', Same}] = sent(element(2, handle({neighbour_up, 'b@h'}, A2))),
    ?assertEqual([], sent(element(2, message('a@h', Same, B2)))).

%% Links of clusters without groups rest.
who_knows_of_no_group_asks_nobody_test() ->
    {Without, Effects} = handle({timer, sync}, up(['b@h'], started())),
    ?assertEqual([], sent(Effects)),
    {With, _} = command({create, g, [?SELF]}, Without),
    ?assertMatch([{'b@h', {hash, _}}], sent(element(2, handle({timer, sync}, With)))).

large_tables_go_in_several_messages_test() ->
    Many = maps:from_list([{N, ['x@h']} || N <- lists:seq(1, 250)]),
    A = started(#{groups => Many}),
    {_, [Summary]} = reply_of(message('a@h', {hash, 0}, started(#{}, 'b@h'))),
    {_, Effects} = message('b@h', Summary, A),
    ?assertEqual([100, 100, 50], [length(Entries) || {'b@h', {entries, Entries, []}}
                                                         <- sent(Effects)]),
    B = lists:foldl(fun({'b@h', Msg}, S) -> element(1, message('a@h', Msg, S)) end,
                    started(#{}, 'b@h'), sent(Effects)),
    ?assertEqual(Many, groups(B)).

news_go_on_to_some_but_not_to_who_sent_them_test() ->
    Others = [list_to_atom("n" ++ integer_to_list(N) ++ "@h") || N <- lists:seq(1, 20)],
    State = up(['b@h' | Others], started()),
    {ok, New} = weft_group_table:entry(g, weft_group_table:create({g, ['b@h']}, {'b@h', 1},
                                                                  weft_group_table:new())),
    {Knowing, Effects} = message('b@h', {entries, [{g, New}], []}, State),
    To = [Node || {Node, {entries, [{g, _}], []}} <- sent(Effects)],
    ?assertEqual(5, length(lists:usort(To))),
    ?assertNot(lists:member('b@h', To)),
    ?assertEqual([], sent(element(2, message('b@h', {entries, [{g, New}], []}, Knowing)))).

neighbours_of_the_overlay_are_connected_where_there_are_groups_test() ->
    Told = {notice, {neighbours, ['b@h', 'c@h']}},
    {Without, Effects} = handle(Told, up(['b@h'], started())),
    ?assertEqual([], Effects),
    {With, _} = command({create, g, [?SELF]}, Without),
    ?assertEqual([{connect, 'c@h'}], element(2, handle(Told, With))).

groups_can_be_configured_later_test() ->
    {State, Effects} = command({configure, #{g => [?SELF, 'b@h']}}, up(['b@h'], started())),
    ?assertEqual([ok], replies(Effects)),
    ?assertEqual([{g, {up, 'b@h'}}], comings(Effects)),
    ?assertEqual([#{g => ['b@h']}], replies(element(2, command(fellows, State)))),
    ?assertEqual({State, [{reply, ref, ok}]}, command({configure, #{g => [?SELF]}}, State)),
    ?assertEqual([weft_group_gossip_core:table(State)], replies(element(2, command(table, State)))),
    {Deleted, _} = command({delete, g}, State),
    ?assertEqual(#{}, groups(element(1, command({configure, #{g => [?SELF]}}, Deleted)))).

a_message_of_another_version_is_ignored_test() ->
    State = up(['b@h'], started()),
    ?assertEqual({State, []}, handle({message, 'b@h', {groups, 2, what}}, State)).

fellow_members_that_come_and_go_are_told_of_per_group_test() ->
    State = up(['b@h', 'c@h'], started()),
    {S1, E1} = command({create, g, [?SELF, 'b@h', 'd@h']}, State),
    ?assertEqual([{g, {up, 'b@h'}}], comings(E1)),
    {S2, E2} = handle({neighbour_down, 'c@h', closed}, S1),
    ?assertEqual([], comings(E2)),
    {S3, E3} = handle({neighbour_up, 'd@h'}, S2),
    ?assertEqual([{g, {up, 'd@h'}}], comings(E3)),
    {S4, E4} = command({remove, g, ['b@h']}, S3),
    ?assertEqual([{g, {down, 'b@h'}}], comings(E4)),
    {_, E5} = handle({neighbour_down, 'd@h', closed}, S4),
    ?assertEqual([{g, {down, 'd@h'}}], comings(E5)).

%% --- helpers ----------------------------------------------------------------------------------

started() -> started(#{}).

started(Options) -> started(Options, ?SELF).

started(Options, Node) ->
    element(1, weft_group_gossip_core:init(Node, Options#{incarnation => 1})).

node_of(Node) -> started(#{}, Node).

up(Nodes, State) ->
    lists:foldl(fun(Node, S) -> element(1, handle({neighbour_up, Node}, S)) end, State, Nodes).

command(Change, State) -> handle({command, ref, Change}, State).

message(From, Msg, State) -> handle({message, From, {groups, 1, Msg}}, State).

handle(Event, State) -> weft_group_gossip_core:handle(Event, 0, State).

%% What a member answers that has learnt what it was told.
confirmation(Effects) ->
    [{change, Id, Name, Entry} | _] = [M || {_, {change, _, _, _} = M} <- sent(Effects)],
    {changed, Id, Name, Entry}.

reply_of({State, Effects}) -> {State, [Msg || {_, Msg} <- sent(Effects)]}.

sent(Effects) -> [{To, Msg} || {send, To, {groups, 1, Msg}} <- Effects].

replies(Effects) -> [Reply || {reply, ref, Reply} <- Effects].

views(Effects) -> [{Key, Value} || {view, Key, Value} <- Effects].

comings(Effects) -> [{Name, What} || {notice, {group, Name, What}} <- Effects].

groups(State) -> weft_group_table:groups(weft_group_gossip_core:table(State)).
