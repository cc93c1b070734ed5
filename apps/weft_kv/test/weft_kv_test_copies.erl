%% SPDX-License-Identifier: Apache-2.0
%% @doc For tests: what a partition has, and, on a node of the store, whether it has the copies that
%% it owns. It is asked for its own, so nothing is repaired by that.
-module(weft_kv_test_copies).

-export([lacking/2, objects/1]).

%% @doc The keys of which this node owns a copy that has no value.
-spec lacking(Bucket :: atom(), [binary()]) -> [{Partition :: non_neg_integer(), binary()}].
lacking(Bucket, Keys) ->
    {ok, #{n := N} = Options} = weft_kv_app:bucket(Bucket),
    Kind = maps:with([n, evict, siblings], Options),
    [{Partition, Key} || Key <- Keys,
                         {ok, [{First, _, _} | _] = Owners} <-
                             [weft_ring:primaries({atom_to_binary(Bucket), Key}, N)],
                         {Partition, Node, primary} = Place <- Owners, Node =:= node(),
                         not has({First, Bucket, Key}, Kind, Place)].

has(Key, Kind, Place) ->
    {ok, {ok, Object}} = weft_vnode:ask(weft_kv_vnode, Place, Key, {read, Kind, primary}, 5000),
    weft_kv_object:values(Object) =/= [].

%% @doc All objects of `weft_kv_vnode', without what the next owner has to know besides.
-spec objects(Vnode :: term()) -> [weft_kv_copy:item()].
objects(Vnode) -> objects(start, Vnode).

objects(done, _) -> [];
objects(Cursor, Vnode) ->
    {Items, Next} = weft_kv_vnode:items(Cursor, 10000, Vnode),
    [Item || {{KeyPartition, _, _}, _} = Item <- Items, KeyPartition >= 0] ++ objects(Next, Vnode).
