%% SPDX-License-Identifier: Apache-2.0
%% @doc The families of the ring, the store, its strong buckets and the data that merges, of this
%% node. Pure. Where one of them does not run there are none of its families. What it is made of
%% comes from `weft_ops_stores'.
-module(weft_ops_stores_families).

-export([all/0]).

%% @doc All of them, in the order of the documentation.
-spec all() -> [weft_ops_family:family()].
all() -> ring() ++ kv() ++ strong() ++ crdt().

%% --- the ring -----------------------------------------------------------------------------------

ring() ->
    [of_ring(weft_ring_members, gauge, [status], "Nodes of the ring.",
             fun(#{members := Members}) -> by(Members) end),
     of_ring(weft_ring_partitions, gauge, [], "Partitions of the ring.", key(partitions)),
     of_ring(weft_ring_partitions_owned, gauge, [], "Partitions that this node owns.", key(owned)),
     of_ring(weft_ring_partitions_moving, gauge, [],
             "Partitions of the ring that have another owner than they shall have.", key(moving)),
     of_ring(weft_ring_handoffs_running, gauge, [],
             "Partitions that this node is handing over.", handoff(running)),
     of_ring(weft_ring_handoffs_done_total, counter, [],
             "Partitions that this node has handed over.", handoff(done)),
     of_ring(weft_ring_handoffs_failed_total, counter, [],
             "Times a handoff from this node failed; it is tried again.", handoff(failed)),
     of_ring(weft_ring_partition_processes, gauge, [],
             "Processes of partitions on this node, owned or kept for other nodes.",
             key(processes)),
     of_ring(weft_ring_partition_queue_max, gauge, [],
             "Messages that wait for the partition of this node for which most do.",
             key(longest))].

of_ring(Name, Type, Labels, Help, Read) -> family(ring, Name, Type, Labels, Help, Read).

handoff(Key) -> fun(#{handoffs := #{Key := Count}}) -> Count; (#{}) -> undefined end.

%% --- the store ----------------------------------------------------------------------------------

kv() ->
    [of_kv(weft_kv_requests_total, counter, [operation], "Requests of this node that are over.",
           fun(#{requests := Counts}) -> by(Counts) end),
     of_kv(weft_kv_request_seconds_total, counter, [operation], "What they took together.",
           fun(#{request_us := Sums}) -> by(maps:map(fun(_, Us) -> Us / 1000000 end, Sums)) end),
     of_kv(weft_kv_errors_total, counter, [reason],
           "Those that had an error; caller: what was asked made no sense.",
           fun(#{errors := Counts}) -> by(Counts) end),
     of_kv(weft_kv_requests_running, gauge, [], "Requests of this node whose callers wait.",
           key(running)),
     of_kv(weft_kv_requests_lingering, gauge, [],
           "Requests of this node that wait for further replicas after their answer.",
           key(lingering)),
     of_kv(weft_kv_hints, gauge, [], "Keys that are kept here for other nodes.", key(hints)),
     of_kv(weft_kv_objects, gauge, [],
           "Keys with a copy here, deleted ones among them, in buckets that are not strong.",
           key(objects)),
     of_kv(weft_kv_memory_bytes, gauge, [], "Memory that these copies take, about.",
           key(memory_bytes)),
     of_kv(weft_kv_file_bytes, gauge, [], "Size of their files.", key(file_bytes)),
     of_kv(weft_kv_partitions_unwritable, gauge, [],
           "Partitions of this node whose file could not be written.", key(unwritable)),
     of_kv(weft_kv_comparisons_total, counter, [],
           "Comparisons of a partition of this node with another one.", entropy(compared)),
     of_kv(weft_kv_comparisons_failed_total, counter, [],
           "Those that failed, as a node was away, for example.", entropy(failed)),
     of_kv(weft_kv_repaired_keys_total, counter, [], "Keys that a comparison has repaired.",
           entropy(repaired)),
     of_kv(weft_kv_pairs, gauge, [], "Pairs of partitions that this node compares.",
           entropy(pairs)),
     of_kv(weft_kv_pairs_alike, gauge, [],
           "Comparisons since the last one that found a difference. When it reaches weft_kv_pairs, "
           "this node lacks nothing.", entropy(alike)),
     of_kv(weft_kv_partitions_not_compared, gauge, [],
           "Partitions of this node with values of which no bucket has the n; these are not "
           "compared.", entropy(not_compared)),
     of_kv(weft_kv_partitions_incomplete, gauge, [],
           "Partitions of this node that may have forgotten something: until they were compared "
           "with their other owners, their answers do not count.", entropy(incomplete))].

strong() ->
    [of_kv(weft_kv_strong_replicas, gauge, [status],
           "Replicas of strong buckets on this node; forgotten ones have lost their file and do "
           "not vote.", fun(#{strong := Counts}) -> by(Counts) end)].

of_kv(Name, Type, Labels, Help, Read) -> family(kv, Name, Type, Labels, Help, Read).

entropy(Key) -> fun(#{entropy := #{Key := Count}}) -> Count end.

%% --- data that merges ---------------------------------------------------------------------------

crdt() ->
    [family(crdt, Name, Type, [], Help, Read)
     || {Name, Type, Help, Read} <-
            [{weft_crdt_keys, gauge, "Keys of data that merges that this node knows.", key(keys)},
             {weft_crdt_served, gauge, "Nodes that get changes from this one at once.",
              fun(#{served := Served}) -> length(Served) end},
             {weft_crdt_unacknowledged_keys, gauge,
              "Changed keys that wait for the acknowledgements of all of these.",
              fun(#{unacknowledged := Waiting}) -> lists:sum(maps:values(Waiting)) end},
             {weft_crdt_refused_total, counter,
              "Messages of other nodes that were malformed or too many.", key(refused)},
             {weft_crdt_readers, gauge, "Readers that wait for a threshold.", key(waiting)},
             {weft_crdt_subscriptions, gauge, "Subscriptions of processes of this node.",
              key(subscriptions)},
             {weft_crdt_retired_nodes, gauge, "Nodes of which former runs are retired.",
              key(retired)},
             {weft_crdt_barred, gauge,
              "1 if this store sends and takes nothing, since it was retired with something that "
              "may be lost.", fun is_barred/1}]].

is_barred(#{barred := none}) -> 0;
is_barred(#{barred := {_Why, _By}}) -> 1;
is_barred(#{}) -> undefined.

%% --- all ----------------------------------------------------------------------------------------

family(Of, Name, Type, Labels, Help, Read) ->
    #{name => Name, type => Type, labels => Labels, help => Help, from => snapshot,
      read => fun(#{stores := #{Of := Said}}) -> Read(Said);
                 (#{}) when Labels =:= [] -> undefined;
                 (#{}) -> []
              end}.

key(Key) -> fun(Said) -> maps:get(Key, Said, undefined) end.

by(Counts) -> [{[Name], Count} || {Name, Count} <- maps:to_list(Counts)].
