%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node says of itself at the broker, so that others find it; pure.
%%
%% The name, the start of the node (incarnation), the queue by which it is reached, and when it will
%% say so again. Authenticated by the cookie (HMAC-SHA256), so only nodes of the cluster get into
%% the table of others. It gives an address and no more: each lane authenticates anew. A stamp that
%% only grows makes a recorded announcement worthless later.
-module(weft_amqp_announce).

-export([key/2, encode/2, decode/2]).
-export_type([announcement/0, what/0]).

%% hello: the others are to announce themselves to this queue. bye: the node has stopped.
-type what() :: here | hello | bye.
-type announcement() :: #{what := what(), name := binary(), incarnation := non_neg_integer(),
                          stamp := non_neg_integer(), interval_ms := non_neg_integer(),
                          queue := binary()}.

-spec key(Cookie :: binary(), Cluster :: binary()) -> binary().
key(Cookie, Cluster) ->
    weft_amqp_seal:mac(Cookie, [<<"weft amqp announce">>, Cluster]).

-spec encode(Key :: binary(), announcement()) -> iodata().
encode(Key, #{what := What, name := Name, incarnation := Incarnation, stamp := Stamp,
              interval_ms := IntervalMs, queue := Queue}) ->
    Body = <<(code(What)), Incarnation:64, Stamp:64, IntervalMs:32,
             (byte_size(Name)):16, Name/binary, Queue/binary>>,
    [weft_amqp_seal:mac(Key, Body), Body].

%% @doc Errors: forged (no node with our cookie has written it).
-spec decode(Key :: binary(), binary()) -> {ok, announcement()} | {error, forged}.
decode(Key, <<Mac:32/binary, Body/binary>>) ->
    case weft_amqp_seal:is_equal(weft_amqp_seal:mac(Key, Body), Mac) of
        true -> decode_body(Body);
        false -> {error, forged}
    end;
decode(_Key, _) ->
    {error, forged}.

decode_body(<<Code, Incarnation:64, Stamp:64, IntervalMs:32, Size:16, Name:Size/binary,
              Queue/binary>>)
  when Code =< 2, Size > 0, Size =< 1020, byte_size(Queue) > 0, byte_size(Queue) =< 255 ->
    case is_name(Name) of
        true -> {ok, #{what => what(Code), name => Name, incarnation => Incarnation,
                       stamp => Stamp, interval_ms => IntervalMs, queue => Queue}};
        false -> {error, forged}
    end;
decode_body(_) ->
    {error, forged}.

%% It will be made an atom.
is_name(Name) ->
    case unicode:characters_to_list(Name) of
        Characters when is_list(Characters) -> length(Characters) =< 255;
        _ -> false
    end.

code(here) -> 0;
code(hello) -> 1;
code(bye) -> 2.

what(0) -> here;
what(1) -> hello;
what(2) -> bye.
