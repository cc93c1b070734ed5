%% SPDX-License-Identifier: Apache-2.0
%% @doc What a benchmark run leaves behind, and how to read it: the contract between the harness
%% and whoever makes something of its numbers.
%%
%% A run has a directory with two files:
%%
%% `results.csv': a line of column names, then one line per repetition and metric, appended as the
%% run goes on. A run that was cut has the lines it had.
%%
%% ```
%% run           name of the run, its start: 20260131T093000
%% suite         the workload's group: a to k, orbit, aco, de_bench, im, city,
%%               store, rest, hour
%% workload      small | bulk | both_ways | call_beside_bulk | call_beside_flood |
%%               call_beside_large | unicast | echo | key_value | key_value_paced | terms | maps |
%%               slow_receiver | fan_out | peers | call | call_paused | erpc | rpc | mesh_calls |
%%               call_to_busy | call_to_busy_one | call_to_high | call_from_busy | flood_to_busy |
%%               flood_from_busy | orbit |
%%               orbit_grouped (both _uneven, too) | aco_tl | aco_ml | aco_gr | aco_sr |
%%               aco_quality | aco_gr_steady | aco_gr_killed | aco_sr_steady | aco_sr_killed |
%%               de_global | de_names | de_size | de_compute | de_heavy | de_server |
%%               de_calls | im_rd | im_rsd (both also _steady, _killed, _emptied, _grown) |
%%               city | city_districts | city_weather | phold |
%%               riak_spawned | riak_supervised | riak_get | riak_insert | riak_update
%%               (all also _rate, the last three also _rings) | riak_insert_disk |
%%               riak_elasticity | riak_availability |
%%               vnode_echo | vnode_quorum | vnode_gossip | ads | crdt_counter | crdt_set | form |
%%               idle | hour | connection
%% variant       what carried it, see weft_bench_variant: stock, stock_tls, weft_1, weft_4, weft_8,
%%               weft_tls_1, weft_tls_4, weft_gateway, stock_relay, channel, channel_8, stock_mesh,
%%               weft_mesh, weft_swim, weft_groups, weft_peers
%% size_bytes    payload of a message (of a background message, beside calls)
%% pairs         concurrent senders, callers or actors; nodes for fan_out, mesh_calls, orbit, aco,
%%               de_bench, im, city, phold, riak_*, form, idle, hour and connection; clients for
%%               riak_spawned* and riak_supervised*; peers for peers
%% streams       background senders; processes that compute, on a busy node; for mesh_calls the
%%               callers on each node; for orbit the size of its space, for aco the number of
%%               colonies; for de_bench what is varied, see weft_de_bench_workload; for im and
%%               riak_* the number of clients (for riak_spawned* and riak_supervised* of nodes);
%%               for city and phold the last tick
%% link          label: loopback | 1ms-800mbit | 20ms-400mbit-1% | 20ms-400mbit-128KB ...
%% rtt_ms        of the emulated link, 0 on loopback
%% rate_mbit     0: not limited
%% loss_percent
%% repetition    1, 2, ...: repetition N of all variants ran next to each other
%% metric        name, see metrics/0
%% unit          of the value
%% value         a number
%% at_ms         since the beginning of the measurement, for metrics that are a series, else 0
%% note          text, mostly empty
%% '''
%%
%% A cell is what all variants did alike: suite, workload, size_bytes, pairs, streams, link. Lines
%% with the metric `skipped' (this variant cannot do it here, once per cell) or `failed' (this
%% repetition went wrong) have the value 0 and the reason as note.
%%
%% `environment.csv': `key,value' lines about the machine and the run, see weft_bench_environment.
-module(weft_report_record).

-export([columns/0, metrics/0, header/0, line/1, read/1, cell/1, results_file/1,
         environment_file/1, read_environment/1,
         write_environment/2, variants/0]).
-export_type([row/0, cell/0]).

-define(COLUMNS, 17).

%% Keys are the columns. Written rows may have atoms or strings for text; read ones have binaries.
-type row() :: #{run := text(), suite := text(), workload := text(), variant := text(),
                 size_bytes := non_neg_integer(), pairs := non_neg_integer(),
                 streams := non_neg_integer(), link := text(), rtt_ms := number(),
                 rate_mbit := number(), loss_percent := number(), repetition := pos_integer(),
                 metric := text(), unit := text(), value := number(), at_ms := number(),
                 note := text()}.
-type text() :: atom() | unicode:chardata().
-type cell() :: {Suite :: text(), Workload :: text(), SizeBytes :: non_neg_integer(),
                 Pairs :: non_neg_integer(), Streams :: non_neg_integer(), Link :: text()}.

%% @doc The columns, in the order of the file.
-spec columns() -> [{Column :: atom(), text | integer | number}].
columns() ->
    [{run, text}, {suite, text}, {workload, text}, {variant, text}, {size_bytes, integer},
     {pairs, integer}, {streams, integer}, {link, text}, {rtt_ms, number}, {rate_mbit, number},
     {loss_percent, number}, {repetition, integer}, {metric, text}, {unit, text},
     {value, number}, {at_ms, number}, {note, text}].

%% @doc All metrics: name, unit, whether more or less is better, meaning.
-spec metrics() -> [{Metric :: atom(), Unit :: string(), more | less | none, string()}].
metrics() ->
    [{messages_per_s, "1/s", more, "messages received per second, all pairs together"},
     {megabytes_per_s, "MB/s", more, "payload received per second, 10^6 bytes"},
     {cpu_us_per_message, "us", less, "user and system time of all nodes, per message"},
     {slower_megabytes_per_s, "MB/s", more, "payload of the slower of two directions"},
     {latency_p50_us, "us", less, "half of the calls took at most this"},
     {latency_p99_us, "us", less, "99 of 100 calls took at most this (the longest, if below 100)"},
     {latency_p999_us, "us", less, "999 of 1000 calls took at most this"},
     {latency_max_us, "us", less, "the longest call"},
     {response_p99_us, "us", less, "99 of 100 took at most this, from when they were due"},
     {calls, "calls", none, "how many calls the latencies are taken from"},
     {calls_per_s, "1/s", more, "calls or requests answered per second, all callers together"},
     {duration_s, "s", less, "until all was received"},
     {run_us, "us", less, "one iteration of a benchmark of BenchErl, or one phase of it"},
     {sender_memory_bytes, "bytes", none, "memory of the sending node, a series"},
     {receiver_memory_bytes, "bytes", none, "memory of the receiving node, a series"},
     {sender_growth_bytes, "bytes", less, "most memory of the sending node, less that before"},
     {receiver_growth_bytes, "bytes", less, "the same of the receiving node"},
     {lookup_ns, "ns", less, "one lookup of the way to a peer"},
     {cold_lookup_ns, "ns", less, "the same, each time of another peer"},
     {cost_error_percent, "%", less, "by how much the best solution costs more than the known one"},
     {cost, "", none, "cost of the best solution"},
     {kills, "", none, "processes that were killed"},
     {delivered_per_min, "/min", more, "messages heard per minute by whom they were for"},
     {typed_per_min, "/min", none, "messages per minute that people would say if each was heard at "
      "once"},
     {lost_messages, "", less, "messages that were given up, but for those of lost servers"},
     {restarts, "", none, "processes that were started in the place of another one"},
     {names, "", none, "names that were registered"},
     {events_per_s, "1/s", more, "events of a simulation handled per second, by all actors"},
     {failed_operations, "", less, "operations that failed"},
     {unfinished_operations, "", none, "of these, those that were not done in time at the end"},
     {last_half_percent, "%", none, "what the last half of the time did, of what the first did"},
     {stalled_s, "s", less, "time in which something waited that took a second or more since due"},
     {repeated_operations, "", none, "times that one was sent to another node after an error"}]
        ++ background_metrics() ++ traffic_metrics() ++ operation_metrics() ++ busy_metrics()
        ++ store_metrics() ++ rest_metrics() ++ table_metrics() ++ circumstances()
        ++ [{skipped, "", none, "not possible, see note"},
            {failed, "", none, "went wrong, see note"}].

background_metrics() ->
    [{background_megabytes_per_s, "MB/s", more, "payload of the background streams"},
     {background_messages_per_s, "1/s", more, "messages of the background streams"}].

operation_metrics() ->
    [{list_to_atom(Operation ++ What), "us", less, Text ++ " of this operation"}
     || Operation <- ["spawning", "remote_call", "rex_call", "gen_server_call", "fsm_server_call",
                      "register", "whereis", "unregister", "local_register", "local_whereis",
                      "local_unregister"],
        {What, Text} <- [{"_mean_us", "mean time"}, {"_p99_us", "p99"}]]
        ++ [{list_to_atom(Operation ++ "_count"), "", none, "how many times these are taken from"}
            || Operation <- ["register", "whereis", "unregister"]].

traffic_metrics() ->
    [{connections_max, "", less, "TCP connections of the node that has most of them"},
     {connections_mean, "", less, "TCP connections per node"},
     {received_packets, "", less, "what all nodes received, as their carrier cuts it"},
     {received_bytes, "bytes", less, "what all nodes received since they were started"},
     {run_packets, "", less, "of the packets those that came while the program ran"},
     {program_messages, "", none, "messages of the program, on one node or between two"}].

busy_metrics() ->
    [{timeouts, "calls", less, "calls that were given up"},
     {nodedowns, "", less, "nodes that were lost"},
     {watched_percent, "%", less, "what it takes with monitoring, of that without"},
     {watched_rate_percent, "%", more, "throughput with monitoring, of that without"},
     {computed_percent, "%", more,
      "work of a node's own processes for its processor time, of that without traffic"},
     {computed_in_time_percent, "%", more, "the same for time that went by"}].

store_metrics() ->
    [{asked_per_s, "1/s", none, "requests per second that were due"},
     {store_cpu_us, "us", less, "user and system time of the nodes of a store, per operation"},
     {clients_cpu_us, "us", none, "the same of the nodes of its clients"},
     {store_rest_percent, "%", less, "of one core, what the nodes of a store take at rest"},
     {supervisor_us, "us", less, "what one supervisor takes to start a request and to see its end"},
     {reductions_per_call, "", none, "reductions of these nodes, per operation"},
     {collections_per_call, "", none, "garbage collections of their processes, per operation"},
     {switches_per_call, "", none, "context switches of their threads, per operation"},
     {writes_per_call, "", none, "writes to their sockets, per operation"},
     {call_received_bytes, "bytes", none, "what these nodes received, per operation"},
     {call_written_bytes, "bytes", none, "what they wrote to disks, in whole pages, per operation"},
     {store_node_bytes, "bytes", none, "resident memory of one of them at the end, on average"},
     {mailbox_max, "", less, "most messages that waited for one registered process of a node"},
     {mailbox_all_max, "", less, "the same of all its processes, looked at once in a second"},
     {mailbox_nodes, "", none, "on how many nodes that was looked at"},
     {mailbox, "", none, "these messages over the time, a series"},
     {operations_per_s, "1/s", none, "operations that were done in a second, a series"},
     {recovery_kill_s, "s", less,
      "from a kill until 95 % of the throughput before the first; the longest"},
     {recovery_start_s, "s", less, "from the start of killed nodes until the same"},
     {read_keys, "", none, "inserted keys that were read at the end"},
     {lost_keys, "", less, "of these, those that were not there"},
     {state_bytes, "bytes", less, "a state of data that merges"},
     {delta_bytes, "bytes", less, "one change of it"},
     {server_received_bytes, "bytes", less, "of what all received, what the first node did"},
     {server_cpu_percent, "%", less, "user and system time of the first node, of one core"},
     {nodes_cpu_percent, "%", less, "the same of all nodes together"},
     {server_mailbox_max, "", less, "most messages that waited for one process of the first node"},
     {client_server_bytes, "bytes", less, "what all nodes would receive, if one relayed it all"},
     {client_server_most_bytes, "bytes", less, "of it what one node would receive, at most"},
     {peer_to_peer_bytes, "bytes", less, "what all would receive, peer to peer"},
     {peer_to_peer_most_bytes, "bytes", less, "of it what one node would receive, at most"},
     {shown_too_often, "", less, "how often something was shown after that was enough"}].

rest_metrics() ->
    [{formed_s, "s", less, "until each node was connected with all others"},
     {forming_cpu_ms, "ms", less, "user and system time of a node until then"},
     {idle_percent, "%", less, "user and system time of a node at rest, of one core"},
     {idle_wakeups_per_s, "1/s", less, "how often a thread of a node at rest was woken"},
     {idle_changed_percent, "%", none, "how much more of that in the last ten minutes of an hour "
      "than in the first ten"},
     {memory_changed_percent, "%", none, "the same of the resident memory of a node"},
     {idle_minute_percent, "%", none, "user and system time of a node in each minute, a series"},
     {node_memory_bytes, "bytes", none, "resident memory of a node, a series"},
     {connection_bytes, "bytes", less, "memory of a node for each connection, just after calls"},
     {connection_rest_bytes, "bytes", less, "the same after some time at rest"},
     {connection_processes, "", less, "processes of a node for each connection"}].

%% Of tables that commands write (`weft_bench_tables').
table_metrics() ->
    [{granted_locks, "", more, "locks that were granted"},
     {hops_mean, "", less, "links to another node"},
     {idle_packets_per_s, "1/s", less, "packets that a node at rest received"},
     {idle_bytes_per_s, "1/s", less, "bytes that a node at rest received"},
     {packets_uniform, "", less, "packets of a node for messages to any worker alike"},
     {packets_local, "", less, "the same where nine of ten are for its own group"},
     {counted, "", less, "what was counted, for one unit"}]
        ++ [{list_to_atom(lists:concat(["call_", Links, "_us"])), "us", less,
             "half of the calls over so many links took at most this"} || Links <- [1, 2, 3]].

circumstances() ->
    [{connect_s, "s", none, "how long it took to connect all nodes, before the warm-up"},
     {warm_up_s, "s", none, "how long the warm-up took"},
     {measured_s, "s", none, "how long was measured, after the warm-up"},
     {vms_per_core, "", none, "nodes of the cluster for each core of the machine"},
     {clusters_at_once, "", none, "clusters that shared the machine, all nodes of which are in "
      "vms_per_core"},
     {quota_percent, "%", none, "of a core, which each node could use at most"},
     {throttled_percent, "%", none, "periods in which nodes wanted more than that, of all in which "
      "they ran"},
     {quota_used_percent, "%", none, "processor time of all nodes, of their quotas"},
     {machine_busy_percent, "%", none, "of all cores, with all that ran meanwhile"}].

%% @doc First line of results.csv.
-spec header() -> binary().
header() ->
    weft_report_csv:line([Column || {Column, _} <- columns()]).

%% @doc The line of a row. A column that is missing is an error.
-spec line(row()) -> binary().
line(Row) ->
    weft_report_csv:line([maps:get(Column, Row) || {Column, _} <- columns()]).

%% @doc What identifies the cell of a row.
-spec cell(row()) -> cell().
cell(#{suite := Suite, workload := Workload, size_bytes := SizeBytes, pairs := Pairs,
       streams := Streams, link := Link}) ->
    {Suite, Workload, SizeBytes, Pairs, Streams, Link}.

-spec results_file(Dir :: file:filename()) -> file:filename().
results_file(Dir) -> filename:join(Dir, "results.csv").

-spec environment_file(Dir :: file:filename()) -> file:filename().
environment_file(Dir) -> filename:join(Dir, "environment.csv").

%% @doc All rows of a run. The error is a text that names the file and the line.
-spec read(Dir :: file:filename()) -> {ok, [row()]} | {error, string()}.
read(Dir) ->
    Names = [atom_to_binary(Column) || {Column, _} <- columns()],
    case parse(results_file(Dir)) of
        {ok, [Names | Lines]} -> rows(results_file(Dir), Lines);
        {ok, _} -> error_text("~ts: the first line does not name the columns of a benchmark run",
                              [results_file(Dir)]);
        Error -> Error
    end.

rows(File, Lines) ->
    try
        {ok, [row(Line) || Line <- lists:zip(lists:seq(2, length(Lines) + 1), Lines)]}
    catch
        throw:{bad_line, Number, Why} -> error_text("~ts, record ~b: ~ts", [File, Number, Why])
    end.

row({Number, Fields}) when length(Fields) =:= ?COLUMNS ->
    maps:from_list([{Column, value(Number, Column, Type, Field)}
                    || {{Column, Type}, Field} <- lists:zip(columns(), Fields)]);
row({Number, Fields}) ->
    throw({bad_line, Number, io_lib:format("~b fields, expected ~b",
                                           [length(Fields), ?COLUMNS])}).

value(_Number, _Column, text, Field) ->
    Field;
value(Number, Column, Type, Field) ->
    try
        number(Type, Field)
    catch
        error:badarg -> throw({bad_line, Number, io_lib:format("~ts is \"~ts\", expected ~ts",
                                                               [Column, Field, Type])})
    end.

number(integer, Field) ->
    binary_to_integer(Field);
number(number, Field) ->
    case binary:match(Field, <<".">>) of
        nomatch -> binary_to_integer(Field);
        _ -> binary_to_float(Field)
    end.

%% @doc All variants, in the order of reports; what they are is in weft_bench_variant.
-spec variants() -> [atom(), ...].
variants() ->
    [stock, weft_1, weft_4, weft_8, weft_gateway, stock_relay, channel, channel_8, stock_tls,
     weft_tls_1, weft_tls_4, stock_mesh, weft_mesh, weft_swim, weft_groups, weft_peers].

%% @doc Writes what is known of the machine and the run, in the order given.
-spec write_environment(Dir :: file:filename(), [{Key :: string(), Value :: string()}]) -> ok.
write_environment(Dir, Pairs) ->
    weft_report_file:write(environment_file(Dir),
                           [weft_report_csv:line([Key, Value]) || {Key, Value} <- Pairs]).

%% @doc What is known of the machine and the run, by name.
-spec read_environment(Dir :: file:filename()) ->
          {ok, #{Key :: binary() => Value :: binary()}} | {error, string()}.
read_environment(Dir) ->
    case parse(environment_file(Dir)) of
        {ok, Lines} -> {ok, maps:from_list([{Key, Value} || [Key, Value] <- Lines])};
        Error -> Error
    end.

parse(File) ->
    case file:read_file(File) of
        {ok, Text} -> {ok, weft_report_csv:parse(Text)};
        {error, Reason} -> error_text("~ts: ~ts", [File, file:format_error(Reason)])
    end.

error_text(Format, Arguments) ->
    {error, lists:flatten(io_lib:format(Format, Arguments))}.
