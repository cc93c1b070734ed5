%% SPDX-License-Identifier: Apache-2.0
%% @doc Real nodes for the suite: a private epmd, nodes controlled over standard input and output,
%% and waiting for conditions.
-module(sd_erlang_nodes).

-export([start_epmd/0, stop_epmd/1, start/2, kill/1, call/4, until/1]).
-export_type([epmd/0, node_ref/0]).

-type epmd() :: #{port := inet:port_number(), os_pid := string()}.
-type node_ref() :: #{peer := pid(), node := node(), os_pid := string()}.

-define(CALL_MS, 60000).
-define(UNTIL_MS, 30000).

%% @doc An epmd on a port that is free now.
-spec start_epmd() -> epmd().
start_epmd() ->
    {ok, Socket} = gen_tcp:listen(0, []),
    {ok, Port} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    Keeper = self(),
    %% The process that opens the port has to live as long as epmd.
    spawn(fun() ->
              Epmd = open_port({spawn_executable, executable()},
                               [{args, ["-port", integer_to_list(Port)]}]),
              {os_pid, OsPid} = erlang:port_info(Epmd, os_pid),
              Keeper ! {epmd, Port, integer_to_list(OsPid)},
              receive after infinity -> ok end
          end),
    receive {epmd, Port, OsPid} -> ok end,
    until(fun() -> answers(Port) end),
    #{port => Port, os_pid => OsPid}.

executable() ->
    Erts = filename:join([code:root_dir(), "erts-" ++ erlang:system_info(version), "bin"]),
    case os:find_executable("epmd", Erts) of
        false -> os:find_executable("epmd");
        File -> File
    end.

answers(Port) ->
    case gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]) of
        {ok, Socket} -> gen_tcp:close(Socket) =:= ok;
        {error, _} -> false
    end.

-spec stop_epmd(epmd()) -> ok.
stop_epmd(#{os_pid := OsPid}) -> signal(OsPid).

signal(OsPid) ->
    [] = os:cmd("kill -KILL " ++ OsPid),
    ok.

%% @doc A node with the given name and further arguments.
-spec start({Name :: atom(), Args :: [string()]}, epmd()) -> node_ref().
start({Name, Args}, #{port := Port}) ->
    Paths = [filename:dirname(code:which(Module)) || Module <- [weft_dist, s_group, ?MODULE]],
    {ok, Peer, _} = peer:start(#{connection => standard_io,
                                 env => [{"ERL_EPMD_PORT", integer_to_list(Port)}],
                                 args => ["-sname", atom_to_list(Name), "-setcookie", "sd_erlang",
                                          "-kernel", "prevent_overlapping_partitions", "false",
                                          "-connect_all", "false", "+S", "1:1", "-pa" | Paths]
                                 ++ Args}),
    #{peer => Peer, node => peer:call(Peer, erlang, node, []),
      os_pid => peer:call(Peer, os, getpid, [])}.

%% @doc Kills a node and waits for its end.
-spec kill(node_ref()) -> ok.
kill(#{peer := Peer, os_pid := OsPid}) ->
    Ref = monitor(process, Peer),
    is_process_alive(Peer) andalso signal(OsPid),
    receive {'DOWN', Ref, process, Peer, _} -> ok
    after ?CALL_MS -> error({node_does_not_end, OsPid})
    end.

-spec call(node_ref(), module(), atom(), [term()]) -> term().
call(#{peer := Peer}, Module, Function, Args) ->
    peer:call(Peer, Module, Function, Args, ?CALL_MS).

%% @doc Waits until a condition holds, 30 s at most.
-spec until(fun(() -> boolean())) -> ok.
until(Condition) -> until(Condition, erlang:monotonic_time(millisecond) + ?UNTIL_MS).

until(Condition, Deadline) ->
    case Condition() of
        true -> ok;
        false ->
            erlang:monotonic_time(millisecond) < Deadline orelse error({never_true, Condition}),
            receive after 10 -> until(Condition, Deadline) end % pacing: of this very loop
    end.
