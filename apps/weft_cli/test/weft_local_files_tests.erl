%% SPDX-License-Identifier: Apache-2.0
-module(weft_local_files_tests).

-include_lib("kernel/include/file.hrl").
-include_lib("eunit/include/eunit.hrl").

%% The cookie is also in the command lines that are noted beside it.
others_get_at_neither_cookie_nor_key_test_() ->
    {timeout, 60, fun others_get_at_neither_cookie_nor_key/0}.

others_get_at_neither_cookie_nor_key() ->
    Dir = filename:join("/tmp", "weft_local_files_tests-" ++ os:getpid()),
    Tls = [{tls_options, weft_local_tls:options(filename:join(Dir, "tls"))}],
    Cluster = #{dir => Dir, name => "x", cookie => secret, kernel => [], settings => Tls},
    ok = weft_local_files:create(Cluster),
    ?assertEqual([{"", 8#700}, {"cluster", 8#600}, {"tls", 8#700}, {"tls/key.pem", 8#600}],
                 [{Name, mode(filename:join(Dir, Name))}
                  || Name <- ["", "cluster", "tls", "tls/key.pem"]]),
    ?assertMatch({ok, #{cookie := secret}}, weft_local_files:load("/tmp", filename:basename(Dir))),
    ok = file:del_dir_r(Dir).

mode(File) ->
    {ok, #file_info{mode = Mode}} = file:read_file_info(File),
    Mode band 8#777.
