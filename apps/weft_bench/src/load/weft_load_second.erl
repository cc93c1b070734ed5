%% SPDX-License-Identifier: Apache-2.0
%% @doc What a load tells of each second while it runs: one line of text, also for what several
%% loads did in the same second.
-module(weft_load_second).

-export([text/2, together/1, joined/2]).
-export_type([second/0]).

%% The time since the start at which the second ended, and what it brought.
-type second() :: #{elapsed_us := pos_integer(), duration_ms := pos_integer() | infinity,
                    workers := non_neg_integer(), window := weft_load_meters:reading()}.

%% @doc A line for people; Where is what stands behind the time.
-spec text(second(), Where :: iodata()) -> iolist().
text(#{elapsed_us := ElapsedUs, duration_ms := DurationMs, workers := Workers, window := Window},
     Where) ->
    Of = case DurationMs of
             infinity -> "";
             _ -> io_lib:format(" of ~b", [DurationMs div 1000])
         end,
    All = weft_load_histogram:merge([Service || #{service := Service} <- maps:values(Window)]),
    Failed = lists:sum([Count || #{failed := Count} <- maps:values(Window)]),
    io_lib:format("~4b~ts s~ts  ~b workers  ~b/s  p50 ~b  p99 ~b  max ~b us  errors ~b",
                  [(ElapsedUs + 500000) div 1000000, Of, Where, Workers,
                   weft_load_histogram:count(All), weft_load_histogram:percentile(50, All),
                   weft_load_histogram:percentile(99, All), weft_load_histogram:max(All),
                   Failed]).

%% @doc The same second of several loads.
-spec together([second(), ...]) -> second().
together([First | _] = Seconds) ->
    First#{elapsed_us := lists:max([Us || #{elapsed_us := Us} <- Seconds]),
           workers := lists:sum([Count || #{workers := Count} <- Seconds]),
           window := weft_load_files:sum([Window || #{window := Window} <- Seconds])}.

%% @doc Two of a load, one after the other, in one.
-spec joined(second(), second()) -> second().
joined(#{window := Before}, #{window := Window} = Second) ->
    Second#{window := weft_load_files:sum([Before, Window])}.
