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
    Cluster = cluster(Dir, Tls),
    ok = weft_local_files:create(Cluster),
    ?assertEqual([{"", 8#700}, {"cluster", 8#600}, {"tls", 8#700}, {"tls/key.pem", 8#600}],
                 [{Name, mode(filename:join(Dir, Name))}
                  || Name <- ["", "cluster", "tls", "tls/key.pem"]]),
    ?assertMatch({ok, #{cookie := secret}}, weft_local_files:load("/tmp", filename:basename(Dir))),
    ok = file:del_dir_r(Dir).

%% Its file is somebody else's, as in a directory of Kubernetes or of data.
a_directory_that_is_none_of_ours_stays_test_() ->
    {timeout, 60, fun a_directory_that_is_none_of_ours_stays/0}.

a_directory_that_is_none_of_ours_stays() ->
    Dir = filename:join("/tmp", "weft_local_files_tests-other-" ++ os:getpid()),
    ok = file:make_dir(Dir),
    Work = filename:join(Dir, "work"),
    ok = file:write_file(Work, "of a year"),
    [begin
         ok = file:write_file(filename:join(Dir, "cluster"), Text),
         {error, Why} = weft_local_files:create(cluster(Dir, [])),
         ?assertMatch({match, _}, re:run(Why, "is no cluster of weft")),
         ?assertEqual({ok, <<"of a year">>}, file:read_file(Work)),
         ?assertEqual({error, not_found},
                      weft_local_files:load("/tmp", filename:basename(Dir)))
     end || Text <- ["", "name: production\n", "{nodes, 3}.\n", "#{name => \"x\", nodes => 3}.\n"]],
    ok = file:delete(filename:join(Dir, "cluster")),
    ?assertMatch({error, _}, weft_local_files:create(cluster(Dir, []))),
    ok = file:del_dir_r(Dir),
    %% One of its own is replaced.
    ok = weft_local_files:create(cluster(Dir, [])),
    ok = file:write_file(Work, "log of a node"),
    ok = weft_local_files:create(cluster(Dir, [])),
    ?assertNot(filelib:is_file(Work)),
    ok = file:del_dir_r(Dir).

cluster(Dir, Settings) ->
    #{dir => Dir, name => "x", id => "x-1", nodes => [], cookie => secret, kernel => [],
      settings => Settings}.

mode(File) ->
    {ok, #file_info{mode = Mode}} = file:read_file_info(File),
    Mode band 8#777.
