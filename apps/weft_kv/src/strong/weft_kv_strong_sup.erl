%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the replicas of strong buckets on this node: the locks of their directories,
%% and behind them the replicas, under a supervisor of their own. One that ends reads its file and
%% goes on; one that can not read it, or finds that the bucket was configured otherwise before,
%% stops the start of the application with an error that says so.
%%
%% If a lock ends, another node may have had the directory, and promised something there. Then the
%% replicas start again, and read their files again.
-module(weft_kv_strong_sup).
-behaviour(supervisor).

-export([start_link/1, start_behind/1]).
-export([init/1]).

-type replica() :: {Bucket :: atom(), Partition :: non_neg_integer(),
                    weft_kv_strong_bucket:options()}.

-spec start_link(#{atom() => map()}) -> {ok, pid()} | {error, term()}.
start_link(Buckets) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE,
                               {locks, weft_kv_strong_bucket:on_node(node(), Buckets)}).

%% @private
-spec start_behind([replica()]) -> {ok, pid()} | {error, term()}.
start_behind(Here) ->
    weft_supervisor:start_link({local, weft_kv_strong_locked_sup}, ?MODULE, {behind, Here}).

%% @private
-spec init({locks | behind, [replica()]}) ->
          {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({locks, Here}) ->
    ok = weft_kv_strong_known:new(),
    Dirs = lists:usort([weft_kv_strong_bucket:dir(Bucket, Options)
                        || {Bucket, _, Options} <- Here]),
    %% The locks first: two nodes of the same name could promise different things in one file.
    {ok, {#{strategy => rest_for_one, intensity => 5, period => 60},
          [#{id => {lock, Dir},
             start => {weft_directory_lock, start_link, [Dir, weft_kv_strong]}} || Dir <- Dirs]
          ++ [#{id => behind, start => {?MODULE, start_behind, [Here]}, type => supervisor}]}};
init({behind, Here}) ->
    {ok, {#{strategy => one_for_one, intensity => 5, period => 60},
          [#{id => {Bucket, Partition},
             start => {weft_kv_strong_acceptor, start_link, [Bucket, Partition, Options]}}
           || {Bucket, Partition, Options} <- Here]}}.
