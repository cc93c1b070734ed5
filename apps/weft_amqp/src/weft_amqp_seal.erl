%% SPDX-License-Identifier: Apache-2.0
%% @doc Authenticated encryption of what goes through the broker; pure.
%%
%% The broker, and whoever else may use it, is not trusted: it can read, repeat, drop and invent
%% messages. So each lane has a key per direction, derived (HMAC-SHA256) from the secret that its
%% handshake has left to both ends, and each message is sealed with AES-256-GCM (NIST SP 800-38D)
%% under its number, which never repeats for a key. The handshake itself is as strong as the cookie.
-module(weft_amqp_seal).

-export([keys/3, seal/4, unseal/4, mac/2, is_equal/2]).
-export_type([keys/0, key/0]).

-opaque key() :: <<_:256>>.
-type keys() :: {Out :: key(), In :: key()}.

%% @doc The keys of one end of a lane.
-spec keys(Secret :: binary(), dialer | listener, weft_amqp_message:id()) -> keys().
keys(Secret, Role, Id) ->
    ByDialer = mac(Secret, [<<"weft amqp dialer">>, Id]),
    ByListener = mac(Secret, [<<"weft amqp listener">>, Id]),
    case Role of
        dialer -> {ByDialer, ByListener};
        listener -> {ByListener, ByDialer}
    end.

%% @doc Encrypts Plain; Head is authenticated as well.
-spec seal(key(), pos_integer(), iodata(), iodata()) -> {Cipher :: binary(), Tag :: <<_:128>>}.
seal(Key, Number, Head, Plain) ->
    crypto:crypto_one_time_aead(aes_256_gcm, Key, iv(Number), Plain, Head, true).

-spec unseal(key(), pos_integer(), iodata(), {Tag :: binary(), Cipher :: binary()}) ->
          {ok, binary()} | error.
unseal(Key, Number, Head, {Tag, Cipher}) ->
    case crypto:crypto_one_time_aead(aes_256_gcm, Key, iv(Number), Cipher, Head, Tag, false) of
        Plain when is_binary(Plain) -> {ok, Plain};
        error -> error
    end.

iv(Number) -> <<0:32, Number:64>>.

-spec mac(binary(), iodata()) -> <<_:256>>.
mac(Key, Data) ->
    crypto:mac(hmac, sha256, Key, Data).

%% @doc Compares in a time that does not depend on where the first difference is.
-spec is_equal(binary(), binary()) -> boolean().
is_equal(A, B) when byte_size(A) =:= byte_size(B) ->
    Differences = crypto:exor(A, B),
    Differences =:= <<0:(bit_size(Differences))>>;
is_equal(_, _) ->
    false.
