%% SPDX-License-Identifier: Apache-2.0
%% @doc Exported files, read by those whose formats they have: the schemas of Kubernetes and of
%% compose, and Ansible. With FULL=1 only. `bin/setup test-long' has put a Python with packages, and
%% the schema of compose files, into the build directory; the application is in a folder of
%% test/lib there. The schema is that of a Go module: the package of npm has one from before files
%% could have a name. The suite itself uses no network.
-module(weft_deploy_schemas_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([kubernetes_takes_the_base/1, compose_takes_the_services/1, ansible_has_the_hosts/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [kubernetes_takes_the_base, compose_takes_the_services, ansible_has_the_hosts].

init_per_suite(Config) ->
    Build = filename:join([code:lib_dir(weft_deploy), "..", "..", ".."]),
    [{python, filename:join(Build, "python/bin/python")},
     {schema, filename:join(Build, "schemas/compose-spec.json")} | Config].

end_per_suite(_Config) -> ok.

exported(Kind, Config) ->
    {ok, Spec} = weft_deploy_spec:new(
                   [{name, shop}, {epmd_port, 4390},
                    {provider, {ssh, #{keys => "keys", user => "shop"}}},
                    {hosts, ["db1.example.org", "db2.example.org"]}, {dir, "/srv/shop"},
                    {family, web, #{count => 2, groups => [a], start => [sasl],
                                    flags => ["-shop", "price", "5$ or 100%: 'x' \"y\" #z"]}},
                    {family, gate, #{groups => [a, b], weft => [{lanes, 2}]}},
                    {family, db, #{groups => [b], count => 1}}]),
    Facts = #{counts => weft_deploy_spec:counts(Spec, #{}), dir => "/srv/shop", erl => "erl",
              versions => #{web => "w1", gate => "g1", db => "d1"}, cores => #{}, placed => #{}},
    Dir = filename:join(?config(priv_dir, Config), Kind),
    [begin
         File = filename:join(Dir, Name),
         ok = filelib:ensure_dir(File),
         ok = file:write_file(File, unicode:characters_to_binary(Content))
     end || {Name, Content} <- weft_deploy_export:files(Kind, Spec, [], Facts)],
    Dir.

%% Runs a Python program; its last line.
python(Program, Arguments, Config) ->
    Words = [weft_deploy_shell:quote(Word)
             || Word <- [?config(python, Config), "-c", Program | Arguments]],
    Text = os:cmd(unicode:characters_to_list(lists:join(" ", Words))),
    ct:log("~ts", [Text]),
    lists:last(["" | string:lexemes(Text, "\n")]).

missing(Packages, Config) ->
    [Package || Package <- Packages,
                python("import " ++ Package ++ "; print('there')", [], Config) =/= "there"].

kubernetes_takes_the_base(Config) ->
    case missing(["kubernetes_validate", "yaml"], Config) of
        [] -> kubernetes(exported("kustomize", Config), Config);
        [Package | _] -> weft_test_missing:skip("Python with " ++ Package)
    end.

kubernetes(Dir, Config) ->
    Program = told_if_refused(
                "import sys, glob, yaml, kubernetes_validate\n"
                "kinds = []\n"
                "for name in sys.argv[1:]:\n"
                "    for document in yaml.safe_load_all(open(name)):\n"
                "        kubernetes_validate.validate(document, '1.32', strict=True)\n"
                "        kinds.append(document['kind'])\n"
                "print(' '.join(sorted(kinds)))\n"),
    Files = [filename:join(Dir, File) || File <- ["web.yaml", "gate.yaml", "db.yaml"]],
    ?assertEqual("Service Service Service StatefulSet StatefulSet StatefulSet",
                 python(Program, Files, Config)),
    sees_a_mistake("replicas: 2", "replicas: \"two\"", hd(Files), fun(Bad) ->
        python(Program, [Bad], Config)
    end).

%% What refuses a document, and why, is its last line then.
told_if_refused(Program) ->
    "try:\n"
        ++ lists:append(["    " ++ Line ++ "\n" || Line <- string:lexemes(Program, "\n")])
        ++ "except Exception as error:\n"
           "    if type(error).__name__ != 'ValidationError':\n"
           "        raise\n"
           "    print('refused:', ' '.join(str(error).split()))\n".

%% Of a file in which one text stands for another one that is right.
sees_a_mistake(Right, Wrong, File, Read) ->
    {ok, Good} = file:read_file(File),
    Bad = File ++ ".bad",
    ok = file:write_file(Bad, string:replace(Good, Right, Wrong)),
    Name = lists:last(string:lexemes(Wrong, ": \"")),
    ?assertMatch({match, _}, re:run(Read(Bad), "^refused: .*" ++ Name)).

compose_takes_the_services(Config) ->
    Schema = ?config(schema, Config),
    case {filelib:is_regular(Schema), missing(["jsonschema", "yaml"], Config)} of
        {true, []} -> compose(filename:join(exported("compose", Config), "compose.yaml"), Schema,
                              Config);
        {false, _} -> weft_test_missing:skip("schema of compose files");
        {true, [Package | _]} -> weft_test_missing:skip("Python with " ++ Package)
    end.

compose(File, Schema, Config) ->
    Program = told_if_refused(
                "import sys, json, yaml, jsonschema\n"
                "document = yaml.safe_load(open(sys.argv[1]))\n"
                "jsonschema.validate(document, json.load(open(sys.argv[2])))\n"
                "print(' '.join(sorted(document['services'])))\n"),
    ?assertEqual("db1 gate1 web1 web2", python(Program, [File, Schema], Config)),
    sees_a_mistake("hostname:", "host_name:", File, fun(Bad) ->
        python(Program, [Bad, Schema], Config)
    end).

ansible_has_the_hosts(Config) ->
    Program = filename:join(filename:dirname(?config(python, Config)), "ansible-inventory"),
    case filelib:is_file(Program) of
        true -> ansible(Program, exported("ansible", Config));
        false -> weft_test_missing:skip("ansible-inventory")
    end.

ansible(Program, Dir) ->
    Text = os:cmd(lists:concat([Program, " -i ", Dir, "/inventory.yaml --list"])),
    ct:log("~ts", [Text]),
    [?assertMatch({match, _}, re:run(Text, Part))
     || Part <- ["\"ansible_user\": \"shop\"", "\"web1@db1.example.org\"",
                 "\"web2@db2.example.org\"", "\"shop\": \\{\\s+\"children\""]],
    ?assertEqual(nomatch, re:run(Text, "WARNING|ERROR")).
