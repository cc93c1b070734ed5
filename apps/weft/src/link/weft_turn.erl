%% SPDX-License-Identifier: Apache-2.0
%% @doc The processor time of weft's own processes: when they get it, and when they give way.
%%
%% What moves the bytes of connections runs at the highest priority: on a node that computes, a
%% process of normal priority has its turn after all others, and a message would pass four of them.
%% What decides about links and routes runs at the next one. So that a flood does not take the node
%% from those it is for, all that work at the highest priority share an account: together they may
%% use one part in ?PARTS of the schedulers while other processes wait. Who has worked for a turn
%% with the account overdrawn pauses until it is even. Where nobody waits there is nothing to pay.
-module(weft_turn).

-export([priority/1, open/0, begins/0, worked/1]).

%% What a process works until it looks at the account.
-define(TURN_US, 500).
%% Together they may use one part in so many.
-define(PARTS, 16).
%% What was not used is good for so long.
-define(BURST_US, 2000).
%% The longest that counts as one piece of work: more than that the system was busy elsewhere.
-define(PIECE_MAX_US, 1000).
%% The longest pause, and how far the account may be overdrawn.
-define(DEBT_MAX_US, 20000).

%% @doc For what moves the bytes of connections, and for what decides about links and routes.
-spec priority(data | control) -> max | high.
priority(data) -> max;
priority(control) -> high.

%% @doc Opens the account of this node. Without one nobody pauses.
-spec open() -> ok.
open() ->
    Account = atomics:new(1, []),
    atomics:put(Account, 1, begins()),
    persistent_term:put(?MODULE, Account).

%% @doc A piece of work begins.
-spec begins() -> Us :: integer().
begins() -> erlang:monotonic_time(microsecond).

%% @doc It is done. Pauses if it is time to.
-spec worked(BeganUs :: integer()) -> ok.
worked(BeganUs) ->
    NowUs = begins(),
    WorkedUs = before() + min(NowUs - BeganUs, ?PIECE_MAX_US),
    case WorkedUs < ?TURN_US of
        true -> set_before(WorkedUs);
        false -> set_before(0), pay(WorkedUs, NowUs, persistent_term:get(?MODULE, none))
    end.

%% What this process has worked since it looked at the account.
before() ->
    case get(?MODULE) of
        undefined -> 0;
        Us -> Us
    end.

set_before(Us) ->
    _ = put(?MODULE, Us),
    ok.

%% The account is the time until which all that was worked is paid for.
pay(_WorkedUs, _NowUs, none) ->
    ok;
pay(WorkedUs, NowUs, Account) ->
    Paid = atomics:get(Account, 1),
    Oldest = NowUs - ?BURST_US,
    _ = Paid < Oldest andalso atomics:compare_exchange(Account, 1, Paid, Oldest),
    PriceUs = WorkedUs * ?PARTS div erlang:system_info(schedulers_online),
    case atomics:add_get(Account, 1, PriceUs) - NowUs of
        OverUs when OverUs > 0 -> settle(OverUs, NowUs, Account);
        _ -> ok
    end.

%% Statistics of all schedulers; those of a node that does nothing else are zero.
settle(OverUs, NowUs, Account) ->
    case erlang:statistics(total_run_queue_lengths) of
        0 ->
            atomics:put(Account, 1, NowUs);
        _ ->
            %% Many together have more to pay than is asked of each.
            _ = OverUs > ?DEBT_MAX_US andalso atomics:put(Account, 1, NowUs + ?DEBT_MAX_US),
            receive after (min(OverUs, ?DEBT_MAX_US) + 999) div 1000 -> ok end
    end.
