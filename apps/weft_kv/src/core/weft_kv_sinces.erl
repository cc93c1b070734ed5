%% SPDX-License-Identifier: Apache-2.0
%% @doc Have the other replicas of a pair forgotten something while one of them is compared? Pure,
%% but for the function that asks them.
%%
%% A replica that is compared with one after the other (`weft_kv_recall') may miss what goes from
%% the second one to the first one meanwhile, if the second one forgets it then. So all of them are
%% asked before each comparison since when they know what they know, and the one that was compared
%% again after it.
-module(weft_kv_sinces).

-export([before/3, is_same/3]).
-export_type([sinces/0]).

%% Of each other partition with a replica of the same keys. `unknown': it is of an earlier version,
%% which does not say. `away': it has not answered.
-type sinces() :: #{Other :: non_neg_integer() => weft_kv_recall:id() | unknown | away}.

%% @doc To be called before the comparison, in a ring of so many partitions.
-spec before(weft_kv_exchange:pair(), Size :: pos_integer(), weft_kv_copy:ask()) -> sinces().
before({N, KeyPartition, {One, _}}, Size, Ask) ->
    maps:from_list([{Other, since(Other, KeyPartition, Ask)}
                    || Other <- weft_kv_recall:others(One, Size, {N, KeyPartition})]).

%% @doc To be called after it. Of one that has not answered nobody knows.
-spec is_same(weft_kv_exchange:pair(), sinces(), weft_kv_copy:ask()) -> boolean().
is_same({_, KeyPartition, {_, Other}}, Sinces, Ask) ->
    case since(Other, KeyPartition, Ask) of
        away -> false;
        Since -> map_get(Other, Sinces) =:= Since
    end.

since(Partition, KeyPartition, Ask) ->
    case Ask(Partition, {KeyPartition, '', <<>>}, since) of
        {ok, {since, Since}} -> Since;
        {ok, {error, unknown_command}} -> unknown;
        _ -> away
    end.
