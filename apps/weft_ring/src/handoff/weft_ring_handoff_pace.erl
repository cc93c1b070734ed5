%% SPDX-License-Identifier: Apache-2.0
%% @doc How long a handoff waits between two batches. Pure. A handoff gives way to whatever else the
%% nodes do: when acknowledgements come later than they could, something waits for the processors,
%% the disk or the network, and requests wait there, too. Then the handoff gets slower, down to an
%% eighth of its rate, so that it comes to an end also where all is busy for ever. When they come in
%% time it gets faster again.
%%
%% As in LEDBAT (RFC 6817) the sign is the delay, compared with the least one that was seen. So a
%% long way to the other node is no reason to be slow. An acknowledgement is late after more than
%% twice the least delay and 2 ms. The time between two batches doubles with a late one, once for
%% all batches that were on their way then, and gets shorter by one part in 64 with one in time: in
%% balance about one in fifty is late. A handoff begins at a quarter of its rate, and doubles that
%% with each acknowledgement, up to the first late one.
%%
%% Whoever copies something else in the same way may use it, too.
-module(weft_ring_handoff_pace).

-export([new/1, again/1, wait_ms/1, sent/3, acknowledged/3]).
-export_type([pace/0]).

-define(SLOWEST, 8).
-define(FIRST, 4).
-define(LATE_MS, 2).
-define(PARTS, 64).
%% The least delay is that of so many batches and of as many before: ways change.
-define(STRETCH, 100).

-record(pace, {least_ms :: non_neg_integer(),
               ms :: float(),
               %% No acknowledgement was late yet.
               begins = true :: boolean(),
               %% Batches that are not acknowledged, the latest first.
               waiting = [] :: [{Number :: pos_integer(), SentMs :: integer()}],
               %% The last batch that was on its way when it got slower.
               slower_at = 0 :: non_neg_integer(),
               delay_ms = infinity :: infinity | non_neg_integer(),
               before_ms = infinity :: infinity | non_neg_integer(),
               seen = 0 :: non_neg_integer()}).
-opaque pace() :: #pace{}.

%% @doc With the time between two batches that it shall not be faster than; with 0 it never waits.
-spec new(LeastMs :: non_neg_integer()) -> pace().
new(LeastMs) ->
    #pace{least_ms = LeastMs, ms = float(?FIRST * LeastMs)}.

%% @doc Batches are numbered anew, and those on their way are forgotten.
-spec again(pace()) -> pace().
again(Pace) ->
    Pace#pace{waiting = [], slower_at = 0}.

%% @doc How long to wait after a batch.
-spec wait_ms(pace()) -> non_neg_integer().
wait_ms(#pace{ms = Ms}) -> round(Ms).

%% @doc A batch is sent. Numbers increase.
-spec sent(Number :: pos_integer(), NowMs :: integer(), pace()) -> pace().
sent(Number, NowMs, #pace{waiting = Waiting} = Pace) ->
    Pace#pace{waiting = [{Number, NowMs} | Waiting]}.

%% @doc The other node has all up to this number.
-spec acknowledged(Number :: non_neg_integer(), NowMs :: integer(), pace()) -> pace().
acknowledged(Number, NowMs, #pace{waiting = Waiting} = Pace) ->
    case lists:splitwith(fun({N, _}) -> N > Number end, Waiting) of
        {_, []} -> Pace;
        {Left, [{Latest, SentMs} | _]} ->
            took(Latest, max(0, NowMs - SentMs), Pace#pace{waiting = Left})
    end.

took(Number, Ms, #pace{delay_ms = Delay, before_ms = Before} = Pace0) ->
    Least = lists:min([Ms, Delay, Before]),
    Pace = seen(Pace0#pace{delay_ms = min(Ms, Delay)}),
    case Ms > 2 * Least + ?LATE_MS of
        true -> slower(Number, Pace);
        false -> faster(Pace)
    end.

seen(#pace{seen = Seen, delay_ms = Delay} = Pace) when Seen + 1 >= ?STRETCH ->
    Pace#pace{seen = 0, before_ms = Delay, delay_ms = infinity};
seen(#pace{seen = Seen} = Pace) ->
    Pace#pace{seen = Seen + 1}.

slower(Number, #pace{slower_at = At} = Pace) when Number =< At ->
    Pace;
slower(Number, #pace{least_ms = Least, ms = Ms, waiting = Waiting} = Pace) ->
    Pace#pace{ms = min(float(?SLOWEST * Least), 2 * Ms), begins = false,
              slower_at = lists:max([Number | [N || {N, _} <- Waiting]])}.

faster(#pace{least_ms = Least, ms = Ms, begins = Begins} = Pace) ->
    Shorter = case Begins of
                  true -> Ms / 2;
                  false -> Ms * (?PARTS - 1) / ?PARTS
              end,
    Pace#pace{ms = max(float(Least), Shorter)}.
