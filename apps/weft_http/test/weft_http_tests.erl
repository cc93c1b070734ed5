%% SPDX-License-Identifier: Apache-2.0
-module(weft_http_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TOKEN, "0123456789abcdef").

%% --- tokens -----------------------------------------------------------------------------------

a_token_is_known_again_but_not_kept_test() ->
    {ok, Token} = weft_http_token:parse(?TOKEN),
    ?assertEqual({ok, Token}, weft_http_token:parse(<<?TOKEN>>)),
    ?assertEqual(nomatch, string:find(lists:flatten(io_lib:format("~p", [Token])), ?TOKEN)),
    ?assert(weft_http_token:is_token(<<?TOKEN>>, Token)),
    ?assertNot(weft_http_token:is_token(<<?TOKEN, "0">>, Token)),
    ?assertEqual({ok, none}, weft_http_token:parse(none)),
    ?assertNot(weft_http_token:is_token(<<>>, none)).

a_token_may_be_in_a_file_test() ->
    File = filename:join("/tmp", "weft_http_tests_" ++ os:getpid()),
    try
        ok = file:write_file(File, ?TOKEN "\n"),
        ?assertEqual(weft_http_token:parse(?TOKEN), weft_http_token:parse({file, File})),
        ok = file:write_file(File, "short\n"),
        refused({file, File}, "in the file " ++ File ++ " is too short")
    after
        ok = file:delete(File)
    end,
    refused({file, File}, "no such file"),
    [refused({file, Path}, "path that is no string") || Path <- [7, [secret]]].

a_token_that_is_none_is_not_told_test() ->
    [refused(Token, Words)
     || {Token, Words} <- [{"secret", "too short"}, {<<"secret">>, "too short"},
                           {"secret secret secret", "other signs"}, {<<255, 254>>, "no text"},
                           {[secret], "no text"}, {secret, "no string"}, {7, "no string"}]].

refused(Token, Words) ->
    {error, Text} = weft_http_token:parse(Token),
    ?assertNotEqual({nomatch, Token, Text}, {string:find(Text, Words), Token, Text}),
    ?assertEqual(nomatch, string:find(Text, "secret")).

%% --- addresses and names ----------------------------------------------------------------------

what_is_no_address_is_named_test() ->
    Loopback = {0, 0, 0, 0, 0, 0, 0, 1},
    ?assertEqual({ok, Loopback}, weft_http_address:ip("ip", Loopback)),
    [?assertMatch({Ip, {error, "the ip of http is " ++ _}},
                  {Ip, weft_http_address:ip("the ip of http", Ip)})
     || Ip <- [{1, 2}, {127, 0, 0, 256}, "127.0.0.1", localhost]],
    [?assertEqual({ok, Port}, weft_http_address:port("port", Port)) || Port <- [0, 65535]],
    [?assertMatch({Port, {error, "port is " ++ _}}, {Port, weft_http_address:port("port", Port)})
     || Port <- [-1, 65536, "80", none]].

only_names_of_this_machine_pass_test() ->
    [?assert(weft_http_host:is_known(Host, [<<"h1.example.org">>]))
     || Host <- [<<"localhost">>, <<"127.0.0.1">>, <<"[::1]">>, <<"h1.example.org">>]],
    [?assertNot(weft_http_host:is_known(Host, [<<"h1.example.org">>]))
     || Host <- [<<"example.org">>, <<"1.2.3">>, <<"localhost.example.org">>, <<>>]],
    {ok, Short} = inet:gethostname(),
    ?assert(lists:member(list_to_binary(string:lowercase(Short)), weft_http_host:own())).

%% --- listeners --------------------------------------------------------------------------------

%% An application that was configured without a listener stops one all the same.
one_that_is_not_open_is_stopped_test_() ->
    {timeout, 60, fun not_open/0}.

not_open() ->
    {ok, Started} = application:ensure_all_started(ranch),
    ?assertEqual(ok, weft_http_listener:stop(never_opened)),
    [ok = application:stop(Application) || Application <- Started].

a_port_that_is_taken_is_said_in_words_test_() ->
    {timeout, 60, fun taken/0}.

taken() ->
    {ok, _} = application:ensure_all_started(cowboy),
    Place = #{ip => {127, 0, 0, 1}, port => 0, what => "test"},
    ok = weft_http_listener:start(one, Place, #{}, #{}),
    Port = weft_http_listener:port(one),
    {error, Text} = weft_http_listener:start(other, Place#{port := Port}, #{}, #{}),
    ?assertEqual("no test on 127.0.0.1 port " ++ integer_to_list(Port) ++ ": address already in "
                 "use. Choose another port or ip, or stop what listens there.", Text),
    ok = weft_http_listener:stop(one),
    ok = weft_http_listener:stop(one),
    %% Another program may have the port for a moment.
    ok = weft_test_nodes:until(fun() ->
                                   ok =:= weft_http_listener:start(other, Place#{port := Port},
                                                                   #{}, #{})
                               end),
    ok = weft_http_listener:stop(other).

%% Two acceptors have one limit, not one each. One of them waits already when it is reached, and
%% takes one more; then neither does.
the_limit_is_one_of_the_listener_test_() ->
    {timeout, 60, fun limited/0}.

limited() ->
    {ok, _} = application:ensure_all_started(cowboy),
    Max = 5,
    ok = weft_http_listener:start(limited, #{ip => {127, 0, 0, 1}, port => 0, what => "test"},
                                  #{max_connections => Max}, #{request_timeout => infinity}),
    Port = weft_http_listener:port(limited),
    Sockets = [element(2, {ok, _} = gen_tcp:connect("127.0.0.1", Port, []))
               || _ <- lists:seq(1, 3 * Max)],
    Acceptors = ranch:procs(limited, acceptors),
    ok = weft_test_nodes:until(fun() ->
                                   Max + 1 =:= length(ranch:procs(limited, connections))
                                       andalso not lists:any(fun is_accepting/1, Acceptors)
                               end),
    [ok = gen_tcp:close(Socket) || Socket <- Sockets],
    ok = weft_http_listener:stop(limited).

%% One that waits for the supervisor of connections does not, while there are too many.
is_accepting(Acceptor) ->
    {current_stacktrace, Stack} = process_info(Acceptor, current_stacktrace),
    lists:keymember(prim_inet, 1, Stack).
