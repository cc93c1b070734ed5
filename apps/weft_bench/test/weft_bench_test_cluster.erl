%% SPDX-License-Identifier: Apache-2.0
%% @doc Clusters for the suites of programs that run on many nodes.
-module(weft_bench_test_cluster).

-export([begin_suite/1, end_suite/1, with_nodes/4, run/5, loaded_in_run/4, command/3,
         connections/1]).
-export([begun/3, go_on/1]).

-define(CALL_MS, 60000).

%% @doc The configuration of Common Test, with a code path that has what workloads need and no more:
%% nodes have that of the suite, and look for each module in one directory after the other.
-spec begin_suite([{atom(), term()}]) -> [{atom(), term()}].
begin_suite(Config) ->
    Path = code:get_path(),
    Needed = [atom_to_list(App) || App <- needed(weft_papers, [])],
    IsNeeded = fun(Dir) ->
                   lists:prefix(code:lib_dir(), Dir)
                       orelse lists:member(application_of(Dir), Needed)
               end,
    {Carrier, Others} = lists:partition(fun(Dir) -> Dir =:= ebin(weft) end,
                                        lists:filter(IsNeeded, Path)),
    true = code:set_path(Carrier ++ Others),
    [{code_path, Path} | Config].

%% @doc The code path is as before.
-spec end_suite([{atom(), term()}]) -> ok.
end_suite(Config) ->
    true = code:set_path(proplists:get_value(code_path, Config)),
    ok.

ebin(App) -> filename:join(code:lib_dir(App), "ebin").

%% The name of its folder may have a version.
application_of(Ebin) -> hd(string:split(filename:basename(filename:dirname(Ebin)), "-")).

%% With all that it depends on.
needed(App, Known) ->
    case {lists:member(App, Known), code:where_is_file(atom_to_list(App) ++ ".app")} of
        {false, File} when is_list(File) ->
            {ok, [{application, App, Keys}]} = file:consult(File),
            lists:foldl(fun needed/2, [App | Known], proplists:get_value(applications, Keys));
        _ ->
            Known
    end.

%% @doc What a test says of a cluster, whose nodes have the code of the suites, too.
-spec with_nodes(weft_bench_variant:variant(), weft_bench_cluster:shape(),
                 Config :: [{atom(), term()}], fun((weft_bench_nodes:nodes()) -> Result)) -> Result.
with_nodes(Variant, Shape, Config, Test) ->
    Here = filename:absname(filename:dirname(code:which(?MODULE))),
    weft_bench_cluster:with_nodes(
      Variant, Shape, proplists:get_value(priv_dir, Config),
      fun(Nodes) ->
              [true = weft_bench_nodes:call(Nodes, Role, code, add_patha, {[Here], ?CALL_MS})
               || Role <- weft_bench_nodes:roles(Nodes)],
              Test(Nodes)
      end).

%% @doc Runs a program on nodes of these names, from the first node of the cluster.
-spec run(module(), Options :: map(), [node(), ...], weft_bench_nodes:nodes(),
          TimeoutMs :: pos_integer()) -> {ok, weft_bench_program:result()} | {error, string()}.
run(Program, Options, Names, Nodes, TimeoutMs) ->
    weft_bench_nodes:call(Nodes, {n, 1}, weft_bench_program, run,
                          {[Program, Options, Names, TimeoutMs], TimeoutMs * 2}).

%% @doc Runs a program on nodes that have not run it before: the modules that nodes loaded while it
%% was timed. Code that is loaded then is in the time.
-spec loaded_in_run(module(), Options :: map(), weft_bench_nodes:nodes(),
                    TimeoutMs :: pos_integer()) -> [{weft_bench_nodes:role(), [module()]}].
loaded_in_run(Program, Options, Nodes, TimeoutMs) ->
    First = fun(Function, Arguments) ->
                weft_bench_nodes:call(Nodes, {n, 1}, ?MODULE, Function, {Arguments, TimeoutMs})
            end,
    Run = First(begun, [Program, Options, weft_bench_cluster:nodes(Nodes)]),
    ok = First(go_on, [Run]),
    Before = loaded(Nodes),
    ok = First(go_on, [Run]),
    After = loaded(Nodes),
    ok = First(go_on, [Run]),
    [{Role, Modules -- map_get(Role, Before)}
     || {Role, Modules} <- maps:to_list(After), Modules -- map_get(Role, Before) =/= []].

loaded(Nodes) ->
    maps:from_list([{Role, weft_bench_nodes:call(Nodes, Role, erlang, loaded, {[], ?CALL_MS})}
                    || Role <- weft_bench_nodes:roles(Nodes)]).

%% @private On the first node: a process that starts the program, runs it, and ends it, each when it
%% is told to go on.
-spec begun(module(), Options :: map(), [node(), ...]) -> pid().
begun(Program, Options, Names) ->
    spawn(fun() ->
              {ok, Plan} = Program:plan(Options, Names),
              Started = step(fun() -> Program:start(Plan) end),
              Ran = step(fun() -> Program:run(Started) end),
              step(fun() -> {ok, _} = Program:check(Ran), Program:stop(Ran) end)
          end).

step(Do) ->
    receive
        {go_on, From} ->
            Done = Do(),
            From ! {self(), done},
            Done
    end.

%% @private Waits for what it does then.
-spec go_on(pid()) -> ok | {error, Why :: term()}.
go_on(Run) ->
    Monitor = monitor(process, Run),
    Run ! {go_on, self()},
    receive
        {Run, done} -> true = demonitor(Monitor, [flush]), ok;
        {'DOWN', Monitor, process, Run, Why} -> {error, Why}
    end.

%% @doc Runs a command that prints lines with a name and a value: its exit status, and these lines.
-spec command(module(), Arguments :: [string()], Config :: [{atom(), term()}]) ->
          {Status :: non_neg_integer(), [{Name :: string(), Value :: string()}]}.
command(Module, Arguments, Config) ->
    ok = ct:capture_start(),
    Status = try Module:main(Arguments ++ ["--out", proplists:get_value(priv_dir, Config)])
             after ct:capture_stop()
             end,
    {Status, [{Name, string:trim(Value)}
              || Line <- string:lexemes(lists:append(ct:capture_get()), "\n"),
                 [Name, Value] <- [string:split(Line, " ")]]}.

%% @doc To how many others each node has a connection, in the order of the nodes.
-spec connections(weft_bench_nodes:nodes()) -> [non_neg_integer()].
connections(Nodes) ->
    [begin
         #{connections := Count} = weft_bench_nodes:call(Nodes, Role, weft_bench_cluster, traffic,
                                                         {[], ?CALL_MS}),
         Count
     end || Role <- lists:sort(weft_bench_nodes:roles(Nodes))].
