%% SPDX-License-Identifier: Apache-2.0
%% @doc What a strong bucket is configured with, and where its keys are. Pure.
%%
%% The nodes of the replicas are given by the configuration for ever: partitions of keys, each on
%% `n' of the `voters', chosen as those of strong names are. No ring is involved. Which file of a
%% node counts may change (`weft_kv_strong_members').
-module(weft_kv_strong_bucket).

-export([check/1, options/2, replicas/2, on_node/2, turn/3, partition/2, configuration/2, name/2,
         dir/2]).
-export_type([options/0]).

-type options() :: #{consistency := strong, voters := [node()], dir := file:filename(),
                     n := pos_integer(), partitions := pos_integer(), keys_max := pos_integer(),
                     existing := boolean(),
                     value_max := pos_integer(), timeout_ms := pos_integer()}.
%% `keys_max': most keys of a partition, deleted ones too. `existing': a replica without a file has
%% lost it, and does not begin anew.

-define(DEFAULTS, #{n => 3, partitions => 16, existing => false, keys_max => 100000,
                    value_max => 1048576, timeout_ms => 5000}).
-define(OTHERS, [r, w, pr, pw, nodes, siblings, evict, durability, ttl_ms]).
-define(PARTITIONS_MAX, 256).
-define(TURNS, 1000).

%% @doc The options with their defaults, or what is wrong with them.
-spec check(map()) -> {ok, options()} | {error, {unknown_option | bad_option | missing, term()}}.
check(Given) ->
    All = maps:merge(?DEFAULTS, Given),
    Known = [consistency, voters, dir | maps:keys(?DEFAULTS)],
    case {[Key || Key <- [voters, dir], not is_map_key(Key, Given)],
          lists:sort(maps:keys(maps:without(Known, Given)))} of
        {_, [Key | _]} ->
            case lists:member(Key, ?OTHERS) of
                true -> {error, {bad_option, {Key, map_get(Key, Given), not_in_strong_buckets}}};
                false -> {error, {unknown_option, Key}}
            end;
        {[Key | _], []} -> {error, {missing, {Key, in_strong_buckets}}};
        {[], []} ->
            case [{Key, Value, range(Key)} || {Key, Value} <- lists:sort(maps:to_list(All)),
                                              not is_valid(Key, Value)] of
                [] -> enough(All);
                [Wrong | _] -> {error, {bad_option, Wrong}}
            end
    end.

enough(#{n := N, voters := Voters}) when length(Voters) < N ->
    {error, {bad_option, {voters, Voters, {at_least, N}}}};
enough(#{voters := Voters} = All) ->
    {ok, All#{voters := lists:sort(Voters)}}.

is_valid(consistency, strong) -> true;
is_valid(n, N) -> lists:member(N, [1, 3, 5, 7]);
is_valid(voters, Voters) when length(Voters) >= 1 -> % not of an improper list
    lists:all(fun is_atom/1, Voters) andalso length(lists:usort(Voters)) =:= length(Voters);
is_valid(voters, _) -> false;
is_valid(dir, Dir) -> Dir =/= "" andalso io_lib:char_list(Dir);
is_valid(existing, Existing) -> is_boolean(Existing);
is_valid(partitions, Count) ->
    is_integer(Count) andalso Count >= 1 andalso Count =< ?PARTITIONS_MAX;
is_valid(_, Value) -> is_integer(Value) andalso Value >= 1.

range(n) -> {one_of, [1, 3, 5, 7]};
range(voters) -> distinct_nodes;
range(dir) -> directory;
range(existing) -> {true, 'or', false};
range(partitions) -> {from, 1, to, ?PARTITIONS_MAX};
range(_) -> {from, 1}.

%% @doc The options of a bucket, with those of one request in their place.
-spec options(map(), options()) -> {ok, options()} | {error, {unknown_option | bad_option, term()}}.
options(Request, Bucket) ->
    case maps:keys(maps:without([timeout_ms], Request)) of
        [] ->
            case Request of
                #{timeout_ms := Ms} when not (is_integer(Ms) andalso Ms >= 1) ->
                    {error, {bad_option, {timeout_ms, Ms, range(timeout_ms)}}};
                #{} -> {ok, maps:merge(Bucket, Request)}
            end;
        [Key | _] -> {error, {unknown_option, Key}}
    end.

%% @doc The partition of a key.
-spec partition(binary(), options()) -> non_neg_integer().
partition(Key, #{partitions := Partitions}) ->
    weft_names_strong_placement:partition(Key, Partitions).

%% @doc The nodes with a partition's replicas.
-spec replicas(non_neg_integer(), options()) -> [node()].
replicas(Partition, #{voters := Voters, n := N}) ->
    weft_names_strong_placement:replicas(Partition, Voters, N).

%% @doc The replicas that a node has, of those of these buckets that are strong.
-spec on_node(node(), #{atom() => map()}) ->
          [{Bucket :: atom(), Partition :: non_neg_integer(), options()}].
on_node(Node, Buckets) ->
    [{Bucket, Partition, Options}
     || {Bucket, #{consistency := strong, partitions := Count} = Options}
            <- lists:sort(maps:to_list(Buckets)),
        Partition <- lists:seq(0, Count - 1),
        lists:member(Node, replicas(Partition, Options))].

%% @doc When this node does for a partition what each replica does now and then: from 0 up to 1, as
%% part of the time from one such moment to the next. Replicas of a partition are as far apart as
%% they can be, so that a majority of them is not busy with it at once, and partitions of a node are
%% anywhere.
-spec turn(non_neg_integer(), node(), options()) -> float().
turn(Partition, Node, #{n := N} = Options) ->
    {Before, _} = lists:splitwith(fun(Other) -> Other =/= Node end, replicas(Partition, Options)),
    math:fmod(length(Before) / N + erlang:phash2(Partition, ?TURNS) / ?TURNS, 1.0).

%% @doc What may never change, and has to be the same on all nodes.
-spec configuration(atom(), options()) -> term().
configuration(Bucket, #{voters := Voters, n := N, partitions := Partitions}) ->
    {Bucket, #{voters => Voters, n => N, partitions => Partitions}}.

%% @doc The registered name of a replica. There are as many as buckets that are configured have
%% partitions.
-spec name(atom(), non_neg_integer()) -> atom().
name(Bucket, Partition) ->
    list_to_atom(lists:concat(["weft_kv_strong_", Bucket, "_", Partition])).

%% @doc Where the files of a bucket are, `<Partition>.log'.
-spec dir(atom(), options()) -> file:filename().
dir(Bucket, #{dir := Dir}) ->
    filename:join(Dir, "strong_" ++ uri_string:quote(atom_to_list(Bucket))).
