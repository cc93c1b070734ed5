%% SPDX-License-Identifier: Apache-2.0
%% @doc Processes that sessions do not suspend, however much of theirs waits to be sent.
%%
%% A process that serves several nodes, and has said that it does not wait for one of them, says so
%% here once. What it may cost: its backlog is bounded by the queue of each connection only, so it
%% has to send little, or with `nosuspend' and be content that messages are dropped over that bound.
%%
%% A table that only those read who are about to suspend a process. Processes of users have
%% `process_flag(async_dist, true)' for that (OTP 25.3 and later).
-module(weft_never_stopped).

-export([new/0, enter/0, contains/1]).

%% They need the network to keep itself going, and newer releases never stop them either.
-define(OF_KERNEL, [net_kernel, global_name_server, global_group]).

%% @doc Makes the table, which belongs to the caller. Called once, when the carrier starts.
-spec new() -> ok.
new() ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    ok.

%% @doc The caller is not to be suspended, until it ends. Without the carrier nobody would.
-spec enter() -> ok.
enter() ->
    case ets:whereis(?MODULE) of
        undefined ->
            ok;
        Table ->
            Dead = [Pid || {Pid} <- ets:tab2list(Table), not is_process_alive(Pid)],
            lists:foreach(fun(Pid) -> ets:delete(Table, Pid) end, Dead),
            true = ets:insert(Table, {self()}),
            ok
    end.

%% @doc Has the process entered, or is it one of the kernel's that are never stopped?
-spec contains(pid()) -> boolean().
contains(Pid) ->
    has_entered(Pid)
        orelse lists:any(fun(Name) -> whereis(Name) =:= Pid end, ?OF_KERNEL).

has_entered(Pid) ->
    try ets:member(?MODULE, Pid)
    catch error:badarg -> false
    end.
