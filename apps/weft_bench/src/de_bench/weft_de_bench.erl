%% SPDX-License-Identifier: Apache-2.0
%% @doc DE-Bench (Ghaffari 2014): a load on each of many nodes, peer to peer, without a coordinator
%% while it runs. How does throughput change with nodes, with global operations, with the size of
%% data?
%%
%% `bin/bench de_bench CONFIG [--nodes N] [--variant V] [--groups SIZE] [--out DIR]' starts the
%% nodes, in groups of a size of which each has one node in common with the next, runs the load of
%% the configuration (that of DE-Bench: duration, concurrent, report_interval, operations,
%% packet_size, delay_remote_function, transitive_connection) on each of them, and adds up. Each
%% node leaves its files in DIR/N (`weft_load_files'); the sum is in DIR. Names of nodes in the
%% configuration (erlange_nodes) are not used: nodes are started here.
-module(weft_de_bench).

-export([main/1, run/3, loads/3, prepare/1]).

-define(GRACE_MS, 120000).
-define(CALL_MS, 20000).

%% @doc 0: measured, 1: measured, with failures, 2: not measured.
-spec main([string()]) -> 0 | 1 | 2.
main([File | Options]) ->
    Defaults = [{driver, weft_de_bench_driver}, {mode, max}],
    case {weft_load_config:read(File, Defaults), options(Options -- ["--terminal"], #{})} of
        {{ok, Config}, {ok, Given}} ->
            Dir = maps:get(out, Given, filename:join([os:getenv("REBAR_BASE_DIR", "_build"),
                                                      "bench", "de_bench"])),
            told(run(Config, Dir, Given), Dir);
        {{error, Text}, _} -> told({error, Text}, none);
        {_, {error, Text}} -> told({error, Text}, none)
    end;
main([]) ->
    told({error, "Arguments: CONFIG [--nodes N] [--variant V] [--groups SIZE] [--out DIR]"}, none).

options([], Options) -> {ok, Options};
options(["--nodes", Text | Rest], Options) ->
    case string:to_integer(Text) of
        {Count, ""} when Count > 0 -> options(Rest, Options#{nodes => Count});
        _ -> {error, "--nodes needs a number, not " ++ Text}
    end;
options(["--variant", Text | Rest], Options) ->
    case [V || V <- weft_bench_variant:all(), atom_to_list(V) =:= Text] of
        [Variant] -> options(Rest, Options#{variant => Variant});
        [] -> {error, lists:flatten(io_lib:format("no variant ~ts; there are ~0p",
                                                  [Text, weft_bench_variant:all()]))}
    end;
options(["--groups", Text | Rest], Options) ->
    case string:to_integer(Text) of
        {Size, ""} when Size > 1 -> options(Rest, Options#{groups => Size});
        _ -> {error, "--groups needs the size of a group, 2 or more, not " ++ Text}
    end;
options(["--out", Dir | Rest], Options) -> options(Rest, Options#{out => Dir});
options([Other | _], _Options) -> {error, "unknown or incomplete argument " ++ Other}.

told({error, Text}, _Dir) ->
    io:format(standard_error, "~ts~n", [Text]),
    2;
told({ok, Outcome}, Dir) ->
    weft_load_cli:print(Outcome),
    weft_load_cli:report(Outcome, Dir).

%% @doc Runs a configuration on so many nodes of a variant (4, `stock_mesh'). The error is a text.
-spec run(weft_load_config:config(), file:filename(),
          #{nodes => pos_integer(), variant => weft_bench_variant:variant(),
            groups => pos_integer(), _ => _}) ->
          {ok, weft_load:outcome()} | {error, string()}.
run(Config, Dir, Options) ->
    Count = maps:get(nodes, Options, 4),
    Variant = maps:get(variant, Options, stock_mesh),
    case weft_de_bench_config:problems(Config, Variant, Options) of
        [] -> on_nodes(Config, Dir, shape(Count, Options), Variant);
        [Text | _] -> {error, Text}
    end.

shape(Count, #{groups := Size}) -> weft_bench_cluster:shape(Count, chain(1, Count, Size));
shape(Count, _Options) -> weft_bench_cluster:shape(Count, []).

%% The last node of a group is the first of the next.
chain(First, Count, Size) when First + Size - 1 >= Count -> [lists:seq(First, Count)];
chain(First, Count, Size) ->
    Last = First + Size - 1,
    [lists:seq(First, Last) | chain(Last, Count, Size)].

on_nodes(Config, Dir, #{nodes := Count} = Shape, Variant) ->
    ok = weft_bench_file:directory(filename:join(Dir, "logs")),
    {ok, Place} = weft_bench_place:start(weft_bench_link:loopback(), Dir),
    try
        Layout = {cluster, Shape},
        io:format("starting ~b nodes, ~ts~n", [Count, Variant]),
        case weft_bench_nodes:start(Variant, Layout, #{place => Place, tls => Dir,
                                                       log_dir => filename:join(Dir, "logs")}) of
            {ok, Nodes} ->
                io:format("~ts on each~n", [weft_load_config:describe(Config)]),
                try loads(Config, filename:absname(Dir), Nodes)
                after weft_bench_nodes:stop(Nodes)
                end;
            {error, Text} ->
                {error, "the nodes do not start: " ++ Text}
        end
    after
        weft_bench_place:stop(Place)
    end.

%% @doc Runs a configuration on the nodes of a cluster that is there: on each at the same time, each
%% by a process of its own that waits for it. The directory is one of an absolute name.
-spec loads(weft_load_config:config(), file:filename(), weft_bench_nodes:nodes()) ->
          {ok, weft_load:outcome()} | {error, string()}.
loads(#{pairs := Pairs} = Config0, Dir, Nodes) ->
    All = weft_bench_cluster:nodes(Nodes),
    Config = Config0#{pairs := [{nodes, All} | Pairs]},
    Roles = lists:sort(weft_bench_nodes:roles(Nodes)),
    Prepared = [weft_bench_nodes:call(Nodes, Role, ?MODULE, prepare, {[Config], ?CALL_MS})
                || Role <- Roles],
    case [Text || {error, Text} <- Prepared] of
        [] -> loads(Config, Dir, Roles, Nodes, length(All));
        [Text | _] -> {error, Text}
    end.

loads(Config, Dir, Roles, Nodes, Count) ->
    #{duration_ms := DurationMs, warm_up_ms := WarmUpMs} = Config,
    TimeoutMs = DurationMs + WarmUpMs + ?GRACE_MS,
    Self = self(),
    Runs = [spawn_monitor(fun() -> Self ! {self(), load(Config, Dir, Role, Nodes, TimeoutMs)} end)
            || Role <- Roles],
    added_up([answer(Run) || Run <- Runs], Config, Dir, Count).

answer({Pid, Monitor}) ->
    receive
        {Pid, Answer} -> demonitor(Monitor, [flush]), {answer, Answer};
        {'DOWN', Monitor, process, Pid, Reason} -> Reason
    end.

%% Nodes with the same seed would all do the same.
load(#{rng_seed := Seed} = Config0, Dir, {n, Number} = Role, Nodes, TimeoutMs) ->
    Config = Config0#{rng_seed := seed(Seed, Number)},
    Own = filename:join(Dir, integer_to_list(Number)),
    weft_bench_nodes:call(Nodes, Role, weft_load, run,
                          {[Config, #{dir => Own, progress => fun weft_load:silent/1}], TimeoutMs}).

seed(now, _Number) -> now;
seed({A, B, C}, Number) -> {A + 1000 * Number, B, C}.

%% @doc On a node: servers, and scopes of names if the operations need them.
-spec prepare(weft_load_config:config()) -> ok | {error, Text :: string()}.
prepare(#{operations := Operations}) ->
    ok = weft_de_bench_server:start(),
    weft_de_bench_driver:prepare([Op || {_, Op, _} <- Operations]).

added_up(Answers, Config, Dir, Count) ->
    case [Answer || Answer <- Answers, not is_outcome(Answer)] of
        [] -> sum([Outcome || {answer, {ok, Outcome}} <- Answers], Config, Dir, Count);
        [{answer, {error, Text}} | _] -> {error, Text};
        [Reason | _] -> {error, lists:flatten(io_lib:format("a node was lost: ~0tP", [Reason, 20]))}
    end.

is_outcome({answer, {ok, _}}) -> true;
is_outcome(_) -> false.

sum(Outcomes, #{pairs := Pairs} = Config, Dir, Count) ->
    All = fun(Key) -> [maps:get(Key, Outcome) || Outcome <- Outcomes] end,
    Outcome = #{total => weft_load_files:sum(All(total)), elapsed_us => lists:max(All(elapsed_us)),
                errors => errors(lists:append(All(errors))), hung => lists:sum(All(hung)),
                finished => lists:sum(All(finished)), crashed => lists:append(All(crashed))},
    #{total := Total} = Outcome,
    case weft_load_files:open(Dir, Config#{pairs := [{node_count, Count} | Pairs]},
                              maps:keys(Total)) of
        {ok, Files} ->
            Answer = case series(Dir, Count, Files) of
                         ok -> weft_load_files:finish(Outcome, Files);
                         Error -> Error
                     end,
            ok = weft_load_files:close(Files),
            case Answer of
                ok -> {ok, Outcome};
                {error, Text} -> {error, Text}
            end;
        {error, Text} ->
            {error, Text}
    end.

errors(Errors) ->
    Sum = lists:foldl(fun({Label, Reason, Count}, Acc) ->
                              maps:update_with({Label, Reason}, fun(N) -> N + Count end, Count, Acc)
                      end, #{}, Errors),
    lists:reverse(lists:keysort(3, [{Label, Reason, Count}
                                    || {{Label, Reason}, Count} <- maps:to_list(Sum)])).

series(Dir, Count, Files) ->
    weft_load_files:series([filename:join([Dir, integer_to_list(Number), "series.csv"])
                            || Number <- lists:seq(1, Count)], Files).
