%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of a link with a real connection, whose other end is played here. This module is
%% the handler above it, and wants nothing.
-module(weft_link_tests).

-include_lib("eunit/include/eunit.hrl").

-export([init/2, lane_up/2, lane_down/2, link_down/2, peer_ended/3, dial_failed/2, packet/4,
         message/2, wants_link/1, is_in_use/1, can_spare_link/1, wants_lanes/1, info/1]).

%% epmd does not know it, or there is none.
-define(UNKNOWN, 'weft_link_tests_unknown@127.0.0.1').
-define(UNRESOLVED, 'weft_link_tests@host.invalid').
-define(INCARNATION, 7).
-define(DEADLINE_MS, 20000).

%% Others wait for this news, and only who had a link can find out. Also while two nodes part as
%% neighbours, and use their link for a while.
the_end_of_an_unwanted_neighbour_is_found_out_test_() ->
    [with_link(?UNKNOWN, fun(Link, Far) ->
                             ok = weft_link:Unwanted(Link, false),
                             ok = gen_tcp:close(Far),
                             ?assertEqual({died, ?UNKNOWN, ?INCARNATION}, told())
                         end) || Unwanted <- [want, agree]].

%% It may have been the first of those that the peer was about to have.
the_end_of_one_that_was_about_to_be_a_neighbour_is_found_out_test_() ->
    with_link(?UNKNOWN, a_core_that_has_not_agreed,
              fun(_Link, Far) ->
                      ok = gen_tcp:close(Far),
                      ?assertEqual({died, ?UNKNOWN, ?INCARNATION}, told())
              end).

%% Also if it was dialled in the meantime, and that has failed for another reason.
an_attempt_that_proves_nothing_does_not_end_it_test_() ->
    with_link(?UNKNOWN, fun(Link, Far) ->
        ok = weft_link:want(Link, true),
        ok = weft_fault_table:put(cut, ?UNKNOWN, true),
        try
            ok = gen_tcp:close(Far),
            until(fun() -> map_get(last_error, weft_link:info(Link)) =:= cut end),
            ok = weft_link:want(Link, false),
            #{state := down} = weft_link:info(Link)
        after
            weft_fault_table:erase(cut, ?UNKNOWN)
        end,
        ?assertEqual({died, ?UNKNOWN, ?INCARNATION}, told())
    end).

%% It is not dialled: most likely it needs no link any more. epmd may have been late, so it is asked
%% twice.
one_that_may_be_alive_is_looked_up_twice_test_() ->
    with_link(?UNRESOLVED, fun(Link, Far) ->
        1 = erlang:trace(Link, true, ['receive']),
        ok = gen_tcp:close(Far),
        [receive {trace, Link, 'receive', {dialled, _, Result}} -> ?assertEqual(known, Result)
         after ?DEADLINE_MS -> error(not_looked_up)
         end || _ <- [1, 2]],
        ?assertMatch(#{state := down, last_error := closed}, weft_link:info(Link)),
        receive {ended, _, _, _} = Ended -> error(Ended) after 0 -> ok end
    end).

%% --- the link ---------------------------------------------------------------------------------

%% It has been dialled by its peer, which is a neighbour, unless a core has to agree to that.
with_link(Peer, Test) -> with_link(Peer, none, Test).

with_link(Peer, Admitting, Test) -> {timeout, 60, fun() -> linked(Peer, Admitting, Test) end}.

linked(Peer, Admitting, Test) ->
    ok = weft_link_table:new(),
    ok = weft_counters:init(),
    ok = weft_identity:init(true),
    true = register(?MODULE, self()),
    {Near, Far} = connection(),
    {ok, Link} = weft_link:start_link(?MODULE, Peer, [], Admitting),
    try
        ok = weft_link_table:enter(Peer, Link),
        ok = weft_link:attach(Link, Near, peer(Peer), link),
        receive {lane_up, Link} -> ok after ?DEADLINE_MS -> error(not_up) end,
        Test(Link, Far)
    after
        true = unlink(Link),
        true = exit(Link, kill),
        true = unregister(?MODULE),
        ets:delete(weft_links)
    end.

peer(Name) ->
    #{node => Name, name => atom_to_binary(Name), incarnation => ?INCARNATION, listens => true,
      token => <<"token">>, role => listener, proven_with => <<"cookie">>, version => 1,
      begun_us => 0, peername => {{127, 0, 0, 1}, 1}}.

connection() ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listen),
    {ok, Far} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    {ok, Near} = gen_tcp:accept(Listen),
    ok = gen_tcp:close(Listen),
    {Near, Far}.

until(Is) -> until(Is, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

until(Is, DeadlineMs) ->
    case Is() of
        true -> ok;
        false ->
            true = erlang:monotonic_time(millisecond) < DeadlineMs,
            until(Is, DeadlineMs)
    end.

told() ->
    receive {ended, How, Node, Incarnation} -> {How, Node, Incarnation}
    after ?DEADLINE_MS -> not_told
    end.

%% --- the handler above it ---------------------------------------------------------------------

init(_Peer, _Name) -> none.

lane_up(_Lane, Above) ->
    ?MODULE ! {lane_up, self()},
    Above.

lane_down(_Lane, Above) -> Above.

link_down(_Reason, Above) -> Above.

peer_ended(How, Node, Incarnation) ->
    ?MODULE ! {ended, How, Node, Incarnation},
    ok.

dial_failed(_Reason, Above) -> Above.

packet(_Packet, _Raw, _Lane, Above) -> Above.

message(_Message, Above) -> Above.

wants_link(_Above) -> false.

is_in_use(_Above) -> false.

can_spare_link(_Above) -> true.

wants_lanes(_Above) -> [].

info(_Above) -> #{}.
