%% SPDX-License-Identifier: Apache-2.0
%% @doc Where nodes run: network namespaces of our own, with the same congestion control wherever
%% the machine allows it, and an epmd in each. For loopback it is one namespace; for an emulated
%% link two, joined by `linkem' (c_src/linkem.c), which is compiled when it is first needed.
%%
%% A place may also be two hosts of somebody's own (`weft_bench_hosts'). Nothing is set up there.
%%
%% Namespaces need root, and a container may refuse them. Without them loopback is that of the
%% machine, with its congestion control and an epmd on a free port, and emulated links are not
%% possible. What is started here ends with this emulator, whatever ends it: it waits for the end of
%% its standard input.
-module(weft_bench_place).

-export([can_emulate/1, with/3, start/2, stop/1, remove_own/0, address/2, command/3, host/2,
         congestion_control/1, epmd_port/1]).
-export_type([place/0, side/0]).

%% The sending node is near, all others are far.
-type side() :: near | far.
-opaque place() :: #{link := weft_bench_link:link(), namespaces := #{side() => string()},
                     ports := [port()], epmd_port := inet:port_number()}.

%% What Linux has by default, and what is there where a machine does not allow that to namespaces
%% (tcp_allowed_congestion_control in tcp(7)).
-define(CONGESTION_CONTROLS, ["cubic", "reno"]).
-define(CONGESTION_CONTROL_FILE, "/proc/sys/net/ipv4/tcp_congestion_control").
-define(ADDRESSES, #{near => "10.99.0.1", far => "10.99.0.2"}).
-define(EPMD_PORT, 4369).
-define(WAIT_MS, 10000).

%% @doc Are there emulated links on this machine? If not, why: one is made, so nothing is guessed.
-spec can_emulate(BuildDir :: file:filename()) -> ok | {error, string()}.
can_emulate(BuildDir) ->
    case start(weft_bench_link:emulated(1, 1000, 0), BuildDir) of
        {ok, Place} -> stop(Place);
        Error -> Error
    end.

%% In a container, or where the root directory is no mount point, root may be allowed to make a
%% namespace, and not to run a program in it.
can_enter_namespaces() ->
    Probe = namespace(probe),
    try
        _ = os:find_executable("ip") =/= false
            orelse fail("there is no command ip (Debian package iproute2)"),
        make_namespace(Probe),
        done("ip netns exec " ++ Probe ++ " true")
    catch
        throw:{place, Text} -> {error, Text}
    after
        remove_namespace(Probe)
    end.

%% @doc What the function says of a place, which is there for as long.
-spec with(weft_bench_link:link(), BuildDir :: file:filename(), fun((place()) -> Result)) ->
          Result | {error, string()}.
with(Link, BuildDir, Function) ->
    case start(Link, BuildDir) of
        {ok, Place} -> try Function(Place) after stop(Place) end;
        {error, Text} -> {error, "no place for nodes: " ++ Text}
    end.

%% @doc Sets up namespaces for a link. BuildDir is where linkem is compiled to.
-spec start(weft_bench_link:link(), BuildDir :: file:filename()) ->
          {ok, place()} | {error, string()}.
start(#{hosts := #{epmd_port := Port}} = Link, _BuildDir) ->
    {ok, #{link => Link, namespaces => #{}, ports => [], epmd_port => Port}};
start(#{label := loopback} = Link, _BuildDir) ->
    remove_left_over(),
    case can_enter_namespaces() of
        ok -> namespaces(Link, [near]);
        {error, _} -> on_the_machine(Link)
    end;
start(Link, BuildDir) ->
    remove_left_over(),
    case can_enter_namespaces() of
        ok -> emulated(Link, BuildDir);
        {error, Text} -> {error, "no network namespaces: " ++ Text}
    end.

on_the_machine(Link) ->
    with_epmds(#{link => Link, namespaces => #{}, ports => [], epmd_port => free_port()}).

emulated(Link, BuildDir) ->
    case compile(BuildDir) of
        {ok, Linkem} ->
            case namespaces(Link, [near, far]) of
                {ok, Place} -> joined(Linkem, Place);
                Error -> Error
            end;
        Error ->
            Error
    end.

%% A namespace that nobody has used knows nothing of this process' neighbours, ports and options.
namespaces(Link, Sides) ->
    Names = maps:from_list([{Side, namespace(Side)} || Side <- Sides]),
    Place = #{link => Link, namespaces => Names, ports => [], epmd_port => ?EPMD_PORT},
    Make = fun(Name) -> make_namespace(Name), limit_buffers(Name, Link) end,
    case or_nothing(fun() -> lists:foreach(Make, maps:values(Names)) end, Place) of
        {ok, _} -> with_epmds(Place);
        Error -> Error
    end.

make_namespace(Name) ->
    done("ip netns add " ++ Name),
    done("ip -n " ++ Name ++ " link set lo up"),
    %% One that is refused leaves what is there.
    _ = lists:any(fun(Control) -> set_congestion_control(Name, Control) end, ?CONGESTION_CONTROLS),
    ok.

set_congestion_control(Name, Control) ->
    "" =:= os:cmd("ip netns exec " ++ Name ++ " sh -c 'echo " ++ Control ++ " > "
                  ?CONGESTION_CONTROL_FILE "'").

%% What a connection may receive before it is read: the least, at first, at most (tcp_rmem in
%% tcp(7)).
limit_buffers(Name, #{buffer_bytes := Bytes}) ->
    done(lists:concat(["ip netns exec ", Name, " sh -c 'echo 4096 ", Bytes, " ", Bytes,
                       " > /proc/sys/net/ipv4/tcp_rmem'"]));
limit_buffers(_Name, _Link) ->
    ok.

with_epmds(#{epmd_port := Port, namespaces := Names} = Place) ->
    Sides = case maps:keys(Names) of [] -> [near]; Some -> Some end,
    Arguments = ["-port", integer_to_list(Port)],
    Epmds = [background(command(Place, Side, [epmd() | Arguments])) || Side <- Sides],
    or_nothing(fun() -> [await_epmd(Place, Side, ?WAIT_MS) || Side <- Sides] end,
               Place#{ports := Epmds}).

%% What fails is told, and leaves nothing of the place behind.
or_nothing(Step, Place) ->
    try Step() of
        _ -> {ok, Place}
    catch
        throw:{place, Text} ->
            stop(Place),
            {error, Text}
    end.

answers(Place, Side) ->
    {Command, Arguments} = command(Place, Side, [epmd(), "-port",
                                                 integer_to_list(epmd_port(Place)), "-names"]),
    string:find(os:cmd(lists:join(" ", [Command | Arguments])), "up and running") =/= nomatch.

%% @doc Removes what start/2 set up.
-spec stop(place()) -> ok.
stop(#{ports := Ports, namespaces := Names}) ->
    lists:foreach(fun end_of_input/1, Ports),
    lists:foreach(fun remove_namespace/1, maps:values(Names)).

%% One that stays is removed by a later run.
remove_namespace(Name) ->
    _ = os:cmd("ip netns del " ++ Name),
    ok.

%% @doc The address of nodes on a side.
-spec address(place(), side()) -> string().
address(#{link := #{hosts := Hosts}}, Side) -> map_get(address, map_get(Side, Hosts));
address(#{link := #{label := loopback}}, _Side) -> "127.0.0.1";
address(_Place, Side) -> maps:get(Side, ?ADDRESSES).

%% @doc The command that runs another one on a side: program and arguments.
-spec command(place(), side(), [string(), ...]) -> {string(), [string()]}.
command(#{link := #{hosts := Hosts}}, Side, Command) ->
    #{Side := #{command := On}} = Hosts,
    On(Command);
command(#{namespaces := Names}, _Side, [Program | Arguments]) when map_size(Names) =:= 0 ->
    {Program, Arguments};
command(#{namespaces := Names} = Place, Side, Command) ->
    case Names of
        #{Side := Name} -> {os:find_executable("ip"), ["netns", "exec", Name | Command]};
        #{} -> command(Place, near, Command)
    end.

%% @doc The host of a side, if it is another machine than this one.
-spec host(place(), side()) -> {ok, weft_bench_hosts:host()} | here.
host(#{link := #{hosts := Hosts}}, Side) -> {ok, map_get(Side, Hosts)};
host(_Place, _Side) -> here.

%% @doc The congestion control that connections of a place have.
-spec congestion_control(place()) -> string().
congestion_control(Place) ->
    {Command, Arguments} =
        command(Place, near, ["cat", ?CONGESTION_CONTROL_FILE]),
    string:trim(os:cmd(lists:join(" ", [Command | Arguments]))).

-spec epmd_port(place()) -> inet:port_number().
epmd_port(#{epmd_port := Port}) -> Port.

%% ---- namespaces ----

%% The name tells whose it is, for remove_left_over/0.
namespace(Side) ->
    lists:concat(["weft-bench-", os:getpid(), "-", Side]).

%% @doc Removes the namespaces of this emulator, when what has started them is gone.
-spec remove_own() -> ok.
remove_own() -> remove(fun(OsPid) -> OsPid =:= os:getpid() end).

%% Those of runs that were ended without a chance to clean up.
remove_left_over() ->
    remove(fun(OsPid) -> OsPid =/= os:getpid() andalso not filelib:is_dir("/proc/" ++ OsPid) end).

remove(IsMeant) ->
    case file:list_dir("/run/netns") of
        {ok, Names} ->
            lists:foreach(fun remove_with_its_processes/1,
                          [Name || Name <- Names,
                                   ["weft", "bench", OsPid, _] <- [string:split(Name, "-", all)],
                                   IsMeant(OsPid)]);
        {error, _} ->
            ok
    end.

%% A node that sends as fast as it can does not look at its input for long.
remove_with_its_processes(Name) ->
    _ = os:cmd("ip netns pids " ++ Name ++ " | xargs -r kill -KILL"),
    remove_namespace(Name).

%% ---- the emulator of a link ----

compile(BuildDir) ->
    Source = filename:join([source_dir(), "..", "..", "c_src", "linkem.c"]),
    true = filelib:is_regular(Source),
    Program = filename:absname(filename:join(BuildDir, "linkem")),
    ok = filelib:ensure_dir(Program),
    case filelib:last_modified(Program) > filelib:last_modified(Source) of
        true -> {ok, Program};
        false -> compile(Source, Program)
    end.

%% Under another name at first: other emulators may use, or make, the same program.
compile(Source, Program) ->
    New = lists:concat([Program, "-", os:getpid()]),
    Complaint = os:cmd(lists:join(" ", ["cc -O2 -pthread -o", New, Source])),
    case file:rename(New, Program) of
        ok -> {ok, Program};
        {error, _} -> {error, "cannot compile linkem: " ++ string:trim(Complaint)}
    end.

%% A build has no place for C; a benchmark is run where its source is.
source_dir() ->
    filename:dirname(proplists:get_value(source, module_info(compile))).

joined(Linkem, #{namespaces := #{near := Near, far := Far}, ports := Ports} = Place) ->
    Port = open_port({spawn_executable, Linkem},
                     [{args, [Near, address(Place, near) ++ "/24",
                              Far, address(Place, far) ++ "/24"]},
                      {line, 200}, exit_status, stderr_to_stdout]),
    or_nothing(fun() -> set_up(Port, Place) end, Place#{ports := [Port | Ports]}).

set_up(Port, #{link := #{rtt_ms := RttMs, rate_mbit := RateMbit, loss_percent := LossPercent,
                         queue_bytes := QueueBytes}}) ->
    "ready" = line(Port),
    lists:foreach(fun(Setting) -> tell(Port, Setting) end,
                  [{delay, RttMs * 500}, {rate, RateMbit * 1000}, {queue, QueueBytes},
                   {loss, LossPercent * 10000}]).

tell(Port, {Name, Value}) ->
    true = port_command(Port, io_lib:format("~s ~b~n", [Name, round(Value)])),
    "ok" = line(Port).

line(Port) ->
    receive
        {Port, {data, {eol, Line}}} when Line =:= "ready"; Line =:= "ok" -> Line;
        {Port, {data, {eol, Complaint}}} -> fail("linkem: " ++ Complaint);
        {Port, {exit_status, Status}} -> fail("linkem ends with " ++ integer_to_list(Status))
    after ?WAIT_MS ->
        fail("linkem does not answer")
    end.

%% ---- processes of the operating system ----

epmd() ->
    Erts = filename:join([code:root_dir(), "erts-" ++ erlang:system_info(version), "bin"]),
    case os:find_executable("epmd", Erts) of
        false -> os:find_executable("epmd");
        File -> File
    end.

%% Runs until its input ends, at the latest with this emulator.
background({Command, Arguments}) ->
    Script = "\"$0\" \"$@\" > /dev/null 2>&1 & read line; kill $!",
    open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", Script, Command | Arguments]}]).

%% Its process may have ended before.
end_of_input(Port) ->
    try true = port_close(Port), ok
    catch error:badarg -> ok
    end.

done(Command) ->
    case os:cmd(Command) of
        "" -> ok;
        Complaint -> fail(Command ++ ": " ++ string:trim(Complaint))
    end.

-spec fail(string()) -> no_return().
fail(Text) -> throw({place, Text}).

free_port() ->
    {ok, Socket} = gen_tcp:listen(0, []),
    {ok, Port} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    Port.

await_epmd(Place, Side, LeftMs) ->
    case answers(Place, Side) of
        true -> ok;
        false when LeftMs > 0 -> receive after 20 -> await_epmd(Place, Side, LeftMs - 20) end;
        false -> fail("epmd does not answer")
    end.
