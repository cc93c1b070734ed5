%% SPDX-License-Identifier: Apache-2.0
%% @doc `bin/bench stores': get and put of the store of weft beside Mnesia, Khepri, Redis and etcd,
%% with three copies each, on this machine. What is acknowledged differs most between them, so each
%% figure has its durability beside it (`durability/1').
%%
%% Three nodes or processes of each store run alone, one store after the other, and that in turns
%% (`--repetitions'). Clients are processes: those of weft, Mnesia and Khepri run on the first of
%% the nodes that have the data, as programs use these; those of Redis and etcd run on a node of
%% their own, and talk with them over sockets. All are in the same kind of place
%% (`weft_bench_place'). Values have 1 KB, keys are drawn from a thousand that are there. A store
%% whose program or library is not installed is left out, with a word. At last one of the three is
%% killed while clients put (`weft_stores_losses'). Writes DIR/stores.csv, a row as soon as it is
%% measured. What fails is told and has a row without numbers, and the others are still measured.
-module(weft_stores).

-export([command/0]).
-export([answer_ms/1, row/6, killed/3, tried/3, table/2, status/1]).

-define(STORES, [weft, weft_disk, weft_strong, mnesia_dirty, mnesia, mnesia_disc, khepri,
                 khepri_consistent, redis, redis_disk, etcd]).
-define(COPIES, 3).
-define(KEYS, 1000).
-define(VALUE_BYTES, 1024).
-define(CALL_MS, 60000).
-define(COLUMNS, [store, operation, clients, repetition, calls, errors, calls_per_s, p50_us,
                  p99_us, lost]).

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "get and put of weft_kv beside Mnesia, Khepri, Redis and etcd",
      arguments =>
          [#{name => stores, long => "-stores", type => {list, {atom, ?STORES}},
             default => ?STORES, value => "S,S", help => "only these"},
           #{name => clients, long => "-clients", type => {list, {integer, [{min, 1}]}},
             default => [1, 16], value => "N,N", help => "so many at a time"},
           #{name => seconds, long => "-seconds", type => {integer, [{min, 1}]}, default => 2,
             value => "S", help => "for how long each"},
           #{name => repetitions, long => "-repetitions", type => {integer, [{min, 1}]},
             default => 3, value => "N", help => "turns of all stores"}
           | weft_bench_arguments:common("where the results go", "stores")],
      handler => fun(Options) -> weft_bench_arguments:recorded(Options, fun run/1) end}.

run(#{stores := Stores, repetitions := Repetitions, out := Dir} = Options) ->
    File = filename:join(Dir, "stores.csv"),
    ok = weft_bench_environment:write(Dir, Options, [{stock_mesh, {cluster, shape(?COPIES)}}]),
    There = [Store || Store <- Stores, is_there(Store)],
    Measure = fun(Write) ->
                      lists:append([measured(Store, Repetition, Write, Options)
                                    || Repetition <- lists:seq(1, Repetitions), Store <- There])
              end,
    Measured = weft_report_file:rows(File, head(), fun line/1, Measure),
    io:format("~n~ts~nfile: ~ts~n", [table(There, [Row || #{} = Row <- Measured]), File]),
    status(Measured).

%% @private Failed is, too, what has done nothing but fail: it was not measured.
-spec status([map() | {failed, unicode:chardata()}]) -> ok | {failed, unicode:chardata()}.
status(Measured) ->
    Only = [io_lib:format("each ~s of ~s", [Operation, Store])
            || {Store, Operation} <- lists:usort([{Store, Operation}
                                                  || #{store := Store, operation := Operation,
                                                       calls := 0, errors := Errors} <- Measured,
                                                     Errors > 0])],
    case [What || {failed, What} <- Measured] ++ Only of
        [] -> ok;
        Failed -> {failed, ["failed: ", lists:join("; ", Failed)]}
    end.

is_there(Store) ->
    Missing = case is_khepri(Store) of
                  true -> weft_stores_khepri:missing();
                  false -> weft_stores_program:missing(Store)
              end,
    case Missing of
        none -> true;
        Text ->
            io:format("~s is not measured: ~ts~n", [Store, Text]),
            false
    end.

is_khepri(Store) -> lists:member(Store, [khepri, khepri_consistent]).

%% --- one store --------------------------------------------------------------------------------

measured(Store, Repetition, Write, #{out := Dir} = Options) ->
    Turn = io_lib:format("~s, turn ~b", [Store, Repetition]),
    io:format("~ts~n", [Turn]),
    Own = filename:absname(filename:join([Dir, "data", Store])),
    _ = file:del_dir_r(Own),
    ok = weft_report_file:directory(Own),
    Failed = fun({Operation, Count}) -> Write(failed(Store, Operation, Count, Repetition)) end,
    Killing = {killed, weft_stores_losses:clients()},
    Rows = fun(Work, Losses) ->
                   Measured = lists:append(
                                [tried([Turn, io_lib:format(", ~s by ~b", [Operation, Count])],
                                       fun() ->
                                           [Write(row(Store, Operation, Count, Repetition, Work,
                                                      Options))]
                                       end, fun() -> Failed(Load) end)
                                 || {Operation, Count} = Load <- loads(Options)]),
                   Measured ++ tried([Turn, ", one killed"],
                                     fun() -> [Write(killed(Store, Repetition, Losses()))] end,
                                     fun() -> Failed(Killing) end)
           end,
    try tried(Turn, fun() ->
                        case lists:member(Store, [redis, redis_disk, etcd]) of
                            true -> of_program(Store, Own, Dir, Rows);
                            false -> of_nodes(Store, Own, Dir, Rows)
                        end
                    end, fun() -> lists:foreach(Failed, loads(Options) ++ [Killing]) end)
    after file:del_dir_r(Own)
    end.

%% @private What is measured, or that it failed, which is told and written. What is thrown ends the
%% command (`weft_report_file').
-spec tried(What :: unicode:chardata(), fun(() -> [map() | {failed, unicode:chardata()}]),
            Failed :: fun(() -> term())) -> [map() | {failed, unicode:chardata()}].
tried(What, Measure, Failed) ->
    try Measure()
    catch
        Class:Reason:Stack when Class =/= throw ->
            Why = weft_bench_error:text("~0tp", [{Class, Reason, hd(Stack ++ [none])}]),
            io:format(standard_error, "failed: ~ts: ~ts~n", [What, Why]),
            _ = Failed(),
            [{failed, What}]
    end.

%% In this order, after one fill, which warms up what puts need.
loads(#{clients := Counts}) ->
    [{Operation, Count} || Count <- Counts, Operation <- [put, get]].

of_program(Store, Own, Dir, Rows) ->
    weft_bench_cluster:in_place(
      stock_mesh, {cluster, shape(1)}, Dir,
      fun(Place, Nodes) ->
          {Running, Programs} = weft_stores_program:start(Store, ?COPIES, Own, {Place, Nodes}),
          Losses = fun() ->
                       #{ports := [_ | Others]} = Running,
                       weft_stores_losses:measure(
                         weft_stores_program,
                         {Running, [Running#{ports := [Port]} || Port <- Others]}, {n, 1},
                         filename:join(Own, "acknowledged"),
                         fun() -> weft_stores_program:kill(hd(Programs)) end, Nodes)
                   end,
          try Rows(work(weft_stores_program, Running, Nodes), Losses)
          after weft_stores_program:stop(Programs)
          end
      end).

of_nodes(Store, Own, Dir, Rows) ->
    Variant = case lists:prefix("weft", atom_to_list(Store)) of
                  true -> weft_mesh;
                  false -> stock_mesh
              end,
    Module = case is_khepri(Store) of
                 true -> weft_stores_khepri;
                 false -> weft_stores_nodes
             end,
    weft_bench_cluster:with_nodes(
      Variant, shape(?COPIES), Dir,
      fun(Nodes) ->
          ok = Module:start(Store, Own, Nodes),
          Losses = fun() ->
                       weft_stores_losses:measure(
                         Module, {Store, [Store]}, {n, 2}, filename:join(Own, "acknowledged"),
                         fun() -> weft_bench_nodes:kill(Nodes, {n, 1}) end, Nodes)
                   end,
          Rows(work(Module, Store, Nodes), Losses)
      end).

%% What they are compared with runs on all cores.
shape(Count) -> (weft_bench_cluster:shape(Count, []))#{schedulers => all}.

%% What clients on the first node do for a load, when all keys are there.
work(Module, Store, Nodes) ->
    Work = fun(Load) ->
               weft_bench_nodes:call(Nodes, {n, 1}, weft_stores_clients, run,
                                     {[Module, Store, Load], answer_ms(Load)})
           end,
    _ = Work(fill()),
    Work.

%% @private How long a load may take, with all that it takes to end.
-spec answer_ms(weft_stores_clients:load()) -> pos_integer().
answer_ms(#{ms := Ms}) -> Ms + ?CALL_MS.

fill() ->
    #{operation => fill, clients => 4, keys => ?KEYS, value_bytes => ?VALUE_BYTES, ms => 0}.

%% @private The row of one measurement; what has done nothing has no times.
-spec row(Store :: atom(), get | put, Clients :: pos_integer(), Repetition :: pos_integer(),
          Work :: fun((weft_stores_clients:load()) -> weft_stores_clients:outcome()),
          #{seconds := pos_integer(), _ => _}) -> map().
row(Store, Operation, Count, Repetition, Work, #{seconds := Seconds}) ->
    #{latencies := LatenciesUs, errors := Errors, elapsed_us := ElapsedUs} =
        Work((fill())#{operation := Operation, clients := Count, ms := Seconds * 1000}),
    {P50, P99} = percentiles(LatenciesUs),
    Calls = length(LatenciesUs),
    #{store => Store, operation => Operation, clients => Count, repetition => Repetition,
      calls => Calls, errors => Errors, calls_per_s => Calls * 1.0e6 / ElapsedUs, p50_us => P50,
      p99_us => P99, lost => none}.

%% @private The row of what was acknowledged before one was killed, and of what the others have not.
-spec killed(Store :: atom(), Repetition :: pos_integer(),
             {Acknowledged :: pos_integer(), Lost :: non_neg_integer()}) -> map().
killed(Store, Repetition, {Acknowledged, Lost}) ->
    #{store => Store, operation => killed, clients => weft_stores_losses:clients(),
      repetition => Repetition, calls => Acknowledged, errors => 0, calls_per_s => none,
      p50_us => none, p99_us => none, lost => Lost}.

%% For who compares runs: it is not only missing.
failed(Store, Operation, Count, Repetition) ->
    maps:merge(maps:from_keys(?COLUMNS, none),
               #{store => Store, operation => Operation, clients => Count,
                 repetition => Repetition}).

percentiles([]) ->
    {none, none};
percentiles(LatenciesUs) ->
    #{latency_p50_us := P50, latency_p99_us := P99} =
        weft_report_statistics:latencies(LatenciesUs),
    {P50, P99}.

%% --- what comes of it -------------------------------------------------------------------------

head() -> weft_report_csv:line(?COLUMNS).

line(Row) -> weft_report_csv:line([text(maps:get(Column, Row)) || Column <- ?COLUMNS]).

text(Value) when is_float(Value) -> io_lib:format("~.1f", [Value]);
text(Value) -> io_lib:format("~w", [Value]).

%% @private Medians of the turns, and the errors and losses of all of them.
-spec table(Stores :: [atom()], [map()]) -> unicode:chardata().
table(Stores, Rows) ->
    [io_lib:format("~-17s ~-9s ~7s ~9s ~9s ~9s ~7s  ~s~n",
                   ["store", "operation", "clients", "calls/s", "p50 ms", "p99 ms", "errors",
                    "an acknowledged put is"])
     | [medians(Store, Operation, Count, Of)
        || Operation <- [get, put],
           Count <- lists:usort([Clients || #{clients := Clients} <- Rows]), Store <- Stores,
           [_ | _] = Of <- [[Row || #{store := S, operation := O, clients := C} = Row <- Rows,
                                    S =:= Store, O =:= Operation, C =:= Count]]]]
        ++ [lost(Store, Of) || Store <- Stores,
                               [_ | _] = Of <- [[Row || #{store := S, operation := killed} = Row
                                                            <- Rows, S =:= Store]]].

lost(Store, Of) ->
    Sum = fun(Column) -> lists:sum([maps:get(Column, Row) || Row <- Of]) end,
    io_lib:format("~-17s ~b of ~b acknowledged puts lost when one of three was killed~n",
                  [Store, Sum(lost), Sum(calls)]).

medians(Store, Operation, Count, Of) ->
    Rate = weft_report_statistics:median([PerS || #{calls_per_s := PerS} <- Of]),
    io_lib:format("~-17s ~-9s ~7b ~9.1f ~9ts ~9ts ~7b  ~s~n",
                  [Store, Operation, Count, float(Rate), in_ms(p50_us, Of), in_ms(p99_us, Of),
                   lists:sum([Errors || #{errors := Errors} <- Of]), durability(Store)]).

in_ms(Column, Rows) ->
    case [Us || #{Column := Us} <- Rows, Us =/= none] of
        [] -> "none";
        Times -> io_lib:format("~.3f", [weft_report_statistics:median(Times) / 1000])
    end.

durability(weft) -> "in the memory of two nodes";
durability(weft_disk) -> "synced on the disks of two nodes";
durability(weft_strong) -> "synced on the disks of two nodes, linearizable";
durability(mnesia_dirty) -> "in the memory of one node";
durability(mnesia) -> "in the memory of three nodes";
durability(mnesia_disc) -> "in the memory of three nodes, on disk some time later";
durability(khepri) -> "synced on the disks of two nodes; a get may be behind";
durability(khepri_consistent) -> "synced on the disks of two nodes; a get finds it";
durability(redis) -> "in the memory of one process";
durability(redis_disk) -> "synced on the disk of one process, in the memory of two";
durability(etcd) -> "synced on the disks of two processes, linearizable".
