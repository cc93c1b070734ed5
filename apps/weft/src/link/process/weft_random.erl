%% SPDX-License-Identifier: Apache-2.0
%% @doc Unpredictable bytes for nonces and session ids.
%%
%% In a release (embedded mode) the kernel starts the distribution before it runs the on_load
%% functions of modules. So for a moment of the boot crypto cannot be called, and a process that
%% needs secrets then waits. HMACs are made after a nonce, so they need not wait themselves.
-module(weft_random).

-export([bytes/1, distinct/0]).

-define(PAUSE_MS, 10).
-define(PAUSES_MAX, 500).

%% @doc Size bytes of the system's generator.
-spec bytes(pos_integer()) -> binary().
bytes(Size) ->
    await_crypto(?PAUSES_MAX),
    crypto:strong_rand_bytes(Size).

await_crypto(0) ->
    error(crypto_not_available);
await_crypto(PausesLeft) ->
    case code:ensure_loaded(crypto) of
        {module, crypto} -> ok;
        {error, _} -> receive after ?PAUSE_MS -> await_crypto(PausesLeft - 1) end
    end.

%% @doc 64 bits that no other start of this node has had. They are no secret, so there is no
%% waiting.
-spec distinct() -> non_neg_integer().
distinct() ->
    Noise = erlang:phash2({erlang:unique_integer(), erlang:monotonic_time(), os:getpid()}, 256),
    (erlang:system_time(microsecond) bsl 8) bor Noise.
