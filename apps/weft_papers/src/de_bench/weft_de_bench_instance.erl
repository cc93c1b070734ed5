%% SPDX-License-Identifier: Apache-2.0
%% @doc The instance of DE-Bench on its node. How long it takes to get ready differs between nodes,
%% so each gets ready first and then waits for the moment at which all begin. Nodes of one machine
%% share its clock (`os:perf_counter').
-module(weft_de_bench_instance).

-export([ready/2, go/2]).
-export([run/3]).

%% For the slowest of the others.
-define(WAIT_MS, 180000).

%% @doc Starts servers, scopes of names if the operations need them, and a load, whose workers then
%% wait for `go/2'. Once they do, its process is returned. The error is a text.
-spec ready(weft_load_config:config(), weft_load:options()) -> {ok, pid()} | {error, string()}.
ready(#{operations := Operations} = Config, Options) ->
    ok = weft_de_bench_server:start(),
    case weft_de_bench_driver:prepare([Op || {_, Op, _} <- Operations]) of
        ok -> load(Config, Options);
        {error, Text} -> {error, Text}
    end.

load(Config, Options) ->
    {Pid, Monitor} = spawn_monitor(?MODULE, run, [self(), Config, Options]),
    receive
        {ready, Pid} -> demonitor(Monitor, [flush]), {ok, Pid};
        {'DOWN', Monitor, process, Pid, {done, {error, Text}}} -> {error, Text};
        {'DOWN', Monitor, process, Pid, Why} -> crashed(Why)
    end.

%% @private
-spec run(pid(), weft_load_config:config(), weft_load:options()) -> no_return().
run(Caller, Config, Options) ->
    Begin = fun() -> Caller ! {ready, self()}, begin_us() end,
    exit({done, weft_load:run(Config, Options#{begin_us => Begin})}).

crashed(Why) ->
    {error, lists:flatten(io_lib:format("the load ended: ~0tP", [Why, 20]))}.

begin_us() ->
    receive
        {begin_at, AtUs} ->
            LeftUs = AtUs - os:perf_counter(microsecond),
            BeginUs = erlang:monotonic_time(microsecond) + LeftUs,
            receive after max(0, LeftUs div 1000) -> BeginUs end
    after ?WAIT_MS ->
        throw({load, "the other nodes do not get ready"})
    end.

%% @doc Has a load that is ready begin at that time of `os:perf_counter', in microseconds, and waits
%% for what comes of it.
-spec go(pid(), AtUs :: integer()) -> {ok, weft_load:outcome()} | {error, string()}.
go(Pid, AtUs) ->
    Monitor = monitor(process, Pid),
    Pid ! {begin_at, AtUs},
    receive
        {'DOWN', Monitor, process, Pid, {done, Answer}} -> Answer;
        {'DOWN', Monitor, process, Pid, Why} -> crashed(Why)
    end.
