%% SPDX-License-Identifier: Apache-2.0
%% @doc A small ring of partitions on three nodes, for the workloads `echo' and `key_value' of
%% weft_partisan_workload. Runs on the nodes under test.
%%
%% Partitions are processes, dealt out to the nodes in turn. An echo partition sends back the object
%% it got. A key-value partition waits one millisecond for its disk, then keeps the object or sends
%% one; it serves one request at a time. A request goes to the partition of its key and to its two
%% clockwise neighbours, which are on three nodes, and is done when two of them have answered.
-module(weft_partisan_ring).

-export([start_partitions/3, run/4, stop/1]).
-export_type([request/0]).

-type kind() :: echo | key_value.
-type request() :: #{kind := kind(), mode := weft_bench_variant:mode(), partitions := [pid()],
                     size_bytes := pos_integer()}.

-define(KEYS, 10000).
-define(DISK_MS, 1).
-define(REPLICAS, 3).
-define(QUORUM, 2).
%% Objects a partition keeps; it answers for all other keys with an object of its own.
-define(KEPT_MAX, 32).
-define(PATIENCE_MS, 30000).

%% @doc On each node: so many partitions.
-spec start_partitions(kind(), Count :: pos_integer(), SizeBytes :: pos_integer()) -> [pid()].
start_partitions(echo, Count, _SizeBytes) ->
    [spawn(fun echo/0) || _ <- lists:seq(1, Count)];
start_partitions(key_value, Count, SizeBytes) ->
    Object = weft_bench_flood:payload({binary, SizeBytes}),
    [spawn(fun() -> key_value(#{}, Object) end) || _ <- lists:seq(1, Count)].

echo() ->
    receive
        {echo, Mode, From, Ref, Object} ->
            weft_bench_flood:send(Mode, From, {Ref, Object}),
            echo()
    end.

key_value(Kept, Object) ->
    receive
        {put, Mode, From, Ref, Key, New} ->
            disk(),
            weft_bench_flood:send(Mode, From, {Ref, ok}),
            key_value(keep(Key, New, Kept), Object);
        {get, Mode, From, Ref, Key} ->
            disk(),
            weft_bench_flood:send(Mode, From, {Ref, maps:get(Key, Kept, Object)}),
            key_value(Kept, Object)
    end.

disk() ->
    receive after ?DISK_MS -> ok end.

keep(Key, New, Kept) when map_size(Kept) < ?KEPT_MAX; is_map_key(Key, Kept) ->
    Kept#{Key => New};
keep(_Key, _New, Kept) ->
    Kept.

%% @doc On the client's node: workers that issue one request after the other. Latencies, and how
%% long it took.
-spec run(request(), Workers :: pos_integer(), DurationMs :: pos_integer(), Seed :: integer()) ->
          {ElapsedUs :: pos_integer(), #{atom() => number()}}.
run(#{partitions := Partitions, size_bytes := SizeBytes} = Request, Workers, DurationMs, Seed) ->
    Prepared = Request#{partitions := list_to_tuple(Partitions),
                        object => weft_bench_flood:payload({binary, SizeBytes})},
    weft_bench_workers:run(Workers, DurationMs,
                           {fun(Worker) -> rand:seed_s(exsss, {Seed, Worker, 1}) end,
                            fun(Random) -> request(Prepared, Random) end}).

request(#{kind := echo, mode := Mode, partitions := Partitions, object := Object}, Random) ->
    {Index, NewRandom} = rand:uniform_s(tuple_size(Partitions), Random),
    Ref = make_ref(),
    weft_bench_flood:send(Mode, element(Index, Partitions), {echo, Mode, self(), Ref, Object}),
    Object = answer(Ref),
    NewRandom;
request(#{kind := key_value, mode := Mode, partitions := Partitions, object := Object}, Random) ->
    {Normal, Random1} = rand:normal_s(Random),
    {Put, NewRandom} = rand:uniform_s(2, Random1),
    Key = min(?KEYS, max(1, round(?KEYS / 2 + Normal * ?KEYS / 6))),
    Ref = make_ref(),
    lists:foreach(fun(Partition) ->
                      Wanted = key_value_request(Put, Mode, Ref, Key, Object),
                      weft_bench_flood:send(Mode, Partition, Wanted)
                  end, replicas(Key, Partitions)),
    lists:foreach(fun(_) -> answer(Ref) end, lists:seq(1, ?QUORUM)),
    flush_late_answers(),
    NewRandom.

key_value_request(1, Mode, Ref, Key, Object) -> {put, Mode, self(), Ref, Key, Object};
key_value_request(2, Mode, Ref, Key, _Object) -> {get, Mode, self(), Ref, Key}.

replicas(Key, Partitions) ->
    First = erlang:phash2(Key, tuple_size(Partitions)),
    [element((First + Offset) rem tuple_size(Partitions) + 1, Partitions)
     || Offset <- lists:seq(0, ?REPLICAS - 1)].

answer(Ref) ->
    receive {Ref, Answer} -> Answer after ?PATIENCE_MS -> exit(no_answer) end.

%% The third replica's answers to earlier requests.
flush_late_answers() ->
    receive {Ref, _} when is_reference(Ref) -> flush_late_answers() after 0 -> ok end.

%% @doc On the node of such processes: ends them, with what they keep.
-spec stop([pid()]) -> ok.
stop(Processes) ->
    Monitors = [{Pid, monitor(process, Pid)} || Pid <- Processes],
    lists:foreach(fun({Pid, Monitor}) ->
                      exit(Pid, kill),
                      receive {'DOWN', Monitor, process, Pid, _} -> ok end
                  end, Monitors).
