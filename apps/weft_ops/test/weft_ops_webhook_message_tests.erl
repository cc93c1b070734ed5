%% SPDX-License-Identifier: Apache-2.0
-module(weft_ops_webhook_message_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ALARM, #{id => {queue_grows, 'a@h', 'b@h'}, severity => warning, raised_ms => 5,
                 text => <<"9 bytes wait">>, acknowledged => no}).

a_message_says_what_happened_where_and_when_test() ->
    ?assertEqual(#{<<"version">> => 1, <<"event">> => <<"raised">>,
                   <<"id">> => <<"queue_grows/a@h/b@h">>, <<"kind">> => <<"queue_grows">>,
                   <<"node">> => <<"a@h">>, <<"about">> => <<"b@h">>, <<"agent">> => <<"g@h">>,
                   <<"severity">> => <<"warning">>, <<"text">> => <<"9 bytes wait">>,
                   <<"at">> => <<"2026-11-24T12:00:00.250Z">>, <<"comment">> => null},
                 decoded({raised, ?ALARM})).

who_takes_care_says_what_test() ->
    Alarm = (?ALARM)#{acknowledged := #{comment => <<"a \"disk\"\n"/utf8>>, at_ms => 7}},
    ?assertMatch(#{<<"event">> := <<"acknowledged">>, <<"comment">> := <<"a \"disk\"\n">>},
                 decoded({acknowledged, Alarm})).

what_it_is_about_may_be_any_term_test() ->
    ?assertMatch(#{<<"about">> := <<"{session,b@h}">>, <<"id">> := <<"busy/a@h/{session,b@h}">>},
                 decoded({cleared, (?ALARM)#{id := {busy, 'a@h', {session, b@h}}}})).

decoded(Event) ->
    {ok, Said} = weft_json:decode(weft_ops_webhook_message:body(Event, 'g@h', 1795521600250)),
    Said.

%% The test vector of RFC 4231, section 4.3.
the_body_is_signed_test() ->
    ?assertEqual("sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
                 proplists:get_value("x-weft-signature",
                                     weft_ops_webhook_message:headers(
                                       <<"what do ya want for nothing?">>, <<"Jefe">>))),
    ?assertNot(lists:keymember("x-weft-signature", 1,
                               weft_ops_webhook_message:headers(<<"x">>, none))).

a_log_names_neither_password_nor_path_test_() ->
    [?_assertEqual(Place, weft_ops_webhook_message:place(Url))
     || {Url, Place} <- [{"https://name:password@host:8443/secret?key=1", "https://host:8443"},
                         {"http://host/secret", "http://host"}, {"secret", "a webhook"},
                         {"https://[::1]/secret", "https://::1"},
                         {{file, <<"/etc/weft/url">>}, "the URL in /etc/weft/url"}]].
