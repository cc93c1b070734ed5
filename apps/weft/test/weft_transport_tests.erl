%% SPDX-License-Identifier: Apache-2.0
%% @doc The words for a port that can not be had, the messages that end a socket, and what the
%% kernel says of one.
-module(weft_transport_tests).

-include_lib("eunit/include/eunit.hrl").

the_port_and_what_to_do_are_said_test() ->
    Text = weft_transport:explain_listen(4370, eaddrinuse),
    ?assertNotEqual(nomatch, string:find(Text, "can not listen on port 4370")),
    ?assertNotEqual(nomatch, string:find(Text, "ports in {weft, tuning}")),
    ?assertNotEqual(nomatch, string:find(weft_transport:explain_listen(80, eacces),
                                         "port 80: permission denied (eacces)")).

a_range_is_said_as_one_test_() ->
    {setup,
     fun() -> [application:set_env(kernel, Key, Port)
               || {Key, Port} <- [{inet_dist_listen_min, 9100}, {inet_dist_listen_max, 9105}]]
     end,
     fun(_) -> [application:unset_env(kernel, Key)
                || Key <- [inet_dist_listen_min, inet_dist_listen_max]]
     end,
     fun() ->
             Text = weft_transport:explain_listen(0, eaddrinuse),
             ?assertNotEqual(nomatch, string:find(Text, "any port from 9100 to 9105")),
             ?assertNotEqual(nomatch, string:find(Text, "inet_dist_listen_max"))
     end}.

messages_that_end_a_socket_are_told_from_others_test() ->
    {ok, Port} = gen_udp:open(0),
    ?assertEqual([{s, closed}, {s, closed}, {s, etimedout}, {s, emsgsize}, {Port, einval}],
                 [weft_transport:lost(Message)
                  || Message <- [{tcp_closed, s}, {ssl_closed, s}, {tcp_error, s, etimedout},
                                 {ssl_error, s, emsgsize}, {'EXIT', Port, einval}]]),
    ok = gen_udp:close(Port),
    ?assertEqual([none, none, none],
                 [weft_transport:lost(Message)
                  || Message <- [{tcp_passive, s}, {'EXIT', self(), killed}, {tcp, s, <<>>}]]).

%% Of a packet that is not whole there is no message, but there are bytes.
bytes_of_a_packet_that_is_not_whole_have_moved_test() ->
    Options = [binary, {active, true}, {packet, 4}, {ip, {127, 0, 0, 1}}],
    {ok, Listen} = gen_tcp:listen(0, Options),
    {ok, Port} = inet:port(Listen),
    {ok, Out} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {packet, raw}]),
    {ok, In} = gen_tcp:accept(Listen),
    ok = gen_tcp:send(Out, <<1000:32, 0:(500 * 8)>>),
    case os:type() of
        {unix, linux} ->
            weft_test_nodes:until(fun() -> received(In) =:= 504 andalso acked(Out) > 500 end);
        _ -> ?assertEqual([unknown, unknown], [weft_transport:progress(S) || S <- [In, Out]])
    end,
    receive {tcp, In, _} -> error(whole) after 0 -> ok end,
    [ok = gen_tcp:close(S) || S <- [In, Out, Listen]].

received(Socket) -> element(1, weft_transport:progress(Socket)).
acked(Socket) -> element(2, weft_transport:progress(Socket)).
