%% SPDX-License-Identifier: Apache-2.0
%% What can be said of hosts of a deployment without any; weft_deploy_ssh_SUITE measures on some.
-module(weft_papers_hosts_tests).

-include_lib("eunit/include/eunit.hrl").

two_are_needed_test() ->
    File = filename:join("/tmp", "weft-hosts-" ++ os:getpid() ++ ".deploy"),
    Write = fun(Terms) -> file:write_file(File, [io_lib:format("~p.~n", [T]) || T <- Terms]) end,
    ok = Write([{name, shop}, {family, web, #{}}]),
    {error, One} = weft_papers_hosts:open(File),
    ?assertNotEqual(nomatch, string:find(One, "{hosts, [...]}")),
    ok = Write([{name, shop}, {family, web, #{cout => 1}}]),
    {error, Wrong} = weft_papers_hosts:open(File),
    ?assertNotEqual(nomatch, string:find(Wrong, "cout")),
    ok = file:delete(File),
    ?assertMatch({error, _}, weft_papers_hosts:open(File)).

%% No clusters, no emulated links, no certificates.
cells_of_two_nodes_are_left_test() ->
    All = weft_bench_workload:cells(weft_bench_workload:modules(), full),
    [_ | _] = Left = weft_bench_hosts:cells(All),
    [?assertMatch({_, #{label := loopback}, []},
                  {Layout, Link, [V || V <- Variants, weft_bench_variant:is_tls(V)]})
     || #{layout := Layout, link := Link, variants := Variants} <- Left],
    ?assertEqual([pair], lists:usort([Layout || #{layout := Layout} <- Left])),
    ?assertEqual(0, weft_papers_cli:main(["--list", "--cluster", "none.deploy"])),
    ?assertEqual(2, weft_papers_cli:main(["--cluster", "none.deploy"])).

%% After an interrupt: what runs in the directory, and nothing beside it.
what_runs_in_a_directory_is_ended_test() ->
    Dir = filename:join("/tmp", "it's swept " ++ os:getpid()),
    ok = filelib:ensure_path(Dir),
    [Within, Beside] = [open_port({spawn_executable, "/bin/sh"},
                                  [{args, ["-c", "echo runs; read -r _", "sh", Where]},
                                   exit_status])
                        || Where <- [Dir ++ "/node", Dir ++ "2/node"]],
    [receive {Runs, {data, _}} -> ok end || Runs <- [Within, Beside]],
    Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-s"]}, binary, exit_status]),
    Script = unicode:characters_to_binary(weft_papers_sweep:script(Dir, 4369)),
    true = port_command(Port, Script),
    ?assertEqual(<<>>, printed(Port, <<>>)),
    receive {Within, {exit_status, Status}} -> ?assertNotEqual(0, Status) end,
    ?assertNot(filelib:is_file(Dir)),
    true = port_command(Beside, "\n"),
    receive {Beside, {exit_status, 0}} -> ok end.

printed(Port, Before) ->
    receive
        {Port, {data, Data}} -> printed(Port, <<Before/binary, Data/binary>>);
        {Port, {exit_status, 0}} -> Before
    end.
