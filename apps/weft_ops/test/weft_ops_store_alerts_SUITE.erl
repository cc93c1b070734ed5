%% SPDX-License-Identifier: Apache-2.0
%% @doc Each alert of the ring, the store and data that merges fires once by a real fault, and none
%% before: three nodes, of which one has a small disk, and a Prometheus that scrapes them and has
%% the rules that are shipped. A suite of the long form.
-module(weft_ops_store_alerts_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, call/4, until/2]).
-import(weft_ops_prometheus, [fires/2, firing/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([each_alert_fires_once/1]).
%% On a node.
-export([work/1]).

-define(NAMES, [a, b, c]).
-define(SILENT_S, 60).
-define(SETTLED_MS, 90000).
-define(DISK_KB, 4096).
%% More than the small disk has.
-define(FILLING, <<0:(8 * 1024 * ?DISK_KB)>>).

suite() -> [{timetrap, {minutes, 15}}].

all() -> [each_alert_fires_once].

init_per_suite(Config) ->
    case {weft_ops_prometheus:find(), os:cmd("unshare -m true 2>&1")} of
        {false, _} -> weft_test_missing:skip("prometheus");
        {_, ""} -> weft_test_nodes:begin_suite(Config);
        {_, Why} -> {skip, "needs a small file system: " ++ Why}
    end.

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

each_alert_fires_once(Config) ->
    Rules = weft_ops_prometheus:rules("weft-store-alerts.yml"),
    Ports = [{Name, weft_test_nodes:free_port()} || Name <- ?NAMES],
    [A, B, C] = Nodes = [start(Name, Ports, Config) || Name <- ?NAMES],
    joined(Nodes),
    [ok = call(Node, weft_crdt, declare, [visits, gcounter]) || Node <- Nodes],
    [ok = counted(Node) || Node <- Nodes],
    until(fun() -> {ok, 3} =:= call(A, weft_crdt, value, [visits]) end, ?SETTLED_MS),
    until(fun() -> lists:all(fun(Bucket) -> all_written(Bucket, A) end, [carts, everywhere, box])
          end, ?SETTLED_MS),
    true = is_pid(call(A, ?MODULE, work, [carts])),
    Dir = filename:join(?config(priv_dir, Config), "prometheus"),
    Server = weft_ops_prometheus:start(Rules, [Port || {_, Port} <- Ports], Dir),
    until(fun() -> {ok, 3.0} =:= weft_ops_prometheus:sum("up", Server) end, ?SETTLED_MS),
    ok = silent(Server),
    Fired = full(A, B, Config, Server) ++ away(A, B, C, Server)
        ++ back_without_its_file(A, B, C, Ports, Config, Server),
    ?assertEqual([], weft_ops_prometheus:alerts(Rules) -- Fired).

all_written(Bucket, A) ->
    lists:all(fun(N) ->
                  element(1, call(A, weft_kv, put, [Bucket, <<N>>, <<"value">>])) =:= ok
              end, lists:seq(1, 20)).

%% Counted by Prometheus itself, over all that time.
silent(Server) ->
    receive after ?SILENT_S * 1000 -> ok end, % pacing: silence takes time
    ?assertEqual([], firing(lists:concat(["[", ?SILENT_S, "s]"]), Server)),
    ok.

%% --- faults -----------------------------------------------------------------------------------

%% Others take the place of the node whose disk is full, until there is room again.
full(A, B, Config, Server) ->
    Filling = filename:join(dir(b, Config), "filling"),
    ?assertEqual({error, enospc}, call(B, file, write_file, [Filling, ?FILLING])),
    Fired = fires(["WeftStoreCannotWrite"], Server),
    ok = call(B, file, delete, [Filling]),
    until(fun() -> 0 =:= of_all([unwritable, hints], [A, B]) end, ?SETTLED_MS),
    Fired.

%% A node that shall leave ends before it has handed over what it has. Writes for it wait on others,
%% and those that need all owners of the key fail.
away(A, B, C, Server) ->
    [ok = call(C, weft_fault, cut, [name(Node)]) || Node <- [A, B]],
    ok = counted(C),
    ok = weft_test_nodes:kill(C),
    ok = call(A, weft_ring, stage, [name(C), leave]),
    {ok, Plan} = call(A, weft_ring, plan, []),
    ok = call(A, weft_ring, commit, [Plan]),
    true = is_pid(call(A, ?MODULE, work, [everywhere])),
    fires(["WeftRingDoesNotSettle", "WeftHintsWait", "WeftStoreErrors"], Server).

%% It is back, hands over and gets what it has missed; but its replica of the strong bucket is gone,
%% and is not filled while one of the others is away. And it has counted what the others had not
%% seen when they took it for gone.
back_without_its_file(A, B, C, Ports, Config, Server) ->
    ok = file:del_dir_r(filename:join(dir(c, Config), "box")),
    until(fun() -> element(1, call(A, weft_crdt, retire, [name(C)])) =:= ok end, ?SETTLED_MS),
    ok = call(B, application, stop, [weft_kv]),
    Again = start(c, Ports, Config),
    ?assertEqual(name(C), name(Again)),
    Fired = fires(["WeftStrongReplicaForgot", "WeftCrdtBarred"], Server),
    {ok, _} = call(B, application, ensure_all_started, [weft_kv]),
    until(fun() -> 2 =:= map_get(voting, map_get(strong, call(Again, weft_kv_stats, read, [])))
          end, ?SETTLED_MS),
    until(fun() -> maps:get(moving, call(A, weft_ring, counts, [])) =:= 0 end, ?SETTLED_MS),
    until(fun() -> of_all([hints], [A]) =:= 0 end, ?SETTLED_MS),
    Fired.

counted(Node) -> call(Node, weft_crdt, update, [visits, {increment, 1}]).

of_all(Keys, Nodes) ->
    lists:sum([map_get(Key, call(Node, weft_kv_stats, read, [])) || Node <- Nodes, Key <- Keys]).

%% --- on a node --------------------------------------------------------------------------------

%% @doc Writes to that bucket all the time, whether it succeeds or not.
work(Bucket) -> spawn(fun() -> writes(Bucket, 0) end).

writes(Bucket, Number) ->
    _ = weft_kv:put(Bucket, integer_to_binary(Number rem 500), <<"value">>),
    _ = weft_kv:put(box, integer_to_binary(Number rem 50), <<"value">>),
    receive after 10 -> writes(Bucket, Number + 1) end. % pacing: some tens of writes a second

%% --- nodes ------------------------------------------------------------------------------------

start(Name, Ports, Config) ->
    Dir = dir(Name, Config),
    ok = filelib:ensure_path(Dir),
    Box = #{consistency => strong, n => 3, partitions => 2, dir => filename:join(Dir, "box"),
            voters => [weft_test_nodes:node_name(Voter) || Voter <- ?NAMES]},
    Was = filelib:is_file(filename:join([Dir, "ring"])),
    Buckets = #{carts => #{n => 3, nodes => 2, r => 2, w => 2, siblings => false},
                everywhere => #{n => 2, w => 2, pw => 2, siblings => false, timeout_ms => 1000},
                box => case Was of true -> Box#{existing => true}; false -> Box end},
    Options = #{config => [{topology, topology()}, {faults, true}], args => args()},
    Node = weft_test_nodes:start(Name, maps:merge(Options, around(Name, Dir)),
                                 ?config(place, Config)),
    [ok = call(Node, application, set_env, [Application, Key, Value])
     || {Application, Key, Value} <-
            [{weft_ops, http, #{port => proplists:get_value(Name, Ports)}},
             {weft_ops, timeout_ms, 800}, {weft_ring, partitions, 16},
             {weft_ring, dir, filename:join(Dir, "ring")}, {weft_ring, sync_ms, 300},
             {weft_ring, vnodes, [{weft_kv_vnode, #{dir => filename:join(Dir, "kv")}}]},
             {weft_kv, buckets, Buckets}, {weft_crdt, dir, filename:join(Dir, "crdt")}]],
    [{ok, _} = call(Node, application, ensure_all_started, [Application])
     || Application <- [weft_ops, weft_kv, weft_crdt]],
    Node.

topology() ->
    {full_mesh, #{seeds => [weft_test_nodes:node_name(Name) || Name <- ?NAMES]}}.

%% The small disk is mounted for this node only, and is gone with it.
around(b, Dir) ->
    Script = "mount -t tmpfs -o size=" ++ integer_to_list(?DISK_KB) ++ "k none \"$0\" && "
        "exec \"$@\"",
    #{around => {os:find_executable("unshare"), ["-m", "sh", "-c", Script, Dir]}};
around(_Name, _Dir) ->
    #{}.

dir(Name, Config) -> filename:join([?config(priv_dir, Config), "disks", atom_to_list(Name)]).

joined([First | Others]) ->
    ok = call(First, weft_ring, create, []),
    [ok = call(Node, weft_ring, join, [name(First)]) || Node <- Others],
    [until(fun() -> ok =:= call(First, weft_ring, stage, [name(Node), join]) end, ?SETTLED_MS)
     || Node <- Others],
    {ok, Plan} = call(First, weft_ring, plan, []),
    ok = call(First, weft_ring, commit, [Plan]),
    until(fun() ->
              lists:all(fun(Node) ->
                            #{moving := Moving, owned := Owned} = call(Node, weft_ring, counts, []),
                            Moving =:= 0 andalso Owned > 0
                        end, [First | Others])
          end, ?SETTLED_MS).

args() ->
    ["-connect_all", "false", "-kernel", "prevent_overlapping_partitions", "false"]
        ++ weft_ops_test_args:args([weft_ring, weft_kv, weft_crdt, ?MODULE]).
