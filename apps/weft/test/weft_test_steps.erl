%% SPDX-License-Identifier: Apache-2.0
%% @doc Processes that are interrupted after so many steps, so that others go on meanwhile.
-module(weft_test_steps).

-export([on_one_scheduler/1, interrupted/2]).

%% After so many the VM lets another process run.
-define(REDUCTIONS, 4000).

%% @doc Does something where one process runs at a time.
-spec on_one_scheduler(fun(() -> Result)) -> Result.
on_one_scheduler(Do) ->
    Schedulers = erlang:system_flag(schedulers_online, 1),
    try Do()
    after 1 = erlang:system_flag(schedulers_online, Schedulers)
    end.

%% @doc Does something in the calling process, which is interrupted after so many steps.
-spec interrupted(Steps :: pos_integer(), fun(() -> Result)) -> Result.
interrupted(Steps, Do) ->
    true = erlang:bump_reductions(?REDUCTIONS - Steps),
    Do().
