%% SPDX-License-Identifier: Apache-2.0
%% @doc The members of a partition of a strong bucket: its nodes stay, and what changes is which
%% file of a node counts. Those of epoch 0 are the founders, the first file of each node. Each later
%% epoch replaces the file of one node, and the members of the epoch before have chosen that. Pure.
-module(weft_kv_strong_members).

-export([founders/0, key/0, epoch/1, compare/2, is_replaced/3, replace/3, has/3]).
-export_type([members/0, epoch/0]).

-type epoch() :: non_neg_integer().
-type members() :: {epoch(), Replaced :: #{node() => weft_kv_strong_acceptor_core:identity()}}.

-spec founders() -> members().
founders() -> {0, #{}}.

%% @doc The register in which the members are: no key of a user is empty.
-spec key() -> binary().
key() -> <<>>.

-spec epoch(members()) -> epoch().
epoch({Epoch, _}) -> Epoch.

%% @doc What the first ones are to the second ones.
-spec compare(members(), members()) -> earlier | same | later.
compare({Epoch, _}, {Mine, _}) when Epoch < Mine -> earlier;
compare({Epoch, _}, {Mine, _}) when Epoch > Mine -> later;
compare(_, _) -> same.

%% @doc Does another file of this node count?
-spec is_replaced(node(), weft_kv_strong_acceptor_core:identity(), members()) -> boolean().
is_replaced(Node, Identity, {_, Replaced}) ->
    case Replaced of
        #{Node := Another} -> Another =/= Identity;
        #{} -> false
    end.

%% @doc The members of the next epoch.
-spec replace(node(), weft_kv_strong_acceptor_core:identity(), members()) -> members().
replace(Node, Identity, {Epoch, Replaced}) -> {Epoch + 1, Replaced#{Node => Identity}}.

%% @doc Was it replaced by this one?
-spec has(node(), weft_kv_strong_acceptor_core:identity(), members()) -> boolean().
has(Node, Identity, {_, Replaced}) -> maps:get(Node, Replaced, none) =:= Identity.
