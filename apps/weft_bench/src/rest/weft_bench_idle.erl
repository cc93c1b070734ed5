%% SPDX-License-Identifier: Apache-2.0
%% @doc Workload `idle': what nodes cost that are connected with each other and have nothing to do.
%%
%% They are connected as in `weft_bench_form', and left alone for a while, since what forming a
%% cluster has begun goes on for some seconds. Then their processor time and how often a thread of
%% theirs was woken are counted over the time of the cell, from outside. The kernel's ticks, every
%% quarter of net_ticktime, are part of it. A cluster that has lost a node or a connection meanwhile
%% has less to do, so afterwards each node is asked whether it still has all others.
-module(weft_bench_idle).
-behaviour(weft_bench_workload).

-export([cells/1, run/2, cpu_us/2, used_us/2, wakeups/2, switches/3, switches_in/2]).

-define(READ_BYTES_MAX, 4096).

%% @private
cells(quick) -> [cell(3, 1, 2)];
cells(full) -> [cell(Count, 20, 60) || Count <- [8, 24, 40]].

cell(Count, SettleS, MeasureS) ->
    #{suite => rest, workload => idle, size_bytes => 0, pairs => Count, streams => 0,
      link => weft_bench_link:loopback(), on_demand => true, fresh => true,
      layout => {apart, weft_bench_cluster:shape(Count, [])},
      variants => [stock, weft_1, stock_mesh, weft_mesh, weft_swim],
      cost_ms => 5000 + 300 * Count + 1000 * (SettleS + MeasureS),
      with => #{settle_ms => SettleS * 1000, measure_ms => MeasureS * 1000}}.

%% @private
run(#{with := #{settle_ms := SettleMs, measure_ms := MeasureMs}}, Nodes) ->
    Roles = weft_bench_nodes:roles(Nodes),
    ok = weft_bench_form:load(Roles, Nodes),
    _ = weft_bench_form:form(Roles, Nodes),
    receive after SettleMs -> ok end,
    Before = {cpu_us(Nodes, Roles), wakeups(Nodes, Roles), now_us()},
    receive after MeasureMs -> ok end,
    After = {cpu_us(Nodes, Roles), wakeups(Nodes, Roles), now_us()},
    %% Only now: to be asked wakes a node.
    ok = weft_bench_form:still_formed(Roles, Nodes),
    [CpuUs, Wakeups, ElapsedUs] = [element(N, After) - element(N, Before) || N <- [1, 2, 3]],
    Count = length(Roles),
    {ok, [{idle_percent, 100 * CpuUs / Count / ElapsedUs},
          {idle_wakeups_per_s, Wakeups * 1.0e6 / Count / ElapsedUs},
          {measured_s, ElapsedUs / 1.0e6}]}.

now_us() -> erlang:monotonic_time(microsecond).

%% @doc User and system time that these nodes used since their start, in microseconds. From the
%% scheduler's statistics of each thread, which count nanoseconds (Linux,
%% Documentation/scheduler/sched-stats.rst); where there are none, as `weft_bench_nodes:cpu_us/1'.
%% A node of which the system tells nothing has ended, which is an error.
-spec cpu_us(weft_bench_nodes:nodes(), [weft_bench_nodes:role()]) -> pos_integer().
cpu_us(Nodes, Roles) ->
    lists:sum([cpu_us_of(Role, weft_bench_nodes:os_pid(Nodes, Role)) || Role <- Roles]).

cpu_us_of(Role, OsPid) ->
    case used_us(of_threads(OsPid, "schedstat"),
                 fun() -> weft_bench_nodes:cpu_us_of(OsPid) end) of
        0 -> error({no_processor_time_of, Role});
        UsedUs -> UsedUs
    end.

%% @private By what the scheduler tells of the threads of a process. A kernel that does not count it
%% has no such files, or `0 0 0' in all of them.
-spec used_us(Schedstats :: [binary()], ByTicks :: fun(() -> non_neg_integer())) ->
          non_neg_integer().
used_us(Schedstats, ByTicks) ->
    case lists:sum([binary_to_integer(hd(binary:split(Text, <<" ">>)))
                    || Text <- Schedstats, Text =/= <<>>]) of
        0 -> ByTicks();
        Ns -> Ns div 1000
    end.

%% @doc How often threads of these nodes went to sleep by themselves since their start, so how often
%% something woke them.
-spec wakeups(weft_bench_nodes:nodes(), [weft_bench_nodes:role()]) -> non_neg_integer().
wakeups(Nodes, Roles) -> switches(voluntary, Nodes, Roles).

%% @doc Context switches of threads of these nodes since their start: how often they went to sleep
%% by themselves, or how often the kernel took the processor from them (proc(5), status).
-spec switches(voluntary | nonvoluntary, weft_bench_nodes:nodes(), [weft_bench_nodes:role()]) ->
          non_neg_integer().
switches(Kind, Nodes, Roles) ->
    OsPids = [weft_bench_nodes:os_pid(Nodes, Role) || Role <- Roles],
    lists:sum([switches_in(Text, Kind) || OsPid <- OsPids, Text <- of_threads(OsPid, "status")]).

%% @private In the status of a thread.
-spec switches_in(Status :: binary(), voluntary | nonvoluntary) -> non_neg_integer().
switches_in(Status, Kind) ->
    case re:run(Status, ["^", atom_to_list(Kind), "_ctxt_switches:\\s*(\\d+)"],
                [multiline, {capture, all_but_first, binary}]) of
        {match, [Count]} -> binary_to_integer(Count);
        nomatch -> 0
    end.

%% A file of each thread; a thread may have ended meanwhile.
of_threads(OsPid, Name) ->
    [Text || File <- filelib:wildcard(filename:join(["/proc", OsPid, "task", "*", Name])),
             {ok, Text} <- [read(File)]].

read(Path) ->
    case file:open(Path, [raw, read, binary]) of
        {ok, File} ->
            Read = file:read(File, ?READ_BYTES_MAX),
            ok = file:close(File),
            Read;
        Error ->
            Error
    end.
