%% SPDX-License-Identifier: Apache-2.0
%% @doc The kind `eventual' of scopes of names: see `weft_names' for what users call, and
%% `weft_names_eventual_core' for how it works.
%%
%% A scope is one process on each node, and a table with all names of the scope. The table belongs
%% to the supervisor (`weft_names_sup'), so a process that has to start again finds there what this
%% node had registered.
%% Reads use the table and ask no process. To register a process of another node is a call to that
%% node, and then a wait until its news has arrived here; so every caller sees its own changes.
-module(weft_names_eventual).
-behaviour(weft_names).

-export([check/1, start_driver/2, handle/1, register/4, re_register/4, unregister/2, whereis/2,
         lookup/2, names/1, info/1]).

%% More than a change takes in a scope whose option `wait' is `all'.
-define(CALL_MS, 5000).

%% Driver and table have the same name.
-type handle() :: {Driver :: atom(), Reach :: boolean()}.

%% @doc Checks the options of a scope; `weft_names:start_scope/2' says what they are.
-spec check(map()) -> ok | {error, string()}.
check(Options) ->
    case maps:keys(Options) -- [kind | [Key || {Key, _, _} <- rules()]] of
        [] ->
            case [io_lib:format("~s is ~0p, it must be ~s", [Key, maps:get(Key, Options), Text])
                  || {Key, Check, Text} <- rules(), is_map_key(Key, Options),
                     not Check(maps:get(Key, Options))] of
                [] -> ok;
                Errors -> {error, lists:flatten(lists:join("; ", Errors))}
            end;
        [Unknown | _] ->
            {error, lists:flatten(io_lib:format("unknown option ~0p", [Unknown]))}
    end.

rules() ->
    [{conflict, fun is_conflict/1, "oldest, newest, {Module, Function} or a function of three"},
     {loser, fun(L) -> lists:member(L, [exit, notify, none]) end, "exit, notify or none"},
     {names_per_pid, fun(N) -> lists:member(N, [many, one, one_new]) end,
      "many, one or one_new"},
     {wait, fun(W) -> lists:member(W, [none, all]) end, "none or all"}].

is_conflict(Order) when Order =:= oldest; Order =:= newest -> true;
is_conflict({Module, Function}) -> is_atom(Module) andalso is_atom(Function);
is_conflict(Choose) -> is_function(Choose, 3).

%% @doc The first argument of the functions below.
-spec handle(weft_names:scope()) -> handle().
handle({group, _} = Scope) -> {weft_names_sup:driver(Scope), false};
handle(Scope) -> {weft_names_sup:driver(Scope), true}.

%% @private
-spec start_driver(weft_names:scope(), map()) -> {ok, pid()} | {error, term()}.
start_driver(Scope, Options) ->
    Driver = weft_names_sup:driver(Scope),
    Own = [Row || {_, Pid, _, _, _} = Row <- ets:tab2list(Driver), node(Pid) =:= node()],
    Complete = case Options of
                   #{conflict := {Module, Function}} ->
                       Options#{conflict := fun Module:Function/3};
                   #{} ->
                       Options
               end,
    weft_driver:start_link(Driver, weft_names_eventual_core,
                           weft_services:options(Complete#{scope => Scope, own => Own,
                                                              view_module => weft_service_table})).

%% @doc Registers a process, of whatever node.
-spec register(handle(), Name :: term(), pid(), Meta :: term()) ->
          ok | {error, weft_names:reason()}.
register(Handle, Name, Pid, Meta) ->
    case whereis(Handle, Name) of
        undefined -> claim({register, Name, Pid, Meta, now_us()}, Handle);
        Holder -> {error, {taken, Holder}}
    end.

%% @doc Gives a name to a process, even if another has it.
-spec re_register(handle(), Name :: term(), pid(), Meta :: term()) ->
          ok | {error, weft_names:reason()}.
re_register(Handle, Name, Pid, Meta) ->
    claim({re_register, Name, Pid, Meta, now_us(), rank(Handle, Name)}, Handle).

claim(Command, {_, Reach} = Handle) ->
    _ = Reach andalso weft_overlay_sup:reach_members(),
    at(node(element(3, Command)), Command, Handle).

%% The node of the new process may not have heard of the claim that is seen here.
rank({Table, _}, Name) ->
    try ets:lookup_element(Table, Name, 5)
    catch error:badarg -> -1
    end.

now_us() -> os:system_time(microsecond).

%% @doc Takes a name away from the process that has it.
-spec unregister(handle(), Name :: term()) -> ok | {error, weft_names:reason()}.
unregister(Handle, Name) ->
    case whereis(Handle, Name) of
        undefined ->
            ok;
        Pid ->
            case at(node(Pid), {unregister, Name}, Handle) of
                {error, not_here} -> ok;
                Result -> Result
            end
    end.

at(Node, Command, {Driver, _}) ->
    case call({Driver, Node}, Command) of
        {ok, _Seq} when Node =:= node() -> ok;
        {ok, Seq} -> call(Driver, {await, Node, Seq});
        {error, Reason} -> {error, Reason}
    end.

call(Driver, Command) ->
    try weft_driver:command(Driver, Command, ?CALL_MS)
    catch
        exit:{timeout, _} -> {error, timeout};
        exit:{Reason, _} -> {error, {unreachable, Driver, Reason}}
    end.

%% @doc The process that has a name.
-spec whereis(handle(), Name :: term()) -> pid() | undefined.
whereis({Table, _}, Name) ->
    try ets:lookup_element(Table, Name, 2)
    catch error:badarg -> undefined
    end.

%% @doc The process that has a name, and the term given at its registration.
-spec lookup(handle(), Name :: term()) -> {ok, pid(), Meta :: term()} | undefined.
lookup({Table, _}, Name) ->
    try ets:lookup(Table, Name) of
        [{_, Pid, Meta, _, _}] -> {ok, Pid, Meta};
        [] -> undefined
    catch error:badarg -> undefined
    end.

%% @doc All names.
-spec names(handle()) -> [Name :: term()].
names({Table, _}) ->
    weft_service_table:keys(Table).

%% @doc How many names there are, how many of them are of this node (`own'), how many other nodes
%% have the scope (`peers'), and how many conflicts this node has resolved.
-spec info(handle()) -> #{names | own | peers | conflicts := non_neg_integer()} | #{}.
info({Driver, _}) ->
    case call(Driver, info) of
        #{} = Info -> Info;
        {error, _} -> #{}
    end.
