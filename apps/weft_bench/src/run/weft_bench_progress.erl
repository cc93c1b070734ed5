%% SPDX-License-Identifier: Apache-2.0
%% @doc The line that tells how far a run is and when it will end. On a terminal it is one line that
%% changes, elsewhere a line now and then. The end is estimated from what the cells said they cost,
%% and from how much longer than that they took until now.
-module(weft_bench_progress).

-export([new/2, next/3, done/2, note/2, finish/1]).
-export_type([progress/0]).

-opaque progress() :: #{terminal := boolean(), count := non_neg_integer(),
                        total := non_neg_integer(), done_ms := non_neg_integer(),
                        total_ms := non_neg_integer(), started := integer(), shown := integer()}.

-define(SHOW_EVERY_MS, 5000).
%% The first estimate needs something to be made of.
-define(KNOWN_MS, 3000).

%% @doc Costs are what each measurement of the run is expected to take.
-spec new(Terminal :: boolean(), CostsMs :: [non_neg_integer()]) -> progress().
new(Terminal, CostsMs) ->
    #{terminal => Terminal, count => 0, total => length(CostsMs), done_ms => 0,
      total_ms => lists:sum(CostsMs), started => now_ms(), shown => now_ms() - ?SHOW_EVERY_MS}.

%% @doc Shows what is measured now, and what the measurement before has come to.
-spec next(progress(), Text :: iodata(), Last :: iodata()) -> progress().
next(#{terminal := true} = Progress, Text, Last) ->
    io:format("\r\e[K~ts", [string:slice(line(Progress, Text, Last), 0, 119)]),
    Progress;
next(#{shown := Shown} = Progress, Text, Last) ->
    case now_ms() - Shown >= ?SHOW_EVERY_MS of
        true ->
            io:format("~ts~n", [line(Progress, Text, Last)]),
            Progress#{shown := now_ms()};
        false ->
            Progress
    end.

line(#{count := Count, total := Total} = Progress, Text, Last) ->
    io_lib:format("[~b/~b] ETA ~ts  ~ts  ~ts", [Count + 1, Total, left(Progress), Text,
                                                before(Last)]).

before("") -> "";
before(Last) -> ["(before: ", Last, ")"].

%% @doc A measurement that was expected to take so long is over, or was left out.
-spec done(progress(), CostMs :: non_neg_integer()) -> progress().
done(#{count := Count, done_ms := DoneMs} = Progress, CostMs) ->
    Progress#{count := Count + 1, done_ms := DoneMs + CostMs}.

%% @doc A text that stays.
-spec note(progress(), iodata()) -> ok.
note(#{terminal := true}, Text) -> io:format("\r\e[K~ts~n", [Text]);
note(_, Text) -> io:format("~ts~n", [Text]).

-spec finish(progress()) -> ok.
finish(#{started := Started} = Progress) ->
    note(Progress, ["measured in ", minutes(now_ms() - Started)]).

left(#{done_ms := DoneMs, total_ms := TotalMs, started := Started}) ->
    Slowness = case DoneMs >= ?KNOWN_MS of
                   true -> (now_ms() - Started) / DoneMs;
                   false -> 1
               end,
    minutes(round((TotalMs - DoneMs) * Slowness)).

minutes(Ms) ->
    Seconds = max(0, Ms) div 1000,
    io_lib:format("~b:~2..0b", [Seconds div 60, Seconds rem 60]).

now_ms() ->
    erlang:monotonic_time(millisecond).
