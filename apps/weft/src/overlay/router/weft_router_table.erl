%% SPDX-License-Identifier: Apache-2.0
%% @doc The tables of the router: what neighbours told us, what we may believe, what we selected.
%%
%% Pure data of `weft_router_core', after RFC 8966 (Babel). Per destination there is one source, the
%% destination itself, so a source of the RFC is simply a destination here.
%%
%% A neighbour's route `{Seqno, Metric, Hops}' is <em>feasible</em> (RFC 8966, 3.5.1) if it is
%% better than our feasibility distance, the best pair {Seqno, Metric} that we ever announced: a
%% higher seqno, or the same and a strictly lower metric. Only feasible routes are selected, with
%% one exception that keeps traffic flowing: the route selected now may get worse than feasible and
%% stays selectable while its seqno is not behind our distance. (The RFC, 3.5.3, would ignore the
%% worse metric; we believe it, which is as safe.) This keeps the invariant: along each next hop the
%% feasibility distance gets strictly better. Hence the next hops to one destination never form
%% a loop, whatever messages are still under way.
-module(weft_router_table).

-export([new/2, own/1, raise_own/2,
         neighbour_up/3, neighbour_down/2, set_cost/3, cost/2, neighbours/1,
         put_heard/4, drop_heard/3, heard/2,
         matters/3, reselect/2, selected/2, selected/1, announce/2, distance/2, forget_distances/2,
         alternatives/3]).
-export_type([table/0, route/0, heard/0, selection/0]).

-record(table, {
    self :: weft_core:node_id(),
    %% Link cost and everything the neighbour announced.
    neighbours = #{} :: #{weft_core:node_id() =>
                              {metric(), #{weft_core:node_id() => heard()}}},
    selected :: #{weft_core:node_id() => selection()},
    distances = #{} :: #{weft_core:node_id() => {seqno(), metric()}}}).

-opaque table() :: #table{}.
-type seqno() :: non_neg_integer().
-type metric() :: non_neg_integer().
%% Sum of link costs, at least 1 per link.
-type hops() :: non_neg_integer().
-type heard() :: {seqno(), metric(), hops()}.
%% As announced: metric and hops are those of the neighbour, our link to it not yet added.
-type selection() :: {NextHop :: weft_core:node_id(), seqno(), metric(), hops()}.
%% As we would announce it: our link to the next hop is added.
-type route() :: {Dest :: weft_core:node_id(), seqno(), metric(), hops()}.

%% @doc A table with a route to Self only, announced with the given seqno.
-spec new(Self :: weft_core:node_id(), seqno()) -> table().
new(Self, Seqno) ->
    #table{self = Self, selected = #{Self => {Self, Seqno, 0, 0}}}.

%% @doc Our own seqno.
-spec own(table()) -> seqno().
own(#table{self = Self, selected = Selected}) ->
    {Self, Seqno, 0, 0} = map_get(Self, Selected),
    Seqno.

%% @doc Sets our own seqno, which must grow.
-spec raise_own(seqno(), table()) -> table().
raise_own(Seqno, #table{self = Self, selected = Selected} = Table) ->
    Table#table{selected = Selected#{Self => {Self, Seqno, 0, 0}}}.

%% @doc Adds a neighbour that has announced nothing yet.
-spec neighbour_up(weft_core:node_id(), metric(), table()) -> table().
neighbour_up(Node, Cost, #table{neighbours = Neighbours} = Table) ->
    Table#table{neighbours = Neighbours#{Node => {Cost, #{}}}}.

%% @doc Removes a neighbour with all it announced. Answers the destinations selected through it;
%% these must be reselected.
-spec neighbour_down(weft_core:node_id(), table()) -> {[weft_core:node_id()], table()}.
neighbour_down(Node, #table{neighbours = Neighbours} = Table) ->
    {via(Node, Table), Table#table{neighbours = maps:remove(Node, Neighbours)}}.

%% @doc Sets the link cost of a neighbour. Answers the destinations that must be reselected.
-spec set_cost(weft_core:node_id(), metric(), table()) -> {[weft_core:node_id()], table()}.
set_cost(Node, Cost, #table{neighbours = Neighbours} = Table) ->
    {_, Heard} = map_get(Node, Neighbours),
    {maps:keys(Heard), Table#table{neighbours = Neighbours#{Node := {Cost, Heard}}}}.

%% @doc Link cost of a neighbour, `error' if it is none.
-spec cost(weft_core:node_id(), table()) -> {ok, metric()} | error.
cost(Node, #table{neighbours = Neighbours}) ->
    case Neighbours of
        #{Node := {Cost, _}} -> {ok, Cost};
        #{} -> error
    end.

%% @doc All neighbours, in term order.
-spec neighbours(table()) -> [weft_core:node_id()].
neighbours(#table{neighbours = Neighbours}) ->
    lists:sort(maps:keys(Neighbours)).

%% @doc Stores what a neighbour announced for Dest.
-spec put_heard(Neighbour :: weft_core:node_id(), Dest :: weft_core:node_id(), heard(), table()) ->
          table().
put_heard(Node, Dest, Route, #table{neighbours = Neighbours} = Table) ->
    {Cost, Heard} = map_get(Node, Neighbours),
    Table#table{neighbours = Neighbours#{Node := {Cost, Heard#{Dest => Route}}}}.

%% @doc Forgets what a neighbour announced for Dest.
-spec drop_heard(Neighbour :: weft_core:node_id(), Dest :: weft_core:node_id(), table()) -> table().
drop_heard(Node, Dest, #table{neighbours = Neighbours} = Table) ->
    {Cost, Heard} = map_get(Node, Neighbours),
    Table#table{neighbours = Neighbours#{Node := {Cost, maps:remove(Dest, Heard)}}}.

%% @doc Everything a neighbour announced.
-spec heard(weft_core:node_id(), table()) -> #{weft_core:node_id() => heard()}.
heard(Node, #table{neighbours = Neighbours}) ->
    {_, Heard} = map_get(Node, Neighbours),
    Heard.

%% @doc Whether what Node announces now for Dest can change the selection. It can not if Node is not
%% the next hop and offers nothing better, which is the common case in a dense graph.
-spec matters(Node :: weft_core:node_id(), Dest :: weft_core:node_id(), table()) -> boolean().
matters(Node, Dest, #table{neighbours = Neighbours, selected = Selected}) ->
    {Cost, Heard} = map_get(Node, Neighbours),
    case {Selected, Heard} of
        {#{Dest := {NextHop, _, Best, _}}, #{Dest := {_, Metric, _}}} ->
            NextHop =:= Node orelse Metric + Cost < Best;
        {#{Dest := {NextHop, _, _, _}}, #{}} ->
            NextHop =:= Node;
        {#{}, #{}} ->
            true
    end.

%% @doc Selects the best usable route to Dest. Answers the selection before and after, and the
%% neighbour to ask for a newer seqno: one whose route would be better, were it feasible.
-spec reselect(weft_core:node_id(), table()) ->
          {Before :: selection() | none, After :: selection() | none,
           Ask :: {weft_core:node_id(), seqno()} | none, table()}.
reselect(Dest, #table{selected = Selected} = Table) ->
    Before = maps:get(Dest, Selected, none),
    {Usable, Unusable} = candidates(Dest, Before, Table),
    {After, Selected1} =
        case Usable of
            [] -> {none, maps:remove(Dest, Selected)};
            _ -> {_, Best} = lists:min(Usable), {Best, Selected#{Dest => Best}}
        end,
    {Before, After, ask(Dest, After, Unusable, Table), Table#table{selected = Selected1}}.

%% Each candidate is {Rank, Selection}; the lowest rank is best. On equal metric the present next
%% hop stays, then fewer hops, then the smaller name decide.
candidates(Dest, Before, #table{neighbours = Neighbours, distances = Distances}) ->
    Distance = maps:get(Dest, Distances, none),
    maps:fold(
      fun(Node, {Cost, #{Dest := {Seqno, Metric, Hops} = Route}}, {Usable, Unusable}) ->
              IsNow = is_tuple(Before) andalso element(1, Before) =:= Node,
              Candidate = {{Metric + Cost, not IsNow, Hops, Node},
                           {Node, Seqno, Metric + Cost, Hops + 1}},
              case is_feasible(Route, Distance) orelse (IsNow andalso is_level(Route, Distance)) of
                  true -> {[Candidate | Usable], Unusable};
                  false -> {Usable, [Candidate | Unusable]}
              end;
         (_Node, _SaysNothing, Acc) ->
              Acc
      end, {[], []}, Neighbours).

is_feasible(_Route, none) -> true;
is_feasible({Seqno, Metric, _}, {OurSeqno, OurMetric}) ->
    Seqno > OurSeqno orelse (Seqno =:= OurSeqno andalso Metric < OurMetric).

%% The next hop announced this after we chose it, so its own distance is still better than ours.
is_level({Seqno, _, _}, {OurSeqno, _}) ->
    Seqno >= OurSeqno.

ask(_Dest, _After, [], _Table) ->
    none;
ask(Dest, After, Unusable, #table{distances = Distances}) ->
    {_, {Node, _, Metric, _}} = lists:min(Unusable),
    {OurSeqno, _} = map_get(Dest, Distances),
    case After of
        {_, _, Better, _} when Better =< Metric -> none;
        _ -> {Node, OurSeqno + 1}
    end.

%% @doc The route selected to Dest.
-spec selected(weft_core:node_id(), table()) -> selection() | none.
selected(Dest, #table{selected = Selected}) ->
    maps:get(Dest, Selected, none).

%% @doc All selected routes, own node included.
-spec selected(table()) -> #{weft_core:node_id() => selection()}.
selected(#table{selected = Selected}) ->
    Selected.

%% @doc The selected route to Dest as it is to be sent, and the table with the feasibility distance
%% adapted (RFC 8966, 3.7.3). Sending without this step would break loop freedom.
-spec announce(weft_core:node_id(), table()) -> {route(), table()}.
announce(Dest, #table{selected = Selected, distances = Distances} = Table) ->
    {_, Seqno, Metric, Hops} = map_get(Dest, Selected),
    Distance = case Distances of
                   #{Dest := {Seqno, OldMetric}} -> {Seqno, min(OldMetric, Metric)};
                   #{} -> {Seqno, Metric}
               end,
    {{Dest, Seqno, Metric, Hops}, Table#table{distances = Distances#{Dest => Distance}}}.

%% @doc Our feasibility distance to Dest.
-spec distance(weft_core:node_id(), table()) -> {seqno(), metric()} | none.
distance(Dest, #table{distances = Distances}) ->
    maps:get(Dest, Distances, none).

%% @doc Drops the feasibility distances of the given destinations unless some neighbour still
%% announces them. Answers the dropped ones.
-spec forget_distances([weft_core:node_id()], table()) -> {[weft_core:node_id()], table()}.
forget_distances(Dests, #table{neighbours = Neighbours, distances = Distances} = Table) ->
    Tables = [Heard || {_, Heard} <- maps:values(Neighbours)],
    Gone = [Dest || Dest <- Dests, not lists:any(fun(H) -> is_map_key(Dest, H) end, Tables)],
    {Gone, Table#table{distances = maps:without(Gone, Distances)}}.

%% @doc Neighbours other than Except that announce Dest, the nearest first, feasible or not.
-spec alternatives(Dest :: weft_core:node_id(), Except :: weft_core:node_id(), table()) ->
          [weft_core:node_id()].
alternatives(Dest, Except, #table{neighbours = Neighbours}) ->
    Known = [{Metric + Cost, Node}
             || {Node, {Cost, #{Dest := {_, Metric, _}}}} <- maps:to_list(Neighbours),
                Node =/= Except],
    [Node || {_, Node} <- lists:sort(Known)].

via(Next, #table{selected = Selected, self = Self}) ->
    [Dest || {Dest, {NextHop, _, _, _}} <- maps:to_list(Selected), NextHop =:= Next, Dest =/= Self].
