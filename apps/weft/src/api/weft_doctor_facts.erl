%% SPDX-License-Identifier: Apache-2.0
%% @doc What one node tells the doctor of itself: plain terms without secrets, in about a second.
%%
%% Runs on the node that is examined. It changes nothing, opens no connection to another node and
%% writes nothing to the log. What can not be told on this node is missing in the map, and named
%% under `failed'. What the facts mean is said by `weft_doctor_checks'.
-module(weft_doctor_facts).

-include_lib("kernel/include/file.hrl").
-include_lib("public_key/include/public_key.hrl").

-export([gather/1, settings/0, comparable/1, cookie/1, mode/1, hosts/2, certificates/2]).
-export_type([facts/0, link/0, host/0, certificate/0, cookie/0]).

%% `lanes': those of the link itself, without those of channels.
-type link() :: #{node := node(), state := up | down | dialling, wanted := boolean(),
                  lanes := non_neg_integer(), last_error := string()}.
-type session() :: #{node := node(), state := up | resuming | handshake,
                     suspended := non_neg_integer()}.
-type host() :: #{address := string(), is_loopback := boolean()} | #{error := term()}.
%% `days': until it is no longer valid; negative when that has passed.
-type certificate() :: #{file := string(), role := own | authority,
                         days => integer(), error => string()}.
-type cookie() :: #{length := non_neg_integer(), is_known := boolean()}.
-type facts() :: #{weft => string(), otp => string(), wire => {byte(), byte()},
                   carrier => weft | stock, is_started => boolean(),
                   topology => term(), has_left => boolean(), is_partial => boolean(),
                   boot => ok | {error, string()}, circuits => hidden | visible,
                   settings => #{atom() => term()},
                   members => [node()], routes => [node()], links => [link()],
                   sessions => [session()], cuts => [node()], lanes => pos_integer(),
                   global => #{names | locks := non_neg_integer()},
                   cookie => cookie(),
                   cookie_file => none | #{file := string(), mode := non_neg_integer()},
                   hosts => #{string() => host()},
                   listener => not_needed | {ok, inet:port_number()} | {error, term()},
                   limits => #{ports | ports_max | descriptors_max := non_neg_integer()},
                   schedulers => #{online := pos_integer(), late_ms := number(),
                                   run_queue := number()},
                   net_ticktime_s => pos_integer(), certificates => [certificate()],
                   failed := [{Fact :: atom(), Reason :: term()}]}.

-define(HOSTS_TIMEOUT_MS, 2000).
-define(LISTENER_TIMEOUT_MS, 1000).
-define(SAMPLES, 25).
-define(SAMPLE_MS, 20).
-define(DAY_S, 86400).
-define(EPOCH_S, 62167219200).
%% What stands in examples and in files that nobody has changed.
-define(KNOWN_COOKIES, ["nocookie", "cookie", "COOKIE", "erlang", "secret", "SECRET", "mycookie",
                        "my_cookie", "secret_cookie", "change_me", "changeme", "monster", "test",
                        "password", "weft", "weft_command"]).
%% Settings that are meant to be the same on all nodes. Not `topology', which is told apart.
-define(SETTINGS, [transport, lanes, circuits, resume_timeout_ms, link_timeout_ms, hop_limit,
                   family, ports, cluster_name]).

%% @doc Settings that are meant to be the same on all nodes, besides the topology.
-spec settings() -> [atom()].
settings() -> ?SETTINGS.

%% @doc The facts of this node. The hosts of these nodes are looked up.
-spec gather([node()]) -> facts().
gather(Nodes) ->
    Told = [{Name, told(Tell)} || {Name, Tell} <- table(Nodes)],
    (maps:from_list([{Name, Fact} || {Name, {ok, Fact}} <- Told]))
        #{failed => [{Name, Reason} || {Name, {failed, Reason}} <- Told]}.

told(Tell) ->
    try {ok, Tell()}
    catch _Class:Reason -> {failed, Reason}
    end.

table(Nodes) ->
    [{weft, fun weft_version/0},
     {otp, fun() -> erlang:system_info(otp_release) end},
     {wire, fun weft_hello:versions/0},
     {carrier, fun carrier/0},
     {is_started, fun() -> whereis(weft_sup) =/= undefined end},
     {topology, fun() -> comparable(weft_topology:without_secrets(weft:topology())) end},
     {has_left, fun has_left/0},
     {is_partial, fun() -> with_topology(fun(M, O) -> M:partial(node(), O) end, false) end},
     {boot, fun boot/0},
     {circuits, fun() -> weft_config:get(circuits) end},
     {settings, fun() -> maps:from_list([{Key, weft_config:get(Key)} || Key <- ?SETTINGS]) end},
     {members, fun weft_overlay:members/0},
     {routes, fun() -> [Node || {Node, _} <- weft_overlay:routes()] end},
     {links, fun links/0},
     {sessions, fun sessions/0},
     {cuts, fun weft_fault:cuts/0},
     {lanes, fun() -> weft_config:get(lanes) end},
     {global, fun() -> #{names => length(global:registered_names()),
                         locks => ets:info(global_locks, size)} end},
     {cookie, fun() -> cookie(atom_to_binary(erlang:get_cookie())) end},
     {cookie_file, fun cookie_file/0},
     {hosts, fun() -> hosts(Nodes, weft_config:get(family)) end},
     {listener, fun listener/0},
     {limits, fun limits/0},
     {schedulers, fun schedulers/0},
     {net_ticktime_s, fun() -> weft_config:net_ticktime_ms() div 1000 end},
     {certificates, fun() -> certificates(weft_config:get(transport),
                                          weft_config:get(tls_options)) end}].

weft_version() ->
    _ = application:load(weft),
    {ok, Version} = application:get_key(weft, vsn),
    Version.

carrier() ->
    case whereis(weft_carrier_sup) of
        undefined -> stock;
        _ -> weft
    end.

%% --- topology, links, sessions ------------------------------------------------------------------

with_topology(Fun, None) ->
    case weft:topology() of
        undefined -> None;
        Term ->
            {ok, Module, Options} = weft_topology:parse(Term),
            Fun(Module, Options)
    end.

boot() ->
    case with_topology(fun(Module, Options) ->
                               weft_overlay:boot_checks(Module, Options, weft_config:get(circuits))
                       end, ok) of
        ok -> ok;
        {error, Text} -> {error, unicode:characters_to_list(Text)}
    end.

has_left() ->
    case weft_overlay:topology() of
        {Module, _Options} -> Module =:= weft_alone_core;
        none -> false
    end.

%% @doc A topology without what may differ from node to node, and the same for all ways to write the
%% same.
-spec comparable(term()) -> term().
comparable(full_mesh) ->
    {full_mesh, #{}};
comparable({full_mesh, #{detector := ticks} = Options}) ->
    comparable({full_mesh, maps:remove(detector, Options)});
comparable({Shape, Options}) when is_map(Options), Shape =/= groups ->
    {Shape, maps:without([role, seeds | [links || Shape =:= client_server]],
                         Options)};
comparable(Topology) ->
    Topology.

links() ->
    [#{node => Node, state => State, wanted => Wanted,
       lanes => length([own || #{class := <<>>} <- Lanes]),
       last_error => lists:flatten(io_lib:format("~ts", [weft_refusals:explain(LastError)]))}
     || carrier() =:= weft,
        #{node := Node, state := State, wanted := Wanted, lanes := Lanes,
          last_error := LastError} <- weft_links:info(), is_atom(Node)].

sessions() ->
    [#{node => Node, suspended => Suspended, state => State}
     || carrier() =:= weft, Pid <- weft_sessions:list(),
        #{node := Node, state := State, suspended := Suspended} <- session(Pid),
        Node =/= undefined].

%% A session may end while it is asked.
session(Pid) ->
    try [weft_session:info(Pid)] catch exit:_ -> [] end.

%% --- cookie -------------------------------------------------------------------------------------

%% @doc What is told of a cookie, which is not the cookie.
-spec cookie(binary()) -> cookie().
cookie(Cookie) ->
    #{length => string:length(Cookie),
      is_known => lists:member(unicode:characters_to_list(Cookie), ?KNOWN_COOKIES)}.

%% Of interest only if it is the cookie that the node has.
cookie_file() ->
    Cookie = atom_to_binary(erlang:get_cookie()),
    Files = [filename:join(Dir, ".erlang.cookie") || {ok, [[Dir]]} <- [init:get_argument(home)]]
        ++ [filename:join(filename:basedir(user_config, "erlang"), ".erlang.cookie")],
    case [#{file => File, mode => mode(File)}
          || File <- Files, {ok, Text} <- [file:read_file(File)],
             string:trim(Text) =:= Cookie] of
        [First | _] -> First;
        [] -> none
    end.

%% @doc The permissions of a file; 0 if it is not there.
-spec mode(file:filename()) -> non_neg_integer().
mode(File) ->
    case file:read_file_info(File) of
        {ok, #file_info{mode = Mode}} -> Mode band 8#777;
        {error, _} -> 0
    end.

%% --- names of hosts, ports ----------------------------------------------------------------------

%% @doc What the hosts of these nodes are from here. All are looked up at the same time, because one
%% that can not be resolved may take long.
-spec hosts([node()], inet | inet6) -> #{string() => host()}.
hosts(Nodes, Family) ->
    Hosts = lists:usort([weft_doctor_checks:host(Node) || Node <- Nodes]),
    Me = self(),
    Asked = [{Host, spawn_monitor(fun() -> Me ! {self(), host(Host, Family)} end)}
             || Host <- Hosts],
    Deadline = erlang:monotonic_time(millisecond) + ?HOSTS_TIMEOUT_MS,
    maps:from_list([{Host, answer(Pid, Monitor, Deadline)} || {Host, {Pid, Monitor}} <- Asked]).

answer(Pid, Monitor, Deadline) ->
    receive
        {Pid, Answer} ->
            demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, Pid, Reason} ->
            #{error => Reason}
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
            demonitor(Monitor, [flush]),
            exit(Pid, kill),
            #{error => timeout}
    end.

host(Host, Family) ->
    case inet:getaddr(Host, Family) of
        {ok, Ip} -> #{address => inet:ntoa(Ip), is_loopback => is_loopback(Ip)};
        {error, Reason} -> #{error => Reason}
    end.

is_loopback({127, _, _, _}) -> true;
is_loopback({0, 0, 0, 0, 0, 0, 0, 1}) -> true;
is_loopback(_) -> false.

%% No connection is made, because weft would log that nobody authenticates on it.
listener() ->
    case carrier() =:= weft andalso weft_identity:listens()
        andalso weft_tunnel:provider() =:= none of
        true -> listens(weft_dialer:resolve(node(), ?LISTENER_TIMEOUT_MS));
        false -> not_needed
    end.

listens({ok, {_Ip, Port}, _Kind}) ->
    %% Sockets of the other backend are no ports and can not be found.
    case application:get_env(kernel, inet_backend) =:= {ok, socket}
        orelse lists:any(fun(Socket) -> is_listener(Socket, Port) end, erlang:ports()) of
        true -> {ok, Port};
        false -> {error, {nobody_listens, Port}}
    end;
listens({error, Reason}) ->
    {error, Reason}.

is_listener(Socket, Port) ->
    case erlang:port_info(Socket, name) of
        {name, "tcp_inet"} ->
            inet:port(Socket) =:= {ok, Port} andalso inet:peername(Socket) =:= {error, enotconn};
        _ ->
            false
    end.

%% --- the machine --------------------------------------------------------------------------------

limits() ->
    Polls = erlang:system_info(check_io),
    #{ports => erlang:system_info(port_count), ports_max => erlang:system_info(port_limit),
      descriptors_max => lists:max([Max || Poll <- Polls, {max_fds, Max} <- Poll])}.

%% How much later than it should a process that waits for a moment runs again.
schedulers() ->
    Samples = [sample() || _ <- lists:seq(1, ?SAMPLES)],
    {Late, Queues} = lists:unzip(Samples),
    #{online => erlang:system_info(schedulers_online),
      late_ms => lists:nth(?SAMPLES div 2 + 1, lists:sort(Late)) / 1000,
      run_queue => lists:sum(Queues) / ?SAMPLES}.

sample() ->
    BeforeUs = erlang:monotonic_time(microsecond),
    receive after ?SAMPLE_MS -> ok end,
    {max(0, erlang:monotonic_time(microsecond) - BeforeUs - 1000 * ?SAMPLE_MS),
     erlang:statistics(total_run_queue_lengths)}.

%% --- certificates -------------------------------------------------------------------------------

%% @doc The certificates in the files of these `tls_options', if they are used.
-spec certificates(tcp | tls, Options :: [term()]) -> [certificate()].
certificates(tcp, _Options) ->
    [];
certificates(tls, Options) ->
    Pairs = [Pair || {certs_keys, Pairs} <- Options, Pair <- Pairs],
    [in_file(File, own, fun lists:min/1)
     || File <- [F || {certfile, F} <- Options] ++ [F || #{certfile := F} <- Pairs]]
        %% One authority that is valid is enough.
        ++ [in_file(File, authority, fun lists:max/1) || {cacertfile, File} <- Options].

in_file(File, Role, Choose) ->
    Row = #{file => lists:flatten(io_lib:format("~ts", [File])), role => Role},
    try
        {ok, Pem} = file:read_file(File),
        Row#{days => Choose([days(Der) || {'Certificate', Der, not_encrypted}
                                              <- public_key:pem_decode(Pem)])}
    catch
        _:_ -> Row#{error => "it can not be read as certificates"}
    end.

days(Der) ->
    #'OTPCertificate'{tbsCertificate = #'OTPTBSCertificate'{validity = Validity}} =
        public_key:pkix_decode_cert(Der, otp),
    #'Validity'{notAfter = NotAfter} = Validity,
    floor((seconds(NotAfter) - erlang:system_time(second)) / ?DAY_S).

%% RFC 5280, 4.1.2.5: years of two digits are those from 1950 to 2049.
seconds({utcTime, [Y1, Y2 | _] = Text}) ->
    Century = case list_to_integer([Y1, Y2]) >= 50 of true -> "19"; false -> "20" end,
    seconds({generalTime, Century ++ Text});
seconds({generalTime, Text}) ->
    {ok, [Year, Month, Day, Hour, Minute, Second], _Zone} =
        io_lib:fread("~4d~2d~2d~2d~2d~2d", Text),
    calendar:datetime_to_gregorian_seconds({{Year, Month, Day}, {Hour, Minute, Second}})
        - ?EPOCH_S.
