%% SPDX-License-Identifier: Apache-2.0
%% @doc An epmd that answers as the test wants, and what is made of it.
-module(weft_epmd_client_tests).

-include_lib("eunit/include/eunit.hrl").

a_vm_is_one_test() ->
    ?assertEqual({ok, 4711, vm}, asked(answer(4711, $M, <<"somebody">>))).

what_is_no_vm_is_foreign_test_() ->
    [?_assertEqual({ok, 4711, foreign}, asked(answer(4711, Kind, <<"somebody">>)))
     || Kind <- [$H, $n, 0]].

an_unknown_name_has_no_port_test() ->
    ?assertEqual(noport, asked(<<$w, 1>>)).

an_answer_in_pieces_is_whole_test() ->
    ?assertEqual({ok, 4711, vm}, asked([<<B>> || <<B>> <= answer(4711, $M, <<"somebody">>)])).

what_is_no_answer_is_unexpected_test_() ->
    [?_assertEqual({error, unexpected}, asked(Bytes))
     || Bytes <- [<<>>, <<$w>>, <<"HTTP/1.0 200">>, <<$w, 0, 4711:16, $M>>,
                  answer(4711, $M, <<"somebodx">>), answer(4711, $M, <<"some">>),
                  answer(0, $M, <<"somebody">>)]].

a_name_that_is_not_ascii_is_not_asked_for_test() ->
    ?assertEqual({error, unexpected},
                 weft_epmd_client:port_please("s\x{f6}mebody", {127, 0, 0, 1}, 1, 1000)).

no_epmd_knows_nobody_test() ->
    ?assertEqual(noport,
                 weft_epmd_client:port_please("somebody", {127, 0, 0, 1},
                                              weft_test_nodes:free_port(), 5000)).

%% Connections to a multicast address end at once. The host, or the network, may come back.
who_cannot_be_reached_is_not_unknown_test() ->
    ?assertEqual({error, no_epmd},
                 weft_epmd_client:port_please("somebody", {224, 0, 0, 1}, 4369, 1000)).

an_epmd_that_is_silent_is_left_after_the_time_test() ->
    {Listen, Port} = listen(),
    BeginMs = erlang:monotonic_time(millisecond),
    ?assertEqual({error, timeout},
                 weft_epmd_client:port_please("somebody", {127, 0, 0, 1}, Port, 1000)),
    ?assert(erlang:monotonic_time(millisecond) - BeginMs < 20000),
    ok = gen_tcp:close(Listen).

%% --- small parts ------------------------------------------------------------------------------

answer(Port, Kind, Name) ->
    <<$w, 0, Port:16, Kind, 0, 6:16, 5:16, (byte_size(Name)):16, Name/binary, 0:16>>.

%% What the client makes of these bytes, which come in one piece or in several.
asked(Answer) ->
    {Listen, Port} = listen(),
    Epmd = spawn_link(fun() -> serve(Listen, lists:flatten([Answer])) end),
    ok = gen_tcp:controlling_process(Listen, Epmd),
    Result = weft_epmd_client:port_please("somebody", {127, 0, 0, 1}, Port, 5000),
    unlink(Epmd),
    exit(Epmd, kill),
    Result.

%% The client leaves as soon as it knows enough, which may be before the end of what is sent.
serve(Listen, Pieces) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    {ok, <<9:16, "zsomebody">>} = gen_tcp:recv(Socket, 11),
    _ = [gen_tcp:send(Socket, Piece) || Piece <- Pieces],
    _ = gen_tcp:shutdown(Socket, write),
    {error, _} = gen_tcp:recv(Socket, 0).

listen() ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {active, false}, {nodelay, true}]),
    {ok, Port} = inet:port(Listen),
    {Listen, Port}.
