%% SPDX-License-Identifier: Apache-2.0
%% @doc Waiting for conditions. A wait that fails says for what it waited; one that may fail
%% returns false.
-module(weft_rabbitmq_wait).

-export([until/3, within/2]).

-define(LOOK_AGAIN_MS, 100).

%% @doc Waits until Condition is true; fails with What after TimeoutMs.
-spec until(fun(() -> boolean()), term(), non_neg_integer()) -> ok.
until(Condition, What, TimeoutMs) ->
    within(Condition, TimeoutMs) orelse error({not_in_time, What, {ms, TimeoutMs}}),
    ok.

%% @doc Whether Condition became true within TimeoutMs.
-spec within(fun(() -> boolean()), non_neg_integer()) -> boolean().
within(Condition, TimeoutMs) ->
    look(Condition, erlang:monotonic_time(millisecond) + TimeoutMs).

look(Condition, DeadlineMs) ->
    Condition() orelse
        (erlang:monotonic_time(millisecond) < DeadlineMs andalso begin
             receive after ?LOOK_AGAIN_MS -> ok end, % pacing: next look
             look(Condition, DeadlineMs)
         end).
