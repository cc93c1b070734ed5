%% SPDX-License-Identifier: Apache-2.0
-module(weft_amqp_connection_tests).

-include_lib("eunit/include/eunit.hrl").

an_url_says_where_and_nothing_secret_test() ->
    [?assertEqual({Url, Place}, {Url, place(Url)})
     || {Url, Place} <- [{"amqp://u:secret@h:1/v", "u@h:1, vhost v"},
                         {"amqp://h", "guest@h:5672, vhost /"},
                         {"amqps://u:secret@h/%2Fx?verify=verify_none", "u@h:5671, vhost /x"}]].

place(Url) ->
    {ok, Params} = weft_amqp_connection:params(Url),
    weft_amqp_connection:place(Params).

%% Reports show the states of processes, and what supervisors start them with.
no_report_has_the_password_test() ->
    Options = weft_amqp_options:parse(#{broker => ["amqp://u:secret@h", "amqps://v:secret@h/x"]},
                                      <<"cluster">>),
    ?assertMatch({ok, #{brokers := [_, _]}}, Options),
    Shown = lists:flatten(io_lib:format("~p ~w", [Options, Options])),
    ?assertEqual(nomatch, string:find(Shown, "secret")),
    ?assertEqual(nomatch, string:find(Shown, lists:flatten(io_lib:format("~w", [<<"secret">>]))
                                             -- "<>")).

%% A supervisor of the version before has them as the client knows them.
what_was_made_before_is_read_test() ->
    {ok, Params} = amqp_uri:parse("amqp://u:secret@h:1/v"),
    ?assertEqual("u@h:1, vhost v", weft_amqp_connection:place(Params)).

bad_urls_are_errors_that_do_not_repeat_them_test() ->
    [begin
         {error, Text} = weft_amqp_connection:params(Url),
         ?assertEqual(nomatch, string:find(Text, "secret"))
     end || Url <- ["amqp://u:secret@h:port", "amqp://u:secret@", "http://u:secret@h",
                    "amqp://u:secret%zz@h", ""]].

reasons_of_the_client_are_unwrapped_and_explained_test() ->
    [begin
         ?assertEqual(Plain, weft_amqp_connection:reason(Reason)),
         Text = unicode:characters_to_list(weft_amqp_connection:explain(Plain)),
         ?assertNotEqual({nomatch, Text}, {string:find(Text, Words), Text}),
         ?assertEqual({Plain, IsLasting}, {Plain, weft_amqp_connection:is_lasting(Plain)})
     end || {Reason, Plain, Words, IsLasting} <-
                [{{shutdown, {connection_closing, {server_initiated_close, 320, <<"FORCED">>}}},
                  {closed_by_broker, 320, <<"FORCED">>}, "FORCED", false},
                 {{{shutdown, {server_initiated_close, 403, <<"NO">>}}, {gen_server, call, []}},
                  {closed_by_broker, 403, <<"NO">>}, "needs the right", true},
                 {{server_initiated_close, 406, <<"X">>}, {closed_by_broker, 406, <<"X">>},
                  "other properties", true},
                 {{error, {auth_failure, "Refused"}}, {auth_failure, "Refused"}, "password", true},
                 {socket_closed_unexpectedly, connection_lost, "was lost", false},
                 {{socket_closed_unexpectedly, 'connection.start'}, connection_lost, "was lost",
                  false},
                 {{socket_error, etimedout}, {connection_lost, etimedout}, "etimedout", false},
                 {econnrefused, econnrefused, "nothing listens", false},
                 {timeout, timeout, "no answer", false},
                 {nxdomain, nxdomain, "no such host", false},
                 {{superseded, "a@h"}, {superseded, "a@h"}, "another node called a@h", true},
                 {{odd, thing}, {odd, thing}, "odd", false}]].
