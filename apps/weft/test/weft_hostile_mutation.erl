%% SPDX-License-Identifier: Apache-2.0
%% @doc Changed messages for fuzzing: valid ones of all kinds, and ways to spoil them. Draws from
%% the process's `rand' state.
-module(weft_hostile_mutation).

-export([mutate/1, packet/1]).

%% @doc The message with something changed: bits, bytes, length, parts repeated or left out.
%% Never begins like a name of the distribution handshake: stock Erlang makes an atom of such a
%% name before it asks for the cookie.
-spec mutate(binary()) -> binary().
mutate(Message) ->
    case once(rand:uniform(8), Message) of
        <<$N, _/binary>> -> mutate(Message);
        Mutated -> Mutated
    end.

once(_, <<>>) ->
    crypto:strong_rand_bytes(rand:uniform(20));
once(1, Message) ->
    Bit = rand:uniform(bit_size(Message)) - 1,
    <<Before:Bit/bitstring, X:1, After/bitstring>> = Message,
    <<Before/bitstring, (1 - X):1, After/bitstring>>;
once(2, Message) ->
    {Before, <<_, After/binary>>} = split(Message, byte_size(Message) - 1),
    Extreme = lists:nth(rand:uniform(5), [0, 1, 127, 128, 255]),
    <<Before/binary, Extreme, After/binary>>;
once(3, Message) ->
    {Before, _} = split(Message, byte_size(Message) - 1),
    Before;
once(4, Message) ->
    <<Message/binary, (crypto:strong_rand_bytes(rand:uniform(64)))/binary>>;
once(5, Message) ->
    {Before, After} = split(Message, byte_size(Message)),
    <<Before/binary, (crypto:strong_rand_bytes(rand:uniform(8)))/binary, After/binary>>;
once(6, Message) ->
    {Before, After} = split(Message, byte_size(Message)),
    {_, Rest} = split(After, byte_size(After)),
    <<Before/binary, Rest/binary>>;
once(7, Message) ->
    {Before, After} = split(Message, byte_size(Message)),
    <<After/binary, Before/binary>>;
once(8, Message) ->
    mutate(mutate(Message)).

split(Message, Max) ->
    erlang:split_binary(Message, rand:uniform(Max + 1) - 1).

%% @doc A well-formed packet with arbitrary contents; circuits often ask for Target.
-spec packet(Target :: binary()) -> iodata().
packet(Target) ->
    Label = rand:uniform(6),
    Sequence = lists:nth(rand:uniform(4), [0, rand:uniform(5), rand:uniform(1000), 1 bsl 63]),
    case rand:uniform(13) of
        1 -> weft_wire:ping(rand:uniform(1 bsl 62));
        2 -> weft_wire:pong(rand:uniform(1 bsl 62));
        3 -> weft_wire:control(<<"hostile">>, payload());
        4 -> weft_wire:ack(Label, Sequence);
        5 -> weft_wire:tick(Label);
        6 -> weft_wire:accept(Label, Sequence);
        7 -> weft_wire:close(Label, lists:nth(rand:uniform(4), [ended, broken, gone, refused]));
        8 -> weft_wire:open(Label, open(Target));
        9 -> weft_wire:data(Label, Sequence, handshake, payload());
        10 -> weft_wire:data(Label, Sequence + 1, {bypass, Sequence, Sequence div 2}, payload());
        _ -> weft_wire:data(Label, Sequence, lists:nth(rand:uniform(2), [frames, frames_ack]),
                            payload())
    end.

open(Target) ->
    #{mode => lists:nth(rand:uniform(2), [new, resume]),
      kind => lists:nth(rand:uniform(2), [distribution, {channel, <<"c">>, rand:uniform(256) - 1}]),
      hops => rand:uniform(256) - 1,
      session => <<(rand:uniform(4)):128>>, received => rand:uniform(10) - 1,
      source => <<"hostile@nowhere">>,
      target => lists:nth(rand:uniform(3), [Target, <<"other@nowhere">>, payload()])}.

%% Never begins like such a name either.
payload() ->
    case rand:uniform(3) of
        1 -> <<>>;
        2 -> <<(rand:uniform(40)):32, (crypto:strong_rand_bytes(20))/binary>>;
        3 -> <<0, (crypto:strong_rand_bytes(rand:uniform(100)))/binary>>
    end.
