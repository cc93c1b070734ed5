%% SPDX-License-Identifier: Apache-2.0
%% @doc The members of partitions of strong buckets, as far as this node has heard of others than
%% the founders. Who asks with earlier ones is told, and has to ask again; so this only saves time.
-module(weft_kv_strong_known).

-export([new/0, members/2, learned/3]).

%% @doc An empty table, which belongs to the caller.
-spec new() -> ok.
new() ->
    _ = ets:new(?MODULE, [named_table, public, {read_concurrency, true}]),
    ok.

-spec members(atom(), non_neg_integer()) -> weft_kv_strong_members:members().
members(Bucket, Partition) ->
    try ets:lookup(?MODULE, {Bucket, Partition}) of
        [{_, Members}] -> Members;
        [] -> weft_kv_strong_members:founders()
    catch
        %% Requests run without the application, too.
        error:badarg -> weft_kv_strong_members:founders()
    end.

-spec learned(atom(), non_neg_integer(), weft_kv_strong_members:members()) -> ok.
learned(Bucket, Partition, Members) ->
    try ets:insert(?MODULE, {{Bucket, Partition}, Members}) of
        true -> ok
    catch
        error:badarg -> ok
    end.
