%% SPDX-License-Identifier: Apache-2.0
%% @doc Who hangs up on a hello: a node without weft, or a weft node that has no room just now. The
%% test is the program at the address that is dialled.
-module(weft_dialer_tests).

-include_lib("eunit/include/eunit.hrl").

%% Its host cannot be reached, so its last address is dialled.
-define(PEER, 'weft_dialer_tests@224.0.0.1').
%% epmd does not know this name, or there is no epmd.
-define(FORGOTTEN, 'weft_dialer_tests@127.0.0.1').
-define(TIMEOUT_MS, 4000).

who_hangs_up_once_is_dialled_again_test() ->
    ?assertEqual({error, overload}, dialled(?PEER, [hang_up, decline])).

who_hangs_up_twice_does_not_speak_weft_test() ->
    ?assertEqual({error, not_weft}, dialled(?PEER, [hang_up, hang_up])).

who_answers_something_else_is_not_dialled_again_test() ->
    ?assertEqual({error, not_weft}, dialled(?PEER, [other_words])).

%% A node whose epmd was restarted may have no room for a connection. Two such answers in a row
%% would be the proof that it has ended.
who_hangs_up_where_a_node_was_is_no_proof_of_its_end_test() ->
    ?assertEqual({error, closed}, dialled(?FORGOTTEN, [hang_up, hang_up])).

another_program_where_a_node_was_is_a_proof_of_its_end_test() ->
    ?assertEqual({error, no_such_node}, dialled(?FORGOTTEN, [other_words])).

who_is_told_not_to_call_says_nothing_test() ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listen),
    Calling = fun() -> {error, simultaneous} end,
    ?assertEqual({error, simultaneous},
                 weft_dialer:dial(?PEER, link, {{127, 0, 0, 1}, Port}, Calling, ?TIMEOUT_MS)),
    {ok, Socket} = gen_tcp:accept(Listen, ?TIMEOUT_MS),
    ?assertEqual({error, closed}, gen_tcp:recv(Socket, 0, ?TIMEOUT_MS)),
    ok = gen_tcp:close(Listen).

%% What comes of an attempt, if those who call are served like this, one after the other. There have
%% to be as many.
dialled(Node, Services) ->
    ok = weft_identity:init(true),
    {ok, Listen} = gen_tcp:listen(0, [binary, {active, false}, {packet, 2}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listen),
    Server = spawn_monitor(fun() -> [serve(Service, Listen) || Service <- Services] end),
    ok = gen_tcp:controlling_process(Listen, element(1, Server)),
    Known = {{127, 0, 0, 1}, Port},
    Result = weft_dialer:dial(Node, link, Known, fun() -> ok end, ?TIMEOUT_MS),
    ?assertMatch([_ | _], has_ended(Server)),
    Result.

serve(Service, Listen) ->
    {ok, Socket} = gen_tcp:accept(Listen, ?TIMEOUT_MS),
    {ok, <<"WEFT", _/binary>>} = gen_tcp:recv(Socket, 0, ?TIMEOUT_MS),
    ok = inet:setopts(Socket, [{packet, raw}]),
    ok = answer(Service, Socket),
    ok = gen_tcp:close(Socket).

answer(hang_up, _Socket) -> ok;
answer(other_words, Socket) -> gen_tcp:send(Socket, <<"HTTP/1.1 400 Bad Request\r\n\r\n">>);
answer(decline, Socket) -> weft_handshake:decline(Socket, overload).

has_ended({Server, Monitor}) ->
    receive {'DOWN', Monitor, process, Server, Reason} -> [Reason || Reason =:= normal]
    after ?TIMEOUT_MS -> error(not_called_so_often)
    end.
