%% SPDX-License-Identifier: Apache-2.0
%% @doc The trees that broadcasts take. Of each tree the links are kept that are lazy; all others
%% are eager, so at first, and with a neighbour that is new, all are.
%%
%% Pure part of `weft_plumtree_core', which knows the neighbours, and says which link becomes what.
%% A tree that is forgotten for another one is built anew with its next message.
%%
%% If messages of several senders that travel at once all removed links, each would cut a cycle at a
%% different place, and the tree would fall into pieces. So one sender at a time shapes the shared
%% tree: the least of those heard lately. Messages of other senders do not change it.
-module(weft_plumtree_trees).

-export([new/0, split/4, set/5, lost/2, shaper/4, figures/2]).
-export_type([trees/0, tree/0, shaper/0]).

-type node_id() :: weft_core:node_id().
-type neighbours() :: #{node_id() => []}.
%% One for all senders, or that of one of them.
-type tree() :: all | node_id().
-type trees() :: #{tree() => Lazy :: #{node_id() => []}}.
%% The sender whose messages shape the shared tree, and when it was last heard.
-type shaper() :: none | {node_id(), LastMs :: integer()}.

%% @doc All links are eager.
-spec new() -> trees().
new() -> #{}.

%% @doc The neighbours except From by their links in that tree, in term order.
-spec split(From :: node_id() | none, tree(), neighbours(), trees()) ->
          {Eager :: [node_id()], Lazy :: [node_id()]}.
split(From, Tree, Neighbours, Trees) ->
    Lazy = maps:get(Tree, Trees, #{}),
    lists:partition(fun(Node) -> not is_map_key(Node, Lazy) end,
                    lists:sort(maps:keys(maps:remove(From, Neighbours)))).

%% @doc The link to that neighbour is eager or lazy in that tree from now on. As many trees as that
%% are kept.
-spec set(eager | lazy, node_id(), tree(), TreesMax :: pos_integer(), trees()) -> trees().
set(How, Node, Tree, Max, Trees) ->
    Lazy0 = maps:get(Tree, Trees, #{}),
    Lazy = case How of
               eager -> maps:remove(Node, Lazy0);
               lazy -> Lazy0#{Node => []}
           end,
    bound(Max, Tree, Trees#{Tree => Lazy}).

bound(Max, _Keep, Trees) when map_size(Trees) =< Max -> Trees;
bound(_Max, Keep, Trees) -> maps:remove(hd(lists:sort(maps:keys(maps:remove(Keep, Trees)))), Trees).

%% @doc That node is no neighbour any more.
-spec lost(node_id(), trees()) -> trees().
lost(Node, Trees) -> maps:map(fun(_Tree, Lazy) -> maps:remove(Node, Lazy) end, Trees).

%% @doc A message of Root has come: who shapes the shared tree now. The present one does so until it
%% was not heard for ShapeMs, or a sender with a smaller name is.
-spec shaper(Root :: node_id(), NowMs :: integer(), ShapeMs :: pos_integer(), shaper()) -> shaper().
shaper(Root, NowMs, ShapeMs, {Other, LastMs} = Shaper)
  when Other < Root, NowMs - LastMs < ShapeMs ->
    Shaper;
shaper(Root, NowMs, _ShapeMs, _Former) ->
    {Root, NowMs}.

%% @doc How many trees there are, and eager and lazy links in all of them.
-spec figures(neighbours(), trees()) -> #{trees | eager | lazy => non_neg_integer()}.
figures(Neighbours, Trees) ->
    Count = max(1, map_size(Trees)),
    Lazy = lists:sum([map_size(Nodes) || Nodes <- maps:values(Trees)]),
    #{trees => Count, lazy => Lazy, eager => Count * map_size(Neighbours) - Lazy}.
