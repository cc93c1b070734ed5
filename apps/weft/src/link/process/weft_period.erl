%% SPDX-License-Identifier: Apache-2.0
%% @doc Timers for work that is done once in a period and does not matter to the second.
%%
%% They end when the monotonic time of the node is a multiple of the period. So what waits for
%% periods of one length, or of multiples of it, runs at the same moment, and a node that has
%% nothing to do is woken up once for all of it.
-module(weft_period).

-export([next_ms/2, send/2]).

%% @doc The end of the period that NowMs is in. Times may be negative.
-spec next_ms(NowMs :: integer(), PeriodMs :: pos_integer()) -> integer().
next_ms(NowMs, PeriodMs) ->
    NowMs + PeriodMs - ((NowMs rem PeriodMs) + PeriodMs) rem PeriodMs.

%% @doc The calling process gets the message at the end of this period.
-spec send(PeriodMs :: pos_integer(), Message :: term()) -> Timer :: reference().
send(PeriodMs, Message) ->
    NextMs = next_ms(erlang:monotonic_time(millisecond), PeriodMs),
    erlang:send_after(NextMs, self(), Message, [{abs, true}]).
