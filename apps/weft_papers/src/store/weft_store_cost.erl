%% SPDX-License-Identifier: Apache-2.0
%% @doc What a store takes of the machine: what its nodes take while nobody asks, and what they do
%% for each operation, as the emulator and Linux count it (proc(5), `status' and `io').
-module(weft_store_cost).

-export([at_rest/3, node_bytes/2, counts/2, per_call/3, supervisor_us/3]).
-export([counted/0, supervised_us/1]).

%% Without `written' where Linux does not count it.
-type counts() :: #{reductions | collections | switches | writes | received | written =>
                        non_neg_integer()}.

-define(CALL_MS, 30000).
%% So many ask a supervisor that it always has something to do.
-define(ASKING, 8).

%% @doc Processor time of these nodes in microseconds for each second, while nobody asks.
-spec at_rest(weft_bench_nodes:nodes(), [weft_bench_nodes:role()], Ms :: pos_integer()) -> float().
at_rest(Nodes, Roles, Ms) ->
    {SinceUs, Before} = {erlang:monotonic_time(microsecond), cpu_us(Nodes, Roles)},
    receive after Ms -> ok end,
    UsedUs = cpu_us(Nodes, Roles) - Before,
    UsedUs * 1.0e6 / (erlang:monotonic_time(microsecond) - SinceUs).

cpu_us(Nodes, Roles) ->
    lists:sum([weft_bench_nodes:cpu_us_of(weft_bench_nodes:os_pid(Nodes, Role)) || Role <- Roles]).

%% @doc What one of these nodes has in memory, on average.
-spec node_bytes(weft_bench_nodes:nodes(), [weft_bench_nodes:role(), ...]) -> float().
node_bytes(Nodes, Roles) ->
    lists:sum([weft_bench_nodes:resident_bytes(Nodes, Role) || Role <- Roles]) / length(Roles).

%% @doc What these nodes have done so far: function calls (reductions), collections of garbage,
%% switches of their threads, writes to sockets, bytes that came in by these, and bytes that Linux
%% has to write to disks for them, in whole pages of files.
-spec counts(weft_bench_nodes:nodes(), [weft_bench_nodes:role()]) -> counts().
counts(Nodes, Roles) ->
    lists:foldl(fun(Role, Sum) ->
                    Of = weft_bench_nodes:call(Nodes, Role, ?MODULE, counted, {[], ?CALL_MS}),
                    maps:map(fun(Key, Count) -> Count + maps:get(Key, Sum, 0) end, Of)
                end, #{}, Roles).

%% @doc Measurements of each operation, of so many between two counts. What was not counted is left
%% out.
-spec per_call(counts(), counts(), pos_integer()) -> [weft_bench_workload:measurement()].
per_call(Before, After, Calls) ->
    [{Metric, (map_get(Key, After) - map_get(Key, Before)) / Calls}
     || {Key, Metric} <- [{reductions, reductions_per_call}, {collections, collections_per_call},
                          {switches, switches_per_call}, {writes, writes_per_call},
                          {received, call_received_bytes}, {written, call_written_bytes}],
        is_map_key(Key, Before), is_map_key(Key, After)].

%% @doc How long the supervisor of requests of a node takes for one of them, if it never waits for
%% anything else: to start it, and to see its end. These requests do nothing, and so does the node.
-spec supervisor_us(weft_bench_nodes:nodes(), weft_bench_nodes:role(), Ms :: pos_integer()) ->
          float().
supervisor_us(Nodes, Role, Ms) ->
    weft_bench_nodes:call(Nodes, Role, ?MODULE, supervised_us, {[Ms], Ms + ?CALL_MS}).

%% @private
-spec counted() -> counts().
counted() ->
    {Reductions, _} = statistics(exact_reductions),
    {Collections, _, _} = statistics(garbage_collection),
    Counts = #{reductions => Reductions, collections => Collections,
               switches => lists:sum([switches(file:read_file(File))
                                      || File <- filelib:wildcard("/proc/self/task/*/status")]),
               writes => lists:sum([writes(Port)
                                    || Port <- erlang:ports(),
                                       {name, "tcp_inet"} =:= erlang:port_info(Port, name)]),
               received => weft_bench_cluster:received_bytes()},
    maps:merge(Counts, written(file:read_file("/proc/self/io"))).

writes(Socket) ->
    case inet:getstat(Socket, [send_cnt]) of
        {ok, [{send_cnt, Count}]} -> Count;
        {error, _} -> 0
    end.

switches({ok, Status}) ->
    {match, Counts} = re:run(Status, "ctxt_switches:\\s+(\\d+)",
                             [global, {capture, all_but_first, binary}]),
    lists:sum([binary_to_integer(Count) || [Count] <- Counts]);
%% A thread that has ended meanwhile.
switches({error, _}) ->
    0.

written({ok, Io}) ->
    {match, [Bytes]} = re:run(Io, "^write_bytes: (\\d+)",
                              [multiline, {capture, all_but_first, binary}]),
    #{written => binary_to_integer(Bytes)};
written({error, _}) ->
    #{}.

%% @private
-spec supervised_us(Ms :: pos_integer()) -> float().
supervised_us(Ms) ->
    StartUs = erlang:monotonic_time(microsecond),
    EndUs = StartUs + 1000 * Ms,
    Counts = weft_kv_crew:map(fun(_) -> started(EndUs, 0) end, lists:seq(1, ?ASKING), ?ASKING),
    (erlang:monotonic_time(microsecond) - StartUs) / lists:sum(Counts).

%% At least one.
started(EndUs, Count) ->
    {_, Monitor} = weft_kv_request_sup:start(fun() -> ok end),
    receive {'DOWN', Monitor, process, _, _} -> ok end,
    case erlang:monotonic_time(microsecond) < EndUs of
        true -> started(EndUs, Count + 1);
        false -> Count + 1
    end.
