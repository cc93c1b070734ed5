%% SPDX-License-Identifier: Apache-2.0
%% @doc Keeps a lock in a strong scope of names: a process that has the lock's name, as long as one
%% of those lives for whom it keeps it. Processes with the same requester share one.
%%
%% When its node loses the lease of the name, it ends, and with it, by an exit signal
%% `{weft_lock_lost, Name}', the processes that believe to have the lock.
-module(weft_global_keeper).

-export([keep/2, release/1]).
-export([init/3]).

%% @doc Keeps a name for the caller. `error': somebody else has it, or there is no quorum.
-spec keep(weft_names:via(), Requester :: term()) -> {ok, pid()} | error.
keep(Via, Requester) ->
    {Pid, Ref} = spawn_monitor(?MODULE, init, [self(), Via, Requester]),
    receive
        {Pid, kept} -> demonitor(Ref, [flush]), {ok, Pid};
        {Pid, {kept_by, Keeper}} -> demonitor(Ref, [flush]), share(Keeper);
        {'DOWN', Ref, process, Pid, _} -> error
    end.

share(Keeper) ->
    Ref = monitor(process, Keeper),
    Keeper ! {share, self(), Ref},
    receive
        {Ref, kept} -> demonitor(Ref, [flush]), {ok, Keeper};
        {'DOWN', Ref, process, Keeper, _} -> error
    end.

%% @doc No longer keeps it for the caller; waits until it is given back if nobody else shares it.
-spec release(pid() | none) -> ok.
release(none) ->
    ok;
release(Keeper) ->
    Ref = monitor(process, Keeper),
    Keeper ! {release, self(), Ref},
    receive
        {Ref, released} -> demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, Keeper, _} -> ok
    end.

%% @private
-spec init(pid(), weft_names:via(), term()) -> ok.
init(Pid, Via, Requester) ->
    process_flag(trap_exit, true),
    case weft_names:register(Via, self(), Requester) of
        ok ->
            Pid ! {self(), kept},
            loop(Via, #{monitor(process, Pid) => Pid});
        {error, {taken, Keeper}} ->
            case weft_names:lookup(Via) of
                {ok, Keeper, Requester} -> Pid ! {self(), {kept_by, Keeper}}, ok;
                _ -> ok
            end;
        {error, _} ->
            ok
    end.

loop(Via, Pids) ->
    receive
        {share, Pid, Ref} ->
            Pid ! {Ref, kept},
            loop(Via, Pids#{monitor(process, Pid) => Pid});
        {release, Pid, Ref} ->
            [Monitor | _] = [M || {M, P} <- maps:to_list(Pids), P =:= Pid],
            demonitor(Monitor, [flush]),
            Left = left(Via, maps:remove(Monitor, Pids)),
            Pid ! {Ref, released},
            goes_on(Via, Left);
        {'DOWN', Monitor, process, _, _} ->
            goes_on(Via, left(Via, maps:remove(Monitor, Pids)));
        {'EXIT', _, {weft_names_lost, _, _}} ->
            [exit(Pid, {weft_lock_lost, Via}) || Pid <- maps:values(Pids)],
            ok
    end.

left(Via, Pids) ->
    _ = map_size(Pids) =:= 0 andalso weft_names:unregister(Via),
    Pids.

goes_on(_Via, Pids) when map_size(Pids) =:= 0 -> ok;
goes_on(Via, Pids) -> loop(Via, Pids).
