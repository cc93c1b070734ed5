%% SPDX-License-Identifier: Apache-2.0
%% @doc Groups of nodes in three shapes, apart from the program that runs on them: what Chechina et
%% al. (2017, 6.2.2) call a reusable group pattern. Their pattern also has processes that relay
%% messages between groups, and calls of its own to send; over weft nodes relay, and `!' stays.
%%
%% The nodes are cut into blocks of `size' in the order of the list; block I is group I. Gateways
%% are nodes of one block that are in the group of another one as well, `gateways' (2) of them for
%% each two groups that touch:
%%   ring   each group has gateways of the block behind it, the last one of the first
%%   tree   each group but the first has gateways of its parent's block; `degree' (2) is how many
%%          groups a parent has below it
%%   hub    the first nodes of all blocks are one more group, `hub'
-module(grouping).

-export([groups/3, create/1]).
-export_type([shape/0, options/0, groups/0]).

-type shape() :: ring | tree | hub.
-type options() :: #{size := pos_integer(), gateways => pos_integer(), degree => pos_integer()}.
-type groups() :: #{hub | pos_integer() => [node()]}.

%% @doc The groups, for `{topology, {groups, Groups}}' or for create/1. The last block may be
%% smaller. Raises an error if a block has fewer nodes than gateways.
-spec groups(shape(), [node()], options()) -> groups().
groups(Shape, Nodes, #{size := Size} = Options) ->
    #{gateways := Gateways, degree := Degree} =
        maps:merge(#{gateways => 2, degree => 2}, Options),
    Blocks = blocks(Nodes, Size),
    [error({smaller_than_its_gateways, Block}) || Block <- Blocks, length(Block) < Gateways],
    Own = maps:from_list(lists:zip(lists:seq(1, length(Blocks)), Blocks)),
    joined(Shape, Own, Gateways, Degree).

blocks([], _Size) -> [];
blocks(Nodes, Size) when length(Nodes) =< Size -> [Nodes];
blocks(Nodes, Size) ->
    {Block, Rest} = lists:split(Size, Nodes),
    [Block | blocks(Rest, Size)].

joined(_Shape, Own, _Gateways, _Degree) when map_size(Own) =:= 1 -> Own;
joined(hub, Own, Gateways, _Degree) ->
    Own#{hub => lists:append([lists:sublist(Block, Gateways) || Block <- in_order(Own)])};
joined(ring, Own, Gateways, _Degree) ->
    Count = map_size(Own),
    maps:map(fun(I, Block) when Count =:= 2, I =:= 2 -> Block;
                (I, Block) -> Block ++ lists:sublist(map_get(I rem Count + 1, Own), Gateways)
             end, Own);
joined(tree, Own, Gateways, Degree) ->
    maps:map(fun(1, Block) -> Block;
                (I, Block) ->
                     Parent = map_get((I - 2) div Degree + 1, Own),
                     Block ++ chosen(Parent, (I - 2) rem Degree, Gateways)
             end, Own).

in_order(Own) -> [map_get(I, Own) || I <- lists:seq(1, map_size(Own))].

%% Each child gets other nodes of its parent, as long as there are some.
chosen(Parent, Which, Gateways) ->
    Skip = Which * Gateways rem length(Parent),
    {First, Rest} = lists:split(Skip, Parent),
    lists:sublist(Rest ++ First, Gateways).

%% @doc Makes the groups while the nodes run. The result has, for each group, what
%% `weft_group:create/2' answered on its first node.
-spec create(groups()) -> #{hub | pos_integer() => {ok, map()} | {error, term()}}.
create(Groups) ->
    maps:map(fun(Name, [First | _] = Nodes) ->
                     erpc:call(First, weft_group, create, [Name, Nodes])
             end, Groups).
