%% SPDX-License-Identifier: Apache-2.0
%% @doc The kind `strong' of scopes of names: see `weft_names' for what users call, and
%% docs/internals/strong-names.md for what is promised and how it works.
%%
%% At any time at most one process has a name, by a lease that its node renews with a quorum of the
%% replicas of the name. Each registration has a <em>token</em>, which only grows. A request to a
%% third party on behalf of the owner should carry the token, so that the request of a former owner
%% can be refused.
%%
%% register/4 here takes options; with `on_lost => tell' and is_held/3 it is also a lock. Reads look
%% into a table of this node first: an own name is valid as long as its lease, and a name of another
%% node was valid at most `cache_ms' ago. read/3 asks the replicas.
%%
%% One process for each scope on each node; the table belongs to the supervisor above. If the
%% process has to start again, the names that this node owned are lost; if the supervisor ends, too
%% (`weft_names_strong_heir').
-module(weft_names_strong).
-behaviour(weft_names).

-export([check/1, start_driver/2, handle/1, register/4, re_register/4, unregister/2, whereis/2,
         lookup/2, names/1, info/1]).
-export([acquire/4, release/3, update/4, hand_over/4, read/3, all/2, is_held/3, held/2]).
-export([voters/0, voters/2, status/1]).
-export_type([handle/0, options/0]).

-define(TIMEOUT_MS, 5000).
%% So much longer than its timeout a call waits for the process to say that the time is over.
-define(GRACE_MS, 2000).
-define(TRIES, 3).

-type handle() :: atom().
%% Driver and table have the same name.
-type options() :: #{meta => term(), on_lost => exit | kill | tell, timeout_ms => pos_integer()}.
%% `on_lost': what happens to the process when its node loses the lease. `exit' (the default) is an
%% exit signal `{weft_names_lost, Scope, Name}'; `kill'; `tell' is the message `{weft_names_lost,
%% Scope, Name, Token}'. `timeout_ms' (5000): the answer comes within this time, `no_quorum' at the
%% latest.

%% --- the kind ---------------------------------------------------------------------------------

%% @doc Checks the options of a scope: `voters', the nodes that keep the names (needed, the same
%% everywhere), and those of `weft_names_strong_options'.
-spec check(map()) -> ok | {error, string()}.
check(Options) ->
    weft_names_strong_options:check(Options).

%% @doc The first argument of the functions below.
-spec handle(weft_names:scope()) -> handle().
handle(Scope) -> weft_names_sup:driver(Scope).

%% @private
-spec start_driver(weft_names:scope(), map()) -> {ok, pid()} | {error, term()}.
start_driver(Scope, Options) ->
    Driver = handle(Scope),
    ok = weft_view:put(?MODULE, {?MODULE, Driver}, Scope),
    ok = weft_names_strong_heir:appoint(Driver, Scope),
    ok = weft_names_strong_heir:tell(Driver, Scope),
    %% An incarnation of the process, not of the node: it starts without memory.
    Incarnation = erlang:system_time(microsecond),
    weft_driver:start_link(Driver, weft_names_strong_core,
                           weft_services:options(Options#{scope => Scope,
                                                          incarnation => Incarnation,
                                                          view_module => weft_service_table,
                                                          clock => weft_suspension})).

%% @doc Registers a process, of whatever node.
-spec register(handle(), Name :: term(), pid(), Meta :: term()) ->
          ok | {error, weft_names:reason()}.
register(Handle, Name, Pid, Meta) ->
    case acquire(Handle, Name, Pid, #{meta => Meta}) of
        {ok, _Token} -> ok;
        {error, Reason} -> {error, Reason}
    end.

%% @doc Gives a name to a process, even if another has it. If a third one is faster, `taken'.
-spec re_register(handle(), Name :: term(), pid(), Meta :: term()) ->
          ok | {error, weft_names:reason()}.
re_register(Handle, Name, Pid, Meta) ->
    re_register(Handle, Name, Pid, Meta, ?TRIES).

re_register(Handle, Name, Pid, Meta, Tries) ->
    case register(Handle, Name, Pid, Meta) of
        {error, {taken, _}} when Tries > 0 ->
            case unregister(Handle, Name) of
                ok -> re_register(Handle, Name, Pid, Meta, Tries - 1);
                {error, {taken, _}} -> re_register(Handle, Name, Pid, Meta, Tries - 1);
                {error, Reason} -> {error, Reason}
            end;
        Result -> Result
    end.

%% @doc Takes a name away from the process that has it. That process is not told. `ok': the name
%% was free at some moment. Any error: it may have been free, or may become free later. The answer
%% comes after five seconds at the latest, which is before the lease ends of an owner that is cut
%% off (`timeout').
-spec unregister(handle(), Name :: term()) -> ok | {error, weft_names:reason()}.
unregister(Handle, Name) ->
    call(Handle, {remove, Name, ?TIMEOUT_MS}, ?TIMEOUT_MS).

%% @doc The process that has a name, as far as this node knows; asks the replicas if it does not
%% know. `undefined' also without a quorum.
-spec whereis(handle(), Name :: term()) -> pid() | undefined.
whereis(Handle, Name) ->
    case lookup(Handle, Name) of
        {ok, Pid, _Meta} -> Pid;
        undefined -> undefined
    end.

%% @doc The same, with the term given at the registration.
-spec lookup(handle(), Name :: term()) -> {ok, pid(), Meta :: term()} | undefined.
lookup(Handle, Name) ->
    case row(Handle, Name) of
        {Pid, _Token, Meta} -> {ok, Pid, Meta};
        none ->
            case read(Handle, Name, ?TIMEOUT_MS) of
                {ok, Pid, _Token, Meta} -> {ok, Pid, Meta};
                _ -> undefined
            end
    end.

row(Table, Name) ->
    try ets:lookup(Table, {name, Name}) of
        [{_, own, Pid, Token, Meta, P, _OnLost}] ->
            valid(ets:lookup(Table, {lease, P}), {Pid, Token, Meta});
        [{_, cached, Pid, Token, Meta, UntilMs}] ->
            valid([{cached, UntilMs}], {Pid, Token, Meta});
        [] -> none
    catch
        error:badarg -> none
    end.

valid([{_, UntilMs}], Value) ->
    case weft_suspension:now_ms() < UntilMs of
        true -> Value;
        false -> none
    end;
valid([], _Value) ->
    none.

%% @doc The names that this node owns, and those of others that it has looked up lately. all/2 asks
%% the replicas for all names.
-spec names(handle()) -> [Name :: term()].
names(Handle) ->
    [Name || {name, Name} <- weft_service_table:keys(Handle), row(Handle, Name) =/= none].

%% @doc A few figures; status/1 has more.
-spec info(handle()) -> map().
info(Handle) ->
    case status(Handle) of
        #{owner := Owner, partitions := Partitions} = Status ->
            maps:merge(maps:with([view, voters, connected], Status),
                       Owner#{leads => length([P || {P, #{role := leading}}
                                                         <- maps:to_list(Partitions)])});
        {error, _} -> #{}
    end.

%% --- more -------------------------------------------------------------------------------------

%% @doc Registers a process with options. The token of this registration is greater than that of any
%% earlier one of the name. `taken' names the process that has it.
-spec acquire(handle(), Name :: term(), pid(), options()) ->
          {ok, Token :: pos_integer()} | {error, weft_names:reason()}.
acquire(Handle, Name, Pid, Options) ->
    TimeoutMs = maps:get(timeout_ms, Options, ?TIMEOUT_MS),
    call({Handle, node(Pid)}, {register, Name, Pid, maps:get(meta, Options, undefined),
                               maps:get(on_lost, Options, exit), TimeoutMs}, TimeoutMs).

%% @doc Releases what was registered with this token, from whatever node. `ok': the replicas do not
%% have this registration (any more).
-spec release(handle(), Name :: term(), {pid(), Token :: pos_integer()}) ->
          ok | {error, weft_names:reason()}.
release(Handle, Name, {Pid, Token}) ->
    call({Handle, node(Pid)}, {unregister, Name, Token, ?TIMEOUT_MS}, ?TIMEOUT_MS).

%% @doc Gives the name to another process of the same node, without a moment in which it is free.
-spec update(handle(), Name :: term(), {pid(), Token :: pos_integer()}, Meta :: term()) ->
          {ok, Token :: pos_integer()} | {error, weft_names:reason()}.
update(Handle, Name, {NewPid, Token}, Meta) ->
    change(Handle, Name, {NewPid, Token}, Meta, same).

%% @doc The same, with another `on_lost'.
-spec hand_over(handle(), Name :: term(), {pid(), Token :: pos_integer()}, exit | kill | tell) ->
          {ok, Token :: pos_integer()} | {error, weft_names:reason()}.
hand_over(Handle, Name, {NewPid, Token}, OnLost) ->
    change(Handle, Name, {NewPid, Token}, undefined, OnLost).

change(Handle, Name, {NewPid, Token}, Meta, OnLost) ->
    call({Handle, node(NewPid)}, {update, Name, Token, NewPid, Meta, OnLost, ?TIMEOUT_MS},
         ?TIMEOUT_MS).

%% @doc The process that has a name now, confirmed by a quorum.
-spec read(handle(), Name :: term(), TimeoutMs :: pos_integer()) ->
          {ok, pid(), Token :: pos_integer(), Meta :: term()} | undefined
        | {error, weft_names:reason()}.
read(Handle, Name, TimeoutMs) ->
    call(Handle, {whereis, Name, TimeoutMs}, TimeoutMs).

%% @doc All names of the scope. Each partition answers for a moment of its own.
-spec all(handle(), TimeoutMs :: pos_integer()) ->
          {ok, [Name :: term()]} | {error, weft_names:reason()}.
all(Handle, TimeoutMs) ->
    case call(Handle, partitions, TimeoutMs) of
        {error, Reason} -> {error, Reason};
        Count -> all(lists:seq(0, Count - 1), Handle, TimeoutMs, [])
    end.

all([], _Handle, _TimeoutMs, Names) ->
    {ok, lists:append(Names)};
all([P | Rest], Handle, TimeoutMs, Names) ->
    case call(Handle, {names, P, TimeoutMs}, TimeoutMs) of
        {ok, Some} -> all(Rest, Handle, TimeoutMs, [Some | Names]);
        {error, Reason} -> {error, Reason}
    end.

%% @doc Whether this node holds a name by this token, now: it reads a table and the clock. The lease
%% may end at the next instant, so an action that must not be done by two should carry the token.
-spec is_held(handle(), Name :: term(), Token :: pos_integer()) -> boolean().
is_held(Handle, Name, Token) ->
    case held(Handle, Name) of
        {ok, Token} -> true;
        _ -> false
    end.

%% @doc The token by which this node holds a name.
-spec held(handle(), Name :: term()) -> {ok, Token :: pos_integer()} | undefined.
held(Handle, Name) ->
    try ets:lookup(Handle, {name, Name}) of
        [{_, own, _Pid, Token, _Meta, P, _OnLost}] ->
            case valid(ets:lookup(Handle, {lease, P}), Token) of
                Token -> {ok, Token};
                none -> undefined
            end;
        _ -> undefined
    catch
        error:badarg -> undefined
    end.

%% @doc Sets other voters, on all nodes. Each partition moves by itself, one replica at a time;
%% status/1 shows the progress. The configuration should be changed, too, with a greater `view'.
-spec voters(handle(), [node()]) -> ok | {error, weft_names:reason() | {bad_voters, string()}}.
voters(Handle, Voters) ->
    case weft_names_strong_options:check(#{voters => Voters}) of
        ok -> call(Handle, {voters, Voters}, ?TIMEOUT_MS);
        {error, Text} -> {error, {bad_voters, Text}}
    end.

%% @doc The voters of all strong scopes of this node.
-spec voters() -> [node()].
voters() ->
    lists:usort(lists:append([configured(Driver) || {Driver, _} <- weft_view:all(?MODULE)])).

configured(Driver) ->
    try ets:lookup_element(Driver, voters, 2)
    catch error:badarg -> []
    end.

%% @doc All that this node knows of the scope, see `weft_names_strong_core:info/1'.
-spec status(handle()) -> map() | {error, weft_names:reason()}.
status(Handle) ->
    call(Handle, info, ?TIMEOUT_MS).

call(Driver, Command, TimeoutMs) ->
    try weft_driver:command(Driver, Command, TimeoutMs + ?GRACE_MS)
    catch
        exit:{timeout, _} -> {error, timeout};
        exit:{Reason, _} -> {error, {unreachable, Driver, Reason}}
    end.
