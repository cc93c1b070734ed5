%% SPDX-License-Identifier: Apache-2.0
%% @doc RabbitMQ as its own tests want it, from its sources and from an installed server of the same
%% version: the sources compiled for tests, and a copy of the server that runs the result. What the
%% sources need besides (libraries, generated modules, the command) is that of the server.
%%
%% After the migration the server has weft as a release would: among its libraries, and among the
%% applications that each rewritten application needs. weft_migrate_suites makes it the carrier.
-module(weft_migrate_broker).

-export([before/3, migrated/3, version/1]).

%% What suites of these applications need.
-define(APPS, ["rabbit_common", "rabbit", "amqp_client", "amqp10_common", "amqp10_client",
               "rabbitmq_ct_helpers", "rabbitmq_ct_client_helpers", "rabbitmq_web_dispatch",
               "rabbitmq_management_agent", "rabbitmq_management", "rabbitmq_federation",
               "rabbitmq_amqp1_0", "rabbitmq_shovel", "rabbitmq_aws",
               "rabbitmq_peer_discovery_common", "rabbitmq_peer_discovery_aws",
               "rabbitmq_peer_discovery_k8s"]).

%% @doc The version of an installed server.
-spec version(Server :: file:filename()) -> string().
version(Server) ->
    [Plugin] = filelib:wildcard(filename:join(Server, "plugins/rabbit-*")),
    "rabbit-" ++ Version = filename:basename(Plugin),
    Version.

%% @doc Makes Dir anew: `sources' of which `apps' are compiled, the `server', and the `command' for
%% suites that use it. Sources is a clone of RabbitMQ's repository, at the tag of the server.
-spec before(Sources :: file:filename(), Server :: file:filename(), Dir :: file:filename()) -> ok.
before(Sources, Server, Dir) ->
    _ = file:del_dir_r(Dir),
    ok = filelib:ensure_path(filename:join(Dir, "sources")),
    [copied(filename:join(Sources, Part), filename:join([Dir, "sources", Part]))
     || Part <- ["deps", "scripts"]],
    copied(Server, filename:join(Dir, "server")),
    ok = filelib:ensure_path(filename:join(Dir, "apps")),
    [ok = file:make_symlink("../sources/deps/" ++ App, filename:join([Dir, "apps", App]))
     || App <- ?APPS],
    unpacked(filename:join([Server, "escript", "rabbitmqctl"]), filename:join(Dir, "command")),
    [true = code:add_pathz(Ebin)
     || Ebin <- filelib:wildcard(filename:join(Server, "plugins/*/ebin"))],
    built(Dir).

copied(From, To) ->
    "" = os:cmd(lists:flatten(io_lib:format("cp -R '~ts' '~ts'", [From, To]))).

%% The modules in an escript.
unpacked(Escript, Dir) ->
    {ok, Sections} = escript:extract(Escript, []),
    {ok, _} = zip:unzip(proplists:get_value(archive, Sections), [{cwd, Dir}]).

%% @doc The same in another directory, after `weft migrate' has rewritten all of the sources.
%% Answers how many places it rewrote and left.
-spec migrated(Before :: file:filename(), Weft :: file:filename(), Dir :: file:filename()) ->
          {Rewritten :: non_neg_integer(), Left :: non_neg_integer()}.
migrated(Before, Weft, Dir) ->
    _ = file:del_dir_r(Dir),
    copied(Before, Dir),
    Sources = filename:join(Dir, "sources/deps"),
    {ok, #{results := Results, failed := []}} = weft_migrate:rewrite([Sources], #{write => true}),
    ok = built(Dir),
    Apps = lists:usort([app(File, Sources) || #{file := File, rewritten := [_ | _]} <- Results]),
    with_weft(Weft, Apps, filename:join(Dir, "server")),
    {count(rewritten, Results), count(left, Results)}.

app(File, Sources) -> hd(filename:split(string:prefix(File, Sources ++ "/"))).

count(Kind, Results) -> lists:sum([length(maps:get(Kind, Result)) || Result <- Results]).

%% Its library, and where it has to run: in each application that calls it now.
with_weft(Weft, Apps, Server) ->
    ok = filelib:ensure_path(filename:join(Server, "plugins/weft")),
    copied(Weft, filename:join(Server, "plugins/weft/ebin")),
    [needs_weft(File) || App <- Apps,
                         File <- filelib:wildcard(filename:join([Server, "plugins", App ++ "-*",
                                                                 "ebin", App ++ ".app"]))].

needs_weft(File) ->
    {ok, [{application, App, Keys}]} = file:consult(File),
    {applications, Needed} = lists:keyfind(applications, 1, Keys),
    Now = lists:keystore(applications, 1, Keys, {applications, Needed ++ [weft]}),
    ok = file:write_file(File, io_lib:format("~tp.~n", [{application, App, Now}])).

%% The server gets the modules that are compiled now. Those of tests are beside their sources, where
%% suites and the brokers that they start look for them.
built(Dir) ->
    Apps = filename:join(Dir, "apps"),
    _ = weft_migrate_build:tree(Apps, {Dir, #{define => ['TEST']}}),
    [_ = file:rename(filename:join([Apps, App, "ebin", Test ++ ".beam"]),
                     filename:join([Apps, App, "test", Test ++ ".beam"]))
     || Source <- filelib:wildcard("*/test/*.erl", Apps), [App | _] <- [filename:split(Source)],
        Test <- [filename:basename(Source, ".erl")]],
    Compiled = maps:from_list([{filename:basename(Beam), Beam}
                               || Ebin <- ["*/ebin/", "*/apps/*/ebin/"],
                                  Beam <- filelib:wildcard(Ebin ++ "*.beam", Apps)]),
    [{ok, _} = file:copy(filename:join(Apps, New), Beam)
     || Beam <- filelib:wildcard(filename:join(Dir, "server/plugins/*/ebin/*.beam")),
        {ok, New} <- [maps:find(filename:basename(Beam), Compiled)]],
    ok.
