%% SPDX-License-Identifier: Apache-2.0
%% @doc The change of a ring with the fewest moves: nodes with too few partitions take those that
%% nobody owns, and of those nodes that own too many. Each takes them as far apart as its share
%% allows, and where they disturb no window. Windows that are wrong all the same are left to
%% `weft_ring_claim_repair'.
-module(weft_ring_claim_update).

-export([update/1]).

%% @doc A balanced assignment in which only as much has moved as balance needs.
-spec update(weft_ring_claim_rules:problem()) -> weft_ring_claim_rules:owners().
update(Problem) ->
    Owners = weft_ring_claim_rules:before(Problem),
    Counts = weft_ring_claim_rules:counts(Owners, Problem),
    Needs = maps:map(fun(Node, Target) -> Target - maps:get(Node, Counts) end,
                     weft_ring_claim_rules:targets(Problem)),
    take(taker(Needs), Needs, Owners, Problem).

%% The one that lacks most.
taker(Needs) ->
    lists:min([{-Need, Node} || {Node, Need} <- maps:to_list(Needs)]).

take({Need, _}, _Needs, Owners, _Problem) when Need >= 0 ->
    Owners;
take({_, Taker}, Needs, Owners, Problem) ->
    Apart = weft_ring_claim_rules:size(Problem)
                div max(1, maps:get(Taker, weft_ring_claim_rules:targets(Problem))),
    Candidates = [{worth(P, Owner, Taker, Apart, Needs, Owners, Problem), P}
                  || {P, Owner} <- spare(Owners, Needs)],
    {_, P} = lists:min(Candidates),
    Left = given(element(P, Owners), Needs),
    Taken = Left#{Taker := maps:get(Taker, Left) - 1},
    take(taker(Taken), Taken, setelement(P, Owners, Taker), Problem).

spare(Owners, Needs) ->
    [{P, Owner} || {P, Owner} <- lists:zip(lists:seq(1, tuple_size(Owners)), tuple_to_list(Owners)),
                   Owner =:= 0 orelse maps:get(Owner, Needs) < 0].

given(0, Needs) -> Needs;
given(Owner, Needs) -> Needs#{Owner := maps:get(Owner, Needs) + 1}.

%% What is worth more is smaller: no faults, far from the other partitions of the taker, of the
%% owner that has most to give.
worth(P, Owner, Taker, Apart, Needs, Owners, Problem) ->
    {weft_ring_claim_rules:cost(P, Taker, Owners, Problem) - now_costs(P, Owner, Owners, Problem),
     -distance(1, Apart, P, Taker, Owners),
     case Owner of 0 -> -1000000; _ -> maps:get(Owner, Needs) end}.

now_costs(_, 0, _, _) -> 0;
now_costs(P, Owner, Owners, Problem) -> weft_ring_claim_rules:cost(P, Owner, Owners, Problem).

%% To the nearest partition of this node, at most Apart.
distance(Step, Apart, _, _, _) when Step >= Apart ->
    Apart;
distance(Step, Apart, P, Node, Owners) ->
    Size = tuple_size(Owners),
    case element((P - 1 + Step) rem Size + 1, Owners) =:= Node
        orelse element((P - 1 + Size - Step) rem Size + 1, Owners) =:= Node of
        true -> Step;
        false -> distance(Step + 1, Apart, P, Node, Owners)
    end.
