%% SPDX-License-Identifier: Apache-2.0
%% @doc The names of processes by which a new parent finds the children of the one before it, in
%% different registries:
%% ```
%% none               no names; the program ends if one of its processes is lost
%% local              registered on their nodes, where the parent asks
%% global             the registry of OTP, of all nodes that are connected with each other
%% {weft, cluster}    weft_names, of the whole cluster
%% {weft, groups}     weft_names, of the group that parent and child share
%% '''
%% A name has the run in it and the path of the process, so two of them are never the same.
-module(weft_aco_names).

-export([register/3, whereis/3]).
-export_type([names/0]).

-type names() :: none | local | global | {weft, cluster | groups}.

-define(ASK_MS, 10000).

%% @doc The caller takes its name, even if one that has just died still has it.
-spec register(names(), Run :: integer(), weft_aco_tree:process()) -> ok.
register(none, _Run, _Process) ->
    ok;
register(local, Run, Process) ->
    true = erlang:register(local_name(Run, Process), self()),
    ok;
register(global, Run, Process) ->
    yes = global:re_register_name(name(Run, Process), self()),
    ok;
register({weft, Scope}, Run, Process) ->
    ok = weft_names:re_register({scope(Scope, Process), name(Run, Process)}, self()).

%% @doc The process that has the name of this one.
-spec whereis(names(), Run :: integer(), weft_aco_tree:process()) -> pid() | undefined.
whereis(local, Run, #{node := Node} = Process) ->
    try
        erpc:call(Node, erlang, whereis, [local_name(Run, Process)], ?ASK_MS)
    catch
        error:{erpc, _} -> undefined
    end;
whereis(global, Run, Process) ->
    global:whereis_name(name(Run, Process));
whereis({weft, Scope}, Run, Process) ->
    weft_names:whereis_name({scope(Scope, Process), name(Run, Process)}).

name(Run, #{path := Path}) -> {weft_aco, Run, Path}.

%% As many as a tree has processes, which is not many.
local_name(Run, #{path := Path}) ->
    list_to_atom(lists:concat(["weft_aco_", Run | [[$_ | integer_to_list(Part)] || Part <- Path]])).

scope(cluster, _Process) -> cluster;
scope(groups, #{group := Number}) ->
    {ok, Scope} = weft_group:scope(weft_bench_cluster:group(Number)),
    Scope.
