%% SPDX-License-Identifier: Apache-2.0
%% @doc Keeps a lock in a strong scope of names. The keeper is a process that has the lock's name as
%% long as one of the processes lives that it keeps it for. Processes with the same requester share
%% one keeper. On another node there is a second keeper between, which shares the first one for a
%% process there.
%%
%% When the node of the keeper loses the lease of the name, the keeper ends. Its exit signal
%% `{weft_lock_lost, Name}' also ends the processes that believe to have the lock. A second keeper
%% does the same when it has heard that the first one, or its node, is gone.
-module(weft_global_keeper).

-behaviour(gen_server).

-export([keep/2, keeps/1, release/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(keeper, {via :: weft_names:via(),
                 %% The processes that it is kept for, by monitor.
                 pids :: #{reference() => pid()},
                 %% By what it has the name, or the keeper on another node that has it. One of
                 %% earlier code that has it does not know its token.
                 first = none :: none | {token, pos_integer()} | {pid(), reference()}}).

%% @doc Keeps a name for the caller. `error': another requester has it, or there is no quorum.
-spec keep(weft_names:via(), Requester :: term()) -> {ok, pid()} | error.
keep(Via, Requester) ->
    case gen_server:start(?MODULE, {self(), Via, Requester}, []) of
        {ok, Keeper} -> {ok, Keeper};
        {error, {shutdown, {kept_by, Keeper}}} -> share(Keeper);
        {error, _} -> error
    end.

share(Keeper) ->
    case asked(share, Keeper) of
        kept -> {ok, Keeper};
        gone -> error
    end.

%% @doc Does it keep the name still? A message, since one that has lost it may be about to end.
-spec keeps(pid() | none) -> boolean().
keeps(none) -> true;
keeps(Keeper) -> asked(keeps, Keeper) =:= kept.

asked(What, Keeper) ->
    Ref = monitor(process, Keeper),
    Keeper ! {What, self(), Ref},
    receive
        {Ref, Answer} -> demonitor(Ref, [flush]), Answer;
        {'DOWN', Ref, process, Keeper, _} -> gone
    end.

%% @doc No longer keeps it for the caller. If no other process shares it, waits until the name is
%% unregistered.
-spec release(pid() | none) -> ok.
release(none) ->
    ok;
release(Keeper) ->
    _ = asked(release, Keeper),
    ok.

%% @private
init({Pid, {Scope, Name} = Via, Requester}) ->
    process_flag(trap_exit, true),
    Keeper = #keeper{via = Via, pids = #{monitor(process, Pid) => Pid}},
    Handle = weft_names_strong:handle(Scope),
    case weft_names_strong:acquire(Handle, Name, self(), #{meta => Requester}) of
        {ok, Token} ->
            {ok, Keeper#keeper{first = {token, Token}}};
        {error, {taken, Other}} ->
            case weft_names:lookup(Via) of
                {ok, Other, Requester} when node(Other) =:= node() ->
                    {stop, {shutdown, {kept_by, Other}}};
                {ok, Other, Requester} -> second(Other, Keeper);
                _ -> {stop, {shutdown, taken}}
            end;
        {error, Reason} ->
            {stop, {shutdown, Reason}}
    end.

%% Watched before it is asked: its end must not go unseen.
second(First, Keeper) ->
    Monitor = monitor(process, First),
    case share(First) of
        {ok, First} -> {ok, Keeper#keeper{first = {First, Monitor}}};
        error -> {stop, {shutdown, taken}}
    end.

%% @private
handle_call(Request, _From, Keeper) ->
    {reply, weft_stray:call(Request), Keeper}.

%% @private
handle_cast(Request, Keeper) ->
    ok = weft_stray:message(Request),
    {noreply, Keeper}.

%% @private
handle_info({share, Pid, Ref}, #keeper{pids = Pids} = Keeper) ->
    Pid ! {Ref, kept},
    {noreply, Keeper#keeper{pids = Pids#{monitor(process, Pid) => Pid}}};
handle_info({keeps, Pid, Ref}, Keeper) ->
    Pid ! {Ref, kept},
    {noreply, Keeper};
handle_info({release, Pid, Ref}, #keeper{pids = Pids} = Keeper) ->
    Left = case [M || {M, P} <- maps:to_list(Pids), P =:= Pid] of
               [Monitor | _] -> demonitor(Monitor, [flush]), left(Monitor, Keeper);
               [] -> Keeper
           end,
    Pid ! {Ref, released},
    goes_on(Left);
handle_info({'DOWN', Monitor, process, First, _}, #keeper{first = {First, Monitor}} = Keeper) ->
    lost(Keeper);
handle_info({'DOWN', Monitor, process, _, _}, Keeper) ->
    goes_on(left(Monitor, Keeper));
handle_info({'EXIT', _, {weft_names_lost, _, _}}, Keeper) ->
    lost(Keeper);
handle_info({'EXIT', First, {weft_lock_lost, _}}, #keeper{first = {First, _}} = Keeper) ->
    lost(Keeper);
handle_info(Message, Keeper) ->
    ok = weft_stray:message(Message),
    {noreply, Keeper}.

lost(#keeper{via = Via, pids = Pids} = Keeper) ->
    [exit(Pid, {weft_lock_lost, Via}) || Pid <- maps:values(Pids)],
    {stop, normal, Keeper}.

%% Unregistered before the last process gets its answer.
left(Monitor, #keeper{pids = Pids} = Keeper) ->
    Left = maps:remove(Monitor, Pids),
    _ = map_size(Left) =:= 0 andalso given_up(Keeper),
    Keeper#keeper{pids = Left}.

%% By the token: if the lease has ended, another keeper may have the name by now.
given_up(#keeper{via = {Scope, Name}, first = {token, Token}}) ->
    weft_names_strong:release(weft_names_strong:handle(Scope), Name, {self(), Token});
given_up(#keeper{via = {Scope, Name}, first = none} = Keeper) ->
    case weft_names_strong:held(weft_names_strong:handle(Scope), Name) of
        {ok, Token} -> given_up(Keeper#keeper{first = {token, Token}});
        undefined -> ok
    end;
given_up(#keeper{first = {First, Monitor}}) ->
    demonitor(Monitor, [flush]),
    release(First).

goes_on(#keeper{pids = Pids} = Keeper) when map_size(Pids) =:= 0 -> {stop, normal, Keeper};
goes_on(Keeper) -> {noreply, Keeper}.
