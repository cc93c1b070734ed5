%% SPDX-License-Identifier: Apache-2.0
%% @doc OTP 20 removed a function that RSD-IM uses.
-module(im_crypto_adaptor).
-migrates(crypto).

-export([rand_bytes/1]).

-spec rand_bytes(non_neg_integer()) -> binary().
rand_bytes(Count) -> crypto:strong_rand_bytes(Count).
