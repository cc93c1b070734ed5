%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of a link that is wanted, with the test at the other end of its lanes.
-module(weft_link_wanted_tests).
-behaviour(weft_link_handler).

-include_lib("eunit/include/eunit.hrl").

%% What is above the link: it wants the link, and tells the test what it hears.
-export([init/2, lane_up/2, lane_down/2, link_down/2, peer_ended/3, dial_failed/2, packet/4,
         message/2, wants_link/1, is_in_use/1, can_spare_link/1, wants_lanes/1, info/1]).

%% epmd does not know this name, or there is no epmd.
-define(PEER, 'weft_link_wanted_tests@127.0.0.1').
-define(PORT, 4001).
-define(TIMEOUT_MS, 10000).
-define(NEVER_MS, 1000000000).

link_test_() ->
    [{timeout, 60, fun() ->
                           Link = start(),
                           try Case(Link) after stop(Link) end
                   end}
     || Case <- [fun who_has_dialled_says_where_it_listens/1,
                 fun who_was_dialled_says_nothing/1,
                 fun a_peer_is_looked_for_where_it_listens/1,
                 fun a_peer_that_does_not_listen_there_any_more_has_died/1,
                 fun who_claims_to_be_an_earlier_start_has_the_later_one_looked_at/1]].

start() ->
    true = register(?MODULE, self()),
    %% At multiples of that time the link would ping by itself.
    ok = application:set_env(weft, keepalive_ms, ?NEVER_MS),
    ok = weft_identity:init(?PORT),
    ok = weft_link_table:new(),
    {ok, Link} = weft_link:start_link(?MODULE, ?PEER, [], none),
    ok = weft_link_table:enter(?PEER, Link),
    Link.

stop(Link) ->
    true = unlink(Link),
    Monitor = monitor(process, Link),
    true = exit(Link, kill),
    receive {'DOWN', Monitor, process, Link, _} -> ok end,
    ok = application:unset_env(weft, keepalive_ms),
    true = ets:delete(weft_links),
    true = unregister(?MODULE),
    flushed().

%% The next test may run in this process.
flushed() -> receive _ -> flushed() after 0 -> ok end.

who_has_dialled_says_where_it_listens(Link) ->
    Lane = attached(dialer, Link),
    ?assertMatch([{listening, ?PORT}, {ping, _}], lists:sort([received(Lane), received(Lane)])).

who_was_dialled_says_nothing(Link) ->
    Lane = attached(listener, Link),
    ?assertMatch({ping, _}, received(Lane)),
    ok = gen_tcp:send(Lane, weft_wire:ping(7)),
    ?assertEqual({pong, 7}, received(Lane)).

%% As when epmd was started again, and the peer has not registered again yet.
a_peer_is_looked_for_where_it_listens(Link) ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listen),
    ok = lost(Port, Link),
    {ok, _Called} = gen_tcp:accept(Listen, ?TIMEOUT_MS),
    receive {peer_ended, How} -> error(How) after 0 -> gen_tcp:close(Listen) end.

%% It is told at the second attempt, before what is above hears that this one has failed, too. Were
%% the port no proof, it would take seconds, and more attempts.
a_peer_that_does_not_listen_there_any_more_has_died(Link) ->
    ok = lost(weft_test_nodes:free_port(), Link),
    receive dial_failed -> ok after ?TIMEOUT_MS -> error(not_dialled) end,
    receive
        {peer_ended, How} -> ?assertEqual(died, How);
        dial_failed -> error(not_believed)
    after ?TIMEOUT_MS -> error(not_told)
    end.

%% The clock was set back, and the host has no connection of the time before.
who_claims_to_be_an_earlier_start_has_the_later_one_looked_at(Link) ->
    Lane = attached(listener, Link),
    {ping, _} = received(Lane),
    Admitted = fun(Incarnation) -> weft_links:admit(atom_to_binary(?PEER), Incarnation, link) end,
    ?assertEqual({superseded, <<>>}, Admitted(0)),
    ?assertMatch({ping, _}, received(Lane)),
    ok = inet:setopts(Lane, [{linger, {true, 0}}]),
    ok = gen_tcp:close(Lane),
    receive link_down -> ok after ?TIMEOUT_MS -> error(still_up) end,
    ?assertMatch({ok, _Key}, Admitted(0)).

%% The peer has dialled, says that it listens at that port, and loses the link.
lost(Port, Link) ->
    Lane = attached(listener, Link),
    ok = gen_tcp:send(Lane, weft_wire:listening(Port)),
    ok = gen_tcp:send(Lane, weft_wire:ping(7)),
    {ping, _} = received(Lane),
    {pong, 7} = received(Lane),
    gen_tcp:close(Lane).

%% A lane for which the link has this role; the other end of it.
attached(Role, Link) ->
    Options = [binary, {active, false}],
    {ok, Listen} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}} | Options]),
    {ok, Port} = inet:port(Listen),
    {ok, Lane} = gen_tcp:connect({127, 0, 0, 1}, Port, [{packet, 4} | Options]),
    {ok, Socket} = gen_tcp:accept(Listen, ?TIMEOUT_MS),
    ok = gen_tcp:close(Listen),
    Peer = #{node => ?PEER, name => atom_to_binary(?PEER), incarnation => 1, listens => true,
             token => <<"token">>, role => Role, proven_with => <<"cookie">>, version => 1,
             begun_us => erlang:monotonic_time(microsecond), peername => undefined},
    ok = weft_link:attach(Link, Socket, Peer, link),
    receive lane_up -> Lane after ?TIMEOUT_MS -> error(not_up) end.

received(Lane) ->
    {ok, Packet} = gen_tcp:recv(Lane, 0, ?TIMEOUT_MS),
    weft_wire:decode(Packet).

%% --- above the link ---------------------------------------------------------------------------

init(_Peer, _Name) -> above.
lane_up(_Lane, above) -> ?MODULE ! lane_up, above.
lane_down(_Lane, above) -> above.
link_down(_Reason, above) -> ?MODULE ! link_down, above.
peer_ended(How, ?PEER, 1) -> ?MODULE ! {peer_ended, How}, ok.
dial_failed(_Reason, above) -> ?MODULE ! dial_failed, above.
packet(_Packet, _Raw, _Lane, above) -> above.
message(_Message, above) -> above.
wants_link(above) -> true.
is_in_use(above) -> true.
can_spare_link(above) -> false.
wants_lanes(above) -> [].
info(above) -> #{}.
