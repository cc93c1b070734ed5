%% SPDX-License-Identifier: Apache-2.0
%% @doc What is said where a load can not go to the hosts of a deployment, before it begins; a load
%% on two of them is in weft_deploy_ssh_SUITE.
-module(weft_papers_load_hosts_tests).

-include_lib("eunit/include/eunit.hrl").

what_can_not_be_opened_is_explained_test_() ->
    in_dir(fun(Dir) ->
        File = filename:join(Dir, "shop.deploy"),
        Open = fun(Terms, Wanted) ->
                       ok = file:write_file(File, [io_lib:format("~p.~n", [T]) || T <- Terms]),
                       {error, Text} = weft_papers_load_hosts:open(File, Wanted, config([])),
                       Text
               end,
        Terms = [{name, shop}, {dir, filename:join(Dir, "host")}, {epmd_port, 4790},
                 {family, web, #{paths => [Dir]}}],
        Expect = fun(Expected, Text) -> ?assertMatch({{match, _}, _},
                                                     {re:run(Text, Expected), Text}) end,
        Expect("no node of shop .*/host .*127.0.0.1.*weft deploy apply",
               Open(Terms, all)),
        Expect("no node of shop ", Open(Terms, ["127.0.0.1", "127.0.0.1"])),
        Expect("shop.deploy: host b .*127.0.0.1", Open(Terms, ["b"])),
        Expect("cout", Open(Terms ++ [{family, db, #{cout => 1}}], all)),
        Other = filename:join(Dir, "other.deploy"),
        {error, None} = weft_papers_load_hosts:open(Other, all, config([])),
        Expect("other.deploy: no such file", None),
        Arguments = ["load", config_file(Dir), "--out", filename:join(Dir, "out")],
        ?assertEqual(2, weft_papers_cli:main(Arguments ++ ["--cluster", Other])),
        ?assertEqual(2, weft_papers_cli:main(Arguments ++ ["--hosts", "127.0.0.1"])),
        ?assertNot(filelib:is_file(filename:join(Dir, "out")))
    end).

%% What was there stays, if somebody works with it; nothing stays of what could not be used.
a_host_is_left_as_it_was_test_() ->
    in_dir(fun(Dir) ->
        Own = weft_papers_hosts:dir(Dir),
        {ok, Host} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
        Packed = filename:join(Dir, "code.tar.gz"),
        ok = erl_tar:create(Packed, [{"lib/1/code.beam", <<>>}], [compressed]),
        {ok, Tarball} = file:read_file(Packed),
        ok = file:delete(Packed),
        Content = #{dir => Own, cookie => "cookie", code => Tarball, erl => "no such erl"},
        {error, NoErl} = weft_papers_hosts:prepare(Host, Content),
        ?assertMatch({match, _}, re:run(NoErl, "no program no such erl.*{erl, \"")),
        ?assertEqual([], filelib:wildcard("{*,.[a-z]*}", Dir)),
        ok = weft_papers_hosts:prepare(Host, Content#{erl := "sh"}),
        ?assertEqual({ok, <<"cookie">>}, file:read_file(filename:join(Own, ".erlang.cookie"))),
        Port = open_port({spawn_executable, "/bin/sh"},
                         [{args, ["-c", "echo runs; read -r _", "sh", Own ++ "/lib/1"]},
                          exit_status]),
        receive {Port, {data, _Runs}} -> ok end,
        {error, Taken} = weft_papers_hosts:prepare(Host, Content#{erl := "sh"}),
        ?assertMatch({match, _}, re:run(Taken, "another .* " ++ Own)),
        ?assert(filelib:is_file(filename:join(Own, ".erlang.cookie"))),
        ok = weft_papers_hosts:close(Host, Own, none),
        receive {Port, {exit_status, _}} -> ok end,
        ?assertNot(filelib:is_file(Own))
    end).

%% Applications are found by their names there, and so are the headers of drivers.
code_and_sources_are_packed_test_() ->
    in_dir(fun(Dir) ->
        [ok = file:write_file(filename:join(Dir, Name), "")
         || Name <- ["driver.erl", "driver.hrl", "secret"]],
        #{paths := Paths, source := "source", tarball := Tarball} =
            weft_papers_hosts:code(#{beams => [Dir], source => Dir}),
        {ok, Names} = erl_tar:table({binary, Tarball}, [compressed]),
        ?assertMatch([_], [Path || Path <- Paths, lists:suffix("/weft_bench/ebin", Path)]),
        [?assertMatch({Suffix, [_]}, {Suffix, [Name || Name <- Names, lists:suffix(Suffix, Name)]})
         || Suffix <- ["/weft_bench/ebin/weft_load_instance.beam", "source/driver.erl",
                       "/weft_bench/priv/include/basho_bench.hrl", "source/driver.hrl"]],
        ?assertEqual([], [Name || Name <- Names, lists:suffix("secret", Name)])
    end).

config(Pairs) ->
    {ok, Config} = weft_load_config:check(Pairs ++ [{driver, weft_load_driver_ets}]),
    Config.

config_file(Dir) ->
    File = filename:join(Dir, "load.config"),
    ok = file:write_file(File, "{driver, weft_load_driver_ets}.\n"),
    File.

%% The machine may be busy.
in_dir(Test) ->
    {timeout, 120, fun() -> with_dir(Test) end}.

with_dir(Test) ->
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"),
                        lists:concat(["weft-papers-load-", os:getpid(), "-",
                                      erlang:unique_integer([positive])])),
    ok = filelib:ensure_path(Dir),
    try Test(Dir) after file:del_dir_r(Dir) end.
