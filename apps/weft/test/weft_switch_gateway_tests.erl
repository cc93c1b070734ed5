%% SPDX-License-Identifier: Apache-2.0
%% @doc A circuit goes on by another link, or it is refused; when a half of it ends, the other one
%% does, too.
%%
%% The gateway has two links: here leads to the node hop, there to the node next.
-module(weft_switch_gateway_tests).

-include_lib("eunit/include/eunit.hrl").

-define(GATEWAY, weft_switch_gateway).
-define(BYTES_MAX, 1000).
-define(NEXT, {ok, <<"next">>, there}).

%% --- circuits are opened ----------------------------------------------------------------------

the_other_link_is_asked_with_one_hop_less_test() ->
    ?assertMatch({_, [{link, there, {forward, here, [near], 3,
                                     #{hops := 6, target := <<"far">>}}}]},
                 forward(3, open(), ?NEXT, 1, here())).

a_circuit_that_cannot_go_on_is_refused_test() ->
    {One, _} = forward(3, open(), ?NEXT, 1, here()),
    [?assertEqual({Reason, {Switch, [{near, {close, 5, Reason}}]}},
                  {Reason, written(forward(5, Open, Next, 1, Switch))})
     || {Reason, Open, Next, Switch} <- [{hop_limit, (open())#{hops := 0}, ?NEXT, here()},
                                         {no_route, open(), error, here()},
                                         %% It would go back.
                                         {no_route, open(), {ok, <<"hop">>, here}, here()},
                                         {overload, open(), ?NEXT, One}]].

the_other_link_opens_it_and_says_under_which_label_test() ->
    {_, [{link, here, {forwarded, 3, {there, [far], 1}, [near]}}, {watch, here},
         {write, far, Open}]} =
        weft_switch_core:message({forward, here, [near], 3, open()}, there()),
    ?assertMatch({open, 1, #{target := <<"far">>, source := <<"source">>}}, decoded(Open)).

a_link_that_has_just_lost_its_lanes_is_no_way_test() ->
    {Down, []} = weft_switch_core:link_down(broken, there()),
    ?assertEqual({Down, [{link, here, {relay_closed, 3, no_route, [near]}}]},
                 weft_switch_core:message({forward, here, [near], 3, open()}, Down)).

what_was_closed_before_the_other_link_answered_is_closed_there_test() ->
    {Waiting, _} = forward(3, open(), ?NEXT, 1, here()),
    {done, Closed, []} = weft_switch_core:packet({close, 3, ended}, near, Waiting),
    ?assertEqual({Closed, [{link, there, {relay_closed, 1, broken, [far]}}]},
                 weft_switch_core:message(forwarded(), Closed)).

%% The peer has started again meanwhile, and its first label is the same.
what_another_incarnation_opened_is_not_joined_test() ->
    {Former, _} = forward(3, open(), ?NEXT, 1, here()),
    {Down, []} = weft_switch_core:link_down({restarted, 7}, Former),
    {Up, []} = weft_switch_core:lane_up(nearer, {<<>>, 0}, fun none/0, Down),
    {Waiting, [{link, there, {forward, here, [nearer], 3, _}}]} =
        ?GATEWAY:forward(3, open(), nearer, ?NEXT, 1, Up),
    ?assertEqual({Waiting, [{link, there, {relay_closed, 1, broken, [far]}}]},
                 weft_switch_core:message(forwarded(), Waiting)),
    Second = {forwarded, 3, {there, [far], 2}, [nearer]},
    {Joined, _} = weft_switch_core:message(Second, Waiting),
    [?assertEqual({Message, {Joined, []}},
                  {Message, weft_switch_core:message(Message, Joined)})
     || Message <- [{relay_closed, 3, gone, [near]}, {relay_lanes, 3, [another], [near]}]].

%% --- packets go on ----------------------------------------------------------------------------

packets_go_on_under_the_label_of_the_other_link_test() ->
    {relay, Relay} = weft_switch_core:packet({tick, 3}, near, joined()),
    ?assertEqual({send, 1}, ?GATEWAY:relay(Relay, 3, ?BYTES_MAX, joined())).

with_too_much_waiting_the_circuit_ends_on_both_sides_test() ->
    {relay, Relay} = weft_switch_core:packet({tick, 3}, near, joined()),
    {done, Closed, [{link, there, {relay_closed, 1, overload, [far]}}, {write, near, Close}]} =
        ?GATEWAY:relay(Relay, 3, ?BYTES_MAX + 1, joined()),
    ?assertEqual({close, 3, overload}, decoded(Close)),
    ?assertMatch(#{labels := 0}, weft_switch_core:info(Closed)).

%% --- circuits end -----------------------------------------------------------------------------

the_end_of_one_half_is_told_to_the_other_test() ->
    ?assertMatch({_, [{link, there, {relay_closed, 1, ended, [far]}}]},
                 ?GATEWAY:lose(3, ended, joined())),
    Ended = {relay_closed, 3, ended, [near]},
    {Closed, [{write, near, Close}]} = ?GATEWAY:message(Ended, joined()),
    ?assertEqual({close, 3, ended}, decoded(Close)),
    ?assertEqual({Closed, []}, ?GATEWAY:message(Ended, Closed)).

%% An end that has nothing to send would find out by the next tick of the kernel.
what_has_lost_a_lane_is_closed_on_both_sides_test() ->
    {Two, _} = weft_switch_core:lane_up(second, {<<>>, 1}, fun none/0, joined()),
    {Closed, Told} = weft_switch_core:lane_down(near, Two),
    ?assertEqual({Closed, [{second, {close, 3, broken}}]}, written({Closed, Told})),
    ?assertEqual([{link, there, {relay_closed, 1, broken, [far]}}],
                 [ToLink || {link, _, _} = ToLink <- Told]),
    ?assertMatch(#{labels := 0}, weft_switch_core:info(Closed)).

%% The news may be about an earlier circuit under this label.
a_circuit_that_ends_here_does_not_end_with_one_that_passed_test() ->
    Join = {join, 3, [near], {distribution, session, here, <<"hop">>}},
    {Ends, _} = weft_switch_core:message(Join, here()),
    ?assertEqual({Ends, []}, ?GATEWAY:message({relay_closed, 3, broken, [near]}, Ends)).

%% --- small parts ------------------------------------------------------------------------------

here() -> link(here, near, <<"hop">>).

there() -> link(there, far, <<"next">>).

link(Link, Lane, Peer) ->
    {Switch, []} = weft_switch_core:lane_up(Lane, {<<>>, 0}, fun none/0,
                                            weft_switch_core:new(Link, <<"gateway">>, Peer,
                                                                 ?BYTES_MAX)),
    Switch.

none() -> {[], []}.

joined() ->
    {Waiting, _} = forward(3, open(), ?NEXT, 1, here()),
    {Joined, [{link, there, {relay_lanes, 1, [near], [far]}}, {watch, there}]} =
        ?GATEWAY:message(forwarded(), Waiting),
    Joined.

forwarded() -> {forwarded, 3, {there, [far], 1}, [near]}.

forward(Label, Open, Next, CircuitsMax, Switch) ->
    ?GATEWAY:forward(Label, Open, near, Next, CircuitsMax, Switch).

open() ->
    #{mode => new, kind => distribution, hops => 7, session => <<1:128>>, received => 0,
      source => <<"source">>, target => <<"far">>}.

written({Switch, Effects}) ->
    {Switch, [{Lane, decoded(Packet)} || {write, Lane, Packet} <- Effects]}.

decoded(Packet) -> weft_wire:decode(iolist_to_binary(Packet)).
