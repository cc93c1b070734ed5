%% SPDX-License-Identifier: Apache-2.0
%% @doc The nodes of a cluster that a command looks at, and how they are called. Nodes of a local
%% cluster are called by the command itself (`weft_local_control'), those of a deployment by
%% emulators on their hosts (`weft_deploy_reach'). Whoever looks need not know which it is.
-module(weft_cli_nodes).

-export([with_deployment/3, find/2, seen/1, picture/1, lost/1, call/3, caller/1, absent/2, is_up/1,
         lost_text/1, lost_json/1, outcome/1]).
-export_type([cluster/0, seen/0]).

-import(weft_local_spec, [short/1]).

-type cluster() :: weft_local:cluster() | deployed().
-type deployed() :: #{name := string(), dir := string(), topology := term(), nodes := [node()],
                      file := string(), reach := weft_deploy_reach:reach()}.
%% With the hosts that were lost when the nodes were asked, and the nodes of which nothing is known.
-type seen() :: #{cluster := cluster(), name := string(), dir := string(), topology := term(),
                  nodes := [node()], lost := weft_deploy_reach:lost(), unknown := [node()]}.

-define(TIMEOUT_MS, 10000).

%% @doc Runs Fun with the deployment that a file describes.
-spec with_deployment(File :: string(), weft_argparse:given(),
                      fun((deployed()) -> weft_cli:answer())) -> weft_cli:answer().
with_deployment(_File, #{name := _}, _Fun) ->
    {usage, "--name is that of a local cluster, --cluster the file of a deployment: give one"};
with_deployment(File, Options, Fun) ->
    %% What the client of ssh logs is in the answer, too.
    ok = logger:set_primary_config(level, critical),
    weft_deploy:reach(File, #{root => maps:get(dir, Options, ".weft")},
                      fun(Reach) ->
                              Fun((weft_deploy_reach:info(Reach))#{file => File, reach => Reach})
                      end).

%% @doc The node that a user calls by that name, short or full.
-spec find(cluster(), string()) -> {ok, node()} | {error, unknown | ambiguous}.
find(#{nodes := Nodes}, Name) ->
    case [Node || Node <- Nodes, Name =:= short(Node) orelse Name =:= atom_to_list(Node)] of
        [Node] -> {ok, Node};
        [] -> {error, unknown};
        [_, _ | _] -> {error, ambiguous}
    end.

%% @doc Asks all nodes that may answer for their status.
-spec seen(cluster()) -> {seen(), weft_local_picture:statuses()}.
seen(#{nodes := Nodes} = Cluster) ->
    Seen = #{unknown := Unknown} = lost(Cluster),
    Asked = case Cluster of
                #{reach := _} -> Nodes -- Unknown;
                _Local -> weft_local:running(Cluster)
            end,
    {Seen, statuses(Cluster, Asked)}.

%% @doc The same, and puts it together.
-spec picture(cluster()) -> {seen(), weft_local_picture:picture()}.
picture(Cluster) ->
    {Seen, Statuses} = seen(Cluster),
    {Seen, weft_local_picture:of_statuses(Seen, Statuses)}.

%% @doc Only looks which hosts are lost.
-spec lost(cluster()) -> seen().
lost(Cluster) ->
    {Lost, Unknown} = case Cluster of
                          #{reach := Reach} -> weft_deploy_reach:lost(Reach);
                          _Local -> {[], []}
                      end,
    (maps:with([name, dir, topology, nodes], Cluster))
        #{cluster => Cluster, lost => Lost, unknown => Unknown}.

statuses(Cluster, Nodes) ->
    Answers = weft_local_control:all(Nodes, {weft, status, []}, caller(Cluster)),
    maps:from_list([{Node, Status} || {Node, {ok, Status}} <- Answers]).

%% @doc Calls a function on a node and waits at most 10 s.
-spec call(cluster(), node(), {module(), atom(), [term()]}) -> weft_local_control:result().
call(Cluster, Node, Function) ->
    weft_local_control:call(Node, Function, ?TIMEOUT_MS, caller(Cluster)).

%% @doc How functions are called on nodes of the cluster, as `erpc:call/5' does it.
-spec caller(cluster()) -> weft_doctor:call().
caller(#{reach := Reach}) ->
    fun(Node, Module, Function, Arguments, TimeoutMs) ->
            weft_deploy_reach:call(Node, Module, Function, Arguments, TimeoutMs, Reach)
    end;
caller(_Local) ->
    fun erpc:call/5.

%% @doc Why nobody can be asked at that node, and what to do; nothing if it is there.
-spec absent(seen(), node()) -> [iolist()].
absent(#{cluster := #{file := File} = Cluster, unknown := Unknown, lost := Lost}, Node) ->
    case lists:member(Node, Unknown) of
        true ->
            Host = weft_doctor_checks:host(Node),
            [[short(Node), " is on ", Host, ", which can not be reached: ", Why]
             || {Other, Why} <- Lost, Other =:= Host];
        false ->
            [[short(Node), " is not running: weft deploy apply ", File]
             || {not_running, _} <- [call(Cluster, Node, {erlang, node, []})]]
    end;
absent(#{cluster := Local}, Node) ->
    [[short(Node), " is not running: weft restart ", short(Node)]
     || not weft_local:is_running(Local, Node)].

%% @doc Whether there still is a cluster of which no node has answered. That of `weft up' has an
%% epmd, and nodes may be started again; of a deployment a lost host may have some.
-spec is_up(seen()) -> boolean().
is_up(#{cluster := #{reach := _}, lost := Lost}) -> Lost =/= [];
is_up(#{cluster := Local, nodes := Nodes}) ->
    lists:any(fun(Member) -> weft_local:is_running(Local, Member) end, [epmd | Nodes]).

%% @doc A line for each host that is lost.
-spec lost_text(seen()) -> iolist().
lost_text(#{lost := Lost}) ->
    [[Host, " can not be reached: ", Why, $\n] || {Host, Why} <- Lost].

%% @doc The same as data; local clusters have none.
-spec lost_json(seen()) -> #{lost => [#{what := binary(), why := binary()}]}.
lost_json(#{cluster := #{reach := _}, lost := Lost}) ->
    #{lost => [#{what => unicode:characters_to_binary(Host),
                 why => unicode:characters_to_binary(Why)} || {Host, Why} <- Lost]};
lost_json(_Local) ->
    #{}.

%% @doc An answer that lacks a host is wanting.
-spec outcome(seen()) -> ok | wanting.
outcome(#{lost := []}) -> ok;
outcome(#{}) -> wanting.
