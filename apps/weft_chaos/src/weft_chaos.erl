%% SPDX-License-Identifier: Apache-2.0
%% @doc Breaks things on purpose: what an operator calls.
%%
%% Two ways. A schedule (`weft_chaos_schedule') is a list of faults with their times, written by
%% hand or drawn from a seed, carried out on the nodes it names. The monkey kills one process of
%% this node now and then (Chaos Monkey; rhesus of the Instant Messenger), sparing what must be
%% spared.
%%
%% Nothing happens unless it is enabled: `{weft_chaos, [{enabled, true}]}' in the configuration of
%% each node that faults are for; links also need `faults => true' in the `tuning' of weft there.
%% Every fault but a crash and a kill has an end, which the node keeps by itself, so a cut is healed
%% even if whoever asked for it is gone.
-module(weft_chaos).

-export([run/1, run/2, start/2, stop/0, status/0, on/1, off/0, kill/0, kill/1]).

%% @doc Carries out a schedule and returns when it is over and healed.
-spec run(weft_chaos_schedule:schedule()) -> {ok, weft_chaos_runner:report()} | {error, string()}.
run(Schedule) -> run(Schedule, #{}).

%% @doc The same with options: `start': how to start a node that has crashed (a fun of its name),
%% and `start_ms' how long that may take (60000); `progress': a fun that gets each step as it is
%% done. The error is a text.
-spec run(weft_chaos_schedule:schedule(), weft_chaos_runner:options()) ->
          {ok, weft_chaos_runner:report()} | {error, string()}.
run(Schedule, Options) ->
    case weft_chaos_schedule:check(Schedule) of
        ok -> weft_chaos_runner:run(Schedule, Options);
        {error, Text} -> {error, Text}
    end.

%% @doc Begins a schedule; one at a time on a node.
-spec start(weft_chaos_schedule:schedule(), weft_chaos_runner:options()) ->
          {ok, pid()} | {error, string()}.
start(Schedule, Options) ->
    case weft_chaos_schedule:check(Schedule) of
        ok -> weft_chaos_runner:start(Schedule, Options);
        {error, Text} -> {error, Text}
    end.

%% @doc Ends the schedule that runs and heals what it has done.
-spec stop() -> ok | {error, not_running}.
stop() -> weft_chaos_runner:stop().

%% @doc What runs, what is done, what comes next.
-spec status() -> map().
status() ->
    #{schedule => weft_chaos_runner:status(), monkey => weft_chaos_monkey:status(),
      faults_here => weft_chaos_agent:faults()}.

%% @doc Has one process of this node killed again and again (`weft_chaos_monkey').
-spec on(weft_chaos_monkey:options()) -> {ok, pid()} | {error, string()}.
on(Options) -> weft_chaos_monkey:start(Options).

-spec off() -> ok | {error, not_running}.
off() -> weft_chaos_monkey:stop().

%% @doc Kills one process of this node, any that is not spared.
-spec kill() -> {ok, map()} | {error, string()}.
kill() -> kill(#{}).

%% @doc The same with the options of the monkey: `apps', `weights', `spare'.
-spec kill(weft_chaos_monkey:options()) -> {ok, map()} | {error, string()}.
kill(Options) -> weft_chaos_monkey:kill_one(Options).
