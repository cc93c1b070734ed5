%% SPDX-License-Identifier: Apache-2.0
%% @doc The ticker of the kernel beside a simulated session; pure. The rules are those of OTP's
%% `dist_util' for an ordinary connection: four times in net_ticktime it looks at what was read and
%% written since it looked last. If nothing was written it sends a tick, which it takes for written
%% from then on. If nothing was read since it looked four times before, the peer does not respond.
-module(weft_sim_ticker).

-export([new/0, interval_ms/0, look/3]).
-export_type([ticker/0]).

%% For net_ticktime as it is by default, 60 s.
-define(INTERVAL_MS, 15000).
-define(INTENSITY, 4).

-record(ticker, {read = 0 :: non_neg_integer(),
                 written = 0 :: non_neg_integer(),
                 looks = 0 :: 0..?INTENSITY,
                 heard_at = 0 :: 0..?INTENSITY}).
-opaque ticker() :: #ticker{}.

-spec new() -> ticker().
new() -> #ticker{}.

-spec interval_ms() -> pos_integer().
interval_ms() -> ?INTERVAL_MS.

%% @doc What to do, given what the session says was read and written in all.
-spec look(Read :: non_neg_integer(), Written :: non_neg_integer(), ticker()) ->
          {tick | rest, ticker()} | not_responding.
look(Read, _Written, #ticker{read = Read, looks = Looks, heard_at = HeardAt})
  when HeardAt =:= Looks + 1 ->
    not_responding;
look(Read, Written, #ticker{looks = Looks, heard_at = HeardAt} = Ticker) ->
    Heard = case Read - Ticker#ticker.read of
                0 -> HeardAt;
                _ -> Looks + 1
            end,
    Looked = Ticker#ticker{read = Read, looks = (Looks + 1) rem ?INTENSITY, heard_at = Heard},
    case Written - Ticker#ticker.written of
        0 -> {tick, Looked#ticker{written = Written + 1}};
        _ -> {rest, Looked#ticker{written = Written}}
    end.
