%% SPDX-License-Identifier: Apache-2.0
%% @doc Processes that sessions do not suspend, however much of their data waits to be sent.
%%
%% A process that serves several nodes, and does not want to wait for one of them, enters here once.
%% The price: its backlog is bounded only by the queue of each connection. So it has to send little,
%% or with `nosuspend', and then messages over that bound are dropped.
%%
%% A table that is read only before a process is suspended. Processes of users have
%% `process_flag(async_dist, true)' for that (OTP 25.3 and later).
-module(weft_never_stopped).

-export([new/0, enter/0, contains/1]).

%% The network cannot go on without them, and newer releases never suspend them either.
-define(OF_KERNEL, [net_kernel, global_name_server, global_group]).

%% @doc Makes the table, which belongs to the caller. Called once, when the carrier starts.
-spec new() -> ok.
new() ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    ok.

%% @doc The caller is not to be suspended, until it ends. Without the carrier there is nothing to
%% do.
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

%% @doc Has the process entered, or is it one of the kernel's that are never suspended?
-spec contains(pid()) -> boolean().
contains(Pid) ->
    has_entered(Pid)
        orelse lists:any(fun(Name) -> whereis(Name) =:= Pid end, ?OF_KERNEL).

has_entered(Pid) ->
    try ets:member(?MODULE, Pid)
    catch error:badarg -> false
    end.
