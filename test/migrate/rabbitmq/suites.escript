#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%%! -noinput +sbtu
%% Suites of RabbitMQ before and after `weft migrate rewrite' (docs/guide/migrate.md):
%%
%%   test/migrate/rabbitmq/suites.escript [--built] SOURCES [APPLICATION/SUITE ...]
%%
%% SOURCES is a clone of the project's repository, at the tag of the installed server; it stays as
%% it is. Before, the sources run on stock distribution; after, over weft. WEFT_RABBITMQ says where
%% the server is. With --built the suites run on what the last run has built. The exit code is 0 if
%% each case has the same result.
-mode(compile).

-define(SERVER, "/usr/lib/rabbitmq/lib/rabbitmq_server-3.10.8").
%% Those that have to do with groups and locks, the ones that start brokers last.
-define(SUITES, ["rabbit/mirrored_supervisor", "rabbit/unit_cluster_formation_locking_mocks",
                 "rabbitmq_peer_discovery_k8s/rabbitmq_peer_discovery_k8s",
                 "rabbitmq_peer_discovery_aws/unit",
                 "rabbitmq_federation/rabbit_federation_status",
                 "rabbit/peer_discovery_classic_config", "rabbit/vhost",
                 "rabbitmq_shovel/dynamic", "rabbitmq_management/clustering",
                 "rabbitmq_federation/exchange"]).

main(Words) ->
    Base = filename:absname(os:getenv("REBAR_BASE_DIR", "_build")),
    Work = filename:join([Base, "migrate", "rabbitmq"]),
    Code = filename:join(Work, "runner"),
    ok = filelib:ensure_path(Code),
    [{ok, _} = compile:file(File, [{outdir, Code}, report])
     || File <- ["test/otp/weft_otp_hook.erl", "test/migrate/weft_migrate_build.erl"
                 | filelib:wildcard("test/migrate/rabbitmq/*.erl")]],
    true = code:add_patha(Code),
    Weft = filename:join(Base, "default/lib/weft/ebin"),
    ok = code:add_pathsa([filename:join(Base, "default/lib/weft_migrate/ebin"), Weft]),
    Dirs = {filename:join(Work, "before"), filename:join(Work, "after")},
    case Words of
        ["--built", _Sources | Suites] ->
            run(Suites, Dirs);
        [[Letter | _] = Sources | Suites] when Letter =/= $- ->
            build(filename:absname(Sources), Weft, Dirs),
            run(Suites, Dirs);
        _ ->
            io:format(standard_error, "usage: suites.escript [--built] SOURCES "
                      "[APPLICATION/SUITE ...]~n", []),
            halt(2)
    end.

build(Sources, Weft, {Before, After}) ->
    Server = os:getenv("WEFT_RABBITMQ", ?SERVER),
    ok = weft_migrate_broker:before(Sources, Server, Before),
    {Rewritten, Left} = weft_migrate_broker:migrated(Before, Weft, After),
    io:format("RabbitMQ ~ts: ~w places rewritten, ~w left~n",
              [weft_migrate_broker:version(Server), Rewritten, Left]).

run([], Dirs) ->
    run(?SUITES, Dirs);
run(Suites, {Before, After}) ->
    halt(case [Name || Name <- Suites, not same(Name, Before, After)] of [] -> 0; _ -> 1 end).

same(Name, Before, After) ->
    [App, Suite] = string:split(Name, "/"),
    {Old, _} = weft_migrate_suites:run({App, Suite}, Before, stock),
    {New, Logs} = weft_migrate_suites:run({App, Suite}, After, weft),
    io:format("~-60ts before ~ts, after ~ts~n", [Name, counts(Old), counts(New)]),
    Different = weft_migrate_suites:different(Old, New),
    [io:format("  ~0tp: before ~0tp~n    after ~0tp~n", [Case, A, B]) || {Case, A, B} <- Different],
    [io:format("  logs ~ts~n", [Logs]) || Different =/= []],
    Different =:= [] andalso Old =/= #{}.

counts(Results) ->
    All = [Status || {Status, _} <- lists:append(maps:values(Results))],
    lists:flatten(lists:join(" ", [integer_to_list(length([S || S <- All, S =:= Status]))
                                   ++ " " ++ atom_to_list(Status)
                                   || Status <- lists:usort([passed | All])])).
