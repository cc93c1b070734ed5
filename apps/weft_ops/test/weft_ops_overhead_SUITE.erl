%% SPDX-License-Identifier: Apache-2.0
%% @doc What agents, metrics and a scrape each second cost two nodes that call each other as fast as
%% they can: processor time per call and throughput, with and without, in turns.
%%
%% There are 24 pairs; the log has the means and their 95 % intervals. The limit of the medians is a
%% wide one: a narrow one would test the machine. It runs with FULL=1 only.
-module(weft_ops_overhead_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, call/4, call/5, until/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([with_and_without/1]).
%% On the nodes.
-export([echo/0, calls/3]).

-define(APPS, [prometheus, quantile_estimator, ddskerl, cowboy, cowlib, ranch]).
-define(CALLERS, 4).
%% Two-sided 95 % of Student's t with 23 degrees of freedom; of more for fewer.
-define(T, 2.07).
%% Parts of what it is without.
-define(CPU_MAX, 1.3).
-define(RATE_MIN, 0.7).

suite() -> [{timetrap, {minutes, 20}}].

all() -> [with_and_without].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(inets),
    weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

with_and_without(Config) ->
    {Pairs, Ms} = {24, 5000},
    [A, B] = Nodes = [weft_test_nodes:start(Name, #{args => paths()}, ?config(place, Config))
                      || Name <- [a, b]],
    until(fun() -> call(A, net_kernel, connect_node, [name(B)]) end),
    true = register_echo(B),
    _ = measured(Nodes, 2 * Ms),
    Ratios = [pair(N, Nodes, Ms) || N <- lists:seq(1, Pairs)],
    {Cpu, Rate} = lists:unzip(Ratios),
    ct:pal("~b pairs of ~b ms, with agents, metrics and a scrape each second:~n"
           "processor time per call ~ts~ncalls per second ~ts",
           [Pairs, Ms, told(Cpu), told(Rate)]),
    ?assert(median(Cpu) < ?CPU_MAX, Cpu),
    ?assert(median(Rate) > ?RATE_MIN, Rate).

median(Numbers) -> lists:nth(length(Numbers) div 2 + 1, lists:sort(Numbers)).

register_echo(B) ->
    call(B, erlang, register, [echo, call(B, erlang, spawn, [?MODULE, echo, []])]).

%% Every other time it begins with the other one.
pair(N, Nodes, Ms) when N rem 2 =:= 0 ->
    Without = measured(Nodes, Ms),
    ratio(observed(Nodes, Ms), Without);
pair(_N, Nodes, Ms) ->
    With = observed(Nodes, Ms),
    ratio(With, measured(Nodes, Ms)).

ratio({CpuWith, CallsWith}, {Cpu, Calls}) ->
    {(CpuWith / CallsWith) / (Cpu / Calls), CallsWith / Calls}.

observed(Nodes, Ms) ->
    [begin
         _ = [ok = call(Node, application, set_env, [weft_ops, Key, Value])
              || {Key, Value} <- [{http, #{port => 0}}, {sample_ms, 2000}]],
         {ok, _} = call(Node, application, ensure_all_started, [weft_ops])
     end || Node <- Nodes],
    Urls = [lists:concat(["http://127.0.0.1:", call(Node, weft_ops_http, port, []), "/metrics"])
            || Node <- Nodes],
    Scraper = spawn_link(fun() -> scrape(Urls) end),
    Measured = measured(Nodes, Ms),
    unlink(Scraper),
    exit(Scraper, kill),
    [ok = call(Node, application, stop, [weft_ops]) || Node <- Nodes],
    Measured.

scrape(Urls) ->
    [{ok, {{_, 200, _}, _, _}} = httpc:request(Url) || Url <- Urls],
    receive after 1000 -> scrape(Urls) end. % pacing: far more often than usual

%% Processor time of both nodes in milliseconds, and calls.
measured([A, B] = Nodes, Ms) ->
    Before = [runtime(Node) || Node <- Nodes],
    Calls = call(A, ?MODULE, calls, [name(B), ?CALLERS, Ms], Ms + 30000),
    {lists:sum([runtime(Node) || Node <- Nodes]) - lists:sum(Before), Calls}.

runtime(Node) -> element(1, call(Node, erlang, statistics, [runtime])).

%% Of the logarithms of ratios, as percents.
told(Ratios) ->
    Logs = [math:log(Ratio) || Ratio <- Ratios],
    Count = length(Logs),
    Mean = lists:sum(Logs) / Count,
    Variance = lists:sum([(Log - Mean) * (Log - Mean) || Log <- Logs]) / (Count - 1),
    Half = ?T * math:sqrt(Variance / Count),
    Percent = fun(Log) -> 100 * (math:exp(Log) - 1) end,
    io_lib:format("~.2f % (~.2f % to ~.2f %)", [Percent(Mean), Percent(Mean - Half),
                                                Percent(Mean + Half)]).

%% --- on the nodes -----------------------------------------------------------------------------

echo() ->
    receive {From, Ref} -> From ! Ref, echo() end.

%% @doc How many calls so many processes make in that time.
calls(Node, Callers, Ms) ->
    End = erlang:monotonic_time(millisecond) + Ms,
    Self = self(),
    Pids = [spawn_link(fun() -> Self ! {self(), made(Node, End, 0)} end)
            || _ <- lists:seq(1, Callers)],
    lists:sum([receive {Pid, Count} -> Count end || Pid <- Pids]).

made(Node, End, Count) ->
    Ref = make_ref(),
    {echo, Node} ! {self(), Ref},
    receive Ref -> ok end,
    case erlang:monotonic_time(millisecond) < End of
        true -> made(Node, End, Count + 1);
        false -> Count + 1
    end.

%% --- steps ------------------------------------------------------------------------------------

paths() ->
    lists:append([["-pa", Dir] || Dir <- [weft_test_nodes:ebin(M)
                                          || M <- [weft_ops_app, weft_http_host, weft_json,
                                                   ?MODULE]]
                                             ++ [filename:join(Dir, "ebin")
                                                 || App <- ?APPS, Dir <- [code:lib_dir(App)],
                                                    is_list(Dir)]]).
