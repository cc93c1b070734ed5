%% SPDX-License-Identifier: Apache-2.0
%% @doc What a client knows of the store's ring: which nodes have the replicas of a key. Nodes of
%% the store tell it (`weft_kv_served'). Only the order in which nodes are asked depends on it, so
%% it may be outdated or missing: nodes of an earlier version do not tell it, and what makes no
%% sense is not taken. Not here: when a node is asked (`weft_kv_client_links').
-module(weft_kv_client_ring).

-export([none/0, ask/2, learn/3, replicas/4, forget/1]).
-export_type([known/0, told/0]).

-type told() :: #{owners := [node(), ...], copies := #{Bucket :: binary() => pos_integer()}}.
%% Owners in the order of the partitions. Buckets by their names in bytes, so that no atoms are made
%% here. Those whose replicas are not on the ring (strong ones) are missing.
-type known() :: #{version := none | non_neg_integer(), nodes := [node()],
                   partitions := non_neg_integer(), copies := #{binary() => pos_integer()}}.

-define(ASK_MS, 2000).
-define(PARTITIONS_MAX, 65536).
-define(COPIES_MAX, 64).
-define(LOOKUP(Name), {weft_kv_client, Name}).

%% @doc In the beginning nothing is known.
-spec none() -> known().
none() -> #{version => none, nodes => [], partitions => 0, copies => #{}}.

%% @doc Asks a node of the store. Waits for the answer; it is for `learn/3'.
-spec ask(node(), known()) -> term().
ask(Node, #{version := Version}) ->
    try erpc:call(Node, weft_kv_served, run, [{ring, Version}, first], ?ASK_MS)
    catch _:Reason -> {error, {unknown, Reason}}
    end.

%% @doc What is known after that answer. Requests of the client of this name see the owners at once.
-spec learn(atom(), Answer :: term(), known()) -> known().
learn(Name, {ok, Version, #{owners := Owners, copies := Copies}}, Known) ->
    case is_ring(Owners) andalso is_copies(Copies) of
        true ->
            ok = weft_ring_lookup:publish_owners(?LOOKUP(Name), Owners),
            #{version => Version, nodes => lists:usort(Owners), partitions => length(Owners),
              copies => Copies};
        false -> Known
    end;
learn(_Name, _Nothing, Known) ->
    Known.

is_ring([_ | _] = Owners) when length(Owners) =< ?PARTITIONS_MAX ->
    lists:all(fun is_atom/1, Owners);
is_ring(_) -> false.

is_copies(Copies) ->
    is_map(Copies) andalso lists:all(fun({Bucket, N}) ->
                                         is_binary(Bucket) andalso is_integer(N)
                                             andalso N >= 1 andalso N =< ?COPIES_MAX
                                     end, maps:to_list(Copies)).

%% @doc The nodes that have the replicas of a key, in the order of the ring; none if that is not
%% known, or if it can not be the key of a bucket.
-spec replicas(atom(), #{binary() => pos_integer()}, term(), term()) -> [node()].
replicas(Name, Copies, Bucket, Key) when map_size(Copies) > 0, is_atom(Bucket), is_binary(Key) ->
    InBytes = atom_to_binary(Bucket),
    case Copies of
        #{InBytes := N} ->
            case weft_ring_lookup:primaries(?LOOKUP(Name), {InBytes, Key}, N) of
                %% Of few nodes one may have two replicas.
                {ok, Places} -> lists:uniq([Node || {_, Node, _} <- Places]);
                {error, no_ring} -> []
            end;
        #{} -> []
    end;
replicas(_Name, _Copies, _Bucket, _Key) ->
    [].

%% @doc Nothing is known any more.
-spec forget(atom()) -> ok.
forget(Name) -> weft_ring_lookup:withdraw(?LOOKUP(Name)).
