%% SPDX-License-Identifier: Apache-2.0
%% @doc The nodes of a deployment, called from here as long as a command goes on, however they are
%% reached: on each host of nodes an emulator runs that is a node beside them
%% (`weft_deploy_control:join/1'), and is ruled by its input and output. So nodes may use TLS, and
%% refuse nodes without weft, and neither their cookie nor their ports are needed here.
%%
%% Nothing is written on hosts. An emulator ends when this one does, or when its host is lost. It
%% is not started again: from then on the host is `lost'.
-module(weft_deploy_reach).

-export([open/1, close/1, info/1, lost/1, call/6, beside/5]).
-export_type([reach/0, lost/0]).

%% By host: the peer that runs there, or why there is none. `where': the host of each node that is
%% there, or is remembered to be on a host that is not reached.
-type reach() :: #{name := string(), dir := string(), topology := term(),
                   where := #{node() => Host :: string()},
                   emulators := #{Host :: string() => {ok, pid()} | {error, string()}}}.
-type lost() :: [{Host :: string(), Why :: string()}].

-define(BOOT_MS, 60000).
-define(CALL_MS, 30000).
-define(PING_MS, 5000).
%% Beyond the time that a call has by itself.
-define(GRACE_MS, 2000).

%% @doc Starts the emulators. `none': nothing runs, and no host is lost; the text says so. An error
%% is a text. Some hosts may be lost, but not all that have nodes.
-spec open(weft_deploy_session:session()) ->
          {ok, reach()} | {none, string()} | {error, string()}.
open(#{spec := #{name := Name, carrier := stock}}) ->
    {error, lists:concat(["the nodes of ", Name, " have no weft, {carrier, stock}: look at them "
                          "with the tools of OTP"])};
open(#{spec := #{name := Name, provider := Provider} = Spec, seen := Seen, dir := Dir} = Session) ->
    Up = [Node || {_, {ok, #{nodes := Nodes}}} <- maps:to_list(Seen),
                  {Node, #{up := true}} <- maps:to_list(Nodes)],
    Lost = [{Host, Why} || {Host, {error, Why}} <- lists:sort(maps:to_list(Seen))],
    case {Up, Lost, weft_deploy_host:can_command(Provider)} of
        {[], [], _} -> {none, nothing_runs(Spec, Dir)};
        {[], _, _} -> {error, text(Lost) ++ "; no node of " ++ Name ++ " is seen elsewhere"};
        {_, _, {error, Text}} -> {error, Text};
        {_, _, ok} -> with_some(started(Session))
    end.

nothing_runs(#{name := Name, hosts := Hosts}, Dir) ->
    lists:append(["no node of ", Name, " runs in ", Dir, " on ",
                  lists:append(lists:join(", ", [Host || #{host := Host} <- Hosts])),
                  "; start them: weft deploy apply"]).

text(Lost) -> lists:append(lists:join("; ", [Host ++ ": " ++ Why || {Host, Why} <- Lost])).

started(#{spec := #{name := Name} = Spec, seen := Seen, dir := Dir} = Session) ->
    Where = where(Session),
    Hosts = [Host || Host <- lists:usort(maps:values(Where)), {ok, _} <- [maps:get(Host, Seen)]],
    Started = weft_deploy_session:on(Hosts, fun(Host, _Connection) -> emulator(Host, Session) end,
                                     Session),
    Lost = [{Host, Result} || {Host, {error, _} = Result} <- maps:to_list(Seen)],
    #{name => Name, dir => Dir, topology => topology(Spec), where => Where,
      emulators => maps:from_list(Started ++ Lost)}.

%% One that shall be there, and is not, is no node of the deployment yet.
where(#{seen := Seen} = Session) ->
    maps:from_list([{list_to_atom(Node), Host}
                    || #{node := Node, host := Host, state := State}
                           <- weft_deploy_text:rows(weft_deploy_session:desired(Session), Seen),
                       State =/= missing]).

with_some(#{emulators := Emulators} = Reach) ->
    case [Peer || {ok, Peer} <- maps:values(Emulators)] of
        [] -> {error, text([{Host, Why} || {Host, {error, Why}} <- lists:sort(
                                                                     maps:to_list(Emulators))])};
        _ -> {ok, Reach}
    end.

%% What `weft up' would call it.
topology(#{topology := none}) -> undefined;
topology(#{topology := groups, families := Families}) ->
    Groups = lists:append([Groups || #{groups := Groups} <- Families]),
    {groups, maps:from_list([{Group, []} || Group <- Groups])};
topology(#{topology := Topology}) -> Topology.

%% --- an emulator ---------------------------------------------------------------------------------

%% What it says beside its answers, such as what the shell of a user says, is no answer.
emulator(Host, #{seen := Seen, dir := Dir, erl := Erl, spec := Spec} = Session) ->
    #{provider := Provider, epmd_port := Port} = Spec,
    #{Host := {ok, #{nodes := Nodes}}} = Seen,
    [Version | _] = lists:usort([weft_deploy_nodes:version(Id)
                                 || #{id := Id} <- maps:values(Nodes)]),
    Command = weft_deploy_host:on(Provider, Host, Dir,
                                  [{"ERL_EPMD_PORT", integer_to_list(Port)},
                                   {"ERL_LIBS", filename:join([Dir, "releases", Version, "lib"])}]),
    true = group_leader(whereis(standard_error), self()),
    try peer:start(#{connection => standard_io, wait_boot => ?BOOT_MS, exec => Command([Erl]),
                     args => arguments()}) of
        {ok, Peer} -> joined(Peer, Host, maps:keys(Nodes), Session);
        {ok, Peer, _NoName} -> joined(Peer, Host, maps:keys(Nodes), Session);
        {error, Reason} -> {error, not_started(Reason)}
    catch
        exit:Reason -> {error, not_started(Reason)}
    end.

arguments() ->
    ["-proto_dist", "weft", "-start_epmd", "false", "-connect_all", "false",
     "-kernel", "prevent_overlapping_partitions", "false", "-kernel", "logger_level", "none",
     "+S", "1:1", "+A", "1", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"].

not_started({boot_failed, {exit_status, Status}}) ->
    lists:concat(["no emulator starts there: it ends with status ", Status]);
not_started(timeout) ->
    lists:concat(["no emulator starts there within ", ?BOOT_MS div 1000, " s"]);
not_started(Reason) ->
    lists:flatten(io_lib:format("no emulator starts there: ~0tP", [Reason, 20])).

%% Its name is one that no other command has.
joined(Peer, Host, Nodes, #{dir := Dir}) ->
    {Module, Code, File} = code:get_object_code(weft_deploy_control),
    Name = lists:concat(["weft_look_", os:getpid(), "-", erlang:unique_integer([positive])]),
    Request = weft_deploy_ask:named(Name, Host, #{dir => Dir, nodes => [list_to_atom(Node)
                                                                        || Node <- Nodes]}),
    Joined = try
                 case peer:call(Peer, code, load_binary, [Module, File, Code], ?CALL_MS) of
                     {module, Module} -> peer:call(Peer, Module, join, [Request], ?CALL_MS);
                     {error, _} -> {error, "its Erlang does not take the code of this command, "
                                    "which is for OTP " ++ erlang:system_info(otp_release)
                                    ++ " and later"}
                 end
             catch
                 Class:Reason -> {error, not_started({Class, Reason})}
             end,
    case Joined of
        ok -> {ok, Peer};
        {error, Text} -> ended(Peer), {error, Text}
    end.

%% Each node that it had a link to would tell all others that it may have ended, and dial it.
ended(Peer) ->
    _ = try peer:call(Peer, net_kernel, stop, [], ?PING_MS) catch _:_ -> gone end,
    try peer:stop(Peer) catch exit:_ -> ok end.

%% @doc Ends the emulators.
-spec close(reach()) -> ok.
close(#{emulators := Emulators}) ->
    Peers = [Peer || {ok, Peer} <- maps:values(Emulators)],
    _ = weft_deploy_parallel:map(max(1, length(Peers)), fun ended/1, Peers),
    ok.

%% --- while it goes on ----------------------------------------------------------------------------

%% @doc What is known of the deployment: its nodes, those of lost hosts among them.
-spec info(reach()) -> #{name := string(), dir := string(), topology := term(), nodes := [node()]}.
info(#{where := Where} = Reach) ->
    (maps:with([name, dir, topology], Reach))#{nodes => lists:sort(maps:keys(Where))}.

%% @doc The hosts that can not be reached now, and the nodes there, of which nothing is known.
-spec lost(reach()) -> {lost(), [node()]}.
lost(#{where := Where, emulators := Emulators}) ->
    All = lists:sort(maps:to_list(Emulators)),
    Answers = weft_deploy_parallel:map(length(All), fun({_Host, Emulator}) -> answers(Emulator) end,
                                       All),
    Lost = [{Host, Why} || {{Host, _}, {error, Why}} <- lists:zip(All, Answers)],
    {Lost, [Node || {Node, Host} <- lists:sort(maps:to_list(Where)),
                    lists:keymember(Host, 1, Lost)]}.

answers({error, Why}) -> {error, Why};
answers({ok, Peer}) ->
    try peer:call(Peer, erlang, is_alive, [], ?PING_MS) of
        _ -> ok
    catch
        exit:_ -> {error, "the connection to it was lost, or it does not answer"}
    end.

%% @doc Calls a function on a node, as `erpc:call/5' does. A node on a host that is lost is one
%% without a connection.
-spec call(node(), module(), atom(), [term()], timeout(), reach()) -> term().
call(Node, Module, Function, Arguments, TimeoutMs, #{where := Where, emulators := Emulators}) ->
    case maps:get(map_get(Node, Where), Emulators) of
        {ok, Peer} ->
            try peer:call(Peer, erpc, call, [Node, Module, Function, Arguments, TimeoutMs],
                          longer(TimeoutMs))
            catch exit:{_, {gen_server, call, _}} -> error({erpc, noconnection})
            end;
        {error, _} ->
            error({erpc, noconnection})
    end.

%% @doc Calls a function in the emulator beside a node, which reaches all nodes as they reach each
%% other. These modules are loaded there before. Errors are texts.
-spec beside(node(), [module()], {module(), atom(), [term()]}, timeout(), reach()) ->
          {ok, term()} | {error, string()}.
beside(Node, Modules, {Module, Function, Arguments}, TimeoutMs,
       #{where := Where, emulators := Emulators}) ->
    Host = map_get(Node, Where),
    case maps:get(Host, Emulators) of
        {ok, Peer} ->
            try
                _ = [{module, Loaded} = peer:call(Peer, code, load_binary, [Loaded, File, Code],
                                                  ?CALL_MS)
                     || Each <- Modules, {Loaded, Code, File} <- [code:get_object_code(Each)]],
                {ok, peer:call(Peer, Module, Function, Arguments, TimeoutMs)}
            catch
                Class:Reason ->
                    {error, lists:flatten(io_lib:format("on ~ts: ~0tP",
                                                        [Host, {Class, Reason}, 20]))}
            end;
        {error, Why} ->
            {error, Host ++ ": " ++ Why}
    end.

longer(infinity) -> infinity;
longer(TimeoutMs) -> TimeoutMs + ?GRACE_MS.
