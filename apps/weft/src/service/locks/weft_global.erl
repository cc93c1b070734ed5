%% SPDX-License-Identifier: Apache-2.0
%% @doc Names and locks with the functions and results of OTP's `global', for code that moves over
%% step by step: replace the module name, or `{global, Name}' by `{via, weft_global, Name}'.
%%
%% Names are those of the scope `global' (`weft_names'). It is eventual unless configured strong. An
%% eventual one answers when all nodes that are connected have heard of the change (its option
%% `wait'). Two parts of a cluster that meet resolve conflicts as `global' does, with the function
%% given at registration. A strong one knows no conflicts, and `no' may mean that there is no
%% quorum.
%%
%% A lock is kept by three nodes, not by all. These are its replicas; they are chosen by rendezvous
%% hashing of the resource over the nodes that the caller names. A process that has to wait for the
%% lock waits in a queue at the first replica and does not sleep and try again. So a lock costs six
%% messages in a cluster of any size, and a storm of requests costs a bounded queue. A process that
%% finds the queue full sleeps before it tries again, each time longer.
%%
%% As with `global', two parts of a cluster that have no connection may both grant a lock. The same
%% can happen when more than two of the first replicas of a lock change while it is held. If the
%% scope `global' is strong, the holder of a lock also registers it there, with a lease; then
%% neither can happen.
-module(weft_global).

-export([register_name/2, register_name/3, re_register_name/2, re_register_name/3,
         unregister_name/1, whereis_name/1, send/2, registered_names/0, sync/0]).
-export([random_exit_name/3, random_notify_name/3, notify_all_name/3]).
-export([set_lock/1, set_lock/2, set_lock/3, del_lock/1, del_lock/2, trans/2, trans/3, trans/4]).
-export([resolve/3, child_spec/0, info/0]).
-export_type([name/0, id/0, retries/0]).

-define(SCOPE, global).
-define(LOCKS, weft_locks).
-define(REPLICAS, 3).
%% How long to wait in the queue of a further replica; the first and the longest pause between
%% attempts.
-define(FURTHER_MS, 2000).
-define(PAUSE_MS, 500).
-define(PAUSE_MAX_MS, 8000).
%% How long a node may take from being connected to keeping locks, and how often to look.
-define(CONNECTED_MS, 1000).
-define(STEP_MS, 10).
%% A replica that does not answer until so long after the time is over is taken for dead.
-define(GRACE_MS, 10000).

-type name() :: term().
-type id() :: {ResourceId :: term(), LockRequesterId :: term()}.
-type retries() :: non_neg_integer() | infinity.
-type resolve() :: fun((name(), pid(), pid()) -> pid() | none).

%% --- names ------------------------------------------------------------------------------------

%% @doc Like `global:register_name/2'. All connected nodes know the name when this returns, but for
%% those that have not answered for four seconds. `no' may also mean that the scope ended meanwhile.
-spec register_name(name(), pid()) -> yes | no.
register_name(Name, Pid) ->
    register_name(Name, Pid, fun ?MODULE:random_exit_name/3).

%% @doc Like `global:register_name/3'. In an eventual scope Resolve runs on one of the two nodes and
%% must be quick.
-spec register_name(name(), pid(), resolve()) -> yes | no.
register_name(Name, Pid, Resolve) when is_pid(Pid), is_function(Resolve, 3) ->
    case weft_names:register({?SCOPE, Name}, Pid, Resolve) of
        ok -> yes;
        {error, _} -> no
    end.

%% @doc Like `global:re_register_name/2'; `no' only if the process, or a quorum, can not be reached.
-spec re_register_name(name(), pid()) -> yes | no.
re_register_name(Name, Pid) ->
    re_register_name(Name, Pid, fun ?MODULE:random_exit_name/3).

-spec re_register_name(name(), pid(), resolve()) -> yes | no.
re_register_name(Name, Pid, Resolve) when is_pid(Pid), is_function(Resolve, 3) ->
    case weft_names:re_register({?SCOPE, Name}, Pid, Resolve) of
        ok -> yes;
        {error, _} -> no
    end.

%% @doc Like `global:unregister_name/1'; returns when the connected nodes have heard of it.
-spec unregister_name(name()) -> ok.
unregister_name(Name) ->
    _ = weft_names:unregister({?SCOPE, Name}),
    ok.

%% @doc Like `global:whereis_name/1'.
-spec whereis_name(name()) -> pid() | undefined.
whereis_name(Name) ->
    weft_names:whereis_name({?SCOPE, Name}).

%% @doc Like `global:send/2': exits with `{badarg, {Name, Msg}}' if no process has the name.
-spec send(name(), Msg :: term()) -> pid().
send(Name, Msg) ->
    case whereis_name(Name) of
        Pid when is_pid(Pid) ->
            Pid ! Msg,
            Pid;
        undefined ->
            exit({badarg, {Name, Msg}})
    end.

%% @doc Like `global:registered_names/0'. In a strong scope: those that this node knows of.
-spec registered_names() -> [name()].
registered_names() ->
    [Name || Name <- weft_names:names(?SCOPE), not is_lock(Name)].

is_lock({weft_lock, _}) -> true;
is_lock(_) -> false.

%% @doc Does nothing. In `global' this waits until names are synchronised. In an eventual scope the
%% names of a node that has just been connected come some milliseconds later: wait for the name.
-spec sync() -> ok.
sync() -> ok.

-spec random_exit_name(name(), pid(), pid()) -> pid().
random_exit_name(Name, Pid1, Pid2) -> global:random_exit_name(Name, Pid1, Pid2).

-spec random_notify_name(name(), pid(), pid()) -> pid().
random_notify_name(Name, Pid1, Pid2) -> global:random_notify_name(Name, Pid1, Pid2).

-spec notify_all_name(name(), pid(), pid()) -> none.
notify_all_name(Name, Pid1, Pid2) -> global:notify_all_name(Name, Pid1, Pid2).

%% @private The `conflict' of the scope. A function that fails unregisters the name, as in `global'.
-spec resolve(weft_names:via(), {pid(), term(), integer()}, {pid(), term(), integer()}) ->
          pid() | none.
resolve({?SCOPE, Name}, {Pid1, Resolve, _}, {Pid2, _, _}) ->
    try Resolve(Name, Pid1, Pid2) of
        Pid when Pid =:= Pid1; Pid =:= Pid2 -> Pid;
        _ -> none
    catch
        _:_ -> none
    end.

%% --- locks ------------------------------------------------------------------------------------

%% @doc What runs on each node for locks.
-spec child_spec() -> supervisor:child_spec().
child_spec() ->
    #{id => ?LOCKS, modules => [weft_driver, weft_locks_core],
      start => {weft_driver, start_link,
                [?LOCKS, weft_locks_core, weft_services:options(#{})]}}.

%% @doc The locks that this node keeps as a replica: how many, how many requests wait, how many
%% found the queue full; and how many releases of this node are still to be told to a replica. Empty
%% when the application does not run.
-spec info() -> #{locks | waiting | refused | late => non_neg_integer()}.
info() ->
    try (weft_driver:command(?LOCKS, info))#{late => weft_global_late:count()}
    catch exit:{noproc, _} -> #{}
    end.

%% @doc Like `global:set_lock/1', on all nodes that there is a connection or a route to.
-spec set_lock(id()) -> true.
set_lock(Id) ->
    set_lock(Id, cluster()).

%% Where only neighbours are connected, those of two nodes may have no node in common, nor the
%% replicas of a lock.
cluster() ->
    lists:usort(weft_global_late:lock_nodes() ++ [Node || {Node, _} <- weft_overlay:routes()]).

-spec set_lock(id(), [node()]) -> true.
set_lock(Id, Nodes) ->
    set_lock(Id, Nodes, infinity).

%% @doc Like `global:set_lock/3'. A process that has the lock has it once, however often it asks.
%% Retries are turned into a time to wait in the queue: as long as `global' would sleep on average
%% between so many attempts (from 0.1 s growing to 4 s each). Without nodes it locks nothing and
%% answers `true', as `global' does: programs pass nodes(), which a lone node has none of. Nodes of
%% the list that are not connected are connected first, as by `global': programs take a lock in
%% order to meet others.
-spec set_lock(id(), [node()], retries()) -> boolean().
set_lock({_, _}, [], _Retries) ->
    true;
set_lock({_, _} = Id, Nodes, Retries) ->
    ok = weft_overlay_sup:reach_members(),
    has(Id)
        orelse begin
                   ok = connect(Nodes -- weft_global_late:lock_nodes()),
                   set(Id, Nodes, {deadline(wait_ms(Retries)), ?PAUSE_MS})
               end.

%% Who traps exits lives on when a strong lock is lost: then the lock is asked for anew.
has(Id) ->
    case get({?MODULE, Id}) of
        undefined -> false;
        {_, Keeper, _} -> weft_global_keeper:keeps(Keeper) orelse not del_lock(Id, [])
    end.

%% All at once. A node that runs weft keeps locks soon after it is connected, whether this process
%% connects it or another one did just before. In that case a route says that it runs weft.
connect([]) ->
    ok;
connect(Nodes) ->
    New = Nodes -- [node() | nodes(connected)],
    Attempts = [spawn_monitor(net_kernel, connect_node, [Node]) || Node <- New],
    lists:foreach(fun({Pid, Monitor}) ->
                          receive {'DOWN', Monitor, process, Pid, _} -> ok end
                  end, Attempts),
    Awaited = New ++ [Node || Node <- Nodes -- New, weft_overlay:has_route(Node)],
    Connected = nodes(connected),
    until_lock_nodes([Node || Node <- Awaited, lists:member(Node, Connected)], ?CONNECTED_MS).

until_lock_nodes(Nodes, LeftMs) ->
    case LeftMs > 0 andalso Nodes -- weft_global_late:lock_nodes() =/= [] of
        true ->
            receive after ?STEP_MS -> until_lock_nodes(Nodes, LeftMs - ?STEP_MS) end;
        false ->
            ok
    end.

%% @doc Like `global:del_lock/1'.
-spec del_lock(id()) -> true.
del_lock(Id) ->
    del_lock(Id, weft_global_late:lock_nodes()).

-spec del_lock(id(), [node()]) -> true.
del_lock({Resource, Requester} = Id, _Nodes) ->
    case erase({?MODULE, Id}) of
        {Replicas, Keeper, Ask} ->
            ok = weft_global_keeper:release(Keeper),
            release(Replicas, {Resource, Requester, Ask});
        undefined ->
            true
    end.

%% @doc Like `global:trans/2'.
-spec trans(id(), fun(() -> Result)) -> Result | aborted.
trans(Id, Fun) ->
    trans(Id, Fun, cluster()).

-spec trans(id(), fun(() -> Result), [node()]) -> Result | aborted.
trans(Id, Fun, Nodes) ->
    trans(Id, Fun, Nodes, infinity).

-spec trans(id(), fun(() -> Result), [node()], retries()) -> Result | aborted.
trans(Id, Fun, Nodes, Retries) ->
    case set_lock(Id, Nodes, Retries) of
        true -> try Fun() after del_lock(Id, Nodes) end;
        false -> aborted
    end.

%% Uniform from 0 to 2^Times / 8 seconds, 8 at most: half of that each time.
wait_ms(infinity) -> infinity;
wait_ms(Retries) ->
    Growing = lists:sum([(1000 bsl Times) div 16 || Times <- lists:seq(1, min(Retries, 6))]),
    Growing + max(0, Retries - 6) * 4000.

deadline(infinity) -> infinity;
deadline(Ms) -> erlang:monotonic_time(millisecond) + Ms.

left_ms(infinity) -> infinity;
left_ms(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

%% Each attempt has its own `Ask', so that the release of one can not end another.
set({Resource, Requester} = Id, Nodes, {Deadline, _} = Until) ->
    Replicas = replicas(Resource, Nodes),
    Ask = make_ref(),
    case Replicas =/= [] andalso lock_at(Replicas, {Resource, Requester, Ask}, Deadline) of
        true ->
            case keep(Resource, Requester) of
                {ok, Keeper} ->
                    %% For del_lock/1: the replicas may be others then.
                    put({?MODULE, Id}, {Replicas, Keeper, Ask}),
                    true;
                error ->
                    true = release(Replicas, {Resource, Requester, Ask}),
                    again(Id, Nodes, Until)
            end;
        false ->
            again(Id, Nodes, Until)
    end.

again(Id, Nodes, {Deadline, PauseMs}) ->
    case left_ms(Deadline) of
        0 ->
            false;
        LeftMs ->
            receive
            after min(rand:uniform(PauseMs), LeftMs) ->
                set(Id, Nodes, {Deadline, min(2 * PauseMs, ?PAUSE_MAX_MS)})
            end
    end.

%% The greatest hash first: the same on all nodes that see the same nodes.
replicas(Resource, Nodes) ->
    Alive = [Node || Node <- weft_global_late:lock_nodes(), lists:member(Node, Nodes)],
    Ranked = lists:sort([{erlang:phash2({Resource, Node}), Node} || Node <- Alive]),
    [Node || {_, Node} <- lists:sublist(lists:reverse(Ranked), ?REPLICAS)].

%% Processes wait in the queue of the first replica. At the others no process waits, unless the
%% replicas have just changed.
lock_at([First | Others], Lock, Deadline) ->
    case ask(First, Lock, left_ms(Deadline)) of
        true -> further(Others, Lock, [First]);
        false -> false;
        unknown -> not release([First], Lock)
    end.

further([], _Lock, _Set) ->
    true;
further([Replica | Others], Lock, Set) ->
    case ask(Replica, Lock, ?FURTHER_MS) of
        true -> further(Others, Lock, [Replica | Set]);
        false -> not release(Set, Lock);
        unknown -> not release([Replica | Set], Lock)
    end.

%% `unknown': the answer did not come; it may have been yes.
ask(Replica, {Resource, Requester, Ask}, WaitMs) ->
    CallMs = case WaitMs of infinity -> infinity; _ -> WaitMs + ?GRACE_MS end,
    try weft_driver:command({?LOCKS, Replica}, {set, Resource, Requester, {self(), Ask}, WaitMs},
                            CallMs)
    of
        busy -> false;
        Answer -> Answer
    catch
        exit:_ -> unknown
    end.

release(Replicas, {Resource, Requester, Ask}) ->
    Command = {delete, Resource, Requester, {self(), Ask}},
    lists:foreach(fun(Replica) -> weft_global_late:release(Replica, Command) end, Replicas),
    true.

keep(Resource, Requester) ->
    case weft_names:kind(?SCOPE) of
        strong -> weft_global_keeper:keep({?SCOPE, {weft_lock, Resource}}, Requester);
        eventual -> {ok, none}
    end.
