%% SPDX-License-Identifier: Apache-2.0
%% @doc The built-in attributes of `attr', under the names and in the units of the original: memory
%% in kB, the release as text. On systems other than Linux some are `undefined'.
-module(sd_erlang_facts).

-export([all/0]).
-export([mem_free/0, cpu_speed/0, loadavg1/0, loadavg5/0, loadavg15/0, kernel_entities/0,
         num_erlang_processes/0]).

%% @doc Names and specifications, as in a file for `attr:start/1'.
-spec all() -> [{atom(), term()}].
all() ->
    [{vm_num_processors, erlang:system_info(logical_processors_available)},
     {mem_total, kilobytes(memory_total)},
     {os_type, os:type()},
     {os_version, os:version()},
     {otp_release, erlang:system_info(otp_release)},
     {cpu_model_name, cpu_info("model name")}
     | [{Name, {dynamic, {?MODULE, Name}}}
        || Name <- [cpu_speed, loadavg1, loadavg5, loadavg15, mem_free, kernel_entities,
                    num_erlang_processes]]].

-spec mem_free() -> non_neg_integer() | undefined.
mem_free() -> kilobytes(memory_free).

%% @doc In MHz.
-spec cpu_speed() -> float() | undefined.
cpu_speed() ->
    case cpu_info("cpu MHz") of
        undefined -> undefined;
        Text -> list_to_float(Text)
    end.

-spec loadavg1() -> float() | undefined.
loadavg1() -> fact(load1).

-spec loadavg5() -> float() | undefined.
loadavg5() -> fact(load5).

-spec loadavg15() -> float() | undefined.
loadavg15() -> fact(load15).

%% @doc Runnable and all scheduling entities of the kernel.
-spec kernel_entities() -> {non_neg_integer(), non_neg_integer()} | undefined.
kernel_entities() ->
    case file:read_file("/proc/loadavg") of
        {ok, Text} ->
            [_, _, _, Entities | _] = string:lexemes(binary_to_list(Text), " "),
            [Running, Total] = string:lexemes(Entities, "/"),
            {list_to_integer(Running), list_to_integer(Total)};
        {error, _} -> undefined
    end.

-spec num_erlang_processes() -> pos_integer().
num_erlang_processes() -> erlang:system_info(process_count).

kilobytes(Name) ->
    case fact(Name) of
        undefined -> undefined;
        Bytes -> Bytes div 1024
    end.

fact(Name) ->
    case weft_node_facts:read(Name) of
        {ok, Value} -> Value;
        undefined -> undefined
    end.

%% Of the first processor.
cpu_info(Key) ->
    case file:read_file("/proc/cpuinfo") of
        {ok, Text} ->
            Lines = string:split(binary_to_list(Text), "\n", all),
            case [string:trim(Value) || Line <- Lines, [Name, Value] <- [string:split(Line, ":")],
                                        string:trim(Name) =:= Key] of
                [Value | _] -> Value;
                [] -> undefined
            end;
        {error, _} -> undefined
    end.
