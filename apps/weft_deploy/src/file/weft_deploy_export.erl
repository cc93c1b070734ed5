%% SPDX-License-Identifier: Apache-2.0
%% @doc A deployment in the words of other tools: systemd, compose, kustomize, Ansible. Pure.
%%
%% The cookie is in none of the files; they say where it is to be put. What stands where is in
%% docs/guide/deploy.md.
-module(weft_deploy_export).

-export([files/4, kinds/0, check/2, has_hosts/1, ready/0, linked/2]).

-type files() :: [{Name :: string(), unicode:chardata()}].

%% Of a node in a container.
-define(HOME, "/tmp/weft").
-define(READY, ?HOME "/ready").
%% Any number but that of root.
-define(SECRETS_GROUP, 1000).
%% Beyond the time that a node has to end.
-define(POD_ENDS_S, 30).

%% @doc What can be exported.
-spec kinds() -> [string()].
kinds() -> ["systemd", "compose", "kustomize", "ansible"].

%% @doc Are the nodes those of the hosts in the file? Others are on hosts that the other tool makes.
-spec has_hosts(Kind :: string()) -> boolean().
has_hosts(Kind) -> lists:member(Kind, ["systemd", "ansible"]).

%% @doc Can the names be those of the other tool?
-spec check(Kind :: string(), weft_deploy_spec:spec()) -> ok | {error, iodata()}.
check(Kind, #{families := Families, topology := Topology} = Spec) ->
    Written = [{["family ", atom_to_list(Name)], Family} || #{name := Name} = Family <- Families]
        ++ [{"the topology", Topology}],
    case [{Where, Key} || Kind =/= "ansible", {Where, Term} <- Written,
                          {Key, _} <- weft_deploy_secrets:in(Term)] of
        [] -> names(Kind, Spec);
        [{Where, Key} | _] ->
            {error, io_lib:format("~ts has a secret (~ts), which would be in clear in these "
                                  "files: have it read from a file of the host", [Where, Key])}
    end.

names("kustomize", #{name := Deployment, families := Families}) ->
    Names = [Deployment | [atom_to_list(Name) || #{name := Name} <- Families]],
    case [Name || Name <- Names, re:run(Name, "^[a-z]([a-z0-9-]*[a-z0-9])?$",
                                        [{capture, none}, dollar_endonly]) =/= match] of
        [] -> ok;
        [Name | _] -> {error, [Name, " can be no name there: write lower case letters, digits "
                               "and - only"]}
    end;
names(_Kind, _Spec) ->
    ok.

%% @doc The files of one kind. Facts are those of `weft_deploy_nodes'; Lost hosts have no nodes.
-spec files(Kind :: string(), weft_deploy_spec:spec(), [string()], weft_deploy_nodes:facts()) ->
          files().
files("systemd", Spec, Lost, Facts) ->
    Nodes = weft_deploy_nodes:desired(Spec, Lost, Facts),
    Hosts = lists:usort([{Host, lists:keydelete("ERL_LIBS", 1, Environment)}
                         || #{host := Host, environment := Environment} <- Nodes]),
    [epmd(Host, Spec, Facts) || Host <- Hosts]
        ++ lists:append([unit(Node, Spec, Facts) || Node <- Nodes]);
files("ansible", Spec, Lost, Facts) ->
    [{"inventory.yaml", inventory(Spec, weft_deploy_nodes:desired(Spec, Lost, Facts))}];
files("compose", Spec, _Lost, Facts) ->
    compose(Spec, elsewhere(Spec, Facts, fun(Name, _Family, _Number) -> Name end));
files("kustomize", Spec, _Lost, Facts) ->
    Pod = fun(_Name, Family, Number) -> lists:concat([Family, "-", Number - 1, ".", Family]) end,
    kustomize(Spec, elsewhere(Spec, Facts, Pod)).

%% The nodes on hosts of their own: containers, which are called by what they are.
elsewhere(#{families := Families} = Spec, #{counts := Counts} = Facts, Host) ->
    Names = [{atom_to_list(Family) ++ integer_to_list(Number), Family, Number}
             || #{name := Family} <- Families, Number <- lists:seq(1, map_get(Family, Counts))],
    Placed = maps:from_list([{Name, Host(Name, Family, Number)}
                             || {Name, Family, Number} <- Names]),
    Hosts = [#{host => At, cores => 1} || At <- maps:values(Placed)],
    weft_deploy_nodes:desired(Spec#{hosts := Hosts,
                                    families := [F#{hosts := all} || F <- Families]}, [],
                              Facts#{placed := Placed, dir := "/opt/weft", erl := "erl"}).

%% --- systemd ------------------------------------------------------------------------------------

unit(#{node := Node, host := Host, words := Words, environment := Environment, config := Config},
     #{name := Name, epmd_port := Port, stop_s := StopS}, #{dir := Dir}) ->
    Home = Dir ++ "/nodes/" ++ Node,
    Variables = [{"HOME", Home} | Environment],
    Unit = ["[Unit]\nDescription=", Node, " of ", Name, "\n"
            "Wants=network-online.target ", epmd_unit(Port), "\n"
            "After=network-online.target ", epmd_unit(Port), "\n\n"
            "[Service]\nType=notify\nWorkingDirectory=", escaped(Home), "\n",
            environment(Variables),
            "ExecStart=", command(Words ++ ["-start_epmd", "false", "-eval", ready()]), "\n"
            "UMask=0077\nRestart=on-failure\nTimeoutStartSec=120\n"
            "TimeoutStopSec=", integer_to_list(StopS), "\n"
            "LimitNOFILE=65536\n\n[Install]\nWantedBy=multi-user.target\n"],
    [{Host ++ "/weft-" ++ Node ++ ".service", Unit},
     {Host ++ "/nodes/" ++ Node ++ "/sys.config", Config}].

%% An epmd that a node starts ends with the unit of that node, and nobody finds the others any more.
%% This one has started when it answers. If there is one at the port already, it ends, and that one
%% answers.
epmd({Host, Environment}, #{epmd_port := Port}, #{erl := Erl}) ->
    Run = fun(Text) -> command(["/bin/sh", "-c", [weft_deploy_shell:epmd(Erl), Text]]) end,
    {Host ++ "/" ++ epmd_unit(Port),
     ["[Unit]\nDescription=epmd at port ", integer_to_list(Port), "\n"
      "Wants=network-online.target\nAfter=network-online.target\n\n[Service]\n",
      environment(Environment),
      "ExecStart=", Run("exec \"$epmd\""), "\n"
      "ExecStartPost=", Run("until \"$epmd\" -names > /dev/null 2>&1; do sleep 0.1; done"), "\n"
      "Restart=on-failure\n\n[Install]\nWantedBy=multi-user.target\n"]}.

%% That of the nodes of another deployment, if they have the same port.
epmd_unit(Port) -> lists:concat(["weft-epmd-", Port, ".service"]).

environment(Variables) ->
    [["Environment=", word([Key, $=, Value]), $\n] || {Key, Value} <- Variables].

command(Words) -> lists:join($\s, [word(Word) || Word <- Words]).

%% See systemd.service(5), "Command lines", and systemd.unit(5), "Specifiers".
word(Text) ->
    [$", [case C of
              $" -> "\\\"";
              $\\ -> "\\\\";
              $$ -> "$$";
              $% -> "%%";
              _ -> C
          end || C <- unicode:characters_to_list(Text)], $"].

escaped(Text) -> doubled(<<"%">>, Text).

%% Bytes are compared: for `string' an accent makes another character of the one before it.
doubled(Byte, Text) ->
    binary:replace(unicode:characters_to_binary(Text), Byte, <<Byte/binary, Byte/binary>>,
                   [global]).

%% @doc An expression that tells systemd that the node is ready (sd_notify(3)); it does nothing
%% where nobody wants to know. An address that begins with `@' is an abstract one.
-spec ready() -> string().
ready() ->
    "case os:getenv(\"NOTIFY_SOCKET\") of false -> ok; [C | Path] -> "
    "{ok, Socket} = gen_udp:open(0, [local]), "
    "ok = gen_udp:send(Socket, {local, [case C of 64 -> 0; _ -> C end | Path]}, 0, \"READY=1\"), "
    "gen_udp:close(Socket) end.".

%% --- ansible ------------------------------------------------------------------------------------

inventory(#{name := Name, families := Families, provider := Provider}, Desired) ->
    Variables = case Provider of
                    {ssh, #{user := User, port := Port}} ->
                        [{ansible_user, User} || User =/= ""] ++ [{ansible_port, Port}];
                    local -> [{ansible_connection, "local"}]
                end,
    Children = [{atom_to_list(Family),
                 {object, [{hosts, {object, family_hosts(Family, Desired)}}]}}
                || #{name := Family} <- Families],
    Deployment = {object, [{Name, {object, [{children, {object, Children}}]}}]},
    weft_deploy_yaml:encode({object, [{all, {object, [{vars, {object, Variables}},
                                                      {children, Deployment}]}}]}).

family_hosts(Family, Desired) ->
    Own = [Node || #{family := F} = Node <- Desired, F =:= Family],
    [{Host, {object, [{"weft_" ++ atom_to_list(Family),
                       {list, [Node || #{node := Node, host := At} <- Own, At =:= Host]}}]}}
     || Host <- lists:usort([Host || #{host := Host} <- Own])].

%% --- compose ------------------------------------------------------------------------------------

compose(#{name := Name, stop_s := StopS}, Desired) ->
    Services = [{Host, {object, service(Node, StopS)}} || #{host := Host} = Node <- Desired],
    Configs = [{Host, {object, [{file, "./" ++ Host ++ ".config"}]}} || #{host := Host} <- Desired],
    [{"compose.yaml",
      weft_deploy_yaml:encode(
        {object, [{name, string:lowercase(Name)}, {services, {object, Services}},
                  {configs, {object, Configs}},
                  {secrets, {object, [{cookie, {object, [{file, "./cookie"}]}}]}}]})}
     | [{Host ++ ".config", Config} || #{host := Host, config := Config} <- Desired]].

%% A dollar would begin a variable of compose.
service(#{host := Host, environment := Environment, words := Words}, StopS) ->
    Dollars = fun(Text) -> doubled(<<"$">>, Text) end,
    [{image, "${WEFT_IMAGE:?an image with Erlang, and a release in /opt/weft}"},
     {hostname, Host}, {init, true}, {restart, "unless-stopped"},
     {stop_grace_period, integer_to_list(StopS) ++ "s"},
     {environment, {object, Environment}},
     {configs, {list, [{object, [{source, Host}, {target, "/opt/weft/sys.config"}]}]}},
     {secrets, {list, ["cookie"]}},
     {entrypoint, {list, ["sh", "-c", Dollars(in_container("/run/secrets/cookie")), "sh"]}},
     {command, {list, [Dollars(Word) || Word <- Words]}}].

%% The cookie is where the node looks for it, and readable for it only. It is there already if the
%% container is started again.
in_container(Cookie) ->
    ["umask 077; export HOME=" ?HOME "; mkdir -p \"$HOME\"; cd /opt/weft; cp -f ", Cookie,
     " \"$HOME/.erlang.cookie\"; chmod 400 \"$HOME/.erlang.cookie\"; exec \"$@\""].

%% --- kustomize ----------------------------------------------------------------------------------

kustomize(#{name := Name, families := Families, epmd_port := Epmd, carrier := Carrier,
            stop_s := StopS}, Desired) ->
    Each = [{atom_to_list(Family), [Node || #{family := F} = Node <- Desired, F =:= Family]}
            || #{name := Family} <- Families],
    Present = [{Family, Nodes} || {Family, [_ | _] = Nodes} <- Each],
    Generated = [{object, [{name, Family ++ "-config"},
                           {files, {list, ["sys.config=" ++ Family ++ ".config"]}}]}
                 || {Family, _} <- Present],
    Secrets = [{object, [{name, Name ++ "-cookie"}, {files, {list, ["cookie"]}}]},
               {object, [{name, Name ++ "-tls"}, {type, "kubernetes.io/tls"},
                         {files, {list, ["tls.crt", "tls.key", "ca.crt"]}}]}],
    [{"kustomization.yaml",
      weft_deploy_yaml:encode(
        {object, [{apiVersion, "kustomize.config.k8s.io/v1beta1"}, {kind, "Kustomization"},
                  {resources, {list, [Family ++ ".yaml" || {Family, _} <- Present]}},
                  {configMapGenerator, {list, Generated}},
                  {secretGenerator, {list, Secrets}}]})}
     | lists:append([[{Family ++ ".yaml",
                       [weft_deploy_yaml:encode(headless(Family, Name, Epmd)), "---\n",
                        weft_deploy_yaml:encode(set(Family, Name, {length(Nodes), StopS},
                                                    container(Family, Carrier, Node)))]},
                      {Family ++ ".config", Config}]
                     || {Family, [#{config := Config} = Node | _] = Nodes} <- Present])].

labels(Family, Name) -> {object, [{app, Name}, {family, Family}]}.

%% Nodes find each other before they are ready.
headless(Family, Name, Epmd) ->
    {object, [{apiVersion, "v1"}, {kind, "Service"},
              {metadata, {object, [{name, Family}, {labels, labels(Family, Name)}]}},
              {spec, {object, [{clusterIP, "None"}, {publishNotReadyAddresses, true},
                               {selector, labels(Family, Name)},
                               {ports, {list, [{object, [{name, "epmd"}, {port, Epmd}]}]}}]}}]}.

%% All but the name is the same for each node of a family; the name comes from that of the pod.
container(Family, Carrier, #{environment := Environment, words := Words, node := Node}) ->
    Own = lists:concat(["rm -f " ?READY "; set -- \"$@\" -name \"", Family,
                        "$((${HOSTNAME##*-} + 1))@$HOSTNAME.", Family, "\"; "]),
    Others = [Word || Word <- Words, Word =/= Node, Word =/= "-name", Word =/= "-sname"],
    Probe = {object, [{exec, {object, [{command, {list, ["test", "-e", ?READY]}}]}},
                      {periodSeconds, 5}]},
    {object, [{name, "node"}, {image, "weft"},
              {command, {list, ["sh", "-c", [Own, in_container("/run/cookie/cookie")], "sh"]}},
              {args, {list, Others ++ ["-eval", linked(Carrier, ?READY)]}},
              {env, {list, [variable(Key, Value) || {Key, Value} <- Environment]}},
              {readinessProbe, Probe},
              {volumeMounts, {list, [mount("config", "/opt/weft/sys.config", "sys.config"),
                                     mount("cookie", "/run/cookie", none),
                                     mount("tls", "/run/tls", none)]}}]}.

%% @doc An expression that makes a file when the node has a link to each of its neighbours. After a
%% minute one link is enough, as others may be down for long. It is evaluated when the applications
%% run. The file stays: a node that loses links later is not taken out of service for that.
-spec linked(Carrier :: weft | stock, File :: string()) -> string().
linked(stock, File) ->
    "ok = file:write_file(\"" ++ File ++ "\", <<>>).";
linked(weft, File) ->
    "spawn(fun() -> (fun Wait(Seconds) -> Wanted = weft_links:all_wanted(), "
    "Up = [Node || Node <- Wanted, weft_links:up(Node)], "
    "case length(Up) =:= length(Wanted) orelse Up =/= [] andalso Seconds > 60 of "
    "true -> ok = file:write_file(\"" ++ File ++ "\", <<>>); "
    "false -> timer:sleep(1000), Wait(Seconds + 1) end end)(0) end).".

%% The next pod follows some seconds after a new one is ready: links that are not asked for before
%% others are up come meanwhile. A pod that ends has some time more than its node. Secrets belong to
%% a group that the processes of the pod have beside their own one, so that the image may have any
%% user.
set(Family, Name, {Replicas, StopS}, Container) ->
    Volumes = [{object, [{name, "config"}, {configMap, {object, [{name, Family ++ "-config"}]}}]},
               secret("cookie", Name ++ "-cookie"), secret("tls", Name ++ "-tls")],
    Pod = {object, [{terminationGracePeriodSeconds, StopS + ?POD_ENDS_S},
                    {securityContext, {object, [{fsGroup, ?SECRETS_GROUP}]}},
                    {containers, {list, [Container]}}, {volumes, {list, Volumes}}]},
    {object, [{apiVersion, "apps/v1"}, {kind, "StatefulSet"},
              {metadata, {object, [{name, Family}, {labels, labels(Family, Name)}]}},
              {spec, {object,
                      [{serviceName, Family}, {replicas, Replicas}, {minReadySeconds, 10},
                       {podManagementPolicy, "Parallel"},
                       {selector, {object, [{matchLabels, labels(Family, Name)}]}},
                       {template,
                        {object, [{metadata, {object, [{labels, labels(Family, Name)}]}},
                                  {spec, Pod}]}}]}}]}.

secret(Volume, Name) ->
    {object, [{name, Volume}, {secret, {object, [{secretName, Name}, {defaultMode, 8#440}]}}]}.

variable(Name, Value) -> {object, [{name, Name}, {value, Value}]}.

mount(Name, Path, none) -> {object, [{name, Name}, {mountPath, Path}, {readOnly, true}]};
mount(Name, Path, Part) ->
    {object, [{name, Name}, {mountPath, Path}, {subPath, Part}, {readOnly, true}]}.
