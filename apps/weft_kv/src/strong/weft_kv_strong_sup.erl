%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the replicas of strong buckets on this node. One that ends reads its file and
%% goes on; one that can not read it, or finds that the bucket was configured otherwise before,
%% stops
%% the start of the application with an error that says so.
-module(weft_kv_strong_sup).
-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-spec start_link(#{atom() => map()}) -> {ok, pid()} | {error, term()}.
start_link(Buckets) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, Buckets).

%% @private
-spec init(#{atom() => map()}) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Buckets) ->
    ok = weft_kv_strong_known:new(),
    Here = [{Bucket, Partition, Options}
            || {Bucket, #{consistency := strong, partitions := Count} = Options}
                   <- lists:sort(maps:to_list(Buckets)),
               Partition <- lists:seq(0, Count - 1),
               lists:member(node(), weft_kv_strong_bucket:replicas(Partition, Options))],
    Dirs = lists:usort([weft_kv_strong_bucket:dir(Bucket, Options)
                        || {Bucket, _, Options} <- Here]),
    %% The locks first: two nodes of the same name could promise different things in one file.
    {ok, {#{strategy => one_for_one, intensity => 5, period => 60},
          [#{id => {lock, Dir},
             start => {weft_directory_lock, start_link, [Dir, weft_kv_strong]}} || Dir <- Dirs]
          ++ [#{id => {Bucket, Partition},
                start => {weft_kv_strong_acceptor, start_link, [Bucket, Partition, Options]}}
              || {Bucket, Partition, Options} <- Here]}}.
