%% SPDX-License-Identifier: Apache-2.0
%% @doc What this node is to its peers: name, incarnation, cluster, whether it can be dialled, and
%% at which port.
%%
%% The incarnation is a number that no other start of a node with this name has, so a restarted node
%% can never resume the sessions of an earlier start. It is made when the carrier starts, and again
%% when the carrier has to be restarted: then its links have said goodbye, and its sessions have
%% ended.
%%
%% A node that asks its first peer for a name (`-sname undefined') had none when it introduced
%% itself. It stays nameless to its peers here: they know its links by the incarnation.
-module(weft_identity).

-export([init/1, renew/0, incarnation/0, listens/0, port/0, name/0, cluster/0]).

-define(KEY, weft_identity).
-define(NAMELESS, weft_identity_nameless).

%% @doc Makes the incarnation. Listens tells whether others can dial this node, or at which port.
-spec init(Listens :: boolean() | inet:port_number()) -> ok.
init(Listens) ->
    _ = persistent_term:erase(?NAMELESS),
    persistent_term:put(?KEY, {weft_random:distinct(), Listens}).

%% @doc Makes another incarnation; all else is as before.
-spec renew() -> ok.
renew() ->
    {_Incarnation, Listens} = persistent_term:get(?KEY),
    persistent_term:put(?KEY, {weft_random:distinct(), Listens}).

-spec incarnation() -> non_neg_integer().
incarnation() -> element(1, persistent_term:get(?KEY)).

-spec listens() -> boolean().
listens() -> element(2, persistent_term:get(?KEY)) =/= false.

%% @doc The port where this node listens; `none' if that is not known, or it does not.
-spec port() -> {ok, inet:port_number()} | none.
port() ->
    case persistent_term:get(?KEY) of
        {_Incarnation, Port} when is_integer(Port) -> {ok, Port};
        {_Incarnation, _Listens} -> none
    end.

%% @doc The node name, or an empty binary if the node had none when it was first asked.
-spec name() -> binary().
name() ->
    case {node(), persistent_term:get(?NAMELESS, false)} of
        {_, true} ->
            <<>>;
        {nonode@nohost, false} ->
            %% A node that listens is about to get its name.
            listens() orelse persistent_term:put(?NAMELESS, true),
            <<>>;
        {Node, false} ->
            atom_to_binary(Node)
    end.

-spec cluster() -> binary().
cluster() -> unicode:characters_to_binary(weft_config:get(cluster_name)).
