%% SPDX-License-Identifier: Apache-2.0
%% @doc A process that is interrupted after so many steps, so that another one goes on meanwhile.
-module(weft_papers_test_steps).

-export([interrupted/1]).

%% After so many the VM lets another process run.
-define(REDUCTIONS, 4000).
-define(STEPS, 60).

%% @doc Does something again and again on one scheduler, interrupted after one step more each time.
-spec interrupted(fun(() -> term())) -> ok.
interrupted(Do) ->
    Schedulers = erlang:system_flag(schedulers_online, 1),
    try lists:foreach(fun(Steps) ->
                          true = erlang:bump_reductions(?REDUCTIONS - Steps),
                          Do()
                      end, lists:seq(1, ?STEPS))
    after 1 = erlang:system_flag(schedulers_online, Schedulers)
    end.
