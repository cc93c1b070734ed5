%% SPDX-License-Identifier: Apache-2.0
%% @doc Who inherits the table of a strong scope when the supervisor that owns it ends: by a crash,
%% because the scope is stopped, or because the application is. Then nobody renews the leases any
%% more, and soon other nodes may have the names. So the heir tells the processes that have names
%% here that these are lost, and ends, and the table with it.
%%
%% It is not linked, and belongs to no application: it has to outlive the supervisor. It counts as a
%% process below that one (`$ancestors'), so `weft_supervisor' waits for its end before it starts
%% the scope again.
-module(weft_names_strong_heir).
-behaviour(gen_server).

-export([appoint/2, tell/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type heir() :: Driver :: atom().
%% Driver and table have the same name.

%% @doc The caller owns the table of the driver; from now on the table has an heir that lives.
-spec appoint(Driver :: atom(), weft_names:scope()) -> ok.
appoint(Driver, Scope) ->
    Heir = ets:info(Driver, heir),
    case is_pid(Heir) andalso is_process_alive(Heir) of
        true ->
            ok;
        false ->
            {ok, New} = gen_server:start(?MODULE, {Driver, self()}, []),
            true = ets:setopts(Driver, {heir, New, Scope}),
            ok
    end.

%% @doc Tells all processes that have names by this table that they are lost, each in the way that
%% it chose (`on_lost').
-spec tell(Driver :: atom(), weft_names:scope()) -> ok.
tell(Driver, Scope) ->
    lists:foreach(fun({{name, Name}, own, Pid, Token, _, _, OnLost}) ->
                          lost(OnLost, Pid, Scope, Name, Token);
                     (_Other) -> ok
                  end, ets:tab2list(Driver)).

lost(exit, Pid, Scope, Name, _Token) -> exit(Pid, {weft_names_lost, Scope, Name});
lost(kill, Pid, _Scope, _Name, _Token) -> exit(Pid, kill);
lost(tell, Pid, Scope, Name, Token) -> Pid ! {weft_names_lost, Scope, Name, Token}.

%% @private An application that ends kills the processes with its group leader.
-spec init({Driver :: atom(), Owner :: pid()}) -> {ok, heir()}.
init({Driver, Owner}) ->
    group_leader(whereis(init), self()),
    _ = monitor(process, Owner),
    {ok, Driver}.

%% @private
-spec handle_call(term(), gen_server:from(), heir()) -> {reply, term(), heir()}.
handle_call(Request, _From, Driver) ->
    {reply, weft_stray:call(Request), Driver}.

%% @private
-spec handle_cast(term(), heir()) -> {noreply, heir()}.
handle_cast(Request, Driver) ->
    ok = weft_stray:message(Request),
    {noreply, Driver}.

%% @private The driver ends with its supervisor, but may still have registered a name meanwhile.
-spec handle_info(term(), heir()) -> {noreply, heir()} | {stop, normal, heir()}.
handle_info({'ETS-TRANSFER', _Table, _Former, Scope}, Driver) ->
    Monitor = monitor(process, Driver),
    receive {'DOWN', Monitor, process, _, _} -> ok end,
    ok = tell(Driver, Scope),
    {stop, normal, Driver};
%% The owner has ended without this table. Otherwise the table came first.
handle_info({'DOWN', _Owner, process, _Pid, _Reason}, Driver) ->
    {stop, normal, Driver};
handle_info(Message, Driver) ->
    ok = weft_stray:message(Message),
    {noreply, Driver}.
