%% SPDX-License-Identifier: Apache-2.0
%% @doc How the nodes of a measurement share the machine, as metrics beside what was measured: how
%% many there are for each core and, where each has a quota (`weft_bench_quota'), whether the quota
%% was what held them up, and not the machine.
%%
%% ```
%% vms_per_core           nodes of a cluster for each core
%% quota_percent          the quota: of a core, for each node
%% throttled_percent      of the periods in which nodes wanted to run: those in which they wanted
%%                        more than their quotas
%% quota_used_percent     what all nodes used, of what they were allowed
%% machine_busy_percent   how busy the cores were. Near 100 nodes may not have had their quotas
%% '''
-module(weft_bench_sharing).

-export([measured/4]).

-define(STAT, "/proc/stat").

%% @doc What the function returns, and the metrics of the time that it took. A workload of which
%% only a part is measured has its own (`weft_bench_runner' then leaves out that of the whole).
-spec measured(weft_bench_nodes:layout(), weft_bench_quota:percent() | none,
               weft_bench_nodes:nodes(), fun(() -> Result)) ->
          {Result, [weft_bench_workload:measurement()]}.
measured(Layout, none, Nodes, Function) ->
    {Function(), vms_per_core(Layout, Nodes)};
measured(Layout, Percent, Nodes, Function) ->
    Before = now_of(Nodes),
    Result = Function(),
    {Result, vms_per_core(Layout, Nodes) ++ [{quota_percent, Percent}
                                             | quota(Percent, Before, now_of(Nodes), Nodes)]}.

%% A cluster on one machine is measured by how many nodes have to share a core.
vms_per_core({Kind, _}, Nodes) when Kind =:= cluster; Kind =:= apart; Kind =:= fan ->
    [{vms_per_core, weft_bench_cluster:vms_per_core(length(weft_bench_nodes:roles(Nodes)))}];
vms_per_core(_Layout, _Nodes) ->
    [].

now_of(Nodes) ->
    #{us => erlang:monotonic_time(microsecond), cpu_us => weft_bench_nodes:cpu_us(Nodes),
      throttling => weft_bench_nodes:counters(Nodes), machine => machine()}.

quota(Percent, #{us := Us0, cpu_us := CpuUs0, throttling := Throttling, machine := Machine0},
      #{us := Us, cpu_us := CpuUs, throttling := Now, machine := Machine}, Nodes) ->
    Allowed = (Us - Us0) * Percent / 100 * length(weft_bench_nodes:roles(Nodes)),
    #{periods := Periods, throttled := Throttled} = weft_bench_quota:since(Throttling, Now),
    [{throttled_percent, 100 * Throttled / max(1, Periods)},
     {quota_used_percent, 100 * (CpuUs - CpuUs0) / Allowed}
     | [{machine_busy_percent, Busy} || Busy <- busy(Machine0, Machine)]].

%% Time of all cores since the start of the machine: with nothing to do, and all of it (proc(5)).
machine() ->
    case file:read_file(?STAT) of
        {ok, <<"cpu ", Text/binary>>} ->
            [Line | _] = binary:split(Text, <<"\n">>),
            Times = [binary_to_integer(Field)
                     || Field <- binary:split(Line, <<" ">>, [global, trim_all])],
            %% User, nice, system, idle, iowait, irq, softirq, steal; guests are in the first two.
            {lists:nth(4, Times) + lists:nth(5, Times), lists:sum(lists:sublist(Times, 8))};
        _ ->
            none
    end.

busy({Idle0, All0}, {Idle, All}) when All > All0 ->
    [100 - 100 * (Idle - Idle0) / (All - All0)];
busy(_Before, _Now) ->
    [].
