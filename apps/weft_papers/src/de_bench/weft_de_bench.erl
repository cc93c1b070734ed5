%% SPDX-License-Identifier: Apache-2.0
%% @doc DE-Bench (Ghaffari 2014): a load on each of many nodes, peer to peer, without a coordinator
%% while it runs. How does throughput change with nodes, with global operations, with the size of
%% data?
%%
%% `bin/bench de_bench CONFIG [--nodes N] [--variant V] [--groups SIZE] [--quota PERCENT]
%% [--out DIR]' starts the nodes, in groups of a size of which each has one node in common with the
%% next, runs the load of
%% the configuration (that of DE-Bench: duration, concurrent, report_interval, operations,
%% packet_size, delay_remote_function, transitive_connection) on each of them, and adds up. Each
%% node leaves its files in DIR/N (`weft_load_files'); the sum is in DIR, with how the nodes shared
%% the machine, and whether quotas held them up (`weft_report_sharing'). A node that is lost is
%% told, and the others go on. Names of nodes in the configuration (erlange_nodes) are not used:
%% nodes are started here.
-module(weft_de_bench).

-export([command/0, main/1, run/3, loads/3, loads/4]).

-define(READY_MS, 120000).
-define(GRACE_MS, 120000).
%% What it takes to tell all nodes when to begin.
-define(HEAD_START_US, 300000).
-define(MORE_PER_NODE_US, 10000).

%% @doc 0: measured, 1: measured, with failures, 2: not measured.
-spec main([string()]) -> 0 | 1 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(), "bin/bench de_bench").

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "operations between nodes, as DE-Bench runs them",
      arguments =>
          [#{name => config, help => "what to do: docs/guide/load.md"},
           #{name => nodes, long => "-nodes",
             type => {integer, [{min, 1}, {max, weft_papers_program:nodes_max()}]}, value => "N",
             help => "how many (default 4)"},
           #{name => variant, long => "-variant", type => {atom, weft_bench_variant:of_clusters()},
             value => "V", help => "of the benchmark (default stock_mesh)"},
           #{name => groups, long => "-groups", type => {integer, [{min, 2}]}, value => "SIZE",
             help => "in groups of so many nodes"},
           weft_bench_arguments:quota()
           | weft_bench_arguments:common("where the results go")],
      handler => fun given/1}.

given(#{config := File} = Given) ->
    Dir = maps:get(out, Given, weft_bench_arguments:new("de_bench")),
    Defaults = [{driver, weft_de_bench_driver}, {mode, max}],
    case {weft_load_config:read(File, Defaults), weft_load_files:is_free(Dir)} of
        {{ok, #{pairs := Pairs} = Config}, ok} ->
            {Quota, Told} = weft_bench_arguments:given_quota(Given),
            Known = [{list_to_atom(Key), Value} || {Key, Value} <- Told] ++ rounds(Quota)
                ++ [{groups, Size} || #{groups := Size} <- [Given]],
            told(run(Config#{pairs := Known ++ Pairs}, Dir, Given#{quota => Quota}), Dir);
        {{error, Text}, _} -> told({error, Text}, none);
        {_, {error, Text}} -> told({error, Text}, none)
    end.

%% By the clock a node that stands still would compute, too.
rounds(none) -> [];
rounds(_Percent) -> [{rounds_per_us, weft_de_bench_computation:rounds_per_us()}].

told({error, Text}, _Dir) ->
    io:format(standard_error, "~ts~n", [Text]),
    2;
told({ok, Outcome}, Dir) ->
    weft_load_cli:print(Outcome),
    weft_load_cli:report(Outcome, Dir).

%% @doc Runs a configuration on so many nodes of a variant (4, `stock_mesh'). The error is a text.
-spec run(weft_load_config:config(), file:filename(),
          #{nodes => pos_integer(), variant => weft_bench_variant:variant(),
            groups => pos_integer(), quota => weft_bench_quota:percent() | none, _ => _}) ->
          {ok, weft_load:outcome()} | {error, string()}.
run(Config, Dir, Options) ->
    Count = maps:get(nodes, Options, 4),
    Variant = maps:get(variant, Options, stock_mesh),
    Quota = maps:get(quota, Options, none),
    case weft_de_bench_config:problems(Config, Variant, Options) of
        [] ->
            ok = weft_bench_interrupt:afterwards(de_bench, fun() -> weft_load_cli:report(Dir) end),
            on_nodes(Config, Dir, shape(Count, Options), {Variant, Quota});
        [Text | _] -> {error, Text}
    end.

shape(Count, #{groups := Size}) -> weft_bench_cluster:shape(Count, chain(1, Count, Size));
shape(Count, _Options) -> weft_bench_cluster:shape(Count, []).

%% The last node of a group is the first of the next.
chain(First, Count, Size) when First + Size - 1 >= Count -> [lists:seq(First, Count)];
chain(First, Count, Size) ->
    Last = First + Size - 1,
    [lists:seq(First, Last) | chain(Last, Count, Size)].

on_nodes(Config, Dir, Shape, Of) ->
    ok = weft_report_file:directory(filename:join(Dir, "logs")),
    weft_bench_place:with(weft_bench_link:loopback(), Dir,
                          fun(Place) -> in_place(Place, Config, Dir, Shape, Of) end).

in_place(Place, Config, Dir, #{nodes := Count} = Shape, {Variant, Quota}) ->
    io:format("starting ~b nodes, ~ts~n", [Count, Variant]),
    case weft_bench_nodes:start(Variant, {cluster, Shape},
                                #{place => Place, quota => Quota,
                                  log_dir => filename:join(Dir, "logs")}) of
        {ok, Nodes} ->
            io:format("~ts on each~n", [weft_load_config:describe(Config)]),
            Shared = fun(Wait) ->
                         weft_bench_sharing:measured({cluster, Shape}, Quota, Nodes, Wait)
                     end,
            try loads(Config, filename:absname(Dir), Nodes, Shared) of
                {ok, Outcome, {ok, Sharing}} ->
                    ok = shared(Dir, Sharing),
                    {ok, Outcome};
                {error, Text} ->
                    {error, Text}
            after weft_bench_nodes:stop(Nodes)
            end;
        {error, Text} ->
            {error, "the nodes do not start: " ++ Text}
    end.

%% What the quotas did is a result, too.
shared(Dir, Sharing) ->
    ok = weft_report_sharing:write(Dir, Sharing),
    {ok, Read} = weft_report_sharing:read(Dir),
    [io:format("~ts: ~ts~n", [Name, weft_report_terminal:ascii(Value)])
     || {Name, Value} <- weft_report_sharing:texts(Read)],
    ok.

%% @doc Runs a configuration on the nodes of a cluster that is there: all get ready, and then begin
%% at the same moment. The directory is one of an absolute name. What is told of a node that is lost
%% while it runs is `lost' of the outcome, and the sum has what it did before.
-spec loads(weft_load_config:config(), file:filename(), weft_bench_nodes:nodes()) ->
          {ok, weft_load:outcome()} | {error, string()}.
loads(Config, Dir, Nodes) ->
    case loads(Config, Dir, Nodes, fun(_Wait) -> none end) of
        {ok, Outcome, none} -> {ok, Outcome};
        {error, Text} -> {error, Text}
    end.

%% @doc The same, and what a function returns that is called after the warm-up. What it gets waits
%% for the end of the measured time, and returns ok.
-spec loads(weft_load_config:config(), file:filename(), weft_bench_nodes:nodes(),
            fun((Wait :: fun(() -> ok)) -> Beside)) ->
          {ok, weft_load:outcome(), Beside} | {error, string()}.
loads(#{pairs := Pairs} = Config0, Dir, Nodes, Beside) ->
    Config = Config0#{pairs := [{nodes, weft_bench_cluster:nodes(Nodes)} | Pairs]},
    Roles = lists:sort(weft_bench_nodes:roles(Nodes)),
    Variant = weft_bench_nodes:variant(Nodes),
    Cluster = {cluster, weft_bench_cluster:shape(length(Roles), [])},
    Environment = weft_load_files:environment(Config)
        ++ weft_bench_environment:of_nodes([{Variant, Cluster}])
        ++ [{"node_count", integer_to_list(length(Roles))}, {"variant", atom_to_list(Variant)}],
    Ready = on_each([{Role, {weft_de_bench_instance, ready},
                      [seeded(Config, Role), #{dir => own(Dir, Role), environment => Environment}]}
                     || Role <- Roles], ?READY_MS, Nodes),
    case [Text || {error, Text} <- Ready] of
        [] ->
            {Answers, Result} = begun(Roles, Config, Nodes, Beside),
            case weft_load_sum:write(Dir, Config, Environment,
                                     lists:zip([own(Dir, Role) || Role <- Roles], Answers)) of
                {ok, Outcome} -> {ok, Outcome, Result};
                {error, Text} -> {error, Text}
            end;
        [Text | _] ->
            {error, Text}
    end.

own(Dir, {n, Number}) -> filename:join(Dir, integer_to_list(Number)).

%% Nodes with the same seed would all do the same.
seeded(#{rng_seed := now} = Config, _Role) -> Config;
seeded(#{rng_seed := {A, B, C}} = Config, {n, Number}) ->
    Config#{rng_seed := {A + 1000 * Number, B, C}}.

%% Nodes of one machine share its clock (`os:perf_counter').
begun(Roles, #{duration_ms := DurationMs, warm_up_ms := WarmUpMs}, Nodes, Beside) ->
    AtUs = os:perf_counter(microsecond) + ?HEAD_START_US + length(Roles) * ?MORE_PER_NODE_US,
    Calling = calling([{Role, {weft_load_instance, go}, [AtUs]} || Role <- Roles],
                      DurationMs + WarmUpMs + ?GRACE_MS, Nodes),
    ok = wait(AtUs + 1000 * WarmUpMs),
    Result = Beside(fun() -> wait(AtUs + 1000 * (WarmUpMs + DurationMs)) end),
    {answers(Calling, Nodes), Result}.

wait(UntilUs) ->
    receive after max(0, (UntilUs - os:perf_counter(microsecond)) div 1000) -> ok end.

%% The answers of the nodes' instances, called at the same time, each by a process of its own.
on_each(Calls, TimeoutMs, Nodes) -> answers(calling(Calls, TimeoutMs, Nodes), Nodes).

calling(Calls, TimeoutMs, Nodes) ->
    Self = self(),
    Call = fun({Role, {Module, Function}, Arguments}) ->
                   Self ! {self(), weft_bench_nodes:call(Nodes, Role, Module, Function,
                                                         {Arguments, TimeoutMs})}
           end,
    [{Role, spawn_monitor(fun() -> Call(Of) end)} || {Role, _, _} = Of <- Calls].

answers(Calling, Nodes) ->
    [answer(weft_bench_nodes:node(Nodes, Role), Of) || {Role, Of} <- Calling].

answer(Node, {Pid, Monitor}) ->
    receive
        {Pid, {error, Text}} ->
            demonitor(Monitor, [flush]),
            {error, lists:concat([Node, ": ", Text])};
        {Pid, Answer} ->
            demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, Pid, Reason} ->
            {error, weft_load_sum:lost(atom_to_list(Node), Reason)}
    end.
