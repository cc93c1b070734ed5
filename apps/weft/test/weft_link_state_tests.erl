%% SPDX-License-Identifier: Apache-2.0
%% @doc What others see of a link. This module is the handler above it, and the tunnel of its lanes.
-module(weft_link_state_tests).

-include_lib("eunit/include/eunit.hrl").

-include("../src/link/neighbour/weft_link_state.hrl").

-export([init/2, info/1, sent_packets/1, room/1, statistics/1]).

-define(STATE, weft_link_state).
-define(PEER, peer@host).

init(Peer, Name) -> {Peer, Name}.

info({Peer, Name}) -> #{peer => Peer, name => Name}.

sent_packets(_) -> 0.

room(_) -> {ok, 100}.

statistics(_) -> [].

a_new_link_is_down_and_nobody_wants_it_test() ->
    Link = link(?PEER, none),
    ?assertEqual({false, down}, {?STATE:is_up(Link), ?STATE:up(Link)}),
    ?assertEqual(#{is_calling => false, wanted => false, neighbour => true, is_released => false},
                 ?STATE:published(Link)),
    ?assertMatch(#{node := ?PEER, state := down, lanes := [], incarnation := undefined, ups := 0,
                   above := #{peer := ?PEER, name := <<"peer@host">>}}, ?STATE:info(Link)).

a_node_without_a_name_has_an_empty_one_test() ->
    ?assertMatch(#{above := #{name := <<>>}}, ?STATE:info(link({anonymous, 1}, none))).

who_makes_a_link_is_told_when_to_check_its_lanes_test() ->
    ok = application:set_env(weft, keepalive_ms, 1),
    {Pid, Monitor} = spawn_monitor(fun() ->
                                       _ = new(?PEER, none),
                                       receive keepalive -> ok end
                                   end),
    receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end,
    ok = application:unset_env(weft, keepalive_ms).

a_link_with_a_lane_is_up_and_reaches_that_life_of_its_peer_test() ->
    {Lane, Up} = up(link(?PEER, none)),
    ?assertEqual({true, {Lane, 7}}, {?STATE:is_up(Up), ?STATE:up(Up)}),
    ?assertMatch(#{lane := Lane, token := <<"token">>, incarnation := 7, dialled_us := 5},
                 ?STATE:published(Up)),
    ?assertMatch(#{state := up, lanes := [_], incarnation := 7, ups := 1}, ?STATE:info(Up)).

who_is_a_neighbour_is_for_a_core_to_say_if_there_is_one_that_decides_test() ->
    Link = link(?PEER, admitting),
    Agreed = Link#link{cores = weft_link_cores:agree(true, down, Link#link.cores)},
    ?assertMatch([#{neighbour := false}, #{neighbour := true}],
                 [?STATE:published(L) || L <- [Link, Agreed]]).

what_is_published_is_in_the_table_of_links_test() ->
    ok = weft_link_table:new(),
    try
        ok = weft_link_table:enter(?PEER, self()),
        Link = link(?PEER, none),
        Wanted = Link#link{demand = weft_link_demand:want(true, weft_link_demand:new()),
                           is_released = true},
        ?assertEqual(Wanted, ?STATE:publish(Wanted)),
        ?assertMatch({_, #{wanted := true, is_released := true}}, weft_link_table:read(?PEER))
    after
        ets:delete(weft_links)
    end.

%% It does not check its lanes.
link(Key, Admitting) ->
    #link{check = {soon, Timer}} = Link = new(Key, Admitting),
    _ = erlang:cancel_timer(Timer),
    Link.

new(Key, Admitting) -> ?STATE:new(Key, ?MODULE, weft_link_cores:new(Key, [], Admitting)).

up(Link) ->
    Lane = weft_lane:new({tunnel, ?MODULE, make_ref()}, {<<>>, 0},
                         {weft_fault_table, lateness, [?PEER]}),
    Peer = #{role => dialer, token => <<"token">>, incarnation => 7, peername => undefined},
    {Lane, Link#link{lanes = weft_link_lanes:add(Lane, Peer, 10, #{}), peer = Peer, up_us = 5,
                     ups = 1}}.
