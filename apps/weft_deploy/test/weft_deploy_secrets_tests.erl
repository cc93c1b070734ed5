%% SPDX-License-Identifier: Apache-2.0
%% Secrets are found, and are in nothing that the command says or exports.
-module(weft_deploy_secrets_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PASSWORD, "open sesame").

options() ->
    [{transport, tls}, {tls_options, [{certfile, "/c.pem"}, {password, ?PASSWORD}]}].

passwords_are_found_by_the_names_of_their_keys_test() ->
    ?assertEqual([{api_secret, <<"abcdef">>}, {password, <<?PASSWORD>>}],
                 weft_deploy_secrets:in([#{weft => options()},
                                         {shop, [{api_secret, <<"abcdef">>}, {password, none},
                                                 {password, "abc"}, {port, 8080}]}])).

%% Those of weft's own listeners are called so.
tokens_are_found_test() ->
    ?assertEqual([{shop_token, <<"abcdef">>}, {token, <<"correct-horse-battery">>}],
                 weft_deploy_secrets:in([{weft_dashboard, [{token, "correct-horse-battery"}]},
                                         {shop, #{shop_token => "abcdef", token => none,
                                                  token_kind => "bearer"}}])).

the_name_of_a_file_is_no_secret_test() ->
    ?assertEqual([], weft_deploy_secrets:in([{weft_kv_http, [{token, {file, "/etc/token"}}]},
                                             {tls_options, [{password_file, "/etc/password"}]},
                                             {webhook, #{secret_file => "/etc/weft/webhook"}}])).

%% A path may be what only its receiver knows.
of_a_webhook_the_url_is_one_if_it_has_a_path_test() ->
    In = fun(Url) -> weft_deploy_secrets:in({weft_ops, [{webhook, #{url => Url}}]}) end,
    [?assertEqual([{url, unicode:characters_to_binary(Url)}], In(Url))
     || Url <- ["https://h/unsaid", <<"https://h:8080/?x=unsaid">>, "HTTP://h#unsaid"]],
    [?assertEqual([], In(Url)) || Url <- ["https://h.example.org:8080", <<"https://h/">>,
                                          {file, "/etc/weft/url"}]],
    ?assertEqual([{url, <<"sesame">>}], In("https://shop:sesame@h")).

%% As it is written, and as it is read.
those_in_addresses_too_test() ->
    ?assertEqual([{address, <<"p:4s%40s">>}, {address, <<"p:4s@s">>}, {broker, <<"guest">>}],
                 weft_deploy_secrets:in([#{broker => "amqps://shop:guest@host:5671/x"},
                                         ["see http://host:80/a@b", <<"AMQP://u:p:4s%40s@h">>],
                                         {url, "https://user@host/c:dddd@e"}])).

of_the_topology_too_test() ->
    Terms = [{name, shop}, {topology, {pubsub, #{broker => "amqp://shop:sesame@host"}}},
             {family, web, #{}}],
    {ok, Spec} = weft_deploy_spec:new(Terms),
    ?assertMatch({error, _}, weft_deploy_export:check("systemd", Spec)),
    {error, Text} = weft_deploy_spec:new([{provider, "amqp://shop:sesame@host"} | Terms]),
    ?assertNotEqual(nomatch, string:find(Text, "amqp://shop:***@host")),
    ?assertEqual({Text, nomatch}, {Text, string:find(Text, "sesame")}).

answers_have_stars_and_keep_their_shape_test() ->
    Secrets = [{password, <<"abcd">>}],
    Hide = fun(Answer) -> weft_deploy_secrets:hide(Answer, Secrets) end,
    ?assertEqual({failed, "x *** y"}, Hide({failed, "x abcd y"})),
    ?assertEqual({ok, #{a => [<<"***">>, <<"b">>], n => 1}, "x"},
                 Hide({ok, #{a => [<<"abcd">>, <<"b">>], n => 1}, "x"})),
    ?assertEqual([#{why => <<"***!">>}], Hide([#{why => <<"abcd!">>}])),
    ?assertEqual("a ***", Hide(["a ", ["ab", <<"cd">>]])),
    %% An accent after it, or bytes that are no characters.
    ?assertEqual("***" ++ [16#301], Hide("abcd" ++ [16#301])),
    ?assertEqual(<<255, "***">>, Hide(<<255, "abcd">>)).

one_that_begins_like_another_is_hidden_as_a_whole_test() ->
    Secrets = [{password, <<"sesame">>}, {shop_password, <<"sesame open">>}, {secret, <<"open">>}],
    [?assertEqual("x *** y ***", weft_deploy_secrets:hide("x sesame open y sesame", Some))
     || Some <- [Secrets, lists:reverse(Secrets)]].

%% As in a report of a crash.
one_that_is_printed_in_a_term_is_hidden_test() ->
    [begin
         Printed = lists:flatten(io_lib:format("~0tp", [{password, Password}])),
         ?assertEqual("{password,\"***\"}",
                      weft_deploy_secrets:hide(Printed,
                                               weft_deploy_secrets:in({password, Password})))
     end || Password <- ["a\"b\\c\n", "ab\"" ++ [16#e9]]].

%% Each error shows what is wrong, and that may be what has the password in it.
errors_of_the_file_do_not_show_them_test_() ->
    Wrong = [[{family, web, #{weft => {tls_options, [{password, ?PASSWORD}]}}}],
             [{family, web, #{weft => [{tls_options, #{password => ?PASSWORD}}]}}],
             [{family, web, [{password, ?PASSWORD}]}],
             [{familie, web, #{weft => options()}}, {family, web, #{}}],
             [{family, web, #{env => [{shop, {password, ?PASSWORD}}]}}]],
    [?_test(begin
                {error, Text} = weft_deploy_spec:new([{name, shop} | Terms]),
                ?assertEqual({Text, nomatch}, {Text, string:find(Text, ?PASSWORD)})
            end) || Terms <- Wrong].

they_are_exported_to_no_file_test() ->
    [begin
         {ok, Spec} = weft_deploy_spec:new([{name, shop}, {family, web, Family}]),
         [begin
              {error, Text} = weft_deploy_export:check(Kind, Spec),
              ?assertMatch({match, _}, re:run(Text, "family web has a secret \\(" ++ Key))
          end || Kind <- weft_deploy_export:kinds() -- ["ansible"]],
         ok = weft_deploy_export:check("ansible", Spec)
     end || {Key, Family} <- [{"password", #{weft => options()}},
                              {"token", #{env => [{weft_kv_http, [{token, ?PASSWORD}]}]}},
                              {"url", env([{webhook, #{url => "https://h/unsaid"}}])}]].

what_is_read_from_files_of_the_host_is_exported_test() ->
    {ok, Spec} = weft_deploy_spec:new(
                   [{name, shop},
                    {family, web, env([{webhook, #{url => {file, "/etc/weft/url"},
                                                   secret_file => "/etc/weft/webhook"}}])}]),
    [ok = weft_deploy_export:check(Kind, Spec) || Kind <- weft_deploy_export:kinds()].

env(OfOps) -> #{env => [{weft_ops, OfOps}]}.
