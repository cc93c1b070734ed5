%% SPDX-License-Identifier: Apache-2.0
%% @doc A clock for leases: the monotonic clock, plus the time during which the host was suspended.
%%
%% The monotonic clock of a suspended host (a laptop, a virtual machine) stands still, while other
%% nodes end the leases of that host; it would still believe in them when it goes on. The wall clock
%% shows what was missed. So whenever it is ahead by more than a moment, the difference counts as
%% time that passed here. A wall clock that is set forward looks the same; then leases end early,
%% which harms only their owners. One that is set back is ignored.
%%
%% A virtual machine whose wall clock stood still as well notices when that clock is corrected.
-module(weft_suspension).

-export([new/0, now_ms/0, stood_still/1]).

%% Less than the margin by which replicas of strong names let a lease run longer.
-define(MOMENT_MS, 80).
%% Two clocks are to be read at the same time: if the process was interrupted, they are read again.
-define(READ_MS, 10).
-define(TRIES, 5).

-define(OFFSET, 1).
-define(MISSED, 2).

%% @doc From now on missed time counts. Does nothing if it does already.
-spec new() -> ok.
new() ->
    case persistent_term:get(?MODULE, none) of
        none ->
            Ref = atomics:new(2, [{signed, true}]),
            ok = atomics:put(Ref, ?OFFSET, os:system_time(millisecond)
                                           - erlang:monotonic_time(millisecond)),
            persistent_term:put(?MODULE, Ref);
        _Known -> ok
    end.

%% @doc Milliseconds, which only grow; a difference of them is time that passed in the world.
-spec now_ms() -> integer().
now_ms() ->
    case persistent_term:get(?MODULE, none) of
        none -> erlang:monotonic_time(millisecond);
        Ref -> now_ms(Ref, ?TRIES)
    end.

now_ms(Ref, Tries) ->
    BeforeMs = erlang:monotonic_time(millisecond),
    WallMs = os:system_time(millisecond),
    NowMs = erlang:monotonic_time(millisecond),
    case NowMs - BeforeMs < ?READ_MS of
        true -> ok = compare(Ref, WallMs - NowMs), NowMs + atomics:get(Ref, ?MISSED);
        false when Tries > 0 -> now_ms(Ref, Tries - 1);
        false -> NowMs + atomics:get(Ref, ?MISSED)
    end.

%% If two processes notice the same it may count twice, but never not at all.
compare(Ref, OffsetMs) ->
    case OffsetMs - atomics:get(Ref, ?OFFSET) of
        AheadMs when AheadMs > ?MOMENT_MS ->
            ok = atomics:add(Ref, ?MISSED, AheadMs),
            atomics:put(Ref, ?OFFSET, OffsetMs);
        %% A clock that runs a little faster or slower, or was set back.
        AheadMs when AheadMs > ?READ_MS; AheadMs < -?READ_MS ->
            atomics:put(Ref, ?OFFSET, OffsetMs);
        _ -> ok
    end.

%% @doc Acts as if the host had been suspended for so long: for tests.
-spec stood_still(Ms :: non_neg_integer()) -> ok.
stood_still(Ms) ->
    ok = new(),
    atomics:sub(persistent_term:get(?MODULE), ?OFFSET, Ms).
