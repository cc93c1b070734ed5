%% SPDX-License-Identifier: Apache-2.0
-module(weft_tls_options_tests).

-include_lib("eunit/include/eunit.hrl").

text(Options) ->
    {error, Text} = weft_tls_options:check(tls, Options),
    Text.

assert_has(Words, Text) ->
    [?assertNotEqual({nomatch, Word, Text}, {string:find(Text, Word), Word, Text})
     || Word <- Words].

tcp_needs_none_test() ->
    ?assertEqual(ok, weft_tls_options:check(tcp, [])).

without_a_certificate_it_says_what_to_write_test() ->
    assert_has(["transport is tls", "tls_options has no certificate of this node",
                "{certfile, File}", "{keyfile, File}", "{cacertfile, File}"], text([])),
    assert_has(["no certificate of this node"], text([{verify, verify_none}])).

without_anybody_to_trust_it_says_so_test() ->
    assert_has(["names no authority to trust", "{cacertfile, File}"], text([{cert, <<>>}])),
    ?assertEqual(ok, weft_tls_options:check(tls, [{cert, <<>>}, {verify, verify_none}])),
    ?assertEqual(ok, weft_tls_options:check(tls, [{certs_keys, []}, {cacerts, []}])).

a_file_that_is_missing_or_another_one_is_named_test() ->
    Here = code:which(?MODULE),
    assert_has(["certfile of tls_options is \"/no/such.pem\"", "no such file"],
               text([{certfile, "/no/such.pem"}, {cacerts, []}])),
    assert_has(["cacertfile of tls_options is", "no certificate in PEM"],
               text([{certfile, "/no/such.pem"}, {cacertfile, Here}])),
    assert_has(["keyfile of tls_options is", "no key in PEM"],
               text([{cert, <<>>}, {cacerts, []}, {keyfile, Here}])),
    assert_has(["certfile of tls_options is 7"], text([{certfile, 7}, {cacerts, []}])).

files_that_are_what_they_should_be_pass_test() ->
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"),
                        "weft_tls_" ++ os:getpid() ++ integer_to_list(erlang:unique_integer())),
    ok = filelib:ensure_path(Dir),
    try
        Options = weft_interop_certificates:options(Dir, ours, [ours]),
        ?assertEqual(ok, weft_tls_options:check(tls, Options))
    after
        file:del_dir_r(Dir)
    end.
