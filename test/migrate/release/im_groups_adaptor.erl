%% SPDX-License-Identifier: Apache-2.0
%% @doc What RSD-IM uses of s_group and `weft migrate' has no rule for, as the results are others in
%% general. RSD-IM does not look at those of changes, and looks for names in its own group only.
-module(im_groups_adaptor).
-migrates(s_group).

-export([add_nodes/2, remove_nodes/2, own_nodes/0, register_name/3, whereis_name/2, send/3,
         registered_names/1]).

-spec add_nodes(term(), [node()]) -> term().
add_nodes(Group, Nodes) -> weft_group:add(Group, Nodes).

-spec remove_nodes(term(), [node()]) -> term().
remove_nodes(Group, Nodes) -> weft_group:remove(Group, Nodes).

-spec own_nodes() -> [node()].
own_nodes() -> weft_group:own_nodes().

-spec register_name(term(), atom(), pid()) -> yes | no.
register_name(Group, Name, Pid) -> im_names:register_name(Group, Name, Pid).

-spec whereis_name(term(), atom()) -> pid() | undefined.
whereis_name(Group, Name) -> im_names:whereis_name(Group, Name).

-spec send(term(), atom(), term()) -> term().
send(Group, Name, Message) -> im_names:send(Group, Name, Message).

-spec registered_names({s_group, term()}) -> [{term(), atom()}].
registered_names(Of) -> im_names:names(Of).
