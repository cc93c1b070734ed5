%% SPDX-License-Identifier: Apache-2.0
%% @doc What groups save: TCP connections and packets of each node, in a full mesh and in 3, 6 and
%% 12 groups of the same nodes, beside the formulas of the SD Erlang paper (Chechina et al. 2017,
%% section 5.2.1).
%%
%% The shape is that of its Orbit: node 1 is the master, and in a group with the heads of all
%% groups; each head is in a group with its workers. With N nodes in S groups a master has S
%% connections, a head (N-1)/S + S - 1, a worker (N-1)/S - 1; in a mesh each has N - 1.
%%
%% Measured: connections when their number has been the same for some seconds; packets that come in
%% while nobody says anything; and while each worker sends messages to workers: to any of them alike
%% (which groups make dearer: three links instead of one), and nine of ten inside its own group
%% (which is what groups are for; in the mesh these are parts of the size of the first groups).
%% Arguments: `[--nodes N] [--groups S,S] [--idle_s S] [--out DIR]'. Writes DIR/groups.csv,
%% the rows of a cluster as soon as it is measured.
-module(weft_bench_groups).

-export([command/0, main/1, talked/4]).
-export([listen/0, heard/0, talk/3]).

-define(NODES, 37).
-define(IDLE_S, 20).
-define(GROUPS, [3, 6, 12]).
-define(MESSAGES, 300).
-define(MESSAGE_BYTES, 100).
-define(STABLE_MS, 4000).
-define(DEADLINE_MS, 120000).

-type role() :: master | head | worker | node.

%% @doc 0: measured, 2: not.
-spec main([string()]) -> 0 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(), "bin/bench groups").

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "connections and packets of groups and meshes",
      arguments =>
          [#{name => nodes, long => "-nodes", type => {integer, [{min, 1}]}, default => ?NODES,
             value => "N", help => "with the master"},
           #{name => groups, long => "-groups", type => {list, {integer, [{min, 2}]}},
             default => ?GROUPS, value => "S,S",
             help => "into how many groups, one after the other"},
           #{name => idle_s, long => "-idle_s", type => {integer, [{min, 1}]},
             default => ?IDLE_S, value => "S", help => "for so long nobody says anything"}
           | weft_bench_arguments:common("where the results go", "groups")],
      handler => fun(Options) -> weft_bench_arguments:recorded(Options, fun checked/1) end}.

checked(#{nodes := Count, groups := Groups} = Options) ->
    case [S || S <- Groups, (Count - 1) rem S =/= 0 orelse (Count - 1) div S < 2] of
        [] -> run(Options);
        [S | _] -> {error, lists:concat(["--nodes ", Count, ": without the master these are no ", S,
                                         " equal groups of at least two nodes"])}
    end.

run(#{nodes := Count, groups := AllGroups, out := Dir} = Options) ->
    Cells = [{stock_mesh, mesh}, {weft_mesh, mesh} | [{weft_groups, S} || S <- AllGroups]],
    File = filename:join(Dir, "groups.csv"),
    ok = weft_bench_environment:write(Dir, Options,
                                      [{Variant, {cluster, cluster(Groups, Count)}}
                                       || {Variant, Groups} <- Cells]),
    Measure = fun(Write) -> [Write(Row) || Cell <- Cells, Row <- cell(Cell, Options)] end,
    Rows = weft_report_file:rows(File, head(), fun line/1, Measure),
    io:format("~n~b nodes, ~.1f VMs per core~n~ts~nfile: ~ts~n",
              [Count, weft_bench_cluster:vms_per_core(Count), table(Rows), File]).

cell({Variant, Groups}, #{nodes := Count, out := Dir} = Options) ->
    io:format("~ts, ~tp~n", [Variant, Groups]),
    Shape = cluster(Groups, Count),
    Rows = weft_bench_cluster:with_nodes(Variant, Shape, Dir,
                                         fun(Nodes) -> measure(Groups, Nodes, Options) end),
    [Row#{variant => Variant, groups => Groups} || Row <- Rows].

%% --- shapes and formulas ----------------------------------------------------------------------

cluster(Groups, Count) -> weft_bench_cluster:shape(Count, shape(Groups, Count)).

shape(mesh, _Count) -> [];
shape(Groups, Count) ->
    Parts = parts(Groups, Count),
    [[1 | [hd(Part) || Part <- Parts]] | Parts].

%% Equal parts of the nodes 2..Count; the first of each is its head.
parts(Groups, Count) ->
    Size = (Count - 1) div Groups,
    [lists:seq(2 + N * Size, 1 + (N + 1) * Size) || N <- lists:seq(0, Groups - 1)].

role(_Number, mesh, _Count) -> node;
role(1, _Groups, _Count) -> master;
role(Number, Groups, Count) ->
    case (Number - 2) rem ((Count - 1) div Groups) of
        0 -> head;
        _ -> worker
    end.

-spec formula(role(), mesh | pos_integer(), pos_integer()) -> pos_integer().
formula(node, mesh, Count) -> Count - 1;
formula(master, Groups, _Count) -> Groups;
formula(head, Groups, Count) -> (Count - 1) div Groups + Groups - 1;
formula(worker, Groups, Count) -> (Count - 1) div Groups - 1.

%% --- measuring --------------------------------------------------------------------------------

measure(Groups, Nodes, #{nodes := Count, groups := [First | _], idle_s := IdleS}) ->
    lists:foreach(fun(N) -> true = call(N, Nodes, listen, []) end, lists:seq(1, Count)),
    Connections = stable(Nodes, [], 0, deadline()),
    Before = weft_bench_cluster:traffic(Nodes),
    receive after IdleS * 1000 -> ok end, % the time that is measured
    Idle = difference(packets, Before, weft_bench_cluster:traffic(Nodes)),
    IdleBytes = difference(bytes, Before, weft_bench_cluster:traffic(Nodes)),
    Parts = parts(case Groups of mesh -> First; _ -> Groups end, Count),
    Uniform = talked(uniform, Parts, Nodes, Count),
    Local = talked(local, Parts, Nodes, Count),
    Of = fun(Role, Values) ->
                 [Value || {N, Value} <- numbered(Values), role(N, Groups, Count) =:= Role]
         end,
    [#{role => Role, nodes => length(Of(Role, Connections)),
       formula => formula(Role, Groups, Count),
       connections_min => lists:min(Of(Role, Connections)),
       connections_max => lists:max(Of(Role, Connections)),
       connections_mean => mean(Connections),
       idle_packets_s => mean(Of(Role, Idle)) / IdleS,
       idle_bytes_s => mean(Of(Role, IdleBytes)) / IdleS,
       packets_uniform => mean(Of(Role, Uniform)), packets_local => mean(Of(Role, Local)),
       packets_uniform_mean => mean(Uniform), packets_local_mean => mean(Local)}
     || Role <- roles(Groups)].

roles(mesh) -> [node];
roles(_Groups) -> [master, head, worker].

%% Until no node had other numbers of connections for a while.
stable(Nodes, Last, SinceMs, DeadlineMs) ->
    Now = [maps:get(connections, Of) || Of <- weft_bench_cluster:traffic(Nodes)],
    NowMs = erlang:monotonic_time(millisecond),
    case Now =:= Last of
        true when NowMs - SinceMs > ?STABLE_MS -> Now;
        true -> again(Nodes, Last, SinceMs, DeadlineMs);
        false -> again(Nodes, Now, NowMs, DeadlineMs)
    end.

again(Nodes, Last, SinceMs, DeadlineMs) ->
    erlang:monotonic_time(millisecond) < DeadlineMs orelse error({connections_change, Last}),
    receive after 500 -> stable(Nodes, Last, SinceMs, DeadlineMs) end.

deadline() -> erlang:monotonic_time(millisecond) + ?DEADLINE_MS.

difference(Key, Before, After) ->
    [maps:get(Key, A) - maps:get(Key, B) || {B, A} <- lists:zip(Before, After)].

%% @doc What each node received. All workers send at once; it is over when all has arrived.
-spec talked(uniform | local, Parts :: [[pos_integer()]], weft_bench_nodes:nodes(),
             Count :: pos_integer()) -> [integer()].
talked(How, Parts, Nodes, Count) ->
    Workers = lists:append(Parts),
    Heard = heard(Nodes, Count),
    Before = weft_bench_cluster:traffic(Nodes),
    Talks = [spawn_monitor(fun() -> ok = call(N, Nodes, talk,
                                              [targets(How, N, Parts, Nodes), ?MESSAGES,
                                               ?MESSAGE_BYTES]) end) || N <- Workers],
    lists:foreach(fun ended/1, Talks),
    until(fun() -> heard(Nodes, Count) - Heard =:= ?MESSAGES * length(Workers) end, deadline()),
    difference(packets, Before, weft_bench_cluster:traffic(Nodes)).

ended({Pid, Ref}) ->
    receive
        {'DOWN', Ref, process, Pid, normal} -> ok;
        {'DOWN', Ref, process, Pid, Why} -> error({talk_failed, Why})
    end.

heard(Nodes, Count) ->
    lists:sum([call(N, Nodes, heard, []) || N <- lists:seq(1, Count)]).

until(Condition, DeadlineMs) ->
    case Condition() of
        true -> ok;
        false ->
            erlang:monotonic_time(millisecond) < DeadlineMs orelse error(messages_are_missing),
            receive after 100 -> until(Condition, DeadlineMs) end
    end.

targets(How, N, Parts, Nodes) ->
    [Own] = [Part || Part <- Parts, lists:member(N, Part)],
    Names = list_to_tuple(weft_bench_cluster:nodes(Nodes)),
    [[element(Number, Names) || Number <- Numbers -- [N]]
     || Numbers <- [lists:append(Parts) | [Own || How =:= local]]].

call(N, Nodes, Function, Args) ->
    weft_bench_nodes:call(Nodes, {n, N}, ?MODULE, Function, {Args, ?DEADLINE_MS}).

%% --- on the nodes -----------------------------------------------------------------------------

%% @doc A process that counts what it gets.
-spec listen() -> true.
listen() -> register(?MODULE, spawn(fun() -> count(0) end)).

count(Count) ->
    receive
        {heard, From} -> From ! {heard, Count}, count(Count);
        Message when is_binary(Message) -> count(Count + 1)
    end.

-spec heard() -> non_neg_integer().
heard() ->
    ?MODULE ! {heard, self()},
    receive {heard, Count} -> Count end.

%% @doc Sends messages to nodes by chance: of one list, or one of ten to the first and the others to
%% the second.
-spec talk([[node()]], Messages :: pos_integer(), Bytes :: pos_integer()) -> ok.
talk(Targets, Messages, Bytes) ->
    Message = binary:copy(<<0>>, Bytes),
    lists:foreach(fun(Number) -> {?MODULE, target(Number, Targets)} ! Message end,
                  lists:seq(1, Messages)).

target(_Number, [Nodes]) -> one_of(Nodes);
target(Number, [Nodes, _Near]) when Number rem 10 =:= 0 -> one_of(Nodes);
target(_Number, [_Nodes, Near]) -> one_of(Near).

one_of(Nodes) -> lists:nth(rand:uniform(length(Nodes)), Nodes).

%% --- what comes of it -------------------------------------------------------------------------

numbered(Values) -> lists:zip(lists:seq(1, length(Values)), Values).

mean(Values) -> lists:sum(Values) / length(Values).

-define(COLUMNS, [variant, groups, role, nodes, formula, connections_min, connections_max,
                  connections_mean, idle_packets_s, idle_bytes_s, packets_uniform,
                  packets_uniform_mean, packets_local, packets_local_mean]).

head() -> weft_report_csv:line(?COLUMNS).

line(Row) -> weft_report_csv:line([text(maps:get(Column, Row)) || Column <- ?COLUMNS]).

table(Rows) ->
    [barred(["variant", "groups", "role", "nodes", "formula", "connections", "mean",
             "idle packets/s", "packets, all alike", "packets, 9 of 10 in the group"])
     | [barred([text(maps:get(Column, Row))
                || Column <- [variant, groups, role, nodes, formula, connections_max,
                              connections_mean, idle_packets_s, packets_uniform, packets_local]])
        || Row <- Rows]].

barred(Words) -> [lists:join(" | ", Words), $\n].

text(Value) when is_float(Value) -> io_lib:format("~.1f", [Value]);
text(Value) -> io_lib:format("~w", [Value]).
