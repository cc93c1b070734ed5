%% SPDX-License-Identifier: Apache-2.0
%% @doc What neighbours are told of our routes: all of them when a link comes up, then the changes.
%% Pure data of `weft_router_core'.
%%
%% Two things are not told. A route is not told to its next hop, nor to its destination (split
%% horizon); a neighbour that has become the next hop of a route that it was told before gets a
%% retraction instead. And a route is told to nobody if it leads through this node while this does
%% not relay, or would be too long for every neighbour.
%%
%% For this is kept what was announced, with the next hop at that time: that one was not told.
%%
%% Not here: when it is told (`weft_router_core'), and what a route looks like to others
%% (`weft_router_table:announce/2', which lowers the feasibility distance).
-module(weft_router_announcements).

-export([new/1, next_hop/2, all/4, changes/4, updates/3]).
-export_type([announced/0, change/0]).

-type node_id() :: weft_core:node_id().
-type announced() :: #{Dest :: node_id() => NextHop :: node_id()}.
-type change() :: {route, Dest :: node_id(), weft_router_table:route(), NextHop :: node_id(),
                   PreviousNextHop :: node_id() | none}
                | {retracted, Dest :: node_id(), PreviousNextHop :: node_id()}.
-type rules() :: #{self := node_id(), relay := boolean(), hop_limit := pos_integer()}.

%% @doc Of a node that knows only itself.
-spec new(Self :: node_id()) -> announced().
new(Self) -> #{Self => Self}.

%% @doc The next hop of that route when it was announced, if it was.
-spec next_hop(Dest :: node_id(), announced()) -> {ok, node_id()} | error.
next_hop(Dest, Announced) -> maps:find(Dest, Announced).

%% @doc All that a neighbour is told when the link to it has come up, in parts.
-spec all(Neighbour :: node_id(), EntriesMax :: pos_integer(), announced(),
          weft_router_table:table()) ->
          {[{more | last, [weft_router_table:route()]}], weft_router_table:table()}.
all(Node, Max, Announced, Table0) ->
    Dests = [Dest || {Dest, Next} <- maps:to_list(Announced), Next =/= Node, Dest =/= Node],
    {Routes, Table} = lists:mapfoldl(fun weft_router_table:announce/2, Table0, Dests),
    [Last | More] = lists:reverse(parts(Max, Routes)),
    {[{more, Part} || Part <- lists:reverse(More)] ++ [{last, Last}], Table}.

%% @doc The routes to these destinations may have changed: what is to be announced now, to all.
-spec changes([Dest :: node_id()], rules(), announced(), weft_router_table:table()) ->
          {[change()], announced(), weft_router_table:table()}.
changes(Dests, Rules, Announced0, Table0) ->
    {Changes, {Announced, Table}} =
        lists:mapfoldl(fun(Dest, Kept) -> change(Dest, Rules, Kept) end, {Announced0, Table0},
                       Dests),
    {lists:append(Changes), Announced, Table}.

change(Dest, Rules, {Announced, Table0}) ->
    Selected = weft_router_table:selected(Dest, Table0),
    case {is_told(Dest, Selected, Rules), Announced} of
        {true, _} ->
            {Route, Table} = weft_router_table:announce(Dest, Table0),
            Next = element(1, Selected),
            {[{route, Dest, Route, Next, maps:get(Dest, Announced, none)}],
             {Announced#{Dest => Next}, Table}};
        {false, #{Dest := Previous}} ->
            {[{retracted, Dest, Previous}], {maps:remove(Dest, Announced), Table0}};
        {false, #{}} ->
            {[], {Announced, Table0}}
    end.

is_told(_Dest, none, _Rules) ->
    false;
is_told(Dest, {_, _, _, Hops}, #{self := Self, relay := IsRelay, hop_limit := Limit}) ->
    (IsRelay orelse Dest =:= Self) andalso Hops < Limit.

%% @doc What one neighbour is told of these changes: new routes, and the destinations of those that
%% are no more.
-spec updates(Neighbour :: node_id(), [change()], EntriesMax :: pos_integer()) ->
          [{update, [weft_router_table:route()], Retracted :: [node_id()]}].
updates(Node, Changes, Max) ->
    Routes = [Route || {route, Dest, Route, Next, _} <- Changes, Next =/= Node, Dest =/= Node],
    Retracted = lists:append([retracted_at(Node, Change) || Change <- Changes]),
    case length(Routes) + length(Retracted) of
        0 -> [];
        Count when Count =< Max -> [{update, Routes, Retracted}];
        _ -> [{update, [], Part} || Part <- parts(Max, Retracted)]
             ++ [{update, Part, []} || Part <- parts(Max, Routes)]
    end.

retracted_at(Dest, {_, Dest, _, _, _}) -> [];
retracted_at(Node, {route, Dest, _, Node, Before}) when Before =/= Node, Before =/= none -> [Dest];
retracted_at(Node, {retracted, Dest, Before}) when Before =/= Node, Dest =/= Node -> [Dest];
retracted_at(_Node, _Change) -> [].

%% List in parts of at most Max elements; one empty part for the empty list.
parts(Max, List) when length(List) =< Max ->
    [List];
parts(Max, List) ->
    {Part, Rest} = lists:split(Max, List),
    [Part | parts(Max, Rest)].
