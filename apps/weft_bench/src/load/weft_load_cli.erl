%% SPDX-License-Identifier: Apache-2.0
%% @doc `bin/bench load CONFIG [--out DIR]': runs a load from a configuration file, with `--cluster
%% FILE' on the hosts of a deployment.
%% What is measured is up to the configuration; this prints and gives the exit status.
-module(weft_load_cli).

-export([command/1, main/1, print/1, report/1, report/2, is_load/1]).
-export_type([open/0]).

%% Opens hosts of a deployment for a configuration: all, or those named. After an interrupt they
%% are closed by themselves.
-type open() :: fun((File :: string(), Hosts :: all | [string()], weft_load_config:config()) ->
                        {ok, weft_load_hosts:place(), Close :: fun(() -> term())}
                      | {error, Text :: string()}).

%% @doc 0: measured, 1: measured, but something failed (errors, crashes, hangs), 2: not measured.
-spec main([string()]) -> 0 | 1 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(none), "bin/bench load").

%% @doc Its arguments; where deployments can not be opened there are no options for them.
-spec command(open() | none) -> weft_argparse:command().
command(Open) ->
    #{help => "operations of a driver, as Basho Bench runs them",
      arguments => [#{name => config, help => "what to do: docs/guide/load.md"},
                    #{name => source, long => "-source", value => "DIR",
                      help => "where the sources of drivers are, if the configuration has none"}]
          ++ [Argument || Open =/= none, Argument <- cluster()]
          ++ weft_bench_arguments:common("where the results go"),
      handler => fun(#{config := File} = Given) ->
                     load({File, [{source_dir, Dir} || #{source := Dir} <- [Given]]},
                          maps:get(out, Given, weft_bench_arguments:new("load")),
                          Given#{open => Open})
                 end}.

cluster() ->
    [#{name => cluster, long => "-cluster", value => "FILE",
       help => "on each host of that deployment, for the nodes that run there"},
     #{name => hosts, long => "-hosts", type => {list, string}, value => "HOST,HOST",
       help => "only on these hosts of the deployment"}].

load(_What, _Dir, #{hosts := _} = Given) when not is_map_key(cluster, Given) ->
    say("--hosts are those of a deployment: give its file as --cluster, too");
load({File, Defaults}, Dir, Given) ->
    case {weft_load_config:read(File, Defaults), weft_load_files:is_free(Dir)} of
        {{ok, Config}, ok} ->
            io:format("~ts~n~tsresults go to ~ts~n",
                      [weft_load_config:describe(Config), for_driver(Config), Dir]),
            run(Config, Dir, Given);
        {{error, Text}, _} ->
            say(Text);
        {_, {error, Text}} ->
            say(Text)
    end.

run(Config, Dir, #{cluster := File, open := Open} = Given) ->
    io:format("the code goes to the hosts of ~ts~n", [File]),
    case Open(File, maps:get(hosts, Given, all), Config) of
        {ok, Place, Close} ->
            try on_hosts(Config, Dir, Place, Given) after Close() end;
        {error, Text} ->
            say(Text)
    end;
run(Config, Dir, Given) ->
    ok = weft_bench_interrupt:gently(),
    ok = weft_bench_interrupt:afterwards(load, fun() -> report(Dir) end),
    Tell = progress(Given),
    outcome(weft_load:run(Config, #{dir => Dir, progress => fun(Second) -> Tell("", Second) end}),
            Dir).

on_hosts(Config, Dir, #{deployment := Name, hosts := Hosts, nodes := Nodes} = Place, Given) ->
    io:format("on each of these hosts: ~ts~nfor these nodes of ~ts: ~ts~n",
              [lists:join(", ", [Address || #{address := Address} <- Hosts]), Name,
               lists:join(", ", [atom_to_list(Node) || Node <- Nodes])]),
    ok = weft_bench_interrupt:afterwards(load, fun() -> report(Dir) end),
    Tell = progress(Given),
    outcome(weft_load_hosts:run(Config, Dir, Place, fun(Count, Second) ->
                                                        Tell(where(Count), Second)
                                                    end), Dir).

where(1) -> "  1 host";
where(Count) -> io_lib:format("  ~b hosts", [Count]).

for_driver(Config) ->
    case weft_load_config:for_driver(Config) of
        [] -> "";
        Keys -> io_lib:format("keys for the driver: ~ts~n",
                              [lists:join(", ", [atom_to_list(Key) || Key <- Keys])])
    end.

progress(#{terminal := _}) ->
    fun(Where, Second) -> io:format("\r\e[K~ts", [weft_load_second:text(Second, Where)]) end;
progress(#{}) ->
    fun(Where, Second) -> io:format("~ts~n", [weft_load_second:text(Second, Where)]) end.

say(Text) ->
    io:format(standard_error, "~ts~n", [Text]),
    2.

outcome({error, Text}, _Dir) ->
    say(Text);
outcome({ok, Outcome}, Dir) ->
    print(Outcome),
    report(Outcome, Dir).

%% @doc Does this directory have the results of a load, or of the nodes of one?
-spec is_load(file:filename()) -> boolean().
is_load(Dir) ->
    filelib:wildcard("series.csv", Dir) ++ filelib:wildcard("[1-9]*/series.csv", Dir) =/= []
        andalso not filelib:is_regular(weft_report_record:results_file(Dir)).

%% @doc Writes the page of a load again, also of one that was ended before its end.
-spec report(file:filename()) -> 0 | 2.
report(Dir) ->
    case weft_load_files:recover(Dir) of
        ok -> page(Dir);
        {error, Text} -> say(Text)
    end.

page(Dir) ->
    case weft_report_load:write(Dir) of
        ok ->
            io:format("~nreport: ~ts~n", [weft_report_load:file(Dir)]),
            0;
        {error, Text} ->
            say(Text)
    end.

%% @doc Writes the page of a load and tells what failed; the exit status of the command.
-spec report(weft_load:outcome(), file:filename()) -> 0 | 1 | 2.
report(Outcome, Dir) ->
    case page(Dir) of
        0 -> problems(Outcome);
        Status -> Status
    end.

%% @doc A table of what was done.
-spec print(weft_load:outcome()) -> ok.
print(#{total := Total, elapsed_us := ElapsedUs}) ->
    io:format("~n~-24ts ~10ts ~10ts ~8ts ~10ts ~10ts ~10ts ~10ts ~12ts~n",
              ["operation", "per second", "done", "failed", "p50 us", "p99 us", "p99.9 us",
               "max us", "resp. p99 us"]),
    maps:foreach(fun(Label, Meter) -> print(Label, Meter, ElapsedUs) end, Total).

print(Label, #{service := Service, response := Response, failed := Failed}, ElapsedUs) ->
    Count = weft_load_histogram:count(Service),
    [P50, P99, P999] = [weft_load_histogram:percentile(P, Service) || P <- [50, 99, 99.9]],
    io:format("~-24ts ~10.1f ~10b ~8b ~10b ~10b ~10b ~10b ~12b~n",
              [Label, Count * 1.0e6 / ElapsedUs, Count, Failed, P50, P99, P999,
               weft_load_histogram:max(Service), weft_load_histogram:percentile(99, Response)]).

problems(#{errors := Errors, crashed := Crashed, hung := Hung,
           unfinished := Unfinished} = Outcome) ->
    Lost = maps:get(lost, Outcome, []),
    [io:format("~b operations were due in the run and not done; they count as failed, and in the "
               "response times as long as they waited~n", [Unfinished])
     || Unfinished > 0],
    [io:format("not measured to the end: ~ts~n", [Text]) || Text <- Lost],
    [io:format("~b errors: ~ts: ~ts~n", [Count, Label, Reason])
     || {Label, Reason, Count} <- lists:sublist(Errors, 5)],
    [io:format("~ts~n", [ended(Reason)]) || Reason <- lists:sublist(Crashed, 5)],
    [io:format("~b workers did not end within operation_timeout_s and were killed~n", [Hung])
     || Hung > 0],
    case {Lost, Errors, Crashed, Hung} of
        {[], [], [], 0} -> 0;
        _ -> 1
    end.

ended({post_hook, Reason}) -> io_lib:format("post_hook: ~0tP", [Reason, 10]);
ended(Reason) -> io_lib:format("a worker ended: ~0tP", [Reason, 10]).
