%% SPDX-License-Identifier: Apache-2.0
%% @doc Which node owns which partition of the ring: a function of the members and of who owned what
%% before. The same input, in any order, gives the same answer on every node.
%%
%% What is wanted, the most important first:
%% <ol>
%% <li>Balance: any two nodes own equally many partitions, or one more. This always holds.</li>
%% <li>Any `n_val' partitions in a row, also across the end of the ring, have distinct nodes.</li>
%% <li>They have distinct locations.</li>
%% <li>As few partitions as possible change their owner: a node that joins gets its share, and of
%%     a node that leaves goes what it owned.</li>
%% </ol>
%% These can contradict each other: three nodes can not have all windows of three distinct when the
%% number of partitions is no multiple of three. The answer says what gave way.
%%
%% First the partitions of nodes that left, and what others own too much of, are given to those that
%% own too little (`weft_ring_claim_update'). What is wrong then is repaired by exchanges
%% (`weft_ring_claim_repair'). If that leaves a window wrong, the ring is also laid out anew
%% (`weft_ring_claim_layout'), which moves much; that is taken only if it is without fault, or has
%% fewer windows with a node twice.
-module(weft_ring_claim).

-export([claim/1]).
-export_type([request/0, claim/0, fault/0]).

-type request() :: #{partitions := pos_integer(), n_val := pos_integer(),
                     members := #{node() => Location :: term()},
                     before => [node()]}.
%% `before': the owner of each partition until now, without it there was none.

-type fault() ::
    {distinct_nodes, few_nodes}
  | {distinct_nodes, Partitions :: pos_integer()}
  | {distinct_locations, few_locations}
  | {distinct_locations, Partitions :: pos_integer()}
  | {moves, Moves :: pos_integer(), Least :: non_neg_integer()}.
%% With fewer nodes (locations) than `n_val' the windows are as distinct as these allow.
%% `Partitions' says how many have the same node (location) again within the window that begins with
%% them.
%% `Least' is how many moves balance alone needs.

-type claim() :: #{owners := [node()], moves := non_neg_integer(), gave_way := [fault()]}.

%% @doc The owner of each partition, how many have another owner than before, and which of the
%% preferences above were not met.
-spec claim(request()) -> {ok, claim()} | {error, no_members | {bad, atom(), term()}}.
claim(#{partitions := Partitions}) when not is_integer(Partitions); Partitions < 8;
                                        Partitions > 1024; Partitions band (Partitions - 1) =/= 0 ->
    {error, {bad, partitions, Partitions}};
claim(#{n_val := NVal, partitions := Partitions})
  when not is_integer(NVal); NVal < 1; NVal > Partitions ->
    {error, {bad, n_val, NVal}};
claim(#{members := Members}) when map_size(Members) =:= 0 ->
    {error, no_members};
claim(#{before := Before, partitions := Partitions})
  when Before =/= [], length(Before) =/= Partitions ->
    {error, {bad, before, length(Before)}};
claim(#{members := Members} = Request) ->
    Nodes = lists:sort(maps:keys(Members)),
    Problem = problem(Nodes, Request),
    Owners = best(Problem),
    {ok, #{owners => [lists:nth(Index, Nodes) || Index <- tuple_to_list(Owners)],
           moves => weft_ring_claim_rules:moves(Owners, Problem),
           gave_way => gave_way(Owners, Request, Problem)}}.

problem(Nodes, #{members := Members, partitions := Partitions, n_val := NVal} = Request) ->
    Index = maps:from_list(lists:zip(Nodes, lists:seq(1, length(Nodes)))),
    Before = case maps:get(before, Request, []) of
                 [] -> lists:duplicate(Partitions, 0);
                 Owners -> [maps:get(Owner, Index, 0) || Owner <- Owners]
             end,
    weft_ring_claim_rules:new(NVal, [maps:get(Node, Members) || Node <- Nodes], Before).

best(Problem) ->
    case weft_ring_claim_rules:is_empty(Problem) of
        true -> laid_out(Problem);
        false ->
            Updated = weft_ring_claim_update:update(Problem),
            kept(weft_ring_claim_repair:repair(Updated, Problem), Problem)
    end.

%% Is there anything to gain by a new layout?
kept(Owners, Problem) ->
    case weft_ring_claim_rules:faults(Owners, Problem) of
        {0, 0} -> Owners;
        {0, _} = Faults ->
            case weft_ring_claim_rules:is_crowded(Problem) of
                true -> Owners;
                false -> kept(Faults, Owners, laid_out(Problem), Problem)
            end;
        Faults -> kept(Faults, Owners, laid_out(Problem), Problem)
    end.

kept({NodeFaults, _}, Owners, New, Problem) ->
    case weft_ring_claim_rules:faults(New, Problem) of
        {0, 0} -> New;
        {Fewer, _} when Fewer < NodeFaults -> New;
        _ -> Owners
    end.

laid_out(Problem) ->
    Candidates = [weft_ring_claim_repair:repair(Owners, Problem)
                  || Owners <- weft_ring_claim_layout:layouts(Problem)],
    {_, _, Best} = lists:min([{weft_ring_claim_rules:faults(Owners, Problem),
                               weft_ring_claim_rules:moves(Owners, Problem), Owners}
                              || Owners <- Candidates]),
    Best.

%% --- what gave way ----------------------------------------------------------------------------

gave_way(Owners, #{n_val := NVal, members := Members} = Request, Problem) ->
    {NodeFaults, LocationFaults} = weft_ring_claim_rules:faults(Owners, Problem),
    Locations = length(lists:usort(maps:values(Members))),
    [{distinct_nodes, few_nodes} || map_size(Members) < NVal]
        ++ [{distinct_nodes, NodeFaults} || NodeFaults > 0]
        ++ [{distinct_locations, few_locations} || Locations < NVal, Locations > 1]
        ++ [{distinct_locations, LocationFaults} || LocationFaults > 0]
        ++ moved(weft_ring_claim_rules:moves(Owners, Problem), Request, Problem).

moved(Moves, #{before := [_ | _]}, Problem) ->
    case weft_ring_claim_rules:least_moves(Problem) of
        Least when Moves > Least -> [{moves, Moves, Least}];
        _ -> []
    end;
moved(_, _, _) ->
    [].
