%% SPDX-License-Identifier: Apache-2.0
%% @doc Bytes as text that can stand in a URL and on a command line: percent-encoded (RFC 3986), for
%% what is mostly text, and base64url without padding (RFC 4648), for what is none. Pure.
-module(weft_octets).

-export([percent/1, from_percent/1, base64url/1, from_base64url/1]).

%% @doc Unreserved characters as they are, all other bytes as %XX.
-spec percent(binary()) -> binary().
percent(Bytes) ->
    << <<(case is_unreserved(Byte) of
              true -> <<Byte>>;
              false -> iolist_to_binary(io_lib:format("%~2.16.0B", [Byte]))
          end)/binary>> || <<Byte>> <= Bytes >>.

is_unreserved(C) when C >= $a, C =< $z; C >= $A, C =< $Z; C >= $0, C =< $9 -> true;
is_unreserved(C) -> lists:member(C, "-._~").

%% @doc The bytes that a text means. Whatever is not %XX is there as it is.
-spec from_percent(binary()) -> {ok, binary()} | error.
from_percent(Text) ->
    try {ok, from_percent(Text, <<>>)}
    catch error:_ -> error
    end.

from_percent(<<$%, Hex:2/binary, Rest/binary>>, Bytes) ->
    from_percent(Rest, <<Bytes/binary, (binary:decode_hex(Hex))/binary>>);
from_percent(<<Byte, Rest/binary>>, Bytes) when Byte =/= $% ->
    from_percent(Rest, <<Bytes/binary, Byte>>);
from_percent(<<>>, Bytes) ->
    Bytes.

-spec base64url(binary()) -> binary().
base64url(Bytes) ->
    << <<(case C of $+ -> $-; $/ -> $_; _ -> C end)>>
       || <<C>> <= base64:encode(Bytes), C =/= $= >>.

-spec from_base64url(binary()) -> {ok, binary()} | error.
from_base64url(Text) ->
    Usual = << <<(case C of $- -> $+; $_ -> $/; _ -> C end)>> || <<C>> <= Text >>,
    Padding = binary:copy(<<"=">>, (4 - byte_size(Usual) rem 4) rem 4),
    try {ok, base64:decode(<<Usual/binary, Padding/binary>>)}
    catch error:_ -> error
    end.
