%% SPDX-License-Identifier: Apache-2.0
%% @doc What the ring wants for a partition, for the process of it. A ring that is busy or ends just
%% now is no reason to end the data.
-module(weft_vnode_plan).

-export([is_another_owner/1, is_of_others/1, planned/1, promised/1]).

%% @doc Does another node own the partition?
-spec is_another_owner(non_neg_integer()) -> boolean().
is_another_owner(Partition) ->
    case weft_ring_lookup:owner(weft_ring, Partition) of
        {ok, Owner} -> Owner =/= node();
        {error, _} -> false
    end.

%% @doc And shall another one own it?
-spec is_of_others(non_neg_integer()) -> boolean().
is_of_others(Partition) ->
    is_another_owner(Partition)
        andalso not lists:member(planned(Partition), [unknown, node()]).

%% @doc Who shall own the partition.
-spec planned(non_neg_integer()) -> node() | unknown.
planned(Partition) ->
    case ring() of
        unknown -> unknown;
        Ring ->
            case weft_ring_table:planned(Ring) of
                [] -> unknown;
                Owners -> lists:nth(Partition + 1, Owners)
            end
    end.

%% @doc The handoff that has brought everything, if its owner may still give the partition to this
%% node: what it has is not to be dropped then.
-spec promised(weft_ring_handoff_receiver_core:mark()) -> none | weft_ring_table:transfer().
promised({{{_, _, To} = Transfer, _Attempt}, done, _Number}) when To =:= node() ->
    Ring = ring(),
    case Ring =:= unknown orelse weft_ring_table:is_promised(Transfer, Ring) of
        true -> Transfer;
        false -> none
    end;
promised(_) ->
    none.

ring() ->
    try weft_ring_server:command(ring) of
        {error, _} -> unknown;
        none -> unknown;
        Ring -> Ring
    catch exit:_ -> unknown
    end.
