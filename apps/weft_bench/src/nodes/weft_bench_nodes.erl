%% SPDX-License-Identifier: Apache-2.0
%% @doc The nodes of one variant: starts, connects and stops them, calls functions on them, and
%% knows what processor time they used.
%%
%% Layouts: `pair' is a sender `a' and a receiver `b'; `trio' has a third node `c'; {fan, N} has `a'
%% and N receivers {r, 1}..{r, N}; `alone' is `a'; {cluster, Shape} has equal nodes {n, 1}..{n, N}
%% (`weft_bench_cluster'); in {apart, Shape} the same nodes know nothing of each other.
%% With a gateway there is `g' too, and no
%% connection of `a' but with it. Nodes are ruled by way of their standard input and output
%% (`peer'), so that the connections under test carry the workload and nothing else. All variants
%% have the same flags of the emulator: busy waiting is off, since more nodes than cores would steal
%% each other's time. Nodes of `fan' and of clusters have one scheduler and few other threads each,
%% however many there are, since clusters of different sizes are compared with each other; a shape
%% may say otherwise (`weft_bench_cluster'). Those of the other layouts have threads for all cores.
-module(weft_bench_nodes).

-export([start/3, stop/1, call/5, ahead_us/2, node/2, roles/1, roles/2, cpu_us/1, cpu_us_of/1,
         flags/2, variant/1, os_pid/2, resident_bytes/2, kill/2, restart/2, counters/1,
         code_path/0, paths/1]).
-export_type([nodes/0, role/0, layout/0, context/0]).

-type role() :: a | b | c | g | {r | n, pos_integer()}.
-type layout() :: pair | trio | {fan, pos_integer()} | alone
                | {cluster | apart, weft_bench_cluster:shape()}.
-opaque nodes() :: #{variant := weft_bench_variant:variant(),
                     %% Where their certificate is.
                     tls := file:filename() | none,
                     %% On other hosts they are known by their connections only.
                     are_here := boolean(),
                     quota := weft_bench_quota:percent() | none,
                     groups := [weft_bench_quota:group()],
                     peers := #{role() => #{peer := pid(), node := node(), os_pid := string(),
                                            boot := map()}}}.

%% Each node gets the quota, once all are connected.
-type context() :: #{place := weft_bench_place:place(), log_dir := file:filename(),
                     quota => weft_bench_quota:percent() | none}.

-define(BOOT_MS, 30000).
-define(CONNECT_MS, 20000).
-define(CALL_MS, 20000).
%% Nodes that boot at the same time: each wants a core for a fifth of a second.
-define(BOOTING_MAX, 8).
-define(ONE_SCHEDULER, ["+S", "1:1", "+SDcpu", "1:1", "+SDio", "1", "+A", "1"]).
-define(STAT_BYTES_MAX, 4096).
%% Nodes that are named if they do not boot.
-define(TOLD_MAX, 5).

%% @doc Starts the nodes of a variant and connects `a' with all others. The error is a text.
-spec start(weft_bench_variant:variant(), layout(), context()) ->
          {ok, nodes()} | {error, string()}.
start(Variant, Layout, #{place := Place} = Context) ->
    Roles = roles(Variant, Layout),
    Unique = lists:concat([Variant, "-", erlang:unique_integer([positive])]),
    Names = maps:from_list([{Role, {short_name(Role, Unique),
                                    weft_bench_place:address(Place, side(Role))}}
                            || Role <- Roles]),
    Tls = case weft_bench_variant:is_tls(Variant) of
              true -> weft_bench_tls:new(lists:usort([Host || {_, Host} <- maps:values(Names)]));
              false -> none
          end,
    Links = [{node_name(Role1, Names), node_name(Role2, Names)} || {Role1, Role2} <- links(Roles)],
    Arguments = flags(Variant, Layout) ++ layout_arguments(Layout)
        ++ weft_bench_variant:arguments(Variant, Context#{tls => Tls, links => Links,
                                                          shape => shape(Layout, Names)}),
    Boots = [{Role, boot(Role, Name, Arguments, Context)} || {Role, Name} <- maps:to_list(Names)],
    {Peers, Failed} = boot_all(Boots),
    Nodes = #{variant => Variant, peers => Peers, tls => Tls,
              are_here => weft_bench_place:host(Place, near) =:= here, groups => [],
              quota => maps:get(quota, Context, none)},
    try
        [] =:= Failed orelse throw({nodes_do_not_boot, Failed}),
        ok = prepare(Layout, Nodes),
        limited(maps:keys(Peers), Nodes)
    catch
        _:Reason ->
            stop(Nodes),
            {error, lists:flatten(failure(Reason, Names))}
    end.

limited(_Roles, #{quota := none} = Nodes) ->
    {ok, Nodes};
limited(_Roles, #{are_here := false} = Nodes) ->
    stop(Nodes),
    {error, "no quota: nodes on other hosts have none; leave out --quota"};
limited([], Nodes) ->
    {ok, Nodes};
limited([Role | Roles], #{quota := Percent, groups := Groups} = Nodes) ->
    case weft_bench_quota:limit(Percent, os_pid(Nodes, Role)) of
        {ok, Group} ->
            limited(Roles, Nodes#{groups := [Group | Groups]});
        {error, Text} ->
            stop(Nodes),
            {error, "no quota: " ++ Text}
    end.

failure({nodes_do_not_boot, Failed}, Names) ->
    Told = lists:sublist(lists:sort(Failed), ?TOLD_MAX),
    [lists:join("; ", [io_lib:format("~ts: ~ts", [node_name(Role, Names), why(Reason)])
                       || {Role, Reason} <- Told]),
     [io_lib:format("; and ~b more", [length(Failed) - ?TOLD_MAX]) || length(Failed) > ?TOLD_MAX]];
failure(Reason, _Names) ->
    io_lib:format("~0p", [Reason]).

why({boot_failed, {exit_status, Status}}) ->
    io_lib:format("its emulator ended with status ~b", [Status]);
why(timeout) ->
    io_lib:format("not up after ~b s", [?BOOT_MS div 1000]);
why(Reason) ->
    io_lib:format("~0tP", [Reason, 20]).

%% @doc The nodes that a variant has in a layout.
-spec roles(weft_bench_variant:variant(), layout()) -> [role(), ...].
roles(Variant, Layout) ->
    roles_of(Layout) ++ [g || weft_bench_variant:has_gateway(Variant), Layout =/= alone].

roles_of(alone) -> [a];
roles_of(pair) -> [a, b];
roles_of(trio) -> [a, b, c];
roles_of({fan, Count}) -> [a | [{r, Number} || Number <- lists:seq(1, Count)]];
roles_of({Cluster, Shape}) when Cluster =:= cluster; Cluster =:= apart ->
    weft_bench_cluster:roles(Shape).

shape({cluster, Shape}, Names) ->
    weft_bench_cluster:named(Shape, fun(Role) -> node_name(Role, Names) end);
shape({apart, _Shape}, _Names) ->
    #{seeds => [], groups => #{}};
shape(_Layout, _Names) ->
    none.

links(Roles) ->
    [{g, Role} || lists:member(g, Roles), Role <- Roles, Role =/= g].

side(a) -> near;
side(_) -> far.

short_name({Letter, Number}, Unique) -> lists:concat([Letter, Number, "-", Unique]);
short_name(Role, Unique) -> lists:concat([Role, "-", Unique]).

node_name(Role, Names) ->
    {Name, Host} = maps:get(Role, Names),
    list_to_atom(Name ++ "@" ++ Host).

%% @doc Flags of the emulator and the kernel that all nodes of a variant have in a layout. Kernels
%% of a mesh connect with all others.
-spec flags(weft_bench_variant:variant(), layout()) -> [string()].
flags(Variant, Layout) ->
    emulator_flags(Layout)
        ++ case weft_bench_variant:connects_all(Variant) of
               true -> [];
               false -> ["-connect_all", "false"]
           end.

emulator_flags(Layout) ->
    ["+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none",
     "-kernel", "prevent_overlapping_partitions", "false" | schedulers(Layout)].

schedulers({fan, _}) -> ?ONE_SCHEDULER;
schedulers({_Cluster, #{schedulers := all}}) -> [];
schedulers({_Cluster, _Shape}) -> ?ONE_SCHEDULER;
schedulers(_ForAllCores) -> [].

%% @doc Directories of the code that workloads of whatever application need: all that is not part of
%% OTP.
-spec code_path() -> [file:filename()].
code_path() ->
    [filename:absname(Dir) || Dir <- code:get_path(), Dir =/= ".",
                              not lists:prefix(code:lib_dir(), Dir)].

%% A node alone is there for its tables, those of the overlay included.
layout_arguments(alone) -> ["-weft", "topology", "full_mesh"];
layout_arguments(_) -> [].

boot(Role, {Name, Host}, Arguments, #{place := Place, log_dir := LogDir}) ->
    #{erl := Erl, args := Own} =
        case weft_bench_place:host(Place, side(Role)) of
            {ok, #{code := Code} = There} -> There#{args => paths(Code)};
            here -> #{erl => filename:join([code:root_dir(), "bin", "erl"]),
                      %% One that starts as its place goes would start an epmd that stays.
                      args => ["-setcookie", "weft_bench", "-start_epmd", "false"
                               | paths(code_path())]
                          ++ logger(filename:join(LogDir, Name ++ ".log"))}
        end,
    #{name => Name, host => Host, longnames => true, connection => standard_io,
      wait_boot => ?BOOT_MS, exec => weft_bench_place:command(Place, side(Role), [Erl]),
      env => [{"ERL_EPMD_PORT", integer_to_list(weft_bench_place:epmd_port(Place))},
              {"ERL_CRASH_DUMP_BYTES", "0"}],
      args => Own ++ Arguments}.

%% @doc Arguments of an emulator for these directories of code. What is named last comes first: of
%% two versions of a library it has to be the same one as here.
-spec paths([file:filename()]) -> [string()].
paths(Dirs) -> lists:append([["-pa", Dir] || Dir <- lists:reverse(Dirs)]).

logger(File) ->
    Logger = [{handler, default, logger_std_h, #{config => #{file => filename:absname(File)}}}],
    ["-kernel", "logger", lists:flatten(io_lib:format("~0p", [Logger]))].

boot_all(Boots) ->
    boot_all(Boots, #{}, #{}, []).

boot_all([], Booting, Peers, Failed) when map_size(Booting) =:= 0 ->
    {Peers, Failed};
boot_all([{Role, Boot} | Rest], Booting, Peers, Failed) when map_size(Booting) < ?BOOTING_MAX ->
    Self = self(),
    Starter = spawn(fun() -> Self ! {self(), boot_result(Boot)} end),
    boot_all(Rest, Booting#{Starter => Role}, Peers, Failed);
boot_all(Waiting, Booting, Peers, Failed) ->
    receive
        {Starter, Result} when is_map_key(Starter, Booting) ->
            {Role, StillBooting} = maps:take(Starter, Booting),
            case Result of
                {ok, Peer} ->
                    boot_all(Waiting, StillBooting, Peers#{Role => Peer}, Failed);
                {error, Why} ->
                    boot_all(Waiting, StillBooting, Peers, [{Role, Why} | Failed])
            end
    end.

boot_result(Boot) ->
    try peer:start(Boot) of
        {ok, Peer, Node} ->
            {ok, #{peer => Peer, node => Node, boot => Boot,
                   os_pid => peer:call(Peer, os, getpid, [], ?CALL_MS)}};
        {error, Reason} ->
            {error, Reason}
    catch
        _:Reason -> {error, Reason}
    end.

%% @doc Kills a node, as if its host had failed.
-spec kill(nodes(), role()) -> ok.
kill(#{peers := Peers} = Nodes, Role) ->
    stop(Nodes#{peers := maps:with([Role], Peers), tls := none, groups := []}).

%% @doc Starts a node that was killed, with the name that it had; its connections are made by whom
%% needs them. Who restarts it also has to stop it, with what is returned: others do not know it.
-spec restart(nodes(), role()) -> {ok, nodes()} | {error, term()}.
restart(#{peers := Peers} = Nodes, Role) ->
    #{boot := Boot} = maps:get(Role, Peers),
    case boot_result(Boot) of
        {ok, Peer} -> ready_again(Role, Nodes#{peers := Peers#{Role := Peer}});
        {error, Reason} -> {error, Reason}
    end.

ready_again(Role, #{variant := Variant} = New) ->
    try
        _ = [{ok, _} = call(New, Role, application, ensure_all_started, {[weft], ?CALL_MS})
             || weft_bench_variant:is_weft(Variant)],
        limited([Role], New)
    catch
        Class:Reason:Stack ->
            ok = kill(New, Role),
            erlang:raise(Class, Reason, Stack)
    end.

%% The application is needed for channels and topologies; with stock there is nothing to start.
prepare(Layout, #{variant := Variant} = Nodes) ->
    lists:foreach(fun(Role) ->
                      {ok, _} = call(Nodes, Role, application, ensure_all_started,
                                     {[weft], ?CALL_MS})
                  end, [Role || weft_bench_variant:is_weft(Variant), Role <- roles(Nodes)]),
    case Layout of
        {cluster, _} -> weft_bench_cluster:await(Nodes);
        {apart, _} -> ok;
        _ -> connect_all(Nodes)
    end.

connect_all(Nodes) ->
    Roles = roles(Nodes),
    Deadline = erlang:monotonic_time(millisecond) + ?CONNECT_MS,
    Pairs = [{a, Role} || Role <- Roles, Role =/= a] ++ [{b, c} || lists:member(c, Roles)],
    lists:foreach(fun({From, To}) -> connect(Nodes, From, To, Deadline) end, Pairs).

%% Routes over a gateway take some time to be found.
connect(Nodes, From, To, Deadline) ->
    case call(Nodes, From, net_kernel, connect_node, {[node(Nodes, To)], ?CALL_MS}) of
        true -> true;
        false ->
            erlang:monotonic_time(millisecond) < Deadline orelse throw({no_connection, From, To}),
            receive after 50 -> connect(Nodes, From, To, Deadline) end
    end.

%% @doc Ends the nodes.
-spec stop(nodes()) -> ok.
stop(#{peers := Peers, are_here := false}) ->
    Ending = [spawn_monitor(fun() -> peer:stop(Peer) end) || #{peer := Peer} <- maps:values(Peers)],
    lists:foreach(fun({Pid, Monitor}) ->
                      receive {'DOWN', Monitor, process, Pid, _} -> ok end
                  end, Ending);
stop(#{peers := Peers, tls := Tls, groups := Groups}) ->
    %% The number of one that was killed before may be that of any other process by now.
    Ending = [{Pid, monitor(process, Pid), OsPid}
              || #{peer := Pid, os_pid := OsPid} <- maps:values(Peers), is_process_alive(Pid)],
    _ = os:cmd(lists:join(" ", ["kill -KILL" | [OsPid || {_, _, OsPid} <- Ending]])),
    lists:foreach(fun({Pid, Monitor, _}) ->
                      receive {'DOWN', Monitor, process, Pid, _} -> ok end
                  end, Ending),
    _ = Tls =:= none orelse weft_bench_tls:remove(Tls),
    weft_bench_quota:remove(Groups).

%% @doc Calls a function on the node with a role.
-spec call(nodes(), role(), module(), atom(), {list(), TimeoutMs :: timeout()}) -> term().
call(#{peers := Peers}, Role, Module, Function, {Arguments, TimeoutMs}) ->
    #{peer := Peer} = maps:get(Role, Peers),
    peer:call(Peer, Module, Function, Arguments, TimeoutMs).

%% @doc How far the clock (`os:perf_counter') of a node is ahead of ours; nodes of this machine have
%% the same one.
-spec ahead_us(nodes(), role()) -> integer().
ahead_us(#{are_here := true}, _Role) ->
    0;
ahead_us(Nodes, Role) ->
    {_ErrorUs, AheadUs} =
        weft_bench_clock:ahead(fun() -> call(Nodes, Role, os, perf_counter,
                                             {[microsecond], ?CALL_MS}) end),
    AheadUs.

-spec node(nodes(), role()) -> node().
node(#{peers := Peers}, Role) ->
    maps:get(node, maps:get(Role, Peers)).

-spec roles(nodes()) -> [role()].
roles(#{peers := Peers}) ->
    maps:keys(Peers).

-spec variant(nodes()) -> weft_bench_variant:variant().
variant(#{variant := Variant}) -> Variant.

-spec os_pid(nodes(), role()) -> string().
os_pid(#{peers := Peers}, Role) ->
    maps:get(os_pid, maps:get(Role, Peers)).

%% @doc What the scheduler has counted of their quotas, if they have some.
-spec counters(nodes()) -> weft_bench_quota:counters().
counters(#{groups := Groups}) -> weft_bench_quota:counters(Groups).

%% @doc What a node on this machine has in memory. The line is `VmRSS:   12345 kB' (proc(5),
%% status).
-spec resident_bytes(nodes(), role()) -> non_neg_integer().
resident_bytes(Nodes, Role) ->
    {ok, Status} = file:read_file("/proc/" ++ os_pid(Nodes, Role) ++ "/status"),
    {match, [Kilobytes]} = re:run(Status, "VmRSS:\\s+(\\d+) kB",
                                  [{capture, all_but_first, binary}]),
    binary_to_integer(Kilobytes) * 1024.

%% @doc User and system time that all nodes used since their start, in microseconds. Linux counts
%% it in hundredths of a second (proc(5), stat, fields 14 and 15).
-spec cpu_us(nodes()) -> non_neg_integer().
cpu_us(#{peers := Peers, are_here := false}) ->
    lists:sum([peer:call(Peer, ?MODULE, cpu_us_of, ["self"], ?CALL_MS)
               || #{peer := Peer} <- maps:values(Peers)]);
cpu_us(#{peers := Peers}) ->
    lists:sum([cpu_us_of(OsPid) || #{os_pid := OsPid} <- maps:values(Peers)]).

%% @doc The same of one process of the operating system; `self' as a text is the calling one.
-spec cpu_us_of(OsPid :: string()) -> non_neg_integer().
cpu_us_of(OsPid) ->
    ticks(OsPid) * 10000.

ticks(OsPid) ->
    case read_raw("/proc/" ++ OsPid ++ "/stat") of
        {ok, Stat} ->
            %% The second field is the name of the program, which may have spaces.
            [_, AfterName] = string:split(Stat, ") ", trailing),
            Fields = string:split(AfterName, " ", all),
            binary_to_integer(lists:nth(12, Fields)) + binary_to_integer(lists:nth(13, Fields));
        {error, _} ->
            0
    end.

%% By the caller itself: the process that serves files may not have its turn on a busy node.
read_raw(Path) ->
    case file:open(Path, [raw, read, binary]) of
        {ok, File} ->
            Read = file:read(File, ?STAT_BYTES_MAX),
            ok = file:close(File),
            Read;
        Error ->
            Error
    end.
