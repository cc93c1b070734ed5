%% SPDX-License-Identifier: Apache-2.0
%% @doc What each topology costs the same nodes: TCP connections, the links on the way from each
%% node to each other one (hops), the bytes that come in while nobody says anything, and how long a
%% call takes over one link, two, and three.
%%
%% All begin without a topology, and get it one after the other. Measured is when all of them have a
%% way to all, after `--settle_s' seconds. A call is `erpc:call(Node, erlang, node, [])' from the
%% first node to the first one that is so many links away.
%% Arguments: `[--nodes N] [--only TOPOLOGY,TOPOLOGY] [--settle_s S] [--idle_s S] [--out DIR]'.
%% Writes DIR/topologies.csv, each row as soon as it is measured.
-module(weft_bench_topologies).

-export([command/0, main/1]).
-export([configure/1, call_us/1]).

-define(NODES, 12).
-define(SETTLE_S, 20).
-define(IDLE_S, 30).
-define(CALLS, 2000).
-define(AGAIN_MS, 200).
-define(DEADLINE_MS, 120000).
-define(COLUMNS, [topology, nodes, connections_mean, connections_max, connections_all, hops_mean,
                  hops_max, idle_bytes_s, call_1_us, call_2_us, call_3_us]).
-define(TOPOLOGIES, [full_mesh, full_mesh_swim, star, groups, client_server, client_server_2,
                     peer_to_peer, peer_to_peer_3]).

%% @doc 0: measured, 2: not.
-spec main([string()]) -> 0 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(), "bin/bench topologies").

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "connections, hops and bytes at rest of each topology",
      arguments =>
          [#{name => nodes, long => "-nodes", type => {integer, [{min, 4}]}, default => ?NODES,
             value => "N", help => "how many"},
           #{name => only, long => "-only", type => {list, {atom, ?TOPOLOGIES}},
             default => ?TOPOLOGIES, value => "TOPOLOGY,TOPOLOGY",
             help => ["some of ", lists:join(", ", [atom_to_list(Name) || Name <- ?TOPOLOGIES])]},
           #{name => settle_s, long => "-settle_s", type => {integer, [{min, 0}]},
             default => ?SETTLE_S, value => "S", help => "before anything is measured"},
           #{name => idle_s, long => "-idle_s", type => {integer, [{min, 1}]},
             default => ?IDLE_S, value => "S", help => "for so long nobody says anything"}
           | weft_bench_arguments:common("where the results go", "topologies")],
      handler => fun(Options) -> weft_bench_arguments:recorded(Options, fun run/1) end}.

run(#{nodes := Count, only := Only, out := Dir} = Options) ->
    File = filename:join(Dir, "topologies.csv"),
    ok = weft_bench_environment:write(Dir, Options, [{weft_1, layout(Count)}]),
    Measure = fun(Write) -> [Write(cell(Name, Options)) || Name <- Only] end,
    Rows = weft_report_file:rows(File, weft_report_csv:line(?COLUMNS), fun line/1, Measure),
    io:format("~n~b nodes, ~.1f VMs per core~n~ts~nfile: ~ts~n",
              [Count, weft_bench_cluster:vms_per_core(Count), table(Rows), File]).

layout(Count) -> {apart, weft_bench_cluster:shape(Count, [])}.

cell(Name, #{nodes := Count, out := Dir} = Options) ->
    io:format("~ts~n", [Name]),
    Row = weft_bench_cluster:with_layout(
            weft_1, layout(Count), Dir,
            fun(Nodes) -> measure(Name, Nodes, Options) end),
    Row#{topology => Name, nodes => Count}.

%% --- topologies -------------------------------------------------------------------------------

%% That of the node with this number.
topology(full_mesh, _Number, [First | _]) -> {full_mesh, #{seeds => [First]}};
topology(full_mesh_swim, _Number, [First | _]) ->
    {full_mesh, #{seeds => [First], detector => swim}};
topology(star, _Number, [First | Others]) ->
    {static, #{links => [{First, Other} || Other <- Others]}};
topology(groups, _Number, Names) -> {groups, maps:from_list(row(Names))};
topology(client_server, Number, Names) -> client_server(#{}, Number, Names);
topology(client_server_2, Number, Names) -> client_server(#{links => 2}, Number, Names);
topology(peer_to_peer, _Number, [First | _]) -> {peer_to_peer, #{seeds => [First]}};
topology(peer_to_peer_3, _Number, [First | _]) ->
    {peer_to_peer, #{seeds => [First], active => 3}}.

%% Three groups of about the same size; the last node of each but the last one is the first of the
%% next one.
row(Names) ->
    Steps = length(Names) - 1,
    Step = (Steps + 2) div 3,
    [{weft_bench_cluster:group(Group), lists:sublist(Names, 1 + (Group - 1) * Step, Step + 1)}
     || Group <- [1, 2, 3], (Group - 1) * Step < Steps].

client_server(OfClients, Number, Names) ->
    Servers = lists:sublist(Names, 3),
    case lists:member(lists:nth(Number, Names), Servers) of
        true -> {client_server, #{role => server, servers => Servers}};
        false -> {client_server, OfClients#{role => client, servers => Servers}}
    end.

%% --- measuring --------------------------------------------------------------------------------

measure(Name, Nodes, #{nodes := Count, settle_s := SettleS, idle_s := IdleS}) ->
    Names = weft_bench_cluster:nodes(Nodes),
    lists:foreach(fun(N) ->
                      ok = call(N, Nodes, ?MODULE, configure, [topology(Name, N, Names)])
                  end, lists:seq(1, Count)),
    ok = until(fun() ->
                   lists:all(fun(N) ->
                                 [] =:= call(N, Nodes, weft_bench_cluster, unreachable, [Names])
                             end, lists:seq(1, Count))
               end, some_are_unreachable, deadline_ms()),
    receive after SettleS * 1000 -> ok end, % what is being exchanged at first is not measured
    Before = weft_bench_cluster:traffic(Nodes),
    receive after IdleS * 1000 -> ok end, % the time that is measured
    After = weft_bench_cluster:traffic(Nodes),
    Connections = [maps:get(connections, Of) || Of <- After],
    Bytes = [maps:get(bytes, A) - maps:get(bytes, B) || {B, A} <- lists:zip(Before, After)],
    Hops = hops(Nodes, Names, deadline_ms()),
    Lengths = maps:values(Hops),
    #{connections_mean => mean(Connections), connections_max => lists:max(Connections),
      connections_all => lists:sum(Connections) div 2,
      hops_mean => mean(Lengths), hops_max => lists:max(Lengths),
      idle_bytes_s => mean(Bytes) / IdleS,
      call_us => maps:from_list([{Links, call(1, Nodes, ?MODULE, call_us, [To])}
                                 || Links <- [1, 2, 3], To <- away(Links, Hops, Names)])}.

%% The links between each node and each other one, by what all say of their routes. While routes
%% change there may be a circle, or no way.
hops(Nodes, Names, DeadlineMs) ->
    Said = maps:from_list([{Name, call(N, Nodes, weft, status, [])}
                           || {N, Name} <- lists:zip(lists:seq(1, length(Names)), Names)]),
    Ask = fun(Name) -> {ok, map_get(Name, Said)} end,
    Walks = [{{From, To}, weft_trace:walk(From, To, Ask)}
             || From <- Names, To <- Names, From =/= To],
    case [Failed || {_, {error, _, _}} = Failed <- Walks] of
        [] -> maps:from_list([{Pair, length(Way)} || {Pair, {ok, Way}} <- Walks]);
        [Failed | _] ->
            now_ms() < DeadlineMs orelse error({no_way, Failed}),
            receive after ?AGAIN_MS -> hops(Nodes, Names, DeadlineMs) end
    end.

%% The first one so far away from the first node, if there is one.
away(Links, Hops, [First | Others]) ->
    lists:sublist([To || To <- Others, map_get({First, To}, Hops) =:= Links], 1).

deadline_ms() -> now_ms() + ?DEADLINE_MS.

now_ms() -> erlang:monotonic_time(millisecond).

until(Condition, Missing, DeadlineMs) ->
    now_ms() < DeadlineMs orelse error(Missing),
    case Condition() of
        true -> ok;
        false -> receive after ?AGAIN_MS -> until(Condition, Missing, DeadlineMs) end
    end.

call(N, Nodes, Module, Function, Args) ->
    weft_bench_nodes:call(Nodes, {n, N}, Module, Function, {Args, ?DEADLINE_MS}).

%% @doc On a node: starts the application with a topology.
-spec configure(term()) -> ok.
configure(Topology) ->
    ok = application:stop(weft),
    ok = application:set_env(weft, topology, Topology),
    application:start(weft).

%% @doc On a node: the median of calls to that one, in microseconds.
-spec call_us(node()) -> number().
call_us(Node) ->
    Node = erpc:call(Node, erlang, node, []),
    weft_report_statistics:median([element(1, timer:tc(erpc, call, [Node, erlang, node, []]))
                                   || _ <- lists:seq(1, ?CALLS)]).

%% --- what comes of it -------------------------------------------------------------------------

mean(Values) -> lists:sum(Values) / length(Values).

line(Row) -> weft_report_csv:line([text(value(Column, Row)) || Column <- ?COLUMNS]).

table(Rows) ->
    [barred(["topology", "connections", "most", "in all", "hops", "most", "bytes/s",
             "us of a call, 1 link", "2", "3"])
     | [barred([text(value(Column, Row)) || Column <- ?COLUMNS -- [nodes]]) || Row <- Rows]].

value(call_1_us, Row) -> of_links(1, Row);
value(call_2_us, Row) -> of_links(2, Row);
value(call_3_us, Row) -> of_links(3, Row);
value(Column, Row) -> map_get(Column, Row).

of_links(Links, #{call_us := Times}) -> maps:get(Links, Times, none).

barred(Words) -> [lists:join(" | ", Words), $\n].

text(none) -> "";
text(Value) when is_float(Value) -> io_lib:format("~.1f", [Value]);
text(Value) -> io_lib:format("~w", [Value]).
