%% SPDX-License-Identifier: Apache-2.0
%% @doc Takes faults out of a balanced assignment: one partition in a fault after the other is
%% exchanged with the one, or given to the node, that makes the whole cheapest. As this may have to
%% get worse before it gets better, what was exchanged is not exchanged back for a while (tabu
%% search, Glover 1986), and the best assignment seen counts. Of that goes back what need not have
%% moved. There is no chance in it, and the number of steps is bounded.
-module(weft_ring_claim_repair).

-export([repair/2]).

-define(EVALUATIONS_MAX, 100000).
%% Steps without a better assignment, after which none is looked for.
-define(FRUITLESS_MAX, 250).
-define(TABU_STEPS, 12).
-define(SETTLED_MAX, 100).

-record(search, {problem :: weft_ring_claim_rules:problem(),
                 owners :: weft_ring_claim_rules:owners(),
                 counts :: #{pos_integer() => non_neg_integer()},
                 cost = 0 :: integer(),
                 best :: {integer(), weft_ring_claim_rules:owners()},
                 tabu = #{} :: #{{pos_integer(), pos_integer()} => pos_integer()},
                 step = 0 :: non_neg_integer(),
                 best_step = 0 :: non_neg_integer()}).

%% @doc As good an assignment as is found in a bounded number of steps; as balanced as before.
-spec repair(weft_ring_claim_rules:owners(), weft_ring_claim_rules:problem()) ->
          weft_ring_claim_rules:owners().
repair(Owners, Problem) ->
    Search = #search{problem = Problem, owners = Owners, best = {0, Owners},
                     counts = weft_ring_claim_rules:counts(Owners, Problem)},
    #search{best = {_, Best}} = search(?EVALUATIONS_MAX div tuple_size(Owners), Search),
    settled(Search#search{owners = Best,
                          counts = weft_ring_claim_rules:counts(Best, Problem)}).

%% What was moved to make room, and need not have been, goes back.
settled(#search{owners = Owners, problem = Problem} = Search) ->
    Before = weft_ring_claim_rules:before(Problem),
    Moved = [P || P <- lists:seq(1, tuple_size(Owners)), element(P, Before) =/= 0,
                  element(P, Owners) =/= element(P, Before)],
    settled(lists:sublist(Moved, ?SETTLED_MAX), Search).

settled([], #search{owners = Owners}) ->
    Owners;
settled([P | Moved], Search) ->
    case exchanges(P, Search) ++ gifts(P, Search) ++ returns(P, Search) of
        [] -> settled(Moved, Search);
        Changes ->
            case lists:min(Changes) of
                {Delta, _, _} = Change when Delta < 0 ->
                    settled(Moved, (make(P, Change, Search))#search{tabu = #{}, cost = 0});
                _ -> settled(Moved, Search)
            end
    end.

search(0, Search) ->
    Search;
search(_, #search{step = Step, best_step = Best} = Search) when Step > Best + ?FRUITLESS_MAX ->
    Search;
search(Steps, #search{step = Step} = Search) ->
    case faulty(Search) of
        [] -> Search;
        Faulty ->
            P = lists:nth(Step rem length(Faulty) + 1, Faulty),
            search(Steps - 1, change(P, Search#search{step = Step + 1}))
    end.

faulty(#search{owners = Owners, problem = Problem}) ->
    [P || P <- lists:seq(1, tuple_size(Owners)),
          weft_ring_claim_rules:cost(P, element(P, Owners), Owners, Problem) >= 2].

change(P, Search) ->
    case exchanges(P, Search) ++ gifts(P, Search) ++ returns(P, Search) of
        [] -> Search;
        Changes -> make(P, lists:min(Changes), Search)
    end.

exchanges(P, #search{owners = Owners, problem = Problem, cost = Cost, best = {Best, _}} = Search) ->
    X = element(P, Owners),
    [{Delta, exchange, Q}
     || Q <- lists:seq(1, tuple_size(Owners)), Y <- [element(Q, Owners)], Y =/= X,
        Delta <- [exchange_costs(P, X, Q, Y, Owners, Problem)],
        Cost + Delta < Best orelse not (is_tabu(P, Y, Search) orelse is_tabu(Q, X, Search))].

exchange_costs(P, X, Q, Y, Owners, Problem) ->
    weft_ring_claim_rules:cost(P, Y, Owners, Problem, Q)
        + weft_ring_claim_rules:cost(Q, X, Owners, Problem, P)
        - weft_ring_claim_rules:cost(P, X, Owners, Problem, Q)
        - weft_ring_claim_rules:cost(Q, Y, Owners, Problem, P).

%% A node with the larger share may give one to a node with the smaller share.
gifts(P, #search{owners = Owners, counts = Counts, problem = Problem} = Search) ->
    Small = tuple_size(Owners) div weft_ring_claim_rules:nodes(Problem),
    X = element(P, Owners),
    case maps:get(X, Counts) > Small of
        false -> [];
        true -> [{weft_ring_claim_rules:cost(P, Z, Owners, Problem)
                      - weft_ring_claim_rules:cost(P, X, Owners, Problem), gift, Z}
                 || {Z, Count} <- maps:to_list(Counts), Count =:= Small,
                    not is_tabu(P, Z, Search)]
    end.

%% A node gives back what it has taken, and takes another partition instead, from a node that can
%% spare it.
returns(P, #search{owners = Owners, problem = Problem, counts = Counts} = Search) ->
    Small = tuple_size(Owners) div weft_ring_claim_rules:nodes(Problem),
    Taker = element(P, Owners),
    case element(P, weft_ring_claim_rules:before(Problem)) of
        X when X =/= 0, X =/= Taker, map_get(X, Counts) =:= Small ->
            [{return_costs(P, X, Q, Y, Owners, Problem), return, Q}
             || Q <- lists:seq(1, tuple_size(Owners)), Y <- [element(Q, Owners)],
                Y =/= Taker, map_get(Y, Counts) > Small,
                is_apart(P, Q, Problem), not is_tabu(Q, Taker, Search)];
        _ -> []
    end.

return_costs(P, X, Q, Y, Owners, Problem) ->
    Taker = element(P, Owners),
    weft_ring_claim_rules:cost(P, X, Owners, Problem)
        + weft_ring_claim_rules:cost(Q, Taker, Owners, Problem, P)
        - weft_ring_claim_rules:cost(P, Taker, Owners, Problem)
        - weft_ring_claim_rules:cost(Q, Y, Owners, Problem).

%% In no window are both.
is_apart(P, Q, Problem) ->
    Distance = abs(P - Q),
    min(Distance, weft_ring_claim_rules:size(Problem) - Distance)
        >= weft_ring_claim_rules:window(Problem).

is_tabu(P, Node, #search{tabu = Tabu, step = Step}) ->
    maps:get({P, Node}, Tabu, 0) > Step.

make(P, {Delta, exchange, Q}, #search{owners = Owners} = Search) ->
    {X, Y} = {element(P, Owners), element(Q, Owners)},
    moved(Delta, [{P, X}, {Q, Y}], setelement(P, setelement(Q, Owners, X), Y), Search);
make(P, {Delta, gift, Z}, #search{owners = Owners, counts = Counts} = Search) ->
    X = element(P, Owners),
    moved(Delta, [{P, X}], setelement(P, Owners, Z),
          Search#search{counts = Counts#{X := maps:get(X, Counts) - 1,
                                         Z := maps:get(Z, Counts) + 1}});
make(P, {Delta, return, Q}, #search{owners = Owners, counts = Counts,
                                    problem = Problem} = Search) ->
    {Taker, Y} = {element(P, Owners), element(Q, Owners)},
    X = element(P, weft_ring_claim_rules:before(Problem)),
    moved(Delta, [{P, Taker}, {Q, Y}], setelement(P, setelement(Q, Owners, Taker), X),
          Search#search{counts = Counts#{X := maps:get(X, Counts) + 1,
                                         Y := maps:get(Y, Counts) - 1}}).

moved(Delta, Left, Owners, #search{cost = Cost, tabu = Tabu, step = Step} = Search) ->
    Until = maps:from_list([{Place, Step + ?TABU_STEPS} || Place <- Left]),
    compared(Search#search{owners = Owners, cost = Cost + Delta, tabu = maps:merge(Tabu, Until)}).

compared(#search{owners = Owners, cost = Cost, best = {Best, _}, step = Step} = Search)
  when Cost < Best ->
    Search#search{best = {Cost, Owners}, best_step = Step};
compared(Search) ->
    Search.
