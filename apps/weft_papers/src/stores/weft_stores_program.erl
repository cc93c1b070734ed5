%% SPDX-License-Identifier: Apache-2.0
%% @doc The stores that are programs of their own, and their clients over sockets: Redis (one that
%% is written to, and two replicas; RESP), and etcd (three members; JSON over HTTP, on connections
%% that stay). Programs run in a place of the benchmark, beside the node of their clients. They end
%% with the node that starts them, whatever becomes of it.
-module(weft_stores_program).
-behaviour(weft_stores_clients).

-export([missing/1, start/4, kill/1, stop/1, connect/2, ask/2]).
-export([free_ports/1, is_ready/2]).
-export_type([store/0]).

%% What clients have to know of one.
-type store() :: #{store := atom(), ports := [inet:port_number()]}.

-define(CALL_MS, 60000).
-define(READY_MS, 30000).
-define(AGAIN_MS, 100).
-define(ANSWER_MS, 10000).
-define(STOP_MS, 10000).
-define(HOST, {127, 0, 0, 1}).
%% It ends with its standard input, and is killed by a line of that.
-define(SCRIPT, "log=$1; shift; \"$@\" > \"$log\" 2>&1 < /dev/null & p=$!; "
                "if read line; then kill -KILL $p; else kill $p 2> /dev/null; fi; "
                "wait $p 2> /dev/null").

%% @doc What is missing: the program that the store needs, or `none'.
-spec missing(atom()) -> none | string().
missing(Store) ->
    Program = program(Store),
    case Program =:= none orelse os:find_executable(Program) of
        true -> none;
        false -> Program ++ " is not installed";
        _Path -> none
    end.

program(etcd) -> "etcd";
program(Redis) when Redis =:= redis; Redis =:= redis_disk -> "redis-server";
program(_OfNodes) -> none.

%% @doc So many of them, that can be asked by the first one of some nodes, in the place in which it
%% is. Their files and logs are in Dir.
-spec start(atom(), Count :: pos_integer(), Dir :: file:filename(),
            {weft_bench_place:place(), weft_bench_nodes:nodes()}) ->
          {store(), Programs :: [port()]}.
start(Store, Count, Dir, {Place, Nodes}) ->
    {Clients, Peers} = lists:split(Count, call(Nodes, free_ports, [2 * Count])),
    Programs = [begin
                    Own = filename:join(Dir, integer_to_list(Number)),
                    ok = filelib:ensure_path(Own),
                    Command = [os:find_executable(program(Store))
                               | arguments(Store, Number, Own, Clients, Peers)],
                    run(weft_bench_place:command(Place, near, Command), Own ++ ".log")
                end || Number <- lists:seq(1, Count)],
    Running = #{store => Store, ports => Clients},
    try ready(Running, Count, Nodes, erlang:monotonic_time(millisecond) + ?READY_MS) of
        ok -> {Running, Programs}
    catch
        Class:Reason:Stack ->
            ok = stop(Programs),
            erlang:raise(Class, Reason, Stack)
    end.

call(Nodes, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, {n, 1}, ?MODULE, Function, {Arguments, ?CALL_MS}).

arguments(etcd, Number, Dir, Clients, Peers) ->
    Url = fun(Port) -> "http://127.0.0.1:" ++ integer_to_list(Port) end,
    Name = fun(N) -> "e" ++ integer_to_list(N) end,
    Client = Url(lists:nth(Number, Clients)),
    Peer = Url(lists:nth(Number, Peers)),
    Cluster = lists:join(",", [[Name(N), "=", Url(Port)]
                               || {N, Port} <- lists:zip(lists:seq(1, length(Peers)), Peers)]),
    ["--name", Name(Number), "--data-dir", Dir, "--listen-client-urls", Client,
     "--advertise-client-urls", Client, "--listen-peer-urls", Peer,
     "--initial-advertise-peer-urls", Peer, "--initial-cluster", lists:flatten(Cluster),
     "--initial-cluster-state", "new", "--log-level", "error"];
arguments(Redis, Number, Dir, [First | _] = Clients, _Peers) ->
    ["--port", integer_to_list(lists:nth(Number, Clients)), "--bind", "127.0.0.1", "--dir", Dir,
     "--save", ""]
        ++ case Redis of
               redis -> ["--appendonly", "no"];
               redis_disk -> ["--appendonly", "yes", "--appendfsync", "always"]
           end
        ++ lists:append([["--replicaof", "127.0.0.1", integer_to_list(First)] || Number > 1]).

run({Program, Arguments}, Log) ->
    open_port({spawn_executable, "/bin/sh"},
              [{args, ["-c", ?SCRIPT, "sh", Log, Program | Arguments]}, exit_status]).

%% @private
-spec free_ports(Count :: pos_integer()) -> [inet:port_number()].
free_ports(Count) ->
    Sockets = [element(2, gen_tcp:listen(0, [{ip, ?HOST}])) || _ <- lists:seq(1, Count)],
    Ports = [element(2, inet:port(Socket)) || Socket <- Sockets],
    [ok = gen_tcp:close(Socket) || Socket <- Sockets],
    Ports.

ready(#{store := Store} = Running, Count, Nodes, DeadlineMs) ->
    case call(Nodes, is_ready, [Running, Count]) of
        true -> ok;
        false ->
            erlang:monotonic_time(millisecond) < DeadlineMs orelse error({not_ready, Store}),
            receive after ?AGAIN_MS -> ready(Running, Count, Nodes, DeadlineMs) end
    end.

%% @private Are all copies there?
-spec is_ready(store(), Count :: pos_integer()) -> boolean().
is_ready(#{store := Store} = Running, Count) ->
    try has_all(Store, Count, Running)
    catch error:_NotYet -> false
    end.

has_all(etcd, Count, Running) ->
    lists:all(fun(Number) ->
                  ok =:= ask({put, <<"ready">>, <<"1">>}, connect(Running, Number))
              end, lists:seq(1, Count));
has_all(_Redis, Count, Running) ->
    {_, Socket, _} = connect(Running, 1),
    ok = gen_tcp:send(Socket, [command(["SET", "ready", "1"]),
                               command(["WAIT", integer_to_list(Count - 1), "1000"])]),
    Expected = iolist_to_binary(["+OK\r\n:", integer_to_list(Count - 1), "\r\n"]),
    {ok, Expected} = gen_tcp:recv(Socket, byte_size(Expected), ?ANSWER_MS),
    true.

%% @doc Kills one of them, and waits for that.
-spec kill(Program :: port()) -> ok.
kill(Program) ->
    true = port_command(Program, "now\n"),
    receive {Program, {exit_status, _}} -> ok end.

%% @doc Ends them, and waits for that.
-spec stop(Programs :: [port()]) -> ok.
stop(Programs) ->
    OsPids = [Pid || Port <- Programs, {os_pid, Pid} <- [erlang:port_info(Port, os_pid)]],
    [catch_closed(Port) || Port <- Programs],
    DeadlineMs = erlang:monotonic_time(millisecond) + ?STOP_MS,
    lists:foreach(fun(Pid) -> gone(Pid, DeadlineMs) end, OsPids).

catch_closed(Port) ->
    try port_close(Port)
    catch error:badarg -> true
    end.

gone(Pid, DeadlineMs) ->
    case filelib:is_dir("/proc/" ++ integer_to_list(Pid))
        andalso erlang:monotonic_time(millisecond) < DeadlineMs of
        true -> receive after ?AGAIN_MS -> gone(Pid, DeadlineMs) end;
        false -> ok
    end.

%% --- clients ----------------------------------------------------------------------------------

%% @private Redis takes writes at the first one only; clients of etcd are spread.
connect(#{store := Store, ports := Ports}, Number) ->
    Port = case Store of
               etcd -> lists:nth(Number rem length(Ports) + 1, Ports);
               _ -> hd(Ports)
           end,
    {ok, Socket} = gen_tcp:connect(?HOST, Port, [binary, {active, false}, {nodelay, true}]),
    {Store, Socket, integer_to_list(Port)}.

%% @private A connection that has failed is not used again: a late answer would be taken for that of
%% the next request.
ask(Request, {_Store, Socket, _Port} = Connection) ->
    try answer(Request, Connection)
    catch
        throw:{connection, Reason} ->
            ok = gen_tcp:close(Socket),
            {error, Reason}
    end.

answer({get, Key}, {etcd, Socket, Port}) ->
    case http("/v3/kv/range", #{key => base64:encode(Key)}, Socket, Port) of
        {ok, #{<<"kvs">> := [_]}} -> ok;
        {ok, _} -> {error, not_found};
        {error, Reason} -> {error, Reason}
    end;
answer({put, Key, Value}, {etcd, Socket, Port}) ->
    case http("/v3/kv/put", #{key => base64:encode(Key), value => base64:encode(Value)}, Socket,
              Port) of
        {ok, #{<<"header">> := _}} -> ok;
        {ok, Other} -> {error, Other};
        {error, Reason} -> {error, Reason}
    end;
answer({get, Key}, {_Redis, Socket, _}) ->
    ok = checked(gen_tcp:send(Socket, command(["GET", Key]))),
    case line(Socket) of
        <<"$-1\r\n">> -> {error, not_found};
        <<"$", Size/binary>> ->
            Bytes = binary_to_integer(string:trim(Size)),
            <<_:Bytes/binary, "\r\n">> = received(Socket, Bytes + 2),
            ok;
        Other -> {error, Other}
    end;
answer({put, Key, Value}, {redis, Socket, _}) ->
    ok = checked(gen_tcp:send(Socket, command(["SET", Key, Value]))),
    case line(Socket) of
        <<"+OK\r\n">> -> ok;
        Other -> {error, Other}
    end;
%% With the answer of one replica that has it.
answer({put, Key, Value}, {redis_disk, Socket, _}) ->
    ok = checked(gen_tcp:send(Socket, [command(["SET", Key, Value]),
                                       command(["WAIT", "1", "1000"])])),
    case {line(Socket), line(Socket)} of
        {<<"+OK\r\n">>, <<":", Count, "\r\n">>} when Count >= $1 -> ok;
        Other -> {error, Other}
    end.

command(Words) ->
    [$*, integer_to_list(length(Words)), "\r\n"
     | [[$$, integer_to_list(iolist_size(Word)), "\r\n", Word, "\r\n"] || Word <- Words]].

line(Socket) ->
    ok = checked(inet:setopts(Socket, [{packet, line}])),
    Line = received(Socket, 0),
    ok = checked(inet:setopts(Socket, [{packet, raw}])),
    Line.

received(Socket, Length) -> checked(gen_tcp:recv(Socket, Length, ?ANSWER_MS)).

checked(ok) -> ok;
checked({ok, Received}) -> Received;
checked({error, Reason}) -> throw({connection, Reason}).

http(Path, Json, Socket, Port) ->
    Body = weft_json:encode(Json),
    Head = ["POST ", Path, " HTTP/1.1\r\nHost: 127.0.0.1:", Port,
            "\r\nContent-Type: application/json\r\nContent-Length: ",
            integer_to_list(iolist_size(Body)), "\r\n\r\n"],
    ok = checked(gen_tcp:send(Socket, [Head, Body])),
    ok = checked(inet:setopts(Socket, [{packet, http_bin}])),
    {http_response, _, Status, _} = received(Socket, 0),
    Length = length_of(Socket, none),
    ok = checked(inet:setopts(Socket, [{packet, raw}])),
    Bytes = received(Socket, Length),
    case {Status, weft_json:decode(Bytes)} of
        {200, {ok, Answer}} -> {ok, Answer};
        _ -> {error, {Status, Bytes}}
    end.

length_of(Socket, Length) ->
    case received(Socket, 0) of
        {http_header, _, 'Content-Length', _, Value} ->
            length_of(Socket, binary_to_integer(Value));
        {http_header, _, _, _, _} -> length_of(Socket, Length);
        http_eoh when is_integer(Length) -> Length
    end.
