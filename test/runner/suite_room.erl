%% SPDX-License-Identifier: Apache-2.0
%% @doc How many suites run side by side. Most of them wait most of the time, so how many a machine
%% has processors for depends on which ones run just now: some always may, and some more while the
%% processors had little to do of late (on Linux, which tells it; elsewhere there are no more).
-module(suite_room).

-export([new/2, sample/0, has_room/3]).
-export_type([room/0, sample/0]).

%% What was begun shows in the use of the processors after this time.
-define(LOOK_MS, 2000).
%% One more makes a machine busy that was idle for less, and then suites hold up each other.
-define(IDLE_PERCENT, 16).

%% When it was, and how long processors were idle until then, and all in all, in the same unit.
-type sample() :: {AtMs :: integer(), Idle :: non_neg_integer(), All :: non_neg_integer()} | none.
-opaque room() :: #{least := pos_integer(), most := pos_integer(), before := sample()}.

%% @doc So many always, and at most so many.
-spec new(Least :: pos_integer(), Most :: pos_integer()) -> room().
new(Least, Most) -> #{least => Least, most => Most, before => none}.

%% @doc What the system says now.
-spec sample() -> sample().
sample() ->
    case file:read_file("/proc/stat") of
        {ok, <<"cpu ", Rest/binary>>} ->
            [Line | _] = binary:split(Rest, <<"\n">>),
            Times = [binary_to_integer(Field) || Field <- string:lexemes(Line, " ")],
            %% User, nice, system, idle, waiting for disks, and others (proc(5)).
            {erlang:monotonic_time(millisecond), lists:nth(4, Times), lists:sum(Times)};
        _ ->
            none
    end.

%% @doc Whether one more may begin beside so many.
-spec has_room(Running :: non_neg_integer(), sample(), room()) -> {boolean(), room()}.
has_room(Running, Now, #{least := Least} = Room) when Running < Least ->
    {true, Room#{before := Now}};
has_room(Running, {AtMs, Idle, All} = Now, #{most := Most, before := Before} = Room)
  when Running < Most ->
    case Before of
        {BeforeMs, _, _} when AtMs - BeforeMs < ?LOOK_MS ->
            {false, Room};
        {_, BeforeIdle, BeforeAll} ->
            IsIdle = 100 * (Idle - BeforeIdle) >= ?IDLE_PERCENT * max(1, All - BeforeAll),
            {IsIdle, Room#{before := Now}};
        none ->
            {false, Room#{before := Now}}
    end;
has_room(_Running, _Now, Room) ->
    {false, Room}.
