%% SPDX-License-Identifier: Apache-2.0
%% @doc What a deployment file says, checked before any host is asked. Pure.
%%
%% The file has Erlang terms (docs/guide/deploy.md): `{name, shop}.', `{provider, local}.',
%% `{hosts, [...]}.' and for each family of nodes `{family, web, #{count => 3}}.'. Each error says
%% what is wrong, where, and what could stand there.
-module(weft_deploy_spec).

-export([new/1, counts/2]).
-export_type([spec/0, family/0, host/0, provider/0]).

-define(NODES_MAX, 10000).
-define(HOSTS_MAX, 1000).

-type host() :: #{host := string(), cores := pos_integer() | observed}.
-type provider() :: local | {ssh, #{user => string(), keys := string(),
                                    port := inet:port_number()}}.
-type family() :: #{name := atom(), count := non_neg_integer(), hosts := [string()] | all,
                    release := string() | none, paths := [string()], version := string() | derived,
                    flags := [string()], settings := [{atom(), term()}],
                    env := [{atom(), [{atom(), term()}]}], groups := [atom()], start := [atom()],
                    health := mfa() | none}.
-type spec() :: #{name := string(), provider := provider(), hosts := [host(), ...],
                  dir := string() | default, cookie_file := string() | default,
                  epmd_port := inet:port_number(), erl := string() | default,
                  parallel := pos_integer(), healthy_s := pos_integer(), stable_s := number(),
                  drain_s := pos_integer(), stop_s := pos_integer(),
                  keep_releases := non_neg_integer(),
                  topology := term(), carrier := weft | stock,
                  families := [family()]}.

%% @doc Checks and completes what file:consult/1 has read.
-spec new([term()]) -> {ok, spec()} | {error, string()}.
new(Terms) ->
    try {ok, spec(Terms)}
    catch throw:{bad_deployment, Text} ->
            {error, weft_deploy_secrets:hide(lists:flatten(Text), weft_deploy_secrets:in(Terms))}
    end.

spec(Terms) ->
    [known(Term) || Term <- Terms],
    Plain = [Term || {_, _} = Term <- Terms],
    [bad("~ts is there twice: leave one", [Key]) || Key <- twice([Key || {Key, _} <- Plain])],
    Given = maps:from_list(Plain),
    [bad("~ts is missing: write {~ts, ~ts}.", [Key, Key, Example])
     || {Key, Example} <- [{name, "shop"}], not is_map_key(Key, Given)],
    Spec = maps:map(fun(Key, {Default, _}) -> value(Key, maps:get(Key, Given, Default)) end,
                    keys()),
    Families = [family(Name, Map) || {family, Name, Map} <- Terms],
    Families =:= [] andalso bad("there is no family of nodes: write {family, web, #{count => 1}}.",
                                []),
    [bad("family ~ts is there twice: give one another name", [Name])
     || Name <- twice([Name || #{name := Name} <- Families])],
    whole(Spec#{families => Families}).

known({family, Name, Map}) when is_atom(Name), is_map(Map) -> ok;
known({family, _, _} = Term) ->
    bad("~0tp: write {family, Name, #{count => N, ...}} with a name such as web", [Term]);
known({Key, _}) when is_atom(Key) ->
    is_map_key(Key, keys()) orelse bad("~0tp is no setting of a deployment; there are ~ts, family",
                                       [Key, words(maps:keys(keys()))]);
known(Term) ->
    bad("~0tp: write {Key, Value}. or {family, Name, #{...}}.", [Term]).

twice(Names) -> lists:usort(Names -- lists:usort(Names)).

%% The default of each key, and what may stand there.
keys() ->
    #{name => {none, "a name of letters, digits, - and _"},
      provider => {local, "local, or {ssh, #{keys => \"DIR\"}} with user and port if need be"},
      hosts => {default, "a list of \"HOST\" or {\"HOST\", #{cores => N}}"},
      dir => {default, "an absolute directory, in a string"},
      cookie_file => {default, "the name of a file, in a string"},
      epmd_port => {4369, "a port"},
      erl => {default, "the name of a program, in a string"},
      parallel => {8, "a number from 1 to 100"},
      healthy_s => {60, "seconds, from 1 to 3600"},
      stable_s => {1, "seconds, from 0 to 3600"},
      drain_s => {60, "seconds, from 1 to 3600"},
      stop_s => {30, "seconds, from 1 to 3600"},
      keep_releases => {3, "a number from 0 to 1000"},
      topology => {default, "full_mesh, groups, none, or a topology of weft"},
      carrier => {weft, "weft or stock"}}.

value(Key, Value) ->
    case check(Key, Value) of
        {ok, Checked} -> Checked;
        error ->
            #{Key := {_, Expected}} = keys(),
            bad("~ts is ~0tp: write ~ts", [Key, Value, Expected])
    end.

check(name, Name) when is_atom(Name) -> check(name, atom_to_list(Name));
check(name, Name) -> is_name(Name, Name);
check(provider, local) -> {ok, local};
check(provider, {ssh, #{keys := Keys} = Options}) ->
    User = maps:get(user, Options, ""),
    Port = maps:get(port, Options, 22),
    case is_text(Keys) andalso (User =:= "" orelse is_text(User)) andalso is_port_number(Port)
        andalso maps:keys(Options) -- [keys, user, port] =:= [] of
        true -> {ok, {ssh, #{keys => Keys, user => User, port => Port}}};
        false -> error
    end;
check(hosts, default) -> {ok, default};
check(hosts, [_ | _] = Hosts) when length(Hosts) =< ?HOSTS_MAX ->
    {ok, [host(Host) || Host <- Hosts]};
check(dir, "/" ++ _ = Dir) ->
    case is_text(Dir) andalso length(Dir) > 1 of true -> {ok, Dir}; false -> error end;
check(Key, default) when Key =:= dir; Key =:= cookie_file; Key =:= erl; Key =:= topology ->
    {ok, default};
check(Key, Text) when Key =:= cookie_file; Key =:= erl ->
    case is_text(Text) of true -> {ok, Text}; false -> error end;
check(epmd_port, Port) -> within(is_port_number(Port), Port);
check(parallel, N) -> within(is_integer(N) andalso N >= 1 andalso N =< 100, N);
check(stable_s, N) -> within(is_number(N) andalso N >= 0 andalso N =< 3600, N);
check(Key, N) when Key =:= healthy_s; Key =:= drain_s; Key =:= stop_s ->
    within(is_integer(N) andalso N >= 1 andalso N =< 3600, N);
check(keep_releases, N) -> within(is_integer(N) andalso N >= 0 andalso N =< 1000, N);
check(carrier, Carrier) -> within(lists:member(Carrier, [weft, stock]), Carrier);
check(topology, Topology) -> {ok, Topology};
check(_Key, _Value) -> error.

within(true, Value) -> {ok, Value};
within(false, _Value) -> error.

is_port_number(Port) -> is_integer(Port) andalso Port > 0 andalso Port < 65536.

%% No zero byte or end of line belongs to a name of anything.
is_text(Text) ->
    io_lib:printable_unicode_list(Text) andalso Text =/= "" andalso Text -- "\n\r\t" =:= Text.

is_name(Text, Value) ->
    within(is_list(Text) andalso io_lib:printable_latin1_list(Text)
               andalso re:run(Text, "^[A-Za-z][A-Za-z0-9_-]{0,62}$",
                              [{capture, none}, dollar_endonly]) =:= match, Value).

host({Host, #{cores := Cores} = Options})
  when is_integer(Cores), Cores > 0, map_size(Options) =:= 1 ->
    #{host => host_name(Host), cores => Cores};
host(Host) when is_list(Host) ->
    #{host => host_name(Host), cores => observed};
host(Other) ->
    bad("host ~0tp: write \"HOST\" or {\"HOST\", #{cores => N}}", [Other]).

%% It becomes part of a node name.
host_name(Host) ->
    case io_lib:printable_latin1_list(Host)
        andalso re:run(Host, "^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$",
                       [{capture, none}, dollar_endonly]) of
        match -> Host;
        _ -> bad("host ~0tp: write the name or the IPv4 address of a host", [Host])
    end.

%% --- families -----------------------------------------------------------------------------------

family(Name, Given) ->
    {ok, _} = case is_name(atom_to_list(Name), Name) of
                  error -> bad("family ~0tp: write a name of letters, digits, - and _", [Name]);
                  Ok -> Ok
              end,
    case maps:keys(maps:without(maps:keys(family_keys()), Given)) of
        [] -> ok;
        [Other | _] -> bad("family ~ts: ~0tp is no setting of a family; there are ~ts",
                           [Name, Other, words(maps:keys(family_keys()))])
    end,
    Checked = maps:map(fun(Key, {Default, Expected}) ->
                           Value = maps:get(Key, Given, Default),
                           is_family_value(Key, Value)
                               orelse bad("family ~ts: ~ts is ~0tp: write ~ts",
                                          [Name, Key, Value, Expected]),
                           Value
                       end, family_keys()),
    #{weft := Settings} = Checked,
    case weft_config:check(Settings) of
        ok -> ok;
        {error, Text} -> bad("family ~ts: ~ts", [Name, Text])
    end,
    (maps:remove(weft, Checked))#{name => Name, settings => Settings}.

family_keys() ->
    #{count => {1, "a number of nodes from 0"},
      hosts => {all, "a list of hosts that are among those of the deployment"},
      release => {none, "the name of a tarball (.tar.gz)"},
      paths => {[], "a list of directories that have compiled code"},
      version => {derived, "letters, digits, . - and _, in a string"},
      flags => {[], "a list of strings, a word each, such as [\"+S\", \"2:2\"]. What names the "
                    "node, its cookie and its carrier is not among them"},
      weft => {[], "a list of {Setting, Value} of weft; topology stands outside of families"},
      env => {[], "a list of {Application, [{Key, Value}]}"},
      groups => {[], "a list of names of groups"},
      start => {[], "a list of applications"},
      health => {none, "{Module, Function, Arguments}, which returns true or ok on a healthy "
                       "node"}}.

is_family_value(count, Count) -> is_integer(Count) andalso Count >= 0 andalso Count =< ?NODES_MAX;
is_family_value(hosts, all) -> true;
is_family_value(hosts, Hosts) ->
    is_list_of(fun io_lib:printable_unicode_list/1, Hosts) andalso Hosts =/= [];
is_family_value(release, none) -> true;
is_family_value(release, File) -> is_list(File) andalso is_text(File);
is_family_value(paths, Dirs) -> is_list_of(fun(D) -> is_list(D) andalso is_text(D) end, Dirs);
is_family_value(version, derived) -> true;
is_family_value(version, Version) ->
    is_list(Version) andalso io_lib:printable_latin1_list(Version)
        andalso re:run(Version, "^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$",
                       [{capture, none}, dollar_endonly]) =:= match;
is_family_value(flags, Flags) ->
    Reserved = ["-name", "-sname", "-setcookie", "-proto_dist", "-weft_deploy", "-detached",
                "-config", "-epmd_port", "-start_epmd", "-noinput", "-noshell"],
    is_list_of(fun(F) -> is_list(F) andalso is_text(F) end, Flags)
        andalso Flags -- Reserved =:= Flags;
is_family_value(weft, Settings) ->
    is_list_of(fun({Key, _}) -> is_atom(Key) andalso Key =/= topology; (_) -> false end, Settings);
is_family_value(env, Env) ->
    is_list_of(fun({App, Keys}) ->
                       is_atom(App) andalso App =/= weft
                           andalso is_list_of(fun({K, _}) -> is_atom(K); (_) -> false end, Keys);
                  (_) -> false
               end, Env);
is_family_value(Key, Names) when Key =:= groups; Key =:= start ->
    is_list_of(fun is_atom/1, Names) andalso length(lists:usort(Names)) =:= length(Names);
is_family_value(health, none) -> true;
is_family_value(health, {M, F, A}) -> is_atom(M) andalso is_atom(F) andalso is_list(A);
is_family_value(health, _) -> false.

is_list_of(Is, List) when length(List) >= 0 -> lists:all(Is, List);
is_list_of(_, _) -> false. % an improper list, too

%% --- what has to fit together -------------------------------------------------------------------

whole(#{hosts := default, provider := {ssh, _}}) ->
    bad("provider ssh needs hosts: write {hosts, [\"HOST\", ...]}.", []);
whole(#{hosts := default} = Spec) ->
    whole(Spec#{hosts := [#{host => "127.0.0.1", cores => observed}]});
whole(#{provider := {ssh, _}, dir := default}) ->
    bad("provider ssh needs dir, a directory of the deployment's own on each host: "
        "write {dir, \"/var/lib/weft\"}.", []);
whole(#{provider := local, hosts := [_, _ | _]}) ->
    bad("provider local has one host, this one: leave the others out, or write "
        "{provider, {ssh, #{keys => \"DIR\"}}}.", []);
whole(#{hosts := Hosts, families := Families} = Spec0) ->
    Names = [Host || #{host := Host} <- Hosts],
    [bad("host ~ts is there twice: leave one", [Host]) || Host <- twice(Names)],
    [bad("family ~ts: host ~ts is not among the hosts: ~ts",
         [Name, hd(Own -- Names), lists:join(", ", Names)])
     || #{name := Name, hosts := Own} <- Families, Own =/= all, Own -- Names =/= []],
    [bad("family ~ts has both release and paths: leave one", [Name])
     || #{name := Name, release := Release, paths := [_ | _]} <- Families, Release =/= none],
    Total = lists:sum([Count || #{count := Count} <- Families]),
    Total > ?NODES_MAX andalso bad("these are ~b nodes, there may be ~b", [Total, ?NODES_MAX]),
    topology(releases_differ(names_differ(Spec0))).

%% web1 and 1 nodes of web, 1 of web1: their nodes would have the same names.
names_differ(#{families := Families} = Spec) ->
    Names = [atom_to_list(Name) || #{name := Name} <- Families],
    [bad("families ~ts and ~ts: nodes of the first would be named like the second; "
         "do not end a name in digits after the name of another family", [A, B])
     || A <- Names, B <- Names, A =/= B, lists:prefix(A, B),
        re:run(lists:nthtail(length(A), B), "^[0-9]*$", [{capture, none}]) =:= match],
    Spec.

%% a with version b-1, a-b with version 1: what is uploaded for them would have the same name, and
%% nodes of one would be made of the release of the other.
releases_differ(#{families := Families} = Spec) ->
    Given = [{weft_deploy_artifact:named(Name, Version), Name}
             || #{name := Name, version := Version} <- Families, Version =/= derived],
    [bad("families ~ts and ~ts: with these versions the releases of both are named ~ts; give one "
         "another version", [A, B, Release])
     || {Release, A} <- Given, {Release_, B} <- Given, Release =:= Release_, A < B],
    Spec.

topology(#{carrier := stock, topology := Topology} = Spec) ->
    Topology =:= default orelse Topology =:= none
        orelse bad("carrier stock has no topology of weft: leave it out", []),
    Spec#{topology := none};
topology(#{topology := default, families := Families} = Spec) ->
    Spec#{topology := case lists:all(fun(#{groups := Groups}) -> Groups =:= [] end, Families) of
                          true -> full_mesh;
                          false -> groups
                      end};
topology(#{topology := groups, families := Families} = Spec) ->
    [bad("topology groups: family ~ts has no groups: write groups => [a]", [Name])
     || #{name := Name, groups := []} <- Families],
    Spec;
topology(#{topology := Topology, families := Families} = Spec) ->
    [bad("family ~ts has groups, but the topology is ~0tp: write {topology, groups}",
         [Name, Topology]) || #{name := Name, groups := [_ | _]} <- Families],
    lists:member(Topology, [none, full_mesh])
        orelse element(1, weft_topology:parse(Topology)) =:= ok
        orelse bad("topology is ~0tp: write ~ts",
                   [Topology, element(2, maps:get(topology, keys()))]),
    Spec.

%% @doc The number of nodes of each family, with those that `scale' has changed since the file had
%% that number.
-spec counts(spec(), #{atom() => {InFile :: non_neg_integer(), Scaled :: non_neg_integer()}}) ->
          #{atom() => non_neg_integer()}.
counts(#{families := Families}, Scaled) ->
    maps:from_list([{Name, case Scaled of
                               #{Name := {Count, Other}} -> Other;
                               #{} -> Count
                           end} || #{name := Name, count := Count} <- Families]).

words(Atoms) -> lists:join(", ", [atom_to_list(Atom) || Atom <- lists:sort(Atoms)]).

-spec bad(io:format(), [term()]) -> no_return().
bad(Format, Args) -> throw({bad_deployment, io_lib:format(Format, Args)}).
