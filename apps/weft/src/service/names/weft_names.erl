%% SPDX-License-Identifier: Apache-2.0
%% @doc Names for processes, in scopes: `{via, weft_names, {Scope, Name}}' wherever OTP takes a
%% name.
%%
%% A scope is `cluster' (all nodes; always there, as is `global' for `weft_global'), any other
%% atom, or `{group, Group}'; a name is any term. A scope extends over the nodes on which it is
%% started, by the configuration key `scopes' or start_scope/2. Its kind says what is promised:
%% <ul>
%% <li>`eventual': every node decides at once about its own processes and tells the others. Two
%%     parts of a cluster that do not see each other may each register a name; when they meet, one
%%     process keeps it. Reads come from a table of this node.</li>
%% <li>`strong': at most one process in the cluster has a name, at any time. A node that is cut off
%%     from most of the voters gets `no_quorum'.</li>
%% </ul>
%% Registering costs the same in a cluster of any size; no lock is taken anywhere.
%%
%% This module has no logic: a kind is a module `weft_names_*' with the callbacks below.
-module(weft_names).

-compile({no_auto_import, [register/2, unregister/1]}).

-export([register_name/2, unregister_name/1, whereis_name/1, send/2]).
-export([register/2, register/3, re_register/2, re_register/3, unregister/1, lookup/1, names/1]).
-export([start_scope/2, stop_scope/1, scopes/0, kind/1, info/0, info/1, check/1, children/0]).
-export_type([scope/0, via/0, reason/0]).

-type scope() :: atom() | {group, atom()}.
-type via() :: {scope(), Name :: term()}.
-type reason() :: {taken, pid()}
                | {pid_registered, Name :: term()}
                | {no_scope, term()}
                | {bad_name, term()}
                | {bad_pid, term()}
                | {unreachable, term(), term()}
                | timeout | no_quorum | busy | full | not_owner.
%% `taken': by that process. `pid_registered': the process has that name already, and the scope
%% allows one only. `no_scope': no such scope is started on this node. `bad_name': not of the form
%% {Scope, Name}. `unreachable': the scope does not answer on the node of the process. `timeout': no
%% answer in time. `busy': too many requests in progress. `full': too many names.

-callback check(Options :: map()) -> ok | {error, Text :: string()}.
-callback start_driver(scope(), Options :: map()) -> {ok, pid()} | {error, term()}.
-callback handle(scope()) -> Handle :: term().
-callback register(Handle :: term(), Name :: term(), pid(), Meta :: term()) ->
    ok | {error, reason()}.
-callback re_register(Handle :: term(), Name :: term(), pid(), Meta :: term()) ->
    ok | {error, reason()}.
-callback unregister(Handle :: term(), Name :: term()) -> ok | {error, reason()}.
-callback whereis(Handle :: term(), Name :: term()) -> pid() | undefined.
-callback lookup(Handle :: term(), Name :: term()) -> {ok, pid(), Meta :: term()} | undefined.
-callback names(Handle :: term()) -> [Name :: term()].
-callback info(Handle :: term()) -> map().

%% --- as `via' wants it ------------------------------------------------------------------------

%% @doc `no' stands for every error; register/2 tells which. It raises an error if there is no such
%% scope.
-spec register_name(via(), pid()) -> yes | no.
register_name(Via, Pid) ->
    case register(Via, Pid) of
        ok -> yes;
        {error, {What, Which}} when What =:= no_scope; What =:= bad_name -> error({What, Which});
        {error, _} -> no
    end.

%% @doc Does nothing if no process has the name.
-spec unregister_name(via()) -> ok.
unregister_name(Via) ->
    case unregister(Via) of
        ok -> ok;
        {error, {What, Which}} when What =:= no_scope; What =:= bad_name -> error({What, Which});
        {error, _} -> ok
    end.

%% @doc The process that has the name, as far as this node knows.
-spec whereis_name(via()) -> pid() | undefined.
whereis_name({Scope, Name}) ->
    {Module, Handle} = scope(Scope),
    Module:whereis(Handle, Name);
whereis_name(Other) ->
    error({bad_name, Other}).

%% @doc Sends a message, or exits with `{badarg, {Via, Msg}}' if no process has the name.
-spec send(via(), Msg :: term()) -> pid().
send(Via, Msg) ->
    case whereis_name(Via) of
        undefined ->
            exit({badarg, {Via, Msg}});
        Pid ->
            Pid ! Msg,
            Pid
    end.

%% --- more -------------------------------------------------------------------------------------

%% @doc Registers a process of any node under a name that is free.
-spec register(via(), pid()) -> ok | {error, reason()}.
register(Via, Pid) ->
    register(Via, Pid, undefined).

%% @doc The same, with a term that lookup/1 returns. Keep it small: it is sent to every node.
-spec register(via(), pid(), Meta :: term()) -> ok | {error, reason()}.
register(Via, Pid, Meta) ->
    claim(register, Via, Pid, Meta).

%% @doc Gives a name to a process, even if another has it; that one stays alive.
-spec re_register(via(), pid()) -> ok | {error, reason()}.
re_register(Via, Pid) ->
    re_register(Via, Pid, undefined).

-spec re_register(via(), pid(), Meta :: term()) -> ok | {error, reason()}.
re_register(Via, Pid, Meta) ->
    claim(re_register, Via, Pid, Meta).

claim(_How, _Via, NoPid, _Meta) when not is_pid(NoPid) ->
    {error, {bad_pid, NoPid}};
claim(How, {Scope, Name}, Pid, Meta) ->
    case find(Scope) of
        {Module, Handle} -> Module:How(Handle, Name, Pid, Meta);
        undefined -> {error, {no_scope, Scope}}
    end;
claim(_How, Other, _Pid, _Meta) ->
    {error, {bad_name, Other}}.

%% @doc Takes the name away from the process that has it.
-spec unregister(via()) -> ok | {error, reason()}.
unregister({Scope, Name}) ->
    case find(Scope) of
        {Module, Handle} -> Module:unregister(Handle, Name);
        undefined -> {error, {no_scope, Scope}}
    end;
unregister(Other) ->
    {error, {bad_name, Other}}.

%% @doc The process that has a name, and the term given at its registration.
-spec lookup(via()) -> {ok, pid(), Meta :: term()} | undefined.
lookup({Scope, Name}) ->
    {Module, Handle} = scope(Scope),
    Module:lookup(Handle, Name).

%% @doc The names of a scope that this node knows, in no order. In an eventual scope these are all.
-spec names(scope()) -> [Name :: term()].
names(Scope) ->
    {Module, Handle} = scope(Scope),
    Module:names(Handle).

%% --- scopes -----------------------------------------------------------------------------------

%% @doc Starts a scope on this node, until the application stops. Options: `kind' (eventual |
%% strong) and those of the kind. The text says what is wrong with them.
%%
%% Options of eventual scopes: `conflict' says which of two processes keeps a name: the one with the
%% `oldest' registration (the default), with the `newest', or a function of `({Scope, Name}, {Pid1,
%% Meta1, TimeUs1}, {Pid2, Meta2, TimeUs2})' that returns one of the two pids, or none. The function
%% must be quick, and runs on the node of Pid1. `loser' says what the other process gets: `exit'
%% (the default: an exit signal `{weft_name_conflict, {Scope, Name}, Winner}'), `notify' (the same
%% as a message) or `none'. `names_per_pid': `many', `one', or `one_new' (one, but re_register/2 may
%% give it more). `wait': with `none' (the default) a change returns at once; with `all' when all
%% connected nodes of the scope have heard of it, but after 4 seconds in any case. Then of many that
%% register a name at once one succeeds, and the others get `{taken, Pid}'. All nodes must have the
%% same.
-spec start_scope(scope(), map()) -> ok | {error, Text :: string()}.
start_scope(Scope, Options) ->
    case check_scope(Scope, Options) of
        {ok, Module} -> start_scope(Scope, Module, Options, runs(Scope));
        {error, Text} -> {error, Text}
    end.

start_scope(Scope, Module, Options, Before) when Before =:= none; Before =:= Module ->
    case weft_services:start(weft_names_sup:child_spec(Module, Scope, Options)) of
        {ok, _Pid} -> known(Scope, Module);
        {error, Reason} -> {error, text("scope ~0p does not start: ~0p", [Scope, Reason])}
    end;
start_scope(Scope, _Module, _Options, {of_another, Process}) ->
    {error, text("scope ~0p does not start: its process ~0p would have the name of one that runs, "
                 "as that of another scope: choose another name", [Scope, Process])};
start_scope(Scope, _Module, _Options, Other) ->
    {error, text("scope ~0p runs already, and its kind is ~s: stop it first, or choose another "
                 "name", [Scope, kind_of(Other)])}.

%% The kind of a scope that was started is known longer than the application runs. The processes of
%% `{group, a}' have the names of those of `group_a'.
runs(Scope) ->
    Names = weft_names_sup:processes(Scope),
    case {[Name || Name <- Names, whereis(Name) =/= undefined], find(Scope)} of
        {[], _} -> none;
        {[Name | _], undefined} -> {of_another, Name};
        {_, {Module, _}} -> Module
    end.

%% @doc Stops a scope on this node: other nodes forget the names of this node, and this node forgets
%% all. The names that its processes have in a strong scope are lost; they are told.
-spec stop_scope(scope()) -> ok.
stop_scope(Scope) ->
    ok = weft_services:stop({weft_names, Scope}),
    _ = persistent_term:erase({?MODULE, Scope}),
    ok.

%% @doc The scopes of this node.
-spec scopes() -> [scope()].
scopes() ->
    [Scope || {{?MODULE, Scope}, _} <- persistent_term:get()].

%% @doc Figures of each scope.
-spec info() -> #{scope() => map()}.
info() ->
    maps:from_list([{Scope, info(Scope)} || Scope <- scopes()]).

-spec info(scope()) -> map().
info(Scope) ->
    {Module, Handle} = scope(Scope),
    (Module:info(Handle))#{kind => kind_of(Module)}.

%% @doc What is promised for the names of a scope.
-spec kind(scope()) -> eventual | strong.
kind(Scope) ->
    {Module, _Handle} = scope(Scope),
    kind_of(Module).

kind_of(weft_names_eventual) -> eventual;
kind_of(weft_names_strong) -> strong.

%% @doc Checks the scopes of the configuration.
-spec check(Scopes :: term()) -> ok | {error, Text :: string()}.
check(Scopes) when is_map(Scopes) ->
    case [Text || {Scope, Options} <- maps:to_list(Scopes),
                  {error, Text} <- [check_scope(Scope, Options)]] of
        [] -> ok;
        Texts -> {error, text("scopes: ~ts", [lists:join("; ", Texts)])}
    end;
check(Scopes) ->
    {error, text("scopes is ~0p, it must be a map from scopes to maps of options", [Scopes])}.

%% @private What runs for the scopes of the configuration; `cluster' and `global' are always there.
-spec children() -> [supervisor:child_spec()].
children() ->
    [begin
         {ok, Module} = check_scope(Scope, Options),
         ok = known(Scope, Module),
         weft_names_sup:child_spec(Module, Scope, Options)
     end || {Scope, Options} <- maps:to_list(maps:merge(always(), weft_config:get(scopes)))].

%% A name of `weft_global' has its resolver as its term; it also decides what happens to the loser.
always() ->
    #{cluster => #{}, global => #{conflict => {weft_global, resolve}, loser => none,
                                  names_per_pid => one_new, wait => all}}.

check_scope(Scope, Options) when is_map(Options) ->
    case {is_scope(Scope), module(maps:get(kind, Options, eventual))} of
        {false, _} ->
            {error, text("~0p is no scope; it must be an atom or {group, Atom}", [Scope])};
        {true, {ok, Module}} ->
            case Module:check(Options) of
                ok -> {ok, Module};
                {error, Text} -> {error, text("scope ~0p: ~ts", [Scope, Text])}
            end;
        {true, error} ->
            {error, text("scope ~0p: kind is ~0p, it must be eventual or strong",
                         [Scope, maps:get(kind, Options)])}
    end;
check_scope(Scope, Options) ->
    {error, text("scope ~0p: its options are ~0p, they must be a map", [Scope, Options])}.

is_scope({group, Group}) -> is_atom(Group);
is_scope(Scope) -> is_atom(Scope).

module(eventual) -> {ok, weft_names_eventual};
module(strong) -> {ok, weft_names_strong};
module(_) -> error.

known(Scope, Module) ->
    persistent_term:put({?MODULE, Scope}, {Module, Module:handle(Scope)}).

find(Scope) ->
    persistent_term:get({?MODULE, Scope}, undefined).

scope(Scope) ->
    case find(Scope) of
        {_, _} = Found -> Found;
        undefined -> error({no_scope, Scope})
    end.

text(Format, Args) ->
    lists:flatten(io_lib:format(Format, Args)).
