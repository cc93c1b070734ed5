%% SPDX-License-Identifier: Apache-2.0
%% @doc The attributes that every node has: what the VM and, on Linux, the kernel know.
%%
%% Names without a unit count things; `memory_*' is in bytes, `load*' as the kernel averages it. A
%% fact that this system does not provide does not exist.
-module(weft_node_facts).

-export([names/0, read/1]).

%% @doc All of them.
-spec names() -> [atom()].
names() ->
    [cores, schedulers, load1, load5, load15, memory_total, memory_free, memory_vm, otp_release,
     os_type, processes, run_queue, uptime_s, node].

%% @doc The value of a fact now.
-spec read(term()) -> {ok, term()} | undefined.
read(cores) -> known(erlang:system_info(logical_processors_available));
read(schedulers) -> {ok, erlang:system_info(schedulers_online)};
read(load1) -> load(1);
read(load5) -> load(2);
read(load15) -> load(3);
read(memory_total) -> memory("MemTotal:");
read(memory_free) -> memory("MemAvailable:");
read(memory_vm) -> {ok, erlang:memory(total)};
read(otp_release) -> {ok, list_to_integer(erlang:system_info(otp_release))};
read(os_type) -> {ok, os:type()};
read(processes) -> {ok, erlang:system_info(process_count)};
read(run_queue) -> {ok, erlang:statistics(run_queue)};
read(uptime_s) -> {ok, element(1, erlang:statistics(wall_clock)) div 1000};
read(node) -> {ok, node()};
read(_) -> undefined.

known(unknown) -> {ok, erlang:system_info(schedulers)};
known(Count) -> {ok, Count}.

load(Nth) ->
    case words("/proc/loadavg") of
        [_ | _] = Words -> {ok, list_to_float(lists:nth(Nth, Words))};
        [] -> undefined
    end.

memory(Line) ->
    case lists:dropwhile(fun(Word) -> Word =/= Line end, words("/proc/meminfo")) of
        [_, KiloBytes | _] -> {ok, list_to_integer(KiloBytes) * 1024};
        [] -> undefined
    end.

words(File) ->
    case file:read_file(File) of
        {ok, Text} -> string:lexemes(binary_to_list(Text), " \n");
        {error, _} -> []
    end.
