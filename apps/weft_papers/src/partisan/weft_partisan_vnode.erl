%% SPDX-License-Identifier: Apache-2.0
%% @doc The two applications that C. Meiklejohn et al. ("Partisan", 2018, section 4.3.1) wrote for
%% Riak Core, as partitions of weft's ring: an echo service, and a store of keys and values, which
%% waits one millisecond for its disk, serves one request at a time, and keeps some objects in
%% memory. And the clients of both, which run on one node. It is a load and no store: what it has is
%% not handed over.
-module(weft_partisan_vnode).
-behaviour(weft_vnode).

-export([run/5]).
-export([init/2, command/3, change/4, items/3, take/3, clear/2, cover/2]).
-export_type([kind/0]).

-type kind() :: vnode_echo | vnode_quorum.

-define(KEYS, 10000).
-define(DISK_MS, 1).
-define(REPLICAS, 3).
-define(QUORUM, 2).
%% Objects that a partition keeps; it answers for all other keys with an object of its own.
-define(KEPT_MAX, 32).
-define(PATIENCE_MS, 30000).

%% @doc On the node of the clients: workers that issue one request after the other. How long it
%% took, and latencies. An echo goes to the owner of any key; get and put, by turns of chance, go to
%% the three owners of a key of a normal distribution, and two of them have to answer.
-spec run(kind(), SizeBytes :: pos_integer(), Workers :: pos_integer(),
          DurationMs :: pos_integer(), Seed :: integer()) ->
          {ElapsedUs :: pos_integer(), #{atom() => number()}}.
run(Kind, SizeBytes, Workers, DurationMs, Seed) ->
    Object = weft_bench_flood:payload({binary, SizeBytes}),
    weft_bench_workers:run(Workers, DurationMs,
                           {fun(Worker) -> rand:seed_s(exsss, {Seed, Worker, 1}) end,
                            fun(Random) -> request(Kind, Object, Random) end}).

request(vnode_echo, Object, Random) ->
    {Key, NewRandom} = rand:uniform_s(?KEYS, Random),
    {ok, Object} = weft_vnode:call(?MODULE, integer_to_binary(Key), {echo, Object}, ?PATIENCE_MS),
    NewRandom;
request(vnode_quorum, Object, Random0) ->
    {Normal, Random1} = rand:normal_s(Random0),
    {Put, Random} = rand:uniform_s(2, Random1),
    Key = integer_to_binary(min(?KEYS, max(1, round(?KEYS / 2 + Normal * ?KEYS / 6)))),
    Command = case Put of 1 -> {put, Object}; 2 -> get end,
    {ok, Places} = weft_ring:primaries(Key, ?REPLICAS),
    Self = self(),
    Ref = make_ref(),
    _ = [spawn_link(fun() ->
                        {ok, _} = weft_vnode:ask(?MODULE, Place, Key, Command, ?PATIENCE_MS),
                        Self ! {Ref, answered}
                    end) || Place <- Places],
    lists:foreach(fun(_) -> ok = answered(Ref) end, lists:seq(1, ?QUORUM)),
    flush_late_answers(),
    Random.

answered(Ref) ->
    receive {Ref, answered} -> ok after ?PATIENCE_MS -> exit(no_answer) end.

%% Those of the third replica to earlier requests.
flush_late_answers() ->
    receive {Ref, answered} when is_reference(Ref) -> flush_late_answers() after 0 -> ok end.

%% ---- a partition ----

%% @private
init(_Partition, SizeBytes) -> {ok, {#{}, weft_bench_flood:payload({binary, SizeBytes})}}.

%% @private
command(_Key, {echo, Object}, _State) ->
    {reply, Object};
command(Key, get, {Kept, Object}) ->
    ok = disk(),
    {reply, maps:get(Key, Kept, Object)};
command(_Key, {put, Object}, _State) ->
    ok = disk(),
    {change, {put, Object}, ok}.

disk() ->
    receive after ?DISK_MS -> ok end.

%% @private
change(Key, {put, New}, _Note, {Kept, Object}) when map_size(Kept) < ?KEPT_MAX;
                                                    is_map_key(Key, Kept) ->
    {ok, {Kept#{Key => New}, Object}};
change(_Key, {put, _New}, _Note, State) ->
    {ok, State}.

%% @private
items(_Cursor, _Max, _State) -> {[], done}.

%% @private
take(_Items, _Note, State) -> {ok, State}.

%% @private
clear(_Note, {_Kept, Object}) -> {ok, {#{}, Object}}.

%% @private
cover(kept, {Kept, _Object}) -> map_size(Kept).
