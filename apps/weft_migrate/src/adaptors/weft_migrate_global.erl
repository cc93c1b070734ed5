%% SPDX-License-Identifier: Apache-2.0
%% @doc `global' in terms of `weft_global'. What is not here has no counterpart. It is not
%% `weft_global:sync/0': that waits for nothing, and who calls `global:sync/0' to see names of other
%% nodes might not see them. See `weft_migrate_adaptor'.
-module(weft_migrate_global).
-migrates(global).

-export([register_name/2, register_name/3, re_register_name/2, re_register_name/3,
         unregister_name/1, whereis_name/1, send/2, registered_names/0]).
-export([set_lock/1, set_lock/2, set_lock/3, del_lock/1, del_lock/2, trans/2, trans/3, trans/4]).

-spec register_name(term(), pid()) -> yes | no.
register_name(Name, Pid) -> weft_global:register_name(Name, Pid).

-spec register_name(term(), pid(), fun()) -> yes | no.
register_name(Name, Pid, Resolve) -> weft_global:register_name(Name, Pid, Resolve).

-spec re_register_name(term(), pid()) -> yes | no.
re_register_name(Name, Pid) -> weft_global:re_register_name(Name, Pid).

-spec re_register_name(term(), pid(), fun()) -> yes | no.
re_register_name(Name, Pid, Resolve) -> weft_global:re_register_name(Name, Pid, Resolve).

-spec unregister_name(term()) -> ok.
unregister_name(Name) -> weft_global:unregister_name(Name).

-spec whereis_name(term()) -> pid() | undefined.
whereis_name(Name) -> weft_global:whereis_name(Name).

-spec send(term(), term()) -> pid().
send(Name, Message) -> weft_global:send(Name, Message).

-spec registered_names() -> [term()].
registered_names() -> weft_global:registered_names().

-spec set_lock(weft_global:id()) -> boolean().
set_lock(Id) -> weft_global:set_lock(Id).

-spec set_lock(weft_global:id(), [node()]) -> boolean().
set_lock(Id, Nodes) -> weft_global:set_lock(Id, Nodes).

-spec set_lock(weft_global:id(), [node()], weft_global:retries()) -> boolean().
set_lock(Id, Nodes, Retries) -> weft_global:set_lock(Id, Nodes, Retries).

-spec del_lock(weft_global:id()) -> true.
del_lock(Id) -> weft_global:del_lock(Id).

-spec del_lock(weft_global:id(), [node()]) -> true.
del_lock(Id, Nodes) -> weft_global:del_lock(Id, Nodes).

-spec trans(weft_global:id(), fun(() -> term())) -> term().
trans(Id, Fun) -> weft_global:trans(Id, Fun).

-spec trans(weft_global:id(), fun(() -> term()), [node()]) -> term().
trans(Id, Fun, Nodes) -> weft_global:trans(Id, Fun, Nodes).

-spec trans(weft_global:id(), fun(() -> term()), [node()], weft_global:retries()) -> term().
trans(Id, Fun, Nodes, Retries) -> weft_global:trans(Id, Fun, Nodes, Retries).
