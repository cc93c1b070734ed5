%% SPDX-License-Identifier: Apache-2.0
%% @doc A topology whose neighbours are known from the start. `weft_static_core' and
%% `weft_groups_core' share it; they only compute the neighbours.
%%
%% It connects to every neighbour and keeps the links for ever. It shows the members (all nodes of
%% the configuration, own node included) as views `{member, Node} => configured'. Nodes exchange no
%% messages: the configuration is the same everywhere.
%%
%% Command `leave': gives up all links and answers `ok'; from then on nothing is dialled. Seeds are
%% ignored, and `{forget, Node}' is answered `{error, configured}', because the members are written
%% down.
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
