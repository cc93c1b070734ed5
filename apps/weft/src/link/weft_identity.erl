%% SPDX-License-Identifier: Apache-2.0
%% @doc Who this node is to its peers: name, incarnation, cluster, whether it can be dialled.
%%
%% The incarnation is a number that no other start of a node with this name has: a restarted node
%% can never resume what an earlier one had. It is made when the carrier starts.
-module(weft_identity).

-export([init/1, incarnation/0, listens/0, name/0, cluster/0]).

-define(KEY, weft_identity).

%% @doc Draws the incarnation. Listens tells whether others can dial this node.
-spec init(Listens :: boolean()) -> ok.
init(Listens) ->
    persistent_term:put(?KEY, {weft_random:distinct(), Listens}).

-spec incarnation() -> non_neg_integer().
incarnation() -> element(1, persistent_term:get(?KEY)).

-spec listens() -> boolean().
listens() -> element(2, persistent_term:get(?KEY)).

%% @doc The node name, or an empty binary while the node has none (dynamic node names).
-spec name() -> binary().
name() ->
    case node() of
        nonode@nohost -> <<>>;
        Node -> atom_to_binary(Node)
    end.

-spec cluster() -> binary().
cluster() -> unicode:characters_to_binary(weft_config:get(cluster_name)).
