%% SPDX-License-Identifier: Apache-2.0
%% @doc The topology whose neighbours are known from the start: shared by `weft_static_core' and
%% `weft_groups_core', which only compute who they are.
%%
%% Connects to every neighbour and keeps it so for ever. Tells the members (all nodes of the
%% configuration, own node included) as views `{member, Node} => configured'. Nothing is said
%% between nodes: the configuration is the same file everywhere.
%%
%% Command `leave': gives up all links and answers `ok'; from then on nothing is dialled. There is
%% nobody to find and nobody to forget: seeds are ignored, and `{forget, Node}' is answered
%% `{error, configured}'.
-module(weft_fixed_neighbours).

-export([init/4, handle/3, neighbours/1]).
-export_type([state/0]).

-opaque state() :: weft_wanted_links:links().

%% @doc Starts with Neighbours to connect to and Members to show.
-spec init(weft_core:node_id(), Neighbours :: [weft_core:node_id()],
           Members :: [weft_core:node_id()], weft_core:options()) ->
          {state(), weft_core:effects()}.
init(Self, Neighbours, Members, Options) ->
    {Links, Dials} = each(fun weft_wanted_links:want/2, lists:usort(Neighbours),
                          weft_wanted_links:new(Self, Options)),
    {Links, [{view, {member, Node}, configured} || Node <- lists:usort(Members)] ++ Dials}.

%% @doc See `weft_topology'.
-spec neighbours(state()) -> [weft_core:node_id()].
neighbours(Links) ->
    weft_wanted_links:wanted(Links).

%% @doc See `weft_core'. Events: links up and down, own timers, the commands.
-spec handle(weft_core:event(), integer(), state()) -> {state(), weft_core:effects()}.
handle({neighbour_up, Node}, _NowMs, Links) ->
    {weft_wanted_links:up(Node, Links), []};
handle({neighbour_down, Node, _Reason}, _NowMs, Links) ->
    weft_wanted_links:down(Node, Links);
handle({timer, Timer}, _NowMs, Links) ->
    weft_wanted_links:timer(Timer, Links);
handle({message, _From, _Msg}, _NowMs, Links) ->
    {Links, []};
handle({notice, {seeds, _Nodes}}, _NowMs, Links) ->
    {Links, []};
handle({command, Ref, {forget, _Node}}, _NowMs, Links) ->
    {Links, [{reply, Ref, {error, configured}}]};
handle({command, Ref, leave}, _NowMs, Links0) ->
    {Links, Effects} = each(fun weft_wanted_links:unwant/2, weft_wanted_links:wanted(Links0),
                            Links0),
    {Links, Effects ++ [{reply, Ref, ok}]}.

each(Fun, Nodes, Links) ->
    lists:foldl(fun(Node, {Links0, Effects}) ->
                    {Links1, More} = Fun(Node, Links0),
                    {Links1, Effects ++ More}
                end, {Links, []}, Nodes).
