%% SPDX-License-Identifier: Apache-2.0
%% @doc What the sessions above a link hear of it.
-module(weft_switch_tests).

-include_lib("eunit/include/eunit.hrl").

%% This module is the provider of tunnelled lanes: what is written comes to the test as a message.
-export([room/1, try_send/2]).

%% A session that opened its way in the moment in which the next hop was lost would take an end of
%% that node for an end of its own peer.
a_dial_that_failed_says_nothing_of_those_behind_it_test() ->
    ?assertEqual({dial, econnrefused}, told_of_failed_dial(<<"hop@host">>)),
    ?assertEqual(broken, told_of_failed_dial(<<"behind@host">>)).

%% The first attempt to reach a node that has started again is what tells that it has; and a session
%% that has found another way may be with the present incarnation.
who_waits_is_told_which_incarnation_answers_test_() ->
    [?_assertEqual([{restarted, 7}], told_of_restart(<<"hop@host">>, {restarted, 7})),
     ?_assertEqual([{restarted, 7}], told_of_restart(none, {restarted, 7})),
     ?_assertEqual([gone], lists:usort(told_of_restart(<<"hop@host">>, gone))),
     ?_assertEqual([], told_of_restart(<<"behind@host">>, {restarted, 7}))].

%% The link to a neighbour hosts the session, unless it is with another node.
told_of_restart(Target, Reason) ->
    ok = weft_identity:init(true),
    Open = #{mode => new, kind => distribution, target => Target},
    Begun = weft_switch:init('hop@host', <<"hop@host">>),
    Hosting = case Target of
                  <<"behind@host">> -> Begun;
                  _ -> weft_switch:message({host, self(), weft_session_counters:new()}, Begun)
              end,
    Waiting = case Target of
                  none -> Hosting;
                  _ -> weft_switch:message({open, self(), self(), Open}, Hosting)
              end,
    _ = weft_switch:link_down(Reason, Waiting),
    all_told(self()).

all_told(Link) ->
    receive
        {weft_path, closed, Link, any, Reason} -> [Reason | all_told(Link)];
        {weft_path, restarted, Now} -> [{restarted, Now} | all_told(Link)]
    after 0 -> []
    end.

told(Link) -> receive {weft_path, closed, Link, any, Reason} -> Reason after 0 -> nothing end.

told_of_failed_dial(Target) ->
    ok = weft_identity:init(true),
    Open = #{mode => new, kind => distribution, target => Target},
    Pending = weft_switch:message({open, self(), self(), Open},
                                  weft_switch:init('hop@host', <<"hop@host">>)),
    _ = weft_switch:dial_failed(econnrefused, Pending),
    told(self()).

%% It asks for what it needs by then.
who_waits_for_a_link_is_told_that_it_is_up_and_nothing_is_opened_test() ->
    Down = weft_switch_core:new(here, <<"own">>, <<"hop">>, 1000),
    {Waiting, [{watch, session}]} =
        weft_switch_core:message({open, session, input, open_to(<<"behind@host">>)}, Down),
    Known = fun() -> {[session, other], []} end,
    {Up, Effects} = weft_switch_core:lane_up(near, {<<>>, 0}, Known, Waiting),
    ?assertEqual([{tell, other, {weft_path, available, here}},
                  {tell, session, {weft_path, up, here}}], Effects),
    ?assertNot(weft_switch_core:is_pending(Up)),
    ?assertMatch(#{labels := 0}, weft_switch_core:info(Up)).

%% It was begun by an earlier incarnation of this node. What that has received nobody knows.
a_session_that_is_not_here_is_not_resumed_test() ->
    {Up, []} = weft_switch_core:lane_up(near, {<<>>, 0}, fun() -> {[], []} end,
                                        weft_switch_core:new(here, <<"own">>, <<"hop">>, 1000)),
    #{session := Id} = New = open_to(<<"own">>),
    ?assertEqual({Up, [{write, near, weft_wire:close(2, gone)}]},
                 weft_switch_core:opened(2, New#{mode := resume}, near, error, Up)),
    ?assertMatch({Up, [{accept, distribution, Id, <<"source@host">>, {here, _, 2}, own_process}]},
                 weft_switch_core:opened(2, New, near, error, Up)).

%% The news may be of an earlier circuit under this label, whose peer has started again.
news_of_lanes_of_another_circuit_means_nothing_test() ->
    {Up, []} = weft_switch_core:lane_up(near, {<<>>, 0}, fun() -> {[], []} end,
                                        weft_switch_core:new(here, <<"own">>, <<"hop">>, 1000)),
    {Waiting, [_]} = weft_switch_gateway:forward(3, open_to(<<"behind@host">>), near,
                                                 {ok, <<"next">>, there}, 1, Up),
    ?assertEqual({Waiting, []}, weft_switch_core:message({relay_lanes, 3, [far], [near]}, Waiting)).

%% --- gateways ---------------------------------------------------------------------------------

gateway_test_() ->
    {foreach, fun prepared/0, fun cleared/1,
     [{atom_to_list(Name), fun() -> Test() end}
      || {Name, Test} <- [{closed, fun a_closed_circuit_is_not_relayed_to/0},
                          {moved,
                           fun circuits_that_pass_are_moved_and_those_that_end_here_stay/0},
                          {too_far, fun a_circuit_ends_somewhere/0},
                          {behind, fun the_end_of_a_neighbour_is_not_that_of_those_behind/0},
                          {dropped, fun the_other_end_hears_of_a_dropped_circuit/0},
                          {served, fun who_finds_a_stream_taken_opens_again/0},
                          {timed_out, fun who_asks_for_a_stream_that_timed_out_is_told/0},
                          {disconnected, fun a_disconnect_is_told_when_the_link_is_back/0},
                          {remembered, fun who_was_disconnected_is_remembered/0},
                          {lost, fun who_may_not_know_of_an_end_is_remembered/0},
                          {times, fun times_are_told_to_whoever_asks/0},
                          {finished, fun who_is_about_to_end_gets_nothing_more/0},
                          {late, fun who_joins_late_gets_no_label_of_another_incarnation/0}]]}.

prepared() ->
    ok = weft_identity:init(true),
    ok = weft_sessions:new_table().

cleared(ok) -> true = ets:delete(weft_sessions).

a_closed_circuit_is_not_relayed_to() ->
    {Label, Relaying} = relaying(),
    Packet = {data, Label, 1, frames, <<"x">>},
    Raw = iolist_to_binary(weft_wire:data(Label, 1, frames, <<"x">>)),
    _ = weft_switch:packet(Packet, Raw, lane(near), Relaying),
    ?assertEqual([{far, {data, 9, 1, frames, <<"x">>}}], written()),
    Closed = weft_switch:message({relay_closed, Label, broken}, Relaying),
    ?assertEqual([{near, {close, Label, broken}}], written()),
    _ = weft_switch:packet(Packet, Raw, lane(near), Closed),
    ?assertEqual([{near, {close, Label, unknown}}], written()).

circuits_that_pass_are_moved_and_those_that_end_here_stay() ->
    {Label, Relaying} = relaying(),
    Join = {join, 3, [lane(near)], {distribution, self(), <<"far@host">>, self()},
            weft_session_counters:new()},
    Moved = weft_switch:message(move_relays, weft_switch:message(Join, Relaying)),
    ?assertEqual([{near, {close, Label, broken}}], written()),
    ?assertMatch(#{labels := 1, circuits := []}, weft_switch:info(Moved)).

a_circuit_ends_somewhere() ->
    Open = (open_to(<<"behind@host">>))#{hops := 0},
    _ = weft_switch:packet({open, 3, Open}, <<>>, lane(near), up()),
    ?assertEqual([{near, {close, 3, hop_limit}}], written()).

the_end_of_a_neighbour_is_not_that_of_those_behind() ->
    {_Label, Relaying} = relaying(),
    _ = weft_switch:link_down(gone, Relaying),
    ?assertEqual({relay_closed, 9, broken, [lane(far)]},
                 receive {weft_handler, Told} when element(1, Told) =:= relay_closed -> Told
                 after 0 -> none
                 end).

%% The opener gives up its stream when it is refused, not when the way to it is broken.
who_finds_a_stream_taken_opens_again() ->
    _ = weft_switch:message({taken, 3}, up()),
    ?assertEqual([{near, {close, 3, broken}}], written()),
    _ = weft_switch:message({refused, 3}, up()),
    ?assertEqual([{near, {close, 3, refused}}], written()).

%% What was told when the link came up may be lost with its lane.
who_asks_for_a_stream_that_timed_out_is_told() ->
    #{session := Id} = Open = open_to(<<"own@host">>),
    true = ets:insert(weft_sessions, {Id, timed_out, <<"hop@host">>}),
    Up = up(),
    ?assertEqual([{near, {timed_out, Id}}], written()),
    _ = weft_switch:packet({open, 3, Open#{target := weft_identity:name(), mode := resume}}, <<>>,
                           lane(near), Up),
    ?assertEqual([{near, {timed_out, Id}}, {near, {close, 3, gone}}], written()).

%% But who asks for it was not silent, and its session ends as one that is closed.
a_disconnect_is_told_when_the_link_is_back() ->
    #{session := Id} = Open = open_to(<<"own@host">>),
    true = ets:insert(weft_sessions, {Id, disconnected, <<"hop@host">>}),
    Up = up(),
    ?assertEqual([{near, {timed_out, Id}}], written()),
    [begin
         _ = weft_switch:packet({open, 3, Open#{target := weft_identity:name(), mode := Mode}},
                                <<>>, lane(near), Up),
         ?assertEqual({Mode, [{near, {close, 3, gone}}]}, {Mode, written()})
     end || Mode <- [resume, new]].

%% Also where the registry starts again. A session that ends otherwise, or that the peer has ended,
%% is not.
who_was_disconnected_is_remembered() ->
    [ended_for(Why, <<N:128>>) || {N, Why} <- lists:enumerate([disconnect, connection_closed,
                                                               disconnect])],
    ?assertEqual([<<1:128>>, <<3:128>>], lists:sort(weft_sessions:timed_out(<<"hop@host">>))),
    ?assertEqual([], weft_sessions:timed_out(<<"far@host">>)),
    ?assertEqual([disconnected, error], [weft_sessions:find(<<N:128>>) || N <- [1, 2]]).

%% Whatever the reason is with which the session exits.
who_may_not_know_of_an_end_is_remembered() ->
    ended_for(connection_closed, <<1:128>>, fun() -> ok = weft_sessions:lost(<<1:128>>) end),
    ?assertEqual([<<1:128>>], weft_sessions:timed_out(<<"hop@host">>)),
    ?assertEqual(disconnected, weft_sessions:find(<<1:128>>)).

ended_for(Why, Id) -> ended_for(Why, Id, fun() -> ok end).

ended_for(Why, Id, Last) ->
    {ok, Sessions} = weft_sessions:start_link(),
    {Session, Monitor} =
        spawn_monitor(fun() ->
                          ok = weft_sessions:add(Id, distribution, self(), self(), <<"hop@host">>),
                          _ = sys:get_state(Sessions),
                          Last(),
                          exit(Why)
                      end),
    receive {'DOWN', Monitor, process, Session, Why} -> ok end,
    weft_test_nodes:until(fun() -> weft_sessions:list() =:= [] end),
    gen_server:stop(Sessions).

%% Who serves a circuit had not begun when the lanes were lost; the gateway has started again, and
%% counts its labels from the beginning.
who_joins_late_gets_no_label_of_another_incarnation() ->
    Join = {join, 3, [lane(near)], {distribution, self(), <<"far@host">>, self()},
            weft_session_counters:new()},
    Joined = weft_switch:message(Join, up()),
    ?assertMatch(#{labels := 1}, weft_switch:info(Joined)),
    Again = weft_switch:lane_up(lane(again), weft_switch:link_down({restarted, 1}, up())),
    _ = written(),
    Late = weft_switch:message(Join, Again),
    ?assertMatch(#{labels := 0}, weft_switch:info(Late)),
    ?assertEqual([{again, {close, 3, broken}}], written()),
    Link = self(),
    ?assertEqual(told, receive {weft_path, closed, Link, 3, broken} -> told after 0 -> nothing end).

%% It is told when its input is delivered; its circuit is closed by then.
times_are_told_to_whoever_asks() ->
    Said = fun(Packets) ->
               _ = lists:foldl(fun(Packet, Switch) ->
                                   weft_switch:packet(Packet, <<>>, lane(near), Switch)
                               end, hosting(), Packets),
               written()
           end,
    Payload = {data, 3, 1, handshake, <<"hello">>},
    ?assertEqual([{near, {ack, 3, 1}}], Said([Payload, {tick, 3}])),
    ?assertMatch([{near, {arrived, 3, 1, _}}], Said([{times, 3}, Payload, {tick, 3}])),
    ?assertEqual([], Said([{arrived, 3, 7, -99}])),
    ?assertEqual({7, -99}, receive {weft_ack, Sequence, AtUs} -> {Sequence, AtUs}
                           after 0 -> nothing end).

who_is_about_to_end_gets_nothing_more() ->
    Hosting = hosting(),
    Ref = make_ref(),
    Finished = weft_switch:message({finish, self(), Ref}, Hosting),
    ?assertEqual(told, receive {weft_input, finished, Ref} -> told after 0 -> nothing end),
    ?assertEqual([{near, {close, 3, ended}}], written()),
    _ = weft_switch:packet({data, 3, 1, handshake, <<"late">>}, <<>>, lane(near), Finished),
    ?assertEqual(nothing, receive {weft_handshake, Late} -> Late after 0 -> nothing end).

the_other_end_hears_of_a_dropped_circuit() ->
    Opened = weft_switch:message({open, self(), self(), open_to(<<"hop@host">>)}, up()),
    Label = receive {weft_path, opening, _, Own} -> Own end,
    _ = written(),
    Dropped = weft_switch:message({drop, Label}, Opened),
    ?assertEqual([{near, {close, Label, broken}}], written()),
    ?assertMatch(#{labels := 0}, weft_switch:info(Dropped)).

%% A circuit that another link, which is the test, joined to label 9 there.
relaying() ->
    Relaying = weft_switch:message({forward, self(), [lane(far)], 9, open_to(<<"behind@host">>)},
                                   up()),
    Label = receive {weft_handler, {forwarded, 9, {_, _, Own}, _}} -> Own end,
    _ = written(),
    {Label, Relaying}.

%% The test is the session.
hosting() ->
    weft_switch:message({join, 3, [lane(near)], {distribution, self(), <<"hop@host">>, self()},
                         weft_session_counters:new()}, up()).

up() -> weft_switch:lane_up(lane(near), weft_switch:init('hop@host', <<"hop@host">>)).

open_to(Target) ->
    #{mode => new, kind => distribution, hops => 5, session => <<1:128>>, received => 0,
      source => <<"source@host">>, target => Target}.

lane(Which) ->
    case get({lane, Which}) of
        undefined ->
            Lane = weft_lane:new({tunnel, ?MODULE, {self(), Which}}, {<<>>, 0},
                                 {weft_fault_table, lateness, ['hop@host']}),
            put({lane, Which}, Lane),
            Lane;
        Lane -> Lane
    end.

written() ->
    receive
        {wrote, Which, Packet} -> [{Which, weft_wire:decode(iolist_to_binary(Packet))} | written()]
    after 0 -> []
    end.

room(_Lane) -> {ok, 1000000}.

try_send({Test, Which}, Packet) ->
    Test ! {wrote, Which, Packet},
    ok.
