%% SPDX-License-Identifier: Apache-2.0
%% @doc The processor time of weft's own processes: when they run, and when they give way.
%%
%% Processes that move the bytes of connections run at the highest priority: on a node that
%% computes, a process of normal priority runs after all others, and a message passes four
%% processes. Processes that decide about links and routes run at the next priority. A flood must
%% not take the node from the processes that it is for. So all processes that receive share an
%% account: while the node is busy, together they may use one part in ?PARTS of the time of all
%% schedulers. A process that has worked for TURN_US and finds the account overdrawn pauses until it
%% is even, or until the node is no longer busy. Sending is not charged, because it comes from the
%% node's own processes.
%%
%% Busy means that processes have waited for a scheduler all the time, for ?BUSY_US. Waiting for a
%% moment means nothing, because receivers wake up in crowds. A witness of the lowest priority finds
%% it out. A process that finds the account overdrawn asks the witness, which runs when all others
%% have run.
-module(weft_turn).
-behaviour(gen_server).

-export([priority/1, open/0, is_witness/1, begins/0, worked/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

%% On the way of each message: not calls.
-compile({inline, [before/0, set_before/1, begins/0, piece_us/1]}).

%% How long a process works before it looks at the account.
-define(TURN_US, 500).
%% Together they may use one part in so many.
-define(PARTS, 10).
%% Time that was not used can be used so much later.
-define(BURST_US, 2000).
%% The longest piece of work that is charged: if it took longer, the system did something else.
-define(PIECE_MAX_US, 1000).
%% The longest pause, and how far the account may be overdrawn.
-define(DEBT_MAX_US, 20000).
-define(BUSY_US, 20000).
%% The witness looks for so long; a process that still has a reason asks again.
-define(WATCH_US, 1000000).

%% The time until which all work is paid for; since when the witness looks, or 0.
-define(PAID, 1).
-define(ASKED, 2).

-type account() :: {atomics:atomics_ref(), Witness :: pid()}.

%% @doc `data': for processes that move the bytes of connections. `control': for those that decide
%% about links and routes.
-spec priority(data | control) -> max | high.
priority(data) -> max;
priority(control) -> high.

%% @doc Opens the account of this node, with a witness linked to the caller. Without an account
%% no process pauses.
-spec open() -> ok.
open() ->
    Times = atomics:new(2, []),
    atomics:put(Times, ?PAID, begins()),
    {ok, Witness} = gen_server:start_link(?MODULE, Times, []),
    persistent_term:put(?MODULE, {Times, Witness}).

%% @doc Is it the witness of the account?
-spec is_witness(pid()) -> boolean().
is_witness(Pid) ->
    case persistent_term:get(?MODULE, none) of
        {_Times, Pid} -> true;
        _ -> false
    end.

%% @doc A piece of work begins.
-spec begins() -> Us :: integer().
begins() -> erlang:monotonic_time(microsecond).

%% @doc The piece of work is done. Pauses if it is time to.
-spec worked(BeganUs :: integer()) -> ok.
worked(BeganUs) ->
    NowUs = begins(),
    WorkedUs = before() + piece_us(NowUs - BeganUs),
    case WorkedUs < ?TURN_US of
        true -> set_before(WorkedUs);
        false -> set_before(0), pay(WorkedUs, NowUs, persistent_term:get(?MODULE, none))
    end.

piece_us(Us) when Us > ?PIECE_MAX_US -> ?PIECE_MAX_US;
piece_us(Us) -> Us.

%% What this process has worked since it looked at the account.
before() ->
    case get(?MODULE) of
        undefined -> 0;
        Us -> Us
    end.

set_before(Us) ->
    _ = put(?MODULE, Us),
    ok.

-spec pay(non_neg_integer(), integer(), account() | none) -> ok.
pay(_WorkedUs, _NowUs, none) ->
    ok;
pay(WorkedUs, NowUs, {Times, _} = Account) ->
    Paid = atomics:get(Times, ?PAID),
    Oldest = NowUs - ?BURST_US,
    _ = Paid < Oldest andalso atomics:compare_exchange(Times, ?PAID, Paid, Oldest),
    PriceUs = WorkedUs * ?PARTS div erlang:system_info(schedulers_online),
    case atomics:add_get(Times, ?PAID, PriceUs) - NowUs of
        OverUs when OverUs > 0 -> settle(OverUs, NowUs, Account);
        _ -> ok
    end.

settle(OverUs, NowUs, {Times, _} = Account) ->
    %% Many processes together may owe more than each of them has to pay.
    _ = OverUs > ?DEBT_MAX_US andalso atomics:put(Times, ?PAID, NowUs + ?DEBT_MAX_US),
    case is_busy(NowUs, Account) of
        true -> pause(NowUs + min(OverUs, ?DEBT_MAX_US), Times);
        false -> ok
    end.

is_busy(NowUs, {Times, Witness}) ->
    case {others_wait(), atomics:get(Times, ?ASKED)} of
        {false, _} -> at_rest(Times), false;
        {true, 0} -> atomics:put(Times, ?ASKED, NowUs), Witness ! look, false;
        {true, SinceUs} -> NowUs - SinceUs > ?BUSY_US
    end.

others_wait() -> erlang:statistics(total_run_queue_lengths) > 0.

at_rest(Times) ->
    atomics:put(Times, ?PAID, begins()),
    atomics:put(Times, ?ASKED, 0).

pause(UntilUs, Times) ->
    receive after 1 -> ok end,
    case begins() < UntilUs andalso atomics:get(Times, ?ASKED) =/= 0 of
        true -> pause(UntilUs, Times);
        false -> ok
    end.

%% --- the witness --------------------------------------------------------------------------------

%% It looks until then, or not at all.
-record(witness, {times :: atomics:atomics_ref(), until_us = none :: none | integer()}).

%% @private
init(Times) ->
    {ok, #witness{times = Times}, {continue, lowest_priority}}.

%% @private
%% Only now, because with low priority the start would wait for all other processes, too.
handle_continue(lowest_priority, Witness) ->
    _ = process_flag(priority, low),
    {noreply, Witness}.

%% @private
handle_call(Request, _From, Witness) ->
    {reply, weft_stray:call(Request), Witness, 0}.

%% @private
handle_cast(Request, Witness) ->
    ok = weft_stray:message(Request),
    {noreply, Witness, 0}.

%% @private
handle_info(look, Witness) ->
    watch(Witness#witness{until_us = begins() + ?WATCH_US});
handle_info(timeout, #witness{until_us = none} = Witness) ->
    {noreply, Witness};
handle_info(timeout, Witness) ->
    erlang:yield(),
    watch(Witness);
handle_info(Message, Witness) ->
    ok = weft_stray:message(Message),
    {noreply, Witness, 0}.

%% Runs again when all other processes have run.
watch(#witness{times = Times, until_us = UntilUs} = Witness) ->
    case {others_wait(), begins() < UntilUs} of
        {true, true} -> {noreply, Witness, 0};
        {true, false} -> atomics:put(Times, ?ASKED, 0), {noreply, Witness#witness{until_us = none}};
        {false, _} -> at_rest(Times), {noreply, Witness#witness{until_us = none}}
    end.
