%% SPDX-License-Identifier: Apache-2.0
%% @doc The hosts of a deployment, for a load on them (`weft_load_hosts'): which of its nodes run,
%% and emulators beside them that can reach these. What hosts get, and how they are left, is in
%% `weft_papers_hosts'.
%%
%% An emulator has the cookie and the carrier of the deployment, and the code of the benchmark. That
%% of the release is behind it, if there is one on the host.
-module(weft_papers_load_hosts).

-export([open/3]).

-define(ROOT, ".weft").
-define(COOKIE_MAX, 250).

%% @doc Opens all hosts, or those named. The error is a text.
-spec open(File :: string(), all | [string()], weft_load_config:config()) ->
          {ok, weft_load_hosts:place(), Close :: fun(() -> ok)} | {error, string()}.
open(File, Wanted, Config) ->
    case weft_deploy_session:read(File, ?ROOT) of
        {ok, #{spec := #{hosts := Hosts, provider := Provider}} = Read} ->
            Known = [Host || #{host := Host} <- Hosts],
            case {chosen(Wanted, Known), weft_deploy_host:can_command(Provider)} of
                {{ok, Chosen}, ok} -> looked_at(Read, Chosen, Config);
                {{unknown, Host}, _} -> {error, text("~ts: host ~ts is not among its hosts: ~ts",
                                                     [File, Host, lists:join(", ", Known)])};
                {_, {error, Text}} -> {error, Text}
            end;
        {error, _Kind, Text} ->
            {error, Text}
    end.

chosen(all, Known) -> {ok, Known};
chosen(Wanted, Known) ->
    Once = lists:usort(Wanted),
    case Once -- Known of
        [] -> {ok, Once};
        [Host | _] -> {unknown, Host}
    end.

%% From here on an interrupt leaves nothing on the hosts.
looked_at(Read, Chosen, Config) ->
    case weft_deploy_session:open(Read, unlocked, nothing, fun(_Line) -> ok end) of
        {ok, Session} ->
            Close = fun() -> close(Chosen, Session) end,
            try
                Running = running(Session),
                ok = weft_bench_interrupt:afterwards(hosts, Close),
                {ok, place(Chosen, Running, Config, Session), Close}
            catch
                throw:{load, Text} ->
                    ok = weft_deploy_session:close(Session),
                    {error, lists:flatten(Text)}
            end;
        {error, _Kind, Text} ->
            {error, Text}
    end.

%% The nodes that run on each host.
running(#{seen := Seen, dir := Dir, spec := #{name := Name}}) ->
    [fail("~ts: ~ts", [Host, Text]) || {Host, {error, Text}} <- maps:to_list(Seen)],
    Running = maps:map(fun(_Host, {ok, #{nodes := Nodes}}) ->
                           maps:filter(fun(_Node, #{up := IsUp}) -> IsUp end, Nodes)
                       end, Seen),
    lists:all(fun(Nodes) -> map_size(Nodes) =:= 0 end, maps:values(Running))
        andalso fail("no node of ~ts runs in ~ts on ~ts; start them: weft deploy apply",
                     [Name, Dir, lists:join(", ", maps:keys(Running))]),
    Running.

%% Hosts are prepared one beside the other. If one can not be, none keeps anything.
place(Chosen, Running, #{source_dir := Source} = Config,
      #{dir := Dir, erl := Erl, spec := #{name := Name}} = Session) ->
    #{paths := Paths, tarball := Tarball, source := There} =
        weft_papers_hosts:code(#{beams => beams(Config), source => Source}),
    Own = weft_papers_hosts:dir(Dir),
    Content = #{dir => Own, code => Tarball, cookie => cookie(Running, Session), erl => Erl},
    Prepared = weft_deploy_session:on(Chosen, fun(_Host, Connection) ->
                                                  weft_papers_hosts:prepare(Connection, Content)
                                              end, Session),
    Failed = [{Host, Text} || {Host, {error, Text}} <- Prepared],
    _ = [left(Host, Session) || Failed =/= [], {Host, ok} <- Prepared],
    [fail("~ts: ~ts", [Host, Text]) || {Host, Text} <- Failed],
    Unique = lists:concat(["weft_load_", os:getpid(), "-", erlang:unique_integer([positive])]),
    #{deployment => Name,
      nodes => lists:sort([Node || Nodes <- maps:values(Running), Node <- names(Nodes)]),
      source_dir => case There of undefined -> undefined; _ -> filename:join(Own, There) end,
      hosts => [host(Host, map_get(Host, Running), {Unique, Paths}, Session) || Host <- Chosen]}.

names(Nodes) -> [list_to_atom(Node) || Node <- maps:keys(Nodes)].

%% Those that the configuration names, as `weft_load_modules' finds them.
beams(#{code_paths := Paths}) ->
    [filename:absname(Dir) || Path <- Paths, is_list(Path),
                              Dir <- [Path, filename:join(Path, "ebin")], filelib:is_dir(Dir)].

%% That of the nodes that run, wherever they were started from.
cookie(Running, #{dir := Dir} = Session) ->
    [Host | _] = [Host || {Host, Nodes} <- maps:to_list(Running), map_size(Nodes) > 0],
    Script = ["cat ", weft_deploy_shell:quote(Dir ++ "/.erlang.cookie"), $\n],
    {ok, Connection} = weft_deploy_session:connection(Host, Session),
    case weft_deploy_host:script(Connection, Script) of
        {ok, Cookie} when byte_size(Cookie) > 0, byte_size(Cookie) =< ?COOKIE_MAX -> Cookie;
        {ok, _} -> fail("~ts: ~ts/.erlang.cookie is no cookie", [Host, Dir]);
        {error, Text} -> fail("~ts: ~ts", [Host, Text])
    end.

host(Host, Nodes, {Unique, Paths}, #{dir := Dir, erl := Erl, spec := Spec}) ->
    #{provider := Provider, epmd_port := Port, carrier := Carrier} = Spec,
    Own = weft_papers_hosts:dir(Dir),
    Release = [{"ERL_LIBS", filename:join([Dir, "releases", Version, "lib"])}
               || Version <- lists:sublist(versions(Nodes), 1)],
    #{address => Host, erl => Erl, code => [filename:join(Own, Path) || Path <- Paths],
      arguments => carrier(Carrier)
          ++ ["-start_epmd", "false", "-connect_all", "false",
              "-kernel", "prevent_overlapping_partitions", "false"],
      results => filename:join(Own, "results"),
      command => weft_deploy_host:on(Provider, Host, Own,
                                     [{"ERL_EPMD_PORT", integer_to_list(Port)} | Release]),
      join => {weft_deploy_control, join,
               [weft_deploy_ask:named(Unique, Host, #{dir => Dir, nodes => names(Nodes)})]}}.

carrier(weft) -> ["-proto_dist", "weft"];
carrier(stock) -> [].

versions(Nodes) ->
    lists:usort([weft_deploy_nodes:version(Id) || #{id := Id} <- maps:values(Nodes)]).

%% --- the end --------------------------------------------------------------------------------

close(Chosen, Session) ->
    lists:foreach(fun(Host) -> left(Host, Session) end, Chosen),
    weft_deploy_session:close(Session).

%% A host that is lost keeps the directory until the next run there. Emulators have used no epmd.
left(Host, #{dir := Dir} = Session) ->
    Own = weft_papers_hosts:dir(Dir),
    {ok, Connection} = weft_deploy_session:connection(Host, Session),
    case weft_papers_hosts:close(Connection, Own, none) of
        ok -> ok;
        {error, Text} ->
            io:format(standard_error, "~ts: ~ts may still be there: ~ts~n", [Host, Own, Text])
    end.

-spec fail(io:format(), [term()]) -> no_return().
fail(Format, Arguments) -> throw({load, text(Format, Arguments)}).

text(Format, Arguments) -> lists:flatten(io_lib:format(Format, Arguments)).
